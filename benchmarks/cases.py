"""The cases: what is run on which table, how often, and against what."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import datasets, peer
from benchmarks.answers import Triple, digest_bytes, digest_constraints
from benchmarks.case import Case, Measurement, Peer, timed
from benchmarks.check_cases import CHECK_CASES
from benchmarks.choice_cases import CHOICE_CASES
from benchmarks.cluster_cases import CLUSTER_CASES
from benchmarks.commands import run_command
from benchmarks.compile_cases import COMPILE_CASES
from benchmarks.contract_cases import CONTRACT_CASES
from benchmarks.datasets import Source
from benchmarks.dc_state_cases import DC_STATE_CASES
from benchmarks.discoveries import timed_discovery
from benchmarks.hybrid_cases import HYBRID_CASES, SLOW_HYBRID_CASES
from benchmarks.ind_cases import IND_CASES
from benchmarks.ind_state_cases import IND_STATE_CASES
from benchmarks.limit_cases import LIMIT_CASES
from benchmarks.memory import extra_peak_bytes
from benchmarks.od_cases import DEPENDENCY_CASES
from benchmarks.profile_cases import PROFILE_CASES
from benchmarks.reading_cases import READING_CASES
from benchmarks.records import cores
from benchmarks.wide_cases import WIDE_CASES


def measure_discovery(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Discovery by all pairs: predicate space, evidence and inversion."""
    from tuplewise.engine.options import DcDiscoverOptions

    options = DcDiscoverOptions(cross_columns=case.parameters["cross_columns"], algorithm="evidence", device="cpu")
    measured, found = timed_discovery(case, path, options, warm_runs)
    return measured | {
        "figures": {
            "predicates": found.space.predicates,
            "distinct_evidences": found.distinct_evidences,
            "ordered_pairs": found.ordered_pairs,
        }
    }


def peer_discovery(case: Case, path: Path, warm_runs: int) -> Measurement:
    """FastADC's `execute` on the same rows; loading is left out."""
    rows = case.dataset.describe(path)["rows"]
    cross = case.parameters["cross_columns"]
    seconds: list[float] = []
    found: list[list[Triple]] = []
    for _ in range(warm_runs + 1):
        taken, found = peer.run_fastadc(path, rows=rows, cross_columns=cross)
        seconds.append(taken)
    count, digest = digest_constraints(found)
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": count, "digest": digest, "listed": len(found)},
        "figures": {"shard_rows": min(peer.SHARD_ROWS, rows)},
    }


def measure_evidence(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Distinct clues with counts of all pairs: the kernel alone, on all rows and on half of them (for its memory)."""
    from tuplewise.engine.dc.predicate import build_space
    from tuplewise.engine.options import DcDiscoverOptions

    relation = case.dataset.load(path)
    layout = build_space(relation, DcDiscoverOptions(cross_columns=case.parameters["cross_columns"])).layout
    return _measure_clues(relation.codes, layout, warm_runs)


def measure_generated_evidence(case: Case, path: Path, warm_runs: int) -> Measurement:
    """The same on a table with a wanted number of distinct clues."""
    from benchmarks.generators import table_with_clues
    from tuplewise.gpu_kernels.words import ACROSS, make_layout

    codes = table_with_clues(case.parameters["rows"], case.parameters["clues"], seed=case.parameters["seed"])
    layout = make_layout([(c, c, ACROSS, True) for c in range(len(codes))])
    return _measure_clues(codes, layout, warm_runs)


def _measure_clues(codes: Any, layout: Any, warm_runs: int) -> Measurement:
    from tuplewise.gpu_kernels.evidence import collect_clues

    rows = codes.shape[1]
    seconds, results = timed(partial(collect_clues, codes, layout, device="cpu"), warm_runs)
    found = results[-1]
    unordered = rows * (rows - 1) // 2
    used = cores()
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {"evidence": seconds},
        "answer": {
            "count": len(found.clues),
            "digest": digest_bytes(found.clues.tobytes(), found.counts.tobytes()),
        },
        "figures": {
            "unordered_pairs": unordered,
            "cores": used,
            "nanoseconds_per_pair_per_core": statistics.median(seconds[1:]) * used / unordered * 1e9,
            "extra_peak_bytes_half_the_rows": extra_peak_bytes(codes, layout, rows // 2),
            "extra_peak_bytes_all_rows": extra_peak_bytes(codes, layout, rows),
        },
    }


def measure_inversion(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Evidence turned into constraints, evidence at hand: hitting sets, closure reduction, order of results."""
    from tuplewise.engine.dc.discover import discover
    from tuplewise.engine.options import DcDiscoverOptions

    relation = case.dataset.load(path)
    options = DcDiscoverOptions(cross_columns=case.parameters["cross_columns"], device="cpu")
    times: list[float] = []
    found = None
    for _ in range(warm_runs + 1):
        found = discover(relation, options)
        times.append(found.timings_seconds["inversion"])
    assert found is not None
    count, digest = digest_constraints(
        [(p.left, p.operator, str(p.right)) for p in constraint.predicates] for constraint in found.constraints
    )
    return {
        "cold_seconds": times[0],
        "warm_seconds": times[1:],
        "kernel_seconds": {"inversion": times},
        "answer": {"count": count, "digest": digest},
        "figures": {"distinct_evidences": found.distinct_evidences},
    }


def measure_command(case: Case, path: Path, warm_runs: int) -> Measurement:
    """The whole command in a process of its own, from start to exit."""
    runs = run_command(["dc", "discover", str(path)], warm_runs + 1)
    constraints = runs.reports[-1]["result"]["constraints"]
    count, digest = digest_constraints([_triple(p) for p in c["predicates"]] for c in constraints)
    return {
        "cold_seconds": runs.seconds[0],
        "warm_seconds": runs.seconds[1:],
        "kernel_seconds": {"evidence": [r["timings_seconds"]["evidence"] for r in runs.reports]},
        "answer": {"count": count, "digest": digest},
        "figures": runs.figures,
    }


def _triple(predicate: list[Any]) -> Triple:
    left, operator, right = predicate
    return _column(left), operator, _column(right)


def _column(operand: str | list[str]) -> str:
    return operand[1] if isinstance(operand, list) else operand.split(".", 1)[1]


def measure_import(case: Case, path: Path, warm_runs: int) -> Measurement:
    """`import tuplewise`, less the time that Python takes to start."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    statement = "import time; s = time.perf_counter(); import tuplewise; print(time.perf_counter() - s)"
    seconds = []
    for _ in range(warm_runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", statement], capture_output=True, text=True, check=True, env=environment
        )
        seconds.append(float(done.stdout))
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": 0, "digest": digest_bytes(b"imported")},
        "figures": {},
    }


def _discovery(name: str, dataset: Source, cross_columns: bool, **more: Any) -> Case:
    return Case(f"dc_discover/{name}", dataset, measure_discovery, {"cross_columns": cross_columns}, **more)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        _discovery("airport-30000", datasets.AIRPORT, True, peers={peer.NAME: Peer(peer_discovery)}),
        _discovery(
            "adult-2000",
            datasets.ADULT_2000,
            False,
            peers={peer.NAME: Peer(peer_discovery, warm_runs=0, slow=True)},
        ),
        _discovery("adult-24000", datasets.ADULT_24000, False, warm_runs=3),
        _discovery("adult-24000-cross", datasets.ADULT_24000, True, warm_runs=2),
        _discovery("uce", datasets.UCE, False, warm_runs=3),
        Case("evidence/adult", datasets.ADULT, measure_evidence, {"cross_columns": False}),
        Case("evidence/airport-30000", datasets.AIRPORT, measure_evidence, {"cross_columns": True}),
        *(
            Case(
                f"evidence/generated-{clues}",
                datasets.TAX_1000,
                measure_generated_evidence,
                {"rows": 20_000, "clues": clues, "seed": 7},
                warm_runs=3,
            )
            for clues in (100, 10_000)
        ),
        Case("inversion/adult-2000", datasets.ADULT_2000, measure_inversion, {"cross_columns": False}),
        Case("inversion/uce", datasets.UCE, measure_inversion, {"cross_columns": False}, warm_runs=3),
        Case("cli/tax-1000", datasets.TAX_1000, measure_command, warm_runs=2),
        Case("cli/import", datasets.TAX_1000, measure_import, warm_runs=9),
        *CHECK_CASES,
        *CHOICE_CASES,
        *HYBRID_CASES,
        *SLOW_HYBRID_CASES,
        *DEPENDENCY_CASES,
        *IND_CASES,
        *IND_STATE_CASES,
        *DC_STATE_CASES,
        *CLUSTER_CASES,
        *COMPILE_CASES,
        *READING_CASES,
        *PROFILE_CASES,
        *CONTRACT_CASES,
        *LIMIT_CASES,
        *WIDE_CASES,
    )
}
