"""Figures of the columns of a table in Spark, in the form needed by predicate spaces and rankings."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.outcome_counts import Values, compare_values, operand_columns, outcome_totals
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.shared_values import exact_sum
from tuplewise.engine.spark.run import count_where
from tuplewise.engine.table import spark_figures
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.words import EQUAL, GREATER, LESS, UNKNOWN


@dataclass(frozen=True)
class SparkFigures:
    """Figures for building a predicate space (`shared_values.ColumnFigures`) and for ranking constraints."""

    table: EncodedFrame

    def shared_distinct(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
        """See `shared_values.ColumnFigures`."""
        return spark_figures.shared_distinct(self.table, left, right)

    def means(self, columns: NDArray[np.int32]) -> tuple[Fraction | None, ...]:
        """See `shared_values.ColumnFigures`."""
        wanted = columns.tolist()
        means: list[Fraction | None] = [None] * len(self.table.header.columns)
        for column, mean in spark_figures.means_of_ranges(self.table, wanted).items():
            means[column] = mean
        for column in wanted:
            counted = spark_figures.ranked_values(self.table, column)
            if counted is not None and len(counted.counts):
                total = exact_sum(counted.values, counted.counts)
                means[column] = None if total is None else total / int(counted.counts.sum())
        return tuple(means)

    def outcome_counts(self, space: PredicateSpace) -> NDArray[np.int64]:
        """See `outcome_counts.table_outcome_counts`. Fetches the values of columns that are compared with others."""
        nulls, rows = space.options.nulls == "value", self.table.rows
        equal = spark_figures.equal_pairs(self.table, nulls=nulls)
        values: dict[int, Values] = {}

        def compare(left: int, right: int) -> NDArray[np.int64]:
            if left == right:
                known, same = equal[left]
                found = np.zeros(4, dtype=np.int64)
                found[[LESS, EQUAL, GREATER]] = (known * known - same) // 2, same, (known * known - same) // 2
                found[UNKNOWN] = rows * rows - known * known
                return found
            for column in (left, right):
                if column not in values:
                    values[column] = spark_figures.value_counts(self.table, column, nulls=nulls)
            return compare_values(values[left], values[right], rows)

        return outcome_totals(space, rows, self._own_outcomes(space), compare)

    def _own_outcomes(self, space: PredicateSpace) -> list[NDArray[np.int64]]:
        """Number of rows with each outcome of each group in the pair with itself. One job."""
        conditions = []
        for g in range(space.groups):
            t, u = f"c{space.left[g]}", f"c{space.right[g]}"
            unknown = "false" if space.options.nulls == "value" else f"({t} = {NULL_CODE} or {u} = {NULL_CODE})"
            less = f"{t} < {u}" if space.ordered[g] else f"{t} != {u}"
            greater = f"{t} > {u}" if space.ordered[g] else "false"
            by_outcome = {LESS: less, EQUAL: f"{t} = {u}", GREATER: greater}
            conditions += [f"({by_outcome[o]}) and not {unknown}" for o in (LESS, EQUAL, GREATER)] + [unknown]
        counts = count_where(self.table.frame, conditions)
        return list(np.array(counts, dtype=np.int64).reshape(-1, 4))

    def rows_with_null(self, space: PredicateSpace) -> int:
        """Number of rows with a null in some column of the space. One job."""
        columns = space.columns.tolist()
        if not columns:
            return 0
        return count_where(self.table.frame, [" or ".join(f"c{i} = {NULL_CODE}" for i in columns)])[0]

    def undecided_pairs(self, space: PredicateSpace) -> int:
        """See `outcome_counts.undecided_pairs`. One job."""
        rows = self.table.rows
        if space.options.nulls != "unknown" or rows < 2:
            return 0
        as_t, as_u = (" and ".join(f"c{c} != {NULL_CODE}" for c in columns) for columns in operand_columns(space))
        sides = [as_t or "true", as_u or "true"]
        t, u, both = count_where(self.table.frame, [*sides, " and ".join(sides)])
        return rows * (rows - 1) - (t * u - both)
