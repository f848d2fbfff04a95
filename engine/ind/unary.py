"""The attribute clustering of tables, in this process: the distinct values of columns, and the columns with each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tuplewise.engine.errors import placed
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.csv_cells import CsvCells, read_csv_cells
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.found import Clustered, TableFound
from tuplewise.engine.ind.values import FAMILIES, Family, canonical_array, family_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.arrow_text import count_spellings, one_number_twice, parse
from tuplewise.engine.table.encode import TypedColumn, indexed
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.in_spark import IN_PROCESS_BYTES
from tuplewise.engine.table.read_table import ReadTable, typed
from tuplewise.engine.table.reader import choose_reader, read_table
from tuplewise.engine.table.relation import NULL_CODE, Column, Relation, TypeName
from tuplewise.engine.table.schema import repair_names, selected_columns, type_overrides
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.text_types import Spelling, SpellingCount, as_codes, decide, may_be_codes
from tuplewise.engine.table.to_text import to_spark_text
from tuplewise.engine.table.typing_columns import ASKED_FOR
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.distinct import DistinctCells, ValueSets, padded
from tuplewise.gpu_kernels.words import mask_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING = "reading"  # stage name for progress


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The distinct values of a column, as canonical bytes of its family, in parts that may overlap."""

    name: str
    type: TypeName
    why: str
    parts: list[DistinctCells]
    nulls: int


@dataclass(frozen=True, eq=False)
class _Table:
    path: str | None
    rows: int
    columns: list[ColumnValues]
    notes: list[str]
    how: str
    spark: Mapping[str, str] | None = None


class _Misfit(Exception):
    """A value that does not fit the requested type; loading reports which."""


def cluster_tables(
    tables: Mapping[str, Any],
    load_options: LoadOptions | Mapping[str, LoadOptions] | None = None,
    *,
    as_text: bool = False,
    spark: SparkSession | None = None,
    run: Run | None = None,
) -> Clustered:
    """The attribute clustering of tables.

    Parameters
    ----------
    tables : paths, frames or Relations, by name
    load_options : how they are read; by table name if this differs between tables
    as_text : compare all values as text: as it stands in the file, or as Spark casts typed values to it

    Raises
    ------
    InputError
        If a table can't be read.
    LimitReached
        If time or memory runs out; half of the values are of no use.

    Notes
    -----
    Local CSV files are read by `read_csv_cells`, other tables that this process can read by `read_table`, the rest
    through Spark. Each table's distinct values are added to those of the tables before, so memory holds all distinct
    values once, and those of one table's columns a second time. Cost: each byte of a file, each cell once, each
    distinct value of each column once.

    Source: see clusters.py. Departure: Spider (Bauckmann et al., "Efficiently computing inclusion dependencies for
    schema discovery", 2006) sorts each column and merges all; here each value is found in a hash table, and carries a
    node of a tree of attribute sets instead of a list.
    """
    run, clock = run or Run(), Clock()
    report = run.stage(READING)
    described: list[TableFound] = []
    attributes: list[Attribute] = []
    families: list[Family] = []
    sets: dict[Family, ValueSets] = {}
    notes: list[str] = []
    ways: dict[str, str] = {}
    session = None
    for name, table in tables.items():
        options = load_options.get(name) if isinstance(load_options, Mapping) else load_options
        found = _read(table, options or LoadOptions(), name, as_text, spark, run)
        clock.lap("reading")
        first = len(attributes)
        attributes += [Attribute(name, column.name) for column in found.columns]
        families += [family_of(column.type, as_text) for column in found.columns]
        _join(sets, families, first, found.columns)
        clock.lap("joining")
        columns = tuple(Column(c.name, c.type, c.why, 0, c.nulls) for c in found.columns)
        described.append(TableFound(name, found.path, found.rows, columns))
        notes += placed(name, found.notes)
        ways[name] = found.how
        session = found.spark or session
        if report is not None:
            report(1.0)
    clustering = _clustering(attributes, families, sets)
    clock.lap("joining")
    return Clustered(
        tables=tuple(_with_distinct(described, clustering.distinct)),
        clustering=clustering,
        notes=tuple(notes),
        timings_seconds=clock.seconds,
        spark=session,
        search={"read_by": ways, "values": int(clustering.values.sum()), "clusters": len(clustering.values)},
    )


def _join(
    sets: dict[Family, ValueSets], families: Sequence[Family], first: int, columns: Sequence[ColumnValues]
) -> None:
    """Move the columns' values to the sets of their families, and free them."""
    for family in FAMILIES:
        own = [i for i in range(len(columns)) if families[first + i] == family]
        if own:
            sets.setdefault(family, ValueSets()).add([first + i for i in own], [columns[i].parts for i in own])
    for column in columns:
        column.parts.clear()


def _clustering(
    attributes: Sequence[Attribute], families: Sequence[Family], sets: Mapping[Family, ValueSets]
) -> AttributeClustering:
    words = mask_words(len(attributes))
    found = [own.clusters(words) for own in sets.values()]
    masks = np.concatenate([np.empty((0, words), dtype=np.uint64), *(f.masks for f in found)])
    values = np.concatenate([np.empty(0, dtype=np.int64), *(f.values for f in found)])
    return AttributeClustering.of(attributes, families, masks, values)


def _with_distinct(tables: Sequence[TableFound], distinct: NDArray[np.int64]) -> list[TableFound]:
    counts = iter(distinct.tolist())
    return [replace(t, columns=tuple(replace(c, distinct=next(counts)) for c in t.columns)) for t in tables]


def _read(table: Any, options: LoadOptions, name: str, as_text: bool, spark: SparkSession | None, run: Run) -> _Table:
    if isinstance(table, (str, os.PathLike)):
        source = find_source(os.fspath(table))
        if source.format == "csv":

            def kept(header: list[str]) -> list[int]:
                return selected_columns(repair_names(header)[0], options, name)

            cells = read_csv_cells(source, options, kept, run.minded(READING))
            if cells is not None:
                try:
                    return _of_csv(cells, source.given, options, name, as_text)
                except _Misfit:
                    pass  # reading reports the value
    if as_text and _typed_by_spark(table, options):
        return _texts_of_spark(table, options, name, spark)
    read = read_table(table, options, name)
    if as_text or not isinstance(table, Relation):
        read = typed(read, options, as_text=as_text)
    return _of_columns(read, as_text, "Arrow" if read.spark is None else "Spark")


def _typed_by_spark(table: Any, options: LoadOptions) -> bool:
    """Whether Spark reads the table, so that Spark's types decide how values are written."""
    if not isinstance(table, (str, os.PathLike)):
        return kind_of(table) in ("spark", "connect")
    source = find_source(os.fspath(table))
    small = source.local and sum(map(os.path.getsize, source.files)) <= IN_PROCESS_BYTES
    return choose_reader(source, options).name == "spark" and not (source.format == "csv" and small)


def _texts_of_spark(table: Any, options: LoadOptions, name: str, spark: SparkSession | None) -> _Table:
    """The columns as text, cast by Spark; all rows come to this process."""
    from tuplewise.engine.ind.places import open_tables, type_for_spark
    from tuplewise.engine.table.spark_load import spark_failures

    opened = open_tables({name: table}, options, spark)[name]
    typed_frame = type_for_spark(opened, True)
    with closing(typed_frame), spark_failures(name):
        texts = [c.expression.alias(f"c{i}") for i, c in enumerate(typed_frame.typed)]
        arrow = typed_frame.base.select(texts).toArrow()
    columns = []
    for i, (place, column) in enumerate(zip(opened.selection.kept, typed_frame.typed, strict=True)):
        values, index = indexed(arrow[f"c{i}"])
        found = TypedColumn(opened.selection.names[place], "text", column.why, values, index)
        used, nulls = _used_values(found)
        parts = [cells_of(canonical_array("text", used))]
        columns.append(ColumnValues(found.name, found.type, found.why, parts, nulls))
    session = {"version": opened.session.version, "master": opened.session.master}
    return _Table(opened.path, typed_frame.rows, columns, list(typed_frame.notes), "Spark", session)


def _of_csv(cells: CsvCells, path: str, options: LoadOptions, name: str, as_text: bool) -> _Table:
    """A CSV table's columns with the types inferred from their values, or requested."""
    names, notes = repair_names(cells.names)
    overrides = type_overrides(names, options.types, name)
    notes += cells.notes
    kept = selected_columns(names, options, name)
    tokens = [token.encode() for token in options.null_tokens]

    def typed_column(c: int) -> tuple[ColumnValues, str | None]:
        wanted: TypeName | None = "text" if as_text else overrides.get(names[c])
        return _typed_column(names[c], cells.columns[c], wanted, tokens, cells.blank_rows)

    with ThreadPoolExecutor(usable_cores()) as pool:  # Arrow releases the GIL while it works
        found = list(pool.map(typed_column, kept))
    notes += [note for _, note in found if note]
    return _Table(path, cells.rows, [column for column, _ in found], notes, "bytes")


def _typed_column(
    name: str, parts: list[DistinctCells], wanted: TypeName | None, tokens: Sequence[bytes], blank_rows: int
) -> tuple[ColumnValues, str | None]:
    """A column of a CSV table with its type, and a note on it. Its parts accept no more cells afterwards."""
    for part in parts:
        part.finish()
        for token in tokens:
            part.drop(token)
    nulls = sum(part.nulls for part in parts) + blank_rows
    type_, why, note = (wanted, ASKED_FOR, None) if wanted is not None else _infer(name, parts)
    if type_ != "text":
        parts = [_retyped(part, type_) for part in parts]
    return ColumnValues(name, type_, why, parts, nulls), note


def _texts(part: DistinctCells) -> tuple[pa.Array, NDArray[np.int64]]:
    """The values as large_string, and the number of rows with each."""
    offsets, data, rows = part.values()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(rows), buffers), rows


def _infer(name: str, parts: Sequence[DistinctCells]) -> tuple[TypeName, str, str | None]:
    """The type that fits all values of all parts, the reason, and a note."""
    counts: dict[Spelling, SpellingCount] = {}
    for part in parts:
        for spelling, own in count_spellings(*_texts(part)).items():
            other = counts.get(spelling)
            if other is not None:
                lowest = min(own.example, other.example, key=lambda text: text.encode())
                own = SpellingCount(own.rows + other.rows, lowest)
            counts[spelling] = own
    decision = decide(name, counts)
    if may_be_codes(decision, counts):
        of_parts = [texts.filter(pa.array(rows > 0)) for texts, rows in map(_texts, parts)]
        twice = one_number_twice(pa.concat_arrays(of_parts).unique())
        decision = decision if twice is None else as_codes(name, *twice)
    return decision.type, decision.why, decision.note


def _retyped(part: DistinctCells, type_: TypeName) -> DistinctCells:
    """The canonical values of a part whose texts are all of a type."""
    texts, _ = _texts(part)
    values, misfits = parse(texts, type_)
    if len(misfits):
        raise _Misfit
    return cells_of(canonical_array(family_of(type_), values))


def cells_of(values: pa.Array) -> DistinctCells:
    """The distinct values of a large_binary or large_string array without nulls."""
    cells = DistinctCells()
    if len(values):
        offsets = np.frombuffer(values.buffers()[1], dtype=np.int64, count=len(values) + 1 + values.offset)
        offsets = offsets[values.offset :]
        first, last = int(offsets[0]), int(offsets[-1])
        buffer = values.buffers()[2]
        data = np.frombuffer(buffer, dtype=np.uint8)[first:last] if last > first else np.empty(0, dtype=np.uint8)
        cells.add(padded(data), offsets[:-1] - first, np.diff(offsets))
        cells.finish()
    return cells


def _of_columns(read: ReadTable, as_text: bool, how: str) -> _Table:
    columns = []
    for column in read.columns:
        used, nulls = _used_values(column)
        if as_text and column.type != "text":
            used = to_spark_text(column.type, used)
        type_: TypeName = "text" if as_text else column.type
        why = ASKED_FOR if as_text else column.why
        canonical = canonical_array(family_of(type_), used)
        columns.append(ColumnValues(column.name, type_, why, [cells_of(canonical)], nulls))
    return _Table(read.path, read.rows, columns, list(read.notes), how, read.spark)


def _used_values(column: TypedColumn) -> tuple[pa.Array, int]:
    """The values that occur in rows, and the number of null rows."""
    rows = np.bincount(column.index.astype(np.int64) - NULL_CODE, minlength=len(column.values) + 1)
    places = np.flatnonzero(rows[1:])
    values = column.values if len(places) == len(column.values) else column.values.take(pa.array(places))
    return values, int(rows[0])
