"""Tries of equalities: rules that begin with the same equalities share the groups that these leave.

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 4, "Multi-constraint execution", after Hydra. Departures:
only equalities make nodes, since what follows them is a join that holds no pairs; rows that can't take part by
themselves (constants and the like) are told apart at the root, nulls of other columns after the equalities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tuplewise.engine.dc.violations.planner import Equality, Plan
from tuplewise.engine.dc.violations.program import Program, RowTest
from tuplewise.engine.dc.violations.sketch import Cardinalities

Order = Literal["cost", "frequency"]
RowTests = tuple[tuple[RowTest, ...], tuple[RowTest, ...]]


@dataclass
class Node:
    """Equalities that are refined in one step, the rules that end here, and what follows."""

    equalities: tuple[Equality, ...]
    rules: list[int] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


@dataclass
class Root:
    """A trie of rules whose rows pass the same tests."""

    tests: RowTests
    node: Node


def build(
    programs: Sequence[Program], plans: Sequence[Plan], order: Order, numbers: Sequence[int] | None = None
) -> list[Root]:
    """Tries over rules (`numbers` of `programs`, default all), equalities of each in order of cost or frequency.

    By cost: as planned. By frequency: what most rules have first, ties as planned.
    """
    chosen = range(len(programs)) if numbers is None else numbers
    by_tests: dict[RowTests, list[int]] = {}
    for number in chosen:
        tests = (programs[number].left_tests, programs[number].right_tests)
        by_tests.setdefault(tests, []).append(number)
    roots = []
    for tests, rules in by_tests.items():
        frequency = Counter(e for r in rules for e in plans[r].equalities)
        paths: dict[int, tuple[Equality, ...]] = {}
        for r in rules:
            path = plans[r].equalities
            if order == "frequency":
                path = tuple(sorted(path, key=lambda e: (-frequency[e], path.index(e))))
            paths[r] = path
        root = Node(())
        _grow(root, rules, paths, 0)
        # each first equality makes a trie of its own: they don't depend on each other, and can run beside each other
        roots += [Root(tests, child) for child in root.children]
        roots += [Root(tests, Node((), [r])) for r in root.rules]
    return roots


def _grow(node: Node, rules: Sequence[int], paths: dict[int, tuple[Equality, ...]], depth: int) -> None:
    """Put the rest of each path below `node`; equalities that no rule leaves or enters between become one step."""
    following: dict[Equality, list[int]] = {}
    for r in rules:
        if len(paths[r]) == depth:
            node.rules.append(r)
        else:
            following.setdefault(paths[r][depth], []).append(r)
    for equality, members in following.items():
        step, deeper = [equality], depth + 1
        while len({paths[r][deeper] if len(paths[r]) > deeper else None for r in members}) == 1:
            shared = paths[members[0]]
            if len(shared) == deeper:
                break
            step.append(shared[deeper])
            deeper += 1
        child = Node(tuple(step))
        _grow(child, members, paths, deeper)
        node.children.append(child)


def work_of(roots: Sequence[Root], sizes: Cardinalities) -> float:
    """Rows that the refinements of some tries take in, estimated: what sharing saves shows here."""

    def below(node: Node, rows: float, path: tuple[Equality, ...]) -> float:
        path += node.equalities
        left = min(rows, sizes.rows - _lonely(path, sizes)) if path else rows
        return (rows if node.equalities else 0.0) + sum(below(child, left, path) for child in node.children)

    return sum(below(root.node, float(sizes.rows), ()) for root in roots)


def _lonely(path: Sequence[Equality], sizes: Cardinalities) -> float:
    """Rows expected to agree with no other row."""
    groups = min(sizes.of(a for a, _ in path), sizes.of(b for _, b in path))
    return max(0.0, 2 * groups - sizes.rows)
