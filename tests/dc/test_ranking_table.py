"""Figures that need no evidence: outcomes of all pairs from counts of values, and rankings made from them."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from dc_tables import Table, encode, groups, random_table
from oracles import dc as oracle

from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.evidence import EvidenceSet, collect_evidence
from tuplewise.engine.dc.outcome_counts import table_outcome_counts, undecided_pairs
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.dc.ranking import rank_counted
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.words import ACROSS
from tuplewise.gpu_kernels.words import outcomes as outcomes_in

TYPES = ["integer", "integer", "text", "double", "double", "boolean", "text"]
LESS, EQUAL, GREATER, UNKNOWN = range(4)


def some_table(seed: int) -> tuple[Table, Relation, PredicateSpace]:
    """Columns compared in all ways: with themselves, across, within a row; ordered or not; nulls under both rules."""
    rng = random.Random(seed)
    types = rng.sample(TYPES, rng.randint(1, len(TYPES)))
    table = random_table(
        seed, rows=rng.randint(0, 40), types=types, values=6, null_share=rng.choice([0, 0.1, 0.5, 1])
    )
    options = DcDiscoverOptions(
        device="cpu",
        algorithm="evidence",
        cross_columns=rng.random() < 0.8,
        single_tuple=rng.random() < 0.7,
        order_text=rng.random() < 0.5,
        shared_values=Decimal(0),
        comparable_means=rng.choice([Decimal(0), Decimal("0.1")]),
        nulls=rng.choice(["unknown", "value"]),
    )
    relation = encode(table)
    return table, relation, build_space(relation, options)


def evidence_of(relation: Relation, space: PredicateSpace) -> EvidenceSet:
    return collect_evidence(relation, space, device="cpu")


def test_outcomes_and_undecided_pairs_equal_those_of_the_evidence() -> None:
    compared = 0
    for seed in range(400):
        _, relation, space = some_table(seed)
        counts = table_outcome_counts(relation, space)
        expected = evidence_of(relation, space).outcome_counts
        if relation.rows < 2:  # the evidence of a row is the row itself; across tuples there is no pair
            expected[space.scope == ACROSS] = 0
        assert counts.dtype == np.int64
        assert np.array_equal(counts, expected), seed
        if relation.rows >= 2 and space.options.nulls == "unknown":
            evidence = evidence_of(relation, space)
            unknown = [outcomes_in(evidence.clues, g) == UNKNOWN for g in range(space.groups)]
            assert undecided_pairs(relation, space) == evidence.counts[np.any(unknown, axis=0)].sum()
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_outcomes_equal_the_definition(nulls: Any) -> None:
    for seed in range(30):
        types = ["integer", "integer", "text", "boolean"]
        table = random_table(seed, rows=2 + seed % 9, types=types, null_share=0.2)
        relation = encode(table)
        options = DcDiscoverOptions(single_tuple=True, shared_values=Decimal(0), nulls=nulls)
        space = build_space(relation, options)
        expected = np.zeros((space.groups, 4), dtype=np.int64)
        for outcomes, count in oracle.evidence(table, groups(space), nulls).items():
            for g, order in enumerate(outcomes):
                expected[g, {-1: LESS, 0: EQUAL, 1: GREATER, None: UNKNOWN}[order]] += count
        assert np.array_equal(table_outcome_counts(relation, space), expected)


def test_without_the_unknown_rule_no_pair_is_undecided() -> None:
    relation = encode([("a", "integer", [1, None, None])])
    assert undecided_pairs(relation, build_space(relation, DcDiscoverOptions(nulls="value"))) == 0
    assert undecided_pairs(relation, build_space(relation, DcDiscoverOptions())) == 6


def test_counts_hold_in_tables_whose_pairs_overflow_32_bits() -> None:
    rows = 200_000
    table: Table = [("a", "integer", [1] * rows), ("b", "integer", [*range(rows - 1), None])]
    relation = encode(table)
    options = DcDiscoverOptions(single_tuple=True, shared_values=Decimal(0), comparable_means=Decimal(0))
    space = build_space(relation, options)
    counts = table_outcome_counts(relation, space)
    pairs = rows * (rows - 1)
    assert (counts.sum(axis=1) == pairs).all()
    by_group = {g: row.tolist() for g, row in zip([g[:3] for g in groups(space)], counts, strict=True)}
    assert by_group[0, 0, "across"] == [0, pairs, 0, 0]
    known = (rows - 1) * (rows - 2)
    assert by_group[1, 1, "across"] == [known // 2, 0, known // 2, pairs - known]
    # a = 1 against b of another row: 0 once, 1 once, less than all others, one null
    assert by_group[0, 1, "within"] == [(rows - 3) * (rows - 1), rows - 1, rows - 1, rows - 1]
    assert by_group[0, 1, "across"] == [(rows - 3) * (rows - 1), rows - 1, rows - 1, rows - 1]


def test_rankings_are_the_same_bits_with_and_without_evidence() -> None:
    found = 0
    for seed in range(150):
        table, relation, space = some_table(seed)
        if relation.rows < 1 or len(table) > 3:
            continue
        result = discover(relation, space.options)
        ranking = rank_counted(result.arrays, space, table_outcome_counts(relation, space), relation.rows)
        for name in ("succinctness", "coverage", "g1"):
            assert getattr(ranking, name).tobytes() == getattr(result.ranking, name).tobytes()
        found += len(result.arrays)
    assert found > 150


def test_a_given_g1_takes_the_place_of_the_violations() -> None:
    table = random_table(3, rows=20, types=["integer", "text"], values=5)
    relation = encode(table)
    result = discover(relation, DcDiscoverOptions(device="cpu", error=Decimal("0.1")))
    space, g1 = result.space, result.arrays.violations / (20 * 19)
    assert g1.any()
    counts = table_outcome_counts(relation, space)
    ranking = rank_counted(result.arrays, space, counts, 20, g1)
    assert np.allclose(ranking.coverage, result.ranking.coverage, rtol=1e-12)
    assert np.allclose(ranking.g1, g1)
    more = rank_counted(result.arrays, space, counts, 20, g1 + 0.1)
    assert (more.coverage < ranking.coverage).all()
