"""The rows of a profile: classes of rows that agree on some columns, and random pairs within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.options import Nulls
from tuplewise.engine.profile.measures import differing_share
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows, restrict
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.refine import refine_equal


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """The sizes of the classes of rows that are equal on some columns, without rows with a null there.

    Attributes
    ----------
    rows, count : number of rows, and of classes including those of one row
    pairs : unordered pairs of different rows of one class
    """

    rows: int
    count: int
    pairs: int

    @property
    def repeated(self) -> int:
        """Rows beyond the first of their class."""
        return self.rows - self.count


@dataclass(frozen=True, eq=False)
class Classes(ClassSizes):
    """The classes of rows that are equal on some columns. `groups`: those of two and more rows."""

    groups: ClusterPairs

    @classmethod
    def of(cls, groups: ClusterPairs, rows: int, count: int) -> Classes:
        """The classes with the number of their pairs."""
        sizes = np.diff(groups.left_offsets)
        return cls(rows, count, int(np.dot(sizes, sizes - 1)) // 2, groups)


class CountedRelation:
    """A relation for counting. If nulls are values, its codes are increased by one, so that none is -1.

    Parameters
    ----------
    nulls : "unknown" or "value"
    device : what groups rows
    """

    def __init__(self, relation: Relation, nulls: Nulls, device: Device) -> None:
        self.codes = relation.codes if nulls == "unknown" else relation.codes + 1
        self.device = device

    @property
    def count(self) -> int:
        return int(self.codes.shape[1])

    @cached_property
    def values(self) -> list[NDArray[np.int64]]:
        """For each column the rows of each of its values, int64 (values,), descending."""
        counts = (np.bincount(column[column != NULL_CODE]) for column in self.codes)
        return [np.sort(found[found > 0])[::-1].astype(np.int64) for found in counts]

    @cached_property
    def differing(self) -> NDArray[np.float64]:
        """For each column the share of pairs of rows that differ on it, float64 (columns,)."""
        return np.array([differing_share(counts) for counts in self.values])

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """For each column its distinct values, int64 (columns,)."""
        return np.array([len(counts) for counts in self.values], dtype=np.int64)

    @cached_property
    def filled(self) -> NDArray[np.int64]:
        """For each column its rows that are not null, int64 (columns,)."""
        return np.array([counts.sum() for counts in self.values], dtype=np.int64)

    @cached_property
    def _everything(self) -> ClusterPairs:
        return all_rows(np.arange(self.count, dtype=np.int32))

    def without_nulls(self, columns: Sequence[int]) -> NDArray[np.bool_] | None:
        """Whether a row has a value in each column, bool (rows,); None where all have."""
        gaps = [c for c in columns if self.filled[c] < self.count]
        return np.logical_and.reduce(self.codes[gaps] != NULL_CODE) if gaps else None

    def classes(self, columns: Sequence[int], also_filled: Sequence[int] = ()) -> Classes:
        """Rows by what they have in some columns. `also_filled`: columns that have to have a value, too."""
        everything = self._everything
        passing = self.without_nulls([*columns, *also_filled])
        rows = self.count
        if passing is not None:
            rows = int(np.count_nonzero(passing))
            everything = restrict(everything, passing, passing)
        if not columns or not rows:
            return Classes.of(everything, rows, min(rows, 1))
        groups = refine_equal(everything, self.codes, [(c, c) for c in columns], device=self.device)
        return Classes.of(groups, rows, rows - len(groups.left) + groups.clusters)


class SampledPairs:
    """Random pairs of different rows of one class, and the columns on which they agree.

    A pair is a row after the first of its class and another row of the class. So the share of pairs that differ on a
    column estimates the contradictions of an FD relative to those by chance (`measures.mu_plus`).

    Attributes
    ----------
    equal : bool (columns, pairs), whether a pair agrees on a column; False where one has a null
    known : bool (columns, pairs), whether both have a value
    """

    def __init__(self, rows: CountedRelation, classes: Classes, most: int, rng: np.random.Generator) -> None:
        offsets = classes.groups.left_offsets
        sizes = np.diff(offsets)
        repeated = np.cumsum(sizes - 1)
        total = int(repeated[-1]) if len(repeated) else 0
        if total <= most:
            number = np.arange(total)
        else:
            number = rng.integers(0, total, most)
        group = np.searchsorted(repeated, number, side="right")
        # Any row but itself is its partner; which one is left out as "the first" is drawn, too.
        place = rng.integers(0, sizes[group])
        other = (place + 1 + rng.integers(0, sizes[group] - 1)) % sizes[group]
        self.first = classes.groups.left[offsets[group] + place]
        self.second = classes.groups.left[offsets[group] + other]
        self._codes = rows.codes

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def _both(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._codes[:, self.first], self._codes[:, self.second]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        first, second = self._both
        known: NDArray[np.bool_] = (first != NULL_CODE) & (second != NULL_CODE)
        return known

    @cached_property
    def equal(self) -> NDArray[np.bool_]:
        first, second = self._both
        equal: NDArray[np.bool_] = (first == second) & self.known
        return equal

    def order(self, columns: Sequence[int]) -> NDArray[np.int8]:
        """How pairs are ordered on some columns, int8 (columns, pairs): -1, 0 or 1; 0 where one has a null."""
        first, second = (side[list(columns)] for side in self._both)
        signs = (first > second).astype(np.int8) - (first < second)
        return np.where(self.known[list(columns)], signs, 0).astype(np.int8)
