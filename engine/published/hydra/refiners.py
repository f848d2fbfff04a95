"""Refiners of preliminary constraints, their order, and the tree that constraints with common refiners share.

Source: Bleifuss, Kruse, Naumann (PVLDB 11(3), 2017), section 6.4: the weight of a refiner is its frequency among the
constraints over its selectivity in the random sample; inequalities are combined into disjoint pairs of the greatest
total frequency over total selectivity; refiners go by falling weight, and constraints with a common prefix share it.
Departures: filters and equalities come before the others, whatever the weights, since one sort refines several and
leaves no more rows than there were; counts have one added, so that what the sample never saw has a weight; pairings of
more than EXHAUSTIVE inequalities are begun greedily.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.evidence import EvidenceSet
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison
from tuplewise.gpu_kernels.words import ACROSS

EXHAUSTIVE = 8  # inequalities of one constraint of which all pairings are weighed: 105
OUTCOMES = (EQUAL, LESS | GREATER, LESS, LESS | EQUAL, GREATER, GREATER | EQUAL)  # of each operator, in operator order

Kind = Literal["filter", "equality", "inequality", "non-equality"]
RANK: dict[Kind, int] = {"filter": 0, "equality": 0, "inequality": 1, "non-equality": 1}
# Seconds for a row, left or right, on one core, measured: a mask; a share of a sort; a sort, a join and some levels.
STEP_SECONDS: dict[Kind, float] = {"filter": 1e-8, "equality": 5e-8, "inequality": 5e-7, "non-equality": 5e-7}
ROWS_OF_LEVELS = 1.5  # rows, over all levels, that a join which finds many pairs hands on for each one it got, measured


@dataclass(frozen=True, eq=False)
class Refiner:
    """One predicate, or two inequalities that are refined together. Two are the same where they are one object.

    Attributes
    ----------
    predicates : predicate numbers, ascending
    kind : "filter" (a predicate about t alone), "equality", "inequality" (one or two), "non-equality"
    comparisons : of the predicates; t's column is on the left
    """

    predicates: tuple[int, ...]
    kind: Kind
    comparisons: tuple[Comparison, ...]


@dataclass
class RefinerNode:
    """A refiner and what follows it.

    Attributes
    ----------
    refiner : None at the root
    leaves : constraints that end here or below
    row_seconds : what a row that gets here is expected to cost below
    """

    refiner: Refiner | None
    children: list[RefinerNode] = field(default_factory=list)
    leaves: int = 0
    row_seconds: float = 0.0


class PredicateWeights:
    """Selectivities of predicates by the random sample, and frequencies in preliminary constraints.

    Parameters
    ----------
    sample : distinct evidences of the random sample, with counts
    arrays : the preliminary constraints
    """

    def __init__(self, sample: EvidenceSet, arrays: ConstraintArrays) -> None:
        self._space, self._sample, self._arrays = sample.space, sample, arrays

    @cached_property
    def _selectivity(self) -> NDArray[np.float64]:
        """float64 (predicates, predicates): share of sampled pairs that satisfy both, with one pair added."""
        unsatisfied = self._sample.predicate_edges()
        n = self._space.predicates
        both = np.zeros((n, n))
        for first in range(0, len(unsatisfied), 1 << 16):
            part = unsatisfied[first : first + (1 << 16)]
            satisfied = np.empty((len(part), n))
            for p in range(n):
                satisfied[:, p] = ~(part[:, p // 64] >> np.uint64(p % 64)) & np.uint64(1)
            both += satisfied.T @ (satisfied * self._sample.counts[first : first + (1 << 16), None])
        return (both + 1) / (float(self._sample.counts.sum()) + 1)

    @cached_property
    def _frequency(self) -> NDArray[np.float64]:
        """float64 (predicates, predicates): constraints that have both."""
        has = np.zeros((len(self._arrays), self._space.predicates))
        rows, places = np.nonzero(self._arrays.predicates >= 0)
        has[rows, self._arrays.predicates[rows, places]] = 1
        return np.asarray(has.T @ has)

    def frequency(self, *predicates: int) -> float:
        """Constraints that have these predicates, one or two."""
        return float(self._frequency[predicates[0], predicates[-1]])

    def selectivity(self, *predicates: int) -> float:
        """Share of pairs that satisfy these predicates, one or two; above 0."""
        return float(self._selectivity[predicates[0], predicates[-1]])

    def weight(self, *predicates: int) -> float:
        """Frequency over selectivity."""
        return self.frequency(*predicates) / self.selectivity(*predicates)


class RefinerOrder:
    """Puts the refiners of constraints into order. Refiners of the same predicates are one object."""

    def __init__(self, space: PredicateSpace, weights: PredicateWeights) -> None:
        self._space, self._weights = space, weights
        self._refiners: dict[tuple[int, ...], Refiner] = {}
        self._keys: dict[Refiner, tuple[int, float, tuple[int, ...]]] = {}
        self.pair_up = cache(self._pair_up)

    def path(self, predicates: Sequence[int]) -> list[Refiner]:
        """The refiners of one constraint in order of evaluation. `predicates`: numbers, ascending."""
        alone = [self.refiner(p) for p in predicates]
        inequalities = tuple(r.predicates[0] for r in alone if r.kind == "inequality")
        made = [r for r in alone if r.kind != "inequality"]
        made += [self.refiner(*some) for some in self.pair_up(inequalities)]
        return sorted(made, key=self._keys.__getitem__)

    def refiner(self, *predicates: int) -> Refiner:
        """The refiner of a predicate, or of two inequalities."""
        if predicates not in self._refiners:
            made = make_refiner(self._space, predicates)
            self._refiners[predicates] = made
            self._keys[made] = (RANK[made.kind], -self._weights.weight(*predicates), predicates)
        return self._refiners[predicates]

    def _pair_up(self, inequalities: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Disjoint pairs of the greatest total frequency over total selectivity; of an odd number one stays alone."""
        weights = self._weights
        chosen: list[tuple[int, ...]] = []
        rest = inequalities
        while len(rest) > EXHAUSTIVE:
            best = max(combinations(rest, 2), key=lambda pair: weights.weight(*pair))
            chosen.append(best)
            rest = tuple(p for p in rest if p not in best)

        def quotient(pairs: tuple[tuple[int, int], ...]) -> float:
            frequency = sum(weights.frequency(*pair) for pair in pairs)
            return frequency / sum(weights.selectivity(*pair) for pair in pairs)

        if len(rest) > 1:
            best_pairing = max(pairings(rest), key=quotient)
            chosen += best_pairing
        return chosen + [(p,) for p in inequalities if not any(p in pair for pair in chosen)]


def make_refiner(space: PredicateSpace, predicates: tuple[int, ...]) -> Refiner:
    """The refiner of a predicate, or of two inequalities."""
    comparisons = []
    for p in predicates:
        group = int(space.predicate_group[p])
        outcomes = OUTCOMES[int(space.predicate_operator[p])]
        comparisons.append(Comparison(int(space.left[group]), int(space.right[group]), outcomes))
    kind: Kind = "inequality"
    if space.scope[space.predicate_group[predicates[0]]] != ACROSS:
        kind = "filter"
    elif comparisons[0].outcomes == EQUAL:
        kind = "equality"
    elif comparisons[0].outcomes == LESS | GREATER:
        kind = "non-equality"
    return Refiner(predicates, kind, tuple(comparisons))


def pairings(items: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """All ways to make disjoint pairs that leave out at most one.

    Examples
    --------
    >>> pairings((1, 2, 3))
    [((2, 3),), ((1, 2),), ((1, 3),)]
    """
    if len(items) < 2:
        return [()]
    first, others = items[0], items[1:]
    found = pairings(others) if len(items) % 2 else []
    for k, partner in enumerate(others):
        found += [((first, partner), *more) for more in pairings(others[:k] + others[k + 1 :])]
    return found


def build_tree(paths: Iterable[Sequence[Refiner]]) -> RefinerNode:
    """The tree of these paths: one from root to leaf for each constraint, common prefixes once.

    No path may begin with all of another: constraints that are minimal have no other's predicates.
    """
    root = RefinerNode(None)
    found: dict[tuple[int, Refiner], RefinerNode] = {}
    for path in paths:
        node = root
        node.leaves += 1
        for step in path:
            key = (id(node), step)
            if key not in found:
                found[key] = RefinerNode(step)
                node.children.append(found[key])
            node = found[key]
            node.leaves += 1
    _add_up(root)
    return root


def _add_up(node: RefinerNode) -> float:
    """Write the costs below a node; returns them with its own."""
    below = node.row_seconds = sum(map(_add_up, node.children))
    if node.refiner is None:
        return below
    return STEP_SECONDS[node.refiner.kind] + (below if RANK[node.refiner.kind] == 0 else ROWS_OF_LEVELS * below)
