"""Errors of keys, functional and order dependencies relative to chance, by definition: every pair of rows is looked at.

Plain Python; imports nothing of tuplewise. Tables and nulls are as in `oracles.od`. Numbers are fractions.

Chance: were the columns independent, so many of the pairs that agree on the context would violate a dependency as the
shares of all pairs say that differ on its attribute, or that are ordered by its two attributes in a violating way; so
many of all pairs would agree on the columns of a key as the product of the shares says that agree on each.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from oracles import od

Column = od.Column
Context = od.Context
Violates = Callable[[int, int], bool]


def share_of_pairs(columns: Sequence[Column], satisfies: Violates) -> Fraction:
    """The share of the ordered pairs of different rows that satisfy something."""
    pairs = list(itertools.permutations(range(len(columns[0])), 2))
    return Fraction(sum(satisfies(t, u) for t, u in pairs), max(1, len(pairs)))


def agreeing(columns: Sequence[Column], context: Context, nulls: str) -> Violates:
    return lambda t, u: od.agree(columns, context, t, u, nulls)


def lift_of(violated: Fraction, by_chance: Fraction, bound: Fraction) -> bool:
    """Whether so much is at most that part of what chance gives."""
    return violated <= bound * by_chance


def key_passes(columns: Sequence[Column], context: Context, nulls: str, measure: str, bound: Fraction) -> bool:
    violated = share_of_pairs(columns, agreeing(columns, context, nulls))
    if measure == "g1":
        return violated <= bound
    by_chance = Fraction(1)
    for column in context:
        by_chance *= share_of_pairs(columns, agreeing(columns, frozenset([column]), nulls))
    return lift_of(violated, by_chance, bound)


def fd_passes(
    columns: Sequence[Column], context: Context, attribute: int, nulls: str, measure: str, bound: Fraction
) -> bool:
    def differ(t: int, u: int) -> bool:
        return od.splits(columns[attribute], t, u, nulls)

    if measure == "mu":
        return lift_of(*contradictions(columns, context, attribute, nulls), bound)
    return _passes(columns, context, nulls, measure, bound, (differ,), differ)


def pair_passes(
    columns: Sequence[Column], context: Context, left: int, right: int, direction: str, measure: str, bound: Fraction
) -> bool:
    wanted = 1 if direction == od.ASCENDING else -1

    def rises(t: int, u: int) -> bool:
        return od.compare(columns[left][t], columns[left][u]) < 0

    def falls(t: int, u: int) -> bool:
        return od.compare(columns[right][t], columns[right][u]) == wanted

    return _passes(columns, context, "value", measure, bound, (rises, falls), lambda t, u: rises(t, u) and falls(t, u))


def _passes(
    columns: Sequence[Column],
    context: Context,
    nulls: str,
    measure: str,
    bound: Fraction,
    parts: Sequence[Violates],
    violates: Violates,
) -> bool:
    together = agreeing(columns, context, nulls)
    violated = share_of_pairs(columns, lambda t, u: together(t, u) and violates(t, u))
    if measure == "g1":
        return violated <= bound
    by_chance = share_of_pairs(columns, together)
    for part in parts:
        by_chance *= share_of_pairs(columns, part)
    return lift_of(violated, by_chance, bound)


def contradictions(
    columns: Sequence[Column], context: Context, attribute: int, nulls: str
) -> tuple[Fraction, Fraction]:
    """What 1 - mu is the quotient of: N (1 - pdep(A|X)), and (1 - pdep(A)) N (N - n_X) / (N - 1).

    Rows with a null in X or A are left out where nulls are unknown.
    """
    rows = [
        (tuple(columns[c][row] for c in sorted(context)), columns[attribute][row])
        for row in range(len(columns[0]))
        if nulls == "value" or all(columns[c][row] is not None for c in (*context, attribute))
    ]
    count, classes = len(rows), Counter(x for x, _ in rows)
    if count < 2:
        return Fraction(0), Fraction(0)
    pdep = sum(Fraction(n * n, count * count) for n in Counter(a for _, a in rows).values())
    given = sum(Fraction(n * n, classes[x] * count) for (x, _), n in Counter(rows).items())
    return count * (1 - given), (1 - pdep) * Fraction(count * (count - len(classes)), count - 1)


def minimal_keys(
    columns: Sequence[Column], nulls: str, measure: str, bound: Fraction, max_context: int | None
) -> set[Context]:
    """Keys that pass while no proper subset does."""
    return od.minimal_contexts(
        range(len(columns)), lambda context: key_passes(columns, context, nulls, measure, bound), max_context
    )


def minimal_fds(
    columns: Sequence[Column], nulls: str, measure: str, bound: Fraction, max_context: int | None
) -> set[tuple[Context, int]]:
    """Functional dependencies that pass while none with fewer columns on the left does."""
    found = set()
    for a in range(len(columns)):

        def holds(context: Context, a: int = a) -> bool:
            return fd_passes(columns, context, a, nulls, measure, bound)

        others = [c for c in range(len(columns)) if c != a]
        found |= {(context, a) for context in od.minimal_contexts(others, holds, max_context)}
    return found


def minimal_ods(
    columns: Sequence[Column], measure: str, bound: Fraction, max_context: int | None
) -> tuple[set[tuple[Context, int]], set[tuple[Context, int, int, str]]]:
    """Constancies, and pairs neither side of which is constant in a part of their context, as far as these pass."""
    constants = minimal_fds(columns, "value", measure, bound, max_context)
    compatible = set()
    for left, right in itertools.combinations(range(len(columns)), 2):
        others = [c for c in range(len(columns)) if c not in (left, right)]
        constancies = [context for context, attribute in constants if attribute in (left, right)]
        for direction in (od.ASCENDING, od.DESCENDING):

            def holds(context: Context, pair: tuple[int, int, str] = (left, right, direction)) -> bool:
                return pair_passes(columns, context, *pair, measure, bound)

            for context in od.minimal_contexts(others, holds, max_context):
                if not any(smaller <= context for smaller in constancies):
                    compatible.add((context, left, right, direction))
    return constants, compatible
