"""Minimal hitting sets by definition: every set of atoms is tried. Imports nothing of ours."""

from __future__ import annotations


def minimal_sets(
    edges: list[int], weights: list[int], budget: int, group: list[int], exclusive: bool = False, most_groups: int = 99
) -> dict[int, int]:
    """All wanted sets as bit masks, with the weight of the edges that they don't hit."""
    atoms = len(group)
    whole = [sum(1 << a for a in range(atoms) if group[a] == g) for g in set(group)]

    def unhit(chosen: int) -> int:
        return sum(w for e, w in zip(edges, weights, strict=True) if not e & chosen)

    found = {}
    for chosen in range(1 << atoms):
        members = [a for a in range(atoms) if chosen >> a & 1]
        touched = [group[a] for a in members]
        if exclusive and len(set(touched)) < len(touched):
            continue
        if len(set(touched)) > most_groups or any(chosen & w == w for w in whole):
            continue
        if unhit(chosen) <= budget and all(unhit(chosen & ~(1 << a)) > budget for a in members):
            found[chosen] = unhit(chosen)
    return found


def minimal_sets_by_chance(
    edges: list[int], weights: list[int], most: float, chances: list[list[float]], group: list[int],
    exclusive: bool = False, most_groups: int = 99,
) -> dict[int, int]:  # fmt: skip
    """The same, where a set may leave `most` unhit times the chance of its atoms in each group; none of its parts may
    be among them."""
    found: dict[int, int] = {}
    atoms = len(group)
    first = [group.index(g) for g in range(max(group) + 1)]
    whole = [sum(1 << a for a in range(atoms) if group[a] == g) for g in set(group)]
    for chosen in sorted(range(1 << atoms), key=int.bit_count):
        members = [a for a in range(atoms) if chosen >> a & 1]
        touched = [group[a] for a in members]
        unhit = sum(w for e, w in zip(edges, weights, strict=True) if not e & chosen)
        allowed = most
        for g in set(touched):
            allowed *= chances[g][(chosen & whole[g]) >> first[g]]
        if exclusive and len(set(touched)) < len(touched):
            continue
        if len(set(touched)) > most_groups or any(chosen & w == w for w in whole):
            continue
        if unhit <= allowed and not any(chosen & part == part for part in found):
            found[chosen] = unhit
    return found


def mirrored(chosen: int, mirror: list[int]) -> int:
    """The set with t and u exchanged."""
    return sum(1 << m for a, m in enumerate(mirror) if chosen >> a & 1)
