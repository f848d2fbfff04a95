"""Cutting the triangle of pairs into row bands that fit the device, and strips of tile pairs for its blocks. Host
only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.cuda.clue_table import Geometry

MOST_STRIP_ROWS = 1 << 14
STRIPS_PER_BLOCK = 16  # enough that no block ends with a long last strip
TILES_PER_CHUNK = 1 << 12  # tiles of earlier rows whose strips are listed together


def count_pairs(group_offsets: NDArray[np.int64]) -> int:
    """Count the unordered pairs inside groups, exactly, beyond 64 bits if needed."""
    sizes, repeats = np.unique(np.diff(group_offsets), return_counts=True)
    return sum(int(r) * (int(s) * (int(s) - 1) // 2) for s, r in zip(sizes, repeats, strict=True))


def row_ends(group_offsets: NDArray[np.int64], rows: int) -> NDArray[np.int32]:
    """End of each row's group, int32 (rows,); a row outside all groups has no later rows."""
    ends = np.arange(1, rows + 1, dtype=np.int64)
    first, last = int(group_offsets[0]), int(group_offsets[-1])
    ends[first:last] = np.repeat(group_offsets[1:], np.diff(group_offsets))
    return ends.astype(np.int32)


def row_bands(row_end: NDArray[np.int32], band_rows: int) -> Iterator[tuple[range, range]]:
    """Pairs of row bands that contain all pairs: each band with itself and with the later bands that its groups
    reach."""
    rows = len(row_end)
    for start in range(0, rows, band_rows):
        earlier = range(start, min(start + band_rows, rows))
        yield earlier, earlier
        for begin in range(earlier.stop, int(row_end[earlier.stop - 1]), band_rows):
            yield earlier, range(begin, min(begin + band_rows, rows))


def rectangle_bands(first_later: int, rows: int, band_rows: int) -> Iterator[tuple[range, range]]:
    """Pairs of row bands that contain all pairs of a row before `first_later` with a row from there on."""
    for start in range(0, first_later, band_rows):
        earlier = range(start, min(start + band_rows, first_later))
        for begin in range(first_later, rows, band_rows):
            yield earlier, range(begin, min(begin + band_rows, rows))


def later_bands(first: int, last: int, band_rows: int) -> Iterator[tuple[range, range]]:
    """Pairs of row bands that contain all pairs of a row from `first` to `last` with a row before it."""
    for start in range(first, last, band_rows):
        later = range(start, min(start + band_rows, last))
        yield later, later
        for begin in range(0, start, band_rows):
            yield range(begin, min(begin + band_rows, start)), later


def split_band(band: tuple[range, range], band_rows: int) -> Iterator[tuple[range, range]]:
    """Split a pair of bands into smaller ones with the same pairs of rows."""
    earlier, later = band
    for start in range(earlier.start, earlier.stop, band_rows):
        top = range(start, min(start + band_rows, earlier.stop))
        if earlier == later:
            yield top, top
        for begin in range(top.stop if earlier == later else later.start, later.stop, band_rows):
            yield top, range(begin, min(begin + band_rows, later.stop))


def cut_operands(operands: NDArray[np.int32], earlier: range, later: range) -> NDArray[np.int32]:
    """Cut out the operands of the rows of two bands, side by side."""
    top = operands[:, earlier.start : earlier.stop]
    if earlier == later:
        return np.ascontiguousarray(top)
    return np.concatenate([top, operands[:, later.start : later.stop]], axis=1)


def local_ends(row_end: NDArray[np.int32], earlier: range, later: range) -> NDArray[np.int32]:
    """Ends of groups in the numbering of two bands side by side; rows of a second band have no later rows."""
    ends = row_end[earlier.start : earlier.stop].astype(np.int64)
    if earlier == later:
        return np.minimum(ends - earlier.start, len(earlier)).astype(np.int32)
    local = len(earlier) + np.clip(ends - later.start, 0, len(later))
    return np.concatenate([local, np.zeros(len(later), dtype=np.int64)]).astype(np.int32)


def list_strips(
    row_end: NDArray[np.int32], tiled_rows: int, first_later: int, geometry: Geometry, blocks: int
) -> Iterator[NDArray[np.int32]]:
    """List strips (first row, first later row, end of the later rows), int32 (strips, 3), in chunks.

    `tiled_rows`: end of the earlier side. `first_later`: start of the later side; 0: the row itself.
    """
    threads, tile_rows = geometry.threads, geometry.tile_rows
    starts = np.arange(0, tiled_rows, threads, dtype=np.int64)
    stops = np.minimum(starts + threads, tiled_rows)
    begins = np.maximum(starts, first_later)
    ends = row_end[stops - 1].astype(np.int64)  # ends of the last rows' groups: ends never fall from row to row
    rows_total = int(np.maximum(ends - begins, 0).sum())
    wanted = rows_total // (blocks * STRIPS_PER_BLOCK)
    length = tile_rows * max(1, min(wanted, MOST_STRIP_ROWS) // tile_rows)
    for chunk in range(0, len(starts), TILES_PER_CHUNK):
        part = slice(chunk, chunk + TILES_PER_CHUNK)
        pieces = np.maximum(-(-(ends[part] - begins[part]) // length), 0)
        tile = np.repeat(np.arange(len(pieces)), pieces)
        number = np.arange(len(tile)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begin = begins[part][tile] + number * length
        end = np.minimum(begin + length, ends[part][tile])
        yield np.stack([starts[part][tile], begin, end], axis=1).astype(np.int32)


def strip_areas(strips: NDArray[np.int32], threads: int) -> NDArray[np.int64]:
    """Approximate number of pairs that the kernel compares, for each strip."""
    return threads * (strips[:, 2].astype(np.int64) - strips[:, 1])
