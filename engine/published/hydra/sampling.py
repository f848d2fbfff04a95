"""Random and focused sampling of pairs of tuples: the preliminary evidence of Hydra.

Source: Bleifuss, Kruse, Naumann, "Efficient Denial Constraint Discovery with Hydra", PVLDB 11(3), 2017, section 4.
Departures: the partners of a tuple in the random sample are drawn with replacement; an evidence calculation counts as
two, since the kernel gives the evidence of both orders of a pair; rows with a null in an attribute are in no cluster of
it under the rule "unknown", where no predicate on that attribute holds for them; a focus whose first application
yields less than the threshold is not applied again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.evidence import cut_clues
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.clues import ComparableRows
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.evidence import ClueSet
from tuplewise.gpu_kernels.words import clue_words, merge_clues

PARTNERS = 20  # k: random partners of a tuple
THRESHOLD = 0.005  # least efficiency at which a focus is applied again
CHUNK_PAIRS = 1 << 22  # pairs that are drawn and compared at a time
PAIRS_OF_THREADS = 1 << 16  # from so many pairs on, several threads compare them

Strategy = Literal["within", "other", "back", "forth"]
Progress = Callable[[float], None] | None
Rows = NDArray[np.int32]


class Evidences:
    """A growing set of distinct evidences, as clues over the groups of a predicate space.

    Attributes
    ----------
    clues : uint64 (evidences, words), sorted
    """

    def __init__(self, space: PredicateSpace) -> None:
        self._space = space
        self.clues = np.zeros((0, clue_words(space.groups)), dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.clues)

    def add(self, clues: NDArray[np.uint64]) -> int:
        """Add clues of the space's layout; returns how many evidences are new."""
        if not len(clues):
            return 0
        before = len(self.clues)
        both = np.concatenate([self.clues, clues if self._space.closed else cut_clues(clues, self._space.groups)])
        self.clues = merge_clues(both, np.ones(len(both), dtype=np.int64))[0]
        return len(self.clues) - before


@dataclass
class Focus:
    """An attribute with a strategy, and what its applications gave.

    Attributes
    ----------
    pairs : pairs of rows compared so far
    new : evidences that were unseen before
    applications : how often it was applied
    """

    column: int
    strategy: Strategy
    pairs: int = 0
    new: int = 0
    applications: int = 0

    def record(self, names: tuple[str, ...]) -> dict[str, Any]:
        """For the result."""
        return {
            "column": names[self.column],
            "strategy": self.strategy,
            "applications": self.applications,
            "pairs": self.pairs,
            "new_evidences": self.new,
        }


@dataclass
class Sample:
    """What sampling found.

    Attributes
    ----------
    random : distinct evidences of the random sample over the space, with counts
    random_pairs : pairs of rows in it
    evidences : those of both samples
    foci : every focus
    """

    random: ClueSet
    random_pairs: int
    evidences: Evidences
    foci: list[Focus] = field(default_factory=list)

    @property
    def focused_pairs(self) -> int:
        return sum(f.pairs for f in self.foci)


def random_sample(
    rows: ComparableRows, count: int, space: PredicateSpace, rng: np.random.Generator, run: Run
) -> Sample:
    """Each of `count` rows with PARTNERS random other ones. Cost: that many comparisons of rows.

    Raises LimitReached at the deadline.
    """
    mind = run.minded("sample")
    together = max(1, min(PARTNERS, CHUNK_PAIRS // count))
    clues = np.zeros((0, clue_words(space.groups)), dtype=np.uint64)
    counts = np.zeros(0, dtype=np.int64)
    pairs = 0
    for first in range(0, PARTNERS, together):
        t = np.tile(np.arange(count, dtype=np.int32), min(together, PARTNERS - first))
        u = (t + rng.integers(1, count, len(t), dtype=np.int32)) % np.int32(count)
        seen, times = compare(rows, t, u)
        seen = seen if space.closed else cut_clues(seen, space.groups)
        clues, counts = merge_clues(np.concatenate([clues, seen]), np.concatenate([counts, times]))
        pairs += len(t)
        mind(min(1.0, (first + together) / PARTNERS))
    evidences = Evidences(space)
    evidences.clues = clues
    return Sample(ClueSet(clues, counts, 2 * pairs, True), pairs, evidences)


def focused_sample(
    sample: Sample, rows: ComparableRows, relation: Relation, space: PredicateSpace, rng: np.random.Generator, run: Run
) -> None:
    """Add the evidences of the foci to `sample`: all of them once, then the most efficient one again and again.

    Efficiency is the number of new evidences over that of evidences calculated, in the last application; a focus below
    THRESHOLD is dropped. So each further application adds at least a fixed number of evidences, and the loop ends.
    Raises LimitReached at the deadline.
    """
    mind = run.minded("focused_sample")
    sample.foci = foci_of(space)
    clusterings: dict[int, Clustering] = {}
    queue: list[tuple[float, int]] = []

    def apply(number: int) -> None:
        focus = sample.foci[number]
        if focus.column not in clusterings:
            keep_nulls = space.options.nulls == "value"
            clusterings[focus.column] = Clustering(relation.codes[focus.column], keep_nulls)
        compared, new = 0, 0
        for t, u in clusterings[focus.column].partners(focus.strategy, rng):
            new += sample.evidences.add(compare(rows, t, u)[0])
            compared += len(t)
        focus.applications += 1
        focus.pairs += compared
        focus.new += new
        if compared and new >= THRESHOLD * 2 * compared:
            heapq.heappush(queue, (-new / (2 * compared), number))

    for number in range(len(sample.foci)):
        apply(number)
        mind((number + 1) / len(sample.foci))
    while queue:
        apply(heapq.heappop(queue)[1])
        mind(1.0)


def compare(rows: ComparableRows, t: Rows, u: Rows) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Distinct clues of pairs and of the exchanged pairs, with counts, on all cores."""
    cores = usable_cores() if len(t) >= PAIRS_OF_THREADS else 1
    parts = list(zip(np.array_split(t, cores), np.array_split(u, cores), strict=True))
    if cores == 1:
        found = [rows.of_pairs(t, u, counting=True)]
    else:
        with ThreadPoolExecutor(cores) as pool:
            found = list(pool.map(lambda part: rows.of_pairs(*part, counting=True), parts))
    clues, counts = (np.concatenate(arrays) for arrays in zip(*((f.clues, f.counts) for f in found), strict=True))
    return merge_clues(clues, counts)


def foci_of(space: PredicateSpace) -> list[Focus]:
    """The foci of every column: within and other clusters; back and forth where the column is ordered."""
    foci = []
    for group in np.flatnonzero(space.same_column).tolist():
        strategies: tuple[Strategy, ...] = ("within", "other")
        if space.ordered[group]:
            strategies = ("within", "other", "back", "forth")
        foci += [Focus(int(space.left[group]), strategy) for strategy in strategies]
    return foci


class Clustering:
    """The clusters of a column in order of value.

    Parameters
    ----------
    codes : int32 (rows,)
    keep_nulls : whether null is a value
    """

    def __init__(self, codes: NDArray[np.int32], keep_nulls: bool) -> None:
        order = np.argsort(codes, kind="stable").astype(np.int32)
        if not keep_nulls:
            order = order[np.count_nonzero(codes == NULL_CODE) :]
        ordered = codes[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        starts = np.flatnonzero(first)
        sizes = np.diff(np.append(starts, len(order)))
        self._order: Rows = order
        self._start: Rows = np.repeat(starts, sizes).astype(np.int32)
        self._end: Rows = np.repeat(starts + sizes, sizes).astype(np.int32)

    def partners(self, strategy: Strategy, rng: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
        """A random partner from the same, other, preceding or following clusters for each row that has one: (t, u).

        In portions, int32 each, t in order of the clusters.
        """
        rows = len(self._order)
        for low in range(0, rows, CHUNK_PAIRS):
            at = np.arange(low, min(rows, low + CHUNK_PAIRS), dtype=np.int32)
            start, end = self._start[at], self._end[at]
            choices, base = {
                "within": (end - start - 1, at),
                "other": (rows - (end - start), end),
                "back": (start, np.zeros_like(start)),
                "forth": (rows - end, end),
            }[strategy]
            some = choices > 0
            at, start, end, choices, base = at[some], start[some], end[some], choices[some], base[some]
            drawn = (rng.random(len(at)) * choices).astype(np.int32)
            if strategy == "within":
                place = start + (base - start + 1 + drawn) % (end - start)
            else:
                place = (base + drawn) % rows
            yield self._order[at], self._order[place]
