"""The cases of rule checking at a small scale: ours, DuckDB's and the definition's answers are the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import duckdb_peer
from benchmarks.answers import digest_counts, digest_pairs
from benchmarks.case import Case
from benchmarks.check_cases import CHECK_CASES, KEYS, key_rule
from benchmarks.datasets import MissingData, ParquetTable
from benchmarks.generators import tax
from benchmarks.tpch import lineitem_with_orders

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ROWS = 150
SMALL = [case for case in CHECK_CASES if isinstance(case.dataset, ParquetTable)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def small(case: Case, folder: Path) -> tuple[Case, Path]:
    """The case on a table of few rows, and its file."""
    dataset = case.dataset
    assert isinstance(dataset, ParquetTable)
    make = lineitem_with_orders if dataset.name.startswith("tpch") else dataset.make
    made = replace(case, dataset=ParquetTable(f"{dataset.name}-small", make, ROWS))
    try:
        return made, made.dataset.write(folder)
    except MissingData as missing:
        pytest.skip(str(missing))


def violating_pairs(frame: pd.DataFrame, rule: str) -> list[tuple[int, int]]:
    """By definition: every ordered pair of rows is looked at."""
    rows = frame.to_dict("records")
    predicates = duckdb_peer.read(rule)
    return [
        (t, u)
        for t in range(len(rows))
        for u in range(len(rows))
        if t != u and all(OPERATORS[o](rows[t][left], rows[u][right]) for left, o, right in predicates)
    ]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name.split("/")[1])
def test_answers_are_those_of_the_definition(case: Case, folder: Path) -> None:
    case, path = small(replace(case, parameters=case.parameters | {"memory": False}), folder)
    frame = pd.read_parquet(path)
    found = {rule: violating_pairs(frame, rule) for rule in case.parameters["rules"]}
    measured = case.ours(case, path, 1)
    answer = measured["answer"]
    assert len(measured["warm_seconds"]) == 1
    if case.name.endswith("-listed"):
        ((rule, pairs),) = found.items()
        once = [(t, u) for t, u in pairs if t < u] if duckdb_peer.is_symmetric(rule) else pairs
        columns = pd.DataFrame(once, columns=["t", "u"], dtype="int64")
        assert answer == {"count": len(once), "digest": digest_pairs([(columns.t.to_numpy(), columns.u.to_numpy())])}
    elif case.name.endswith("-exists"):
        assert answer == {"count": 0, "digest": digest_counts([0])}
        assert not any(found.values())
    elif case.name.endswith("-first"):
        assert answer["count"] == case.parameters["pairs"]
        assert measured["figures"]["violating_pairs"] == sum(map(len, found.values()))
    else:
        counts = [len(pairs) for pairs in found.values()]
        assert answer == {"count": sum(counts), "digest": digest_counts(counts)}


@pytest.mark.parametrize("case", [case for case in SMALL if case.peers], ids=lambda case: case.name.split("/")[1])
def test_peers_give_the_same_answer(case: Case, folder: Path) -> None:
    pytest.importorskip("duckdb", reason="the peer package is not installed")
    case, path = small(replace(case, parameters=case.parameters | {"memory": False}), folder)
    ours = case.ours(case, path, 0)
    for peer in case.peers.values():
        theirs = peer.measure(case, path, peer.warm_runs)
        assert theirs["answer"] == ours["answer"]
        assert len(theirs["warm_seconds"]) == peer.warm_runs


def test_settings_are_both_tried_where_a_rule_orders(folder: Path) -> None:
    pytest.importorskip("duckdb", reason="the peer package is not installed")
    by_name = {case.name: case for case in CHECK_CASES}
    for name, settings in (("check/phi7", 2), ("check/phi5", 1)):
        case, path = small(by_name[name], folder)
        measured = duckdb_peer.peer_counts(case, path, 0)
        figures = measured["figures"]
        assert len(figures["first_run_seconds"]) == settings
        assert figures["first_run_seconds"][figures["setting"]] == measured["cold_seconds"] > 0


def test_a_slow_query_is_stopped(folder: Path) -> None:
    pytest.importorskip("duckdb", reason="the peer package is not installed")
    case, path = small({c.name: c for c in CHECK_CASES}["check/phi7"], folder)
    connection = duckdb_peer.connect(path, ["salary"])
    endless = "SELECT count(*) FROM r a, r b, r c, r d, r e WHERE a.salary + b.salary < c.salary - d.salary + e.salary"
    taken, answer = duckdb_peer._within(connection, lambda: connection.execute(endless).fetchone(), 0.1)
    assert (taken, answer) == ("stopped: slower than the other", None)
    assert connection.execute("SELECT count(*) FROM r").fetchone() == (ROWS,)
    assert case.dataset.describe(path)["rows"] == ROWS


def test_memory_is_measured_beside_the_encoded_columns(folder: Path) -> None:
    case, path = small({c.name: c for c in CHECK_CASES}["check/phi12"], folder)
    figures = case.ours(case, path, 0)["figures"]
    assert figures["encoded_columns_bytes"] == 2 * 4 * ROWS
    assert figures["extra_peak_bytes"] >= 0


def test_rules_that_the_peer_cannot_read_are_refused() -> None:
    for text in ("zip -> city", "not(t.a == 5)", "not(t.a < t.b)", "not()"):
        with pytest.raises(ValueError, match="not a rule over two tuples that is read here"):
            duckdb_peer.read(text)


def test_pairs_of_a_row_with_itself_are_left_out_once() -> None:
    assert "rowid" not in duckdb_peer.pairs_sql("not(t.a == u.a and t.b < u.b)")
    assert duckdb_peer.pairs_sql("not(t.a == u.b)").endswith("t.rowid <> u.rowid")
    assert duckdb_peer.pairs_sql("not(t.a == u.a)", each_once=True).endswith("t.rowid < u.rowid")
    assert duckdb_peer.pairs_sql("not(t.a <= u.a)", each_once=True).endswith("t.rowid <> u.rowid")


def test_twenty_rules_are_minimal_keys_of_a_sample() -> None:
    frame = tax(10_000, seed=2).to_pandas()
    assert len(set(KEYS)) == 20
    for listed in KEYS:
        columns = listed.split(", ")
        assert 3 <= len(columns) <= 5
        assert not frame.duplicated(columns).any(), columns
        for left_out in columns:
            assert frame.duplicated([c for c in columns if c != left_out]).any(), (columns, left_out)
    assert key_rule(KEYS[0]) == "not(t.lname == u.lname and t.area_code == u.area_code and t.salary == u.salary)"
