"""Digests, the peer's language, comparison of records, and the figures of README and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records, report, run
from benchmarks.answers import canonical, digest_bytes, digest_constraints
from benchmarks.cases import CASES
from benchmarks.datasets import Dataset, MissingData
from benchmarks.peer import parse_constraint

FD = [("zip", "==", "zip"), ("city", "!=", "city")]
ORDER = [("salary", "<", "salary"), ("rate", ">", "rate")]
CROSS = [("a", "<", "b")]


def record(**changes: Any) -> dict[str, Any]:
    plain = {
        "run": "one", "time_utc": "2026-01-01T00:00:00+00:00", "case": "dc_discover/x", "implementation": "tuplewise",
        "dataset": {"sha256": "d"}, "answer": {"count": 3, "digest": "a"}, "device": "cpu: some, 2 cores",
        "cold_seconds": 9.0, "warm_seconds": [2.0, 1.0, 4.0],
    }  # fmt: skip
    return plain | changes


def test_digest_forgets_order_and_mirrors() -> None:
    mirrored = [("rate", "<", "rate"), ("salary", ">", "salary")]
    assert digest_constraints([FD, ORDER]) == digest_constraints([mirrored, list(reversed(FD))])
    assert digest_constraints([FD, ORDER])[0] == 2
    assert digest_constraints([ORDER, mirrored])[0] == 1
    assert canonical([("a", "<", "b")]) == canonical([("b", ">", "a")])


def test_digest_tells_answers_apart() -> None:
    assert digest_constraints([FD])[1] != digest_constraints([FD, ORDER])[1]
    assert digest_constraints([CROSS])[1] != digest_constraints([[("b", "<", "a")]])[1]
    assert digest_bytes(b"ab", b"c") != digest_bytes(b"a", b"bc")


def test_peer_text_is_read() -> None:
    text = "¬{ t.my col(String) == s.my col(String) ∧ s.a < t.b }"
    assert parse_constraint(text) == [("my col(String)", "==", "my col(String)"), ("b", ">", "a")]
    with pytest.raises(ValueError, match="not a predicate over two tuples"):
        parse_constraint("¬{ t.a == t.b }")


@pytest.mark.outside
def test_peer_agrees_with_the_known_answer(tmp_path: Path) -> None:
    pytest.importorskip("desbordante", reason="the peer package is not installed")
    from benchmarks.datasets import shared_folder
    from benchmarks.peer import run_fastadc

    expected = shared_folder() / "data" / "expected" / "airport_2000.json"
    if not expected.exists():
        pytest.skip("outside data is not there: set TUPLEWISE_SHARED")
    path = Dataset("airport-2000", "airport_original.csv", 2_000).write(tmp_path)
    known = [[tuple(p) for p in dc] for dc in json.loads(expected.read_text())["dcs"]]
    _, found = run_fastadc(path, rows=2_000, cross_columns=True)
    assert digest_constraints(found) == digest_constraints(known)


def test_comparison_uses_medians() -> None:
    assert records.compare(record(), record(warm_seconds=[0.5, 0.5])) == 4.0
    assert records.compare(record(warm_seconds=[]), record()) == 4.5


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"answer": {"digest": "b"}}, "answer: 'a' and 'b'"),
        ({"device": "cuda:0 other"}, "device: 'cpu: some, 2 cores' and 'cuda:0 other'"),
        ({"dataset": {"sha256": "e"}}, "dataset: 'd' and 'e'"),
        ({"answer": {}}, "answer: 'a' and None"),
    ],
)
def test_unlike_records_are_refused(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=f"not comparable: {fault}"):
        records.compare(record(), record(**change))


def test_records_are_kept_in_order(tmp_path: Path) -> None:
    records.append(record(time_utc="2026-01-02", run="later"), tmp_path)
    records.append(record(), tmp_path)
    records.append(record(case="cli/y", time_utc="2026-01-03"), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cli.jsonl", "dc_discover.jsonl"]
    found = records.latest(records.read(tmp_path), "dc_discover/x")
    assert found is not None
    assert found["run"] == "later"
    assert records.latest(records.read(tmp_path), "dc_discover/z") is None


def test_recorded_runs_say_all_that_is_needed() -> None:
    everything = records.read()
    assert everything, "no benchmark has been recorded"
    wanted = {
        "case", "dataset", "parameters", "cold_seconds", "warm_seconds", "kernel_seconds", "peak_bytes", "device",
        "versions", "commit", "dirty", "answer", "run", "implementation", "time_utc",
    }  # fmt: skip
    for found in everything:
        assert wanted <= set(found), found["case"]
        assert len(found["dataset"]["sha256"]) == 64
        assert len(found["answer"]["digest"]) == 64


def test_command_names_what_it_does_not_know(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run.main(["nosuch"]) == 2
    assert "no case or group named 'nosuch'; known: dc_discover/airport-30000" in caplog.text
    assert run.main(["compare", "evidence/adult", "--results", str(tmp_path)]) == 2
    assert "no record of 'evidence/adult'" in caplog.text
    assert {c.name for c in run.chosen_cases(["evidence", "cli/import"])} > {"evidence/adult", "cli/import"}


def test_slow_peers_run_apart() -> None:
    slow, quick, none = CASES["check/phi7"], CASES["check/phi5"], CASES["check/phi12"]
    wanted = [None, "peer", "only_peer", "slow_peers"]
    ours, theirs = ["tuplewise"], ["duckdb"]
    assert [run.implementations_of(slow, w) for w in wanted] == [ours, ours, theirs, theirs]
    assert [run.implementations_of(quick, w) for w in wanted] == [ours, ours + theirs, theirs, []]
    assert [run.implementations_of(none, w) for w in wanted] == [ours, ours, [], []]


def test_one_command_runs_and_records(tmp_path: Path) -> None:
    assert run.main(["cli/import", "--results", str(tmp_path / "results"), "--data", str(tmp_path / "data")]) == 0
    (found,) = records.read(tmp_path / "results")
    assert (found["case"], found["implementation"], len(found["warm_seconds"])) == ("cli/import", "tuplewise", 9)
    assert (tmp_path / "data" / "tax-1000.csv").exists()


def test_missing_data_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUPLEWISE_SHARED", str(tmp_path))
    with pytest.raises(MissingData, match=r"adult\.csv is not in the folder of outside data"):
        Dataset("adult", "adult.csv").write(tmp_path)


def test_tables_are_cut_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUPLEWISE_SHARED", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "some.csv").write_bytes(b"a,b\n1,\xe9\n2,y\n3,z\n")
    cut = Dataset("some-2", "some.csv", 2)
    assert cut.write(tmp_path).read_bytes() == b"a,b\n1,\xe9\n2,y\n"
    assert (cut.describe(cut.write(tmp_path))["rows"], cut.describe(cut.write(tmp_path))["columns"]) == (2, 2)


def test_readme_page_and_chart_have_the_recorded_figures() -> None:
    for path, text in report.wanted(records.read()).items():
        assert path.read_text(encoding="utf-8") == text, path


def test_figures_need_their_markers() -> None:
    with pytest.raises(ValueError, match="the page has no part between"):
        report.with_figures("nothing here", "x")


def test_check_changes_nothing(tmp_path: Path) -> None:
    readme, page, *_ = paths = [tmp_path / name for name in ("README.md", "page.md", "speed.svg", "growth.svg")]
    for path in paths:
        path.write_text(f"before {report.BEGIN}\nold figure\n{report.END} after")
    assert report.main(["--check"], readme=readme, page=page, images=tmp_path) == 1
    assert all("old figure" in path.read_text() for path in paths)
    assert report.main([], readme=readme, page=page, images=tmp_path) == 0
    assert not any("old figure" in path.read_text() for path in paths)
    assert report.main(["--check"], readme=readme, page=page, images=tmp_path) == 0
    readme.write_text(readme.read_text().replace("DuckDB", "Duck", 1))
    assert report.main(["--check"], readme=readme, page=page, images=tmp_path) == 1
