"""Minimal contexts of many targets, continued as clues come, against all subsets."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.gpu_kernels.contexts import MinimalContexts
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, DESCENDING, KEY
from tuplewise.gpu_kernels.words import EQUAL, GREATER, LESS, UNKNOWN

Clue = tuple[int, ...]  # the outcome of each attribute
Target = tuple[int, int, int]  # kind, left, right


def pack(clues: list[Clue], attributes: int) -> NDArray[np.uint64]:
    words = np.zeros((len(clues), max(1, -(-attributes // 32))), dtype=np.uint64)
    for i, clue in enumerate(clues):
        for a, outcome in enumerate(clue):
            words[i, a // 32] |= np.uint64(outcome << (2 * (a % 32)))
    return words


def exchanged(clue: Clue) -> Clue:
    return tuple({LESS: GREATER, GREATER: LESS}.get(o, o) for o in clue)


def edge(clue: Clue, target: Target) -> set[int] | None:
    """Attributes of which a context must hold one, so that the clue doesn't break the target; None: it never does."""
    kind, left, right = target
    differs = {a for a, outcome in enumerate(clue) if outcome != EQUAL}
    if kind == KEY:
        return differs
    strict = (LESS, GREATER)
    if kind == CONSTANT:
        return differs - {left} if clue[left] in strict else None
    if clue[left] not in strict or clue[right] not in strict:
        return None
    opposite = clue[left] != clue[right]
    return differs - {left, right} if opposite == (kind == ASCENDING) else None


def minimal_contexts(clues: list[Clue], target: Target, attributes: int, most: int) -> set[frozenset[int]]:
    edges = [e for e in (edge(clue, target) for clue in clues) if e is not None]
    found: set[frozenset[int]] = set()
    for size in range(most + 1):
        for chosen in map(frozenset, combinations(range(attributes), size)):
            if all(chosen & e for e in edges) and not any(smaller <= chosen for smaller in found):
                found.add(chosen)
    return found


def all_targets(attributes: int) -> list[Target]:
    pairs = [(kind, a, b) for a, b in combinations(range(attributes), 2) for kind in (ASCENDING, DESCENDING)]
    return [(KEY, -1, -1), *((CONSTANT, a, -1) for a in range(attributes)), *pairs]


def of_targets(attributes: int, targets: list[Target], most: int | None = None, threads: int = 1) -> MinimalContexts:
    kind, left, right = (np.array(part) for part in zip(*targets, strict=True))
    return MinimalContexts(
        attributes, kind.astype(np.int8), left.astype(np.int32), right.astype(np.int32), max_size=most, threads=threads
    )


def read(contexts: NDArray[np.uint64], target: NDArray[np.int32], number: int) -> list[frozenset[int]]:
    masks = contexts[target == number].tolist()
    return [frozenset(64 * w + b for w, word in enumerate(m) for b in range(64) if word >> b & 1) for m in masks]


@pytest.mark.parametrize("seed", range(60))
def test_contexts_are_those_of_all_subsets_in_whatever_portions_clues_come(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attributes = int(rng.integers(1, 7))
    most = attributes if seed % 3 else int(rng.integers(0, attributes + 1))
    outcomes = [LESS, EQUAL, EQUAL, EQUAL, GREATER, UNKNOWN] if seed % 2 else [LESS, EQUAL, EQUAL, GREATER]
    drawn = rng.choice(outcomes, (int(rng.integers(0, 150)), attributes))
    clues = [tuple(clue) for clue in drawn.tolist()]
    if seed % 5:
        clues = [clue for clue in clues if any(o != EQUAL for o in clue)]
    targets = all_targets(attributes)
    search = of_targets(attributes, targets, most, threads=1 + seed % 2)
    cuts = sorted(rng.integers(0, len(clues) + 1, 3).tolist())
    known = np.zeros((len(targets), max(1, -(-attributes // 64))), dtype=np.uint64)
    for start, end in zip([0, *cuts], [*cuts, len(clues)], strict=True):
        portion = clues[start:end]
        found = search.extend(pack([*portion, *map(exchanged, portion)], attributes))
        assert found.complete
        for number, target in enumerate(targets):
            contexts = read(found.contexts, found.target, number)
            assert set(contexts) == minimal_contexts(clues[:end], target, attributes, most), (target, end)
            assert len(set(contexts)) == len(contexts)
        stays = found.kept >= 0
        assert np.array_equal(found.contexts[stays], known[found.kept[stays]])
        known = found.contexts


@pytest.mark.parametrize("seed", range(4))
def test_difference_sets_of_several_blocks(seed: int) -> None:
    """Some portions bring new clues of known sets, and some sets none of a target."""
    rng = np.random.default_rng(seed)
    attributes = 9
    drawn = rng.choice([LESS, EQUAL, GREATER], (1200, attributes), p=[0.3, 0.3, 0.4])
    drawn[:, 4] = drawn[:, 2]  # ordered alike: no clue is spoken of the other way round
    clues = [tuple(clue) for clue in drawn.tolist() if any(o != EQUAL for o in clue)]
    assert len({tuple(o != EQUAL for o in clue) for clue in clues}) > 3 * 64
    targets = all_targets(attributes)
    search = of_targets(attributes, targets)
    for end in (300, 310, len(clues)):
        portion = clues[{300: 0, 310: 300}.get(end, 310) : end]
        found = search.extend(pack([*portion, *map(exchanged, portion)], attributes))
        for number, target in enumerate(targets):
            contexts = read(found.contexts, found.target, number)
            assert set(contexts) == minimal_contexts(clues[:end], target, attributes, attributes), (target, end)


@pytest.mark.parametrize("attributes", [31, 32, 33, 63, 64, 65, 129, 257])
def test_attributes_of_several_words(attributes: int) -> None:
    last = attributes - 1
    clue = [EQUAL] * attributes
    clue[0], clue[last], clue[last // 2] = LESS, GREATER, LESS
    targets: list[Target] = [(CONSTANT, last, -1), (ASCENDING, 0, last), (DESCENDING, 0, last), (KEY, -1, -1)]
    found = of_targets(attributes, targets).extend(pack([tuple(clue), exchanged(tuple(clue))], attributes))
    singles = [{frozenset([a]) for a in members} for members in ((0, last // 2), (last // 2,))]
    assert set(read(found.contexts, found.target, 0)) == singles[0]
    assert set(read(found.contexts, found.target, 1)) == singles[1]
    assert read(found.contexts, found.target, 2) == [frozenset()]
    assert set(read(found.contexts, found.target, 3)) == {frozenset([a]) for a in (0, last // 2, last)}


def test_a_deadline_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    attributes = 40
    drawn = [tuple(c) for c in rng.choice([LESS, EQUAL, GREATER], (400, attributes)).tolist()]
    clues = pack([clue for pair in zip(drawn, map(exchanged, drawn), strict=True) for clue in pair], attributes)
    search = of_targets(attributes, all_targets(attributes)[:20])
    assert search.extend(clues[:2]).complete
    assert not search.extend(clues, deadline=time.monotonic() + 0.05).complete
    again = search.extend(clues[:2])
    assert again.complete
    assert (again.kept >= 0).all()


def test_violated_contexts_are_told() -> None:
    search = of_targets(3, all_targets(3))
    found = search.extend(pack([(LESS, EQUAL, GREATER), (GREATER, EQUAL, LESS)], 3))
    clue = (EQUAL, LESS, GREATER)
    violated = search.violated(pack([clue, exchanged(clue)], 3))
    for context, number, is_violated in zip(found.contexts, found.target.tolist(), violated.tolist(), strict=True):
        broken = edge(clue, all_targets(3)[number])
        members = {a for a in range(3) if int(context[0]) >> a & 1}
        assert is_violated == (broken is not None and not members & broken)
