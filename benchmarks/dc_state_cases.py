"""The cases of denial constraints kept current: batches beside discovery from scratch, and single rows of large tables.

A batch is a CSV file, as `dc insert` takes it; single rows are mappings. What is measured of both goes from there to a
revision that a kill of the process leaves standing; in the group `dc_state_sync`, a loss of power too. How single rows
are measured is in `dc_state_rows`.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.case import Case, Measurement, timed
from benchmarks.dc_state_rows import (
    answer_of,
    bytes_by_part,
    measure_rows,
    options_of,
    refuse_others,
    rows_needed,
    timed_once,
)
from benchmarks.growing import GrowingFile, growing_tax

AIRPORT_ROWS = 30_000
AIRPORT_SHARES = (10, 20, 30)  # percent
TAX_ROWS = (250_000, 1_000_000)
COMPARED_ROWS = 100_000


def measure_batch(case: Case, path: Path, warm_runs: int) -> Measurement:
    """A batch inserted into copies of one state, and discovery from scratch on all rows, loaded.

    Warm and cold seconds are of reading and inserting together; "scratch_seconds" is without reading.
    """
    from tuplewise.engine.dc.discover import discover
    from tuplewise.engine.dc.incremental.initial import build
    from tuplewise.engine.dc.incremental.state import DcState

    assert isinstance(case.dataset, GrowingFile)
    more = str(case.dataset.more_path(path))
    first, copy = (path.with_name(f"{case.name.replace('/', '-')}-{what}") for what in ("state", "copy"))
    shutil.rmtree(first, ignore_errors=True)
    relation = case.dataset.load(path)
    built, _ = timed_once(partial(build, first, relation, options_of(case.parameters), written_by="benchmarks"))
    figures: dict[str, Any] = {"build_seconds": built, "bytes": bytes_by_part(first), "open_seconds": []}
    reading, inserting = [], []
    for run in range(warm_runs + 1):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(first, copy)
        opened, state = timed_once(partial(DcState, copy, device="cpu"))
        with state:
            before = len(state.constraints())
            read, batch = timed_once(partial(state.read, more))
            inserted, applied = timed_once(partial(state.insert, batch))
            figures["open_seconds"].append(opened)
            reading.append(read)
            inserting.append(inserted)
            if run < warm_runs:
                continue
            work = partial(discover, state.relation(), state.options.discover, space=state.space)
            scratch, found = timed(work, int(case.parameters["scratch_warm_runs"]))
            refuse_others(state, found[-1])
            figures |= {
                "predicates": state.space.predicates, "rules_before": before, "gained": len(applied.gained),
                "lost": len(applied.lost), "counting": state.counting, "scratch_seconds": scratch,
            }  # fmt: skip
            answer = answer_of(state, check=False) | {"as_discovered": True}
    shutil.rmtree(first)
    shutil.rmtree(copy)
    seconds = [a + b for a, b in zip(reading, inserting, strict=True)]
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {"reading": reading, "inserting": inserting},
        "answer": answer,
        "figures": figures,
    }


def _batch(dataset: GrowingFile, *, warm_runs: int, scratch: int, **parameters: Any) -> Case:
    given = {"rows": dataset.rows, "more": dataset.more, "scratch_warm_runs": scratch, "nulls": "unknown", **parameters}
    return Case(f"dc_state/{dataset.name}", dataset, measure_batch, given, warm_runs=warm_runs)


def _airport(share: int) -> Case:
    more = AIRPORT_ROWS * share // 100
    dataset = GrowingFile(
        f"airport-{share}", "airport_original.csv", AIRPORT_ROWS, more, "airport_incremental.csv", "latin-1"
    )
    return _batch(dataset, warm_runs=5, scratch=3, cross_columns=True, nulls="value")


def _rows(name: str, rows: int, *, single: int, deleted: int, counted: int, batch: int = 0, **more: Any) -> Case:
    given = {
        "rows": rows, "single_rows": single, "deleted_rows": deleted, "counted_rows": counted, "batch_rows": batch,
        "cross_columns": False, "nulls": "unknown", "sync": False, "index": "auto", "checked": True, **more,
    }  # fmt: skip
    return Case(name, growing_tax(rows, rows_needed(given)), measure_rows, given, warm_runs=0)


DC_STATE_CASES = (
    *(_airport(share) for share in AIRPORT_SHARES),
    _batch(GrowingFile("adult-10", "adult.csv", 24_000, 2_400), warm_runs=1, scratch=0, cross_columns=True),
    _batch(GrowingFile("uce-10", "uce.csv", 10_000, 1_000), warm_runs=2, scratch=1, cross_columns=False),
    *(_rows(f"dc_state/tax-{rows}", rows, single=300, deleted=100, counted=50, batch=10_000) for rows in TAX_ROWS),
    *(
        _rows(f"dc_state_sync/tax-{rows}", rows, single=100, deleted=50, counted=10, sync=True, checked=False)
        for rows in TAX_ROWS
    ),
    *(
        _rows(f"dc_state/tax-{COMPARED_ROWS}-{index}", COMPARED_ROWS, single=30, deleted=10, counted=10, index=index)
        for index in ("zones", "published")
    ),
)
