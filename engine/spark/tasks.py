"""The work of Spark's tasks on the rows of tiles: they run kernels on arrays and return counts or pairs of positions.

These functions run in Spark's Python workers. They pass a rule on to its kernels (`TileKernels`), which are functions
of modules, so that they are sent by name.
"""

from __future__ import annotations

import itertools
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.spark.resources import task_device
from tuplewise.engine.spark.tiles import LEFT, RIGHT, Blocks, block_keys, local_rows
from tuplewise.gpu_kernels.device import Device

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int32]
RowChoice = NDArray[np.int32] | None
Batches = Iterable["pa.RecordBatch"]


@dataclass(frozen=True)
class TileKernels:
    """The kernels of a job. They take codes, int32 (columns, rows), a rule, and the rows of each side, int32, ascending
    (None: all rows).

    Attributes
    ----------
    count : the number of ordered pairs (t in left, u in right), t and u different rows, that violate
    rows : the pairs of each row as t and as u, int64 (rows,) each
    pairs : the pairs in order of (t, u), in chunks, int64 (m, 2); with a flag: only those with t < u
    find : at most so many pairs, int64 (found, 2), stopping early
    """

    count: Callable[[Codes, Any, RowChoice, RowChoice, Device], int]
    rows: Callable[[Codes, Any, RowChoice, RowChoice, Device], tuple[NDArray[np.int64], NDArray[np.int64]]]
    pairs: Callable[[Codes, Any, RowChoice, RowChoice, bool, Device], Iterator[NDArray[np.int64]]]
    find: Callable[[Codes, Any, RowChoice, RowChoice, int, Device], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Tile:
    """The rows of a tile, in order of their positions.

    Attributes
    ----------
    positions : int64 (rows,), ascending, each once
    codes : int32 (columns, rows), C order
    left, right : int32 rows of each side, ascending; None if it is all rows
    """

    number: int
    positions: NDArray[np.int64]
    codes: NDArray[np.int32]
    left: RowChoice
    right: RowChoice


@dataclass(frozen=True, eq=False)
class TileWork:
    """The input of all tasks of one job.

    Attributes
    ----------
    columns : number of code columns c0, c1, ... of the rows
    both_ways : numbers of the tiles that also stand for their mirror; int64, ascending
    one_way : whether pairs are listed once, t < u: the rule is its own mirror
    """

    kernels: TileKernels
    rule: Any
    columns: int
    both_ways: NDArray[np.int64]
    one_way: bool
    device: str

    def count(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Pairs of each tile: (pairs)."""
        spare_zip_reading()
        for tile in tiles_of(batches, self.columns):
            found = self.kernels.count(tile.codes, self.rule, tile.left, tile.right, task_device(self.device))
            yield _batch(pairs=np.array([found * (2 if self._stands_for_two(tile) else 1)], dtype=np.int64))

    def count_rows(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Pairs of each row that has any: (position, as_t, as_u)."""
        spare_zip_reading()
        for tile in tiles_of(batches, self.columns):
            as_t, as_u = self.kernels.rows(tile.codes, self.rule, tile.left, tile.right, task_device(self.device))
            if self._stands_for_two(tile):
                as_t = as_u = as_t + as_u
            some = np.flatnonzero(as_t + as_u)
            yield _batch(position=tile.positions[some], as_t=as_t[some], as_u=as_u[some])

    def list_pairs(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """All pairs: (t, u), positions."""
        spare_zip_reading()
        for tile in tiles_of(batches, self.columns):
            two = self._stands_for_two(tile)
            one_way = self.one_way and not two
            for chunk in self.kernels.pairs(
                tile.codes, self.rule, tile.left, tile.right, one_way, task_device(self.device)
            ):
                t, u = tile.positions[chunk[:, 0]], tile.positions[chunk[:, 1]]
                yield _batch(t=np.minimum(t, u), u=np.maximum(t, u)) if two else _batch(t=t, u=u)

    def find(self, batches: Batches, limit: int) -> Iterator[pa.RecordBatch]:
        """At most `limit` pairs of each tile: (t, u), positions."""
        spare_zip_reading()
        for tile in tiles_of(batches, self.columns):
            device = task_device(self.device)
            found = self.kernels.find(tile.codes, self.rule, tile.left, tile.right, limit, device)
            yield _batch(t=tile.positions[found[:, 0]], u=tile.positions[found[:, 1]])

    def _stands_for_two(self, tile: Tile) -> bool:
        place = int(np.searchsorted(self.both_ways, tile.number))
        return place < len(self.both_ways) and int(self.both_ways[place]) == tile.number


@dataclass(frozen=True, eq=False)
class FirstPairs:
    """A search for the first pairs of a few known left rows with all rows of a task.

    Attributes
    ----------
    positions, codes : int64 (rows,) ascending and int32 (columns, rows): the left rows
    limit : number of pairs wanted from all tasks together
    """

    kernels: TileKernels
    rule: Any
    positions: NDArray[np.int64]
    codes: NDArray[np.int32]
    one_way: bool
    limit: int
    device: str

    def list_pairs(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The first `limit` pairs with rows of this task, at most: (t, u), positions, in order."""
        spare_zip_reading()
        best = np.empty((0, 2), dtype=np.int64)
        for batch in batches:
            best = self._merged(best, self._of_batch(batch))
        yield _batch(t=best[:, 0], u=best[:, 1])

    def _of_batch(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        columns = len(self.codes)
        positions = np.concatenate([self.positions, _numpy(batch, "position")])
        sides = np.full(len(positions), RIGHT, dtype=np.int8)
        sides[: len(self.positions)] = LEFT
        given = [np.concatenate([self.codes[c], _numpy(batch, f"c{c}")]) for c in range(columns)]
        tile = make_tile(0, positions, sides, given)
        found = np.empty((0, 2), dtype=np.int64)
        for chunk in self.kernels.pairs(
            tile.codes, self.rule, tile.left, tile.right, self.one_way, task_device(self.device)
        ):
            found = np.concatenate([found, tile.positions[chunk]])[: self.limit]
            if len(found) == self.limit:
                break
        return found

    def _merged(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        both = np.concatenate([one, other])
        return both[np.lexsort((both[:, 1], both[:, 0]))][: self.limit]


@dataclass(frozen=True, eq=False)
class BlockFinder:
    """A search for the blocks of rows of heavy groups. `left`, `right`: the column that cuts each side, or None."""

    blocks: Blocks
    columns: int
    left: int | None
    right: int | None

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """(position, codes, lg, rg, ...) to (position, codes, lb, rb)."""
        import pyarrow as pa

        spare_zip_reading()
        kept = ["position", *(f"c{i}" for i in range(self.columns))]
        for batch in batches:
            found = [self._blocks(batch, group, split) for group, split in (("lg", self.left), ("rg", self.right))]
            arrays = [*(batch.column(name) for name in kept), *found]
            yield pa.RecordBatch.from_arrays(arrays, names=[*kept, "lb", "rb"])

    def _blocks(self, batch: pa.RecordBatch, group: str, split: int | None) -> pa.Array:
        import pyarrow as pa

        groups = batch.column(group)
        given = np.zeros(len(batch), dtype=np.int32) if split is None else _numpy(batch, f"c{split}")
        keys = block_keys(groups.fill_null(0).to_numpy(zero_copy_only=False), given)
        return pa.array(self.blocks.of(keys, _numpy(batch, "position")), mask=~np.asarray(groups.is_valid()))


def tiles_of(batches: Batches, columns: int) -> Iterator[Tile]:
    """The tiles of a partition, one at a time; the rows of a tile come together."""
    parts: list[pa.RecordBatch] = []
    number = -1
    for batch in batches:
        tiles = _numpy(batch, "tile")
        if not len(tiles):
            continue
        for begin, end in itertools.pairwise([0, *(np.flatnonzero(np.diff(tiles)) + 1).tolist(), len(tiles)]):
            if parts and tiles[begin] != number:
                yield _assemble(number, parts, columns)
                parts = []
            number = int(tiles[begin])
            parts.append(batch.slice(begin, end - begin))
    if parts:
        yield _assemble(number, parts, columns)


def _assemble(number: int, parts: list[pa.RecordBatch], columns: int) -> Tile:
    def whole(name: str) -> NDArray[Any]:
        return np.concatenate([_numpy(part, name) for part in parts])

    return make_tile(number, whole("position"), whole("side").astype(np.int8), (whole(f"c{c}") for c in range(columns)))


def make_tile(
    number: int, positions: NDArray[np.int64], sides: NDArray[np.int8], given: Iterable[NDArray[np.int32]]
) -> Tile:
    """A tile of received rows in order of position. A row that was sent for both sides appears once."""
    order, left, right = local_rows(positions, sides)
    rows = [column[order] for column in given]
    codes = np.stack(rows) if rows else np.empty((0, len(order)), dtype=np.int32)
    everything = len(left) == len(right) == len(order)
    return Tile(number, positions[order], codes, *((None, None) if everything else (left, right)))


def spare_zip_reading() -> None:
    """Make the next task of this worker start sooner.

    Before each task Spark invalidates Python's import caches, and Python then reads the directory of pyspark's zip
    again for each of its packages, which takes a quarter of a second. Finders that were removed are not invalidated;
    they are created again when needed.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def _numpy(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    array: NDArray[Any] = batch.column(name).to_numpy(zero_copy_only=False)
    return array


def _batch(**columns: NDArray[np.int64]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns.values()], names=list(columns))
