"""Ranking of the rules of a complete discovery by how genuine they are.

All rules, perhaps millions, get an estimate from counts of single columns. The best ones by it then get the score that
a profile gives to rules of their kind, counted on all rows, and are ranked before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, KEY
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile import counting, measures
from tuplewise.engine.profile.candidates import Columns, parts_of
from tuplewise.engine.profile.keys import collisions_by_chance
from tuplewise.engine.profile.table import TableHere
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.join_types import GREATER, LESS, Comparison
from tuplewise.gpu_kernels.refine import join
from tuplewise.gpu_kernels.words import ACROSS, as_flags, members

if TYPE_CHECKING:
    from tuplewise.engine.dc.discovery import DcDiscovery
    from tuplewise.engine.od.found import Discovery
    from tuplewise.engine.options import Nulls
    from tuplewise.engine.table.relation import Relation

MOST_MEASURED = 500
LEAST_MEASURED = 50
CELLS_MEASURED = 1 << 23  # rows times rules
PAIRS = 1 << 15  # that tell how two columns are ordered
TINY = 1e-30  # a share instead of none
ROW, OTHER = 4, 5  # kinds beside those of `engine.od.dependency`


@dataclass(frozen=True)
class RuleColumns:
    """A rule by the numbers of its columns. `kind`: of `engine.od.dependency`, ROW or OTHER; `operator`: of a ROW."""

    kind: int
    context: Columns = ()
    left: int = -1
    right: int = -1
    operator: str = ""


def order_of_dcs(found: DcDiscovery) -> NDArray[np.int64]:
    """Numbers of denial constraints, best first; ties by succinctness, coverage and result order.

    The estimate is that of `measures.dc_score`, with the pairs that would violate a rule by chance as its evidence, the
    table's rows at most, and 1 - lift as its strength.
    """
    arrays, ranking, relation = found.arrays, found.ranking, found.relation
    judged = np.where(arrays.one_row, relation.all_rows, max(1, found.ordered_pairs)).astype(np.float64)
    strength = np.zeros(len(arrays))
    np.divide(ranking.chance - ranking.g1, ranking.chance, out=strength, where=ranking.chance > 0)
    evidence = np.minimum(ranking.chance * judged, relation.all_rows)
    estimate = measures.dc_score(strength, evidence, arrays.sizes)
    # Number -1 pads short constraints: the last place says that nothing is compared across columns.
    across = np.append(~found.space.same_column[found.space.predicate_group], False)
    estimate[across[arrays.predicates].any(axis=1) & ~arrays.one_row] *= measures.ACROSS_COLUMNS
    order = np.lexsort((-np.nan_to_num(ranking.coverage), -ranking.succinctness, -estimate))
    if relation.rows < max(1, relation.all_rows):
        return order
    scores = _Scores(relation, found.options.nulls)

    def shape(number: int) -> RuleColumns:
        return _shape(found, arrays.predicates[number, : arrays.sizes[number]].tolist())

    def score(number: int, of: RuleColumns) -> float:
        wrong = round(ranking.g1[number] * judged[number])
        return float(estimate[number]) if of.kind == OTHER else scores.score(of, wrong)

    return _measured_first(order, shape, score, scores)


def order_of_dependencies(found: Discovery) -> NDArray[np.int64] | None:
    """Numbers of keys, functional and order dependencies, best first; None where their rows are not here."""
    relation, dependencies = found.relation, found.dependencies
    if relation.rows < relation.all_rows:
        return None
    scores = _Scores(relation, found.options.nulls)
    differing = scores.rows.differing
    exceptions = np.zeros(len(dependencies)) if found.removals is None else found.removals / max(1, relation.rows)
    contexts = as_flags(dependencies.contexts, len(relation.columns)).astype(np.float32)
    chance = np.exp(contexts @ np.log(np.maximum(1.0 - differing, TINY)).astype(np.float32))
    sizes = contexts.sum(axis=1)
    for side in (dependencies.left, dependencies.right):
        has = side >= 0
        chance[has] *= differing[side[has]]
        sizes += has
    evidence = np.minimum(chance * relation.rows * max(0, relation.rows - 1), relation.rows)
    order = np.argsort(-measures.dc_score(1.0 - exceptions, evidence, sizes), kind="stable")

    def shape(number: int) -> RuleColumns:
        kind, left, right = (int(a[number]) for a in (dependencies.kind, dependencies.left, dependencies.right))
        return RuleColumns(kind, tuple(members(dependencies.contexts[number])), left, right)

    def score(number: int, of: RuleColumns) -> float:
        exact = found.removals is None or found.removals[number] == 0
        return scores.score(of, 0 if exact else None)

    return _measured_first(order, shape, score, scores)


def _measured_first(
    order: NDArray[np.int64],
    shape: Callable[[int], RuleColumns],
    score: Callable[[int, RuleColumns], float],
    scores: _Scores,
) -> NDArray[np.int64]:
    """The first ones of an order by their scores, and then the others."""
    most = min(MOST_MEASURED, max(LEAST_MEASURED, CELLS_MEASURED // max(1, scores.rows.count)))
    first = order[:most]
    shapes = [shape(number) for number in first.tolist()]
    scores.need(shapes)
    measured = np.array([score(number, of) for number, of in zip(first.tolist(), shapes, strict=True)])
    return np.concatenate([first[np.argsort(-measured, kind="stable")], order[most:]])


def _shape(found: DcDiscovery, predicates: Sequence[int]) -> RuleColumns:
    """What a denial constraint says, where it is of a kind that a profile knows."""
    space = found.space
    operators = [space.predicate(p).operator for p in predicates]
    groups = space.predicate_group[predicates]
    if len(predicates) == 1 and space.scope[groups[0]] != ACROSS:
        return RuleColumns(ROW, (), int(space.left[groups[0]]), int(space.right[groups[0]]), operators[0])
    if not space.same_column[groups].all():
        return RuleColumns(OTHER)
    columns = space.left[groups].tolist()
    context = tuple(c for c, operator in zip(columns, operators, strict=True) if operator == "==")
    others = [(c, operator[0]) for c, operator in zip(columns, operators, strict=True) if operator != "=="]
    signs = [sign for _, sign in others]
    if not others:
        return RuleColumns(KEY, context)
    if signs == ["!"]:
        return RuleColumns(CONSTANT, context, others[0][0])
    if len(others) == 2 and "!" not in signs:
        return RuleColumns(DESCENDING if signs[0] == signs[1] else ASCENDING, context, others[0][0], others[1][0])
    return RuleColumns(OTHER)


class _Scores:
    """The scores of rules by their kind. Figures of left sides are counted for all that need them at once."""

    def __init__(self, relation: Relation, nulls: Nulls) -> None:
        self.rows = TableHere(relation, ProfileOptions(nulls=nulls, device="cpu"), pick_device("cpu"), Run())
        self._needed: dict[Columns, set[int]] = {}
        self._counted: dict[Columns, dict[int, counting.CandidateCounts]] = {}
        self._gammas: dict[tuple[int, int], float] = {}

    def need(self, shapes: Sequence[RuleColumns]) -> None:
        """These will be asked for."""
        for of in shapes:
            if of.kind == CONSTANT:
                for left in (of.context, *parts_of(of.context)):
                    self._needed.setdefault(left, set()).add(of.left)

    def score(self, of: RuleColumns, wrong: int | None) -> float:
        """The score of a rule. `wrong`: violating pairs, or rows for a ROW; None: unknown."""
        if self.rows.count < 2:
            return 0.0
        by_kind: dict[int, Any] = {KEY: self._key, CONSTANT: self._functional, ROW: self._row}
        return float(by_kind.get(of.kind, self._order)(of, wrong))

    def _key(self, of: RuleColumns, wrong: int | None) -> float:
        if len(of.context) != 1:
            counted = counting.count_key(self.rows, of.context)
            share = counted.rows / self.rows.count
            return measures.key_score(counted.strength, counted.evidence, len(of.context), share)
        column = of.context[0]
        filled, distinct = int(self.rows.filled[column]), int(self.rows.distinct[column])
        evidence = collisions_by_chance(self.rows, column, 0)
        return measures.key_score(distinct / max(1, filled), evidence, 1, filled / self.rows.count)

    def _functional(self, of: RuleColumns, wrong: int | None) -> float:
        if not of.context:
            filled = int(self.rows.filled[of.left])
            strength = int(self.rows.values[of.left].max(initial=0)) / max(1, filled)
            return measures.constant_score(filled) * strength**20
        counted = self._figures(of.context)[of.left]
        parts = [self._figures(part)[of.left].strength for part in parts_of(of.context)]
        need, share = counted.strength - max(parts, default=0.0), counted.rows / self.rows.count
        return measures.fd_score(counted.strength, counted.evidence, need, len(of.context), share)

    def _figures(self, left: Columns) -> dict[int, counting.CandidateCounts]:
        if left not in self._counted:
            self._counted[left] = counting.count_fds(self.rows, left, sorted(self._needed[left]))
        return self._counted[left]

    def _order(self, of: RuleColumns, wrong: int | None) -> float:
        counted = counting.count_order(
            self.rows, of.context, of.left, of.right, self._discordant(of) if wrong is None else wrong
        )
        alone = 0.0
        if of.context:
            alone = max(0.0, self._gamma_of_all(of.left, of.right) * (1 if of.kind == ASCENDING else -1))
        strength, evidence = max(0.0, counted.strength), counted.evidence * (1.0 - alone)
        share = counted.rows / self.rows.count
        return measures.od_score(strength, evidence, counted.strength - alone, len(of.context), share)

    def _gamma_of_all(self, a: int, b: int) -> float:
        """The gamma of two columns in the whole table, from a sample of its pairs."""
        if (a, b) not in self._gammas:
            first, second = (self.rows.codes[[a, b]][:, side] for side in self._pairs)
            known = np.all((first != NULL_CODE) & (second != NULL_CODE), axis=0)
            both = np.prod(np.sign(first - second), axis=0)[known]
            self._gammas[a, b] = float(both.sum() / max(1, np.count_nonzero(both)))
        return self._gammas[a, b]

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of rows of a small table, random ones of a large one."""
        rows = self.rows.count
        if rows * (rows - 1) // 2 <= PAIRS:
            first, second = np.triu_indices(rows, k=1)
            return first, second
        rng = np.random.default_rng(0)
        first = rng.integers(0, rows, PAIRS)
        return first, (first + rng.integers(1, rows, PAIRS)) % rows

    def _discordant(self, of: RuleColumns) -> int:
        """Pairs of rows that contradict an order rule."""
        classes = self.rows.classes(of.context, also_filled=(of.left, of.right))
        against = GREATER if of.kind == ASCENDING else LESS
        swaps = [Comparison(of.left, of.left, LESS), Comparison(of.right, of.right, against)]
        return join(classes.groups, self.rows.codes, swaps, "iejoin", device="cpu").count(None, 1)

    def _row(self, of: RuleColumns, wrong: int | None) -> float:
        found = counting.compare(self.rows.codes[of.left], self.rows.codes[of.right])
        above, equal, below = found.above_by_chance, found.equal_by_chance, found.below_by_chance
        chances = {"==": equal, "!=": above + below, "<": below, "<=": below + equal, ">": above, ">=": above + equal}
        by_chance = chances[of.operator]
        if by_chance <= 0:
            return 0.0
        strength, share = max(0.0, 1.0 - (wrong or 0) / by_chance), found.rows / self.rows.count
        scored = measures.equality_score if of.operator == "!=" else measures.row_score
        return scored(strength, by_chance, share)
