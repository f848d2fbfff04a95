"""Rule checking by each algorithm, and on tables around the sizes of blocks, leaves and chunks, against the definition
over arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dc.check_tables import Rules, as_rule
from dc.dc_tables import Table, encode
from numpy.typing import NDArray
from oracles.check import Condition, roles_of, violation_matrix

import tuplewise as tw
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations import count, planner
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.dc.violations.found import RuleCheck
from tuplewise.engine.dc.violations.listing import iterate_pairs
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.table.relation import Relation

Force = Callable[[pytest.MonkeyPatch], None]


def by_bitmaps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "MOST_EXCLUDED", -1)  # so that each join of two comparisons and more is one of bitmaps


def by_range_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "BLOCK_SECONDS", float("inf"))
    patch.setattr(count, "WORTH_SAMPLING_SECONDS", float("inf"))


def by_kd_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "BLOCK_SECONDS", float("inf"))
    patch.setattr(count, "WORTH_SAMPLING_SECONDS", -1.0)
    patch.setattr(count, "NODE_SECONDS", 0.0)


def assert_as_the_matrix(relation: Relation, rule: DenialConstraint, matrix: NDArray[Any], nulls: str) -> RuleCheck:
    """Count, rows, ranks, list, stream and witnesses of one rule."""
    total = int(matrix.sum())
    options = DcCheckOptions(device="cpu", nulls=nulls, pairs=50)  # type: ignore[arg-type]
    (check,) = check_rules(relation, [rule], options).rules
    assert (check.violating_pairs, check.holds) == (total, total == 0)
    listed = np.argwhere(np.triu(matrix) if check.symmetric else matrix)
    assert check.pairs_in_list == len(listed)
    assert check.row_counts is not None
    per_row = matrix.sum(axis=1) if check.symmetric else matrix.sum(axis=1) + matrix.sum(axis=0)
    assert np.array_equal(check.row_counts, per_row)
    assert check.violating_rows == np.count_nonzero(per_row)
    assert np.array_equal(check.pairs, listed[:50])
    chunks = list(iterate_pairs(relation, rule, nulls=nulls, device="cpu", chunk_pairs=1 << 16))
    assert np.array_equal(np.concatenate([np.empty((0, 2), dtype=np.int64), *chunks]), listed)
    (found,) = find_witnesses(relation, [rule], nulls=nulls, limit=3, device="cpu")
    assert len(found) <= 3
    assert bool(len(found)) == bool(total)
    assert matrix[found[:, 0], found[:, 1]].all()
    return check


@pytest.mark.parametrize(
    ("force", "algorithm"), [(by_bitmaps, "bhsm"), (by_range_trees, "rangetree"), (by_kd_trees, "kdtree")]
)
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_each_algorithm_finds_the_same(
    force: Force, algorithm: str, nulls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(monkeypatch)
    rng = random.Random(5)
    taken = 0
    for rows in (3, 17, 64, 65, 130):
        table: Table = []
        for name in "abcdef":
            values = [None, *rng.sample(range(60), rng.choice([2, 4, 30]))][rng.randint(0, 1) :]
            table.append((name, "integer", [rng.choice(values) for _ in range(rows)]))
        relation = encode(table)
        for kind, rule in Rules(rng, table).each():
            if len(roles_of(rule)) == 2:
                matrix = violation_matrix([values for _, _, values in table], rule, nulls)
                constraint = as_rule(table, rule)
                try:
                    check = assert_as_the_matrix(relation, constraint, matrix, nulls)
                except AssertionError as failure:
                    raise AssertionError(f"{kind} {constraint} nulls={nulls} {table}") from failure
                taken += any(step["algorithm"] == algorithm for step in check.plan)
    assert taken > 9


SAME: dict[str, list[Condition]] = {
    "slices": [("t", 0, "==", "u", 0), ("t", 2, "<=", "u", 2)],
    "slices across": [("t", 2, ">", "u", 3), ("t", 1, "==", "u", 0)],
    "one wavelet": [("t", 2, "<", "u", 2), ("t", 3, ">=", "u", 3)],
    "wavelets in groups": [("t", 0, "==", "u", 0), ("t", 2, "<=", "u", 3), ("u", 3, "<", "t", 3)],
    "three levels": [("t", 1, "<", "u", 1), ("t", 2, ">", "u", 2), ("t", 3, "<=", "u", 3)],
    "four and a difference": [
        ("t", 0, "<=", "u", 0), ("t", 1, ">=", "u", 1), ("t", 2, "<", "u", 2), ("t", 3, "<", "u", 3),
        ("t", 4, "!=", "u", 4),
    ],
    "differences": [("t", 0, "!=", "u", 0), ("t", 1, "!=", "u", 0), ("t", 4, "!=", "u", 4)],
    "differences beside others": [
        ("t", 4, "==", "u", 4), ("t", 2, "<", "u", 2), ("t", 0, "!=", "u", 0), ("t", 1, "!=", "u", 1),
    ],
    "filters": [("t", 4, "is not", None, None), ("u", 2, ">", None, 90), ("t", 3, "<", "u", 3), ("t", 0, "<", "t", 1)],
}  # fmt: skip


@pytest.mark.parametrize("rows", [2048, 2049, 4100])
def test_sizes_around_blocks_and_tasks(rows: int) -> None:
    rng = np.random.default_rng(rows)
    base = rng.integers(0, 1000, rows)
    values = [
        rng.integers(0, 12, rows), rng.integers(0, 30, rows), base, base // 3 + rng.integers(0, 30, rows),
        rng.integers(0, 5, rows),
    ]  # fmt: skip
    null = [rng.random(rows) < (0.1 if c in (1, 4) else 0) for c in range(5)]
    relation = tw.load(pa.table({f"c{c}": pa.array(v, mask=null[c]) for c, v in enumerate(values)}))
    columns = [[None if m else int(x) for x, m in zip(v, null[c], strict=True)] for c, v in enumerate(values)]
    table: Table = [(f"c{c}", "integer", []) for c in range(5)]
    for name, rule in SAME.items():
        for nulls in ("unknown", "value") if rows == 2049 else ("unknown",):
            matrix = violation_matrix(columns, rule, nulls)
            (check,) = check_rules(
                relation, [as_rule(table, rule)], DcCheckOptions(device="cpu", nulls=nulls, pairs=5_000)
            ).rules
            assert check.violating_pairs == matrix.sum() > 0, name
            assert check.row_counts is not None
            sums = matrix.sum(axis=1) + (0 if check.symmetric else matrix.sum(axis=0))
            assert np.array_equal(check.row_counts, sums), name
            first = np.argwhere(np.triu(matrix) if check.symmetric else matrix)[:5_000]
            assert np.array_equal(check.pairs, first), name


@pytest.mark.parametrize("force", [by_bitmaps, by_range_trees, by_kd_trees])
def test_each_algorithm_on_more_rows_than_a_block(force: Force, monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch)
    rng = np.random.default_rng(17)
    rows = 2_500
    values = [rng.integers(0, size, rows) for size in (3, 40, 700, 5_000, 9)]
    relation = tw.load(pa.table({f"c{c}": v for c, v in enumerate(values)}))
    table: Table = [(f"c{c}", "integer", []) for c in range(5)]
    columns = [[int(x) for x in v] for v in values]
    rules: list[list[Condition]] = [
        [("t", 1, "<", "u", 1), ("t", 2, ">=", "u", 2), ("t", 3, "<=", "u", 3)],
        [("t", 0, "==", "u", 0), ("t", 1, "<=", "u", 4), ("t", 2, "<", "u", 2), ("u", 3, "<", "t", 3)],
        [("t", 1, ">", "u", 1), ("t", 2, "<", "u", 2), ("t", 3, "<", "u", 3), ("t", 4, "!=", "u", 4)],
    ]
    for rule in rules:
        assert_as_the_matrix(relation, as_rule(table, rule), violation_matrix(columns, rule, "unknown"), "unknown")
