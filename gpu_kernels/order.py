"""Front door of the checks that need classes of equal rows: keys, constancy, order compatibility.

On GPUs the first one works, in batches of contexts that fit its memory. The batches of a call share the codes there,
and levels of partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control, usable_cores
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.order_types import ASCENDING, DESCENDING, KEY, Checks, sorted_checks
from tuplewise.gpu_kernels.words import mask_words

CACHE_BYTES = 1 << 28
CHECKING = "checking orders"

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Checked:
    """Results of checks.

    Attributes
    ----------
    holds : bool array (checks,)
    pairs : int32 array (pairs, 2)
        Violating pairs of rows (t, u), check by check; within a check by descending agreement, then by u.
    first : int64 array (checks + 1,)
        pairs[first[k] : first[k + 1]] are those of check k.
    complete : False where a deadline came first: then `holds` means nothing, and pairs of some checks are missing
    """

    holds: NDArray[np.bool_]
    pairs: NDArray[np.int32]
    first: NDArray[np.int64]
    complete: bool


@dataclass(frozen=True, eq=False)
class Removals:
    """Distances of checks from holding.

    Attributes
    ----------
    rows : int64 array (checks,)
        The fewest rows to remove so that the check holds.
    complete : False where a deadline came first: then `rows` means nothing
    """

    rows: NDArray[np.int64]
    complete: bool


class _CheckingTwin(Protocol):
    def check(
        self, checks: Checks, limit: int, control: Control
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool]: ...


class _CpuTwin(_CheckingTwin, Protocol):
    by_rank: NDArray[np.int64]

    def removals(self, checks: Checks, most: int, control: Control) -> tuple[NDArray[np.int64], bool]: ...


class PartitionedRows:
    """Table whose rows are grouped into classes by any sets of columns, for checks. Make one with `lay_out_orders`.

    Orders of columns and partitions are kept for later calls. Not thread-safe: one call at a time.
    """

    def __init__(
        self,
        on_cpu: _CpuTwin,
        on_gpu: _CheckingTwin | None,
        shape: tuple[int, int],
        strict: bool,
        device: Device,
        threads: int | None,
    ) -> None:
        self._on_cpu, self._on_gpu, self._device = on_cpu, on_gpu, device
        self._shape, self._strict, self._threads = shape, strict, threads

    def check(
        self,
        contexts: NDArray[np.uint64],
        which: Numbers,
        kind: Numbers,
        left: Numbers,
        right: Numbers,
        *,
        limit: int = 1,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Checked:
        """Check dependencies, and list violating pairs of those that don't hold.

        Parameters
        ----------
        contexts : uint64 array (contexts, words)
            Sets of columns, distinct: column c is bit c % 64 of word c // 64; max(1, ceil(columns / 64)) words.
        which : integer array (checks,)
            The context of each check.
        kind : integer array (checks,)
            KEY (no two rows in a class), CONSTANT (one value of `left` in a class), ASCENDING or DESCENDING (`left` and
            `right` don't order two rows of a class oppositely, or alike).
        left, right : integer arrays (checks,)
            Columns; `right` counts for pairs of columns only, neither for KEY.
        limit : pairs wanted of each violated check, best first, at most those that are compared (64 to 256); 0: none
        deadline : `time.monotonic()` value; work ends soon after it and the result is marked incomplete
        progress : called with the share that is done, 0 to 1

        Returns
        -------
        Checked
            In pairs (t, u), t is the first row of the class (KEY, CONSTANT), or the row with the largest (DESCENDING:
            least) `right` among the rows with smaller `left` than u.

        Raises
        ------
        ValueError
            Where shapes, numbers or kinds don't fit, or order compatibility is asked for with unknown nulls.

        Notes
        -----
        Cost, measured on one core at 300,000 rows: a context refines its longest kept prefix, about 13 ns for each row
        and column. A constancy then gathers one code a row, 3 to 5 ns. An order-compatible pair also gathers one, 6 ns
        for both directions, plus 9 ns for each `left` that is sorted. The floor is that gather from a column in
        third-level cache, about 3 ns: a constancy reaches it, a pair in one direction takes two to three times as long.
        Only rows of classes of at least two count, and a check ends at its first violation. A violated check with
        `limit` above 0 takes another pass, about 9 ns a row, and compares at most 256 pairs on all columns (fewer where
        there are many columns). Each violating row u gives one pair; those of the smallest mixed row numbers are
        compared. Memory: 9 bytes a cell for orders, marks and classes of the columns in use; about 45 bytes a row and
        thread; the `cache_bytes` of `lay_out_orders`.

        Source: Li, Li, Tan, Yang, "Efficient set-based order dependency discovery with a level-wise hybrid strategy",
        ICDE 2023, algorithm 4; Szlichta, Godfrey, Golab, Kargar, Srivastava, "Effective and complete discovery of
        bidirectional order dependencies via set-based axioms", VLDB Journal 27(4), 2018; partitions: Huhtala et al.,
        TANE, 1999. Departures: both directions take one pass; the extreme is over all smaller values of `left`, not
        only the next smaller one; a class is represented by its first row, not a random one; the number of ranked pairs
        is bounded.

        Examples
        --------
        >>> rows = lay_out_orders(np.array([[0, 0, 1], [0, 1, 2], [2, 1, 0]], dtype=np.int32), device="cpu")
        >>> empty = np.zeros((1, 1), dtype=np.uint64)
        >>> checked = rows.check(empty, [0, 0], [ASCENDING, DESCENDING], [1, 1], [2, 2])
        >>> checked.holds.tolist(), checked.pairs.tolist(), checked.first.tolist()
        ([False, True], [[0, 1]], [0, 1, 1])
        """
        if not isinstance(limit, int | np.integer) or limit < 0:
            raise ValueError(f"limit: {limit!r}; allowed: 0 and above")
        checks, asked = self._sorted(contexts, which, kind, left, right)
        control = Control(deadline, progress, self._threads)
        found, counts, pairs, complete = self._device.run(
            CHECKING,
            lambda: (self._on_gpu or self._on_cpu).check(checks, int(limit), control),
            lambda: self._on_cpu.check(checks, int(limit), control),
            forget=self._forget,
        )
        holds, number = np.zeros(len(asked), dtype=np.bool_), np.zeros(len(asked), dtype=np.int64)
        holds[asked], number[asked] = found, counts
        first = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
        place = np.arange(len(pairs)) + np.repeat(first[:-1][asked] - (np.cumsum(counts) - counts), counts)
        placed = np.empty_like(pairs)
        placed[place] = pairs
        return Checked(holds, placed, first, complete)

    def removals(
        self,
        contexts: NDArray[np.uint64],
        which: Numbers,
        kind: Numbers,
        left: Numbers,
        right: Numbers,
        *,
        most: int | None = None,
        deadline: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Removals:
        """Count the fewest rows to remove so that each dependency holds.

        Parameters
        ----------
        contexts, which, kind, left, right, deadline, progress
            As in `check`.
        most : a check that needs more ends as soon as that shows, and gives `most` + 1

        Notes
        -----
        KEY: (rows in classes) - (classes). CONSTANT: rows without the most frequent value of their class. Pairs: rows
        of each class, less its longest subsequence in which `right` doesn't fall (DESCENDING: rise); rows are in order
        of `left`, and equal `left` in the order of `right` that makes it longest. Where nulls are unknown, rows with a
        null in the context, and nulls of a constant, needn't be removed.

        Cost: as `check`. A pair also sorts runs of equal `left` and does a binary search for each row, about 65 ns a
        row of large classes in all, less where `most` ends it.

        Source: see `cpu.removals`. Runs on the CPU for every device: the search of a row depends on that of the row
        before, and classes large enough to matter are few.

        Examples
        --------
        >>> rows = lay_out_orders(np.array([[0, 1, 2], [0, 2, 1]], dtype=np.int32), device="cpu")
        >>> rows.removals(np.zeros((1, 1), dtype=np.uint64), [0], [ASCENDING], [0], [1]).rows.tolist()
        [1]
        """
        if most is not None and (not isinstance(most, int | np.integer) or most < 0):
            raise ValueError(f"most: {most!r}; allowed: None, or 0 and above")
        checks, asked = self._sorted(contexts, which, kind, left, right)
        bound = self._shape[1] if most is None else min(int(most), self._shape[1])
        found, complete = self._on_cpu.removals(checks, bound, Control(deadline, progress, self._threads))
        rows = np.zeros(len(asked), dtype=np.int64)
        rows[asked] = found
        return Removals(rows, complete)

    def _forget(self) -> None:
        """Release the twin on a device, and its memory."""
        self._on_gpu = None

    def _sorted(
        self, contexts: NDArray[np.uint64], which: Any, kind: Any, left: Any, right: Any
    ) -> tuple[Checks, NDArray[np.int64]]:
        """Checks in order of work, and the number that each had; ValueError where arguments don't fit."""
        columns, words = self._shape[0], mask_words(self._shape[0])
        if not isinstance(contexts, np.ndarray) or contexts.dtype != np.uint64 or contexts.shape[1:] != (words,):
            shape, dtype = getattr(contexts, "shape", None), getattr(contexts, "dtype", type(contexts).__name__)
            raise ValueError(f"contexts: {dtype} array of shape {shape}; allowed: uint64 (contexts, {words})")
        spare = 64 * words - columns
        if spare and np.any(contexts[:, -1] >> np.uint64(64 - spare) if spare < 64 else contexts[:, -1]):
            raise ValueError(f"contexts: a column beyond the last of {columns}; allowed: bits 0 to {columns - 1}")
        which, left, right = (_numbers(name, a, np.int32) for name, a in zip(
            ("which", "left", "right"), (which, left, right), strict=True))  # fmt: skip
        kind = _numbers("kind", kind, np.int8)
        if not len(which) == len(kind) == len(left) == len(right):
            lengths = [len(array) for array in (which, kind, left, right)]
            raise ValueError(f"which, kind, left, right: arrays of lengths {lengths}; allowed: one length")
        _within("which", which, 0, len(contexts) - 1)
        _within("kind", kind, KEY, DESCENDING)
        _within("left", left[kind != KEY], 0, columns - 1)
        _within("right", right[kind >= ASCENDING], 0, columns - 1)
        if self._strict and np.any(kind >= ASCENDING):
            raise ValueError("kind: order compatibility where nulls are unknown; allowed: nulls='value' for it")
        return sorted_checks(contexts, self._on_cpu.by_rank, which, kind, left, right)


def _numbers(name: str, values: Any, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Convert to a one-dimensional array of whole numbers of this dtype."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name}: {array.dtype} array of {array.ndim} dimensions; allowed: whole numbers (checks,)")
    return array.astype(dtype, copy=False)


def _within(name: str, values: NDArray[Any], lowest: int, highest: int) -> None:
    wrong = values[(values < lowest) | (values > highest)]
    if len(wrong):
        raise ValueError(f"{name}: {int(wrong[0])}; allowed: {lowest} to {highest}")


def lay_out_orders(
    codes: NDArray[np.int32],
    *,
    nulls: Literal["unknown", "value"] = "value",
    device: Device | str = "auto",
    threads: int | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> PartitionedRows:
    """Lay out a table for checks of keys, constancy and order compatibility.

    Parameters
    ----------
    codes : int32 array (columns, rows)
        Dense ranks in each column's order; -1 is null. Copied only where it isn't C-contiguous; never written to.
    nulls : "value" or "unknown"
        Whether null is a value below all others, or agrees with nothing and differs from nothing.
    threads : threads of the CPU; None: all cores
    cache_bytes : what partitions may take that are kept from one context to the next, of all threads together

    Raises
    ------
    ValueError
        Where shapes, dtypes or values don't fit.

    Notes
    -----
    Cost: one pass over the codes. Memory: see `check`.

    Examples
    --------
    >>> rows = lay_out_orders(np.array([[0, 0, 1], [0, 1, 1]], dtype=np.int32), device="cpu")
    >>> contexts = np.array([[0b01], [0b11]], dtype=np.uint64)
    >>> rows.check(contexts, [0, 1], [KEY, KEY], [-1, -1], [-1, -1]).holds.tolist()
    [False, True]
    """
    if not isinstance(codes, np.ndarray) or codes.ndim != 2 or codes.dtype != np.int32:
        shape, dtype = getattr(codes, "shape", None), getattr(codes, "dtype", type(codes).__name__)
        raise ValueError(f"codes: {dtype} array of shape {shape}; allowed: int32 (columns, rows)")
    if codes.size and int(codes.min()) < -1:
        raise ValueError(f"codes: {int(codes.min())}; allowed: -1 (null), 0 and above")
    if nulls not in ("unknown", "value"):
        raise ValueError(f"nulls: {nulls!r}; allowed: 'unknown', 'value'")
    if threads is not None and threads < 1:
        raise ValueError(f"threads: {threads}; allowed: 1 and above")
    if cache_bytes < 0:
        raise ValueError(f"cache_bytes: {cache_bytes}; allowed: 0 and above")
    picked = pick_device(device)
    codes = np.ascontiguousarray(codes)
    strict = nulls == "unknown"
    from tuplewise.gpu_kernels.cpu import order as cpu

    on_cpu, on_gpu = cpu.PartitionedRows(codes, strict, cache_bytes, threads or usable_cores()), None
    if picked.kind == "cuda" and CHECKING not in picked.fallen:
        from tuplewise.gpu_kernels.cuda import order as cuda

        on_gpu = cuda.PartitionedRows(codes, strict)
    return PartitionedRows(on_cpu, on_gpu, codes.shape, strict, picked, threads)
