"""Positions of rows in file order, from the ids that Spark gives rows.

Spark packs the splits of files into partitions by size, so with several files or splits the ids are not in file order.
Within a partition each split is one run of ids. The file, the start of the split and its lowest id put the runs in
order. Unlike Spark's hidden metadata columns, all of this stays on the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

ROW = "_row"


def split_runs(
    frame: DataFrame, row: str | None = None, *, by_file: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The splits of a scan: the first row id and the rows of each, by ascending id, and their file order.

    `row`: the column of row ids; None: they are assigned here. Without `by_file` each partition is one run.
    """
    runs = (
        frame.select(
            f.input_file_name().alias("file") if by_file else f.lit("").alias("file"),
            f.input_file_block_start().alias("start") if by_file else f.spark_partition_id().alias("start"),
            (f.monotonically_increasing_id() if row is None else f.col(row)).alias("id"),
        )
        .groupBy("file", "start")
        .agg(f.min("id").alias("first"), f.count("*").alias("rows"))
        .toArrow()
        .sort_by("first")
    )
    files = [unquote(v).encode() for v in runs["file"].to_pylist()]
    starts = runs["start"].to_pylist()
    order = sorted(range(len(files)), key=lambda k: (files[k], starts[k]))
    first, rows = (np.asarray(runs[c].to_numpy(), dtype=np.int64) for c in ("first", "rows"))
    return first, rows, np.array(order, dtype=np.int64)


@dataclass(frozen=True)
class RowRuns:
    """The runs of row ids of a table, one for each split, and their places in file order.

    Attributes
    ----------
    first, count : int64 (runs,), id of the first row and number of rows of each split, by ascending id
    offset : int64 (runs,), place in file order of the first row of each split
    """

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    offset: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.count.sum())

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in file order of rows by id."""
        run = np.searchsorted(self.first, ids, side="right") - 1
        return np.asarray(self.offset[run] + ids - self.first[run], dtype=np.int64)

    def ids(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ids of rows by place in file order."""
        order = np.argsort(self.offset)
        run = order[np.searchsorted(self.offset[order], places, side="right") - 1]
        return np.asarray(self.first[run] + places - self.offset[run], dtype=np.int64)


def find_rows(frame: DataFrame, ordered_by_file: bool) -> RowRuns:
    """Count the splits of a frame with ROW. Rows that come from no file are ordered by their ids."""
    first, count, order = split_runs(frame, ROW, by_file=ordered_by_file)
    offset = np.empty(len(first), dtype=np.int64)
    if len(first):
        offset[order] = np.concatenate([[0], np.cumsum(count[order])[:-1]])
    return RowRuns(first, count, offset)
