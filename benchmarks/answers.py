"""Digests of answers: the same rules give the same digest, whoever found them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

Triple = tuple[str, str, str]
"""(column of t, operator, column of u)."""

EXCHANGED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def canonical(predicates: Iterable[Triple]) -> tuple[Triple, ...]:
    """The lesser of a constraint and its mirror (t and u exchanged), predicates sorted.

    Examples
    --------
    >>> canonical([("b", ">", "b"), ("a", "==", "a")])
    (('a', '==', 'a'), ('b', '<', 'b'))
    """
    given = tuple(predicates)
    mirrored = tuple((right, EXCHANGED[operator], left) for left, operator, right in given)
    return min(tuple(sorted(given)), tuple(sorted(mirrored)))


def digest_constraints(constraints: Iterable[Sequence[Triple]]) -> tuple[int, str]:
    """Number of different constraints and the SHA-256 of the sorted list, both modulo mirrors."""
    lines = {" & ".join(" ".join(p) for p in canonical(c)) for c in constraints}
    return len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def digest_bytes(*parts: bytes) -> str:
    """SHA-256 of some byte strings, lengths included."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()
