"""Minimal keys and functional dependencies of tables of many columns and few rows, by what each pair of rows asks for.

Plain Python; imports nothing of tuplewise. A violating pair must not agree on the whole context: one column on which it
does not agree must be in it. The minimal contexts are the smallest sets that have such a column for each pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from oracles.od import Column, agree, splits

Context = frozenset[int]


def apart(columns: Sequence[Column], t: int, u: int, nulls: str) -> Context:
    """The columns on which two rows do not agree."""
    return frozenset(c for c in range(len(columns)) if not agree(columns, frozenset([c]), t, u, nulls))


def minimal_contexts(edges: Sequence[Context], most: int) -> set[Context]:
    """Minimal sets of at most so many columns that share one with each edge."""
    found = {frozenset[int]()}
    for edge in dict.fromkeys(edges):
        longer = {s | {c} for s in found if not s & edge for c in edge if len(s) < most}
        found = {s for s in found if s & edge}
        found |= {s for s in longer if not any(part in found for part in parts(s))}
    return {s for s in found if not any(part in found for part in parts(s))}


def parts(context: Context) -> Iterator[Context]:
    """Every smaller part of a context."""
    for size in range(len(context)):
        yield from map(frozenset, itertools.combinations(context, size))


def minimal_dependencies(columns: Sequence[Column], nulls: str, most: int) -> set[tuple[Context, int] | tuple[Context]]:
    """Functional dependencies as (context, attribute), keys as (context,)."""
    pairs = list(itertools.combinations(range(len(columns[0])), 2))
    edges = {(t, u): apart(columns, t, u, nulls) for t, u in pairs}
    found: set[tuple[Context, int] | tuple[Context]] = {
        (context,) for context in minimal_contexts(list(edges.values()), most)
    }
    for a, column in enumerate(columns):
        asked = [edges[t, u] - {a} for t, u in pairs if splits(column, t, u, nulls)]
        found |= {(context, a) for context in minimal_contexts(asked, most)}
    return found
