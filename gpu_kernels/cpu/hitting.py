"""Enumeration of minimal hitting sets on all cores of the CPU, exact and weighted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control, Watch
from tuplewise.gpu_kernels.cpu.hitting_search import Node, child_node, search_node
from tuplewise.gpu_kernels.cpu.hitting_sets import NOT_MINIMAL, OK, branches, smallest_edge
from tuplewise.gpu_kernels.cpu.hitting_weighted import (
    WeightedNode,
    budgets_of,
    pick_weighted,
    restrict_weighted,
    search_weighted,
    weighted_child,
)
from tuplewise.gpu_kernels.hitting_types import Bound, Wanted
from tuplewise.gpu_kernels.words import as_masks

SPLIT_LEVELS = 2  # top levels of the search tree whose nodes become tasks; one
FEW_GROUPS = 5  # where sets are of so few groups: splitting takes longer than searching a small subtree
WAIT_SECONDS = 0.02  # time between two looks at the deadline by the waiting thread
FIRST_ROOM = 1024  # initial room of a search, in sets

Mask = NDArray[np.uint64]
Found = tuple[Mask, NDArray[np.int64]]  # sets (N, words), unhit weight (N,)


@dataclass(frozen=True, eq=False)
class _Child:
    """Result of a branch: a status, the node where the status is OK, and the unhit weight where the set is finished."""

    status: int
    node: Any
    unhit: int | None


class _Exact:
    """Steps of the exact search, for sets that hit every edge."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def root(self, masks: Mask, weights: NDArray[np.int64], offsets: NDArray[np.int64], candidates: Mask) -> Node:
        return Node(masks, offsets, np.zeros(0, np.bool_), np.zeros_like(candidates), candidates)

    def edge(self, node: Node) -> int:
        """Edge to branch on."""
        return int(smallest_edge(node.masks, node.offsets[1]))

    def left_unhit(self, node: Node, open_: Mask) -> _Child:
        """Child that leaves the edge unhit; the exact search has none."""
        return _Child(NOT_MINIMAL, None, None)

    def child(self, node: Node, open_: Mask, vertex: int, partner: int) -> _Child:
        status, child = child_node(node, open_, vertex, partner, self._wanted)
        return _Child(int(status), child, 0 if status == OK and child.offsets[1] == 0 else None)

    def search(self, node: Node, symmetric: bool, stop: NDArray[np.bool_], told: NDArray[np.int64]) -> Found:
        room = np.empty((FIRST_ROOM, len(node.chosen)), dtype=np.uint64)
        found, count = search_node(node, symmetric, self._wanted, room, 0, stop, told)
        return found[:count].copy(), np.zeros(count, dtype=np.int64)


class _Weighted:
    """Steps of the weighted search, for sets that may leave edges of some weight unhit."""

    def __init__(self, wanted: Wanted, bound: Bound) -> None:
        self._wanted, self._bound = wanted, bound

    def root(
        self, masks: Mask, weights: NDArray[np.int64], offsets: NDArray[np.int64], candidates: Mask
    ) -> WeightedNode:
        nothing = np.zeros(0, np.int64)
        return WeightedNode(masks, weights, offsets, 0, nothing, nothing, np.zeros_like(candidates), candidates)

    def edge(self, node: WeightedNode) -> int:
        spare = int(budgets_of(node.path, self._wanted.group, self._bound)[0]) - node.lost
        return int(pick_weighted(node.masks, node.weights, node.offsets[1], spare))

    def left_unhit(self, node: WeightedNode, open_: Mask) -> _Child:
        budgets = budgets_of(node.path, self._wanted.group, self._bound)
        status, masks, weights, offsets, lost, kept, _ = restrict_weighted(node, budgets, -1, open_)
        child = WeightedNode(masks, weights, offsets, lost, kept, node.path, node.chosen, open_)
        return _Child(int(status), child, None)

    def child(self, node: WeightedNode, open_: Mask, vertex: int, partner: int) -> _Child:
        status, child, unhit, most = weighted_child(node, open_, vertex, partner, self._wanted, self._bound)
        return _Child(int(status), child, int(unhit) if status == OK and unhit <= most else None)

    def search(
        self, node: WeightedNode, symmetric: bool, stop: NDArray[np.bool_], told: NDArray[np.int64]
    ) -> Found:
        room, unhit = np.empty((FIRST_ROOM, len(node.chosen)), dtype=np.uint64), np.empty(FIRST_ROOM, dtype=np.int64)
        found, unhit, count = search_weighted(node, symmetric, self._wanted, self._bound, room, unhit, 0, stop, told)
        return found[:count].copy(), unhit[:count].copy()


@dataclass(frozen=True, eq=False)
class _Task:
    """Node to search below, its level, and its share of the whole search."""

    node: Any
    symmetric: bool
    level: int
    share: float


def run(
    masks: Mask, weights: NDArray[np.int64], wanted: Wanted, bound: Bound | None, control: Control,
    watch: Watch | None = None,
) -> tuple[Mask, NDArray[np.int64], bool]:
    """Find all minimal sets: sets (N, words), unhit weight (N,), complete.

    `masks`: uint64 (words, edges), none empty; `weights`: int64 (edges,); `bound`: None for sets that hit every edge;
    `watch`: see `hitting.minimal_hitting_sets`.

    Notes
    -----
    Exact: MMCS (Murakami, Uno, "Efficient algorithms for dualizing large-scale hypergraphs", Discrete Applied
    Mathematics 170, 2014): branch on the uncovered edge with the fewest vertices, keep each chosen vertex critical.
    Departures: in the first levels edges are restricted to the vertices that may still be added, and equal ones and
    supersets are dropped; below, uncovered edges are vertical bitmaps; of a vertex's critical edges only one is known,
    and the next one is sought when it is hit; the smallest edge is sought among a few; vertices with a critical edge
    that nothing can hit need no test; symmetric nodes branch on orbits of the exchange of t and u, which halves the
    search. Weighted: the branch that leaves an edge unhit follows ADCEnum (Livshits, Heidari, Ilyas, Kimelfeld,
    "Approximate Denial Constraints", PVLDB 13(10), 2020); equal restricted edges are merged.
    Cost: linear in the masks of each node. Memory: the nodes on the path, and the sets found.
    """
    steps = _Exact(wanted) if bound is None else _Weighted(wanted, bound)
    pool = _Pool(steps, wanted, control, watch)
    candidates = as_masks(np.ones((1, wanted.atoms), dtype=np.bool_))[0]
    root = steps.root(masks, weights, np.array([0, masks.shape[1]], dtype=np.int64), candidates)
    complete = pool.run(_Task(root, wanted.symmetric, 0, 1.0))
    sets = np.concatenate(pool.sets) if pool.sets else np.empty((0, len(masks)), dtype=np.uint64)
    unhit = np.concatenate(pool.unhit) if pool.unhit else np.empty(0, dtype=np.int64)
    order = np.lexsort(sets.T[::-1]) if len(sets) else np.empty(0, dtype=np.int64)
    return sets[order], unhit[order], complete


class _Pool:
    """Pool of threads that take nodes from a stack; nodes of the top levels are split into their children."""

    def __init__(self, steps: _Exact | _Weighted, wanted: Wanted, control: Control, watch: Watch | None) -> None:
        self.steps, self.wanted, self.control, self.watch = steps, wanted, control, watch
        self.levels = SPLIT_LEVELS if wanted.max_groups > FEW_GROUPS else min(1, SPLIT_LEVELS)
        self.stack: list[_Task] = []
        self.busy = 0
        self.done = 0.0
        self.ready = threading.Condition()
        self.stop = np.zeros(1, dtype=np.bool_)
        self.sets: list[NDArray[np.uint64]] = []
        self.unhit: list[NDArray[np.int64]] = []
        self.kept = 0  # number of sets in them
        self.told: list[NDArray[np.int64]] = []  # of each thread, how many its running search has found
        self.failure: BaseException | None = None

    def run(self, root: _Task) -> bool:
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
                if self.control.over() or (self.watch is not None and self.watch(self._found(), min(1.0, self.done))):
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

    def _found(self) -> int:
        """Number of sets found so far."""
        return self.kept + sum(int(told[0]) for told in self.told)

    def _work(self) -> None:
        told = np.zeros(1, dtype=np.int64)
        self.told.append(told)
        try:
            while (task := self._take()) is not None:
                children = list(self._split(task)) if task.level < self.levels else []
                if task.level >= self.levels:
                    found = self.steps.search(task.node, task.symmetric, self.stop, told)
                    told[0] = 0
                    self._keep(*found)
                with self.ready:
                    self.stack.extend(reversed(children))
                    self.busy -= 1
                    self.done += 0.0 if children else task.share
                    self.ready.notify_all()
        except BaseException as failure:
            self.failure = failure
            self._halt()

    def _take(self) -> _Task | None:
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
                self.kept += len(sets)

    def _split(self, task: _Task) -> Iterator[_Task]:
        """Split a node into its children, branching as the compiled search does. Finished sets are kept."""
        node, level = task.node, task.level + 1
        first, second = np.zeros(self.wanted.atoms, dtype=np.int64), np.zeros(self.wanted.atoms, dtype=np.int64)
        edge = node.masks[:, self.steps.edge(node)].copy()
        number = branches(edge, self.wanted.mirror, task.symmetric, first, second)
        open_ = node.candidates.copy()
        for vertex in (*first[:number].tolist(), *second[:number].tolist()):
            if vertex >= 0:
                open_[vertex // 64] &= ~(np.uint64(1) << np.uint64(vertex % 64))
        share = task.share / max(1, number)
        rest = self.steps.left_unhit(node, open_.copy())
        if rest.status == OK:
            yield _Task(rest.node, task.symmetric, level, share)
        for v, partner in zip(first[:number].tolist(), second[:number].tolist(), strict=True):
            if self.stop[0]:
                return
            for other in (-1, partner)[: 1 + (partner >= 0)]:
                child = self.steps.child(node, open_, v, other)
                if child.unhit is not None:
                    self._keep(child.node.chosen[None, :].copy(), np.array([child.unhit], dtype=np.int64))
                elif child.status == OK:
                    yield _Task(child.node, task.symmetric and other == partner, level, share)
                if child.status == NOT_MINIMAL and other < 0:
                    break
            else:
                for vertex in (v, partner):
                    if vertex >= 0:
                        open_[vertex // 64] |= np.uint64(1) << np.uint64(vertex % 64)
