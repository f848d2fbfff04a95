"""Placement of work on tables, in this process or in Spark; and how Spark opens and types the tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.placement import PlacementOptions, bytes_for_codes, most_bytes_unless, refuse_spark
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.source import find_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tuplewise.engine.table.spark_values import TypedFrame

HINT = Wording("Discover in this process: {run_on}", run_on="driver")
PACKED = 4
"""Assumed size of the contents of Parquet and ORC files, relative to the size of the files."""


@dataclass(frozen=True)
class Placement:
    """Place where tables are processed.

    Attributes
    ----------
    on_spark : whether in tasks of Spark
    reason : reason for the choice
    """

    on_spark: bool
    reason: str


def place_for(
    tables: Mapping[str, Any], options: PlacementOptions, load_options: LoadOptions, spark: SparkSession | None = None
) -> Placement:
    """Choose where to cluster tables: in this process if they fit, else in Spark.

    They fit if their bytes take at most a quarter of this machine's memory, or of `options.memory_limit`. Parquet and
    ORC files count fourfold, as they are compressed. For frames, catalog tables and remote files the bytes are those of
    Spark's plan.

    Raises
    ------
    InputError : if Spark is requested for a table held in this process, or for work that only this process can do
    """
    only_here: tuple[str, str, str] | None = None
    arity = getattr(options, "max_arity", 1)
    if arity > 1:
        only_here = ("max_arity", str(arity), "1: dependencies of several columns are found in this process")
    if most_bytes_unless(only_here, options) is None:
        several = "auto: dependencies of several columns are found in this process"
        return Placement(False, "asked for" if options.run_on == "driver" else several)
    held = [name for name, table in tables.items() if not read_by_spark(table)]
    if options.run_on == "spark":
        if held:
            refuse_spark(options, held[0])
        return Placement(True, "asked for")
    most = bytes_for_codes(options.memory_limit)
    size = sum(_bytes_of(table, load_options, spark) for name, table in tables.items() if name not in held)
    if size <= most:
        return Placement(False, f"auto: {size:,} bytes fit this process, which takes up to {most:,}")
    if held:
        hint = Wording("Give it as a path or a Spark frame, or force this process: {run_on}", run_on="driver")
        what = f"{size:,} bytes of other tables are for Spark, where a table that is held here can't take part"
        raise InputError(message(what, held[0], hint=hint))
    return Placement(True, f"auto: {size:,} bytes; this process takes up to {most:,}")


def read_by_spark(table: Any) -> bool:
    """Whether Spark can read a table: a path, or a Spark frame."""
    return isinstance(table, (str, os.PathLike)) or kind_of(table) in ("spark", "connect")


def _bytes_of(table: Any, load_options: LoadOptions, spark: SparkSession | None) -> int:
    """Bytes of local files, without starting Spark; else Spark's estimate."""
    source = None if kind_of(table) else find_source(os.fspath(table))
    if source is not None and source.local:
        return sum(os.path.getsize(f) for f in source.files) * (PACKED if source.format in ("parquet", "orc") else 1)
    whole = replace(load_options, columns=None, exclude=(), types={})
    return open_tables({"table": table}, whole, spark)["table"].size_bytes


def open_tables(
    tables: Mapping[str, Any], load_options: LoadOptions | Mapping[str, LoadOptions], spark: SparkSession | None = None
) -> dict[str, TableInSpark]:
    """Open paths and Spark frames in one session; no data comes to this process.

    `load_options` : how they are read; by table name if this differs between tables

    Raises
    ------
    InputError : if a table can't be read by Spark
    """
    from tuplewise.engine.table.spark_load import open_with_spark

    opened = {}
    for name, table in tables.items():
        kind = kind_of(table)
        if not read_by_spark(table):
            allowed = "a path, or a Spark DataFrame"
            raise InputError(message(f"table {name!r} can't be read by Spark", type(table).__name__, allowed))
        target = table if kind is not None else os.fspath(table)
        options = load_options[name] if isinstance(load_options, Mapping) else load_options
        opened[name] = open_with_spark(target, kind, options, name, spark, lambda step: None, large=True)
    return opened


def type_for_spark(opened: TableInSpark, as_text: bool, hint: str = HINT) -> TypedFrame:
    """Type a table, see `spark_values.type_frame`. Raises InputError if a column can only be typed in this process."""
    from tuplewise.engine.table.spark_encode import NotInSpark
    from tuplewise.engine.table.spark_load import spark_failures
    from tuplewise.engine.table.spark_values import type_frame

    try:
        with spark_failures(opened.name):
            return type_frame(opened, lambda step: None, as_text=as_text)
    except NotInSpark as reason:
        raise InputError(message(f"table {opened.name!r} can't be read in Spark: {reason}", hint=hint)) from reason
