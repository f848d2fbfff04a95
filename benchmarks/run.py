"""Run benchmark cases and append what they gave to `benchmarks/results`.

    python -m benchmarks.run list
    python -m benchmarks.run CASE... [--peer] [--only-peer]     a case or a group: check, dc_discover, evidence, ...
    python -m benchmarks.run CASE... --slow-peers               only the peers that take minutes
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
from benchmarks.case import OURS, Case
from benchmarks.cases import CASES
from benchmarks.outside import REPOSITORY, MissingData

WRITE = "write"
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
    """Run a case in this process and return what it measured, peak memory included. `WRITE` writes its table only."""
    path = case.dataset.write(folder)
    if implementation == WRITE:
        return {}
    if implementation == OURS:
        measured = case.ours(case, path, case.warm_runs)
    else:
        peer = case.peers[implementation]
        measured = peer.measure(case, path, peer.warm_runs)
    measured["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    measured["dataset"] = case.dataset.describe(path)
    return measured


def in_new_process(case: Case, implementation: str, folder: Path) -> dict[str, Any]:
    """`measure_here` in a new process, whose peak memory is the case's own."""
    command = [sys.executable, "-m", "benchmarks.run", "--child", implementation, "--folder", str(folder), case.name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.name} by {implementation} ended with exit code {done.returncode}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def record_case(case: Case, implementation: str, folder: Path, run_id: str) -> records.Record:
    """Run a case in a new process and make its record."""
    measured = in_new_process(case, implementation, folder)
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


def implementations_of(case: Case, wanted: str | None) -> list[str]:
    """What is run of a case, ours first: `wanted` is None, "peer", "only_peer" or "slow_peers"."""
    ours = [OURS] if wanted in (None, "peer") else []
    with_peers = {"peer": (False,), "only_peer": (False, True), "slow_peers": (True,)}.get(wanted or "", ())
    return ours + [name for name, peer in case.peers.items() if peer.slow in with_peers]


def run_cases(cases: list[Case], wanted: str | None, results: Path, data: Path | None = None) -> None:
    """Run cases one after the other, ours then the peers', and append the records; tables are kept in `data`."""
    run_id = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    with tempfile.TemporaryDirectory(prefix="tuplewise-bench-") as temporary:
        folder = data or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases:
            implementations = implementations_of(case, wanted)
            if implementations:
                in_new_process(case, WRITE, folder)
            for implementation in implementations:
                record = record_case(case, implementation, folder, run_id)
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
    choice = parser.add_mutually_exclusive_group()
    for flag, what in (
        ("--peer", "run the peers in the same run, but for those that take minutes"),
        ("--only-peer", "run the peers alone, slow ones too"),
        ("--slow-peers", "run only the peers that take minutes"),
    ):
        name = flag.removeprefix("--").replace("-", "_")
        choice.add_argument(flag, dest="wanted", action="store_const", const=name, help=what)
    parser.add_argument("--against", default=OURS, metavar="NAME", help="what 'compare' compares with")
    parser.add_argument("--results", type=Path, default=records.RESULTS, help="folder of the records")
    parser.add_argument("--data", type=Path, help="folder to keep the tables in, for the next run; default: none")
    parser.add_argument("--child", help=argparse.SUPPRESS)
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
            run_cases(cases, given.wanted, given.results, given.data)
    except (ValueError, MissingData, RuntimeError) as error:
        log.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
