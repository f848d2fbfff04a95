"""How the values of columns are spread, and what is odd about them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from profile_tables import relation_of

import tuplewise as tw
from tuplewise.engine.profile.columns import BINS, SHOWN_VALUES, Frequent, Histogram, distribution

RNG = np.random.default_rng(11)
DAY = datetime.date(2024, 2, 1)
COLUMNS: dict[str, list[Any]] = {
    "numbers": RNG.normal(0, 1, 500).tolist(),
    "with nulls": [None if i % 3 else i for i in range(500)],
    "with infinities": [*np.linspace(0, 1, 100).tolist(), float("inf"), float("-inf")],
    "infinities and few": [*[float(i) for i in range(13)], float("inf")],
    "no numbers": [*[float(i) for i in range(20)], float("nan")],
    "only infinities and no number": [float("inf"), float("-inf"), float("nan")] * 9,
    "days": [DAY + datetime.timedelta(days=int(n)) for n in RNG.integers(0, 900, 500)],
    "times": [datetime.datetime(2024, 2, 1) + datetime.timedelta(seconds=int(n)) for n in RNG.integers(0, 10**7, 300)],
    "beyond 64 bits": [Decimal(10**20 + i) for i in range(100)],
    "one far away": [*range(99), 10**9],
    "few numbers": [1, 2, 2, 3, None],
    "texts": [f"t{n}" for n in RNG.integers(0, 90, 500)],
    "empty texts": ["", "", "a"],
    "flags": [True, False, True, None],
    "one": ["x"] * 9,
}


def total(spread: Histogram | Frequent | None) -> int:
    if spread is None:
        return 0
    return sum(spread.counts) if isinstance(spread, Histogram) else sum(n for _, n in spread.values) + spread.other


@pytest.mark.parametrize("kind", COLUMNS)
def test_distributions_add_up_to_the_rows_with_a_value(kind: str) -> None:
    column = COLUMNS[kind]
    spread = distribution(relation_of([column]), 0)
    assert total(spread) == len(column) - column.count(None)
    if isinstance(spread, Histogram):
        assert len(spread.counts) <= BINS
    elif spread is not None:
        assert len(spread.values) <= SHOWN_VALUES
        assert [n for _, n in spread.values] == sorted((n for _, n in spread.values), reverse=True)


def test_a_column_without_values_has_none() -> None:
    assert distribution(relation_of([[None, None]]), 0) is None
    assert distribution(relation_of([[]]), 0) is None


def test_a_histogram_is_of_equal_steps() -> None:
    spread = distribution(relation_of([[*range(240), None]]), 0)
    assert spread == Histogram("0", "239", (10,) * BINS)


def test_the_most_frequent_values_come_first() -> None:
    spread = distribution(relation_of([list("aabbbccccdefgh")]), 0)
    assert spread == Frequent((("c", 4), ("b", 3), ("a", 2), ("d", 1), ("e", 1), ("f", 1)), 2)


def warnings_of(frame: pd.DataFrame, **options: Any) -> list[tuple[str | None, str]]:
    return [(one["column"], one["text"]) for one in tw.profile(frame, **options).warnings]


def test_what_is_odd_about_columns() -> None:
    count = 200
    frame = pd.DataFrame(
        {
            "none": pd.Series([None] * count, dtype="object"),
            "one": ["x"] * count,
            "one or null": ["y", None] * (count // 2),
            "nearly null": pd.array([5, 6] + [None] * (count - 2), dtype="Int64"),
            "mixed": [str(i) for i in range(count - 1)] + ["n/a"],
            "normal": RNG.integers(0, 9, count),
            "id": range(count),
        }
    )
    assert warnings_of(frame) == [
        ("none", "has no values"),
        ("one", "has one value"),
        ("one or null", "has one value, and 100 nulls"),
        ("nearly null", "is null in 198 of 200 rows"),
        ("mixed", "is text: 1 of 200 values are not numbers, such as 'n/a'"),
    ]


def test_what_is_odd_about_rows() -> None:
    frame = pd.DataFrame({"a": RNG.permutation(300) * 3.7, "b": RNG.permutation(300) * 1.1})
    assert warnings_of(frame) == []
    doubled = pd.concat([frame, frame[:4]])
    assert warnings_of(doubled) == [(None, "4 of 304 rows repeat another one in all columns")]
    named = doubled.assign(id=range(304))
    assert warnings_of(named) == [(None, "4 of 304 rows repeat another one in all columns but id")]


def test_hardly_any_rows() -> None:
    assert warnings_of(pd.DataFrame({"a": pd.Series([], dtype="int64")})) == []
    assert warnings_of(pd.DataFrame({"a": [1]})) == []
    assert warnings_of(pd.DataFrame({"a": [1, 1]})) == [
        ("a", "has one value"),
        (None, "1 of 2 rows repeat another one in all columns"),
    ]


def test_a_value_that_nearly_all_rows_have_is_not_the_only_one() -> None:
    frame = pd.DataFrame({"a": [1] * 4999 + [2], "id": range(5000)})
    assert [rule.kind for rule in tw.profile(frame)] == ["key", "constant"]
    assert not warnings_of(frame)
