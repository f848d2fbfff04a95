"""The predicate space: compared column pairs, their operators, and the reasons (docs/concepts/rules.md).

A *group* is one column pair of the space with its scope; its *outcome* on a pair of tuples is one of `<`, `=`, `>`
(of `!=`, `=` if the group has no order). An *atom* is one outcome of one group. A predicate is the set of outcomes it
excludes, so a set of predicates is a set of atoms (see inversion.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import OPERATORS, DenialConstraint, Predicate, Role
from tuplewise.engine.dc.shared_values import ColumnFigures, FiguresOf, mean_ratio_above
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.table.relation import Relation, idle_columns
from tuplewise.gpu_kernels.words import ACROSS, WITHIN_T, ClueLayout, make_layout

# Outcomes (bit 0: less or different, bit 1: equal, bit 2: greater) that each operator excludes, in operator order.
EXCLUDED_ORDERED = (0b101, 0b010, 0b110, 0b100, 0b011, 0b001)
EXCLUDED_UNORDERED = (0b01, 0b10)


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """Explanation of why a column pair is, or isn't, in the space. Means are None if they play no part."""

    left: str
    right: str
    shared_share: float
    left_mean: float | None
    right_mean: float | None
    verdict: str
    why: str


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """Pairs of different columns of one type class. All arrays (pairs,), in order of (left, right).

    `left`, `right` int32; `shared` int64, number of common distinct values; `larger` int64, the larger number of
    distinct values; `kept` and `ordered` bool; `compared_means` bool, whether means were compared.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    shared: NDArray[np.int64]
    larger: NDArray[np.int64]
    kept: NDArray[np.bool_]
    ordered: NDArray[np.bool_]
    compared_means: NDArray[np.bool_]
    means: tuple[Fraction | None, ...]


@dataclass(frozen=True, eq=False)
class PredicateSpace:
    """The groups of a discovery, in result order: by column position (left, right), across before within.

    Attributes
    ----------
    names : column names of the relation
    left, right : int32 (groups,)
    scope : int8 (groups,), ACROSS or WITHIN_T
    ordered : bool (groups,)
        Whether the group has all six operators.
    candidates : decisions about pairs of different columns
    options : the options that the space was built with
    """

    names: tuple[str, ...]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    scope: NDArray[np.int8]
    ordered: NDArray[np.bool_]
    candidates: CandidatePairs
    options: DcDiscoverOptions

    def without(self, columns: NDArray[np.bool_]) -> PredicateSpace:
        """The space without the groups of these columns, bool (columns,)."""
        kept = ~(columns[self.left] | columns[self.right])
        return replace(
            self, left=self.left[kept], right=self.right[kept], scope=self.scope[kept], ordered=self.ordered[kept]
        )

    @property
    def groups(self) -> int:
        return len(self.left)

    @property
    def columns(self) -> NDArray[np.int32]:
        """Columns that take part, int32 (columns,), ascending."""
        return np.unique(np.concatenate((self.left, self.right)))

    @property
    def same_column(self) -> NDArray[np.bool_]:
        """Groups of the form `t.A op u.A`, bool (groups,)."""
        own: NDArray[np.bool_] = (self.left == self.right) & (self.scope == ACROSS)
        return own

    @property
    def closed(self) -> bool:
        """Whether exchanging t and u maps the space onto itself (no group across columns or within a tuple)."""
        return bool(self.same_column.all())

    @cached_property
    def first_predicate(self) -> NDArray[np.int32]:
        """int32 (groups + 1,): predicates of group g are first_predicate[g] up to, not including, the next entry."""
        return _offsets(np.where(self.ordered, 6, 2))

    @cached_property
    def first_atom(self) -> NDArray[np.int32]:
        """int32 (groups + 1,): atom first_atom[g] + o is outcome o of group g."""
        return _offsets(np.where(self.ordered, 3, 2))

    @property
    def predicates(self) -> int:
        return int(self.first_predicate[-1])

    @property
    def atoms(self) -> int:
        return int(self.first_atom[-1])

    @cached_property
    def predicate_group(self) -> NDArray[np.int32]:
        """The group of each predicate, int32 (predicates,)."""
        return np.repeat(np.arange(self.groups, dtype=np.int32), np.diff(self.first_predicate))

    @cached_property
    def predicate_operator(self) -> NDArray[np.int8]:
        """The operator of each predicate as an index into OPERATORS, int8 (predicates,)."""
        within = np.arange(self.predicates, dtype=np.int32) - self.first_predicate[self.predicate_group]
        return within.astype(np.int8)

    @cached_property
    def layout(self) -> ClueLayout:
        """The clue layout: comparison g is group g; the missing mirrors follow."""
        columns = (self.left.tolist(), self.right.tolist(), self.scope.tolist(), self.ordered.tolist())
        return make_layout(list(zip(*columns, strict=True)))

    def predicate(self, index: int) -> Predicate:
        """The predicate with this number."""
        return self._every_predicate[index]

    @cached_property
    def _every_predicate(self) -> tuple[Predicate, ...]:
        found = []
        for group, operator in zip(self.predicate_group.tolist(), self.predicate_operator.tolist(), strict=True):
            role: Role = "u" if self.scope[group] == ACROSS else "t"
            left, right = self.names[int(self.left[group])], self.names[int(self.right[group])]
            found.append(Predicate("t", left, OPERATORS[operator], role, right))
        return tuple(found)

    def constraint(self, numbers: list[int]) -> DenialConstraint:
        """The constraint of these predicates, in the given order."""
        return DenialConstraint(tuple(map(self._every_predicate.__getitem__, numbers)))

    def explain(self) -> Iterator[ExplainedPair]:
        """One row for each pair of different columns of one type class, in order of column position."""
        c = self.candidates
        for i in range(len(c.left)):
            left, right = int(c.left[i]), int(c.right[i])
            share = int(c.shared[i]) / int(c.larger[i]) if c.larger[i] else 0.0
            means = (c.means[left], c.means[right]) if c.compared_means[i] else (None, None)
            shown = [None if m is None else float(m) for m in means]
            flags = bool(c.kept[i]), bool(c.ordered[i]), bool(c.compared_means[i])
            verdict, why = _verdict(*flags, share, shown, self.options)
            yield ExplainedPair(self.names[left], self.names[right], share, shown[0], shown[1], verdict, why)


def _verdict(
    kept: bool, ordered: bool, compared: bool, share: float, means: list[float | None], options: DcDiscoverOptions
) -> tuple[str, str]:
    """The decision about a column pair, and its reason."""
    percent = f"{100 * share:.4g} % of the distinct values are shared"
    if not kept:
        return "left out", f"{percent}, fewer than {(100 * options.shared_values).normalize():f} %"
    if not compared:
        return (
            ("six operators", f"{percent}; values of this type are always comparable")
            if ordered
            else ("== and != only", f"{percent}; values of this type are not ordered")
        )
    if None in means:
        return "== and != only", f"{percent}; a mean is not a finite number"
    shown = f"means {means[0]:.6g} and {means[1]:.6g}"
    if ordered:
        return "six operators", f"{percent}; {shown} are comparable"
    limit = f"{(100 * options.comparable_means).normalize():f} %"
    return "== and != only", f"{percent}; {shown}: not of one sign with the smaller over {limit} of the larger"


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)


def build_space(
    relation: Relation, options: DcDiscoverOptions, figures: ColumnFigures | None = None
) -> PredicateSpace:
    """Build the predicate space of a relation.

    Parameters
    ----------
    relation : only its columns are read if `figures` are given
    options : uses cross_columns, single_tuple, order_text, shared_values, comparable_means. Booleans are never ordered.
        Text is ordered with `order_text`, and is then always comparable. Without cross columns there are no
        single-tuple predicates either, because they use the same column pairs.
    figures : source of common values and means for a table outside this process; None: the relation's codes

    Notes
    -----
    Cost: distinct values of each column once (rows log rows), then, for each pair of columns of one type class whose
    numbers of distinct values allow the share, one merge of their distinct values.
    """
    columns = len(relation.columns)
    orderable = np.array(
        [c.ordered or (options.order_text and c.domain == "text") for c in relation.columns], dtype=np.bool_
    )
    candidates = _no_pairs(columns)
    if options.cross_columns:
        candidates = _judge_pairs(relation, options, orderable, figures or FiguresOf(relation))
    kept = np.flatnonzero(candidates.kept)
    own = np.arange(columns, dtype=np.int32)
    parts = [(own, own, np.full(columns, ACROSS, dtype=np.int8), orderable)]
    for scope in (ACROSS, WITHIN_T) if options.single_tuple else (ACROSS,):
        scopes = np.full(len(kept), scope, dtype=np.int8)
        parts.append((candidates.left[kept], candidates.right[kept], scopes, candidates.ordered[kept]))
    left, right, scope_, ordered = (np.concatenate(part) for part in zip(*parts, strict=True))
    groups = np.stack([left, right, scope_, ordered], axis=1).astype(np.int64)[np.lexsort((scope_, right, left))]
    return replace(space_of_groups(tuple(relation.column_names), groups, options), candidates=candidates)


def space_to_search(
    relation: Relation, options: DcDiscoverOptions, figures: ColumnFigures | None = None
) -> PredicateSpace:
    """The predicate space of a relation, without columns whose rules would hold only because values are missing."""
    return build_space(relation, options, figures).without(idle_columns(relation, options.nulls))


def given_space(space: PredicateSpace, relation: Relation, options: DcDiscoverOptions) -> PredicateSpace:
    """Apply a space built from another table to this one. Raises InputError if the columns differ."""
    if list(space.names) != relation.column_names:
        known = ", ".join(map(repr, space.names))
        raise InputError(message("columns that the predicate space is not of", relation.column_names, known))
    return replace(space, options=options)


def space_of_groups(names: tuple[str, ...], groups: NDArray[np.int64], options: DcDiscoverOptions) -> PredicateSpace:
    """The space of given groups, int64 (groups, 4): left and right column, scope, whether it has all six operators.

    It has no explanation of why the groups are in it.
    """
    return PredicateSpace(
        names=names,
        left=groups[:, 0].astype(np.int32),
        right=groups[:, 1].astype(np.int32),
        scope=groups[:, 2].astype(np.int8),
        ordered=groups[:, 3].astype(np.bool_),
        candidates=_no_pairs(len(names)),
        options=options,
    )


def _no_pairs(columns: int) -> CandidatePairs:
    index, counts, flags = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return CandidatePairs(index, index, counts, counts, flags, flags, flags, (None,) * columns)


def _judge_pairs(
    relation: Relation, options: DcDiscoverOptions, orderable: NDArray[np.bool_], figures: ColumnFigures
) -> CandidatePairs:
    """Shared values and means of every pair of columns of one type class."""
    domains = [c.domain for c in relation.columns]
    number = np.unique(np.array(domains), return_inverse=True)[1].ravel()
    left, right = (a.astype(np.int32) for a in np.triu_indices(len(domains), k=1))
    same = number[left] == number[right]
    left, right = left[same], right[same]
    distinct = np.array([c.distinct for c in relation.columns], dtype=np.int64)
    larger = np.maximum(distinct[left], distinct[right])
    numerator, denominator = options.shared_values.as_integer_ratio()
    shared = figures.shared_distinct(left, right)
    kept = _at_least(shared, larger, numerator, denominator) & (larger > 0)
    by_mean = np.array([d in ("number", "double") for d in domains], dtype=np.bool_)
    by_means = kept & by_mean[left]
    means = figures.means(np.unique(np.concatenate((left[by_means], right[by_means]))))
    ordered = kept & orderable[left]
    ordered[by_means] = mean_ratio_above(means, left[by_means], right[by_means], options.comparable_means)
    return CandidatePairs(left, right, shared, larger, kept, ordered, by_means, means)


def _at_least(part: NDArray[np.int64], whole: NDArray[np.int64], numerator: int, denominator: int) -> NDArray[np.bool_]:
    """part / whole >= numerator / denominator, in whole numbers of any size."""
    if denominator < 2**31:
        return part * denominator >= whole * numerator
    exact = [int(p) * denominator >= int(w) * numerator for p, w in zip(part.tolist(), whole.tolist(), strict=True)]
    return np.array(exact, dtype=np.bool_)


def satisfied_pairs(space: PredicateSpace, outcome_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of ordered pairs that satisfy each predicate (for a table of one row: of rows); int64 (predicates,)."""
    counts = np.zeros(space.predicates, dtype=np.int64)
    for i in range(space.predicates):
        group = space.predicate_group[i]
        table = EXCLUDED_ORDERED if space.ordered[group] else EXCLUDED_UNORDERED
        excluded = table[space.predicate_operator[i]]
        counts[i] = sum(outcome_counts[group, o] for o in range(3) if not excluded >> o & 1)
    return counts


def allowed_violations(error: Decimal, total: int) -> int:
    """floor(error * total), exactly.

    Examples
    --------
    >>> allowed_violations(Decimal("0.05"), 5 * 4)
    1
    """
    numerator, denominator = error.as_integer_ratio()
    return numerator * total // denominator
