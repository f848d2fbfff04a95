"""Front door of the pairwise evidence kernel by tiles. The triangle of all pairs is cut into tiles, which other
processes and machines can count, and whose clues are merged."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.evidence import COMPARING, ClueSet, Counted, arranged_codes, check_codes, of_both_orders
from tuplewise.gpu_kernels.words import ClueLayout, Comparisons, merge_clues


@dataclass(frozen=True, eq=False)
class PairTriangle:
    """All unordered pairs of rows of a table. Pickled as its codes and its layout.

    Attributes
    ----------
    codes : int32 array (compared columns, rows), C order
        -1 is null; rows in an order in which like ones are neighbours.
    comparisons : those of the layout, by the places of columns among those compared
    """

    codes: NDArray[np.int32]
    comparisons: Comparisons
    layout: ClueLayout

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    def tiles(self, count: int) -> list[tuple[int, int]]:
        """Cut into about `count` tiles: ranges of rows, each standing for the pairs of a row in it with any row before.

        Each pair is in one tile, and tiles have about equally many pairs. Rows before r make about r^2 / 2 pairs, so of
        n rows tile k ends at row n * sqrt(k / count).

        Examples
        --------
        >>> from tuplewise.gpu_kernels.words import make_layout
        >>> pair_triangle(np.zeros((1, 100), dtype=np.int32), make_layout([(0, 0, 0, False)])).tiles(4)
        [(0, 50), (50, 71), (71, 87), (87, 100)]
        """
        ends = np.round(self.rows * np.sqrt(np.arange(count + 1) / count)).astype(np.int64)
        return [(int(a), int(b)) for a, b in itertools.pairwise(ends) if a < b]

    @cached_property
    def prepared(self) -> dict[str, Any]:
        """Results that twins compute once for all tiles of a process; not pickled."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "prepared"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def pair_triangle(
    codes: NDArray[np.int32], layout: ClueLayout, *, nulls: Literal["unknown", "value"] = "unknown"
) -> PairTriangle:
    """Make the triangle of the pairs of all rows. `codes`: int32 array (columns, rows); see `evidence.collect_clues`.

    Raises ValueError where shapes or dtypes don't fit.
    """
    check_codes(codes, layout)
    rows = codes.shape[1]
    every = np.arange(rows, dtype=np.int32), np.array([0, rows], dtype=np.int64)
    return PairTriangle(*arranged_codes(codes, layout.under(nulls), *every), layout)


def count_tile(
    pairs: PairTriangle,
    tile: tuple[int, int],
    *,
    device: Device | str = "auto",
    deadline: float | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """Count the clues of a tile: pairs of a row in a range with any row before it, the earlier row as t.

    Parameters
    ----------
    tile : first row, and the row behind the last
    deadline : `time.monotonic()` value

    Returns
    -------
    clues : uint64 array (distinct, words), sorted
    counts : int64 array (distinct,), over unordered pairs
    complete : False where the deadline came first

    Raises
    ------
    ValueError
        The range is empty or has rows that aren't in the table.
    DeviceError
        A device was asked for by name and can't be used.

    Notes
    -----
    Cost: that of `evidence.collect_clues` for these pairs, and once a process a pass over all codes. Of several GPUs
    the first one counts the tile; give the others tiles of their own.
    """
    first, last = tile
    if not 0 <= first < last <= pairs.rows:
        raise ValueError(f"tile: rows {first} to {last}; allowed: ranges in 0 to {pairs.rows}")
    control = Control(deadline, threads=threads)
    arguments = (pairs.codes, pairs.comparisons, first, last, control, pairs.prepared)

    def on_gpu() -> Counted:
        from tuplewise.gpu_kernels.cuda.evidence_tiles import run

        return run(*arguments)

    def on_cpu() -> Counted:
        from tuplewise.gpu_kernels.cpu.evidence_tiles import run

        return run(*arguments)

    return pick_device(device).run(COMPARING, on_gpu, on_cpu)


def merged(
    one: tuple[NDArray[np.uint64], NDArray[np.int64]], other: tuple[NDArray[np.uint64], NDArray[np.int64]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Merge the clues and counts of two tiles; associative and commutative."""
    return merge_clues(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def of_all_tiles(
    pairs: PairTriangle, clues: NDArray[np.uint64], counts: NDArray[np.int64], complete: bool
) -> ClueSet:
    """Make the result of `evidence.collect_clues` from the merged clues and counts of all tiles."""
    return of_both_orders(clues, counts, pairs.layout, True, 2 * int(counts.sum()), complete)
