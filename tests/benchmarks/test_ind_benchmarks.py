"""The cases of inclusion dependencies at a small scale, their peers, and what docs/benchmarks.md says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.answers import digest_inclusions
from benchmarks.cases import CASES
from benchmarks.ind_cases import IND_CASES, TpchFiles
from benchmarks.ind_peers import GROUP_BY, SPIDER, parse_inclusion, table_paths
from benchmarks.report_ind import INCLUSIONS, inclusion_sentences, inclusion_table


def test_peer_text_is_read() -> None:
    assert parse_inclusion("(a b.csv, [x]) -> (c.csv, [y z])") == ("a b.x", "c.y z")
    with pytest.raises(ValueError, match="not an inclusion dependency"):
        parse_inclusion("[a.csv][x]")


def test_every_case_is_shown() -> None:
    assert set(INCLUSIONS) == {case.name for case in IND_CASES} <= set(CASES)
    assert inclusion_table([]) == inclusion_sentences([]) == ""


@pytest.mark.outside
def test_peers_give_the_same_answer(tmp_path: Path) -> None:
    from benchmarks.outside import MissingData

    case = replace(IND_CASES[0], dataset=TpchFiles("tiny", "0.01"))
    try:
        path = case.dataset.write(tmp_path)
    except MissingData as missing:
        pytest.skip(str(missing))
    described = case.dataset.describe(path)
    assert described["columns"] == 61
    assert described["rows"] == sum(len(f.read_bytes().splitlines()) - 1 for f in table_paths(path).values())
    ours = case.ours(case, path, 1)
    assert ours["answer"]["count"] > 50
    assert ours["figures"]["clusters"] > 0
    for name, package in ((SPIDER, "desbordante"), (GROUP_BY, "duckdb")):
        pytest.importorskip(package, reason="the peer package is not installed")
        assert case.peers[name].measure(case, path, 0)["answer"] == ours["answer"]


def test_a_record_becomes_a_line() -> None:
    ours = {
        "case": "ind/tpch-0.1", "implementation": "tuplewise", "run": "1", "device": "cpu", "time_utc": "1",
        "dataset": {"sha256": "x", "rows": 867_000, "columns": 61}, "cold_seconds": 2.0, "warm_seconds": [1.0],
        "kernel_seconds": {"reading": [1.5, 0.8]}, "peak_bytes": 3e8, "figures": {"values": 1_000, "clusters": 10},
        "answer": {"count": 96, "digest": digest_inclusions([])[1]},
    }  # fmt: skip
    theirs = ours | {"implementation": SPIDER, "cold_seconds": 4.0, "warm_seconds": []}
    table = inclusion_table([ours, theirs])
    assert "| TPC-H, scale 0.1 | 867,000 x 61 | 96 | 1.0 s | 300 MB | 4.0 s | 4.0 x | 300 MB | not run |  |  |" in table
    assert "1,000 distinct values in 10 clusters" in inclusion_sentences([ours])
