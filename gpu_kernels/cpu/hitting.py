"""CPU enumeration of minimal hitting sets, exact and weighted, on all cores."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import hitting_search, hitting_sets, hitting_weighted
from tuplewise.gpu_kernels.cpu.hitting_sets import NOT_MINIMAL, OK
from tuplewise.gpu_kernels.cpu.hitting_weighted import Bound

SPLIT_LEVELS = 2  # levels of the search tree whose nodes become tasks of their own
WAIT_SECONDS = 0.02  # how often the waiting thread looks at the deadline


@dataclass(frozen=True, eq=False)
class Problem:
    """What stays the same in all nodes. Arrays as in the front door; no `bound` for exact enumeration."""

    vertices: int
    mirror: NDArray[np.int64]
    group: NDArray[np.int64]
    group_masks: NDArray[np.uint64]
    exclusive: bool
    max_groups: int
    bound: Bound | None


@dataclass(frozen=True, eq=False)
class _Node:
    masks: NDArray[np.uint64]
    weights: NDArray[np.int64]
    offsets: NDArray[np.int64]
    safe: Any  # exact: bool a vertex; weighted: (lost, kept, path)
    chosen: NDArray[np.uint64]
    candidates: NDArray[np.uint64]
    symmetric: bool
    level: int
    share: float


def run(
    masks: NDArray[np.uint64], weights: NDArray[np.int64], symmetric: bool, problem: Problem, control: Control
) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
    """All minimal sets: sets (N, words), unhit weight (N,), complete.

    `masks`: uint64 (words, edges), none empty; `weights`: int64 (edges,).

    Notes
    -----
    Exact: MMCS (Murakami, Uno, "Efficient algorithms for dualizing large-scale hypergraphs", Discrete Applied
    Mathematics 170, 2014): branch on the uncovered edge with the fewest vertices, keep each chosen vertex critical.
    Departures: in the first levels edges are restricted to the vertices that may still be added, and equal ones and
    supersets are dropped; below, uncovered edges are vertical bitmaps; of a vertex's critical edges only one is known,
    the next being sought when it is hit; the smallest edge is sought among a few; vertices with a critical edge
    that nothing can hit need no test; symmetric nodes branch on orbits of the exchange of t and u, which halves the
    search. Weighted: the branch that leaves an edge unhit follows ADCEnum (Livshits, Heidari, Ilyas, Kimelfeld,
    "Approximate Denial Constraints", PVLDB 13(10), 2020); equal restricted edges are merged.
    Cost: linear in the masks of each node; memory: the nodes on the way down, and the sets found.
    """
    pool = _Pool(problem, control)
    words = masks.shape[0]
    candidates = np.zeros(words, dtype=np.uint64)
    for v in range(problem.vertices):
        candidates[v // 64] |= np.uint64(1) << np.uint64(v % 64)
    offsets = np.array([0, masks.shape[1]], dtype=np.int64)
    nothing = np.zeros(0, np.int64)
    safe = np.zeros(0, np.bool_) if problem.bound is None else (0, nothing, nothing)
    root = _Node(masks, weights, offsets, safe, np.zeros(words, np.uint64), candidates, symmetric, 0, 1.0)
    complete = pool.run(root)
    sets = np.concatenate(pool.sets) if pool.sets else np.empty((0, words), dtype=np.uint64)
    unhit = np.concatenate(pool.unhit) if pool.unhit else np.empty(0, dtype=np.int64)
    order = np.lexsort(sets.T[::-1]) if len(sets) else np.empty(0, dtype=np.int64)
    return sets[order], unhit[order], complete


class _Pool:
    """Threads that take nodes from a stack; nodes of the first levels are split into their children."""

    def __init__(self, problem: Problem, control: Control) -> None:
        self.problem = problem
        self.control = control
        self.stack: list[_Node] = []
        self.busy = 0
        self.done = 0.0
        self.ready = threading.Condition()
        self.stop = np.zeros(1, dtype=np.bool_)
        self.sets: list[NDArray[np.uint64]] = []
        self.unhit: list[NDArray[np.int64]] = []
        self.failure: BaseException | None = None

    def run(self, root: _Node) -> bool:
        self.stack.append(root)
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self.control.threads)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(WAIT_SECONDS)
                if not threads[0].is_alive():
                    for thread in threads:
                        thread.join(WAIT_SECONDS)
                if self.control.over():
                    self._halt()
                if self.control.progress is not None:
                    self.control.progress(min(1.0, self.done))
        except BaseException:
            self._halt()
            for thread in threads:
                thread.join()
            raise
        if self.failure is not None:
            raise self.failure
        return not self.stop[0]

    def _halt(self) -> None:
        self.stop[0] = True
        with self.ready:
            self.ready.notify_all()

    def _work(self) -> None:
        try:
            while (node := self._take()) is not None:
                children = self._split(node) if node.level < SPLIT_LEVELS else self._search(node)
                with self.ready:
                    self.stack.extend(reversed(children))
                    self.busy -= 1
                    self.done += 0.0 if children else node.share
                    self.ready.notify_all()
        except BaseException as failure:
            self.failure = failure
            self._halt()

    def _take(self) -> _Node | None:
        with self.ready:
            while not self.stack and self.busy and not self.stop[0]:
                self.ready.wait()
            if not self.stack or self.stop[0]:
                self.ready.notify_all()
                return None
            self.busy += 1
            return self.stack.pop()

    def _keep(self, sets: NDArray[np.uint64], unhit: NDArray[np.int64]) -> None:
        if len(sets):
            with self.ready:
                self.sets.append(sets)
                self.unhit.append(unhit)

    def _search(self, node: _Node) -> list[_Node]:
        p = self.problem
        found = np.empty((1024, len(node.chosen)), dtype=np.uint64)
        if p.bound is None:
            found, count = hitting_search.search_node(
                node.masks, node.offsets, node.safe, node.chosen, node.candidates, node.symmetric, p.vertices,
                p.mirror, p.group, p.group_masks, p.exclusive, p.max_groups, found, 0, self.stop,
            )  # fmt: skip
            unhit = np.zeros(count, dtype=np.int64)
        else:
            lost, kept, path = node.safe
            unhit = np.empty(1024, dtype=np.int64)
            found, unhit, count = hitting_weighted.search_weighted(
                node.masks, node.weights, node.offsets, lost, kept, p.bound, path, node.chosen, node.candidates,
                node.symmetric, p.vertices, p.mirror, p.group, p.group_masks, p.exclusive, p.max_groups, found, unhit,
                0, self.stop,
            )  # fmt: skip
        self._keep(found[:count].copy(), unhit[:count].copy())
        return []

    def _split(self, node: _Node) -> list[_Node]:
        """The children of a node; finished sets are kept. The same branching as in the compiled search."""
        p = self.problem
        first = np.zeros(p.vertices, dtype=np.int64)
        second = np.zeros(p.vertices, dtype=np.int64)
        if p.bound is None:
            edge = hitting_sets.smallest_edge(node.masks, node.offsets[1])
        else:
            lost, _, path = node.safe
            most = hitting_weighted.budgets_of(path, p.group, p.bound)[0]
            edge = hitting_weighted.pick_weighted(node.masks, node.weights, node.offsets[1], int(most) - lost)
        number = hitting_sets.branches(node.masks[:, edge].copy(), p.mirror, node.symmetric, first, second)
        open_ = node.candidates.copy()
        for v in [*first[:number], *second[:number]]:
            if v >= 0:
                open_[v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
        children: list[_Node] = []
        share = node.share / max(1, number)
        if p.bound is not None:
            child = self._left_unhit(node, open_.copy(), share)
            children += [child] if child is not None else []
        for k in range(number):
            v, partner = int(first[k]), int(second[k])
            status = self._branch(node, open_, v, -1, node.symmetric and partner < 0, share, children)
            if status == NOT_MINIMAL:
                continue
            if partner >= 0:
                self._branch(node, open_, v, partner, node.symmetric, share, children)
            for vertex in (v, partner):
                if vertex >= 0:
                    open_[vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
        return children

    def _branch(
        self, node: _Node, open_: NDArray[np.uint64], v: int, partner: int, symmetric: bool, share: float,
        children: list[_Node],
    ) -> int:  # fmt: skip
        p = self.problem
        if p.bound is None:
            status, masks, offsets, safe, chosen, candidates = hitting_search.child_node(
                node.masks, node.offsets, node.safe, node.chosen, open_, v, partner, p.group, p.group_masks,
                p.exclusive, p.max_groups,
            )  # fmt: skip
            weights, unhit, finished = node.weights, 0, status == OK and offsets[1] == 0
            state: Any = safe
        else:
            lost, kept, path = node.safe
            (
                status, masks, weights, offsets, lost, kept, path, chosen, candidates, weight, most,
            ) = hitting_weighted.weighted_child(
                node.masks, node.weights, node.offsets, lost, kept, p.bound, path, node.chosen, open_, v, partner,
                p.group, p.group_masks, p.exclusive, p.max_groups,
            )  # fmt: skip
            unhit = lost + weight
            finished = status == OK and unhit <= most
            state = (lost, kept, path)
        if finished:
            self._keep(chosen[None, :].copy(), np.array([unhit], dtype=np.int64))
        elif status == OK:
            children.append(_Node(masks, weights, offsets, state, chosen, candidates, symmetric, node.level + 1, share))
        return int(status)

    def _left_unhit(self, node: _Node, open_: NDArray[np.uint64], share: float) -> _Node | None:
        p = self.problem
        lost, kept, path = node.safe
        budgets = hitting_weighted.budgets_of(path, p.group, p.bound)
        status, masks, weights, offsets, lost, kept, _ = hitting_weighted.restrict_weighted(
            node.masks, node.weights, node.offsets, lost, kept, budgets, -1, open_
        )
        if status != OK:
            return None
        return _Node(
            masks, weights, offsets, (lost, kept, path), node.chosen, open_, node.symmetric, node.level + 1, share
        )
