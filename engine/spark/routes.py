"""Routing of rows to tiles: the partition of each tile, and the rows that go there for each side."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.spark.layout import Layout
from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.tiles import LEFT, RIGHT, TileSizes, destinations, pack, partition_keys


def send_rows(layout: Layout, sizes: TileSizes) -> DataFrame | None:
    """The rows (tile, side, position, codes), with each tile in one partition; None if there are no tiles.

    The tiles of whole groups come first; the hash of a group's key selects its tile. Those of the plan follow.
    """
    parts = _light_rows(layout) if layout.light_tiles else []
    parts += _heavy_rows(layout) if len(layout.tiles) else []
    if not parts:
        return None
    tiles = layout.light_tiles + len(layout.tiles)
    partitions = min(tiles, sizes.most_partitions)
    costs = layout.left.rows[layout.tiles.left] + layout.right.rows[layout.tiles.right]
    chosen = np.arange(tiles) % partitions
    chosen[layout.light_tiles :] = (pack(costs, partitions) + layout.light_tiles) % partitions
    keys = partition_keys(partitions)[chosen]
    targets = _known(layout.rows, tile=np.arange(tiles, dtype=np.int32), target=keys)
    sent = reduce(lambda a, b: a.unionAll(b), parts).join(targets, "tile").repartition(partitions, "target")
    if partitions < tiles:
        sent = sent.sortWithinPartitions("tile")
    return sent.select("tile", "side", "position", *layout.codes)


def tiles_both_ways(layout: Layout) -> NDArray[np.int64]:
    """The numbers, as in `send_rows`, of tiles that also stand for their mirror."""
    if not layout.tiles.mirrored:
        return np.zeros(0, dtype=np.int64)
    return layout.light_tiles + np.flatnonzero(layout.tiles.left != layout.tiles.right)


def _known(frame: DataFrame, **columns: NDArray[np.generic]) -> DataFrame:
    """A small table of the driver, broadcast to all tasks."""
    return f.broadcast(frame_of(frame.sparkSession, pa.table({n: pa.array(c) for n, c in columns.items()})))


def _light_rows(layout: Layout) -> list[DataFrame]:
    """The rows of groups that are not cut: one frame if a row has one group, else one for each side."""
    whole = {s: f.col(s) & f.col(f"{s}g").isNull() for s in "lr"}
    if layout.shape.same_keys:
        side = whole["l"].cast("int") * LEFT + whole["r"].cast("int") * RIGHT
        return [_routed(layout, layout.rows.where(whole["l"] | whole["r"]), _light_tile(layout, 0), side)]
    return [
        _routed(layout, layout.rows.where(whole[s]), _light_tile(layout, i), f.lit((LEFT, RIGHT)[i]))
        for i, s in enumerate("lr")
    ]


def _light_tile(layout: Layout, side: int) -> Column:
    if not layout.shape.keys or layout.light_tiles == 1:
        return f.lit(0)
    return f.pmod(f.hash(*layout.shape.key_columns(side)), f.lit(layout.light_tiles))


def _heavy_rows(layout: Layout) -> list[DataFrame]:
    """The rows of groups that are cut, once for each tile of their block."""
    assert layout.heavy is not None
    alike = layout.shape.alike
    block, tile, side = destinations(layout.tiles, alike)
    numbers = (tile + layout.light_tiles).astype(np.int32)
    if alike:
        known = _known(layout.rows, block=block, tile=numbers, sides=side.astype(np.int32))
        rows = layout.heavy.withColumn("block", f.coalesce("lb", "rb")).join(known, "block")
        fits = f.col("lb").isNotNull().cast("int") * LEFT + f.col("rb").isNotNull().cast("int") * RIGHT
        taken = f.col("sides").bitwiseAND(fits)
        return [_routed(layout, rows.where(taken != 0), f.col("tile"), taken)]
    frames = []
    for name, number in (("lb", LEFT), ("rb", RIGHT)):
        own = side == number
        known = _known(layout.rows, block=block[own], tile=numbers[own])
        rows = layout.heavy.where(f.col(name).isNotNull()).withColumn("block", f.col(name)).join(known, "block")
        frames.append(_routed(layout, rows, f.col("tile"), f.lit(number)))
    return frames


def _routed(layout: Layout, rows: DataFrame, tile: Column, side: Column) -> DataFrame:
    return rows.select(tile.cast("int").alias("tile"), side.cast("tinyint").alias("side"), "position", *layout.codes)


def full_row_counts(layout: Layout) -> list[DataFrame]:
    """(position, as_t, as_u): the pairs of each row in full tiles, without that of the row and itself."""
    tiles = layout.tiles
    if not len(tiles.full_left) or layout.heavy is None:
        return []
    as_t, as_u = (np.zeros(len(layout.left.rows), dtype=np.int64) for _ in range(2))
    np.add.at(as_t, tiles.full_left, layout.right.rows[tiles.full_right])
    np.add.at(as_u, tiles.full_right, layout.left.rows[tiles.full_left])
    if tiles.mirrored:
        two = tiles.full_left != tiles.full_right
        np.add.at(as_t, tiles.full_right[two], layout.left.rows[tiles.full_left[two]])
        np.add.at(as_u, tiles.full_left[two], layout.right.rows[tiles.full_right[two]])
    none = f.lit(0).cast("bigint")
    found = []
    for name, added in (("lb", as_t), ("rb", as_u)):
        some = np.flatnonzero(added)
        known = _known(layout.heavy, block=some, added=added[some])
        rows = layout.heavy.withColumn("block", f.col(name)).join(known, "block")
        counts = (f.col("added"), none) if name == "lb" else (none, f.col("added"))
        found.append(rows.select("position", counts[0].alias("as_t"), counts[1].alias("as_u")))
    selves = full_tile_selves(layout)
    assert selves is not None
    minus = f.lit(-1).cast("bigint")
    return [*found, selves.select("position", minus.alias("as_t"), minus.alias("as_u"))]


def full_tile_selves(layout: Layout) -> DataFrame | None:
    """(position) of rows whose pair with themselves is in a full tile; None if no tile is full."""
    tiles = layout.tiles
    if not len(tiles.full_left) or layout.heavy is None:
        return None
    known = _known(layout.heavy, lb=tiles.full_left, rb=tiles.full_right)
    return layout.heavy.join(known, ["lb", "rb"]).select("position")
