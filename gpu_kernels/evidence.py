"""Front door of the pairwise evidence kernel: distinct clues of pairs of tuples, with counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import ClueLayout, merge_clues, mirror_clues


@dataclass(frozen=True, eq=False)
class ClueSet:
    """The distinct clues of all ordered pairs that were compared.

    Attributes
    ----------
    clues : uint64 array (distinct, words), sorted, word 0 most significant
    counts : int64 array (distinct,) or None
        Ordered pairs that have each clue; None where they were not asked for.
    ordered_pairs : int
        How many ordered pairs were compared.
    complete : bool
        False where a deadline came first: then some pairs were not compared.
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
    layout : ClueLayout
        The comparisons, closed under exchange of t and u.
    nulls : "unknown" or "value"
        Whether a null operand makes an outcome UNKNOWN, or null is a value below all others.
    members, group_offsets : int32 array (m,), int64 array (groups + 1,), both or neither
        Group k is the rows `members[group_offsets[k]:group_offsets[k + 1]]`; only pairs inside a group are compared.
    counting : bool
        Whether counts are wanted.
    deadline : float or None
        `time.monotonic()` value; comparing ends soon after it and the result is marked incomplete.

    Raises
    ------
    ValueError
        Where shapes or dtypes don't fit, or groups are given by halves.
    DeviceError
        Where a device is asked for by name and can't be used.

    Notes
    -----
    Cost: pairs x comparisons / 32 vector operations and one count a pair on the CPU (see `cpu.evidence`). Memory does
    not depend on the number of pairs.
    """
    codes, members, group_offsets = _checked(codes, layout, members, group_offsets)
    picked = pick_device(device) if isinstance(device, str) else device
    control = Control(deadline=deadline, progress=progress)
    if threads is not None:
        control.threads = threads
    used = np.unique(np.concatenate([layout.left, layout.right])) if layout.comparisons else np.empty(0, np.int32)
    place = np.zeros(len(codes), dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    order = _row_order(codes[used], members, group_offsets)
    arranged = np.ascontiguousarray(codes[np.ix_(used, order)]) if len(used) else np.zeros((1, len(order)), np.int32)
    if picked.kind == "cuda":
        from tuplewise.gpu_kernels.cuda.evidence import run
    else:
        from tuplewise.gpu_kernels.cpu.evidence import run
    with picked.active():
        clues, counts, complete = run(
            arranged, place[layout.left], place[layout.right], layout.scope, layout.ordered, nulls == "unknown",
            group_offsets, counting, control,
        )  # fmt: skip
    pairs = 2 * int(counts.sum()) if counting else _pairs_in(group_offsets)
    both = np.concatenate([clues, mirror_clues(clues, layout)])
    clues, counts = merge_clues(both, np.concatenate([counts, counts]))
    return ClueSet(clues, counts if counting else None, pairs, complete)


def _pairs_in(group_offsets: NDArray[np.int64]) -> int:
    return sum(int(size) * (int(size) - 1) for size in np.diff(group_offsets))


def _checked(
    codes: NDArray[np.int32],
    layout: ClueLayout,
    members: NDArray[np.int32] | None,
    group_offsets: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    if codes.ndim != 2 or codes.dtype != np.int32:
        raise ValueError(f"codes: {codes.dtype} array of {codes.ndim} dimensions; allowed: int32 (columns, rows)")
    if layout.comparisons and int(max(layout.left.max(), layout.right.max())) >= len(codes):
        raise ValueError(f"the layout names column {int(max(layout.left.max(), layout.right.max()))} of {len(codes)}")
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


def _row_order(
    codes: NDArray[np.int32], members: NDArray[np.int32], group_offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Members, group by group, sorted inside a group by the columns with the fewest values first.

    So neighbours agree on most columns, and two blocks of rows hold few distinct clues (notes: the order of rows is
    what counting costs). As many columns as fit a 63-bit key are sorted by.
    """
    sizes = np.diff(group_offsets)
    key = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    room = (1 << 62) // max(1, len(sizes))
    dense = []
    for row in codes:
        seen = np.zeros(int(row.max(initial=-1)) + 2, dtype=np.bool_)
        seen[row + 1] = True
        dense.append((int(np.count_nonzero(seen)), (np.cumsum(seen) - 1), row))
    for distinct, rank, row in sorted(dense, key=lambda d: d[0]):
        if distinct > room:
            break
        key = key * distinct + rank[row[members] + 1]
        room //= max(1, distinct)
    return members[np.argsort(key, kind="stable")]
