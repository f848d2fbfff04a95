"""The attribute clustering of tables too large for one machine, by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tuplewise.engine.errors import LimitReached, placed
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.found import Clustered, TableFound
from tuplewise.engine.ind.places import type_for_spark
from tuplewise.engine.ind.values import FAMILIES, Family, family_of
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.spark import jobs
from tuplewise.engine.spark.attribute_values import Cell, cells_of, count_clusters, count_filled, masks_of
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import Column
from tuplewise.engine.table.spark_load import in_session, spark_failures
from tuplewise.engine.table.spark_values import TypedFrame, comparable, needs_wide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def cluster_on_spark(
    opened: Mapping[str, TableInSpark],
    *,
    as_text: bool = False,
    run: Run | None = None,
) -> Clustered:
    """The attribute clustering of opened tables: the same as from `unary.cluster_tables`.

    Parameters
    ----------
    opened : tables that Spark can read, by name

    Raises
    ------
    InputError : if a column can only be read in this process
    LimitReached : if time is up; half a clustering is of no use

    Notes
    -----
    All columns of all tables are put in the long form (attribute, value) and grouped by value into attribute sets, then
    by set. Only the distinct sets come to this process. Cost: one shuffle of all cells, equal ones within a task
    merged; before that, jobs for rows, types and nulls of each table.

    Source: Bauckmann, Leser, Naumann, "Efficiently computing inclusion dependencies for schema discovery", ICDE
    Workshops 2006; Kruse, Papenbrock, Naumann, "Scaling out the discovery of inclusion dependencies", BTW 2015
    (SINDY), which groups by value and by set in the same way. Departure: sets keep the number of their values.
    """
    run, begin = run or Run(), time.perf_counter()
    session = next(iter(opened.values())).session
    typed: dict[str, TypedFrame] = {}
    try:
        with _within(session.spark, run.deadline):
            for k, (name, table) in enumerate(opened.items()):
                run.tell("typing", k / len(opened))
                typed[name] = type_for_spark(table, as_text)
            loaded = time.perf_counter()
            run.tell("clustering", 0.0)
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
        tuple(note for name, t in typed.items() for note in placed(name, t.notes)),
        timings,
        spark={"version": session.version, "master": session.master},
        search={
            "read_by": dict.fromkeys(opened, "Spark"), "values": int(clustering.values.sum()),
            "clusters": len(clustering.values),
        },
    )  # fmt: skip


def attributes_of(
    opened: Mapping[str, TableInSpark], typed: Mapping[str, TypedFrame], as_text: bool
) -> tuple[list[Attribute], list[Family]]:
    """The columns of all tables, in order, and their families."""
    attributes, families = [], []
    for name, table in opened.items():
        for i, column in zip(table.selection.kept, typed[name].typed, strict=True):
            attributes.append(Attribute(name, table.selection.names[i]))
            families.append(family_of(column.type, as_text))
    return attributes, families


def all_cells(
    spark: SparkSession, typed: Mapping[str, TypedFrame], families: Sequence[Family], *beside: str, wide: bool = False
) -> DataFrame:
    """The cells of all tables as one frame of a session.

    `beside`: other columns of the tables' frames to keep. `wide`: write numbers as digits even if all fit 64 bits.
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
            Column(table.selection.names[i], c.type, c.why, next(rest), rows - n)
            for i, c, n in zip(table.selection.kept, typed[name].typed, filled[name], strict=True)
        )
        found.append(TableFound(name, table.path, rows, columns))
    return tuple(found)


@contextmanager
def _within(spark: SparkSession, deadline: float | None) -> Iterator[None]:
    """End jobs of the block at the deadline, and raise LimitReached for them."""
    try:
        with jobs.until(spark, deadline):
            yield
    except TimeoutError as error:
        raise LimitReached(TIME_LIMIT) from error
