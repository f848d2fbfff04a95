"""Profiles of tables that stay in Spark: what is found of them in this process, to the last digit."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from held import Held
from hypothesis import given, settings
from hypothesis import strategies as st

import tuplewise as tw
from benchmarks.generators import tax
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile import keys, search, spark_table
from tuplewise.engine.profile.spark_table import TableInTasks, heaviest_chain
from tuplewise.engine.profile.table import TableHere
from tuplewise.engine.run import Run
from tuplewise.gpu_kernels.device import pick_device

pytestmark = pytest.mark.spark
ROWS = 3000


def dirty_tax() -> pa.Table:
    """Columns of Tax with wrong cells and nulls, and columns of other kinds, with rules that few rows break."""
    rng = np.random.default_rng(11)
    table = tax(ROWS, seed=5, error_share=0.01).select(["state", "zip", "city", "phone", "salary", "rate"])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    no = np.arange(ROWS)
    start = rng.integers(0, 4000, ROWS)
    end = start + rng.integers(0, 300, ROWS)
    end[[5, 77]] = start[[5, 77]] - 3
    columns["no"] = (no + 10_000).tolist()
    columns["since"] = start.astype("datetime64[D]").tolist()
    columns["until"] = end.astype("datetime64[D]").tolist()
    columns["seen"] = (no * 61_000_000 + rng.integers(0, 50_000_000, ROWS)).astype("datetime64[us]").tolist()
    columns["reading"] = np.where(no % 500 == 0, np.inf, rng.normal(size=ROWS)).tolist()
    columns["country"] = np.where(no == 9, "CA", "US").tolist()
    columns["code"] = [str(n % 700) if n % 90 else "n/a" for n in no]
    columns["fee"] = [None if n % 50 == 7 else 3 * n + 10 for n in no.tolist()]
    for name in ("city", "rate", "until", "code"):
        columns[name] = [v if kept else None for v, kept in zip(columns[name], rng.random(ROWS) > 0.03, strict=True)]
    return pa.table({**columns, "empty": pa.nulls(ROWS, pa.string())})


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "people.parquet"
    pq.write_table(dirty_tax(), path, row_group_size=1000)
    return path


def without_examples(found: tw.ProfileResult) -> dict[str, Any]:
    """What has to be alike, wherever it was found; examples are compared apart, since each is a few jobs."""
    document = found.to_dict(limit=1)
    tables = [{key: value for key, value in t.items() if not key.startswith("reader")} for t in document["tables"]]
    rest = {key: value for key, value in document["result"].items() if key != "rules"}
    return {**rest, "rules": found.rules, "tables": tables, "partial": document["partial"]}


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
def test_spark_finds_what_this_process_finds(people: Path) -> None:
    here = tw.profile(people, limit=40, run_on="driver")
    there = tw.profile(people, limit=40, run_on="spark")
    assert without_examples(there) == without_examples(here)
    assert any("in every row" in warning["text"] for warning in here.warnings)
    assert there.to_dict(limit=1)["spark"] is not None
    assert any("counted in Spark" in note and "3,000 rows" in note for note in there.notes)
    broken = {rule.kind: (rule, other) for rule, other in zip(here.rules, there.rules, strict=True) if rule.exceptions}
    assert set(broken) == {"key", "fd", "od", "row", "constant"}
    for rule, other in broken.values():
        assert there._examples(other) == here._examples(rule)
    rule, other = broken["fd"]
    assert other.broken_by().equals(rule.broken_by())


@pytest.mark.usefixtures("spark")
def test_a_sample_and_nulls_as_values(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are searched, and few values of a column looked at: those that this process draws."""
    monkeypatch.setattr(search, "SEARCHED_ROWS", 1200)
    monkeypatch.setattr(keys, "MOST_LOOKED_AT", 100)
    some = people.with_name("some.parquet")
    names = ["state", "zip", "city", "no", "since", "fee", "seen"]
    pq.write_table(pq.read_table(people, columns=names), some, row_group_size=700)
    here = tw.profile(some, nulls="value", seed=3, run_on="driver")
    there = tw.profile(some, nulls="value", seed=3, run_on="spark")
    assert there.rules == here.rules
    assert {"key", "fd", "od"} <= {rule.kind for rule in here.rules}
    assert any("1,200 of them" in note for note in there.notes)


def test_of_several_tables(spark: Any, tmp_path: Path) -> None:
    people = pa.table({"id": np.arange(300) + 7, "name": [f"n{i % 40}" for i in range(300)]})
    orders = pa.table({"person_id": np.arange(900) * 7 % 300 + 7, "no": np.arange(900)})
    paths = {name: tmp_path / f"{name}.parquet" for name in ("people", "orders")}
    for table, path in zip((people, orders), paths.values(), strict=True):
        pq.write_table(table, path)
    here, there = (tw.profile(paths, run_on=where) for where in ("driver", "spark"))
    assert there.rules == here.rules
    assert "ind" in {rule.kind for rule in here.rules}
    frames = {"people": people, "orders": spark.read.parquet(str(paths["orders"]))}
    with pytest.raises(InputError, match="run_on 'spark' for a table that is held here"):
        tw.profile(frames, run_on="spark")
    mixed = tw.profile(frames, memory_limit=1)
    assert "references were not looked for: some rows are in Spark, which can't read people" in mixed.notes
    assert [rule for rule in mixed.rules if rule.kind != "ind"] == [rule for rule in here.rules if rule.kind != "ind"]


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(spark: Any, rows: int) -> None:
    table = pa.table({"a": pa.array(range(rows), pa.int64()), "b": pa.array(["x"] * rows, pa.string())})
    here = tw.profile(table)
    there = tw.profile(spark.createDataFrame(table), run_on="spark")
    without = {"why": None}  # their sources store them under other names
    assert [column | without for column in there.columns] == [column | without for column in here.columns]
    assert (there.rules, there.warnings) == (here.rules, here.warnings)


@pytest.mark.usefixtures("spark")
def test_a_time_limit_that_has_passed(people: Path) -> None:
    found = tw.profile(people, run_on="spark", time_limit=0.01)
    assert found.partial
    assert found.rules == []
    assert "time limit reached before all candidates were counted: there may be more rules" in found.notes


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_counts_of_a_table_with_nulls_and_gaps(spark: Any, nulls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is asked of a table, also of sets of columns that a search would not ask about."""
    rng = np.random.default_rng(4)
    table = {f"c{i}": [None if v < 0 else int(v) for v in rng.integers(-1, kinds, 250)] for i, kinds in enumerate(
        (1, 2, 4, 9, 9, 300))}  # fmt: skip
    relation = tw.load(pa.table({**table, "c6": [v if v is None else v + (v > 250) for v in table["c5"]]}))
    options = ProfileOptions(nulls=nulls, device="cpu")
    here = TableHere(relation, options, pick_device("cpu"), Run())
    there = TableInTasks(Held.of(spark, relation, np.arange(250)), options, Run())
    for name in ("filled", "distinct", "differing", "largest"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    assert np.array_equal(here.glance(99, 1), there.glance(99, 1))
    sides = [(), (0,), (1,), (2, 3), (3, 4, 5)]
    wanted = {side: [c for c in range(7) if c not in side] for side in sides}
    assert there.count_fds(wanted) == here.count_fds(wanted)
    assert there.count_keys(sides[1:]) == here.count_keys(sides[1:])
    pairs = [(0, 1), (2, 5), (3, 4), (4, 3), (5, 6)]
    assert there.compare_columns(pairs) == here.compare_columns(pairs)
    orders = [
        (context, a, b, way) for context in ((), (1,), (2,)) for a, b in ((3, 4), (5, 6)) for way in (True, False)
    ]
    against = there.contradictions(orders)
    assert against == here.contradictions(orders)
    assert there.count_orders(orders, against) == here.count_orders(orders, against)
    assert there.rows_to_remove(orders) == here.rows_to_remove(orders)
    assert [there.repeated(columns) for columns in ([0, 1], range(7))] == [
        here.repeated([0, 1]),
        here.repeated(range(7)),
    ]
    for most in (40, 400):
        assert np.array_equal(there.some_values(5, most, 2).codes, here.some_values(5, most, 2).codes)
    assert [codes.tolist() for codes in there.value_pairs(2, 5)] == [codes.tolist() for codes in here.value_pairs(2, 5)]
    monkeypatch.setattr(spark_table, "MOST_PAIRS_HERE", 5)
    assert there.rows_to_remove(orders[2:3]) >= here.rows_to_remove(orders[2:3])
    assert "c5, c6: more than 5 different pairs of values" in there.notes[-1]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), max_size=9))
def test_heaviest_chain(pairs: list[tuple[int, int, int]]) -> None:
    best = 0
    for size in range(len(pairs) + 1):
        for some in itertools.combinations(pairs, size):
            if all((a - c) * (b - d) >= 0 for (a, b, _), (c, d, _) in itertools.combinations(some, 2)):
                best = max(best, sum(weight for _, _, weight in some))
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    assert heaviest_chain(*columns) == best
