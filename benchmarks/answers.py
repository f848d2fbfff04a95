"""Digests of answers: the same rules give the same digest, whoever found them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Triple = tuple[str, str, str]
"""(column of t, operator, column of u)."""
Dependency = tuple[tuple[int, ...], str, tuple[int, ...]]
"""(columns of the context, "key", "constant", "ascending" or "descending", columns of the right side), by position."""

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


def digest_dependencies(dependencies: Iterable[Dependency]) -> tuple[int, str]:
    """Number of different dependencies and the SHA-256 of the sorted list; neither side's order counts.

    Examples
    --------
    >>> one, same = ((2, 0), "ascending", (3, 1)), ((0, 2), "ascending", (1, 3))
    >>> digest_dependencies([one, same]) == digest_dependencies([same])
    True
    """
    lines = {f"{sorted(context)} {kind} {sorted(right)}" for context, kind, right in dependencies}
    return len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def digest_inclusions(pairs: Iterable[tuple[str, str]]) -> tuple[int, str]:
    """Number of different pairs of attributes (`table.column` in `table.column`), and the SHA-256 of the sorted list.

    Examples
    --------
    >>> digest_inclusions([("t.a", "u.b"), ("t.a", "t.c")]) == digest_inclusions([("t.a", "t.c"), ("t.a", "u.b")])
    True
    """
    lines = {f"{dependent} <= {referenced}" for dependent, referenced in pairs}
    return len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def digest_bytes(*parts: bytes) -> str:
    """SHA-256 of some byte strings, lengths included."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()


def digest_counts(counts: Iterable[int]) -> str:
    """SHA-256 of some counts, in order."""
    return hashlib.sha256(",".join(str(int(count)) for count in counts).encode()).hexdigest()


def digest_pairs(chunks: Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> str:
    """SHA-256 of a set of pairs of rows, in whatever order and pieces they come: their number and two sums of hashes.

    Examples
    --------
    >>> one, two = np.array([1, 2]), np.array([3, 4])
    >>> digest_pairs([(one, two)]) == digest_pairs([(one[1:], two[1:]), (one[:1], two[:1])])
    True
    """
    total, sums = 0, [0, 0]
    for t, u in chunks:
        total += len(t)
        joined = (t.astype(np.uint64) << np.uint64(32)) | u.astype(np.uint64)
        for i, multiplier in enumerate((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)):
            mixed = joined * np.uint64(multiplier)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            sums[i] = (sums[i] + int(np.sum(mixed, dtype=np.uint64))) % 2**64
    return digest_counts((total, *sums))
