"""Profiling of a table in Spark: candidates come from a sample in this process, all counts from tasks.

Beside the sample only sums, shown values, and some values of possible keys and of numbers stored as text are collected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tuplewise.engine.dc.violations.distributed import check_on_spark, count_pairs_on_spark
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.options import DcCheckOptions, ProfileOptions
from tuplewise.engine.profile import measures
from tuplewise.engine.profile.candidates import Columns
from tuplewise.engine.profile.columns import BINS, FEW_VALUES, SHOWN_VALUES, Frequent, Histogram, as_numbers, spelled
from tuplewise.engine.profile.counting import CandidateCounts, ColumnComparison, counted_fd, counted_key, counted_order
from tuplewise.engine.profile.exceptions import LISTED_PAIRS, Exceptions, in_contradicting_pairs
from tuplewise.engine.profile.rows import ClassSizes, CountedRelation
from tuplewise.engine.profile.rule import Order, Rule, order_constraint, order_constraints
from tuplewise.engine.profile.table import SomeValues, chosen_rows
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.spark import broken_rows, jobs
from tuplewise.engine.spark.agreeing import codes_at, distinct_rows
from tuplewise.engine.spark.class_counts import (
    COPIES,
    WHOLE,
    Ask,
    ClassFigures,
    count_classes,
    count_removals,
    distinct_pairs,
)
from tuplewise.engine.spark_table import within_limit
from tuplewise.engine.table import spark_figures
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.device import pick_device

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_PAIRS_HERE = 1 << 20
"""Different pairs of values of two columns that come here, for the fewest rows to remove from a whole table."""


class TableInTasks:
    """A table in Spark that is profiled: see `table.ProfiledTable`. It keeps the table as long as it is there itself.

    Notes
    -----
    Jobs: one for all columns; for each `at_once` left sides of candidates one, or two where there are nulls; for order
    rules those of rule checking; and a few for what is shown of columns. Each sends the codes that it is about, and no
    task holds more than the classes of its share of the rows (`engine.spark.class_counts`).
    """

    at_once = 64

    def __init__(self, table: EncodedFrame, options: ProfileOptions, run: Run) -> None:
        self.relation = replace(table.header, table_rows=table.rows)
        self.notes: list[str] = []
        self._table, self._options, self._run = table, options, run
        self._spark = table.frame.sparkSession
        self._columns = range(len(self.relation.columns))
        table.close_with(self)

    def _within_time(self) -> AbstractContextManager[None]:
        return within_limit(self._spark, self._run.deadline)

    @cached_property
    def _frame(self) -> DataFrame:
        """The codes as they are counted: where nulls are values, one higher, so that none is -1."""
        shift = int(self._options.nulls == "value")
        return self._table.frame.selectExpr("position", *(f"c{c} + {shift} as c{c}" for c in self._columns))

    @cached_property
    def _figures(self) -> list[spark_figures.ValueFigures]:
        with self._within_time():
            return spark_figures.value_figures(self._table.frame, len(self._columns), SHOWN_VALUES)

    @cached_property
    def _nulls(self) -> NDArray[np.int64]:
        """Nulls of each column, where they are values."""
        counted = self._options.nulls == "value"
        return np.array([c.nulls if counted else 0 for c in self.relation.columns], dtype=np.int64)

    @property
    def count(self) -> int:
        """See ProfiledTable."""
        return self._table.rows

    @cached_property
    def filled(self) -> NDArray[np.int64]:
        """See ProfiledTable."""
        return np.array([self.count - c.nulls for c in self.relation.columns], dtype=np.int64) + self._nulls

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """See ProfiledTable."""
        return np.array([c.distinct for c in self.relation.columns], dtype=np.int64) + (self._nulls > 0)

    @cached_property
    def differing(self) -> NDArray[np.float64]:
        """See ProfiledTable."""
        squares = [figures.squares for figures in self._figures] + self._nulls**2
        both = zip(self.filled.tolist(), squares.tolist(), strict=True)
        return np.array([measures.differing_by_squares(*own) for own in both])

    @cached_property
    def largest(self) -> NDArray[np.int64]:
        """See ProfiledTable."""
        return np.maximum([f.best[0][1] if f.best else 0 for f in self._figures], self._nulls)

    @cached_property
    def _positions(self) -> int:
        """Positions that rows may have, from 0: more than there are rows where bad ones were left out."""
        last = self._table.frame.agg({"position": "max"}).collect()[0][0]
        return 0 if last is None else int(last) + 1

    def _codes_of(self, most: int, seed: int) -> NDArray[np.int32]:
        """Codes of random rows, in order of position: where no bad row was left out, of those that are drawn here."""
        if self.count <= most:
            return codes_at(self._frame, len(self._columns), np.arange(self._positions))[1]
        return codes_at(self._frame, len(self._columns), chosen_rows(self._positions, most, seed))[1]

    def sample(self, most: int, seed: int) -> CountedRelation:
        """See ProfiledTable."""
        with self._within_time():
            codes = self._codes_of(most, seed)
        for own in codes:  # without gaps, since kernels count by codes
            values, own[:] = np.unique(own, return_inverse=True)
            own -= int(len(values) > 0 and values[0] == NULL_CODE)
        searched = "them" if codes.shape[1] == self.count else f"{codes.shape[1]:,} of them"
        self.notes.append(
            f"{self.relation.name}: rules were counted in Spark ({self._spark.sparkContext.master}) on all "
            f"{self.count:,} rows; candidates come from {searched}, searched here"
        )
        # What is counted of nulls as values is above 0 already.
        return CountedRelation(replace(self.relation, codes=codes), "unknown", pick_device(self._options.device))

    def glance(self, most: int, seed: int) -> NDArray[np.int32]:
        """See ProfiledTable."""
        with self._within_time():
            return self._codes_of(most, seed)

    def count_fds(self, wanted: Mapping[Columns, Sequence[int]]) -> dict[tuple[Columns, int], CandidateCounts]:
        """See ProfiledTable."""
        asks = [Ask(left, tuple(targets)) for left, targets in wanted.items()]
        with self._within_time():
            found = count_classes(self._frame, asks, self._options.device)
            figures = {(a.left, t): own[t] for a, own in zip(asks, found, strict=True) for t in a.targets}
            partly = [(left, t) for (left, t), own in figures.items() if own.rows < self.filled[t]]
            differing = self._differing_among(partly)
        return {names: _as_fd(own, differing.get(names, float(self.differing[names[1]])))
                for names, own in figures.items()}  # fmt: skip

    def count_keys(self, keys: Sequence[Columns]) -> list[CandidateCounts]:
        """See ProfiledTable."""
        with self._within_time():
            found = count_classes(self._frame, [Ask(columns) for columns in keys], self._options.device)
            partly = [(key, c) for key in keys if any(self.filled[c] < self.count for c in key) for c in key]
            differing = self._differing_among(partly)
        return [
            counted_key(_sizes(own[WHOLE]), [differing.get((key, c), float(self.differing[c])) for c in key])
            for key, own in zip(keys, found, strict=True)
        ]

    def _differing_among(self, partly: Sequence[tuple[Columns, int]]) -> dict[tuple[Columns, int], float]:
        """Shares of pairs that differ on a column, among the rows with a value in it and in other columns."""
        sums = spark_figures.squares_among(self._frame, partly)
        return {names: measures.differing_by_squares(*own) for names, own in zip(partly, sums, strict=True)}

    def contradictions(self, orders: Sequence[Order]) -> list[int]:
        """See ProfiledTable."""
        rules = order_constraints(self.relation.column_names, orders)
        how: dict[str, Any] = {"nulls": self._options.nulls, "device": self._options.device}
        with self._within_time():
            return count_pairs_on_spark(self._table, rules, deadline=self._run.deadline, **how)

    def count_orders(self, orders: Sequence[Order], contradictions: Sequence[int]) -> list[CandidateCounts]:
        """See ProfiledTable."""
        asks = []
        for context, a, b, _ in orders:
            asks += [
                Ask(context, (), (a, b)), Ask((*context, a), (), (b,)), Ask((*context, b), (), (a,)),
                Ask((*context, a, b)),
            ]  # fmt: skip
        with self._within_time():
            found = count_classes(self._frame, asks, self._options.device)
        sizes = [_sizes(own[WHOLE]) for own in found]
        of_orders = zip(sizes[::4], sizes[1::4], sizes[2::4], sizes[3::4], contradictions, strict=True)
        return [counted_order(*own) for own in of_orders]

    def rows_to_remove(self, orders: Sequence[Order]) -> list[int]:
        """See ProfiledTable. Of the whole table by the pairs of values that there are, where these are few; else
        rows in contradicting pairs, which a note says."""
        inside = [order for order in orders if order[0]]
        with self._within_time():
            removed = dict(zip(inside, count_removals(self._frame, inside) if inside else [], strict=True))
            for order in orders:
                if order not in removed:
                    removed[order] = self._to_remove_from_all(order)
        return [removed[order] for order in orders]

    def _to_remove_from_all(self, order: Order) -> int:
        _, a, b, ascending = order
        pairs = distinct_pairs(self._frame, a, b, MOST_PAIRS_HERE)
        if pairs is not None:
            left, right, copies = (np.asarray(pairs[name].to_numpy(), dtype=np.int64) for name in ("a", "b", COPIES))
            return int(copies.sum()) - heaviest_chain(left, right if ascending else -right, copies)
        rule = order_constraints(self.relation.column_names, [order])
        options = DcCheckOptions(pairs=1, nulls=self._options.nulls, device=self._options.device)
        found = check_on_spark(self._table, rule, options, Run(deadline=self._run.deadline))
        rows = found.rules[0].violating_rows
        if rows is None:
            raise LimitReached(TIME_LIMIT)
        names = self.relation.column_names
        self.notes.append(
            f"{names[a]}, {names[b]}: more than {MOST_PAIRS_HERE:,} different pairs of values; exceptions of their "
            f"order are the {rows:,} rows in contradicting pairs, not the fewest to remove"
        )
        return rows

    def compare_columns(self, pairs: Sequence[tuple[int, int]]) -> list[ColumnComparison]:
        """See ProfiledTable."""
        with self._within_time():
            found = spark_figures.compare_columns(self._frame, pairs)
        return [
            ColumnComparison(rows, above, equal, by_chance / max(rows, 1), equal_by_chance / max(rows, 1))
            for rows, above, equal, by_chance, equal_by_chance in found
        ]

    def some_values(self, column: int, most: int, seed: int) -> SomeValues:
        """See ProfiledTable."""
        figures, distinct = self._figures[column], self.relation.columns[column].distinct
        with self._within_time():
            if distinct <= most:
                codes = spark_figures.lowest_codes(self._table.frame, column, most)
            else:
                ranks = chosen_rows(distinct, most, seed)
                codes = spark_figures.codes_at_ranks(self._table.frame, column, ranks)
        return SomeValues(codes, figures.low, figures.high, figures.rows)

    def lowest_values(self, columns: Sequence[int], most: int) -> list[NDArray[np.int32]]:
        """See ProfiledTable."""
        with self._within_time():
            return jobs.at_once(
                self._spark, [partial(spark_figures.lowest_codes, self._table.frame, c, most) for c in columns]
            )

    def value_pairs(self, a: int, b: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """See ProfiledTable. More than MOST_PAIRS_HERE are too many."""
        with self._within_time():
            found = distinct_pairs(self._table.frame, a, b, MOST_PAIRS_HERE)
        if found is None:
            return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        found = found.sort_by([("a", "ascending"), ("b", "ascending")])
        return found["a"].to_numpy(), found["b"].to_numpy()

    def commonest(self, column: int) -> Any:
        """See ProfiledTable."""
        best, described = self._figures[column].best, self.relation.columns[column]
        if not best or described.nulls >= best[0][1]:
            return None
        return self._shown[described.domain][best[0][0]]

    @cached_property
    def _shown(self) -> dict[str, dict[int, Any]]:
        """Values by domain and code: those that are most frequent, lowest or highest in a column. A job a domain."""
        codes: dict[str, set[int]] = {}
        for column, figures in zip(self.relation.columns, self._figures, strict=True):
            if figures.best:
                own = codes.setdefault(column.domain, set())
                own |= {figures.low, figures.high, *(code for code, _ in figures.best)}
        values = {}
        with jobs.until(self._spark, None):
            for domain, own in codes.items():
                wanted = np.array(sorted(own), dtype=np.int32)
                taken = self.relation.dictionaries[domain].take(pa.array(wanted))  # type: ignore[index]
                values[domain] = dict(zip(wanted.tolist(), taken.to_pylist(), strict=True))
        return values

    def distributions(self) -> list[Histogram | Frequent | None]:
        """See ProfiledTable."""
        with self._within_time():
            steps, ends = self._steps()
        return [self._spread(c, steps.get(c), ends.get(c)) for c in self._columns]

    def _steps(self) -> tuple[dict[int, NDArray[np.int64]], dict[int, tuple[float, float]]]:
        """Rows in steps of equal width, and the ends of the steps, of the columns that are shown so."""
        many = [c for c in self._columns if self._in_steps(c)]
        doubles = [c for c in many if self.relation.columns[c].type == "double"]
        ends = spark_figures.finite_ends(self._table, doubles)
        for c in (c for c in many if c not in doubles):
            codes = pa.array([self._figures[c].low, self._figures[c].high], pa.int32())
            low, high = as_numbers(self.relation.dictionaries[self.relation.columns[c].domain].take(codes)).tolist()
            ends[c] = (low, high)
        wide = {c: both for c, both in ends.items() if both[0] < both[1]}
        return spark_figures.bin_values(self._table, wide, BINS, as_numbers), ends

    def _in_steps(self, column: int) -> bool:
        return self.relation.columns[column].ordered and self.relation.columns[column].distinct > FEW_VALUES

    def _spread(
        self, column: int, steps: NDArray[np.int64] | None, ends: tuple[float, float] | None
    ) -> Histogram | Frequent | None:
        figures = self._figures[column]
        if not figures.best:
            return None
        values = self._shown[self.relation.columns[column].domain]
        if self._in_steps(column):
            counts = (figures.rows,) if steps is None else tuple(steps.tolist())
            low, high = values[figures.low], values[figures.high]
            if ends is not None and self.relation.columns[column].type == "double":
                low, high = ends  # infinite ones lie beyond
            return Histogram(spelled(low), spelled(high), counts)
        shown = tuple((spelled(values[code]), rows) for code, rows in figures.best)
        return Frequent(shown, figures.rows - sum(rows for _, rows in shown))

    def repeated(self, columns: Sequence[int]) -> int:
        """See ProfiledTable."""
        if not len(columns):
            return 0
        chosen = self._table.frame.selectExpr("position", *(f"c{c} as c{i}" for i, c in enumerate(columns)))
        with self._within_time():
            return self.count - int(distinct_rows(chosen, len(columns)).count())

    def broken(self, rule: Rule, limit: int | None) -> tuple[Relation, Exceptions]:
        """See ProfiledTable. Of order rules at most 100 rows; no time limit is heeded."""
        with jobs.until(self._spark, None):
            if rule.kind == "od":
                options = DcCheckOptions(pairs=LISTED_PAIRS, nulls=self._options.nulls, device=self._options.device)
                against = order_constraint(self.relation.column_names, rule)
                checked = check_on_spark(self._table, [against], options)
                return checked.relation, in_contradicting_pairs(checked.rules[0]).first(limit)
            if rule.kind == "key":
                found = broken_rows.repeats(self._frame, rule.left, limit)
            elif rule.kind == "row":
                found = broken_rows.not_so(self._frame, rule.left[0], rule.sense, rule.right[0], limit)
            else:
                found = broken_rows.minorities(self._frame, rule.left, rule.right[0], limit)
            positions = np.unique(found[:2])
            positions = positions[positions >= 0]
            rows, partners, alike, together = found
            partners = np.where(partners < 0, -1, np.searchsorted(positions, partners))
            relation = self._table.excerpt(positions)
            return relation, Exceptions(np.searchsorted(positions, rows), partners, alike, together)


def _as_fd(figures: ClassFigures, differing: float) -> CandidateCounts:
    exceptions = figures.rows - figures.majority
    return counted_fd(figures.rows, figures.classes, exceptions, figures.contradictions, differing)


def _sizes(figures: ClassFigures) -> ClassSizes:
    return ClassSizes(figures.rows, figures.classes, figures.pairs)


def heaviest_chain(left: NDArray[np.int64], right: NDArray[np.int64], weights: NDArray[np.int64]) -> int:
    """The greatest weight of a set of pairs, int64 (pairs,) each, none of which contradicts the order of another.

    Notes
    -----
    Pairs are taken by `left`, then `right`; kept are the ends on the right that no lower end outweighs. Cost: a search
    by halving for each pair.

    Source: Fredman, "On computing the length of longest increasing subsequences", Discrete Mathematics 11(1), 1975;
    here with weights, so that an end may replace several.

    Examples
    --------
    >>> three = np.array([0, 1, 2])
    >>> heaviest_chain(three, np.array([5, 1, 2]), np.array([9, 3, 4]))
    9
    """
    ends: list[int] = []  # ascending, as are the weights of the best chains that they end
    totals: list[int] = []
    order = np.lexsort((right, left))
    end: int
    weight: int
    for end, weight in zip(right[order].tolist(), weights[order].tolist(), strict=True):
        place = bisect_right(ends, end)
        total = weight + (totals[place - 1] if place else 0)
        first = place - 1 if place and ends[place - 1] == end else place
        while place < len(ends) and totals[place] <= total:
            place += 1
        ends[first:place], totals[first:place] = [end], [total]
    return max(totals, default=0)
