"""Which published indexes serve a set of denial constraints: SelectIndex with its scores and thresholds.

Source: Qian, Li, Tan, Ran, Ma, "Incremental discovery of denial constraints", The VLDB Journal 32, 2023, section 7,
Algorithm 4. Departures:

- Correlation coefficients are of ranks (Spearman's), of a sample of rows: codes are gapped ranks and no values, and
  ranks are what chains are made of. Distinct values are counted, not estimated.
- An index of two columns serves every pair of operators on them (section 6.2, see `chains.py`), so
  candidates are pairs of columns, and all are made for `<=` and `>=`, which gives the least rank. Line 17 decides
  whether the second column rises or falls along chains; between -alpha and alpha the first constraint served does.
- A predicate `!=` is read as `<` or `>` at once, where the paper makes two constraints of one: both are served by the
  same index, so only counts of coverage differ.
- A candidate of predicates across columns is the pair of indexes that Fetch+ needs; the lower of the two correlations
  counts, and the greater of two equality scores.
- Lines 1 to 8 take the equality of the best score of a constraint, where the paper takes any.
- Constraints that only compare values within one row, which the paper does not have, are served by marking rows; in
  other constraints such predicates are left to whoever looks at the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.gpu_kernels.words import ACROSS

LEAST_SCORE, LEAST_DISTINCT, LEAST_CORRELATION = 0.6, 0.1, 0.3  # l, l' and alpha
SAMPLE_ROWS = 10_000
EQUALS, DIFFERS, FALLING, RISING = 0, 1, (2, 3), (4, 5)  # numbers of operators: == != < <= > >=

Columns = tuple[int, ...]
"""The columns of an index, ascending: one (sorted), or two (chains)."""
Needed = tuple[Columns, ...]
"""The indexes that serve a constraint: one, or two where columns are compared with each other."""


@dataclass(frozen=True)
class Serving:
    """How a constraint is served: by these of its predicates (one or two), with these indexes."""

    predicates: tuple[int, ...]
    needed: Needed


class IndexScores:
    """The scores that SelectIndex gives columns of a table, computed on demand.

    codes : int32 (rows, columns); rows : those that are there; unknown : whether nulls are no values
    """

    def __init__(self, codes: NDArray[np.int32], rows: NDArray[np.int32], unknown: bool, seed: int) -> None:
        self._codes, self._rows, self._unknown = codes, rows, unknown
        chosen = rows
        if len(rows) > SAMPLE_ROWS:
            chosen = np.sort(np.random.default_rng(seed).choice(rows, SAMPLE_ROWS, replace=False))
        self._sample = codes[chosen]
        self.distinct_share = cache(self._distinct_share)
        self.correlation = cache(self._correlation)

    def equality(self, needed: Needed) -> float:
        """The score of equality indexes: 1 - distinct values / rows, the greatest of them."""
        return max(1 - self.distinct_share(columns[0]) for columns in needed)

    def weakest_correlation(self, needed: Needed) -> float:
        return min(abs(self.correlation(*columns)) for columns in needed)

    def many_values(self, needed: Needed) -> bool:
        return all(self.distinct_share(c) >= LEAST_DISTINCT for columns in needed for c in columns)

    def _distinct_share(self, column: int) -> float:
        """Distinct values by rows; 1 where there are no rows."""
        column_codes = self._codes[self._rows, column]
        if self._unknown:
            column_codes = column_codes[column_codes >= 0]
        return len(np.unique(column_codes)) / len(self._rows) if len(self._rows) else 1.0

    def _correlation(self, left: int, right: int) -> float:
        """Of ranks of the sampled rows that have both values; 0 where either column is constant."""
        both = self._sample[:, [left, right]]
        if self._unknown:
            both = both[(both >= 0).all(axis=1)]
        if len(both) < 2:
            return 0.0
        ranks = np.array([_ranks(column) for column in both.T])
        ranks -= ranks.mean(axis=1, keepdims=True)
        norm = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
        return float((ranks[0] * ranks[1]).sum()) / norm if norm else 0.0


def _ranks(codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Ranks from 0, the mean rank for equal codes."""
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = (ends - (counts + 1) / 2)[place.ravel()]
    return ranks


@dataclass(frozen=True, eq=False)
class IndexChoice:
    """The indexes that are new, whether their second column falls, how constraints are served, and which are about
    one row."""

    indexes: dict[Columns, bool]
    servings: set[Serving]
    one_row: list[tuple[int, ...]]


def select_indexes(
    space: PredicateSpace, constraints: Iterable[Sequence[int]], scores: IndexScores, built: Iterable[Columns] = ()
) -> IndexChoice:
    """SelectIndex: indexes such that every constraint is served by those given and those new.

    Parameters
    ----------
    constraints : numbers of predicates of each
    built : indexes that there are already; what they serve needs no other

    Notes
    -----
    Cost: of each constraint the pairs of its predicates that are no equalities; of each index chosen, the candidates.
    """
    return _Selection(space, constraints, scores, built).choice()


class _Selection:
    """The constraints left to serve, and the indexes chosen."""

    def __init__(
        self, space: PredicateSpace, constraints: Iterable[Sequence[int]], scores: IndexScores, built: Iterable[Columns]
    ) -> None:
        self._space, self._scores = space, scores
        self._built = set(built)
        self._new: dict[Columns, bool] = {}
        self._servings: set[Serving] = set()
        self._one_row: list[tuple[int, ...]] = []
        self._equalities: list[dict[Needed, Serving]] = []
        self._inequalities: list[dict[Needed, Serving]] = []
        self._singles: list[Serving | None] = []
        for numbers in constraints:
            self._add(tuple(dict.fromkeys(int(p) for p in numbers)))
        self._left = dict.fromkeys(range(len(self._equalities)))

    def choice(self) -> IndexChoice:
        self._serve(self._equalities, self._built)
        self._serve(self._inequalities, self._built)
        for crossing in (False, True):
            self._equalities_of_good_score(crossing)
        self._best_inequalities(strict=True)
        self._cheapest_equalities()
        self._best_inequalities(strict=False)
        for number in list(self._left):
            single = self._singles[number]
            assert single is not None
            self._pick(single)
            self._servings.add(single)
        return IndexChoice(self._new, self._servings, self._one_row)

    def _add(self, numbers: tuple[int, ...]) -> None:
        """The servings of one constraint."""
        space = self._space
        across = [p for p in numbers if space.scope[space.predicate_group[p]] == ACROSS]
        if not across:
            self._one_row.append(numbers)
            return
        equal = [p for p in across if space.predicate_operator[p] == EQUALS]
        others = [p for p in across if space.predicate_operator[p] != EQUALS]
        self._equalities.append({s.needed: s for s in (self._serving(p) for p in equal)})
        self._inequalities.append({s.needed: s for s in (self._serving(p, q) for p, q in combinations(others, 2))})
        self._singles.append(self._serving(others[0]) if others else None)

    def _serving(self, *predicates: int) -> Serving:
        groups = self._space.predicate_group[list(predicates)]
        sides = (self._space.left[groups].tolist(), self._space.right[groups].tolist())
        return Serving(predicates, tuple(sorted({tuple(sorted(side)) for side in sides})))

    def _equalities_of_good_score(self, crossing: bool) -> None:
        """Lines 1 to 4, and 5 to 8 for equalities across columns."""
        for number in list(self._left):
            if number not in self._left:
                continue
            own = [s for s in self._equalities[number].values() if (len(s.needed) > 1) == crossing]
            best = min(own, key=lambda s: (self._scores.equality(s.needed), s.needed), default=None)
            if best is not None and self._scores.equality(best.needed) < LEAST_SCORE:
                self._pick(best)
                self._serve(self._equalities)

    def _cheapest_equalities(self) -> None:
        """Line 20: in ascending order of score, those that serve something."""
        candidates = {n: s for number in self._left for n, s in self._equalities[number].items()}
        for needed in sorted(candidates, key=lambda n: (self._scores.equality(n), n)):
            if any(needed in self._equalities[number] for number in self._left):
                self._pick(candidates[needed])
                self._serve(self._equalities)

    def _best_inequalities(self, strict: bool) -> None:
        """Lines 9 to 19; not `strict`, line 21."""
        first: dict[Needed, Serving] = {}
        coverage: dict[Needed, int] = {}
        for number in self._left:
            for needed, serving in self._inequalities[number].items():
                if strict and not self._scores.many_values(needed):
                    continue
                first.setdefault(needed, serving)
                coverage[needed] = coverage.get(needed, 0) + 1
        while any(coverage.values()):
            best = min(
                (n for n, count in coverage.items() if count),
                key=lambda n: ((1 - self._scores.weakest_correlation(n)) / coverage[n], n),
            )
            self._pick(first[best])
            for number in self._serve(self._inequalities):
                for needed in self._inequalities[number]:
                    if needed in coverage:
                        coverage[needed] -= 1

    def _pick(self, serving: Serving) -> None:
        """Make the indexes that a serving needs."""
        for columns in serving.needed:
            if columns not in self._built:
                self._built.add(columns)
                self._new[columns] = len(columns) == 2 and self._falls(columns, serving)

    def _falls(self, columns: Columns, serving: Serving) -> bool:
        """Line 17: whether the second column falls along the chains in which the first rises."""
        correlation = self._scores.correlation(*columns)
        if abs(correlation) > LEAST_CORRELATION:
            return correlation < 0
        one, other = (int(self._space.predicate_operator[p]) for p in serving.predicates)
        return (one in FALLING and other in RISING) or (one in RISING and other in FALLING)

    def _serve(self, servings: list[dict[Needed, Serving]], built: set[Columns] | None = None) -> list[int]:
        """Remove the constraints that built indexes serve from those left; returns them."""
        built = self._built if built is None else built
        served = []
        for number in list(self._left):
            for needed, serving in servings[number].items():
                if built.issuperset(needed):
                    self._servings.add(serving)
                    del self._left[number]
                    served.append(number)
                    break
        return served
