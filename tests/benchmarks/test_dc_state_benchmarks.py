"""The cases of denial constraints kept current, at a small scale, and what docs/benchmarks.md says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dc_state_rows
from benchmarks.cases import CASES
from benchmarks.dc_state_cases import DC_STATE_CASES
from benchmarks.dc_state_rows import bytes_by_part, rows_needed, spread
from benchmarks.growing import GrowingFile, growing_tax
from benchmarks.outside import MissingData
from benchmarks.report_dc_state import BATCHES, DC_STATES, LARGER, SMALLER, dc_state_sentences, dc_state_tables


def case_of(name: str) -> Any:
    return next(case for case in DC_STATE_CASES if case.name == f"dc_state/{name}")


def test_every_case_is_shown() -> None:
    assert set(DC_STATES) == {case.name for case in DC_STATE_CASES} <= set(CASES)
    assert dc_state_tables([]) == dc_state_sentences([]) == ""


def test_rows_that_come_are_told_from_those_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared" / "data"
    shared.mkdir(parents=True)
    (shared / "a.csv").write_bytes("n,m\r\n1,é\r\n2,f\r\n3,g\r\n".encode("latin-1"))
    (shared / "b.csv").write_text("n,m\n8,x\n9,y\n")
    monkeypatch.setenv("TUPLEWISE_SHARED", str(tmp_path / "shared"))
    one = GrowingFile("one", "a.csv", 2, 1, encoding="latin-1")
    path = one.write(tmp_path)
    assert path.read_bytes() == "n,m\r\n1,é\r\n2,f\r\n".encode()
    assert one.more_path(path).read_bytes() == b"n,m\r\n3,g\r\n"
    assert {**one.describe(path), "sha256": ""} == {"name": "one", "sha256": "", "rows": 3, "columns": 2}
    other = GrowingFile("other", "a.csv", 3, 2, "b.csv", "latin-1")
    path = other.write(tmp_path)
    assert other.load(path).rows == 3
    assert other.more_path(path).read_bytes() == b"n,m\r\n8,x\n9,y\n"
    with pytest.raises(MissingData, match=r"a\.csv has 3 rows, not 4"):
        GrowingFile("more", "a.csv", 3, 1, encoding="latin-1").write(tmp_path)


def test_a_batch_gives_what_discovery_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared" / "data"
    shared.mkdir(parents=True)
    lines = ["n,k,m", *(f"{i % 7},{i % 3},{i}" for i in range(40)), "1,1,7", "1,2,50"]
    (shared / "a.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("TUPLEWISE_SHARED", str(tmp_path / "shared"))
    case = replace(case_of("airport-10"), dataset=GrowingFile("small", "a.csv", 40, 2))
    measured = case.ours(case, case.dataset.write(tmp_path), 1)
    found = measured["figures"]
    assert measured["answer"]["listed"] == found["rules_before"] + found["gained"] - found["lost"] > 0
    assert found["lost"] > 0
    assert len(measured["warm_seconds"]) == 1
    assert {"small.csv", "small-more.csv"} == {file.name for file in tmp_path.iterdir() if file.is_file()}


def test_single_rows_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc_state_rows, "OPENINGS", 1)
    monkeypatch.setattr(dc_state_rows, "LATER_ROWS", 3)
    few = {"rows": 300, "single_rows": 5, "deleted_rows": 3, "counted_rows": 4, "batch_rows": 20}
    given = case_of("tax-250000").parameters | few
    case = replace(case_of("tax-250000"), dataset=growing_tax(300, rows_needed(given)), parameters=given)
    measured = case.ours(case, case.dataset.write(tmp_path), 0)
    found = measured["figures"]
    assert len(measured["warm_seconds"]) == 5
    assert measured["answer"]["as_discovered"] is True
    assert found["pairs_compared"]["median"] > 0
    assert min(found["bytes"][part] for part in ("codes", "dictionaries", "clues_and_sets", "other")) > 0
    assert found["bytes"]["log"] == 0 < found["log_bytes"]
    assert [file.suffix for file in tmp_path.iterdir()] == [".parquet"]


def test_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "base-0").mkdir()
    names = ("column%2F0%2Fplaces", "dictionary%2Ftext%2Fcodes", "sorted%2Fzones", "sorted%2Forders", "sets", "rows")
    for name in names:
        (tmp_path / "base-0" / f"{name}.npy").write_bytes(b"12")
    (tmp_path / "log-0").write_bytes(b"123")
    assert bytes_by_part(tmp_path) == {
        "codes": 2, "dictionaries": 2, "orders": 2, "zones": 2, "clues_and_sets": 2, "log": 3, "other": 2,
    }  # fmt: skip
    assert spread([3.0]) == {"median": 3.0, "p90": 3.0, "most": 3.0}


def record(case: str, rows: int, warm: list[float], **figures: Any) -> dict[str, Any]:
    return {
        "case": case, "implementation": "tuplewise", "parameters": {"rows": rows, "more": 3_000},
        "answer": {"listed": 26}, "cold_seconds": 0.5, "warm_seconds": warm, "figures": figures,
        "kernel_seconds": {"reading": [0.2, 0.05], "inserting": [0.2, 0.05]},
    }  # fmt: skip


def single(case: str, rows: int, warm: float) -> dict[str, Any]:
    times = {f"{name}_seconds": {"median": warm, "p90": 2 * warm, "most": 1.0} for name in ("insert", "delete")}
    more = {f"{name}_seconds": {"median": 1e-4} for name in ("insert_reading", "insert_after_batch")}
    parts = {"codes": 3e7, "dictionaries": 2e7, "orders": 1e7, "zones": 1e7, "clues_and_sets": 1e6, "other": 1e6}
    return record(
        case, rows, [warm], **times, **more, batch_seconds={"reading": 0.5, "inserting": 2.0}, open_seconds=0.25,
        open_process_seconds=1.5, first_insert_seconds=0.02, build_seconds=12.0, build_peak_bytes=9e8,
        opened_peak_bytes=4e8, bytes=parts, parquet_bytes=18e6, pairs_compared={"median": 1234.0},
    )  # fmt: skip


def test_records_become_lines() -> None:
    airport, *_ = BATCHES
    batch = record(airport, 30_000, [0.1], rules_before=31, scratch_seconds=[9.0, 0.52])
    zones, published = (single(f"dc_state/tax-100000-{i}", 100_000, s) for i, s in (("zones", 1e-3), ("published", 1)))
    everything = [batch, single(SMALLER, 250_000, 2e-3), single(LARGER, 1_000_000, 2.5e-3), zones, published]
    table, said = dc_state_tables(everything), dc_state_sentences(everything)
    assert "| Airport | 30,000 | 3,000 | 31, 26 | 0.1 s | 0.05 s | 0.52 s | 5.2 x |" in table
    expected = "| Tax | 1,000,000 | 2.5 ms | 5.0 ms | 2.5 ms | 5.0 ms | 2.5 s | 0.25 s | 12 s | 400 MB, 900 MB |"
    assert expected in table
    assert "costs 1.25 times as much at 1,000,000 rows as at 250,000." in said
    assert "1,000,000 rows: 72 MB (the rows' codes 30.0 MB, dictionaries 20.0 MB," in said
    assert "4.0 times the Parquet file of the same rows (18 MB)" in said
    assert "1,234 pairs compared and 1,000 ms for a row that comes (medians); by zones 1,234 and 1.0 ms." in said
