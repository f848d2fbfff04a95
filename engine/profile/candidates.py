"""Candidates of a profile: what random pairs that agree on a few columns do not contradict.

For each context, a set of up to two columns, pairs of rows that agree on it are drawn and compared on all columns at
once. What they differ on says which FDs the context may determine, how they are ordered which order rules may hold
within it, and what they agree on besides which columns may complete it to a key or to a left side of three. So a
context costs one grouping of the rows and one matrix product, whatever the number of targets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.profile import measures
from tuplewise.engine.profile.rows import Classes, Rows, SampledPairs

Columns = tuple[int, ...]

PAIRS = 4096
"""Pairs that are drawn in each context."""
MOST_CONTEXTS = 2500
"""Contexts that are looked at; of wide tables, those of the columns with the most values first."""
NEARLY_ALL_DIFFER = 0.999
"""A column whose values are so many of its rows determines all others by chance: it is no part of a context."""
SLACK = 0.08
"""What an estimated strength may be below the least that is shown."""
ORDER_SLACK = 0.01
FEW_PAIRS = 40
"""Pairs that say nothing yet."""
MOST_KEY_COLUMNS = 4


@dataclass
class Candidates:
    """What may hold, each with its estimated worth.

    Attributes
    ----------
    fds : (left side, target) to the estimated score
    keys : sets of columns to what would be doubled by chance
    orders : (context, A, B) to the estimated gamma, below 0 where one rises as the other falls
    tried : left sides times targets, sets, and pairs in contexts that were looked at, by kind
    strength : (left side, target) to the estimated strength, of every left side of one column
    """

    fds: dict[tuple[Columns, int], float] = field(default_factory=dict)
    keys: dict[Columns, float] = field(default_factory=dict)
    orders: dict[tuple[Columns, int, int], float] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=lambda: {"fd": 0, "key": 0, "od": 0})
    strength: dict[tuple[Columns, int], float] = field(default_factory=dict)


class Search:
    """The search of one table for candidates; `contexts` says what to look at, `look` looks at one.

    Parameters
    ----------
    rows : Rows
    ordered : columns with an order that means something
    single_keys : columns that are keys already
    most_columns : of a left side
    seed : of what is drawn
    table_rows : rows of the table that `rows` are a sample of
    """

    def __init__(
        self, rows: Rows, ordered: list[int], single_keys: list[Columns], most_columns: int, seed: int, table_rows: int
    ) -> None:
        self._rows, self._ordered = rows, ordered
        self._table_rows, self._scale = table_rows, table_rows / max(rows.count, 1)
        self.single_keys, self._most = single_keys, most_columns
        self._rng = np.random.default_rng(seed)
        self.found = Candidates()
        distinct, filled = rows.distinct, rows.filled
        self._varying = [int(c) for c in np.flatnonzero(distinct > 1)]
        self.usable = [c for c in self._varying if distinct[c] < NEARLY_ALL_DIFFER * filled[c]]
        self._gammas: dict[tuple[int, int], float] = {}

    @property
    def passed_over(self) -> bool:
        """Whether the table is too wide for all pairs of columns."""
        return len(self.usable) > self._columns_in_pairs

    @property
    def _columns_in_pairs(self) -> int:
        return max(2, math.isqrt(2 * max(0, MOST_CONTEXTS - len(self._varying))))

    def contexts(self) -> Iterator[Columns]:
        """What to look at, small before large."""
        yield ()
        yield from ((c,) for c in self.usable)
        if self._most < 2:
            return
        by_values = sorted(self.usable, key=lambda c: (-int(self._rows.distinct[c]), c))
        yield from itertools.combinations(sorted(by_values[: self._columns_in_pairs]), 2)

    def look(self, context: Columns) -> None:
        """Draw pairs that agree on a context, and keep what they don't contradict."""
        classes = self._rows.classes(context)
        if len(context) == 2:
            self._key_of_two(context, classes)
        if not classes.groups.clusters:
            return
        pairs = SampledPairs(self._rows, classes, PAIRS, self._rng)
        if context:
            self._functional(context, classes, pairs)
        if len(context) < 2 and len(self._ordered) > 1:
            self._order(context, pairs)
        if len(context) == 2:
            self._longer_keys(context, classes, pairs)

    def _functional(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        known = pairs.known.sum(axis=1)
        differ = known - pairs.equal.sum(axis=1)
        shares = self._rows.differing
        for target in self._varying:
            if target in context or not known[target] or shares[target] == 0:
                continue
            self.found.tried["fd"] += 1
            self._consider(context, target, 1.0 - float(differ[target] / known[target] / shares[target]), classes)
        if len(context) == 2 and self._most > 2:
            self._third_columns(context, classes, pairs)

    def _consider(self, left: Columns, target: int, strength: float, classes: Classes, repeated: float = 1.0) -> None:
        """Keep a left side that may be worth showing. `repeated`: share of the pairs that agree on all of it."""
        found, size = self.found, len(left)
        if size == 1:
            found.strength[left, target] = strength
        need = strength
        if size > 1:
            need -= max((found.strength.get(((c,), target), 0.0) for c in left), default=0.0)
        if size == 3:
            parts = itertools.combinations(left, 2)
            need = min(need, strength - max(found.strength.get((part, target), 0.0) for part in parts))
        if size == 2:
            found.strength[left, target] = strength
        evidence = classes.repeated * repeated * float(self._rows.differing[target])
        if strength < measures.FD_STRENGTH[size] - SLACK or evidence < measures.LEAST_EVIDENCE / 2:
            return
        if size > 1 and need < measures.FD_NEED[size] - SLACK / 2:
            return
        share = classes.rows / max(self._rows.count, 1)
        score = measures.fd_score(min(strength, 1.0), evidence, need, size, share)
        found.fds[left, target] = max(score, found.fds.get((left, target), 0.0))

    def _third_columns(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        """Left sides of three columns: pairs of the context that agree on a third one, too."""
        equal = pairs.equal.astype(np.float32)
        differ = (pairs.known & ~pairs.equal).astype(np.float32)
        contradicting, agreeing = equal @ differ.T, equal @ equal.T
        shares = self._rows.differing
        for third in self.usable:
            if third in context:
                continue
            left = tuple(sorted((*context, third)))
            repeated = float(equal[third].sum() / max(len(pairs), 1))
            for target in self._varying:
                known = float(contradicting[third, target] + agreeing[third, target])
                if target in left or known < FEW_PAIRS or shares[target] == 0:
                    continue
                self.found.tried["fd"] += 1
                strength = 1.0 - float(contradicting[third, target]) / known / float(shares[target])
                self._consider(left, target, strength, classes, repeated)

    def _order(self, context: Columns, pairs: SampledPairs) -> None:
        signs = pairs.order(self._ordered).astype(np.float32)
        balance, strict = signs @ signs.T, np.abs(signs) @ np.abs(signs).T
        for i, j in itertools.combinations(range(len(self._ordered)), 2):
            a, b = self._ordered[i], self._ordered[j]
            if a in context or b in context or strict[i, j] < FEW_PAIRS / 4:
                continue
            self.found.tried["od"] += 1
            gamma = float(balance[i, j] / strict[i, j])
            if not context:
                self._gammas[a, b] = gamma
            if abs(gamma) >= measures.OD_STRENGTH - ORDER_SLACK:
                self.found.orders[context, a, b] = gamma

    def gamma_of_all(self, a: int, b: int) -> float:
        """The estimated gamma of two columns over all pairs of rows."""
        return self._gammas.get((a, b), 0.0)

    def _key_of_two(self, context: Columns, classes: Classes) -> None:
        self._consider_key(context, classes.pairs * self._scale**2)

    def _longer_keys(self, context: Columns, classes: Classes, pairs: SampledPairs) -> None:
        """Keys of three and four columns: what pairs of the context never agree on, alone or together."""
        equal = pairs.equal[self.usable].astype(np.float32)
        together = equal @ equal.T
        # A drawn pair stands for so many of the context's.
        each = classes.pairs * self._scale**2 / max(len(pairs), 1)
        most = 2 * measures.MOST_DOUBLES * self._table_rows
        few = np.argwhere(np.triu(together * each <= most))
        for i, j in few.tolist():
            added = {self.usable[i], self.usable[j]}
            if added & set(context) or 2 + len(added) > MOST_KEY_COLUMNS:
                continue
            if len(added) == 2 and min(together[i, i], together[j, j]) * each <= most:
                continue  # one of the two is enough
            self._consider_key(tuple(sorted((*context, *added))), float(together[i, j]) * each)

    def _consider_key(self, columns: Columns, doubled: float) -> None:
        self.found.tried["key"] += 1
        by_chance = self.doubled_by_chance(columns)
        if by_chance < measures.LEAST_EVIDENCE or any(set(key) <= set(columns) for key in self.single_keys):
            return
        few = max(2 * measures.MOST_DOUBLES * self._table_rows, self._scale**2)
        if doubled <= min(few, (1.0 - measures.KEY_STRENGTH + SLACK) * by_chance):
            self.found.keys[columns] = by_chance

    def doubled_by_chance(self, columns: Columns) -> float:
        """Pairs of rows that would be equal on some columns, were those independent of each other."""
        filled = self._rows.filled[list(columns)] / max(self._rows.count, 1)
        rows = self._table_rows * float(np.prod(filled))
        shares: NDArray[np.float64] = 1.0 - self._rows.differing[list(columns)]
        return rows * (rows - 1) / 2 * float(np.prod(shares))
