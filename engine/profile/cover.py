"""The shown rules: those that don't follow from better ones, each with the rules that follow from it.

Rules are taken best first. An FD or an order rule is preceded by another one of the same target whose left side follows
from its own, if that is nearly as strong: `zip, marital -> exemption` says less than `state, marital -> exemption`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from tuplewise.engine.profile.rule import Listed, Rule

NEARLY_AS_STRONG = 0.01
Derived = dict[int, tuple[int, frozenset[int]]]


class Cover:
    """A collection of rules, added best first.

    Parameters
    ----------
    columns : of the table
    """

    def __init__(self, columns: int) -> None:
        self._all = frozenset(range(columns))
        self._implications: list[tuple[frozenset[int], frozenset[int], int]] = []
        self._shown: list[Rule] = []
        self._implied: list[list[Rule]] = []
        self._equivalent: list[list[tuple[int, int]]] = []

    def add(self, rule: Rule) -> None:
        """Show a rule, or fold it below the last rule from which it follows."""
        by = self._follows_from(rule)
        if by is not None:
            self._implied[by].append(rule)
            return
        back = self._turned_round(rule)
        if back is not None:
            self._equivalent[back].append((rule.right[0], rule.left[0]))
            self._implied[back].append(rule)
            self._implications.append((frozenset(rule.left), frozenset(rule.right), back))
            return
        number = len(self._shown)
        self._shown.append(rule)
        self._implied.append([])
        self._equivalent.append([])
        left, right = frozenset(rule.left), frozenset(rule.right)
        if rule.kind == "key":
            self._implications.append((left, self._all, number))
        elif rule.kind in ("fd", "constant"):
            self._implications.append((left, right, number))
        elif rule.sense == "==":
            self._implications += [(left, right, number), (right, left, number)]

    def says_less(self, rule: Rule, other: Rule) -> bool:
        """Whether the other's left side follows from this one's, and not the other way round."""
        if rule.kind != other.kind or set(rule.right) != set(other.right) or rule.left == other.left:
            return False
        if len(other.left) > len(rule.left) or other.strength < rule.strength - NEARLY_AS_STRONG:
            return False
        return set(other.left) <= self._closure(rule.left)[0] and not set(rule.left) <= self._closure(other.left)[0]

    def listed(self) -> list[Listed]:
        """The shown rules, best first."""
        parts = zip(self._shown, self._implied, self._equivalent, strict=True)
        listed = [Listed(rule, tuple(implied), tuple(pairs)) for rule, implied, pairs in parts]
        return sorted(listed, key=lambda one: -one.rule.score)

    def _follows_from(self, rule: Rule) -> int | None:
        """The last shown rule from which this one follows; None if it doesn't follow."""
        closure, by = self._closure(rule.left)
        if rule.kind == "key":
            return self._key_below(closure, by) if closure == self._all else None
        if rule.kind == "fd":
            return self._last_used(by, rule.right) if rule.right[0] in closure else None
        if rule.kind == "row":
            return self._comparison(rule.left[0], rule.right[0], rule.sense)
        if rule.kind == "od":
            constant = closure & set(rule.right)
            return self._last_used(by, constant) if constant else self._order(rule, closure)
        return None

    def _order(self, rule: Rule, closure: frozenset[int]) -> int | None:
        """The last of the shown rules from which an order rule follows.

        What B orders, a monotone function of B orders as well: A ~ C follows from B ~ C, B ~ A and the FD B -> A.
        """
        known: set[tuple[int, int, int]] = set()
        for number, other in enumerate(self._shown):
            if other.sense == "==" or (other.kind == "od" and set(other.left) <= closure):
                a, b = other.columns[-2:]
                sign = -1 if other.sense == "descending" else 1
                new = {(a, b, sign), (b, a, sign)}
                while new:
                    known |= new
                    new = self._ordered_too(known, rule.left) - known
                if (*rule.right, -1 if rule.sense == "descending" else 1) in known:
                    return number
        return None

    def _ordered_too(self, known: set[tuple[int, int, int]], context: tuple[int, ...]) -> set[tuple[int, int, int]]:
        """Pairs of columns, with the sign of their order, that follow in one step from known ones of a context."""
        partners: dict[int, list[tuple[int, int]]] = {}
        for a, b, sign in known:
            partners.setdefault(a, []).append((b, sign))
        found = set()
        for b, ordered in partners.items():
            determined = self._closure((*context, b))[0]
            for (a, one), (c, other) in itertools.product(ordered, ordered):
                if a in determined and a != c:
                    found |= {(a, c, one * other), (c, a, one * other)}
        return found

    def _comparison(self, a: int, b: int, sense: str) -> int | None:
        """The last of the shown rules of one row from which another one follows, step by step: `a <= b`, `b <= c`."""
        steps: list[Rule] = []
        for number, other in enumerate(self._shown):
            if other.kind == "row" and (sense != "==" or other.sense == "=="):
                steps.append(other)
                if _lead(steps, a, b, strictly=sense == "<"):
                    return number
        return None

    def _turned_round(self, rule: Rule) -> int | None:
        """The number of the shown FD that has the sides of this one exchanged."""
        return next((number for number, other in enumerate(self._shown) if _is_converse(rule, other)), None)

    def _closure(self, columns: Iterable[int]) -> tuple[frozenset[int], Derived]:
        """What columns determine; of each that isn't one of them, the shown rule that adds it, and its left side."""
        closure, by, grew = frozenset(columns), Derived(), True
        while grew:
            grew = False
            for left, right, number in self._implications:
                if left <= closure and not right <= closure:
                    by.update((column, (number, left)) for column in right - closure)
                    closure, grew = closure | right, True
        return closure, by

    def _key_below(self, closure: frozenset[int], by: Derived) -> int | None:
        """The last of the shown rules by which a key follows from a shown key, or, where there is none, from FDs."""
        keys = [(left, number) for left, right, number in self._implications if right == self._all and left <= closure]
        ways = [max(number, self._last_used(by, left) or 0) for left, number in keys]
        return min(ways) if ways else self._last_used(by, self._all)

    @staticmethod
    def _last_used(by: Derived, wanted: Iterable[int]) -> int | None:
        """The last of the shown rules by which columns follow; None where none is needed."""
        numbers, waiting, seen = set[int](), list(wanted), set[int]()
        while waiting:
            column = waiting.pop()
            if column in by and column not in seen:
                seen.add(column)
                number, left = by[column]
                numbers.add(number)
                waiting += left
        return max(numbers, default=None)


def _is_converse(rule: Rule, other: Rule) -> bool:
    """Whether both are FDs between two columns, one in each direction."""
    return rule.kind == other.kind == "fd" and rule.left == other.right and rule.right == other.left


def _lead(steps: Sequence[Rule], a: int, b: int, *, strictly: bool) -> bool:
    """Whether comparisons in one row lead from one column to another one; `strictly`: by one that excludes equality."""
    reached, new = set[tuple[int, bool]](), {(a, False)}
    while not new <= reached:
        reached |= new
        ways = [(step.left[0], step.right[0], step.sense == "<") for step in steps]
        ways += [(step.right[0], step.left[0], False) for step in steps if step.sense == "=="]
        new = {(to, strict or below) for column, strict in reached for start, to, below in ways if start == column}
    return any(column == b and (strict or not strictly) for column, strict in reached)


def cover(rules: Sequence[Rule], columns: int) -> list[Listed]:
    """The shown rules, best first; ties are ordered by kind and columns."""
    found = Cover(columns)
    waiting = sorted(rules, key=lambda r: (-r.score, r.kind, r.left, r.right))
    while waiting:
        best = waiting[0]
        chosen = next((other for other in waiting[1:] if found.says_less(best, other)), best)
        for rule in (chosen, *(other for other in waiting if _is_converse(chosen, other))):
            waiting.remove(rule)
            found.add(rule)
    # One that was taken early, for its coarser left side, may follow from what now stands before it.
    listed, ranked = found.listed(), Cover(columns)
    for one in listed:
        for rule in (one.rule, *(implied for implied in one.implies if _is_converse(one.rule, implied))):
            ranked.add(rule)
    for one in listed:
        for rule in one.implies:
            if not _is_converse(one.rule, rule):
                ranked.add(rule)
    return ranked.listed()
