"""Candidates of a profile: rules that random pairs of agreeing rows don't contradict.

For each context, a set of up to two columns, random pairs of rows that agree on it are compared on all columns at once.
The columns on which they differ show the possible FDs of the context; their order shows the possible order rules; and
further columns on which they agree show how to extend the context to a key or to a left side of three columns. So a
context costs one grouping of the rows and a few counts of pairs of columns, whatever the number of targets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.profile import measures
from tuplewise.engine.profile.rows import Classes, CountedRelation, SampledPairs

Columns = tuple[int, ...]

PAIRS, LEAST_PAIRS = 4096, 512
"""Pairs that are drawn in each context, and in those of wide tables."""
COMPARED_CELLS = 1 << 18
"""Cells of the pairs of one context, about."""
MOST_CONTEXTS = 2500
"""Contexts that are looked at; of wide tables, those of the columns with the most values first."""
NEARLY_ALL_DIFFER = 0.999
"""A column whose values are so many of its rows determines all others by chance: it is no part of a context."""
SLACK = 0.08
"""What an estimated strength may be below the least that is shown."""
ORDER_SLACK = 0.01
FEW_PAIRS = 40
"""Pairs that say nothing yet."""


@dataclass
class RuleCandidates:
    """Possible rules with estimates.

    Attributes
    ----------
    fds : from (left side, target) to the estimated score
    keys : from sets of columns to the pairs that would be equal by chance
    orders : from (context, A, B) to the estimated gamma, below 0 if one rises as the other falls
    tried : number of examined candidates by kind: left sides times targets, sets, pairs in contexts
    strength : from left sides of one or two columns to the estimated strength of each target, NaN if unknown
    """

    fds: dict[tuple[Columns, int], float] = field(default_factory=dict)
    keys: dict[Columns, float] = field(default_factory=dict)
    orders: dict[tuple[Columns, int, int], float] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=lambda: {"fd": 0, "key": 0, "od": 0})
    strength: dict[Columns, NDArray[np.float64]] = field(default_factory=dict)


class Search:
    """The search for candidates in one table: `contexts` lists the contexts, `look` examines one.

    Parameters
    ----------
    ordered : columns with an order that means something
    single_keys : columns that are keys already
    most_columns : of a left side
    seed : of what is drawn
    table_rows : rows of the table that `rows` are a sample of
    """

    def __init__(
        self, rows: CountedRelation, ordered: list[int], single_keys: list[Columns], most_columns: int, seed: int,
        table_rows: int,
    ) -> None:  # fmt: skip
        self._rows, self._ordered = rows, ordered
        self._table_rows, self._scale = table_rows, table_rows / max(rows.count, 1)
        self.single_keys, self._most = single_keys, most_columns
        self._rng = np.random.default_rng(seed)
        self.found = RuleCandidates()
        distinct, filled = rows.distinct, rows.filled
        self._varying = [int(c) for c in np.flatnonzero(distinct > 1)]
        self.usable = [c for c in self._varying if distinct[c] < NEARLY_ALL_DIFFER * filled[c]]
        self._pairs = max(LEAST_PAIRS, min(PAIRS, COMPARED_CELLS // max(1, len(rows.codes))))
        self._gammas = np.zeros((len(ordered), len(ordered)))

    @property
    def passed_over(self) -> bool:
        """Whether the table has too many columns to examine all pairs of them."""
        return len(self.usable) > self._columns_in_pairs

    @property
    def _columns_in_pairs(self) -> int:
        return max(2, math.isqrt(2 * max(0, MOST_CONTEXTS - len(self._varying))))

    def contexts(self) -> Iterator[Columns]:
        """The contexts to examine, small before large."""
        yield ()
        yield from ((c,) for c in self.usable)
        if self._most < 2:
            return
        by_values = sorted(self.usable, key=lambda c: (-int(self._rows.distinct[c]), c))
        yield from itertools.combinations(sorted(by_values[: self._columns_in_pairs]), 2)

    def look(self, context: Columns) -> None:
        """Draw pairs that agree on a context, and keep the candidates that they don't contradict."""
        classes = self._rows.classes(context)
        if len(context) == 2:
            self.found.tried["key"] += 1
            self._consider_key(context, classes.pairs * self._scale**2)
        if not classes.groups.clusters:
            return
        pairs = SampledPairs(self._rows, classes, self._pairs, self._rng)
        if context:
            self._functional(context, classes, pairs)
        if len(context) < 2 and len(self._ordered) > 1:
            self._order(context, pairs)
        if len(context) == 2:
            self._longer_keys(context, classes, pairs)

    def _functional(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        known = pairs.known.sum(axis=1)
        strength = self._estimated(known - pairs.equal.sum(axis=1), known)
        strength[list(context)] = np.nan
        self.found.strength[context] = strength
        need = strength if len(context) == 1 else strength - self._best_part(context)
        self._keep(context, strength, need, classes, 1.0)
        if len(context) == 2 and self._most > 2:
            self._third_columns(context, classes, pairs)

    def _estimated(self, differ: NDArray[Any], known: NDArray[Any]) -> NDArray[np.float64]:
        """mu+ by target, from pairs that differ of those known; NaN where nothing can be said."""
        with np.errstate(divide="ignore", invalid="ignore"):
            strength: NDArray[np.float64] = 1.0 - differ / known / self._rows.differing
        strength[~np.isfinite(strength)] = np.nan
        self.found.tried["fd"] += int(np.count_nonzero(~np.isnan(strength)))
        return strength

    def _best_part(self, left: Columns) -> NDArray[np.float64]:
        """The strength of the best left side of one column less, by target; 0 of those that weren't looked at."""
        parts = (self.found.strength.get(part) for part in itertools.combinations(left, len(left) - 1))
        known = [np.nan_to_num(part) for part in parts if part is not None]
        best: NDArray[np.float64] = np.maximum.reduce(known) if known else np.zeros(len(self._rows.codes))
        return best

    def _keep(
        self, left: Columns, strength: NDArray[np.float64], need: NDArray[np.float64], classes: Classes, share: float
    ) -> None:
        """Keep the targets of a left side that may be worth showing. `share`: of the pairs that agree on all of it."""
        size = len(left)
        evidence = classes.repeated * share * self._rows.differing
        good = (strength >= measures.FD_STRENGTH[size] - SLACK) & (evidence >= measures.LEAST_EVIDENCE / 2)
        if size > 1:
            good &= need >= measures.FD_NEED[size] - SLACK / 2
        filled = classes.rows / max(self._rows.count, 1)
        for target in np.flatnonzero(good).tolist():
            figures = min(float(strength[target]), 1.0), float(evidence[target]), float(need[target])
            score = measures.fd_score(*figures, size, filled)
            self.found.fds[left, target] = max(score, self.found.fds.get((left, target), 0.0))

    def _third_columns(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        """Left sides of three columns: pairs of the context that agree on a third one, too."""
        thirds = [c for c in self.usable if c not in context]
        contradicting = _count_both(pairs.equal[thirds], pairs.known & ~pairs.equal)
        known = (contradicting + _count_both(pairs.equal[thirds], pairs.equal)).astype(np.float64)
        known[known < FEW_PAIRS] = np.nan
        for i, third in enumerate(thirds):
            left = tuple(sorted((*context, third)))
            strength = self._estimated(contradicting[i], known[i])
            strength[list(left)] = np.nan
            if np.any(strength >= measures.FD_STRENGTH[3] - SLACK):
                share = float(pairs.equal[third].mean()) if len(pairs) else 0.0
                self._keep(left, strength, strength - self._best_part(left), classes, share)

    def _order(self, context: Columns, pairs: SampledPairs) -> None:
        signs = pairs.order(self._ordered)
        rises, falls = signs > 0, signs < 0
        strict = _count_both(signs != 0, signs != 0)
        balance = 2 * (_count_both(rises, rises) + _count_both(falls, falls)) - strict
        inside = np.isin(self._ordered, context)
        comparable = np.triu(strict >= FEW_PAIRS / 4, 1) & ~inside & ~inside[:, None]
        self.found.tried["od"] += int(np.count_nonzero(comparable))
        gamma = np.divide(balance, strict, out=np.zeros(strict.shape), where=comparable)
        if not context:
            self._gammas = gamma
        alike = comparable & (np.abs(gamma) >= measures.OD_STRENGTH - ORDER_SLACK)
        for i, j in np.argwhere(alike).tolist():
            self.found.orders[context, self._ordered[i], self._ordered[j]] = float(gamma[i, j])

    def gamma_of_all(self, a: int, b: int) -> float:
        """The estimated gamma of two columns over all pairs of rows."""
        i, j = sorted((self._ordered.index(a), self._ordered.index(b)))
        return float(self._gammas[i, j])

    def _longer_keys(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        """Keys of three and four columns: columns on which pairs of the context never agree, alone or together."""
        equal = pairs.equal[self.usable]
        together = _count_both(equal, equal)
        # A drawn pair stands for so many of the context's.
        each = classes.pairs * self._scale**2 / max(len(pairs), 1)
        most = 2 * measures.MOST_DOUBLES * self._table_rows
        by_chance = self.doubled_by_chance(context) * np.outer(self._agreeing, self._agreeing)
        np.fill_diagonal(by_chance, self.doubled_by_chance(context) * self._agreeing)
        worth = np.triu(together * each <= most) & (by_chance >= measures.LEAST_EVIDENCE)
        alone = np.flatnonzero(np.diag(together) * each <= most)
        new = np.ones_like(worth)
        new[alone] = new[:, alone] = False  # one of the two is enough
        new[alone, alone] = True
        inside = np.isin(self.usable, context)
        worth &= new & ~inside & ~inside[:, None]
        self.found.tried["key"] += int(np.count_nonzero(~inside)) ** 2 // 2
        for i, j in np.argwhere(worth).tolist():
            added = {self.usable[i], self.usable[j]}
            self._consider_key(tuple(sorted((*context, *added))), float(together[i, j]) * each)

    @cached_property
    def _agreeing(self) -> NDArray[np.float64]:
        """The share of pairs that agree on each usable column, with a value."""
        filled = self._rows.filled[self.usable] / max(self._rows.count, 1)
        shares: NDArray[np.float64] = (1.0 - self._rows.differing[self.usable]) * filled**2
        return shares

    def _consider_key(self, columns: Columns, doubled: float) -> None:
        by_chance = self.doubled_by_chance(columns)
        if by_chance < measures.LEAST_EVIDENCE or any(set(key) <= set(columns) for key in self.single_keys):
            return
        few = max(2 * measures.MOST_DOUBLES * self._table_rows, self._scale**2)
        if doubled <= min(few, (1.0 - measures.KEY_STRENGTH + SLACK) * by_chance):
            self.found.keys[columns] = by_chance

    def doubled_by_chance(self, columns: Columns) -> float:
        """The pairs of rows that would be equal on some columns if these were independent of each other."""
        filled = self._rows.filled[list(columns)] / max(self._rows.count, 1)
        rows = self._table_rows * float(np.prod(filled))
        shares: NDArray[np.float64] = 1.0 - self._rows.differing[list(columns)]
        return rows * (rows - 1) / 2 * float(np.prod(shares))


def parts_of(left: Columns) -> Iterable[Columns]:
    """Left sides of one column less, but not of none."""
    return itertools.combinations(left, len(left) - 1) if len(left) > 1 else ()


def _count_both(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> NDArray[np.int64]:
    """In how many pairs each of the first holds together with each of the second, int64 (len(first), len(second)).

    By bits rather than by a matrix product: the threads of BLAS wait for each other where cores have other work, and
    the many small products then take tens of times as long.
    """
    counts = np.zeros((len(first), len(second)), dtype=np.int64)
    for ours, theirs in zip(_words(first), _words(second), strict=True):
        counts += np.bitwise_count(ours[:, None] & theirs)
    return counts


def _words(held: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Bits by words of 64 pairs, uint64 (words, columns)."""
    packed = np.packbits(held, axis=1)
    padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view(np.uint64).T)
