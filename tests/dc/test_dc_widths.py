"""Words of bits at their edges: 63, 64, 65, 128, 129 atoms or predicates, and clues of several words."""

from __future__ import annotations

import random

import numpy as np
import pytest
from consequences import implies, is_trivial
from dc_tables import encode
from oracles import dc as oracle

from tuplewise.engine.dc.evidence import EvidenceSet
from tuplewise.engine.dc.implication import keep_strongest
from tuplewise.engine.dc.inversion import read_sets, result_order
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.options import DcDiscoverOptions


def space_of(ordered: int, unordered: int) -> PredicateSpace:
    table = [(f"n{i}", "integer", [1, 2]) for i in range(ordered)]
    table += [(f"s{i}", "text", ["x", "y"]) for i in range(unordered)]
    random.Random(ordered).shuffle(table)
    return build_space(encode(table), DcDiscoverOptions(cross_columns=False))


SHAPES = [(21, 0), (20, 2), (21, 1), (42, 1), (41, 3), (10, 1), (10, 2), (0, 32), (0, 33), (33, 33)]


def bits_of(row: np.ndarray) -> int:
    return sum(int(word) << 64 * i for i, word in enumerate(row))


@pytest.mark.parametrize(("ordered", "unordered"), SHAPES)
def test_edges_equal_outcomes(ordered: int, unordered: int) -> None:
    space = space_of(ordered, unordered)
    rng = np.random.default_rng(ordered)
    outcomes = rng.integers(0, 4, (30, space.groups))
    outcomes[(outcomes == 2) & ~space.ordered] = 0
    clues = np.zeros((30, space.layout.words), dtype=np.uint64)
    for g in range(space.groups):
        clues[:, g // 32] |= outcomes[:, g].astype(np.uint64) << np.uint64(2 * (g % 32))
    evidence = EvidenceSet(space, clues, np.ones(30, np.int64), 0, 30, True)
    atom_edges, predicate_edges = evidence.atom_edges(), evidence.predicate_edges()
    for row in range(30):
        atoms = predicates = 0
        for g in range(space.groups):
            o = int(outcomes[row, g])
            size = 3 if space.ordered[g] else 2
            atoms |= ((1 << size) - 1 if o == 3 else 1 << o) << int(space.first_atom[g])
            for i in range(space.first_predicate[g], space.first_predicate[g + 1]):
                op = oracle.OPERATORS[space.predicate_operator[i]]
                predicates |= int(o == 3 or not oracle.satisfies(o - 1, op)) << i
        assert bits_of(atom_edges[row]) == atoms
        assert bits_of(predicate_edges[row]) == predicates


@pytest.mark.parametrize(("ordered", "unordered"), SHAPES)
def test_sets_are_read_as_predicates(ordered: int, unordered: int) -> None:
    space = space_of(ordered, unordered)
    rng = random.Random(unordered)
    chosen, atom_sets, predicate_sets = [], [], []
    for _ in range(40):
        picked = sorted(rng.sample(range(space.groups), rng.randint(1, min(9, space.groups))))
        numbers = [rng.randrange(space.first_predicate[g], space.first_predicate[g + 1]) for g in picked]
        atoms = 0
        for p in numbers:
            g, op = int(space.predicate_group[p]), oracle.OPERATORS[space.predicate_operator[p]]
            outcomes = range(3 if space.ordered[g] else 2)
            atoms |= sum(1 << int(space.first_atom[g]) + o for o in outcomes if not oracle.satisfies(o - 1, op))
        chosen.append(numbers)
        atom_sets.append(atoms)
        predicate_sets.append(sum(1 << p for p in numbers))
    for sets, bits, by_atom in ((atom_sets, space.atoms, True), (predicate_sets, space.predicates, False)):
        words = -(-bits // 64)
        packed = [[s >> 64 * w & (2**64 - 1) for w in range(words)] for s in sets]
        predicates, sizes = read_sets(np.array(packed, dtype=np.uint64), space, by_atom)
        assert [row[:size].tolist() for row, size in zip(predicates, sizes, strict=True)] == chosen
        assert predicates[0, sizes[0] :].tolist() == [-1] * (predicates.shape[1] - sizes[0])


@pytest.mark.parametrize(("numbers", "texts"), [(3, 2), (5, 3), (8, 4)])
def test_reduction_with_many_words(numbers: int, texts: int) -> None:
    """All columns are compared with each other: up to 192 and more atoms with the mirrors."""
    table = [(f"n{i}", "integer", [1, 2, 3]) for i in range(numbers)]
    table += [(f"s{i}", "text", ["x", "y", "z"]) for i in range(texts)]
    space = build_space(encode(table), DcDiscoverOptions())
    rng = random.Random(numbers)
    ends = {0, numbers // 2, numbers - 1, numbers, numbers + texts - 1}  # atoms in the first words and in the last
    near = [g for g in range(space.groups) if {int(space.left[g]), int(space.right[g])} <= ends]
    chosen: set[tuple[int, ...]] = set()
    for size in [2] * 25 + [6] * 220:  # groups all different, each with `<=`, `>=`, `!=` or (no order) `==`: one atom
        picked = sorted(rng.sample(near, size))
        offsets = [rng.choice((1, 3, 5)) if space.ordered[g] else rng.choice((0, 1)) for g in picked]
        found = tuple(int(space.first_predicate[g]) + o for g, o in zip(picked, offsets, strict=True))
        same_column = all(space.same_column[g] for g in picked)
        if not same_column and not any(set(c) <= set(found) for c in chosen):
            chosen.add(found)
    padded = [[*c, -1, -1, -1, -1][:6] for c in sorted(chosen)]
    predicates = np.array(padded, dtype=np.int32)
    sizes = (predicates >= 0).sum(axis=1).astype(np.int32)
    order = result_order(predicates, sizes, space)
    predicates, sizes = np.ascontiguousarray(predicates[order]), sizes[order]
    listed = [space.constraint(row[row >= 0].tolist()) for row in predicates]
    trivial = [is_trivial(c) for c in listed]
    expected = []
    for i, g in enumerate(listed):
        others = [(j, f) for j, f in enumerate(listed) if j != i and not trivial[j]]
        beaten = any(implies(f, g) and (j < i or not implies(g, f)) for j, f in others)
        expected.append(not trivial[i] and not beaten)
    assert keep_strongest(predicates, sizes, space).tolist() == expected
    assert expected.count(False) > 2
