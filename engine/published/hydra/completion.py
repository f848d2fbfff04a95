"""Evidence set completion: the evidence of every pair of rows that violates a preliminary constraint.

Cluster pairs go down the tree of refiners depth first: filters and equalities make smaller cluster pairs; inequalities
and non-equalities list the pairs of rows that satisfy them, in bounded portions, each of which goes down to the leaves
before the next is made, or, where there are many, make cluster pairs level by level (levels.py). What reaches a leaf
violates a constraint, and its evidence (of both orders) is kept.

Source: Bleifuss, Kruse, Naumann (PVLDB 11(3), 2017), sections 6.2 to 6.4. Departures:

- Cluster pairs below which the refiners would cost more are compared whole: the clue kernel tests all predicates of a
  pair at once. The delta evidence is then larger than it has to be, never smaller. The root is always refined.
- Joins list pairs of rows, not cluster pairs, where they find few; refiners below them test these one by one.
- Neighbouring equalities are one sort; a join that finds no pair ends before pairs are counted.
- Parts of the tree run on several threads.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.violations.program import satisfied
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing
from tuplewise.engine.published.hydra.levels import refine_by_order
from tuplewise.engine.published.hydra.refiners import STEP_SECONDS, Refiner, RefinerNode
from tuplewise.engine.published.hydra.sampling import Evidences
from tuplewise.engine.run import TIME_LIMIT
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.gpu_kernels.clues import ComparableRows, NewClues
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows, restrict
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.join_types import Algorithm, Comparison, PairJoin
from tuplewise.gpu_kernels.refine import join

CHUNK_PAIRS = 1 << 20  # pairs of rows that are listed at a time (more where one row has more partners)
LISTED_PAIRS_PER_ROW = 4  # what a join finds is listed up to so many pairs a row, left or right
# Seconds for a row of cluster pairs, left or right, and for a pair of rows, to be compared; on one core, measured.
COMPARED_ROW_SECONDS, COMPARED_PAIR_SECONDS = 6e-7, 4e-9
LEAVES_OF_TASK = 16  # below so many constraints the tree is not divided among threads

Rows = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Delta:
    """Gathers violating pairs and compares them in portions. Threads may share it.

    Attributes
    ----------
    violating_pairs : ordered pairs that reached a leaf (or are of clusters compared whole), once for each time
    compared_pairs : pairs of rows compared
    new : evidences that were not in `evidences` before; they are added
    """

    def __init__(self, rows: ComparableRows, evidences: Evidences, deadline: float | None) -> None:
        self._rows, self._evidences, self._deadline = rows, evidences, deadline
        self._listed: list[tuple[Rows, Rows]] = []
        self._clusters: list[ClusterPairs] = []
        self._waiting = 0
        self._lock, self._comparing = threading.Lock(), threading.Lock()
        self.violating_pairs = self.compared_pairs = self.new = 0

    def add(self, t: Rows, u: Rows) -> None:
        """Pairs of different rows."""
        with self._lock:
            self._listed.append((t, u))
            self._waiting += len(t)
        self._compare(CHUNK_PAIRS)

    def add_clusters(self, pairs: ClusterPairs) -> None:
        """All pairs of different rows inside cluster pairs."""
        with self._lock:
            self._clusters.append(pairs)
            self._waiting += len(pairs.left) + len(pairs.right)
        self._compare(CHUNK_PAIRS)

    def finish(self) -> None:
        """Compare what is left."""
        self._compare(0)

    def _compare(self, least: int) -> None:
        """Compare all that waits, if so many rows do. Raises LimitReached at the deadline."""
        if self._waiting <= least:
            return
        with self._comparing:
            with self._lock:
                listed, clusters = self._listed, self._clusters
                self._listed, self._clusters, self._waiting = [], [], 0
            if listed:
                t, u = (np.concatenate(side) for side in zip(*listed, strict=True))
                self._learn(self._rows.of_pairs(t, u))
            for reflexive in (True, False):
                some = [pairs for pairs in clusters if pairs.reflexive == reflexive]
                if some:
                    self._learn(self._rows.within(_together(some), deadline=self._deadline))

    def _learn(self, found: NewClues) -> None:
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        self.violating_pairs += found.ordered_pairs
        self.compared_pairs += found.ordered_pairs // 2
        self.new += self._evidences.add(found.clues)


def _together(clusters: list[ClusterPairs]) -> ClusterPairs:
    """The cluster pairs of several, all reflexive or none. A row may be in several sets then: to be compared only."""
    if len(clusters) == 1:
        return clusters[0]
    left, left_offsets = _side([p.left for p in clusters], [p.left_offsets for p in clusters])
    if clusters[0].reflexive:
        return ClusterPairs(left, left_offsets, left, left_offsets)
    right, right_offsets = _side([p.right for p in clusters], [p.right_offsets for p in clusters])
    return ClusterPairs(left, left_offsets, right, right_offsets)


def _side(rows: list[Rows], offsets: list[NDArray[np.int64]]) -> tuple[Rows, NDArray[np.int64]]:
    sizes = np.concatenate([np.diff(o) for o in offsets])
    return np.concatenate(rows), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class Completion:
    """One walk through a tree of refiners.

    Parameters
    ----------
    work : codes, device and deadline
    keep_nulls : whether null is a value
    delta : where violating pairs go
    progress : called with the share of constraints that are done. What it raises ends the walk.
    """

    def __init__(
        self, work: Work, keep_nulls: bool, delta: Delta, progress: Callable[[float], None] | None = None
    ) -> None:
        self._work, self._keep_nulls, self._delta, self._progress = work, keep_nulls, delta, progress
        self._presence: dict[int, Flags | None] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._tasks: list[Future[None]] = []
        self._done = 0.0
        self.applied: Counter[str] = Counter()

    def run(self, root: RefinerNode) -> None:
        """Walk the whole tree. Raises LimitReached at the deadline, and what `progress` raises."""
        everything = all_rows(np.arange(self._work.rows, dtype=np.int32))
        threads = usable_cores() if self._work.device.kind == "cpu" else 1
        with ThreadPoolExecutor(threads) as pool:
            self._pool = pool
            for child in root.children:
                self._start(child, everything, child.leaves / root.leaves)
            at = 0
            try:
                while at < len(self._tasks):  # a task appends others before it ends
                    self._tasks[at].result()
                    at += 1
            except TimeoutError as late:
                raise LimitReached(TIME_LIMIT) from late
            finally:
                self._stopped.set()
        self._delta.finish()

    def _start(self, node: RefinerNode, pairs: ClusterPairs, share: float) -> None:
        with self._lock:
            self._tasks.append(self._pool.submit(self._task, node, pairs, share))

    def _task(self, node: RefinerNode, pairs: ClusterPairs, share: float) -> None:
        """One thread's part. Where it fails, the others end soon."""
        try:
            self._visit(node, pairs, share)
        except BaseException:
            self._stopped.set()
            raise

    def _visit(self, node: RefinerNode, pairs: ClusterPairs, share: float) -> None:
        """Refine cluster pairs by a node and go on below it. `share`: of the whole work, for progress."""
        if self._stopped.is_set():
            return
        self._in_time()
        refiner = node.refiner
        assert refiner is not None
        if refiner.kind == "filter":
            self._count("filters", 1)
            self._reached(node, restrict(pairs, self._passing(refiner.comparisons[0]), None), share)
        elif refiner.kind == "equality":
            steps = [refiner.comparisons[0]]
            while len(node.children) == 1 and (following := node.children[0].refiner).kind == "equality":  # type: ignore[union-attr]
                steps.append(following.comparisons[0])  # type: ignore[union-attr]
                node = node.children[0]
            self._count("equalities", len(steps))
            equalities = [(c.left, c.right) for c in steps]
            self._reached(node, agreeing(self._work, pairs, equalities, self._keep_nulls), share)
        else:
            self._join(node, pairs, share)

    def _reached(self, node: RefinerNode, pairs: ClusterPairs, share: float) -> None:
        """Cluster pairs satisfy all refiners down to a node."""
        some = pairs.clusters > 0 and pairs.pairs > 0
        if some and (not node.children or self._worth_comparing(pairs, node.row_seconds)):
            self._delta.add_clusters(pairs)
            self._count("compared_whole", node.leaves)
            some = False
        if not some:
            self._finished(share)
            return
        for child in node.children:
            part = share * child.leaves / node.leaves
            if child.leaves >= LEAVES_OF_TASK:
                self._start(child, pairs, part)
            else:
                self._visit(child, pairs, part)

    def _worth_comparing(self, pairs: ClusterPairs, row_seconds: float) -> bool:
        """Whether comparing all pairs costs less than refiners that take so long a row."""
        rows = len(pairs.left) + len(pairs.right)
        compared = pairs.pairs / 2 if pairs.reflexive else pairs.pairs
        return rows * COMPARED_ROW_SECONDS + compared * COMPARED_PAIR_SECONDS <= rows * row_seconds

    def _join(self, node: RefinerNode, pairs: ClusterPairs, share: float) -> None:
        """Refine by a non-equality, or by one or two inequalities: by listing pairs, or into levels where many are."""
        assert node.refiner is not None
        comparisons = node.refiner.comparisons
        pairs = restrict(pairs, self._both(c.left for c in comparisons), self._both(c.right for c in comparisons))
        self._count("joins", 1)
        if len(pairs.left) and len(pairs.right):
            joined = self._joined(pairs, comparisons)
            partners = len(joined.find(len(pairs.left)))
            if partners:
                counts = np.zeros(self._work.rows, dtype=np.int64)
                most = LISTED_PAIRS_PER_ROW * (len(pairs.left) + len(pairs.right))
                # where most rows have a partner, there are many pairs: no need to count them
                if (len(comparisons) == 2 and 2 * partners > len(pairs.left)) or joined.count(counts, 1) > most:
                    del joined, counts
                    self._through(node, pairs, comparisons, share)
                    return
                for t, u in self._listed(pairs, joined, counts):
                    self._below(node, t, u)
        self._finished(share)

    def _through(
        self, node: RefinerNode, pairs: ClusterPairs, comparisons: tuple[Comparison, ...], share: float
    ) -> None:
        """Refine cluster pairs by comparisons into cluster pairs and go on below a node."""
        if not comparisons:
            self._reached(node, pairs, share)
        elif self._worth_comparing(pairs, node.row_seconds + len(comparisons) * STEP_SECONDS["inequality"]):
            self._delta.add_clusters(pairs)
            self._count("compared_whole", node.leaves)
            self._finished(share)
        else:
            left = share
            for level in refine_by_order(pairs, self._work.codes, comparisons[0]):
                left /= 2
                if level.clusters:
                    self._through(node, level, comparisons[1:], left)
                else:
                    self._finished(left)
            self._finished(left)

    def _below(self, node: RefinerNode, t: Rows, u: Rows) -> None:
        """Listed pairs satisfy all refiners down to a node."""
        if not node.children:
            self._delta.add(t, u)
            return
        for child in node.children:
            assert child.refiner is not None
            kept = self._satisfy(child.refiner, t, u)
            self._count("tests", 1)
            if kept.any():
                self._below(child, t[kept], u[kept])

    def _satisfy(self, refiner: Refiner, t: Rows, u: Rows) -> Flags:
        """Which of the pairs satisfy a refiner."""
        kept = np.ones(len(t), dtype=np.bool_)
        codes = self._work.codes
        for c in refiner.comparisons:
            left, right = codes[c.left][t], codes[c.right][t if refiner.kind == "filter" else u]
            kept &= satisfied(left, right, c.outcomes)
            if not self._keep_nulls:
                kept &= (left != NULL_CODE) & (right != NULL_CODE)
        return kept

    def _joined(self, pairs: ClusterPairs, comparisons: tuple[Comparison, ...]) -> PairJoin:
        work = self._work
        algorithm: Algorithm = "iejoin" if len(comparisons) == 2 else "hsm"
        return join(
            pairs, work.codes, comparisons, algorithm, device=work.device, threads=work.threads, deadline=work.deadline
        )

    def _listed(self, pairs: ClusterPairs, joined: PairJoin, counts: NDArray[np.int64]) -> Iterator[tuple[Rows, Rows]]:
        """The pairs of different rows that a join found, in portions. `counts`: partners of each left row."""
        rows = pairs.left[counts[pairs.left] > 0]
        ends = np.cumsum(counts[rows])
        at = 0
        while at < len(rows):
            self._in_time()
            before = int(ends[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(ends, before + CHUNK_PAIRS, side="right")))
            offsets, partners = joined.emit(rows[at:stop])
            lefts = np.repeat(rows[at:stop], np.diff(offsets))
            kept = lefts != partners
            yield lefts[kept], partners[kept]
            at = stop

    def _both(self, columns: Iterator[int]) -> Flags | None:
        """Rows without a null in these columns; None where all are."""
        passing: Flags | None = None
        for column in columns:
            present = self._present(column)
            if present is not None:
                passing = present if passing is None else passing & present
        return passing

    def _present(self, column: int) -> Flags | None:
        if self._keep_nulls:
            return None
        if column not in self._presence:
            present = self._work.codes[column] != NULL_CODE
            self._presence[column] = None if present.all() else present
        return self._presence[column]

    def _passing(self, c: Comparison) -> Flags:
        """Rows whose own two columns satisfy a comparison."""
        codes = self._work.codes
        passing = satisfied(codes[c.left], codes[c.right], c.outcomes)
        present = self._both(iter((c.left, c.right)))
        return passing if present is None else passing & present

    def _in_time(self) -> None:
        if self._work.over():
            raise LimitReached(TIME_LIMIT)

    def _count(self, what: str, number: int) -> None:
        with self._lock:
            self.applied[what] += number

    def _finished(self, share: float) -> None:
        with self._lock:
            self._done += share
            if self._progress is not None:
                self._progress(min(1.0, self._done))
