"""Denial constraints by definition, in plain Python: what docs/concepts says, for tables of a few rows.

Nothing of the project is imported here. Columns are `(name, type, values)` with values of the Python types `int`,
`Decimal`, `float`, `date`, `datetime`, `bool`, `str` or `None`. A predicate is `(left, right, scope, operator)`:
columns by position, scope "across" for `t.left op u.right`, "within" for `t.left op t.right`. A constraint is a tuple
of predicates in result order.

Entailment is decided by looking at every model: an unbounded order can't tell more assignments of k operands apart
than there are weak orders of k things, so a conjunction *is* the set of weak orders that satisfy it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

OPERATORS = ("==", "!=", "<", "<=", ">", ">=")
FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
DOMAIN = {"integer": "number", "decimal": "number"}
ORDERED = {"number", "double", "date", "timestamp"}


def domain_of(column):
    return DOMAIN.get(column[1], column[1])


def sort_key(value):
    """Spark's order: NaN equals itself and is above all numbers, -0.0 equals 0.0, text by bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, str):
        return value.encode()
    return value


def compare(x, y):
    """-1, 0 or 1."""
    return (x > y) - (x < y)


def satisfies(order, op):
    return {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[op]


def outcome(x, y, nulls):
    """-1, 0, 1 for values of one type; None where it is unknown. A null is lower than every value under "value"."""
    if x is None or y is None:
        if nulls == "unknown":
            return None
        return compare(x is not None, y is not None)
    return compare(sort_key(x), sort_key(y))


# ---------------------------------------------------------------- predicate space


def _mean(values):
    present = [v for v in values if v is not None]
    if not present:
        return None
    if any(isinstance(v, float) for v in present):
        total = math.fsum(present) / len(present)
        return Fraction(total) if math.isfinite(total) else None
    return sum((Fraction(v) for v in present), Fraction(0)) / len(present)


def comparable_means(a, b, threshold):
    m, k = _mean(a), _mean(b)
    if m is None or k is None or (m > 0) != (k > 0) or (m < 0) != (k < 0):
        return False
    small, large = sorted((abs(m), abs(k)))
    return small > Fraction(threshold) * large


def groups_of(columns, *, cross=True, single=False, order_text=False, shared=Decimal("0.3"), means=Decimal("0.1")):
    """Column pairs of the space in result order: [(left, right, scope, ordered)]."""
    groups = []
    for a, column in enumerate(columns):
        d = domain_of(column)
        ordered_a = d in ORDERED or (order_text and d == "text")
        groups.append((a, a, "across", ordered_a))
        for b in range(a + 1, len(columns)):
            if not cross or domain_of(columns[b]) != d:
                continue
            one = {sort_key(v) for v in column[2] if v is not None}
            two = {sort_key(v) for v in columns[b][2] if v is not None}
            larger = max(len(one), len(two))
            if larger == 0 or Fraction(len(one & two), larger) < Fraction(shared):
                continue
            ordered = ordered_a
            if ordered and d in ("number", "double"):
                ordered = comparable_means(column[2], columns[b][2], means)
            groups.append((a, b, "across", ordered))
            if single:
                groups.append((a, b, "within", ordered))
    return groups


def groups_to_search(columns, groups, nulls):
    """Without those of columns that have rows and no value, where a null is unknown: what holds of them is idle."""
    idle = {a for a, c in enumerate(columns) if nulls == "unknown" and len(c[2]) and all(v is None for v in c[2])}
    return [g for g in groups if g[0] not in idle and g[1] not in idle]


def predicates_of(group):
    left, right, scope, ordered = group
    return [(left, right, scope, op) for op in (OPERATORS if ordered else OPERATORS[:2])]


# ---------------------------------------------------------------- evidence


def pair_outcome(columns, predicate, t, u, nulls):
    left, right, scope = predicate[:3]
    x = columns[left][2][t]
    y = columns[right][2][u if scope == "across" else t]
    return outcome(x, y, nulls)


def holds_for(columns, predicate, t, u, nulls):
    order = pair_outcome(columns, predicate, t, u, nulls)
    return order is not None and satisfies(order, predicate[3])


def evidence(columns, groups, nulls):
    """Counter of outcomes per group, over all ordered pairs; without an order only equal (0) and different (-1)."""
    rows = len(columns[0][2])
    found = Counter()
    for t, u in itertools.permutations(range(rows), 2):
        key = []
        for group in groups:
            order = pair_outcome(columns, group, t, u, nulls)
            key.append(-1 if order == 1 and not group[3] else order)
        found[tuple(key)] += 1
    return found


# ---------------------------------------------------------------- models


def weak_orders(k):
    """Every weak order of k things, as a tuple of ranks without gaps."""
    return [r for r in itertools.product(range(k), repeat=k) if set(r) == set(range(len(set(r))))]


class Models:
    """Conjunctions of predicates as sets of models (bits of an int), over the operands of some columns.

    `columns` maps a column to its type class; operands are (tuple, column) with tuple "t" or "u".
    """

    def __init__(self, domains):
        self.operands = [(r, c) for c in domains for r in "tu"]
        by_domain = {}
        for r, c in self.operands:
            by_domain.setdefault(domains[c], []).append((r, c))
        parts = [[dict(zip(ops, ranks, strict=True)) for ranks in weak_orders(len(ops))] for ops in by_domain.values()]
        self.models = [{k: v for p in combo for k, v in p.items()} for combo in itertools.product(*parts)]
        self.everything = (1 << len(self.models)) - 1
        self._masks = {}

    def of(self, x, op, y):
        """Models that satisfy `x op y` for operands x and y."""
        key = (x, op, y)
        if key not in self._masks:
            bits = [1 << i for i, m in enumerate(self.models) if satisfies(compare(m[x], m[y]), op)]
            self._masks[key] = sum(bits)
        return self._masks[key]

    def of_predicate(self, predicate, mirrored=False):
        left, right, scope, op = predicate
        t, u = ("u", "t") if mirrored else ("t", "u")
        return self.of((t, left), op, (u if scope == "across" else t, right))

    def of_constraint(self, constraint, mirrored=False):
        mask = self.everything
        for predicate in constraint:
            mask &= self.of_predicate(predicate, mirrored)
        return mask

    def implies(self, f, g):
        """Whether every predicate of f, or of f's mirror, is entailed by g."""
        mask = self.of_constraint(g)
        return any(mask & ~self.of_constraint(f, m) == 0 for m in (False, True))


@functools.cache
def models_of(domains):
    return Models(dict(domains))


# ---------------------------------------------------------------- constraints


def result_key(constraint):
    """Size, then column positions, then operators."""
    position = [(p[0], p[1], p[2] != "across") for p in constraint]
    return len(constraint), position, [OPERATORS.index(p[3]) for p in constraint]


def names_one_tuple(constraint):
    return all(p[2] == "within" for p in constraint)


def violations(columns, constraint, nulls):
    """Violating ordered pairs; of a rule about one row, violating rows."""
    rows = range(len(columns[0][2]))
    places = [(t, t) for t in rows] if names_one_tuple(constraint) else itertools.permutations(rows, 2)
    return sum(all(holds_for(columns, p, t, u, nulls) for p in constraint) for t, u in places)


def allowed_violations(rows, constraint, error):
    judged = rows if names_one_tuple(constraint) else rows * (rows - 1)
    return math.floor(Fraction(error) * judged)


def holding(columns, groups, nulls, error=Decimal(0), max_predicates=None, measure="g1"):
    """Every conjunction, one predicate a group at most, that holds: [(constraint, violations)]."""
    rows = len(columns[0][2])
    pairs = list(itertools.permutations(range(rows), 2))
    singles = [(t, t) for t in range(rows)]

    def masks(places):
        return {
            p: sum(1 << i for i, (t, u) in enumerate(places) if holds_for(columns, p, t, u, nulls))
            for g in groups
            for p in predicates_of(g)
        }

    by_pair, by_row = masks(pairs), masks(singles)
    found = []

    def extend(start, constraint, pair_mask, row_mask):
        if constraint:
            one = names_one_tuple(constraint)
            count = (row_mask if one else pair_mask).bit_count()
            learnable = rows >= (1 if one else 2)
            allowed = Fraction(error) * (rows if one else len(pairs))
            if measure == "lift":  # were the predicates independent
                masks_, judged = (by_row, rows) if one else (by_pair, len(pairs))
                allowed *= math.prod(Fraction(masks_[p].bit_count(), max(1, judged)) for p in constraint)
            if learnable and count <= allowed:
                found.append((constraint, count))
        if max_predicates is not None and len(constraint) == max_predicates:
            return
        for g in range(start, len(groups)):
            for p in predicates_of(groups[g]):
                extend(g + 1, (*constraint, p), pair_mask & by_pair[p], row_mask & by_row[p])

    extend(0, (), (1 << len(pairs)) - 1, (1 << rows) - 1)
    return found


def minimal(columns, groups, nulls="unknown", error=Decimal(0), max_predicates=None, measure="g1"):
    """The reported constraints: {constraint: violations}."""
    models = models_of(tuple(sorted({(c, domain_of(columns[c])) for g in groups for c in g[:2]})))
    classes = {}
    for constraint, count in holding(columns, groups, nulls, error, max_predicates, measure):
        mask = models.of_constraint(constraint)
        if mask:
            key = frozenset((mask, models.of_constraint(constraint, mirrored=True)))
            first = classes.get(key)
            if first is None or result_key(constraint) < result_key(first[0]):
                classes[key] = (constraint, count)
    kept = []
    for key in sorted(classes, key=lambda k: -max(k).bit_count()):
        mask = max(key)
        if not any(mask & ~stronger == 0 for other in kept for stronger in other):
            kept.append(key)
    found = sorted((classes[k] for k in kept), key=lambda item: result_key(item[0]))
    return dict(found)


def mirror(constraint):
    """t and u exchanged, written with t on the left; None where that isn't a predicate of the space."""
    if any(p[0] != p[1] for p in constraint):
        return None
    return tuple((left, right, scope, FLIPPED[op]) for left, right, scope, op in constraint)


def minimal_by_subset(columns, groups, nulls="unknown", error=Decimal(0), max_predicates=None, measure="g1"):
    """Set-minimal output: no proper subset holds; non-trivial; one of each mirror pair."""
    models = models_of(tuple(sorted({(c, domain_of(columns[c])) for g in groups for c in g[:2]})))
    held = dict(holding(columns, groups, nulls, error, max_predicates, measure))
    found = {}
    for constraint, count in held.items():
        smaller = itertools.chain.from_iterable(
            itertools.combinations(constraint, size) for size in range(1, len(constraint))
        )
        if any(s in held for s in smaller) or not models.of_constraint(constraint):
            continue
        other = mirror(constraint)
        if other is None or result_key(constraint) <= result_key(other):
            found[constraint] = count
    return dict(sorted(found.items(), key=lambda item: result_key(item[0])))


# ---------------------------------------------------------------- ranking


def coverage(columns, constraint, nulls):
    """Sum over places that don't violate of (predicates satisfied + 1) / size, over their number."""
    rows = range(len(columns[0][2]))
    places = [(t, t) for t in rows] if names_one_tuple(constraint) else list(itertools.permutations(rows, 2))
    satisfied = [sum(holds_for(columns, p, t, u, nulls) for p in constraint) for t, u in places]
    counted = [k for k in satisfied if k < len(constraint)]
    if not counted:
        return None
    return Fraction(sum(k + 1 for k in counted), len(constraint) * len(counted))


def succinctness(constraint):
    """4, the length of the shortest constraint there can be, over the number of distinct symbols."""
    symbols = {("column", c) for p in constraint for c in p[:2]} | {("operator", p[3]) for p in constraint}
    symbols |= {"t"} if names_one_tuple(constraint) else {"t", "u"}
    return Fraction(4, len(symbols))
