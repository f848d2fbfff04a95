"""Minimal keys, functional dependencies and set-based order dependencies by definition: every context is tried.

Plain Python; imports nothing of tuplewise. A table is a list of columns, each a list of int or None. What holds is said
of pairs of rows; how far something is from holding, by the fewest rows to remove so that no violating pair is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

Column = Sequence[int | None]
Context = frozenset[int]

ASCENDING, DESCENDING = "ascending", "descending"


def compare(a: int | None, b: int | None) -> int:
    """-1, 0 or 1; nulls are equal to each other and before everything else."""
    left, right = (a is not None, a or 0), (b is not None, b or 0)
    return (left > right) - (left < right)


def agree(columns: Sequence[Column], context: Context, t: int, u: int, nulls: str) -> bool:
    """Whether two rows are in one class of the context; under "unknown" a null agrees with nothing."""
    for c in context:
        a, b = columns[c][t], columns[c][u]
        if a != b or (a is None and nulls == "unknown"):
            return False
    return True


def splits(column: Column, t: int, u: int, nulls: str) -> bool:
    """Whether two rows differ; under "unknown" a null differs from nothing."""
    a, b = column[t], column[u]
    return a != b and (nulls == "value" or (a is not None and b is not None))


def swaps(left: Column, right: Column, t: int, u: int, direction: str) -> bool:
    """Whether two columns order two rows oppositely; for "descending": alike."""
    found = compare(left[t], left[u]) * compare(right[t], right[u])
    return found == (-1 if direction == ASCENDING else 1)


def violating_pairs(
    columns: Sequence[Column], context: Context, violates: Callable[[int, int], bool], nulls: str
) -> list[tuple[int, int]]:
    """Pairs of rows, t < u, of one class that violate."""
    rows = range(len(columns[0]) if columns else 0)
    pairs = itertools.combinations(rows, 2)
    return [(t, u) for t, u in pairs if agree(columns, context, t, u, nulls) and violates(t, u)]


def rows_to_remove(pairs: Sequence[tuple[int, int]]) -> int:
    """Fewest rows to remove so that none of these pairs is left: a row goes, or all that it is paired with."""
    if not pairs:
        return 0
    rows = sorted({row for pair in pairs for row in pair})
    paired = {row: {t if u == row else u for t, u in pairs if row in (t, u)} for row in rows}
    row = max(rows, key=lambda r: len(paired[r]))
    best = len(rows)
    for removed in ({row}, paired[row]):
        left = [(t, u) for t, u in pairs if t not in removed and u not in removed]
        best = min(best, len(removed) + rows_to_remove(left))
        if len(paired[row]) == 1:
            break  # every row is in one pair at most: either will do
    return best


def key_removals(columns: Sequence[Column], context: Context, nulls: str = "unknown") -> int:
    """Rows to remove so that the context is a key."""
    return rows_to_remove(violating_pairs(columns, context, lambda t, u: True, nulls))


def constant_removals(columns: Sequence[Column], context: Context, attribute: int, nulls: str = "value") -> int:
    """Rows to remove so that the attribute has one value in each class."""
    return rows_to_remove(
        violating_pairs(columns, context, lambda t, u: splits(columns[attribute], t, u, nulls), nulls)
    )


def pair_removals(columns: Sequence[Column], context: Context, left: int, right: int, direction: str) -> int:
    """Rows to remove so that no two rows of a class are swapped."""
    return rows_to_remove(
        violating_pairs(columns, context, lambda t, u: swaps(columns[left], columns[right], t, u, direction), "value")
    )


def minimal_contexts(attributes: Sequence[int], holds: Callable[[Context], bool], most: int | None) -> set[Context]:
    """The smallest sets of these attributes for which something holds, of at most so many attributes."""
    found: set[Context] = set()
    for size in range(min(len(attributes), len(attributes) if most is None else most) + 1):
        for chosen in itertools.combinations(attributes, size):
            context = frozenset(chosen)
            if not any(smaller <= context for smaller in found) and holds(context):
                found.add(context)
    return found


def minimal_keys(
    columns: Sequence[Column], nulls: str = "unknown", *, allowed: int = 0, max_context: int | None = None
) -> set[Context]:
    """Minimal keys, as contexts; `allowed`: rows that may be removed."""

    def holds(context: Context) -> bool:
        return key_removals(columns, context, nulls) <= allowed

    return minimal_contexts(range(len(columns)), holds, max_context)


def minimal_fds(
    columns: Sequence[Column], nulls: str = "unknown", *, allowed: int = 0, max_context: int | None = None
) -> set[tuple[Context, int]]:
    """Minimal functional dependencies (context, attribute)."""
    found = set()
    for attribute in range(len(columns)):
        others = [c for c in range(len(columns)) if c != attribute]

        def holds(context: Context, attribute: int = attribute) -> bool:
            return constant_removals(columns, context, attribute, nulls) <= allowed

        found |= {(context, attribute) for context in minimal_contexts(others, holds, max_context)}
    return found


def minimal_ods(
    columns: Sequence[Column], *, allowed: int = 0, max_context: int | None = None
) -> tuple[set[tuple[Context, int]], set[tuple[Context, int, int, str]]]:
    """Minimal constancies (context, attribute) and order-compatible pairs (context, left, right, direction)."""
    constants = minimal_fds(columns, "value", allowed=allowed, max_context=max_context)
    compatible = set()
    for left, right in itertools.combinations(range(len(columns)), 2):
        others = [c for c in range(len(columns)) if c not in (left, right)]
        constancies = [context for context, attribute in constants if attribute in (left, right)]
        for direction in (ASCENDING, DESCENDING):

            def holds(context: Context, pair: tuple[int, int, str] = (left, right, direction)) -> bool:
                return pair_removals(columns, context, *pair) <= allowed

            for context in minimal_contexts(others, holds, max_context):
                if not any(smaller <= context for smaller in constancies):
                    compatible.add((context, left, right, direction))
    return constants, compatible
