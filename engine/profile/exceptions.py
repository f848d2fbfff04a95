"""The rows that break a rule, the most likely errors first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.options import DcCheckOptions, Nulls
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.rule import Rule, order_constraint
from tuplewise.engine.table.relation import NULL_CODE, Relation

if TYPE_CHECKING:
    from tuplewise.engine.dc.violations.found import RuleCheck

LISTED_PAIRS = 1000
"""Contradicting pairs that partners come from."""


@dataclass(frozen=True, eq=False)
class Exceptions:
    """The rows that break a rule.

    Attributes
    ----------
    rows : int64 (n,), indexes of rows, the most likely errors first
    partners : int64 (n,), a row that contradicts each; -1 if there is none
    alike, together : int64 (n,)
        For an FD: rows of the class with the partner's value, and all rows of the class. Otherwise zeros.
    """

    rows: NDArray[np.int64]
    partners: NDArray[np.int64]
    alike: NDArray[np.int64]
    together: NDArray[np.int64]

    def first(self, limit: int | None) -> Exceptions:
        """The first so many; None: all."""
        return Exceptions(self.rows[:limit], self.partners[:limit], self.alike[:limit], self.together[:limit])


def exceptions_of(relation: Relation, rows: CountedRelation, rule: Rule, nulls: Nulls) -> Exceptions:
    """The rows that break a rule: as few as must be removed; for order rules, all in contradicting pairs."""
    if rule.kind in ("fd", "constant"):
        return _minorities(rows, rule)
    if rule.kind == "key":
        return _repeats(rows, rule)
    if rule.kind == "row":
        return _alone(_broken(rows, rule))
    return _out_of_order(relation, rule, nulls)


def _alone(found: NDArray[np.int64]) -> Exceptions:
    nothing = np.zeros(len(found), dtype=np.int64)
    return Exceptions(found, nothing - 1, nothing, nothing)


def _broken(rows: CountedRelation, rule: Rule) -> NDArray[np.int64]:
    left, right = rows.codes[rule.left[0]], rows.codes[rule.right[0]]
    broken = {"==": left != right, "<": left >= right, "<=": left > right}[rule.sense]
    return np.flatnonzero(broken & (left != NULL_CODE) & (right != NULL_CODE))


def _repeats(rows: CountedRelation, rule: Rule) -> Exceptions:
    """The rows after the first of their class, with the first."""
    groups = rows.classes(rule.left).groups
    sizes = np.diff(groups.left_offsets)
    first = np.repeat(groups.left[groups.left_offsets[:-1][sizes > 0]], sizes[sizes > 0])
    later = groups.left != first
    found, partners = groups.left[later].astype(np.int64), first[later].astype(np.int64)
    order = np.argsort(found, kind="stable")
    nothing = np.zeros(len(found), dtype=np.int64)
    return Exceptions(found[order], partners[order], nothing, nothing)


def _minorities(rows: CountedRelation, rule: Rule) -> Exceptions:
    """Rows that lack their class's most frequent value (the lowest among equals), clearest majorities first."""
    groups = rows.classes(rule.left, also_filled=rule.right).groups
    codes = rows.codes[rule.right[0]][groups.left]
    sizes = np.diff(groups.left_offsets)
    starts = groups.left_offsets[:-1]
    broken = np.minimum.reduceat(codes, starts) != np.maximum.reduceat(codes, starts) if len(codes) else starts > 0
    if not broken.any():
        return _alone(np.zeros(0, dtype=np.int64))
    kept = np.repeat(broken, sizes)
    sizes = sizes[broken]
    number = np.repeat(np.arange(len(sizes)), sizes)
    codes, members = codes[kept], groups.left[kept]
    order = np.lexsort((members, codes, number))
    number, codes, members = number[order], codes[order], members[order].astype(np.int64)
    starts = np.flatnonzero(np.append(True, (np.diff(number) != 0) | (np.diff(codes) != 0)))
    runs, of_group = np.diff(np.append(starts, len(codes))), number[starts]
    largest = np.maximum.reduceat(runs, np.flatnonzero(np.append(True, np.diff(of_group) != 0)))
    candidates = np.flatnonzero(runs == largest[of_group])
    leading = candidates[np.unique(of_group[candidates], return_index=True)[1]]
    is_leading = np.zeros(len(runs), dtype=np.bool_)
    is_leading[leading] = True
    minor = np.repeat(~is_leading, runs)
    found, group = members[minor], number[minor]
    clear = np.lexsort((found, -largest[group] / sizes[group]))
    found, group = found[clear], group[clear]
    return Exceptions(found, members[starts[leading]][group], largest[group], sizes[group])


def _out_of_order(relation: Relation, rule: Rule, nulls: Nulls) -> Exceptions:
    from tuplewise.engine.dc.violations.detect import check_rules

    against = order_constraint(relation.column_names, rule)
    options = DcCheckOptions(pairs=LISTED_PAIRS, nulls=nulls, device="cpu")
    return in_contradicting_pairs(check_rules(relation, [against], options).rules[0])


def in_contradicting_pairs(checked: RuleCheck) -> Exceptions:
    """Rows in pairs that contradict an order rule, those in the most pairs first."""
    counts = checked.row_counts
    if counts is None:
        return _alone(np.zeros(0, dtype=np.int64))
    broken = np.flatnonzero(counts)
    found = broken[np.lexsort((broken, -counts[broken]))].astype(np.int64)
    partners = np.full(len(found), -1, dtype=np.int64)
    place = {int(row): i for i, row in enumerate(found[:LISTED_PAIRS])}
    for t, u in checked.pairs.tolist():
        for row, other in ((t, u), (u, t)):
            if row in place and partners[place[row]] < 0:
                partners[place[row]] = other
    nothing = np.zeros(len(found), dtype=np.int64)
    return Exceptions(found, partners, nothing, nothing)
