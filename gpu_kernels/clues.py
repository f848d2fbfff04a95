"""Front door: distinct clues of chosen pairs of rows, each returned once.

Discovery on large tables compares a small share of all pairs, in many portions, and needs each clue only once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.evidence import ClueSet, check_codes, of_both_orders
from tuplewise.gpu_kernels.words import ClueLayout


@dataclass(frozen=True, eq=False)
class NewClues:
    """Clues that a portion of pairs added.

    Attributes
    ----------
    clues : uint64 array (new, words), sorted, distinct, of both orders
    rows : int32 array (new, 2)
        A pair (t, u) that left each; with no rows where the device doesn't tell.
    ordered_pairs : how many ordered pairs were compared (twice the number of pairs of rows)
    complete : False where a deadline came first: then some pairs were not compared
    """

    clues: NDArray[np.uint64]
    rows: NDArray[np.int32]
    ordered_pairs: int
    complete: bool


class _ComparingTwin(Protocol):
    def within(
        self, pairs: ClusterPairs, control: Control
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], bool]: ...

    def of_pairs(
        self, t: NDArray[np.int32], u: NDArray[np.int32], counting: bool
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]: ...

    def of_weighted_rows(
        self, weights: NDArray[np.int64], control: Control
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]: ...


def _sorted(clues: NDArray[np.uint64], rows: NDArray[np.int32], pairs: int, complete: bool) -> NewClues:
    order = np.lexsort(clues.T[::-1])
    return NewClues(np.ascontiguousarray(clues[order]), rows[order] if len(rows) else rows, pairs, complete)


class ComparableRows:
    """Rows of a table, laid out once and then compared in portions. Make one with `lay_out`.

    Each clue is returned once in the life of the object, by the first call that meets it; of those that tell nothing
    new (`lay_out`), some not at all. A pair counts as met in both orders.
    """

    def __init__(
        self, twin: _ComparingTwin, rows: int, layout: ClueLayout, device: Device, threads: int | None
    ) -> None:
        self._twin, self._rows, self._layout, self._device, self._threads = twin, rows, layout, device, threads

    def within(
        self,
        pairs: ClusterPairs,
        *,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
        threads: int | None = None,
    ) -> NewClues:
        """Compare all pairs of different rows inside cluster pairs. Thread-safe.

        Parameters
        ----------
        pairs : left sets are t, right sets are u; of reflexive ones each pair of rows is compared once
        deadline : `time.monotonic()` value; comparing ends soon after it and the result is marked incomplete
        threads : of the CPU twin; None: as many as were asked for when the rows were laid out

        Notes
        -----
        Cost on the CPU: comparisons / 4 vector operations of 8 lanes and one table look-up for each pair (floor: the
        look-up, about one cycle); one gather of its columns for each row of a cluster. Memory: one copy of the codes,
        row by row; a table of at most 64 MiB, or a hash table of the distinct clues.

        Source: notes on large tables of this project; comparing follows `cpu.evidence`, without ranks.
        """
        control = Control(deadline, progress, threads or self._threads)
        clues, rows, complete = self._twin.within(pairs, control)
        compared = pairs.pairs - len(pairs.left) if pairs.reflexive else 2 * pairs.pairs
        return _sorted(clues, rows, compared, complete)

    @overload
    def of_pairs(self, t: NDArray[np.int32], u: NDArray[np.int32]) -> NewClues: ...

    @overload
    def of_pairs(self, t: NDArray[np.int32], u: NDArray[np.int32], *, counting: Literal[True]) -> ClueSet: ...

    def of_pairs(
        self, t: NDArray[np.int32], u: NDArray[np.int32], *, counting: bool = False
    ) -> NewClues | ClueSet:
        """Compare the rows t[i] with u[i], and u[i] with t[i].

        Parameters
        ----------
        t, u : int32 arrays (k,)
            A pair of a row with itself counts like any other.
        counting : bool
            Return all distinct clues with their counts (2 k in all), not only the new ones, and mark none as met.

        Notes
        -----
        Cost: two gathers for each pair, then its comparisons one by one. Runs on the CPU for every device: it serves
        samples and witnesses, which are few and scattered pairs.
        """
        if t.shape != u.shape or t.ndim != 1:
            raise ValueError(f"t and u: arrays of shapes {t.shape} and {u.shape}; allowed: two of one length")
        t, u = t.astype(np.int32, copy=False), u.astype(np.int32, copy=False)
        clues, rows, counts = self._twin.of_pairs(t, u, counting)
        if not counting:
            return _sorted(clues, rows, 2 * len(t), True)
        return of_both_orders(clues, counts, self._layout, True, 2 * len(t), True)

    def of_weighted_rows(
        self,
        weights: NDArray[np.int64],
        *,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> ClueSet:
        """Compare all pairs of rows, where row i stands for weights[i] rows that are equal to it; marks no clue as met.

        Parameters
        ----------
        weights : int64 array (rows,), 1 or more
        deadline : `time.monotonic()` value

        Returns
        -------
        ClueSet
            All distinct clues, with counts of ordered pairs of different rows, those of equal rows too.

        Notes
        -----
        Cost: as `within` for the pairs, with a count in a hash table for each. Runs on the CPU for every device: rows
        that stand for many are few.
        """
        if weights.shape != (self._rows,) or weights.dtype != np.int64:
            raise ValueError(f"weights: {weights.dtype} array of shape {weights.shape}; allowed: int64 ({self._rows},)")
        control = Control(deadline, progress, self._threads)
        clues, counts, complete = self._twin.of_weighted_rows(weights, control)
        return of_both_orders(clues, counts, self._layout, True, 2 * int(counts.sum()), complete)


def lay_out(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    *,
    nulls: Literal["unknown", "value"] = "unknown",
    device: Device | str = "auto",
    threads: int | None = None,
    telling: bool = False,
) -> ComparableRows:
    """Lay out the rows of a table for comparing.

    Parameters
    ----------
    codes : int32 array (columns, rows)
        Ranks that can be compared within each comparison of the layout; -1 is null.
    layout : the comparisons, closed under exchange of t and u
    nulls : "unknown" or "value"
        Whether a null operand makes an outcome UNKNOWN, or null is a value below all others.
    telling : bool
        Whether clues may be left out that tell nothing new: others have the same difference set (the columns that
        differ), and for any two of its columns there is one that orders them in the same way, alike or oppositely. For
        layouts that compare each column with itself, in order, where nulls are values.

    Raises
    ------
    ValueError
        Where shapes or dtypes don't fit, or a layout for which nothing is told.

    Examples
    --------
    >>> from tuplewise.gpu_kernels.clusters import all_rows
    >>> from tuplewise.gpu_kernels.words import make_layout
    >>> rows = lay_out(np.array([[1, 1, 2]], dtype=np.int32), make_layout([(0, 0, 0, False)]))
    >>> rows.within(all_rows(np.arange(3, dtype=np.int32))).clues.ravel().tolist()
    [0, 1]
    >>> rows.of_pairs(np.array([0]), np.array([1])).clues.ravel().tolist()
    []
    """
    check_codes(codes, layout)
    if telling and (nulls != "value" or not np.all(layout.ordered & (layout.left == layout.right))):
        raise ValueError(f"telling: {telling!r} for this layout; allowed: for columns compared in order, nulls='value'")
    picked = pick_device(device)
    if picked.kind == "cuda":
        from tuplewise.gpu_kernels.cuda.clues import ComparableRows as CudaRows

        twin: _ComparingTwin = CudaRows(codes, layout, nulls == "unknown", picked)
    else:
        from tuplewise.gpu_kernels.cpu.clues import ComparableRows as Rows

        twin = Rows(codes, layout, nulls == "unknown", telling)
    return ComparableRows(twin, codes.shape[1], layout, picked, threads)
