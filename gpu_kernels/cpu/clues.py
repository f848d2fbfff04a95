"""CPU twin: distinct clues of chosen pairs of rows.

Rows are stored row by row, so gathering a group takes one cache miss a row. Within a pair of blocks one row t is
compared with 256 lanes of rows u. Each outcome is a sum of weighted *terms* `u < threshold` and `u == threshold` over
the codes themselves, without ranks or look-ups, and the outcomes of all comparisons add up to a *key*. A key matters
only when it is new, so most pairs end with one look at a byte that is already set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import cluster_pairs, new_clues, weighted_pairs
from tuplewise.gpu_kernels.cpu.cluster_pairs import SMALL_ROWS, WORD, Rows
from tuplewise.gpu_kernels.cpu.seen_keys import ALL_BITS, LANES, PADDING, RECENT_KEYS, Lanes, Log
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.words import (
    ACROSS,
    COMPARISONS_PER_WORD,
    WITHIN_T,
    ClueLayout,
    clue_words,
    merge_clues,
    outcomes,
    outcomes_within,
)

KEY_BITS = 32  # bits of outcomes in a word of a key
DIRECT_BITS = 26  # longest key that indexes a table of bytes (64 MiB at most); longer ones are hashed
MOST_ATTRIBUTES = 20  # with a byte for each of their difference sets (1 MiB at most)
TASK_PAIRS = 1 << 20  # pairs of rows in a task, at least

Keys = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms that turn outcomes into keys: key word += weight * [u == threshold], or weight * (2 [u < threshold] + [u ==
    threshold]) for an order.

    Attributes
    ----------
    order, equal : int64 (terms, 6)
        Column of t that gives the threshold; column of u; weight; whether a null of t makes the term 0; whether the
        threshold is null itself (the term tests u for null); word of the key. The last term has weight 0.
    unknown : int64 (comparisons that may be unknown, 6)
        Same columns; the weight is added where the column of t has a null.
    word, shift, width : int64 (comparisons,), place of each comparison's outcome in a key
    """

    order: NDArray[np.int64]
    equal: NDArray[np.int64]
    unknown: NDArray[np.int64]
    word: NDArray[np.int64]
    shift: NDArray[np.int64]
    width: NDArray[np.int64]

    @property
    def words(self) -> int:
        return int(self.word.max(initial=0)) + 1

    @property
    def bits(self) -> int:
        """Number of bits of a key of one word."""
        return int((self.shift + self.width).max(initial=0))


def make_terms(layout: ClueLayout, left: NDArray[np.int64], right: NDArray[np.int64], null: NDArray[np.bool_]) -> Terms:
    """Make the terms of a layout. `left`, `right`: columns of the table of rows; `null`: bool (columns,), columns with
    unknown nulls."""
    word, shift, width = (np.zeros(layout.comparisons, dtype=np.int64) for _ in range(3))
    order: list[tuple[int, ...]] = []
    equal: list[tuple[int, ...]] = []
    unknown: list[tuple[int, ...]] = []
    at, used = 0, 0
    for g in range(layout.comparisons):
        nullable = bool(null[left[g]] or null[right[g]])
        two = bool(layout.ordered[g]) or nullable or layout.scope[g] != ACROSS
        if used + 1 + two > KEY_BITS:
            at, used = at + 1, 0
        word[g], shift[g], width[g] = at, used, 1 + two
        step = 1 << used
        used += 1 + two
        if layout.scope[g] != ACROSS:
            continue
        a, b = int(left[g]), int(right[g])
        (order if layout.ordered[g] else equal).append((a, b, step, nullable, False, at))
        if nullable:  # a null of u is below all values, so it has added 2 so far
            equal.append((a, b, step if layout.ordered[g] else 3 * step, True, True, at))
            unknown.append((a, b, 3 * step, True, False, at))
    return Terms(
        _with_padding(order), _with_padding(equal), np.array(unknown, dtype=np.int64).reshape(-1, 6), word, shift, width
    )


def _with_padding(terms: list[tuple[int, ...]]) -> NDArray[np.int64]:
    """Sort terms by word, and append one of weight 0."""
    return np.array([*sorted(terms, key=lambda term: term[WORD]), (0,) * 6], dtype=np.int64)


class ComparableRows:
    """Rows of a table laid out for comparing, and the keys seen so far.

    `telling`: see `clues.lay_out`.
    """

    def __init__(self, codes: NDArray[np.int32], layout: ClueLayout, nullable: bool, telling: bool = False) -> None:
        self._layout = layout
        used = np.unique(np.concatenate([layout.left, layout.right])) if layout.comparisons else np.zeros(1, np.int32)
        table = np.ascontiguousarray(codes[used].T) if len(codes) else np.zeros((codes.shape[1], 1), np.int32)
        null = np.any(codes[used] == -1, axis=1) if nullable and len(codes) else np.zeros(len(used), np.bool_)
        terms = self._terms = make_terms(
            layout, np.searchsorted(used, layout.left), np.searchsorted(used, layout.right), null
        )
        self._rows = Rows(table, self._row_keys(codes, nullable), terms.order, terms.equal, terms.unknown)
        direct = terms.words == 1 and terms.bits <= DIRECT_BITS and not telling
        self._told_words = (1 + layout.comparisons) * terms.words if telling else 0
        self._idle: list[_Thread] = []  # what threads were told is kept from call to call
        self._seen = np.zeros((1 << terms.bits) + 1 if direct else 0, dtype=np.uint8)
        self._seen[-1:] = 1  # for lanes that don't count
        self._taken = np.zeros(-(-len(self._seen) // 8), dtype=np.uint8)
        self._logging = self._seen  # what says that a key needn't be logged; with `telling` by difference sets
        if telling:
            few = layout.comparisons <= MOST_ATTRIBUTES
            self._logging = np.zeros(1 << layout.comparisons if few else 0, dtype=np.uint8)
        self._wide_words = -(-terms.words // 2)
        self._met: list[Any] = [np.zeros((1 << 12, self._wide_words), np.uint64), np.zeros(1 << 12, np.int64), 0]
        self._taking = threading.Lock()  # calls may run at the same time
        self._places = np.stack([
            terms.word // 2, terms.shift + 32 * (1 - terms.word % 2), (1 << terms.width) - 1
        ], axis=1)  # fmt: skip
        self._flips = layout.ordered & (layout.scope == ACROSS)

    def within(
        self, pairs: ClusterPairs, control: Control
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], bool]:
        """Clues that no earlier call returned, uint64 (new, words), a pair of rows with each, int32 (new, 2), and
        whether all pairs were compared."""
        order, costs, jobs = _jobs(pairs)
        states: list[_Thread] = []

        def make_worker() -> Callable[[int], None]:
            state = self._thread()
            states.append(state)

            def work(task: int) -> None:
                cluster, first, last = jobs[task]
                if cluster < 0:
                    state.log = cluster_pairs.compare_small(
                        self._rows, pairs.left, pairs.left_offsets, order, first, last, state.lanes, self._logging,
                        state.log,
                    )  # fmt: skip
                else:
                    state.log = cluster_pairs.compare(
                        self._rows, pairs.left, pairs.left_offsets, pairs.right, pairs.right_offsets, pairs.reflexive,
                        cluster, first, last, state.lanes, self._logging, state.log,
                    )  # fmt: skip

            return work

        complete = run_tasks(costs, make_worker, control)
        clues, rows = self._collect(states)
        if self._told_words:
            for state in states:
                state.log = state.log._replace(logged=0)
            self._idle.extend(states)
        return clues, rows, complete

    def _thread(self) -> _Thread:
        """Working memory of one thread, of an earlier call where there is some."""
        with self._taking:
            if self._idle:
                return self._idle.pop()
        return _Thread(self._rows.table.shape[1], self._terms.words, self._wide_words, self._told_words)

    def of_pairs(
        self, t: NDArray[np.int32], u: NDArray[np.int32], counting: bool
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
        """New clues of these pairs, in both orders, with their pairs of rows. With `counting`: all distinct clues, of
        the given order only, and the number of times that each occurs."""
        keys = np.zeros((self._terms.words, len(t)), dtype=np.uint32)
        cluster_pairs.keys_of_pairs(self._rows, t, u, keys)
        wide = _widened(keys.T)
        if not counting:
            return (*self._new(wide, np.stack([t, u], axis=1)), np.zeros(0, dtype=np.int64))
        distinct, counts = merge_clues(wide, np.ones(len(wide), dtype=np.int64))
        return self._decoded(distinct), np.zeros((0, 2), dtype=np.int32), counts

    def of_weighted_rows(
        self, weights: NDArray[np.int64], control: Control
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], bool]:
        """Distinct clues of all unordered pairs of rows where row i stands for weights[i] equal ones, the number of
        pairs that leave each, int64 (clues,), and whether all pairs were compared."""
        blocks = -(-len(weights) // LANES)
        tables: list[list[Any]] = []

        def make_worker() -> Callable[[int], None]:
            lanes = _new_lanes(self._rows.table.shape[1], self._terms.words)
            table: list[Any] = [np.zeros((1 << 12, self._wide_words), np.uint64), np.zeros(1 << 12, np.int64), 0]
            tables.append(table)

            def work(block: int) -> None:
                table[:] = weighted_pairs.count_blocks(self._rows, weights, block, block + 1, lanes, *table)

            return work

        complete = run_tasks([float(block + 1) for block in range(blocks)], make_worker, control)
        several = np.flatnonzero(weights > 1).astype(np.int32)  # pairs of equal rows
        own = np.zeros((self._terms.words, len(several)), dtype=np.uint32)
        cluster_pairs.keys_of_pairs(self._rows, several, several, own)
        keys = [_widened(own.T), *(found[counts > 0] for found, counts, _ in tables)]
        pairs = [weights[several] * (weights[several] - 1) // 2, *(counts[counts > 0] for _, counts, _ in tables)]
        distinct, totals = merge_clues(np.concatenate(keys), np.concatenate(pairs))
        return self._decoded(distinct), totals, complete

    def _collect(self, states: list[_Thread]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Clues, with their mirrors, of the logged keys that no earlier call returned."""
        logs = [state.log for state in states]
        keys = np.concatenate([np.zeros((0, self._wide_words), np.uint64), *(log.keys[: log.logged] for log in logs)])
        rows = np.concatenate([np.zeros((0, 2), np.int32), *(log.rows[: log.logged] for log in logs)])
        return self._new(keys, rows)

    def _new(
        self, keys: NDArray[np.uint64], rows: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Same for any keys, uint64 (keys, words), with two key words in one, and their pairs of rows."""
        clues = np.empty((2 * len(keys), clue_words(self._layout.comparisons)), dtype=np.uint64)
        clue_rows = np.empty((2 * len(keys), 2), dtype=np.int32)
        with self._taking:
            *self._met, new = new_clues.take_new(
                self._seen, self._taken, *self._met, keys, rows, self._places, self._layout.mirror, self._flips,
                clues, clue_rows,
            )  # fmt: skip
        return clues[:new].copy(), clue_rows[:new].copy()

    def _decoded(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Clue words, uint64 (keys, words), of keys with two key words in one."""
        clues = np.zeros((len(keys), clue_words(self._layout.comparisons)), dtype=np.uint64)
        for g, (word, shift, bits) in enumerate(self._places.tolist()):
            outcome = (keys[:, word] >> np.uint64(shift)) & np.uint64(bits)
            clues[:, g // COMPARISONS_PER_WORD] |= outcome << np.uint64(2 * (g % COMPARISONS_PER_WORD))
        return clues

    def _row_keys(self, codes: NDArray[np.int32], nullable: bool) -> NDArray[np.uint32]:
        """Contribution of the comparisons within one row to keys: uint32 (2, rows, words), as t and as u.

        Where there are no such comparisons, the array has no rows.
        """
        layout, terms = self._layout, self._terms
        own = np.flatnonzero(layout.scope != ACROSS)
        keys = np.zeros((2, codes.shape[1] if len(own) else 0, terms.words), dtype=np.uint32)
        for g in own:
            outcome = outcomes_within(codes, layout.left[g], layout.right[g], bool(layout.ordered[g]), nullable)
            role = 0 if layout.scope[g] == WITHIN_T else 1
            keys[role, :, terms.word[g]] |= outcome.astype(np.uint32) << np.uint32(terms.shift[g])
        return keys


def _new_lanes(columns: int, words: int) -> Lanes:
    return Lanes(
        codes=np.zeros((columns, 2 * LANES + PADDING), dtype=np.int32),
        keys=np.zeros((words, LANES), dtype=np.uint32),
        valid=np.zeros(LANES, dtype=np.uint32),
        rows=np.zeros(2 * LANES, dtype=np.int32),
        hashes=np.zeros(LANES, dtype=np.uint32),
    )


class _Thread:
    """Working memory of one thread, and the keys that it found."""

    def __init__(self, columns: int, words: int, wide_words: int, told_words: int) -> None:
        self.lanes = _new_lanes(columns, words)
        self.log = Log(
            keys=np.zeros((1 << 12, wide_words), dtype=np.uint64),
            rows=np.zeros((1 << 12, 2), dtype=np.int32),
            logged=0,
            seen=np.zeros((1 << 12, 1 + words + (told_words > 0)), dtype=np.uint32),
            used=0,
            told=np.zeros((1 << 11 if told_words else 0, told_words), dtype=np.uint32),
            recent=np.full((RECENT_KEYS if told_words else 0, words), ALL_BITS),  # no key: outcomes are below 3
        )


def _jobs(pairs: ClusterPairs) -> tuple[NDArray[np.int64], list[float], list[tuple[int, int, int]]]:
    """Small clusters in order of size; then costs and jobs, each (-1, first and last small cluster) or (cluster, first
    and last block of its right side)."""
    left, right = np.diff(pairs.left_offsets), np.diff(pairs.right_offsets)
    few = (right <= SMALL_ROWS) if pairs.reflexive else np.zeros(len(right), dtype=np.bool_)
    order = np.flatnonzero(few & (right > 1))
    order = order[np.argsort(right[order].astype(np.uint16), kind="stable")]
    costs: list[float] = []
    jobs: list[tuple[int, int, int]] = []
    for cluster in np.flatnonzero(~few).tolist():
        rows, blocks = int(right[cluster]), -(-int(right[cluster]) // LANES)
        together = max(1, TASK_PAIRS // (LANES * int(left[cluster]) + 1))
        for block in range(0, blocks, together):
            last = min(block + together, blocks)
            jobs.append((cluster, block, last))
            before = (block + last) / 2 * LANES if pairs.reflexive else float(left[cluster])
            costs.append(before * min(rows, (last - block) * LANES))
    ends = np.concatenate([[0], np.cumsum(right[order] * right[order] + 8 * right[order])])
    first = 0
    while first < len(order):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + TASK_PAIRS)))
        last = min(last, len(order))
        jobs.append((-1, first, last))
        costs.append(float(ends[last] - ends[first]))
        first = last
    return order, costs, jobs


def _widened(keys: Keys) -> NDArray[np.uint64]:
    """Join two key words into one: uint64 (keys, ceil(words / 2)), the first in the upper half."""
    count, words = keys.shape
    wide = np.zeros((count, -(-words // 2)), dtype=np.uint64)
    for w in range(words):
        wide[:, w // 2] |= keys[:, w].astype(np.uint64) << np.uint64(32 * (1 - w % 2))
    return wide


def encode(clues: NDArray[np.uint64], terms: Terms) -> NDArray[np.uint64]:
    """Keys of clues, two key words in one: uint64 (clues, words)."""
    keys = np.zeros((len(clues), terms.words), dtype=np.uint32)
    for g in range(len(terms.word)):
        keys[:, terms.word[g]] |= outcomes(clues, g).astype(np.uint32) << np.uint32(terms.shift[g])
    return _widened(keys)
