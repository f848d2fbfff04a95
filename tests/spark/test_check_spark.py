"""Checking rules in Spark's tasks gives the figures of the definition, however the pairs are cut into tiles."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dc.check_tables import CLASSES, Rules, as_rule, random_table, rows_of
from dc.dc_tables import encode
from numpy.typing import NDArray
from oracles.check import Violations, violations

from tuplewise.engine.dc.violations.detect import RuleCheck
from tuplewise.engine.dc.violations.distributed import check_on_spark
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.relation.relation import Relation
from tuplewise.engine.relation.spark_frame import EncodedFrame
from tuplewise.engine.relation.spark_rows import Rows
from tuplewise.engine.spark import run
from tuplewise.engine.spark.tiles import Sizes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


class Held(EncodedFrame):
    """A relation of the driver's as a frame, so that tests need not load it."""

    relation: Relation

    @classmethod
    def of(cls, spark: Any, relation: Relation, positions: NDArray[np.int64]) -> Held:
        columns = {f"c{i}": pa.array(row) for i, row in enumerate(relation.codes)}
        frame = spark.createDataFrame(pa.table({"position": positions, **columns})).repartition(3).persist()
        header = replace(relation, codes=np.zeros((len(relation.columns), 0), dtype=np.int32))
        made = cls(frame, header, relation.rows, [], frame, Rows(*np.zeros((3, 0), dtype=np.int64)), [frame])
        made.relation = replace(relation, positions=positions)
        return made

    def excerpt(self, positions: NDArray[np.int64]) -> Relation:
        assert self.relation.positions is not None
        index = np.searchsorted(self.relation.positions, positions)
        assert (self.relation.positions[index] == positions).all()
        return replace(self.relation, codes=self.relation.codes[:, index].copy(), positions=positions)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(_: Any, rows: int, columns: int) -> Sizes:
        return Sizes(rows, slots=2, tile_rows=9, least_rows=4, most_partitions=2)

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


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    ("seed", "nulls", "step"),
    [
        (0, "unknown", 4),  # every fourth class: each takes several Spark jobs
        (1, "value", 4),
        pytest.param(2, "unknown", 1, marks=pytest.mark.slow),
        pytest.param(3, "value", 1, marks=pytest.mark.slow),
    ],
)
def test_every_class_of_rule(spark: Any, seed: int, nulls: str, step: int) -> None:
    rng = random.Random(seed)
    table = random_table(rng, 40)
    relation, rows = encode(table), rows_of(table)
    positions = np.sort(np.random.default_rng(seed).choice(10**11, 40, replace=False))
    held = Held.of(spark, relation, positions)
    rules = list(Rules(rng, table).each())[seed::step] if step > 1 else list(Rules(rng, table).each())
    options = DcCheckOptions(device="cpu", nulls=nulls, pairs=12)  # type: ignore[arg-type]
    found = check_on_spark(held, [as_rule(table, rule) for _, rule in rules], options)
    assert found.relation.table_rows == 40
    for (kind, rule), check in zip(rules, found.rules, strict=True):
        truth = violations(rows, rule, nulls)
        try:
            assert_as_defined(found.relation, check, truth, 12, positions)
        except AssertionError as failure:
            raise AssertionError(f"{kind} {rule} nulls={nulls}\n{table}\n{truth}") from failure
    assert len(rules) >= len(CLASSES) // step
    held.close()
