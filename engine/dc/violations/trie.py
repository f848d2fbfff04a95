"""Tries of equalities: rules with common equalities share the resulting groups.

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 4, "Multi-constraint execution", after Hydra.
Departures: only equalities make nodes, since they are followed by a join that holds no pairs. Rows that can't take
part (constants and the like) are removed at the root, nulls of other columns after the equalities. Besides the
published orders, by cost and by frequency, there is an order by saving: our kernel refines several equalities in one
sort, so a shared step pays if it leaves few rows, no matter which column has few values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from tuplewise.engine.dc.violations.cardinalities import Cardinalities
from tuplewise.engine.dc.violations.planner import CheckPlan
from tuplewise.engine.dc.violations.program import OneRowTest, Program
from tuplewise.engine.grouping import Equality

Order = Literal["cost", "frequency", "saving"]
MOST_RULES_PAIRED = 200  # rules whose common equalities are all considered; with more rules, only the first ones


@dataclass
class TrieNode:
    """Equalities refined in one step, the rules that end here, and the child nodes."""

    equalities: tuple[Equality, ...]
    rules: list[int] = field(default_factory=list)
    children: list[TrieNode] = field(default_factory=list)


def build(
    programs: Sequence[Program], plans: Sequence[CheckPlan], order: Order, sizes: Cardinalities, numbers: Sequence[int]
) -> list[TrieNode]:
    """Build tries over the rules with these numbers, each of rules whose rows pass the same tests.

    Order "cost": equalities of each rule as planned. "frequency": equalities of most rules first, ties as planned.
    "saving": at each node, the common equalities that save the most sorted rows.
    """
    by_tests: dict[tuple[tuple[OneRowTest, ...], tuple[OneRowTest, ...]], list[int]] = {}
    for number in numbers:
        tests = (programs[number].left_tests, programs[number].right_tests)
        by_tests.setdefault(tests, []).append(number)
    roots: list[TrieNode] = []
    for rules in by_tests.values():
        root = TrieNode(())
        if order == "saving":
            left = {r: frozenset(plans[r].equalities) for r in rules}
            _grow_by_saving(root, left, plans, (), float(sizes.rows), sizes)
        else:
            paths = {r: plans[r].equalities for r in rules}
            if order == "frequency":
                frequency = Counter(e for path in paths.values() for e in path)
                paths = {r: tuple(sorted(p, key=lambda e: (-frequency[e], p.index(e)))) for r, p in paths.items()}
            _grow(root, rules, paths, 0)
        # each first step makes its own trie: the tries are independent and can run in parallel
        roots += [*root.children, *(TrieNode((), [r]) for r in root.rules)]
    return roots


def _grow(node: TrieNode, rules: Sequence[int], paths: dict[int, tuple[Equality, ...]], depth: int) -> None:
    """Put the rest of each path below `node`. Equalities between which no rule branches off or ends become one step."""
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
        child = TrieNode(tuple(step))
        _grow(child, members, paths, deeper)
        node.children.append(child)


def _grow_by_saving(
    node: TrieNode,
    left: dict[int, frozenset[Equality]],
    plans: Sequence[CheckPlan],
    path: tuple[Equality, ...],
    rows: float,
    sizes: Cardinalities,
) -> None:
    """Put rules below `node`, which `rows` rows reach. `left`: the equalities still to refine for each rule.

    A step shared by k rules costs `rows` once plus k times the remaining rows; unshared, it costs k times `rows`.
    """
    open_rules = {}
    for r, equalities in left.items():
        if equalities:
            open_rules[r] = equalities
        else:
            node.rules.append(r)
    while open_rules:
        best: tuple[float, frozenset[Equality], float] | None = None
        for step in _common(open_rules):
            after = sizes.rows - sizes.alone(c for e in (*path, *step) for c in e)
            sharing = sum(step <= equalities for equalities in open_rules.values())
            saving = (sharing - 1) * rows - sharing * min(rows, after)
            if best is None or (saving, sorted(step)) > (best[0], sorted(best[1])):
                best = (saving, step, min(rows, after))
        if best is None or best[0] <= 0:
            break
        _, step, after = best
        members = {r: equalities - step for r, equalities in open_rules.items() if step <= equalities}
        child = TrieNode(_as_planned(step, plans[next(iter(members))]))
        _grow_by_saving(child, members, plans, path + child.equalities, after, sizes)
        node.children.append(child)
        open_rules = {r: equalities for r, equalities in open_rules.items() if r not in members}
    for r, equalities in open_rules.items():
        node.children.append(TrieNode(_as_planned(equalities, plans[r]), [r]))


def _common(left: dict[int, frozenset[Equality]]) -> list[frozenset[Equality]]:
    """Sets of equalities that two rules have in common."""
    some = [left[r] for r in sorted(left)[:MOST_RULES_PAIRED]]
    return sorted({a & b for a, b in combinations(some, 2) if a & b}, key=sorted)


def _as_planned(step: frozenset[Equality], made: CheckPlan) -> tuple[Equality, ...]:
    return tuple(e for e in made.equalities if e in step)


def work_of(roots: Sequence[TrieNode], sizes: Cardinalities) -> float:
    """Estimated number of input rows of all refinements in the tries, for comparing the work that sharing saves."""

    def below(node: TrieNode, rows: float, path: tuple[Equality, ...]) -> float:
        path += node.equalities
        left = min(rows, sizes.rows - sizes.alone(c for e in path for c in e)) if path else rows
        return (rows if node.equalities else 0.0) + sum(below(child, left, path) for child in node.children)

    return sum(below(root, float(sizes.rows), ()) for root in roots)
