"""Clues of pairs of tuples by definition, in plain Python. Imports nothing of tuplewise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

LESS = DIFFERENT = 0
EQUAL = 1
GREATER = 2
UNKNOWN = 3
ACROSS, WITHIN_T, WITHIN_U = 0, 1, 2

Comparison = tuple[int, int, int, bool]  # left column, right column, scope, ordered


def outcome(a: int, b: int, ordered: bool, null_is_unknown: bool) -> int:
    """Outcome of one comparison of two codes; -1 is null."""
    if null_is_unknown and (a == -1 or b == -1):
        return UNKNOWN
    if a == b:
        return EQUAL
    if not ordered:
        return DIFFERENT
    return LESS if a < b else GREATER


def clue(
    table: Sequence[Sequence[int]], comparisons: Sequence[Comparison], t: int, u: int, null_is_unknown: bool
) -> tuple[int, ...]:
    """Outcomes of all comparisons of rows t and u. `table[column][row]`."""
    result = []
    for left, right, scope, ordered in comparisons:
        a = table[left][u if scope == WITHIN_U else t]
        b = table[right][t if scope == WITHIN_T else u]
        result.append(outcome(a, b, ordered, null_is_unknown))
    return tuple(result)


def words(outcomes: Sequence[int]) -> tuple[int, ...]:
    """Two bits a comparison, 32 comparisons a word, the first in the lowest bits."""
    packed = [0] * max(1, (len(outcomes) + 31) // 32)
    for g, value in enumerate(outcomes):
        packed[g // 32] |= value << (2 * (g % 32))
    return tuple(packed)


def count_clues(
    table: Sequence[Sequence[int]],
    comparisons: Sequence[Comparison],
    groups: Sequence[Sequence[int]],
    null_is_unknown: bool,
) -> dict[tuple[int, ...], int]:
    """Number of pairs t before u inside a group, for each clue word tuple; a group lists its rows in order."""
    counts: Counter[tuple[int, ...]] = Counter()
    for group in groups:
        for position, t in enumerate(group):
            for u in group[position + 1 :]:
                counts[words(clue(table, comparisons, t, u, null_is_unknown))] += 1
    return dict(counts)
