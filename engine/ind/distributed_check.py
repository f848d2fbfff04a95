"""Check of inclusion dependencies of tables too large for one machine, by Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import placed
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.found import CheckedInds, Examples, IndCheck, TableFound, not_compared, undecided_note
from tuplewise.engine.ind.places import open_tables, type_for_spark
from tuplewise.engine.options import IndCheckOptions, LoadOptions
from tuplewise.engine.run import TIME_LIMIT, Clock, Run
from tuplewise.engine.spark import jobs
from tuplewise.engine.spark.missing_values import COUNT, FIRST, Missing, column_counts, find_missing, keyed
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import Column
from tuplewise.engine.table.spark_encode import TypedExpression
from tuplewise.engine.table.spark_load import in_session, spark_failures
from tuplewise.engine.table.spark_rows import ROW
from tuplewise.engine.table.spark_values import TypedFrame, comparable, needs_wide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_on_spark(
    tables: Mapping[str, Any],
    inds: Sequence[InclusionDependency],
    options: IndCheckOptions,
    load_options: Mapping[str, LoadOptions],
    *,
    reason: str,
    run: Run | None = None,
) -> CheckedInds:
    """Check inclusion dependencies in tasks of Spark. Counts are the same as from `check.check_dependencies`.

    Parameters
    ----------
    tables : paths and Spark frames, by name: exactly those named in the dependencies
    load_options : how each is read, by name: only the columns named in the dependencies
    reason : why Spark is used

    Raises
    ------
    InputError : if a column can only be read in this process

    Notes
    -----
    One row is named for each example. Examples with equal numbers of rows may differ from those found in-process.
    Cost: `missing_values.find_missing` for each dependency, and three jobs for each table.
    """
    run, clock = run or Run(), Clock()
    opened = open_tables(tables, load_options)
    session = next(iter(opened.values())).session
    work = _Work(opened, options)
    checks: list[IndCheck] = []
    described: list[TableFound] = []
    reached = False
    try:
        with jobs.until(session.spark, run.deadline):
            for name in opened:
                described.append(work.table(name))
            clock.lap("load")
            for ind in inds:
                run.tell("checking", len(checks) / len(inds))
                checks.append(work.check(ind, session.spark))
    except TimeoutError:
        reached = True
    finally:
        work.close()
    clock.lap("checking")
    checks += [IndCheck(ind, None) for ind in inds[len(checks) :]]
    notes = [note for name, typed in work.typed.items() for note in placed(name, typed.notes)]
    return CheckedInds(
        tables=tuple(described),
        checks=tuple(checks),
        options=options,
        work="spark",
        work_reason=reason,
        timings_seconds={"session": sum(o.timings["session"] for o in opened.values()), **clock.seconds},
        notes=(*notes, *([undecided_note(TIME_LIMIT, checks)] if reached else [])),
        spark={"version": session.version, "master": session.master},
        device_reason="values are joined in tasks of Spark",
    )


class _Work:
    """Typed tables, and checks of them."""

    def __init__(self, opened: Mapping[str, TableInSpark], options: IndCheckOptions) -> None:
        self._opened, self._options = opened, options
        self.typed: dict[str, TypedFrame] = {}
        self._columns: dict[Attribute, TypedExpression] = {}

    def close(self) -> None:
        for typed in self.typed.values():
            typed.close()

    def table(self, name: str) -> TableFound:
        """Type a table, and count in its columns."""
        opened = self._opened[name]
        typed = self.typed[name] = type_for_spark(opened, self._options.as_text)
        names = [opened.selection.names[i] for i in opened.selection.kept]
        self._columns.update((Attribute(name, n), c) for n, c in zip(names, typed.typed, strict=True))
        values = [comparable(c, wide=needs_wide(typed.typed))[1] for c in typed.typed]
        with spark_failures(name):
            counts = column_counts(typed.base, values)
        columns = tuple(
            Column(n, c.type, c.why, distinct, typed.rows - filled)
            for n, c, (distinct, filled) in zip(names, typed.typed, counts, strict=True)
        )
        return TableFound(name, opened.path, typed.rows, columns)

    def check(self, ind: InclusionDependency, spark: SparkSession) -> IndCheck:
        started = time.perf_counter()
        left = [self._columns[a] for a in ind.dependent]
        right = [self._columns[b] for b in ind.referenced]
        wide = needs_wide([*left, *right])
        reason = not_compared(ind, lambda a: self._columns[a].type, self._options.as_text)
        dependent, referenced = self.typed[ind.dependent[0].table], self.typed[ind.referenced[0].table]
        shown = [c.expression for c in left]
        with spark_failures(f"{ind.dependent[0].table}, {ind.referenced[0].table}"):
            found = find_missing(
                in_session(keyed(dependent.base, [comparable(c, wide=wide)[1] for c in left], ROW, shown), spark),
                in_session(keyed(referenced.base, [comparable(c, wide=wide)[1] for c in right], ROW), spark),
                columns=ind.size,
                compared=reason is None,
                examples=self._options.examples,
            )
        return IndCheck(
            ind,
            holds=found.missing_values <= Fraction(self._options.error) * found.distinct,
            dependent_distinct=found.distinct,
            referenced_distinct=found.referenced_distinct,
            missing_values=found.missing_values,
            rows_missing=found.rows_missing,
            rows_null=dependent.rows - found.rows,
            reason=reason if found.distinct and found.referenced_distinct else None,
            examples=_examples(found, dependent, ind.size),
            seconds=time.perf_counter() - started,
        )


def _examples(found: Missing, dependent: TypedFrame, columns: int) -> Examples:
    table = found.examples.combine_chunks()
    places = dependent.places.places(np.asarray(table[FIRST].to_numpy(), dtype=np.int64))
    return Examples(
        tuple(table[f"v{i}"].combine_chunks() for i in range(columns)),
        np.asarray(table[COUNT].to_numpy(), dtype=np.int64),
        tuple((place,) for place in places.tolist()),
    )
