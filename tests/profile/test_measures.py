"""Strength, evidence and chance: by the published formula, and a bound that holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import profile as oracle
from profile_tables import Table, tables

from tuplewise.engine.profile import measures


def counts_of(values: list[int]) -> np.ndarray:
    return np.array(list(Counter(values).values()), dtype=np.int64)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_differing_share_is_of_pairs_of_different_rows(values: list[int]) -> None:
    pairs = math.comb(len(values), 2)
    wanted = 1 - Fraction(oracle.doubles([values], [0]), pairs) if pairs else 0
    assert measures.differing_share(counts_of(values)) == pytest.approx(float(wanted), abs=1e-12)


@given(tables(columns=2, nulls=False))
def test_mu_plus_is_the_published_formula(table: Table) -> None:
    of_classes = oracle.of_classes(table, [0], 1)
    rows = sum(map(len, of_classes))
    differing = measures.differing_share(counts_of(table[1]))
    evidence = (rows - len(of_classes)) * differing
    assert evidence == pytest.approx(float(oracle.fd_evidence(table, [0], 1)))
    found = measures.mu_plus(float(oracle.contradictions(of_classes)), evidence)
    assert found == pytest.approx(float(oracle.mu_plus(table, [0], 1)), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(tables(columns=2, most_rows=6, nulls=False))
def test_evidence_is_the_mean_over_all_orders_of_the_target(table: Table) -> None:
    assert oracle.fd_evidence(table, [0], 1) == oracle.mean_contradictions(table, [0], 1)


def test_mu_plus_falls_with_contradictions_and_rises_with_evidence() -> None:
    strengths = [measures.mu_plus(c, 50.0) for c in (0.0, 1.0, 10.0, 50.0, 60.0)]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] == 1.0
    assert strengths[-2:] == [0.0, 0.0]
    strengths = [measures.mu_plus(5.0, e) for e in (0.0, 1.0, 6.0, 50.0, 5e9)]
    assert strengths == sorted(strengths)
    assert strengths[:2] == [0.0, 0.0]


# The tail sums of small numbers are exact; what is left out of a Poisson tail's exp() is far below the slack.
SLACK = 1e-12


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=25), st.integers(0, 25))
def test_log_chance_bounds_sums_of_independent_events(twentieths: list[int], observed: int) -> None:
    chances = [Fraction(n, 20) for n in twentieths]
    exact = oracle.chance_of_at_most(observed, chances)
    assert 10 ** measures.log_chance(observed, float(sum(chances))) >= float(exact) - SLACK


@pytest.mark.parametrize("expected", [0.01, 0.5, 1, 3.7, 20, 150, 700])
def test_log_chance_bounds_poisson_tails(expected: float) -> None:
    for observed in {*range(12), int(expected / 2), int(expected), int(expected) + 1}:
        exact = math.fsum(math.exp(k * math.log(expected) - expected - math.lgamma(k + 1)) for k in range(observed + 1))
        assert 10 ** measures.log_chance(observed, expected) >= exact - SLACK


def test_log_chance_at_its_ends() -> None:
    assert measures.log_chance(0.0, 10.0) == pytest.approx(-10 / math.log(10))
    assert measures.log_chance(10.0, 10.0) == measures.log_chance(11.0, 10.0) == measures.log_chance(0.0, 0.0) == 0.0
    chances = [measures.log_chance(k, 40.0) for k in range(42)]
    assert chances == sorted(chances)


def test_many_candidates_need_more_than_one() -> None:
    assert measures.is_beyond_chance(0, 10, 1)
    assert not measures.is_beyond_chance(0, 10, 1_000_000)
    assert measures.is_beyond_chance(0, 7, 0)
    assert not measures.is_beyond_chance(0, 6.9, 0)


SCORES: dict[str, Callable[[float, float, float], float]] = {
    "fd": lambda strength, evidence, share: measures.fd_score(strength, evidence, 0.4, 2, share),
    "od": lambda strength, evidence, share: measures.od_score(strength, evidence, 0.05, 1, share),
    "row": measures.row_score,
    "equality": measures.equality_score,
    "key of one": lambda strength, evidence, share: measures.key_score(strength, evidence, 1, share),
    "key of two": lambda strength, evidence, share: measures.key_score(strength, evidence, 2, share),
}


@pytest.mark.parametrize("kind", SCORES)
@given(st.floats(0.5, 1), st.floats(1, 1e9), st.floats(0.01, 1), st.floats(1, 2))
def test_scores_rise_with_strength_evidence_and_rows(
    kind: str, strength: float, evidence: float, share: float, more: float
) -> None:
    score = SCORES[kind]
    found = score(strength, evidence, share)
    assert score(min(1.0, strength * more), evidence, share) >= found
    assert score(strength, evidence * more, share) >= found
    assert score(strength, evidence, min(1.0, share * more)) >= found


def test_longer_sides_have_to_earn_it() -> None:
    assert (
        measures.fd_score(1, 100, 0.5, 1, 1)
        > measures.fd_score(1, 100, 0.5, 2, 1)
        > measures.fd_score(1, 100, 0.5, 3, 1)
    )
    assert measures.fd_score(1, 100, 0.5, 2, 1) > measures.fd_score(1, 100, 0.2, 2, 1)
    assert (
        measures.od_score(1, 100, 0.0, 0, 1)
        > measures.od_score(1, 100, 0.1, 1, 1)
        > measures.od_score(1, 100, 0.01, 1, 1)
    )
    assert measures.key_score(1, 100, 1, 1) > measures.key_score(1, 100, 2, 1) > measures.key_score(1, 100, 3, 1)
