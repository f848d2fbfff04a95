"""Positions of the rows in Spark that break a rule, the most likely errors first.

The frame has `position` and codes c0, c1, ...; null is -1. At most the requested number of positions is collected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

NULL = -1
POSITION = "position"
NO_PARTNER = -1

Found = NDArray[np.int64]
"""int64 (4, n): positions of rows, of a partner each (-1: none), rows of the class that are like the partner, and rows
of the class."""


def minorities(frame: DataFrame, left: Sequence[int], target: int, limit: int | None) -> Found:
    """Rows that lack their class's most frequent value (the lowest among equals), those of the clearest majorities
    first. The partner of each is the first row with that value."""
    frame = _filled(frame, [*left, target])
    key = [f"c{c}" for c in left]
    value = f.col(f"c{target}")
    each = frame.groupBy(*key, value.alias("value")).agg(f.count("*").alias("alike"), f.min(POSITION).alias("partner"))
    best = f.max(f.struct("alike", (-f.col("value")).alias("least"), "partner")).alias("best")
    classes = each.groupBy(*key).agg(f.sum("alike").alias("together"), best)
    classes = classes.where("best.alike < together").select(*key, "together", "best.*")
    rows = frame.join(classes, key) if key else frame.crossJoin(f.broadcast(classes))
    rows = rows.where(value != -f.col("least")).orderBy((f.col("alike") / f.col("together")).desc(), POSITION)
    return _few(rows.select(POSITION, "partner", "alike", "together"), limit)


def repeats(frame: DataFrame, columns: Sequence[int], limit: int | None) -> Found:
    """Rows that equal an earlier row on some columns, with the first such row."""
    frame = _filled(frame, columns)
    key = [f"c{c}" for c in columns]
    first = frame.groupBy(*key).agg(f.min(POSITION).alias("partner"), f.count("*").alias("rows"))
    rows = frame.join(first.where("rows > 1"), key).where(f"{POSITION} <> partner").orderBy(POSITION)
    return _few(rows.selectExpr(POSITION, "partner", "0L", "0L"), limit)


def not_so(frame: DataFrame, left: int, sense: str, right: int, limit: int | None) -> Found:
    """Rows whose left value does not compare to the right one as the operator says."""
    rows = _filled(frame, [left, right]).where(f"not (c{left} {sense} c{right})").orderBy(POSITION)
    return _few(rows.selectExpr(POSITION, f"{NO_PARTNER}L", "0L", "0L"), limit)


def _filled(frame: DataFrame, columns: Sequence[int]) -> DataFrame:
    return frame.where(" and ".join(f"c{c} <> {NULL}" for c in columns) or "true")


def _few(rows: DataFrame, limit: int | None) -> Found:
    found = (rows if limit is None else rows.limit(limit)).toArrow()
    return np.array([np.asarray(column.to_numpy(), dtype=np.int64) for column in found.columns]).reshape(4, len(found))
