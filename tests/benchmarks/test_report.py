"""What README and docs/benchmarks.md say of recorded figures: which peer stands beside ours, how checks are listed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks import report
from benchmarks.cases import CASES
from benchmarks.check_cases import ONE_BY_ONE
from benchmarks.cluster_cases import ONE_THREAD
from benchmarks.report_cells import peer_of
from benchmarks.report_checks import CHECKS, CHECKS_BESIDE, LISTINGS, SHOWN_CHECKS, check_sentences, check_table
from benchmarks.report_cluster import ON_CLUSTER, cluster_sentences
from benchmarks.report_gpu import gpu_table
from benchmarks.report_speed import SPEEDS, growth_chart, speed_chart, speed_table


def record(case: str, implementation: str = "tuplewise", **changes: Any) -> dict[str, Any]:
    plain = {
        "run": "one", "time_utc": "2026-01-01T00:00:00+00:00", "case": case, "implementation": implementation,
        "dataset": {"sha256": "d", "rows": 1_000_000}, "answer": {"count": 12_345, "digest": "a"},
        "device": "cpu: some, 2 cores", "cold_seconds": 9.0, "warm_seconds": [2.0, 1.0, 4.0], "figures": {},
        "versions": {"python": "3.11.7", "duckdb": "2.0.1"}, "parameters": {"rules": ["x"] * 20},
    }  # fmt: skip
    return plain | changes


def test_peer_is_of_the_same_run_machine_and_table() -> None:
    ours = record("check/phi5")
    same_run = record("check/phi5", "duckdb")
    newer = record("check/phi5", "duckdb", run="two")
    elsewhere = record("check/phi5", "duckdb", run="two", device="cpu: another")
    other_table = record("check/phi5", "duckdb", run="two", dataset={"sha256": "e"})
    assert peer_of([ours, same_run, newer], ours, "duckdb") is same_run
    assert peer_of([ours, newer, elsewhere, other_table], ours, "duckdb") is newer
    assert peer_of([ours, newer], ours, "desbordante-fastadc") is None


def test_checks_stand_beside_their_peer() -> None:
    everything = [
        record("check/phi5"),
        record("check/phi5", "duckdb", warm_seconds=[500.0]),
        record("check/phi7"),
        record("check/phi7", "duckdb", run="two", warm_seconds=[], cold_seconds=9.0),
        record("check/phi12", figures={"encoded_columns_bytes": 48e6, "extra_peak_bytes": 67e6}),
    ]
    lines = check_table(everything).splitlines()
    assert lines[4:] == [
        "| Tax: `zip -> city` | 1,000,000 | 12,345 | 2.0 s | 500 s | 250 x |",
        f"| {CHECKS['check/phi7']} | 1,000,000 | 12,345 | 2.0 s | 9.0 s (run of its own) | 4.5 x |",
        "| the same | 1,000,000 | 12,345 | 2.0 s | not run |  |",
    ]
    assert check_sentences(everything) == (
        "- Memory on top of the two encoded columns (48 MB) while counting the pairs of 1,000,000 TPC-H rows: 67 MB."
    )


def test_a_cluster_stands_beside_one_thread() -> None:
    size = {"sha256": "d", "rows": 250_000, "columns": 15}
    ours = record(ON_CLUSTER[0], dataset=size, figures={"executors": 2})
    theirs = record(ON_CLUSTER[0], ONE_THREAD, dataset=size, warm_seconds=[3.8])
    assert cluster_sentences([ours, theirs]) == (
        "- On a standalone cluster of 2 executors with one core each, all pairs of 250,000 rows x 15 columns of Tax,"
        " from the file to the rules: 2.0 s; one process, one thread: 3.8 s (1.9 x)."
    )
    assert cluster_sentences([ours]) == ""


def test_other_answers_are_not_set_beside_ours() -> None:
    theirs = record("check/phi5", "duckdb", answer={"count": 1, "digest": "b"})
    with pytest.raises(ValueError, match="not comparable: answer"):
        check_table([record("check/phi5"), theirs])


def test_sentences_name_the_others_where_they_were_run() -> None:
    first = record("check/constant-left-100k-first", figures={"violating_pairs": 9_999_900_000})
    command = record("check/command-30000", figures={"own_seconds": [9.0, 2.5, 2.5]}, parameters={"rules": ["x"] * 4})
    everything = [
        record("check/phi4-listed"),
        record("check/phi4-listed", "duckdb", warm_seconds=[8.0]),
        first,
        record("check/tax-clean-exists"),
        record("check/twenty-rules"),
        record("check/twenty-rules", ONE_BY_ONE, warm_seconds=[4.5]),
        record("check/twenty-rules", "duckdb", warm_seconds=[60.0]),
        command,
    ]
    said = check_sentences(everything)
    assert (
        'All 12,345 pairs of "Tax: `area_code, phone` is a key" listed in order: 2.0 s (DuckDB, in no order: 8.0 s).'
        in said
    )
    assert "the first 12,345 of 9,999,900,000 pairs (one site, all serials different): 2.0 s." in said
    assert "1,000,000 rows without errors: 2.0 s." in said
    assert (
        "20 keys of 3 to 5 columns that share columns, 1,000,000 rows: 2.0 s together, one by one 4.5 s, DuckDB 60 s."
        in said
    )
    assert "with 4 rules on a CSV of 1,000,000 rows, from start to exit: 2.0 s." in said
    assert "DuckDB 2.0.1 has 2 threads" in report.figures([*everything, record("x", "duckdb", figures={"threads": 2})])


def test_no_record_gives_no_text() -> None:
    assert check_table([]) == check_sentences([]) == report.figures([]) == ""


def test_speeds_are_of_one_run() -> None:
    ours, theirs = record("check/phi5"), record("check/phi5", "duckdb", warm_seconds=[500.0])
    slower = [record("check/phi10"), record("check/phi10", "duckdb", warm_seconds=[0.5])]
    assert speed_table([ours, theirs, *slower]).splitlines()[2:] == [
        "| Check `zip -> city` | 1,000,000 | 2.0 s | DuckDB | 500 s | 250 x |",
        "| Check that no two firms supply each other | 1,000,000 | 2.0 s | DuckDB | 0.5 s | 0.2 x |",
    ]
    drawn = speed_chart([ours, theirs, *slower])
    assert drawn.count('height="16"') == 2
    assert ">250 x<" in drawn
    assert speed_table([]) == speed_chart([]) == ""
    with pytest.raises(ValueError, match="check/phi5: DuckDB was not run in the run of ours: two, one"):
        speed_table([ours, {**theirs, "run": "two"}])
    assert len(SPEEDS) == 8


def test_bars_grow_with_seconds() -> None:
    cases = [record(f"dc_hybrid/tax-{rows}", warm_seconds=[s]) for rows, s in ((250_000, 2.0), (1_000_000, 8.0))]
    drawn = growth_chart(cases)
    assert re.findall(r'width="([\d.]+)" height="16"', drawn) == ["95.0", "380.0"]
    assert ">1,000,000 rows<" in drawn
    assert growth_chart([]) == ""


def test_all_that_is_shown_is_a_case() -> None:
    assert {case for case, *_ in SPEEDS} <= set(CASES)
    assert set(SHOWN_CHECKS) == set(CHECKS) | set(LISTINGS) | set(CHECKS_BESIDE) <= set(CASES)
    assert {name for name in CASES if name.startswith("check/")} == set(SHOWN_CHECKS)


def test_gpus_stand_beside_the_cores_of_their_machine() -> None:
    case = "gpu_refine/tax-key-grouping"
    gpu = record(case, "cuda", device="cuda:0 NVIDIA H200")
    cpu = record(case, "cpu", device="cpu: Xeon, 16 cores", warm_seconds=[5.0])
    lines = gpu_table([gpu, cpu]).splitlines()
    assert lines[0] == "Kernels on NVIDIA H200 beside Xeon, 16 cores:"
    assert lines[4:] == ["| group rows by a key | 1,000,000 | 2.0 s | 5.0 s | 2.5 x |"]
    with pytest.raises(ValueError, match="tax-key-grouping: not the same run, or not the same answer"):
        gpu_table([gpu, {**cpu, "answer": {"digest": "b"}}])
    assert gpu_table([gpu]) == ""
