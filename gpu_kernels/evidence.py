"""Front door of the pairwise evidence kernel: distinct clues of pairs of tuples, with counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import ClueLayout, Comparisons, among_compared, merge_clues, mirror_clues

COMPARING = "comparing pairs"  # the work named where a device has no room for all clues

Counted = tuple[NDArray[np.uint64], NDArray[np.int64], bool]


@dataclass(frozen=True, eq=False)
class ClueSet:
    """Distinct clues of the ordered pairs that were compared.

    Attributes
    ----------
    clues : uint64 array (distinct, words), sorted, word 0 most significant
    counts : int64 array (distinct,) or None
        Ordered pairs that have each clue; None where they were not asked for.
    ordered_pairs : how many ordered pairs were compared
    complete : False where a deadline came first: then some pairs were not compared
    """

    clues: NDArray[np.uint64]
    counts: NDArray[np.int64] | None
    ordered_pairs: int
    complete: bool


def collect_clues(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    *,
    nulls: Literal["unknown", "value"] = "unknown",
    members: NDArray[np.int32] | None = None,
    group_offsets: NDArray[np.int64] | None = None,
    counting: bool = True,
    device: Device | str = "auto",
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> ClueSet:
    """Compare all pairs of rows, or all pairs inside groups of rows, and return the distinct clues.

    Only one of the two clues of a pair of rows is computed; the clue of the exchanged pair is derived.

    Parameters
    ----------
    codes : int32 array (columns, rows)
        Ranks that can be compared within each comparison of the layout; -1 is null.
    layout : the comparisons, closed under exchange of t and u
    nulls : "unknown" or "value"
        Whether a null operand makes an outcome UNKNOWN, or null is a value below all others.
    members, group_offsets : int32 array (m,), int64 array (groups + 1,), both or neither
        Group k is the rows `members[group_offsets[k]:group_offsets[k + 1]]`; only pairs inside a group are compared.
    counting : whether counts are wanted
    deadline : `time.monotonic()` value; comparing ends soon after it and the result is marked incomplete

    Raises
    ------
    ValueError
        Where shapes or dtypes don't fit, or only one of the arrays of groups is given.
    DeviceError
        Where a device was asked for by name and can't be used.

    Notes
    -----
    Cost on the CPU: comparisons / 32 vector operations and one count for each pair (see `cpu.evidence`). Memory doesn't
    depend on the number of pairs. Several GPUs share the pairs where there are enough of them.
    """
    codes, members, group_offsets = _checked(codes, layout, members, group_offsets)
    picked = pick_device(device)
    control = Control(deadline, progress, threads, picked.more)
    compared = arranged_codes(codes, layout.under(nulls), members, group_offsets)
    arguments = (*compared, group_offsets, control)

    def on_gpu() -> Counted:
        from tuplewise.gpu_kernels.cuda.evidence import run

        return run(*arguments)

    def on_cpu() -> Counted:
        from tuplewise.gpu_kernels.cpu.evidence import run

        return run(*arguments)

    clues, counts, complete = picked.run(COMPARING, on_gpu, on_cpu)
    pairs = 2 * int(counts.sum()) if counting else _pairs_in(group_offsets)
    return of_both_orders(clues, counts, layout, counting, pairs, complete)


def collect_clues_between(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    *,
    nulls: Literal["unknown", "value"] = "unknown",
    counting: bool = True,
    device: Device | str = "auto",
    deadline: float | None = None,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
) -> ClueSet:
    """Compare each row of one set with each row of another, in both orders, and return the distinct clues.

    Parameters
    ----------
    codes : int32 array (columns, rows)
        Codes that can be compared within each comparison of the layout; -1 is null. Gaps between codes may be large.
    left, right : integer arrays (m,) and (k,)
        Numbers of rows, no row in both; a row listed twice counts twice.

    Other parameters and errors are those of `collect_clues`.

    Notes
    -----
    Cost: see `cpu.evidence_between`. The rows of a clue are not returned.

    Examples
    --------
    >>> from tuplewise.gpu_kernels.words import make_layout
    >>> codes = np.array([[7, 7, 90000]], dtype=np.int32)
    >>> found = collect_clues_between(codes, make_layout([(0, 0, 0, False)]), np.array([0]), np.array([1, 2]))
    >>> found.clues.ravel().tolist(), found.counts.tolist()
    ([0, 1], [2, 2])
    """
    check_codes(codes, layout)
    sides = [_checked_rows(name, rows, codes.shape[1]) for name, rows in (("left", left), ("right", right))]
    few, many = sorted(sides, key=len)
    if len(few) == 0:
        nothing = np.zeros((0, layout.words), dtype=np.uint64), np.zeros(0, dtype=np.int64)
        return ClueSet(nothing[0], nothing[1] if counting else None, 0, True)
    picked = pick_device(device)
    control = Control(deadline, progress, threads, picked.more)
    arguments = (codes, many, few, layout.under(nulls), control)

    def on_gpu() -> Counted:
        from tuplewise.gpu_kernels.cuda.evidence_between import run

        return run(*arguments)

    def on_cpu() -> Counted:
        from tuplewise.gpu_kernels.cpu.evidence_between import run

        return run(*arguments)

    clues, counts, complete = picked.run(COMPARING, on_gpu, on_cpu)
    return of_both_orders(clues, counts, layout, counting, 2 * int(counts.sum()), complete)


def _checked_rows(name: str, rows: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"{name}: {rows.dtype} array of {rows.ndim} dimensions; allowed: integers (rows,)")
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise ValueError(f"{name}: rows {rows.min()} to {rows.max()}; allowed: 0 to {count - 1}")
    return rows.astype(np.int64, copy=False)


def of_both_orders(
    clues: NDArray[np.uint64], counts: NDArray[np.int64], layout: ClueLayout, counting: bool, pairs: int, complete: bool
) -> ClueSet:
    """Clues of both orders of pairs, from those of one order."""
    both = np.concatenate([clues, mirror_clues(clues, layout)])
    clues, counts = merge_clues(both, np.concatenate([counts, counts]))
    return ClueSet(clues, counts if counting else None, pairs, complete)


def _pairs_in(group_offsets: NDArray[np.int64]) -> int:
    return sum(int(size) * (int(size) - 1) for size in np.diff(group_offsets))


def check_codes(codes: NDArray[np.int32], layout: ClueLayout) -> None:
    if codes.ndim != 2 or codes.dtype != np.int32:
        raise ValueError(f"codes: {codes.dtype} array of {codes.ndim} dimensions; allowed: int32 (columns, rows)")
    if layout.comparisons and int(max(layout.left.max(), layout.right.max())) >= len(codes):
        raise ValueError(f"the layout names column {int(max(layout.left.max(), layout.right.max()))} of {len(codes)}")


def _checked(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    members: NDArray[np.int32] | None,
    group_offsets: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    check_codes(codes, layout)
    rows = codes.shape[1]
    if (members is None) != (group_offsets is None):
        raise ValueError("members and group_offsets: give both or neither")
    if members is None or group_offsets is None:
        return codes, np.arange(rows, dtype=np.int32), np.array([0, rows], dtype=np.int64)
    if len(group_offsets) == 0 or group_offsets[0] != 0 or group_offsets[-1] != len(members):
        raise ValueError("group_offsets: must begin with 0 and end with the number of members")
    if (np.diff(group_offsets) < 0).any():
        raise ValueError("group_offsets: must not fall")
    return codes, members.astype(np.int32, copy=False), group_offsets.astype(np.int64, copy=False)


def arranged_codes(
    codes: NDArray[np.int32], comparisons: Comparisons, members: NDArray[np.int32], group_offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Comparisons]:
    """The columns that are compared, int32 (columns, members), rows as `row_order` says, and their comparisons."""
    used = np.unique(np.concatenate([comparisons.left, comparisons.right]))
    return among_compared(codes, comparisons, row_order(codes[used], members, group_offsets))


def row_order(
    codes: NDArray[np.int32], members: NDArray[np.int32], group_offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Sort the members of each group, by the columns of least entropy first.

    Neighbours then agree on most columns, and two blocks of rows have few distinct clues, which are counted faster.
    Entropy, not the number of values, decides: a column of many values that is nearly always 0 is constant over most
    blocks only if it comes early. The sort uses as many columns as fit a 63-bit key.
    """
    sizes = np.diff(group_offsets)
    key = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    room = (1 << 62) // max(1, len(sizes))
    dense = []
    for row in codes:
        rows_with = np.bincount(row + 1)
        seen = rows_with > 0
        shares = rows_with[seen] / len(row)
        entropy = -float(shares @ np.log(shares))
        dense.append((entropy, len(shares), np.cumsum(seen) - 1, row))
    for _, distinct, rank, row in sorted(dense, key=lambda d: d[:2]):
        if distinct > room:
            break
        key = key * distinct + rank[row[members] + 1]
        room //= max(1, distinct)
    return members[np.argsort(key, kind="stable")]
