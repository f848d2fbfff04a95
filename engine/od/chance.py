"""Errors of dependencies relative to all pairs, or to those expected by chance, counted class by class on all rows.

Chance means that columns are independent, each with its own values.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, KEY, Mask
from tuplewise.engine.options import ErrorMeasure, Nulls
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.gpu_kernels.agreement import FRACTION_BITS, count_agreement
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows, restrict
from tuplewise.gpu_kernels.join_types import GREATER, LESS, Comparison
from tuplewise.gpu_kernels.refine import join, refine_equal
from tuplewise.gpu_kernels.words import members


class Errors:
    """A counter of the violations of dependencies, and of those expected by chance.

    Parameters
    ----------
    codes : int32 (columns, rows), -1 is null
    nulls : whether null is a value, or agrees with nothing and differs from nothing
    measure : "g1", "lift", or, of functional dependencies only, "mu"
    bound : the allowed error

    Notes
    -----
    With N ordered pairs of different rows, P of which agree on the context, the errors are

    - g1: violating pairs / N;
    - lift: violating pairs, by P times the share of N that differs on the attribute (for two columns in order: the
      share that the first orders, times the share that the second orders against it); for keys, by N times the shares
      that agree on each column;
    - mu: 1 - mu+ (Parciak, Weytjens, Hens, Neven, Peeters, Vansummeren, "Measuring approximate functional dependencies:
      a comparative study", ICDE 2024), without rows that have a null on either side where nulls are unknown.

    All are compared with the bound as fractions; of mu the contradictions are rounded down, see `Agreement`.
    Cost: a grouping of the rows for each context, a pass over them for each attribute, a sort for each pair of columns.
    """

    def __init__(
        self,
        codes: NDArray[np.int32],
        nulls: Nulls,
        measure: ErrorMeasure,
        bound: Decimal,
        *,
        device: Any,
        run: Run,
    ) -> None:
        self._codes = np.ascontiguousarray(codes if nulls == "unknown" else codes + 1)
        self._measure, self._bound = measure, Fraction(bound)
        self._device, self._run = device, run
        rows = self._codes.shape[1]
        self._pairs = rows * (rows - 1)

    def judge(
        self,
        contexts: Mask,
        which: NDArray[np.int32],
        kind: NDArray[np.int8],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether each is within the bound, and its error. Parameters as `PartitionedRows.check` has them, `which`
        ascending. Raises LimitReached."""
        holds, errors = np.zeros(len(which), dtype=np.bool_), np.zeros(len(which), dtype=np.float64)
        edges = np.searchsorted(which, np.arange(len(contexts) + 1)).tolist()
        for number, mask in enumerate(contexts):
            self._run.mind()
            part = slice(edges[number], edges[number + 1])
            found = self._of_context(members(mask), kind[part], left[part], right[part])
            for place, (wrong, by_chance) in enumerate(found, part.start):
                holds[place] = wrong <= self._bound * by_chance
                errors[place] = float(wrong / by_chance) if by_chance else 0.0
        return holds, errors

    def _of_context(
        self, context: list[int], kind: NDArray[np.int8], left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> list[tuple[Fraction, Fraction]]:
        """The violations of each dependency, and those expected by chance."""
        classes = self._classes(context)
        sizes = np.diff(classes.left_offsets)
        agreeing = int(np.dot(sizes, sizes - 1))
        found = [(Fraction(0), Fraction(0))] * len(kind)
        constant = np.flatnonzero(kind == CONSTANT).tolist()
        for place, counted in zip(
            constant, self._functional(context, classes, agreeing, left[constant].tolist()), strict=True
        ):
            found[place] = counted
        for place in np.flatnonzero(kind == KEY).tolist():
            found[place] = self._by_shares(agreeing, self._pairs, [self._agreeing[c] for c in context])
        for place in np.flatnonzero(kind >= ASCENDING).tolist():
            found[place] = self._ordered(classes, agreeing, int(left[place]), int(right[place]), int(kind[place]))
        if self._measure == "g1":
            return [(wrong, Fraction(self._pairs)) for wrong, _ in found]
        return found

    def _by_shares(self, wrong: int, pairs: int, parts: list[int]) -> tuple[Fraction, Fraction]:
        """The violating pairs, and those expected among `pairs` if the parts are as frequent there as among all."""
        return Fraction(wrong), Fraction(pairs * prod(parts), max(1, self._pairs) ** len(parts))

    def _ordered(
        self, classes: ClusterPairs, agreeing: int, left: int, right: int, kind: int
    ) -> tuple[Fraction, Fraction]:
        against = GREATER if kind == ASCENDING else LESS
        swaps = [Comparison(left, left, LESS), Comparison(right, right, against)]
        try:
            found = join(classes, self._codes, swaps, "iejoin", device=self._device, deadline=self._run.deadline)
            wrong = found.count(None, 1)
        except TimeoutError:
            raise LimitReached(TIME_LIMIT) from None
        return self._by_shares(wrong, agreeing, [self._differing[left] // 2, self._differing[right] // 2])

    def _functional(
        self, context: list[int], classes: ClusterPairs, agreeing: int, attributes: list[int]
    ) -> list[tuple[Fraction, Fraction]]:
        counted = count_agreement(classes, self._codes, attributes, deadline=self._run.deadline)
        if not counted.complete:
            raise LimitReached(TIME_LIMIT)
        if self._measure != "mu":
            differing = zip(counted.differing_pairs.tolist(), attributes, strict=True)
            return [self._by_shares(wrong, agreeing, [self._differing[a]]) for wrong, a in differing]
        known = np.all(self._codes[context] != NULL_CODE, axis=0)
        steps = (counted.contradictions * (1 << FRACTION_BITS)).astype(np.int64).tolist()
        figures = zip(steps, (counted.rows - counted.classes).tolist(), attributes, strict=True)
        return [
            (Fraction(wrong, 1 << FRACTION_BITS), repeated * self._share_differing(a, known))
            for wrong, repeated, a in figures
        ]

    def _classes(self, context: list[int]) -> ClusterPairs:
        """The classes of two and more rows, without rows with a null in the context."""
        everything = all_rows(np.arange(self._codes.shape[1], dtype=np.int32))
        if not context:
            return everything
        known = np.all(self._codes[context] != NULL_CODE, axis=0)
        if not known.any():
            return all_rows(np.zeros(0, dtype=np.int32))
        if not known.all():
            everything = restrict(everything, known, known)
        return refine_equal(everything, self._codes, [(c, c) for c in context], device=self._device)

    def _share_differing(self, attribute: int, among: NDArray[np.bool_]) -> Fraction:
        """The share of pairs that differ on an attribute, of rows among these that have a value there."""
        agreeing, rows = _agreeing_pairs(self._codes[attribute][among])
        return 1 - Fraction(agreeing, rows * (rows - 1)) if rows > 1 else Fraction(0)

    @cached_property
    def _agreeing(self) -> list[int]:
        """The ordered pairs of different rows that agree on each column."""
        return [_agreeing_pairs(column)[0] for column in self._codes]

    @cached_property
    def _differing(self) -> list[int]:
        """The ordered pairs of rows that differ on each column."""
        counted = (_agreeing_pairs(column) for column in self._codes)
        return [rows * (rows - 1) - agreeing for agreeing, rows in counted]


def _agreeing_pairs(column: NDArray[np.int32]) -> tuple[int, int]:
    """Ordered pairs of different rows that agree on a column, and its rows that are not null."""
    counts = np.bincount(column[column != NULL_CODE])
    return int(np.dot(counts, counts - 1)), int(counts.sum())
