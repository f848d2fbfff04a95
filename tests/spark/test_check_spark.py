"""Checking rules in Spark's tasks gives the figures of the definition, however the pairs are cut into tiles."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dc.check_tables import CLASSES, Rules, as_rule, random_table, rows_of
from dc.dc_tables import encode
from held import Held
from oracles.check import Violations, violations

import tuplewise as tw
from tuplewise.engine.cli import main as cli
from tuplewise.engine.dc.violations.distributed import check_on_spark, find_witnesses_on_spark
from tuplewise.engine.dc.violations.found import RuleCheck
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.run import Run
from tuplewise.engine.spark import jobs, run
from tuplewise.engine.spark.tiles import TileSizes, spark_hash
from tuplewise.engine.table.relation import Relation

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(_: Any, rows: int, columns: int) -> TileSizes:
        return TileSizes(rows, slots=2, tile_rows=9, least_rows=4, most_partitions=2)

    monkeypatch.setattr(run, "cluster_sizes", sizes)


def assert_as_defined(relation: Relation, check: RuleCheck, truth: Violations, limit: int, positions: Any) -> None:
    assert check.violating_pairs == len(truth.pairs)
    assert check.holds == (not truth.pairs)
    assert check.symmetric == truth.symmetric
    assert check.violating_rows == sum(c > 0 for c in truth.counts)
    assert check.rows_unknown == truth.rows_unknown
    at = {p: i for i, p in enumerate(positions.tolist())}
    assert relation.positions is not None
    listed = [[-1 if i < 0 else at[relation.position_of(i)] for i in pair] for pair in check.pairs.tolist()]
    assert listed == [list(p) for p in truth.listed[:limit]]
    assert check.pairs_in_list == len(truth.listed)
    assert check.row_counts is not None
    known = {at[relation.position_of(i)]: n for i, n in enumerate(check.row_counts.tolist()) if n}
    assert known == {row: n for row, n in enumerate(truth.counts) if n}


def assert_each_as_defined(spark: Any, seed: int, nulls: str, kinds: Sequence[str]) -> None:
    rng = random.Random(seed)
    table = random_table(rng, 40)
    relation, rows = encode(table), rows_of(table)
    positions = np.sort(np.random.default_rng(seed).choice(10**11, 40, replace=False))
    held = Held.of(spark, relation, positions)
    rules = [(kind, rule) for kind, rule in Rules(rng, table).each() if kind in kinds]
    options = DcCheckOptions(device="cpu", nulls=nulls, pairs=12)  # type: ignore[arg-type]
    found = check_on_spark(held, [as_rule(table, rule) for _, rule in rules], options)
    assert found.relation.table_rows == 40
    for (kind, rule), check in zip(rules, found.rules, strict=True):
        truth = violations(rows, rule, nulls)
        try:
            assert_as_defined(found.relation, check, truth, 12, positions)
        except AssertionError as failure:
            raise AssertionError(f"{kind} {rule} nulls={nulls}\n{table}\n{truth}") from failure
    assert len(rules) == len(kinds)
    held.close()


SOME = ("fd", "two inequalities", "own mirror", "null tests")
OTHERS = ("constant", "mixed orientation", "across columns", "only filters")


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("seed", "nulls", "kinds"), [(0, "unknown", SOME), (1, "value", OTHERS)])
def test_figures_are_those_of_the_definition(spark: Any, seed: int, nulls: str, kinds: Sequence[str]) -> None:
    assert_each_as_defined(spark, seed, nulls, kinds)


@pytest.mark.slow
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", [10, 11])
def test_figures_of_every_class_are_those_of_the_definition(spark: Any, seed: int, nulls: str) -> None:
    assert_each_as_defined(spark, seed, nulls, CLASSES)


@pytest.mark.usefixtures("small_tiles")
def test_counts_alone_witnesses_and_a_limit(spark: Any) -> None:
    table = [("a", "integer", [i % 5 for i in range(40)]), ("b", "integer", [(7 * i) % 11 for i in range(40)])]
    held = Held.of(spark, encode(table), np.arange(40))  # type: ignore[arg-type]
    given = [
        [("t", 0, "==", "u", 0), ("t", 1, "<", "u", 1)],
        [("t", 0, "==", "u", 0), ("t", 1, "==", "u", 1)],
    ]
    rules = [as_rule(table, rule) for rule in given]  # type: ignore[arg-type]
    truths = [violations(rows_of(table), rule, "unknown") for rule in given]  # type: ignore[arg-type]
    counted = check_on_spark(held, rules, DcCheckOptions(device="cpu", count_only=True)).rules
    assert [c.violating_pairs for c in counted] == [len(t.pairs) for t in truths]
    assert all(c.violating_rows is None and c.row_counts is None and not len(c.pairs) for c in counted)
    witnesses = find_witnesses_on_spark(held, rules, limit=2, device="cpu")
    for found, truth in zip(witnesses, truths, strict=True):
        assert {tuple(p) for p in found.tolist()} <= truth.pairs
        assert bool(len(found)) == bool(truth.pairs)
        assert len(found) <= 2
    for seconds in (0.0, 0.3):
        began = time.monotonic()
        late = check_on_spark(held, rules * 3, DcCheckOptions(device="cpu"), Run(deadline=began + seconds))
        assert late.partial
        assert [c.holds for c in late.rules][1:] == [None] * 5
        assert late.notes == ("the time limit was reached before every rule was checked",)
        assert time.monotonic() - began < 20
    held.close()


def test_a_hash_of_ours_is_that_of_spark(spark: Any) -> None:
    numbers = np.array([0, 1, -1, 12345, -(2**31), 2**31 - 1], dtype=np.int32)
    found = spark.createDataFrame(pa.table({"n": numbers})).selectExpr("n", "hash(n) as h").toArrow()
    assert spark_hash(found["n"].to_numpy()).tolist() == found["h"].to_pylist()


PLACES = "id,zip,city,pay\n" + "".join(f"{i},{i % 7},{'AB'[i % 3 // 2]},{(i * 37) % 19}\n" for i in range(60))
RULES = "zip -> city; not(t.pay > u.pay and t.id < u.id and t.city == 'A'); not(t.pay == 3)"


@pytest.fixture
def places(tmp_path: Path) -> Path:
    path = tmp_path / "places.csv"
    path.write_text(PLACES)
    return path


def test_a_file_checked_in_spark_is_as_checked_here(places: Path, tmp_path: Path) -> None:
    here = tw.check(str(places), RULES, key="id", device="cpu", run_on="driver", pairs=9)
    there = tw.check(str(places), RULES, key="id", device="cpu", run_on="spark", pairs=9)
    for a, b in zip(here.to_dict()["result"]["rules"], there.to_dict()["result"]["rules"], strict=True):
        for other in ("seconds", "plan"):
            a.pop(other), b.pop(other)
        assert a == b
    assert there.to_dict()["tables"][0]["rows"] == 60
    assert there.rules[0].pairs(9).equals(here.rules[0].pairs(9))
    assert there.rows(3).equals(here.rows(3)) or len(there.rules) > 1
    with pytest.raises(InputError, match=r"pairs listed here of a check in Spark: 9.*write_pairs"):
        there.pairs()
    with pytest.raises(InputError, match="a folder of Parquet files"):
        there.write_pairs(str(tmp_path / "pairs.csv"))
    folder = tmp_path / "all.parquet"
    written = there.write_pairs(str(folder))
    here.write_pairs(str(tmp_path / "here.parquet"))
    listed, known = pq.read_table(folder), pq.read_table(tmp_path / "here.parquet")
    assert listed.column_names == known.column_names
    assert written == len(known) == len(listed)
    order = [("rule_id", "ascending"), ("t", "ascending"), ("u", "ascending")]
    assert listed.sort_by(order).to_pylist() == known.sort_by(order).to_pylist()
    with pytest.raises(InputError, match="this folder is there already"):
        there.write_pairs(str(folder))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["all.parquet", "here.parquet", "places.csv"]


def test_the_command_goes_to_spark_where_memory_is_short(
    places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    argv = ["dc", "check", str(places), "--rule", "zip -> city", "--device", "cpu", "--memory-limit", "100"]
    assert cli.run([*argv, "--pairs-out", str(tmp_path / "all.parquet")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["device_reason"].startswith("kernels run in the tasks of Spark")
    assert any("written to" in note for note in document["notes"])
    rule = document["result"]["rules"][0]
    assert len(pq.read_table(tmp_path / "all.parquet")) * 2 == rule["violating_pairs"] > 0
    assert cli.run(["dc", "check", str(places), "--rule", "zip -> nowhere", "--run-on", "spark"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert cli.run([*argv[:5], "--run-on", "spark", "--key", "ID"]) == 2
    assert "no column of the name" in capsys.readouterr().err
    assert cli.run([*argv[:5], "--run-on", "spark", "--split", str(tmp_path / "s")]) == 2
    assert "--split" in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["", "1,x\n"])
def test_tables_without_pairs(tmp_path: Path, rows: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + rows)
    found = tw.check(str(tmp_path / "t.csv"), "a -> b; not(t.a < u.a); not(t.b == 'x')", device="cpu", run_on="spark")
    assert [rule.violating_pairs for rule in found.rules] == [0, 0, len(rows) // 4]


def test_a_module_that_workers_lack_is_named(spark: Any) -> None:
    def without(batches: Any) -> Any:
        import no_such_module_anywhere

        return no_such_module_anywhere.run(batches)

    with pytest.raises(InputError, match=r"workers lack a module: 'no_such_module_anywhere'.*spark\.pyspark\.python"):  # noqa: SIM117
        with jobs.until(spark, None):
            spark.range(1).mapInArrow(without, "id bigint").toArrow()


def test_what_spark_does_not_read_is_refused() -> None:
    with pytest.raises(InputError, match=r"run_on 'spark' for a table that is held here.*a path"):
        tw.check(pd.DataFrame({"a": [1, 2]}), "not(t.a == u.a)", run_on="spark")
