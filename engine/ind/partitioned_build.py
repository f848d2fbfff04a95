"""Build of a partitioned state from tables by Spark: frequencies of all values in one pass."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import InputError, message, placed
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.distributed import all_cells, attributes_of
from tuplewise.engine.ind.initial import Built, Progress
from tuplewise.engine.ind.manifest import KeptTable, Manifest
from tuplewise.engine.ind.partitioned import VALUES, hand_to_disk, not_shared
from tuplewise.engine.ind.partitions import Partitions
from tuplewise.engine.ind.places import open_tables, type_for_spark
from tuplewise.engine.ind.tables import options_of_tables
from tuplewise.engine.options import IndStateOptions, LoadOptions
from tuplewise.engine.spark.attribute_values import count_filled
from tuplewise.engine.spark.value_counts import (
    BY,
    all_of,
    bucket_folder,
    changed_counts,
    fold_changes,
    moved_values,
    read_counts,
    total_frequency,
    write_counts,
)
from tuplewise.engine.state_folders import INDS, beside, real_folder
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.spark_load import spark_failures
from tuplewise.gpu_kernels.words import mask_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CELLS_A_BUCKET = 500_000
LEAST_BUCKETS, MOST_BUCKETS = 8, 4096
"""Bounds on the number of buckets. A batch rewrites each bucket it touches: more buckets mean less data, more files."""


def build(
    folder: str | os.PathLike[str],
    tables: Mapping[str, Any],
    options: IndStateOptions,
    load_options: LoadOptions | None = None,
    *,
    written_by: str,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Built:
    """Build a state in partitions.

    Parameters
    ----------
    folder : a folder that does not exist or is empty; all machines of the cluster must see it under this path
    tables : paths and Spark frames by name
    written_by : version to record in the state

    Raises
    ------
    InputError
        If the folder is not empty, a table can't be read by Spark, or an option is not for this kind of state.

    Notes
    -----
    Cost: two shuffles of all cells, equal ones within a task merged. One row is written for each distinct value of each
    column. Nothing that grows with the tables comes to this process.
    """
    given = [n for n in ("insert_only", "track_rows") if getattr(options, n)]
    if given:
        hint = "It keeps frequencies always, and rows never; leave the option out, or build it in this process"
        raise InputError(message("a state in Spark doesn't take", given[0], hint=hint))
    load_options = load_options or LoadOptions()
    target, report = real_folder(folder), progress or (lambda step: None)
    with beside(target, INDS) as place, ExitStack() as held:
        opened = open_tables(tables, options_of_tables(tables, load_options), spark)
        typed = {}
        for name, table in opened.items():
            report(f"reading {name}")
            typed[name] = type_for_spark(table, options.as_text)
            held.callback(typed[name].close)
        attributes, families = attributes_of(opened, typed, options.as_text)
        kept = tuple(
            KeptTable(name, table.path, tuple(
                KeptColumn(table.selection.names[i], c.type, c.why)
                for i, c in zip(table.selection.kept, typed[name].typed, strict=True)
            ))
            for name, table in opened.items()
        )  # fmt: skip
        manifest = Manifest(kept, options, load_options.null_tokens, written_by)
        rows = tuple(t.rows for t in typed.values())
        size = sum(t.rows * len(t.typed) for t in typed.values())
        buckets = max(LEAST_BUCKETS, min(MOST_BUCKETS, -(-size // CELLS_A_BUCKET)))
        session = next(iter(opened.values())).session
        filled = [n for t in typed.values() for n in count_filled(t.base, [c.expression for c in t.typed])]
        for one in typed.values():
            one.base = all_of(one.base, 1)
        report("writing the state")
        first = f"{0:08}-first"
        masks: Any = np.zeros((0, mask_words(len(attributes))), dtype=np.uint64)
        values = np.zeros(0, dtype=np.int64)
        seen: list[int] = []
        if any(filled):
            with spark_failures(", ".join(opened)):
                cells = all_cells(session.spark, typed, families, BY, wide=True)
                counts = changed_counts(None, fold_changes(cells), buckets, buckets)
                seen = write_counts(counts, place / VALUES / first)
                folders = [bucket_folder(place / VALUES / first, b) for b in seen]
                if not seen or total_frequency(read_counts(session.spark, folders)) != sum(filled):
                    raise not_shared(target)
                moved = moved_values(read_counts(session.spark, folders), len(attributes))
            masks, values = moved.after, moved.values
        clustering = AttributeClustering.of(attributes, families, masks, values)
        if options.sync and seen:
            hand_to_disk(place / VALUES / first)
        manifest.write(place)
        dialect = {k: getattr(load_options, k) for k in ("sep", "quote", "escape", "encoding")}
        folders_of = dict.fromkeys(seen, first)
        made = Partitions(0, rows, tuple(filled), buckets, folders_of, clustering.masks, clustering.values, {}, dialect)
        made.write(place)
    notes = tuple(note for name, t in typed.items() for note in placed(name, t.notes))
    return Built(target, int(clustering.values.sum()), notes, {"version": session.version, "master": session.master})
