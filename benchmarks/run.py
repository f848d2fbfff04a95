"""Run benchmark cases and append what they gave to `benchmarks/results`.

    python -m benchmarks.run list
    python -m benchmarks.run CASE... [--peer] [--only-peer]     a case or a group: evidence, inversion, dc_discover, cli
    python -m benchmarks.run compare CASE [--against NAME]      the newest record against the one before, or the peer's

Each case runs in a process of its own, so that its peak memory is its own; a peer runs right after ours.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.cases import CASES, Case
from benchmarks.datasets import REPOSITORY, MissingData

OURS, PEER = "tuplewise", "desbordante-fastadc"
log = logging.getLogger("benchmarks")


def chosen_cases(words: list[str]) -> list[Case]:
    """The cases that these names and groups mean. Raises ValueError with the known names."""
    found: list[Case] = []
    for word in words:
        matching = [c for c in CASES.values() if c.name == word or c.name.split("/")[0] == word]
        if not matching:
            raise ValueError(f"no case or group named {word!r}; known: {', '.join(CASES)}")
        found += [c for c in matching if c not in found]
    return found


def measure_here(case: Case, implementation: str, folder: Path) -> dict[str, Any]:
    """Run a case in this process and return what it measured, peak memory included."""
    path = case.dataset.write(folder)
    if implementation == OURS:
        measured = case.ours(case, path, case.warm_runs)
    else:
        if case.peer is None:
            raise ValueError(f"{case.name} has no peer")
        measured = case.peer(case, path, case.peer_warm_runs)
    measured["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    measured["dataset"] = case.dataset.describe(path)
    return measured


def record_case(case: Case, implementation: str, folder: Path, run_id: str) -> records.Record:
    """Run a case in a new process and make its record."""
    command = [sys.executable, "-m", "benchmarks.run", "--child", implementation, "--folder", str(folder), case.name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.name} by {implementation} ended with exit code {done.returncode}")
    measured = json.loads(done.stdout.splitlines()[-1])
    commit, dirty = records.commit()
    return {
        "run": run_id,
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "case": case.name,
        "implementation": implementation,
        "parameters": case.parameters,
        **measured,
        "device": "cpu: " + records.processor(),
        "versions": records.versions(),
        "commit": commit,
        "dirty": dirty,
    }


def run_cases(cases: list[Case], *, peer: bool, only_peer: bool, results: Path) -> None:
    """Run cases one after the other, ours then the peer's, and append the records."""
    run_id = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    with tempfile.TemporaryDirectory(prefix="tuplewise-bench-") as folder:
        for case in cases:
            implementations = [] if only_peer else [OURS]
            if case.peer is not None and (only_peer or (peer and not case.peer_once)):
                implementations.append(PEER)
            for implementation in implementations:
                record = record_case(case, implementation, Path(folder), run_id)
                target = records.append(record, results)
                log.info(
                    "%s %s: cold %.3f s, typical %.3f s, peak %.0f MB, answer %s -> %s",
                    case.name,
                    implementation,
                    record["cold_seconds"],
                    records.typical_seconds(record),
                    record["peak_bytes"] / 1e6,
                    record["answer"],
                    target.name,
                )


def compare_case(name: str, against: str, results: Path) -> str:
    """One sentence on the newest record of ours against the peer's newest, or against our own one before."""
    everything = records.read(results)
    new = records.latest(everything, name)
    if new is None:
        raise ValueError(f"no record of {name!r}")
    old = records.latest([r for r in everything if r is not new], name, against)
    if old is None:
        raise ValueError(f"no record of {name!r} by {against!r} to compare with")
    return f"{name}: {records.compare(old, new):.2f} times as fast as {against} of {old['time_utc']}"


def main(arguments: list[str] | None = None) -> int:
    """Command line of the benchmarks; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="+", metavar="CASE", help="cases or groups, 'list', or 'compare CASE'")
    parser.add_argument("--peer", action="store_true", help="run the peer in the same run, where there is one")
    parser.add_argument("--only-peer", action="store_true", help="run the peer alone, slow ones too")
    parser.add_argument("--against", default=OURS, choices=(OURS, PEER), help="what 'compare' compares with")
    parser.add_argument("--results", type=Path, default=records.RESULTS, help="folder of the records")
    parser.add_argument("--child", choices=(OURS, PEER), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if given.child:
            measured = measure_here(CASES[given.words[0]], given.child, given.folder)
            sys.stdout.write("\n" + json.dumps(measured) + "\n")
        elif given.words == ["list"]:
            sys.stdout.write("\n".join(CASES) + "\n")
        elif given.words[0] == "compare":
            for name in given.words[1:]:
                sys.stdout.write(compare_case(name, given.against, given.results) + "\n")
        else:
            cases = chosen_cases(given.words)
            run_cases(cases, peer=given.peer, only_peer=given.only_peer, results=given.results)
    except (ValueError, MissingData, RuntimeError) as error:
        log.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
