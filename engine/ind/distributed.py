"""The attribute clustering of tables beyond one machine, by Spark; and which tables those are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import InputError, LimitReached, message
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.ind.unary import Clustered
from tuplewise.engine.ind.values import FAMILIES, Family, family_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark import jobs
from tuplewise.engine.spark.attribute_values import Cell, cells_of, count_clusters, count_filled, masks_of
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import Column
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.spark_encode import NotInSpark
from tuplewise.engine.table.spark_load import in_session, open_with_spark, spark_failures
from tuplewise.engine.table.spark_values import TypedFrame, comparable, needs_wide, type_frame
from tuplewise.engine.watch import TIME_LIMIT, Placed, bytes_for_codes, most_bytes_unless, refuse_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKED = 4
"""Parquet and ORC files are taken to be so much smaller than what they hold."""
HINT = "Discover in this process: --run-on driver"


@dataclass(frozen=True)
class Place:
    """Where tables are worked on.

    Attributes
    ----------
    on_spark : whether in tasks of Spark
    reason : why
    """

    on_spark: bool
    reason: str


def place_for(
    tables: Mapping[str, Any], options: Placed, load_options: LoadOptions, spark: SparkSession | None = None
) -> Place:
    """Where tables are to be clustered: in this process what fits it, else in Spark.

    They fit where their bytes (fourfold for Parquet and ORC files, which are packed; of frames, catalog tables and
    files elsewhere what Spark's plan says) take no more than a quarter of this machine's memory, or of
    `options.memory_limit`.

    Raises
    ------
    InputError : where Spark is asked for a table that is held in this process, or for what only this process does
    """
    only_here: tuple[str, str, str] | None = None
    arity = getattr(options, "max_arity", 1)
    if arity > 1:
        only_here = ("max_arity", str(arity), "1: dependencies of several columns are found in this process")
    if most_bytes_unless(only_here, options) is None:
        several = "auto: dependencies of several columns are found in this process"
        return Place(False, "asked for" if options.run_on == "driver" else several)
    held = [name for name, table in tables.items() if not _read_by_spark(table)]
    if options.run_on == "spark":
        if held:
            refuse_spark(options, held[0])
        return Place(True, "asked for")
    most = bytes_for_codes(options.memory_limit)
    size = sum(_bytes_of(table, load_options, spark) for name, table in tables.items() if name not in held)
    if size <= most:
        return Place(False, f"auto: {size:,} bytes fit this process, which takes up to {most:,}")
    if held:
        hint = "Give it as a path or a Spark frame, or force this process: --run-on driver"
        what = f"{size:,} bytes of other tables are for Spark, where a table that is held here can't take part"
        raise InputError(message(what, held[0], hint=hint))
    return Place(True, f"auto: {size:,} bytes; this process takes up to {most:,}")


def _read_by_spark(table: Any) -> bool:
    return isinstance(table, (str, os.PathLike)) or kind_of(table) in ("spark", "connect")


def _bytes_of(table: Any, load_options: LoadOptions, spark: SparkSession | None) -> int:
    """Bytes of local files, without starting Spark; else what Spark says."""
    source = None if kind_of(table) else find_source(os.fspath(table))
    if source is not None and source.local:
        return sum(os.path.getsize(f) for f in source.files) * (PACKED if source.format in ("parquet", "orc") else 1)
    whole = replace(load_options, columns=None, exclude=(), types={})
    return open_tables({"table": table}, whole, spark)["table"].size_bytes


def open_tables(
    tables: Mapping[str, Any], load_options: LoadOptions | Mapping[str, LoadOptions], spark: SparkSession | None = None
) -> dict[str, TableInSpark]:
    """Paths and Spark frames, opened in one session; nothing of them is brought here.

    `load_options` : how they are read; by name where they are read in several ways

    Raises
    ------
    InputError : where a table can't be read by Spark
    """
    opened = {}
    for name, table in tables.items():
        kind = kind_of(table)
        if not _read_by_spark(table):
            allowed = "a path, or a Spark DataFrame"
            raise InputError(message(f"table {name!r} can't be read by Spark", type(table).__name__, allowed))
        target = table if kind is not None else os.fspath(table)
        options = load_options[name] if isinstance(load_options, Mapping) else load_options
        opened[name] = open_with_spark(target, kind, options, name, spark, lambda step: None, large=True)
    return opened


def cluster_on_spark(
    opened: Mapping[str, TableInSpark],
    *,
    as_text: bool = False,
    progress: Callable[[str, float], None] | None = None,
    deadline: float | None = None,
) -> Clustered:
    """The attribute clustering of opened tables; that of `unary.cluster_tables`.

    Parameters
    ----------
    opened : tables that Spark can read, by name
    deadline : on the clock of time.monotonic

    Raises
    ------
    InputError : where a column can only be read in this process
    LimitReached : where time is up; half a clustering says nothing

    Notes
    -----
    All columns of all tables are put in the long form (attribute, value), grouped by value to the set of its
    attributes, and by set. What comes here is the distinct sets. Cost: each cell through one shuffle, equal ones of a
    task as one; jobs for rows, types and nulls of each table before that.

    Source: Bauckmann, Leser, Naumann, "Efficiently computing inclusion dependencies for schema discovery", ICDE
    Workshops 2006; Kruse, Papenbrock, Naumann, "Scaling out the discovery of inclusion dependencies", BTW 2015
    (SINDY), which groups by value and by set in the same way. Departure: sets keep how many values they hold.
    """
    begin = time.perf_counter()
    session = next(iter(opened.values())).session
    typed: dict[str, TypedFrame] = {}
    try:
        with _within(session.spark, deadline):
            for k, (name, table) in enumerate(opened.items()):
                if progress is not None:
                    progress("typing", k / len(opened))
                typed[name] = type_for_spark(table, as_text)
            loaded = time.perf_counter()
            if progress is not None:
                progress("clustering", 0.0)
            attributes, families = attributes_of(opened, typed, as_text)
            cells = all_cells(session.spark, typed, families)
            with spark_failures(", ".join(opened)):
                table = count_clusters(cells, len(attributes)).toArrow()
                nulls = {n: count_filled(t.base, [c.expression for c in t.typed]) for n, t in typed.items()}
            masks = masks_of(table, len(attributes), "held")
    finally:
        for one in typed.values():
            one.close()
    values = np.asarray(table["values"].to_numpy(), dtype=np.int64)
    clustering = AttributeClustering.of(attributes, families, masks, values)
    timings = {
        "session": sum(o.timings["session"] for o in opened.values()),
        "load": sum(o.timings["load"] for o in opened.values()) + loaded - begin,
        "encode": time.perf_counter() - loaded,
    }
    return Clustered(
        _described(opened, typed, nulls, clustering.distinct.tolist()),
        clustering,
        tuple(f"{name}: {note}" for name, t in typed.items() for note in t.notes),
        timings,
        spark={"version": session.version, "master": session.master},
        search={
            "read_by": dict.fromkeys(opened, "Spark"), "values": int(clustering.values.sum()),
            "clusters": len(clustering.values),
        },
    )  # fmt: skip


def type_for_spark(opened: TableInSpark, as_text: bool, hint: str = HINT) -> TypedFrame:
    """See `spark_values.type_frame`. Raises InputError where a column can only be typed in this process."""
    try:
        with spark_failures(opened.name):
            return type_frame(opened, lambda step: None, as_text=as_text)
    except NotInSpark as reason:
        raise InputError(message(f"table {opened.name!r} can't be read in Spark: {reason}", hint=hint)) from reason


def attributes_of(
    opened: Mapping[str, TableInSpark], typed: Mapping[str, TypedFrame], as_text: bool
) -> tuple[list[Attribute], list[Family]]:
    """The columns of all tables, in order, and their families."""
    attributes, families = [], []
    for name, table in opened.items():
        for i, column in zip(table.plan.kept, typed[name].typed, strict=True):
            attributes.append(Attribute(name, table.plan.names[i]))
            families.append(family_of(column.type, as_text))
    return attributes, families


def all_cells(
    spark: SparkSession, typed: Mapping[str, TypedFrame], families: Sequence[Family], *beside: str, wide: bool = False
) -> DataFrame:
    """The cells of all tables as one frame of a session.

    `beside`: columns of the tables' frames to take along. `wide`: write numbers as digits even where all fit 64 bits.
    """
    wide = wide or needs_wide([c for t in typed.values() for c in t.typed])
    cells: DataFrame | None = None
    first = 0
    for table in typed.values():
        own = []
        for k, column in enumerate(table.typed, start=first):
            form, value = comparable(column, wide=wide)
            own.append(Cell(k, FAMILIES.index(families[k]), form, value))
        first += len(own)
        long = in_session(cells_of(table.base, own, *beside), spark)
        cells = long if cells is None else cells.unionAll(long)
    assert cells is not None
    return cells


def _described(
    opened: Mapping[str, TableInSpark],
    typed: Mapping[str, TypedFrame],
    filled: Mapping[str, list[int]],
    distinct: list[int],
) -> tuple[TableFound, ...]:
    found = []
    rest = iter(distinct)
    for name, table in opened.items():
        rows = typed[name].rows
        columns = tuple(
            Column(table.plan.names[i], c.type, c.why, next(rest), rows - n)
            for i, c, n in zip(table.plan.kept, typed[name].typed, filled[name], strict=True)
        )
        found.append(TableFound(name, table.path, rows, columns))
    return tuple(found)


@contextmanager
def _within(spark: SparkSession, deadline: float | None) -> Iterator[None]:
    """Jobs of the block end at the deadline; LimitReached is raised for them."""
    try:
        with jobs.until(spark, deadline):
            yield
    except TimeoutError as error:
        raise LimitReached(TIME_LIMIT) from error
