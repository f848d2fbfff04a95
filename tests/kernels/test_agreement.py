"""How far classes of rows agree on columns: the kernel's figures by definition, on any number of threads."""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import profile as oracle

from tuplewise.gpu_kernels.agreement import FRACTION_BITS, Agreement, count_agreement
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows


def groups_of(members: list[list[int]]) -> ClusterPairs:
    rows = np.array([row for group in members for row in group], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, members)]).astype(np.int64)
    return ClusterPairs(rows, offsets, rows, offsets)


def figures_by_definition(members: list[list[int]], column: list[int]) -> tuple[int, int, int, int]:
    kept = [[column[row] for row in group if column[row] >= 0] for group in members]
    kept = [values for values in kept if values]
    equal = sum(n * n for values in kept for n in Counter(values).values())
    return (
        sum(map(len, kept)),
        len(kept),
        sum(max(Counter(values).values()) for values in kept),
        sum(len(values) ** 2 for values in kept) - equal,
    )


def assert_agreement(found: Agreement, i: int, members: list[list[int]], column: list[int]) -> None:
    counted = tuple(int(a[i]) for a in (found.rows, found.classes, found.majority, found.differing_pairs))
    assert counted == figures_by_definition(members, column)
    exact = oracle.contradictions([[column[row] for row in group if column[row] >= 0] for group in members])
    steps = Fraction(float(found.contradictions[i]))
    assert exact - Fraction(len(members), 1 << FRACTION_BITS) <= steps <= exact
    assert (steps * (1 << FRACTION_BITS)).denominator == 1


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], NDArray[np.int32]]:
    """Classes, of one row too, that leave some rows out, and columns with nulls."""
    rows = draw(st.integers(0, 14))
    number = draw(st.lists(st.integers(-1, draw(st.integers(0, 6))), min_size=rows, max_size=rows))
    members = [[row for row in range(rows) if number[row] == n] for n in sorted({*number} - {-1})]
    columns = []
    for _ in range(3):
        most = draw(st.sampled_from([-1, 0, 1, 4, 20]))
        columns.append(draw(st.lists(st.integers(-1, most), min_size=rows, max_size=rows)))
    return members, np.array(columns, dtype=np.int32).reshape(3, rows)


@settings(deadline=None, max_examples=200)
@given(cases())
def test_figures_by_definition(case: tuple[list[list[int]], NDArray[np.int32]]) -> None:
    members, codes = case
    alone, two = (count_agreement(groups_of(members), codes, [2, 0, 1, 0], threads=n) for n in (1, 2))
    for i, target in enumerate((2, 0, 1, 0)):
        assert_agreement(alone, i, members, codes[target].tolist())
    for name in ("rows", "classes", "majority", "differing_pairs", "contradictions"):
        assert np.array_equal(getattr(alone, name), getattr(two, name))
    assert alone.complete
    assert two.complete


def test_counts_beyond_32_bits() -> None:
    """300,000 rows of one class: 9e10 pairs. 2^31 rows, the most there can be, have 2^62 of them: those fit, too, and
    so do the contradictions, 2^31 in steps of 2^-16; a class's own are split before they are scaled."""
    count = 300_000
    codes = np.array([np.arange(count), np.arange(count) % 7 % 2], dtype=np.int32)
    found = count_agreement(all_rows(np.arange(count, dtype=np.int32)), codes, [0, 1])
    ones = int(codes[1].sum())
    assert found.differing_pairs.tolist() == [count * (count - 1), 2 * ones * (count - ones)]
    exact = [Fraction(count - 1), Fraction(2 * ones * (count - ones), count)]
    for steps, wanted in zip(found.contradictions.tolist(), exact, strict=True):
        assert 0 <= wanted - Fraction(steps) < Fraction(1, 1 << FRACTION_BITS)


def test_many_classes_of_two_and_three_rows() -> None:
    rng = np.random.default_rng(5)
    codes = np.array([np.arange(5000) // 2, rng.integers(-1, 3, 5000)], dtype=np.int32)
    members = [list(range(first, min(first + 3, 5000))) for first in range(0, 5000, 3)]
    found = count_agreement(groups_of(members), codes, [0, 1])
    for i in (0, 1):
        assert_agreement(found, i, members, codes[i].tolist())


def test_no_rows_no_classes_and_no_targets() -> None:
    nothing = np.zeros((2, 0), dtype=np.int32)
    found = count_agreement(all_rows(np.arange(0, dtype=np.int32)), nothing, [0, 1])
    assert found.rows.tolist() == found.classes.tolist() == found.contradictions.tolist() == [0, 0]
    found = count_agreement(all_rows(np.arange(0, dtype=np.int32)), nothing, [])
    assert len(found.rows) == 0
    assert found.complete


def test_a_deadline_that_has_passed() -> None:
    codes = np.zeros((3, 10), dtype=np.int32)
    classes = all_rows(np.arange(10, dtype=np.int32))
    assert not count_agreement(classes, codes, [0, 1, 2], deadline=time.monotonic() - 1).complete


def test_what_can_not_be_counted() -> None:
    codes = np.zeros((2, 3), dtype=np.int32)
    rows = np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match=r"targets: \[2\]; allowed: 0 to 1"):
        count_agreement(all_rows(rows), codes, [2])
    with pytest.raises(ValueError, match="classes: pairs of two different sets; allowed: reflexive pairs"):
        count_agreement(all_rows(rows, rows.copy()), codes, [0])
