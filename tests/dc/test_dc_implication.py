"""Entailment against an enumeration of models, and the reduction of lists against entailment of pairs."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal

import numpy as np
import pytest
from consequences import Consequences, implies, is_trivial
from dc_tables import encode
from oracles import dc as oracle

from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate
from tuplewise.engine.dc.implication import keep_strongest
from tuplewise.engine.dc.inversion import ConstraintArrays, common_constraints, result_order
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.options import DcDiscoverOptions

OPERANDS = list(itertools.product("tu", "abc"))


def random_conjunction(rng: random.Random, size: int) -> tuple[Predicate, ...]:
    found = []
    for _ in range(size):
        (left_role, left), (right_role, right) = rng.sample(OPERANDS, 2)
        operator = rng.choice(["==", "!=", "!=", "<", "<=", "<=", "<=", ">", ">=", ">="])
        found.append(Predicate(left_role, left, operator, right_role, right))  # type: ignore[arg-type]
    return tuple(found)


@pytest.fixture(scope="module")
def models() -> oracle.Models:
    return oracle.models_of((("a", "number"), ("b", "number"), ("c", "number")))


def mask_of(models: oracle.Models, predicates: tuple[Predicate, ...]) -> int:
    mask = models.everything
    for p in predicates:
        mask &= models.of((p.left_role, p.left), p.operator, (p.right_role, p.right))
    return mask


def test_consequences_equal_models(models: oracle.Models) -> None:
    """Every predicate over six operands, entailed or not, of 1,500 random conjunctions (`!=` and `<=` favoured)."""
    rng = random.Random(7)
    every = [
        Predicate(a[0], a[1], op, b[0], b[1])  # type: ignore[arg-type]
        for a, b in itertools.combinations(OPERANDS, 2)
        for op in oracle.OPERATORS
    ]
    masks = {p: mask_of(models, (p,)) for p in every}
    unsatisfiable = 0
    for _ in range(1500):
        conjunction = random_conjunction(rng, rng.randint(1, 8))
        mask = mask_of(models, conjunction)
        found = Consequences(conjunction)
        assert found.satisfiable == (mask != 0), conjunction
        unsatisfiable += mask == 0
        for p in every:
            assert found.entails(p) == (mask & ~masks[p] == 0), (conjunction, p)
    assert 100 < unsatisfiable < 1400


def test_different_values_between_the_same_bounds_set_the_bounds_apart() -> None:
    """Section 17: path consistency misses v < w here; v = w would make s and t equal."""
    between = [("t", "a", "<=", "u", "a"), ("t", "a", "<=", "u", "b"), ("u", "a", "<=", "t", "b")]
    between += [("u", "b", "<=", "t", "b"), ("u", "a", "!=", "u", "b")]
    found = Consequences([Predicate(*p) for p in between])  # type: ignore[arg-type]
    assert found.entails(Predicate("t", "a", "<", "t", "b"))
    contradiction = [Predicate(*p) for p in [*between, ("t", "b", "<=", "t", "a")]]  # type: ignore[arg-type]
    assert not Consequences(contradiction).satisfiable


def test_consequences_about_other_operands() -> None:
    found = Consequences([Predicate("t", "a", "<", "u", "a")])
    assert not found.entails(Predicate("t", "b", "<=", "u", "a"))
    assert found.entails(Predicate("t", "b", "==", "t", "b"))
    assert not found.entails(Predicate("t", "b", "<", "t", "b"))


def test_implication_up_to_mirror_equals_models(models: oracle.Models) -> None:
    rng = random.Random(11)
    related = 0
    for _ in range(3000):
        g = DenialConstraint(random_conjunction(rng, rng.randint(1, 4)))
        f = DenialConstraint(random_conjunction(rng, rng.randint(1, 2)))
        mask = mask_of(models, g.predicates)
        expected = any(mask & ~mask_of(models, form.predicates) == 0 for form in (f, f.mirror()))
        assert implies(f, g) == expected
        assert is_trivial(g) == (mask == 0)
        related += expected and mask != 0
    assert related > 60


def random_antichain(rng: random.Random, space: PredicateSpace, count: int) -> np.ndarray:
    """Random constraints none of which excludes all that another, or its mirror, excludes; padded predicate numbers.

    Minimal hitting sets of evidence are like that: with a set of same-column outcomes its mirror is one of them.
    """
    chosen: list[tuple[list[set[tuple[int, int]]], list[int]]] = []
    for _ in range(count):
        picked = sorted(rng.sample(range(space.groups), rng.randint(1, min(4, space.groups))))
        numbers = [int(rng.randrange(space.first_predicate[g], space.first_predicate[g + 1])) for g in picked]
        atoms = set()
        for p in numbers:
            g, op = int(space.predicate_group[p]), oracle.OPERATORS[space.predicate_operator[p]]
            outcomes = (-1, 0, 1) if space.ordered[g] else (-1, 0)
            atoms |= {(g, o) for o in outcomes if not oracle.satisfies(o, op)}
        forms = [atoms]
        if all(space.same_column[g] for g in picked):
            forms.append({(g, -o if space.ordered[g] else o) for g, o in atoms})
        if not any(a <= b or b <= a for others, _ in chosen for a in others for b in forms):
            chosen.append((forms, numbers))
    width = max(len(n) for _, n in chosen)
    return np.array([n + [-1] * (width - len(n)) for _, n in chosen], dtype=np.int32)


@pytest.mark.parametrize("single", [False, True])
def test_strongest_of_a_list_equal_entailment_of_each_pair(single: bool) -> None:
    columns = [("a", "integer", [1, 2, 3]), ("b", "integer", [1, 2, 4]), ("s", "text", ["x", "y", "z"])]
    columns += [("r", "text", ["x", "y", "z"]), ("c", "integer", [1, 2, 5])]
    options = DcDiscoverOptions(single_tuple=single)
    dropped = 0
    for seed in range(60):
        rng = random.Random(seed)
        table = [columns[i] for i in sorted(rng.sample(range(5), rng.randint(2, 4)))]
        space = build_space(encode(table), options)
        predicates = random_antichain(rng, space, 60)
        sizes = (predicates >= 0).sum(axis=1).astype(np.int32)
        order = result_order(predicates, sizes, space)
        predicates, sizes = predicates[order], sizes[order]
        listed = [space.constraint(row[row >= 0].tolist()) for row in predicates]
        kept = keep_strongest(predicates, sizes, space).tolist()
        known = np.array([stays and rng.random() < 0.6 for stays in kept])
        assert keep_strongest(predicates, sizes, space, strongest=known).tolist() == kept
        trivial = [is_trivial(c) for c in listed]
        for i, g in enumerate(listed):
            others = [(j, f) for j, f in enumerate(listed) if j != i and not trivial[j]]
            beaten = any(implies(f, g) and (j < i or not implies(g, f)) for j, f in others)
            assert kept[i] == (not trivial[i] and not beaten), (seed, str(g))
        dropped += kept.count(False)
        only_trivial = keep_strongest(predicates, sizes, space, implication=False)
        assert only_trivial.tolist() == [not x for x in trivial]
    assert dropped > 30


def test_common_constraints_are_those_of_both_lists() -> None:
    table = [(n, "integer", [1, 2, 3]) for n in "abcde"]
    space = build_space(encode(table), DcDiscoverOptions(shared_values=Decimal(1)))
    for seed in range(40):
        rng = random.Random(seed)
        lists = []
        for _ in range(2):
            drawn = {tuple(sorted(rng.sample(range(space.predicates), rng.randint(0, 3)))) for _ in range(60)}
            rows = rng.sample(sorted(drawn), rng.randint(0, len(drawn)))
            width = max(map(len, rows), default=0) + rng.randrange(9)  # the lists need not be of one width
            predicates = np.array([[*row, *[-1] * (width - len(row))] for row in rows], dtype=np.int32)
            sizes = np.array([len(row) for row in rows], dtype=np.int32)
            nothing = np.zeros(len(rows))
            arrays = ConstraintArrays(predicates.reshape(len(rows), width), sizes, nothing.astype(int), nothing > 0)
            lists.append((rows, arrays))
        (mine, my_arrays), (theirs, their_arrays) = lists
        found = common_constraints(my_arrays, their_arrays, space)
        assert found[0].tolist() == [row in theirs for row in mine]
        assert found[1].tolist() == [row in mine for row in theirs]


def test_result_order_is_size_then_columns_then_operators() -> None:
    table = [(n, "integer", [1, 2, 3]) for n in "abc"]
    space = build_space(encode(table), DcDiscoverOptions(single_tuple=True, shared_values=Decimal(1)))
    rng = random.Random(3)
    rows = random_antichain(rng, space, 300)
    sizes = (rows >= 0).sum(axis=1).astype(np.int32)
    order = result_order(rows, sizes, space)

    def key(row: np.ndarray) -> tuple[int, list[int], list[int]]:
        numbers = row[row >= 0]
        groups = space.predicate_group[numbers].tolist()
        return len(numbers), groups, space.predicate_operator[numbers].tolist()

    assert [key(rows[i]) for i in order] == sorted(key(row) for row in rows)


def test_large_conjunction_over_many_columns() -> None:
    """A chain over forty operands (more than one 64-bit word of atoms) closes to one end below the other."""
    names = [f"c{i}" for i in range(20)]
    chain: list[Predicate] = []
    operator: Operator = "<="
    for a, b in itertools.pairwise(itertools.chain.from_iterable((("t", n), ("u", n)) for n in names)):
        chain.append(Predicate(a[0], a[1], operator, b[0], b[1]))  # type: ignore[arg-type]
    assert Consequences(chain).entails(Predicate("t", "c0", "<=", "u", "c19"))
    assert not Consequences(chain).entails(Predicate("t", "c0", "<", "u", "c19"))
