"""The interface of a profiled table, and its implementation for rows in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.options import DcCheckOptions, ProfileOptions
from tuplewise.engine.profile import counting, exceptions
from tuplewise.engine.profile.candidates import Columns
from tuplewise.engine.profile.columns import Frequent, Histogram, distribution
from tuplewise.engine.profile.counting import CandidateCounts, ColumnComparison
from tuplewise.engine.profile.exceptions import Exceptions
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.rule import Order, Rule, order_constraints
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.device import Device


@dataclass(frozen=True, eq=False)
class SomeValues:
    """A sample of a column's values: codes, int32, ascending; the lowest and highest of all; rows with a value.

    Nulls are left out, even where they count as values for rules.
    """

    codes: NDArray[np.int32]
    lowest: int
    highest: int
    rows: int


class ProfiledTable(Protocol):
    """A table to profile, wherever its rows are. Columns are numbers.

    Rows with a null in the columns of a request are left out, unless nulls are values. Long operations raise
    LimitReached at the time limit.

    Attributes
    ----------
    relation : names, types and dictionaries of the columns; its rows only where they are in this process
    at_once : number of candidates to count together
    notes : remarks on how candidates were counted
    """

    relation: Relation
    at_once: int
    notes: list[str]

    @property
    def count(self) -> int:
        """Rows."""

    @property
    def filled(self) -> NDArray[np.int64]:
        """The non-null rows of each column."""

    @property
    def distinct(self) -> NDArray[np.int64]:
        """The distinct values of each column."""

    @property
    def differing(self) -> NDArray[np.float64]:
        """The share of pairs of rows that differ on each column."""

    @property
    def largest(self) -> NDArray[np.int64]:
        """The rows with the most frequent value of each column."""

    def sample(self, most: int, seed: int) -> CountedRelation:
        """Random rows, in this process; all where there are no more than `most`."""

    def glance(self, most: int, seed: int) -> NDArray[np.int32]:
        """Codes, int32 (columns, rows), of a few random rows: those of one domain can be compared."""

    def count_fds(self, wanted: Mapping[Columns, Sequence[int]]) -> dict[tuple[Columns, int], CandidateCounts]:
        """Count FDs, given as targets by left side."""

    def count_keys(self, keys: Sequence[Columns]) -> list[CandidateCounts]:
        """Count keys of several columns."""

    def contradictions(self, orders: Sequence[Order]) -> list[int]:
        """The pairs of rows that contradict each order rule."""

    def count_orders(self, orders: Sequence[Order], contradictions: Sequence[int]) -> list[CandidateCounts]:
        """Count order rules with so many contradicting pairs."""

    def rows_to_remove(self, orders: Sequence[Order]) -> list[int]:
        """The fewest rows to remove so that each order rule holds."""

    def compare_columns(self, pairs: Sequence[tuple[int, int]]) -> list[ColumnComparison]:
        """Compare two columns of a domain, row by row and by chance."""

    def some_values(self, column: int, most: int, seed: int) -> SomeValues:
        """Random values of a column; all where there are no more than `most`."""

    def lowest_values(self, columns: Sequence[int], most: int) -> list[NDArray[np.int32]]:
        """The codes of the lowest values of some columns, ascending, at most so many of each."""

    def value_pairs(self, a: int, b: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The different pairs of values of two columns, without nulls, as codes, ascending; none where too many."""

    def commonest(self, column: int) -> Any:
        """The most frequent value of a column, the lowest among equals; None: null."""

    def distributions(self) -> list[Histogram | Frequent | None]:
        """The distribution of the values of each column."""

    def repeated(self, columns: Sequence[int]) -> int:
        """The rows that repeat another row in some columns; null is a value."""

    def broken(self, rule: Rule, limit: int | None) -> tuple[Relation, Exceptions]:
        """At most `most` rows that break a rule, in a relation of these rows; see `exceptions.exceptions_of`."""


class TableHere(CountedRelation):
    """A relation that is profiled; its methods are those of ProfiledTable. Pairs of values are never too many."""

    at_once = 1

    def __init__(self, relation: Relation, options: ProfileOptions, device: Device, run: Run) -> None:
        super().__init__(relation, options.nulls, device)
        self.relation, self.notes = relation, list[str]()
        self._options, self._run = options, run

    @cached_property
    def largest(self) -> NDArray[np.int64]:
        return np.array([counts[0] if len(counts) else 0 for counts in self.values], dtype=np.int64)

    @cached_property
    def _whole(self) -> CountedRelation:
        return CountedRelation(self.relation, "value", self.device)

    def sample(self, most: int, seed: int) -> CountedRelation:
        if self.count <= most:
            return self
        codes = np.ascontiguousarray(self.relation.codes[:, chosen_rows(self.count, most, seed)])
        return CountedRelation(replace(self.relation, codes=codes), self._options.nulls, self.device)

    def glance(self, most: int, seed: int) -> NDArray[np.int32]:
        return self.codes[:, chosen_rows(self.count, most, seed)]

    def count_fds(self, wanted: Mapping[Columns, Sequence[int]]) -> dict[tuple[Columns, int], CandidateCounts]:
        found = {left: counting.count_fds(self, left, targets) for left, targets in wanted.items()}
        return {(left, target): counted for left, own in found.items() for target, counted in own.items()}

    def count_keys(self, keys: Sequence[Columns]) -> list[CandidateCounts]:
        return [counting.count_key(self, columns) for columns in keys]

    def contradictions(self, orders: Sequence[Order]) -> list[int]:
        # By the kernels of rule checking
        from tuplewise.engine.dc.violations.detect import check_rules

        rules = order_constraints(self.relation.column_names, orders)
        options = DcCheckOptions(count_only=True, nulls=self._options.nulls, device=self._options.device)
        checked = check_rules(self.relation, rules, options, Run(deadline=self._run.deadline))
        if checked.partial:
            raise LimitReached(TIME_LIMIT)
        return [int(rule.violating_pairs or 0) for rule in checked.rules]

    def count_orders(self, orders: Sequence[Order], contradictions: Sequence[int]) -> list[CandidateCounts]:
        given = zip(orders, contradictions, strict=True)
        return [counting.count_order(self, context, a, b, pairs) for (context, a, b, _), pairs in given]

    def rows_to_remove(self, orders: Sequence[Order]) -> list[int]:
        return [counting.rows_to_remove(self, *order) for order in orders]

    def compare_columns(self, pairs: Sequence[tuple[int, int]]) -> list[ColumnComparison]:
        return [counting.compare(self.codes[a], self.codes[b]) for a, b in pairs]

    def some_values(self, column: int, most: int, seed: int) -> SomeValues:
        codes = self.relation.codes[column]
        rows = codes[codes != NULL_CODE]
        kept = np.unique(rows)
        return SomeValues(kept[chosen_rows(len(kept), most, seed)], int(kept[0]), int(kept[-1]), len(rows))

    def lowest_values(self, columns: Sequence[int], most: int) -> list[NDArray[np.int32]]:
        codes = (self.relation.codes[column] for column in columns)
        return [np.unique(own[own != NULL_CODE])[:most] for own in codes]

    def value_pairs(self, a: int, b: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        left, right = self.relation.codes[[a, b]].astype(np.int64)
        pairs = np.unique((left << 32 | right)[(left != NULL_CODE) & (right != NULL_CODE)])
        return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)

    def commonest(self, column: int) -> Any:
        code = int(np.bincount(self.relation.codes[column] + 1).argmax()) - 1
        dictionary = self.relation.dictionaries[self.relation.columns[column].domain]
        return None if code == NULL_CODE else dictionary[code].as_py()

    def distributions(self) -> list[Histogram | Frequent | None]:
        return [distribution(self.relation, column) for column in range(len(self.relation.columns))]

    def repeated(self, columns: Sequence[int]) -> int:
        return self._whole.classes(columns).repeated if len(columns) else 0

    def broken(self, rule: Rule, limit: int | None) -> tuple[Relation, Exceptions]:
        return self.relation, exceptions.exceptions_of(self.relation, self, rule, self._options.nulls).first(limit)


def chosen_rows(rows: int, most: int, seed: int) -> NDArray[np.int64]:
    """Random rows, ascending; all where there are no more than `most`."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
