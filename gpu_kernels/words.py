"""Bit layout of clue words, shared by all twins: the outcomes of comparing a pair of tuples.

A *comparison* is one column pair that a pair of tuples (t, u) is compared on. Its *outcome* takes two bits:
LESS (or DIFFERENT, where the columns have no order), EQUAL, GREATER, UNKNOWN (a null operand under the rule
"unknown"). The *clue* of (t, u) holds the outcomes of all comparisons, comparison g in bits 2*(g % 32) and
2*(g % 32) + 1 of word g // 32. Clues are sorted with word 0 as the most significant key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

LESS = DIFFERENT = 0
EQUAL = 1
GREATER = 2
UNKNOWN = 3

ACROSS = 0  # t.left against u.right
WITHIN_T = 1  # t.left against t.right
WITHIN_U = 2  # u.left against u.right

COMPARISONS_PER_WORD = 32


def clue_words(comparisons: int) -> int:
    """Number of 64-bit words of a clue."""
    return max(1, -(-comparisons // COMPARISONS_PER_WORD))


class Comparisons(NamedTuple):
    """The comparisons of clues, as kernels take them: arrays (comparisons,) as in `ClueLayout`, and the rule for nulls.

    `unknown`: whether an outcome with a null operand is UNKNOWN; else -1 is an ordinary lowest value.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    scope: NDArray[np.int8]
    ordered: NDArray[np.bool_]
    unknown: bool


@dataclass(frozen=True, eq=False)
class ClueLayout:
    """Comparisons of a clue, closed under exchange of t and u.

    Attributes
    ----------
    left, right : int32 arrays (comparisons,)
        Column of each operand.
    scope : int8 array (comparisons,)
        ACROSS: t.left against u.right; WITHIN_T: t.left against t.right; WITHIN_U: u.left against u.right.
    ordered : bool array (comparisons,)
        Whether `<` and `>` are told apart.
    mirror : int32 array (comparisons,)
        The comparison whose outcome for (u, t) follows from this one's outcome for (t, u). `t.A : u.A` is its own
        mirror, `t.A : u.B` has `t.B : u.A` (both exchange LESS and GREATER); `t.A : t.B` has `u.A : u.B` (same
        outcome).
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    scope: NDArray[np.int8]
    ordered: NDArray[np.bool_]
    mirror: NDArray[np.int32]

    @property
    def comparisons(self) -> int:
        return len(self.left)

    @property
    def words(self) -> int:
        return clue_words(self.comparisons)

    def under(self, nulls: Literal["unknown", "value"]) -> Comparisons:
        """The comparisons under a rule for nulls."""
        return Comparisons(self.left, self.right, self.scope, self.ordered, nulls == "unknown")


def make_layout(comparisons: list[tuple[int, int, int, bool]]) -> ClueLayout:
    """Make a layout of comparisons (left, right, scope, ordered), completed by missing mirrors.

    Given comparisons keep their order; missing mirrors are appended in order. Duplicates are refused.
    """
    wanted = list(comparisons)
    index = {(a, b, s): i for i, (a, b, s, _) in enumerate(wanted)}
    if len(index) != len(wanted):
        raise ValueError("a comparison is given twice")
    for a, b, s, ordered in comparisons:
        key = _mirror_key(a, b, s)
        if key not in index:
            index[key] = len(wanted)
            wanted.append((*key, ordered))
    mirror = [index[_mirror_key(a, b, s)] for a, b, s, _ in wanted]
    return ClueLayout(
        left=np.array([w[0] for w in wanted], dtype=np.int32),
        right=np.array([w[1] for w in wanted], dtype=np.int32),
        scope=np.array([w[2] for w in wanted], dtype=np.int8),
        ordered=np.array([w[3] for w in wanted], dtype=np.bool_),
        mirror=np.array(mirror, dtype=np.int32),
    )


def _mirror_key(a: int, b: int, scope: int) -> tuple[int, int, int]:
    if scope == ACROSS:
        return b, a, ACROSS
    return a, b, WITHIN_U if scope == WITHIN_T else WITHIN_T


def outcomes(clues: NDArray[np.uint64], comparison: int) -> NDArray[np.uint8]:
    """Outcome of one comparison in each clue. `clues`: uint64 (distinct, words); returns uint8 (distinct,)."""
    word = clues[:, comparison // COMPARISONS_PER_WORD]
    shift = np.uint64(2 * (comparison % COMPARISONS_PER_WORD))
    return ((word >> shift) & np.uint64(3)).astype(np.uint8)


def outcomes_within(
    codes: NDArray[np.int32], left: int, right: int, ordered: bool, nullable: bool
) -> NDArray[np.uint8]:
    """Outcome of one comparison within each row. `codes`: int32 (columns, rows); returns uint8 (rows,)."""
    a, b = codes[left], codes[right]
    found = np.where(a == b, EQUAL, np.where(ordered & (a > b), GREATER, LESS)).astype(np.uint8)
    if nullable:
        found[(a < 0) | (b < 0)] = UNKNOWN
    return found


def among_compared(
    codes: NDArray[np.int32], comparisons: Comparisons, rows: NDArray[np.integer]
) -> tuple[NDArray[np.int32], Comparisons]:
    """These rows of the columns that are compared, C order, and the comparisons by their places among these columns."""
    used = np.unique(np.concatenate([comparisons.left, comparisons.right]))
    arranged = np.ascontiguousarray(codes[np.ix_(used, rows)]) if len(used) else np.zeros((1, len(rows)), np.int32)
    left, right = (np.searchsorted(used, side).astype(np.int32) for side in comparisons[:2])
    return arranged, comparisons._replace(left=left, right=right)


def mirror_clues(clues: NDArray[np.uint64], layout: ClueLayout) -> NDArray[np.uint64]:
    """Clues of the exchanged pairs, of the same shape and dtype. Cost: comparisons x clues."""
    mirrored = np.zeros_like(clues)
    for g in range(layout.comparisons):
        outcome = outcomes(clues, int(layout.mirror[g])).astype(np.uint64)
        if layout.scope[g] == ACROSS and layout.ordered[g]:
            outcome = np.array([GREATER, EQUAL, LESS, UNKNOWN], dtype=np.uint64)[outcome]
        mirrored[:, g // COMPARISONS_PER_WORD] |= outcome << np.uint64(2 * (g % COMPARISONS_PER_WORD))
    return mirrored


def merge_clues(
    clues: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Merge equal clues and sum their counts; sorted with word 0 most significant."""
    if len(clues) == 0:
        return clues, counts
    order = np.lexsort(clues.T[::-1])
    clues, counts = clues[order], counts[order]
    first = np.empty(len(clues), dtype=np.bool_)
    first[0] = True
    np.any(clues[1:] != clues[:-1], axis=1, out=first[1:])
    starts = np.flatnonzero(first)
    return np.ascontiguousarray(clues[starts]), np.add.reduceat(counts, starts)


def mask_words(bits: int) -> int:
    """Number of 64-bit words of a set of so many bits, at least one."""
    return max(1, -(-bits // 64))


def members(mask: NDArray[np.uint64]) -> list[int]:
    """The members of one set, ascending. `mask`: uint64 (words,).

    Examples
    --------
    >>> members(np.array([0b101], dtype=np.uint64))
    [0, 2]
    """
    return [64 * w + b for w, word in enumerate(mask.tolist()) for b in range(word.bit_length()) if word >> b & 1]


def as_flags(masks: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Unpack words to flags, bool (sets, count): bit b % 64 of word b // 64 is flag b. `masks`: uint64 (sets, words).

    Examples
    --------
    >>> as_flags(np.array([[0b101]], dtype=np.uint64), 3).tolist()
    [[True, False, True]]
    """
    as_bytes = np.ascontiguousarray(masks).astype("<u8", copy=False).view(np.uint8)
    as_bytes = as_bytes.reshape(len(masks), 8 * masks.shape[1])
    return np.unpackbits(as_bytes, axis=1, bitorder="little", count=count).astype(np.bool_)


def as_masks(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack flags, bool (sets, any), into words: uint64 (sets, words), at least one word."""
    padded = np.zeros((len(flags), 64 * mask_words(flags.shape[1])), dtype=np.bool_)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
