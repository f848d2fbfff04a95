"""Estimates of g1 from random pairs: the intervals by definition, the sample, and what is said of each constraint."""

from __future__ import annotations

import itertools
import math
import random
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dc_tables import Table, constraints, encode, groups, random_table
from numpy.typing import NDArray
from oracles import dc as oracle

from tuplewise.engine.dc.estimate import compares_all, estimate_figures, find, interval, sampled_evidence
from tuplewise.engine.dc.evidence import EvidenceSet, collect_evidence
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.dc.workload import Workload, refuse_hopeless
from tuplewise.engine.errors import InputError, LimitReached
from tuplewise.engine.options import DcDiscoverOptions, ErrorMeasure
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.words import mirror_clues

TAIL = 0.025
Constraint = tuple[tuple[int, int, str, str], ...]


# ---------------------------------------------------------------- intervals


def at_least(k: int, n: int, share: float) -> float:
    """Chance of k or more successes in n draws, exactly."""
    p = Fraction(share)
    return float(sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)))


@pytest.mark.parametrize("draws", [1, 2, 7, 30, 100])
def test_ends_leave_the_same_chance_in_each_tail(draws: int) -> None:
    for k in range(draws + 1):
        low, high = interval(k, draws)
        assert low == 0 if k == 0 else at_least(k, draws, low) == pytest.approx(TAIL, rel=1e-9)
        assert high == 1 if k == draws else 1 - at_least(k + 1, draws, high) == pytest.approx(TAIL, rel=1e-8)
        assert low <= k / draws <= high


def test_published_intervals() -> None:
    """Clopper and Pearson's own example (3 of 10 at 95 %: 0.07 to 0.65), and the rule of three at its exact value."""
    assert [round(end, 2) for end in interval(3, 10)] == [0.07, 0.65]
    assert interval(0, 1000)[1] == pytest.approx(1 - TAIL ** (1 / 1000), rel=1e-9)
    assert interval(1000, 1000)[0] == pytest.approx(TAIL ** (1 / 1000), rel=1e-9)


def test_large_samples_near_the_normal_approximation_and_scale_down_to_nothing() -> None:
    low, high = interval(10_000, 100_000_000)
    assert (low, high) == pytest.approx((1e-4 - 1.96e-6, 1e-4 + 1.96e-6), rel=2e-4)
    low, high = interval(0.5, 100_000_000)
    assert 0 < low < 5e-9 < high < 5e-8
    assert all(a < b for a, b in itertools.pairwise(interval(v / 2, 10_000_000)[1] for v in range(50)))


@pytest.mark.parametrize("draws", [1, 2, 3, 8, 25, 60])
def test_both_orders_of_a_pair_keep_the_confidence(draws: int) -> None:
    """Whatever part of g1 comes from pairs that violate in one order only, no tail beyond an interval is too heavy.

    Each drawn pair adds 0, 1 or 2 of 2 * draws ordered pairs; the chances of all sums are added up exactly. Tails grow
    toward the end of an interval that they lie beyond, so shares just inside and outside of each end are the worst.
    """
    ends = np.array([interval(v / 2, draws) for v in range(2 * draws + 1)])
    shares = [x for x in np.unique(np.concatenate([ends - 1e-9, ends + 1e-9])) if 0 < x < 1]
    for one_order in (0, 0.05, 0.2, 0.5, 0.8, 0.95, 1):
        for g1 in shares:
            once, twice = 2 * g1 * one_order, g1 * (1 - one_order)
            if once + twice > 1:
                continue
            chances = np.ones(1)
            for _ in range(draws):
                chances = np.convolve(chances, [1 - once - twice, once, twice])
            assert chances[ends[:, 0] > g1].sum() <= TAIL + 1e-9
            assert chances[ends[:, 1] < g1].sum() <= TAIL + 1e-9


# ---------------------------------------------------------------- samples


def tables(seed: int, rows: int = 400) -> tuple[Table, Relation, PredicateSpace]:
    rng = random.Random(seed)
    types = rng.choice([["integer", "integer", "text"], ["integer", "text", "double"], ["text", "boolean", "date"]])
    table = random_table(seed, rows=rows, types=types, values=6, fewest=2, null_share=rng.choice([0, 0.05]))
    options = DcDiscoverOptions(
        device="cpu",
        error=Decimal("0.05"),
        cross_columns=rng.random() < 0.7,
        single_tuple=rng.random() < 0.7,
        shared_values=Decimal(0),
        nulls=rng.choice(["unknown", "value"]),
    )
    relation = encode(table)
    return table, relation, build_space(relation, options)


def judged(
    relation: Relation, space: PredicateSpace, pairs: int, seed: int = 0
) -> tuple[EvidenceSet, ConstraintArrays, NDArray[np.float64], list[str]]:
    evidence = sampled_evidence(relation, space, pairs, seed, "cpu")
    arrays, _, estimate, notes = estimate_figures(relation, evidence, invert(evidence))
    return evidence, arrays, np.column_stack([estimate.low, estimate.high]), notes


def test_both_orders_of_each_drawn_pair_are_counted() -> None:
    for seed in range(12):
        _, relation, space = tables(seed)
        evidence = sampled_evidence(relation, space, 1000, seed, "cpu")
        assert evidence.complete
        assert (evidence.ordered_pairs, evidence.counts.sum(), evidence.rows) == (2000, 2000, 400)
        assert len(np.unique(evidence.clues, axis=0)) == len(evidence)
        if space.closed:
            mirrored = mirror_clues(evidence.clues, space.layout)
            order = np.lexsort(mirrored.T[::-1])
            assert np.array_equal(mirrored[order], evidence.clues)
            assert np.array_equal(evidence.counts[order], evidence.counts)


def test_no_row_is_paired_with_itself() -> None:
    relation = encode([("a", "integer", list(range(300)))])
    space = build_space(relation, DcDiscoverOptions())
    counts = sampled_evidence(relation, space, 5000, 1, "cpu").outcome_counts
    assert counts.tolist() == [[5000, 0, 5000, 0]]


def test_every_pair_has_the_same_chance() -> None:
    """Rows in four classes: pairs inside a class are drawn as often as equal chances let them (chi squared)."""
    relation = encode([("a", "text", [f"{i:02}" for i in range(40)]), ("b", "text", [str(i % 4) for i in range(40)])])
    space = build_space(relation, DcDiscoverOptions())
    drawn = np.zeros(2)
    for seed in range(400):
        drawn += sampled_evidence(relation, space, 150, seed, "cpu").outcome_counts[1, :2] / 2
    expected = 400 * 150 * np.array([30 / 39, 9 / 39])
    assert drawn.sum() == expected.sum()
    assert float(((drawn - expected) ** 2 / expected).sum()) < 10.8  # one degree of freedom, one in a thousand


def test_a_seed_draws_the_same_sample_again() -> None:
    _, relation, space = tables(3)
    one, two, other = (sampled_evidence(relation, space, 2000, s, "cpu") for s in (1, 1, 2))
    assert np.array_equal(one.clues, two.clues)
    assert np.array_equal(one.counts, two.counts)
    assert not np.array_equal(one.counts, other.counts)


def test_a_sample_of_a_good_part_of_all_pairs_is_all_pairs() -> None:
    _, relation, space = tables(5, rows=60)
    assert compares_all(60, 60 * 59 // 8 + 1)
    assert not compares_all(60, 60 * 59 // 8)
    whole = collect_evidence(relation, space, device="cpu")
    evidence = sampled_evidence(relation, space, 10**9, 0, "cpu")
    assert evidence.ordered_pairs == 60 * 59
    assert np.array_equal(evidence.clues, whole.clues)
    assert np.array_equal(evidence.counts, whole.counts)


def test_a_deadline_ends_the_draw() -> None:
    _, relation, space = tables(1)
    evidence = sampled_evidence(relation, space, 1000, 0, "cpu", run=Run(deadline=time.monotonic() - 1))
    assert not evidence.complete


def test_progress_ends_at_one() -> None:
    _, relation, space = tables(1)
    told: list[float] = []
    sampled_evidence(relation, space, 1000, 0, "cpu", run=Run(progress=lambda stage, share: told.append(share)))
    assert told[-1] == 1


# ---------------------------------------------------------------- what is said of constraints


def violations_in(evidence: EvidenceSet, space: PredicateSpace, constraint: Constraint) -> int:
    """Ordered pairs of the sample that violate a constraint, by the outcomes of their clues."""
    number = {g[:3]: i for i, g in enumerate(groups(space))}
    count = 0
    for clue, times in zip(evidence.clues.tolist(), evidence.counts.tolist(), strict=True):
        order = {0: -1, 1: 0, 2: 1, 3: None}
        outcomes = [order[clue[i // 32] >> 2 * (i % 32) & 3] for i in (number[p[:3]] for p in constraint)]
        if all(o is not None and oracle.satisfies(o, p[3]) for o, p in zip(outcomes, constraint, strict=True)):
            count += times
    return count


def test_figures_are_those_of_the_sample() -> None:
    checked = 0
    for seed in range(12):
        table, relation, space = tables(seed)
        evidence = sampled_evidence(relation, space, 3000, seed, "cpu")
        arrays, ranking, estimate, notes = estimate_figures(relation, evidence, invert(evidence))
        assert (estimate.sampled_pairs, estimate.confidence) == (3000, 0.95)
        assert notes[0].startswith("g1 is estimated from 3,000 random pairs of 79,800: ")
        assert ((estimate.low <= ranking.g1) & (ranking.g1 <= estimate.high)).all()
        assert np.array_equal(estimate.estimated, ~arrays.one_row)
        for i, (constraint, violations) in enumerate(itertools.islice(constraints(space, arrays).items(), 60)):
            assert violations == violations_in(evidence, space, constraint) <= 0.05 * 6000
            assert ranking.g1[i] == violations / 6000
            assert (estimate.low[i], estimate.high[i]) == interval(violations / 2, 3000)
            share = oracle.coverage(table, constraint, space.options.nulls) if seed < 2 and i < 3 else None
            if share is not None:
                assert ranking.coverage[i] == pytest.approx(float(share), abs=0.02)
            checked += 1
    assert checked > 150


def test_rules_about_rows_are_counted_exactly() -> None:
    rng = random.Random(2)
    low = [rng.randint(0, 9) for _ in range(400)]
    high = [x + rng.randint(0, 5) if i % 40 else x - 1 for i, x in enumerate(low)]
    table: Table = [("low", "integer", low), ("high", "integer", [None if i == 7 else x for i, x in enumerate(high)])]
    relation = encode(table)
    options = DcDiscoverOptions(
        error=Decimal("0.05"), single_tuple=True, shared_values=Decimal(0), comparable_means=Decimal(0)
    )
    space = build_space(relation, options)
    evidence = sampled_evidence(relation, space, 3000, 0, "cpu")
    arrays, ranking, estimate, _ = estimate_figures(relation, evidence, invert(evidence))
    about_rows = [i for i, c in enumerate(constraints(space, arrays)) if all(p[2] == "within" for p in c)]
    assert about_rows == np.flatnonzero(arrays.one_row).tolist() == np.flatnonzero(~estimate.estimated).tolist()
    assert ((0, 1, "within", ">"),) in constraints(space, arrays)
    for i, (constraint, violations) in enumerate(constraints(space, arrays).items()):
        if i in about_rows:
            assert violations == oracle.violations(table, constraint, "unknown") == 10
            assert estimate.low[i] == estimate.high[i] == ranking.g1[i] == 10 / 400
            assert ranking.coverage[i] == pytest.approx(float(oracle.coverage(table, constraint, "unknown") or 0))


def test_intervals_hold_the_true_share_about_as_often_as_they_say() -> None:
    """An asymmetric and a symmetric rule over 300 samples: at least 95 %, within what 300 draws scatter (3 sigma)."""
    rng = random.Random(8)
    values = [[rng.randint(0, 30) for _ in range(500)] for _ in range(2)]
    table: Table = [("a", "integer", values[0]), ("b", "integer", values[1])]
    relation = encode(table)
    space = build_space(relation, DcDiscoverOptions(error=Decimal("0.4"), cross_columns=False))
    rules = [((0, 0, "across", "=="),), ((0, 0, "across", "<"), (1, 1, "across", ">="))]
    held = [0, 0]
    true = [oracle.violations(table, rule, "unknown") / (500 * 499) for rule in rules]
    for seed in range(300):
        evidence = sampled_evidence(relation, space, 2000, seed, "cpu")
        for i, rule in enumerate(rules):
            low, high = interval(violations_in(evidence, space, rule) / 2, 2000)
            held[i] += low <= true[i] <= high
    assert all(count >= 300 * (0.95 - 3 * math.sqrt(0.95 * 0.05 / 300)) for count in held)


def test_rules_about_rows_that_break_the_error_in_the_table_are_left_out() -> None:
    """One row of 2,000 has a > b: hardly in a sample of 50 pairs, but counted."""
    table: Table = [("a", "integer", [1] * 1999 + [3]), ("b", "integer", [2] * 2000)]
    relation = encode(table)
    options = DcDiscoverOptions(single_tuple=True, shared_values=Decimal(0), comparable_means=Decimal(0))
    space = build_space(relation, options)
    seed = next(
        s for s in range(20) if len(sampled_evidence(relation, space, 50, s, "cpu")) == 1
    )  # the odd row is not in it
    _, arrays, _, notes = judged(relation, space, 50, seed)
    rules = list(constraints(space, arrays))
    assert not [r for r in rules if all(p[2] == "within" for p in r) and oracle.violations(table, r, "unknown")]
    assert notes[1] == "1 rule about one row held in the sample but not in the table, and is left out"


def test_a_sample_without_constraints() -> None:
    relation = encode([("a", "integer", [1, 1, 2] * 100)])
    space = build_space(relation, DcDiscoverOptions(max_predicates=1))
    _, arrays, intervals, _ = judged(relation, space, 500)
    assert (len(arrays), intervals.shape) == (0, (0, 2))


# ---------------------------------------------------------------- the whole search


def searched(
    relation: Relation, space: PredicateSpace, *, deadline: float | None = None, limit: str = ""
) -> FoundConstraints:
    """A search that the memory limit ends in the stage `limit`."""

    def report(stage: str, share: float) -> None:
        if stage == limit:
            raise LimitReached("memory limit of 5 bytes reached")

    laps: list[str] = []
    run = Run(progress=report, deadline=deadline)
    found = find(relation, space, device=pick_device("cpu"), run=run, lap=laps.append)
    assert laps[0] == "sample"
    return found


def sampling(pairs: int) -> tuple[Relation, PredicateSpace]:
    _, relation, space = tables(1)
    return relation, build_space(relation, replace(space.options, sample_pairs=pairs, seed=5))


def test_a_search_draws_inverts_and_judges() -> None:
    relation, space = sampling(3000)
    found = searched(relation, space)
    evidence = sampled_evidence(relation, space, 3000, 5, "cpu")
    arrays, ranking, _, notes = estimate_figures(relation, evidence, invert(evidence))
    assert found.estimate is not None
    assert (found.evidences, found.notes, found.reached) == (len(evidence), notes, None)
    assert np.array_equal(found.arrays.predicates, arrays.predicates)
    assert np.array_equal(found.ranking.g1, ranking.g1)


def test_a_search_that_compares_all_pairs_estimates_nothing() -> None:
    relation, space = sampling(20_000)
    found = searched(relation, space)
    exact = invert(collect_evidence(relation, space, device="cpu"))
    assert found.estimate is None
    note = "all 159,600 ordered pairs were compared instead of a sample: that takes no longer, and is exact"
    assert found.notes == [note]
    assert np.array_equal(found.arrays.predicates, exact.predicates)
    assert np.array_equal(found.arrays.violations, exact.violations)


def test_limits_say_what_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    relation, space = sampling(3000)
    late = searched(relation, space, deadline=time.monotonic() - 1)
    assert late.reached == "time limit reached while pairs were compared: nothing is known of constraints"
    assert (late.evidences, late.estimate, len(late.arrays)) == (None, None, 0)
    full = searched(relation, space, limit="sample")
    assert full.reached == "memory limit of 5 bytes reached while pairs were compared: nothing is known of constraints"

    def too_large(*args: Any, **more: Any) -> Any:  # the inversion of a small table ends before it reports
        raise LimitReached("memory limit of 5 bytes reached")

    monkeypatch.setattr("tuplewise.engine.dc.estimate.invert", too_large)
    full = searched(relation, space)
    assert full.reached == "memory limit of 5 bytes reached while constraints were searched: none is listed"
    assert full.evidences is not None


# ---------------------------------------------------------------- what is offered where all pairs are too many


def refused(error: str, seconds: float, size: int, measure: ErrorMeasure = "g1") -> str:
    relation = encode([("a", "integer", [1, 2, 3])])
    options = DcDiscoverOptions(algorithm="evidence", error=Decimal(error), error_measure=measure)
    work = Workload(10**12, 64, 20, seconds, size)
    with pytest.raises(InputError) as refusal:
        refuse_hopeless(work, relation, options, 2**30)
    return str(refusal.value)


def test_a_refusal_offers_the_search_that_compares_few_pairs() -> None:
    assert refused("0.01", 1e6, 1) == (
        "3 rows make 1,000,000,000,000 pairs of 64 comparisons, about 278 hours here; allowed: 4 hours without a "
        "limit. Look at fewer rows (rows), say how long it may take (time_limit), or compare few pairs "
        "(algorithm='hybrid')"
    )
    assert refused("0.00001", 1, 2**40).endswith(
        "leave distinct evidence of at least 1,024.0 GiB; allowed: 1.0 GiB of memory. Choose columns (columns, "
        "exclude) or fewer rows (rows), or compare few pairs (algorithm='hybrid')"
    )
    by_chance = refused("0.01", 1e6, 1, "lift")
    assert by_chance.endswith("or bound the share of violating pairs (error_measure='g1')")


def test_a_refusal_of_exact_constraints_offers_the_search_that_compares_few_pairs() -> None:
    assert refused("0", 1e6, 1).endswith("or compare few pairs (algorithm='hybrid')")
