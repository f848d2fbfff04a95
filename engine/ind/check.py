"""Check of given inclusion dependencies, with the values and rows that violate them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tuplewise.engine.errors import LimitReached, placed
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.found import (
    SHOWN_ROWS,
    CheckedInds,
    Examples,
    IndCheck,
    TableFound,
    not_compared,
    undecided_note,
)
from tuplewise.engine.ind.places import Placement, open_tables, place_for
from tuplewise.engine.ind.tables import options_for_columns, options_of_tables
from tuplewise.engine.ind.tuples import MISSING, CodedTables, TupleSet
from tuplewise.engine.options import IndCheckOptions, LoadOptions
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.peek import known_columns
from tuplewise.engine.table.read_table import ReadTable
from tuplewise.engine.table.reader import choose_reader, open_here
from tuplewise.engine.table.relation import NULL_CODE, Column
from tuplewise.engine.table.schema import repair_names
from tuplewise.engine.table.source import find_source

Names = Mapping[str, Sequence[str]]


def check_dependencies(
    tables: Mapping[str, Any],
    read: Callable[[Names], Sequence[InclusionDependency]],
    options: IndCheckOptions,
    load_options: LoadOptions | None = None,
    run: Run | None = None,
) -> CheckedInds:
    """Check inclusion dependencies: in this process, or by Spark if the tables are large (`distributed.place_for`).

    Parameters
    ----------
    tables : paths, frames or Relations, by name
    read : returns the dependencies, given the columns of each table
    run : None: a run that begins now, with the options' limits

    Returns
    -------
    CheckedInds
        One check per dependency, in the order of `read`. After a limit, the rest are undecided and a note says so.

    Raises
    ------
    InputError : if a table can't be read
    RuleError : from `read`

    Notes
    -----
    A dependency holds if no value is missing or, with `options.error`, if at most that share of distinct values is.
    Nulls: rows with a null in a dependent column are counted apart. Rows with a null in a referenced column provide no
    value; such a null hides no missing value, unlike in SQL's `NOT IN`. Columns whose types are not compared (text and
    numbers) have no value in common: the check says so and goes on.
    Only the columns named in dependencies are read. Time and memory: those of a `tuples.TupleSet`, for each dependency.
    """
    run, clock = run or Run(options), Clock()
    of_tables = options_of_tables(tables, load_options)
    names = {name: _columns_of(table, of_tables[name]) for name, table in tables.items()}
    inds = read(names)
    needed: dict[str, dict[str, None]] = {}
    for attribute in (a for ind in inds for a in (*ind.dependent, *ind.referenced)):
        needed.setdefault(attribute.table, {})[attribute.column] = None
    columns = {table: [c for c in names[table] if c in wanted] for table, wanted in needed.items()}
    used = [name for name in tables if name in needed]
    unused = [f"table {name!r} is in no dependency: it was not read" for name in tables if name not in needed]
    place = Placement(False, "no table is read")
    if used:
        place = place_for({name: tables[name] for name in used}, options, load_options or LoadOptions())
    if place.on_spark:
        there = {name: options_for_columns(of_tables[name], columns[name]) for name in used}
        used_tables = {name: tables[name] for name in used}
        from tuplewise.engine.ind.distributed_check import check_on_spark

        found = check_on_spark(used_tables, inds, options, there, reason=place.reason, run=run)
        return replace(found, notes=(*unused, *found.notes))
    rows = CodedTables(tables, of_tables, columns, as_text=options.as_text)
    for k, name in enumerate(used):
        run.tell("reading", k / len(used))
        rows.table(name)
    clock.lap("load")
    checks, reached = _check_all(rows, inds, options, run)
    clock.lap("checking")
    read_tables = [rows.table(name) for name in used]
    notes = [note for table in read_tables for note in placed(table.name, table.notes)]
    notes += unused
    if reached is not None:
        notes.append(undecided_note(reached, checks))
    return CheckedInds(
        tables=tuple(_described(rows, table) for table in read_tables),
        checks=tuple(checks),
        options=options,
        work="driver",
        work_reason=place.reason,
        timings_seconds=clock.seconds,
        notes=tuple(notes),
        spark=next((table.spark for table in read_tables if table.spark is not None), None),
    )


def _columns_of(table: Any, options: LoadOptions) -> list[str]:
    """The columns to read from a table. The table is opened if there is no other way to know them."""
    known = known_columns(table, replace(options, columns=None, exclude=(), types={}))
    if known is None and isinstance(table, (str, os.PathLike)):
        source = find_source(os.fspath(table))
        if choose_reader(source, options).name == "arrow":
            known = repair_names(open_here(source, options).names)[0]
    if known is None:
        selection = open_tables({"table": table}, options)["table"].selection
        return [selection.names[i] for i in selection.kept]
    wanted = known if options.columns is None else options.columns
    return [name for name in known if name in wanted and name not in options.exclude]


def _check_all(
    rows: CodedTables, inds: Sequence[InclusionDependency], options: IndCheckOptions, run: Run
) -> tuple[list[IndCheck], str | None]:
    """A check of each dependency, and the limit that ended the work, if any."""
    checks: list[IndCheck] = []
    reached = None
    report = run.minded("checking")
    for ind in inds:
        try:
            report(len(checks) / len(inds))
        except LimitReached as limit:
            reached = str(limit)
            break
        checks.append(_check_one(rows, ind, options))
    checks += [IndCheck(ind, None) for ind in inds[len(checks) :]]
    return checks, reached


def _check_one(rows: CodedTables, ind: InclusionDependency, options: IndCheckOptions) -> IndCheck:
    started = time.perf_counter()
    table = ind.dependent[0].table
    dependent = TupleSet([rows.codes(a) for a in ind.dependent])
    referenced = TupleSet([rows.codes(b) for b in ind.referenced])
    found = referenced.find([rows.translated(a, b) for a, b in zip(ind.dependent, ind.referenced, strict=True)])
    lacking = np.flatnonzero(found == MISSING)
    numbers, first, counts = np.unique(dependent.numbers[lacking], return_index=True, return_counts=True)
    missing = len(numbers)
    best = np.lexsort((first, -counts))[: options.examples]
    return IndCheck(
        ind,
        holds=missing <= Fraction(options.error) * dependent.distinct,
        dependent_distinct=dependent.distinct,
        referenced_distinct=referenced.distinct,
        missing_values=missing,
        rows_missing=len(lacking),
        rows_null=int(np.count_nonzero(found == NULL_CODE)),
        reason=not_compared(ind, rows.type_of, options.as_text) if dependent.distinct and referenced.distinct else None,
        examples=Examples(
            tuple(rows.values(a, lacking[first[best]]) for a in ind.dependent),
            counts[best],
            tuple(
                tuple(rows.positions(table, lacking[dependent.numbers[lacking] == n][:SHOWN_ROWS]).tolist())
                for n in numbers[best]
            ),
        ),
        seconds=time.perf_counter() - started,
    )


def _described(rows: CodedTables, table: ReadTable) -> TableFound:
    """Description of a table and its columns that were read."""
    columns = tuple(
        Column(c.name, c.type, c.why, rows.distinct(Attribute(table.name, c.name)), int((c.index == NULL_CODE).sum()))
        for c in table.columns
    )
    return TableFound(table.name, table.path, table.rows, columns)
