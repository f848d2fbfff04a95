"""Which columns name rows: numbers without gaps, codes and names do, measurements and prose don't."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from profile_tables import relation_of, table_of

from tuplewise.engine.options import Nulls
from tuplewise.engine.profile.keys import LEAST_EVIDENCE, collisions_by_chance, single_keys
from tuplewise.engine.profile.rule import Rule

RNG = np.random.default_rng(7)
DAY = datetime.date(2024, 2, 1)
MINUTE = datetime.datetime(2024, 2, 1, 8, 0)
LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def words(count: int, letters: int) -> list[str]:
    return ["".join(RNG.choice(LETTERS, letters)) for _ in range(count)]


def codes(count: int, letters: int) -> list[str]:
    return [f"{i * 7919 % 26**letters:0{letters}d}" for i in range(count)]


KEYS: dict[str, list[Any]] = {
    "numbers without gaps": list(range(1000, 1500)),
    "every seventh number": list(range(5, 3505, 7)),
    "numbers in another order": RNG.permutation(500).tolist(),
    "numbers beyond 64 bits": [Decimal(10**20 + i) for i in range(500)],
    "whole numbers kept with fractions": [float(i) for i in range(500)],
    "days": [DAY + datetime.timedelta(days=i) for i in range(500)],
    "every seventh day": [DAY + datetime.timedelta(days=7 * i) for i in range(500)],
    "times of quarters of an hour": [MINUTE + datetime.timedelta(minutes=15 * i) for i in range(500)],
    "codes of four digits": codes(500, 4),
    "names": words(500, 12),
}
OTHERS: dict[str, list[Any]] = {
    "measurements": RNG.normal(20, 5, 500).tolist(),
    "amounts in a wide range": RNG.choice(10**12, 500, replace=False).tolist(),
    "times to the microsecond": [
        MINUTE + datetime.timedelta(microseconds=int(n)) for n in RNG.choice(10**14, 500, replace=False)
    ],
    "prose": [" ".join(words(9, 6)) for _ in range(500)],
    "measurements that are not all finite": [*range(498), float("inf"), float("nan")],
    "flags": [True, False] * 250,
    "values that repeat": list(range(250)) * 2,
    "nothing": [None] * 500,
    "one value among nulls": [7] + [None] * 499,
}


def keys_of(*columns: list[Any], nulls: Nulls = "unknown") -> list[Rule]:
    return single_keys(table_of(relation_of(columns), nulls=nulls), 0)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("kind", KEYS)
def test_what_names_rows(kind: str, nulls: Nulls) -> None:
    (rule,) = keys_of(KEYS[kind], nulls=nulls)
    assert (rule.kind, rule.left, rule.rows, rule.exceptions, rule.strength) == ("key", (0,), 500, 0, 1.0)
    assert rule.evidence >= LEAST_EVIDENCE
    assert rule.score > 0


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("kind", OTHERS)
def test_what_does_not(kind: str, nulls: Nulls) -> None:
    assert keys_of(OTHERS[kind], nulls=nulls) == []


def test_numbers_would_collide_by_the_steps_that_they_span() -> None:
    pairs = 500 * 499 / 2
    numbers = [KEYS[kind] for kind in ("numbers without gaps", "every seventh number", "numbers beyond 64 bits")]
    for column in (*numbers, KEYS["every seventh day"], KEYS["times of quarters of an hour"]):
        assert collisions_by_chance(table_of(relation_of([column])), 0, 0) == pytest.approx(pairs / 500)
    assert collisions_by_chance(table_of(relation_of([[0, 1, 3, 1000]])), 0, 0) == pytest.approx(6 / 1001)


def test_codes_would_collide_by_the_letters_at_each_place() -> None:
    """Two letters at each of two places: a quarter of the pairs, by what is left when one is drawn."""
    found = collisions_by_chance(table_of(relation_of([["aa", "ab", "ba", "bb"]])), 0, 0)
    assert found == pytest.approx(6 * (1 / 3) ** 2)
    longer = collisions_by_chance(table_of(relation_of([["a", "ab", "b", "bb"]])), 0, 0)
    assert longer == pytest.approx(6 * (1 / 3) ** 2)


def test_a_few_values_that_repeat_are_exceptions() -> None:
    (rule,) = keys_of([*range(1000), 3, 5])
    assert (rule.rows, rule.exceptions) == (1002, 2)
    assert rule.strength == pytest.approx(1 - 2 / 1002)
    assert keys_of([*range(1000), *range(20)]) == []


def test_rows_without_a_value_are_left_out() -> None:
    (rule,) = keys_of([*range(300), *[None] * 300])
    assert (rule.rows, rule.exceptions) == (300, 0)
    (full,) = keys_of(list(range(300)))
    assert rule.score < full.score
    assert keys_of([*range(20), *[None] * 980]) == []


@pytest.mark.parametrize("column", [[], [1], [None], ["a"], [None, None]])
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_hardly_any_rows(column: list[Any], nulls: Nulls) -> None:
    assert keys_of(column, nulls=nulls) == []
