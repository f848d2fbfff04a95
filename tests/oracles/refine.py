"""Refinements and joins of cluster pairs by definition, in plain Python. Imports nothing of tuplewise.

A table is `table[column][row]`; cluster pairs are a list of (left rows, right rows); a comparison is (left column,
right column, outcomes), outcomes 1 (less), 2 (equal), 4 (greater) added.
"""

from __future__ import annotations

from collections.abc import Sequence

LESS, EQUAL, GREATER = 1, 2, 4

Table = Sequence[Sequence[int]]
Clusters = list[tuple[list[int], list[int]]]
Comparison = tuple[int, int, int]


def refine(table: Table, clusters: Clusters, equalities: Sequence[tuple[int, int]], reflexive: bool) -> Clusters:
    """Cluster pairs that agree on these columns, too, in order of the values; those without different rows left out.

    Where both sides are one set, equalities of a column with itself are taken first.
    """
    if not equalities:
        return clusters
    if reflexive:
        equalities = sorted(equalities, key=lambda pair: pair[0] != pair[1])
    found = []
    for lefts, rights in clusters:
        groups: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        for t in lefts:
            groups.setdefault(tuple(table[a][t] for a, _ in equalities), ([], []))[0].append(t)
        for u in rights:
            groups.setdefault(tuple(table[b][u] for _, b in equalities), ([], []))[1].append(u)
        for _, group in sorted(groups.items()):
            if any(t != u for t in group[0] for u in group[1]):
                found.append(group)
    return found


def satisfied(table: Table, t: int, u: int, comparisons: Sequence[Comparison]) -> bool:
    """Whether the pair (t, u) satisfies all comparisons."""
    for left, right, outcomes in comparisons:
        a, b = table[left][t], table[right][u]
        outcome = LESS if a < b else EQUAL if a == b else GREATER
        if not outcomes & outcome:
            return False
    return True


def partners(table: Table, clusters: Clusters, comparisons: Sequence[Comparison]) -> dict[int, list[int]]:
    """The right rows, ascending, of each left row that has any; a row may be its own partner."""
    found = {}
    for lefts, rights in clusters:
        for t in lefts:
            if right := sorted(u for u in rights if satisfied(table, t, u, comparisons)):
                found[t] = right
    return found


def by_code(rows: Sequence[int], column: Sequence[int]) -> list[int]:
    """In order of (code, place)."""
    return sorted(rows, key=lambda row: column[row])


def pairs_by_slices(table: Table, clusters: Clusters, comparisons: Sequence[Comparison]) -> list[tuple[int, int]]:
    """Pairs of different rows as slices are walked: both sides in order of the compared column."""
    found = []
    for lefts, rights in clusters:
        if comparisons:
            left, right, _ = comparisons[0]
            lefts, rights = by_code(lefts, table[left]), by_code(rights, table[right])
        found += [(t, u) for t in lefts for u in rights if t != u and satisfied(table, t, u, comparisons)]
    return found


def pairs_by_place(table: Table, clusters: Clusters, comparisons: Sequence[Comparison]) -> list[tuple[int, int]]:
    """Pairs of different rows by places on both sides."""
    return [
        (t, u)
        for lefts, rights in clusters
        for t in lefts
        for u in rights
        if t != u and satisfied(table, t, u, comparisons)
    ]


def pairs_by_extremes(table: Table, clusters: Clusters, comparisons: Sequence[Comparison]) -> list[tuple[int, int]]:
    """For each left row that has a partner the one with the extreme code in the second comparison.

    Both sides are walked by the column of the first comparison, upwards for `>`, downwards for `<`; of right rows with
    one extreme code it is the first on that way.
    """
    (left, right, first), (_, second_right, second) = comparisons
    found = []
    for lefts, rights in clusters:
        lefts, rights = by_code(lefts, table[left]), by_code(rights, table[right])
        if not first & GREATER:
            lefts, rights = lefts[::-1], rights[::-1]
        for t in lefts:
            fit = [u for u in rights if u != t and satisfied(table, t, u, comparisons)]
            if fit:
                choose = max if second & LESS else min
                found.append((t, choose(fit, key=lambda u: table[second_right][u])))
    return found
