"""The table of a discovery whose rows are in this process: what `engine.loop` compares and samples.

Rows that are equal on all columns that count are collapsed into one; such a class leaves the clue of its own pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from time import perf_counter, process_time, thread_time
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import (
    Work,
    agreeing,
    collapse,
    neighbouring_clusters,
    pairs_of_rows,
    pieces,
    start,
)
from tuplewise.engine.loop import SAMPLED_PAIRS_A_ROW, Agreement, Clues, ComparedPairs
from tuplewise.engine.options import Nulls
from tuplewise.engine.run import SEARCHING, TIME_LIMIT, Run
from tuplewise.gpu_kernels.clues import NewClues, lay_out
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.compiled import kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.hashing import mix_word
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.words import ClueLayout

ESTIMATE_ROWS = 1 << 15  # rows that estimates of agreeing pairs come from
PAIRS_FOR_ALL_THREADS = 1 << 24  # pairs of rows that are compared on all threads
COMMON_PART = 8  # one part in so many of a sample tells which clues are common


class LocalTable:
    """Rows in this process.

    Parameters
    ----------
    codes : int32 (columns, rows)
    columns : those that count
    layout : what clues compare
    pairs_a_row : pairs of a sample, for each sampled row
    sampled_rows : rows that samples are drawn from, at most
    estimate_rows : rows that estimates of agreeing pairs come from, at most
    telling : whether clues may be left out that tell nothing new, see `clues.lay_out`
    """

    def __init__(
        self,
        codes: NDArray[np.int32],
        columns: Sequence[int],
        layout: ClueLayout,
        *,
        nulls: Nulls,
        device: Device,
        seed: int = 0,
        run: Run,
        pairs_a_row: int = SAMPLED_PAIRS_A_ROW,
        sampled_rows: int | None = None,
        estimate_rows: int = ESTIMATE_ROWS,
        telling: bool = False,
    ) -> None:
        self._layout, self._nulls, self._device, self._telling = layout, nulls, device, telling
        self._deadline, self._progress = run.deadline, run.stage(SEARCHING)
        self._keep_nulls = nulls == "value"
        self.pairs_a_row = pairs_a_row
        self._most_sampled, self._estimate_rows = sampled_rows, estimate_rows
        self._seed = seed
        self._threads: int | None = None  # all of them
        self._clock = process_time if device.kind == "cpu" else perf_counter
        started = self.clock()
        kept, doubled = collapse(codes, columns, device)
        # In random order, any run of rows of a group is a random sample of it.
        order = np.random.default_rng(seed).permutation(len(kept))
        self._take(codes, kept[order], doubled[order])
        self._collapsing_seconds = self.clock() - started

    def clock(self) -> float:
        """Seconds of all threads on the CPU, so that what runs in parallel costs what it does alone; else of time."""
        return self._clock()

    def _take(self, codes: NDArray[np.int32], rows: NDArray[np.int32], doubled: NDArray[np.bool_]) -> None:
        """Lay out these rows; `doubled`: whether each stands for others, too."""
        self.codes = np.take(codes, rows, axis=1)
        self._doubled = doubled
        self.rows = len(rows)
        self._work = Work(self.codes, self._device, deadline=self._deadline)
        self._comparable = lay_out(
            self.codes, self._layout, nulls=self._nulls, device=self._device, telling=self._telling
        )
        self._sample_codes = np.ascontiguousarray(self.codes[:, : self._estimate_rows])  # rows are in random order
        self._sample_codes_by_row = np.ascontiguousarray(self._sample_codes.T)

    def without(self, rows: NDArray[np.int32]) -> Self:
        kept = np.ones(self.rows, dtype=np.bool_)
        kept[rows] = False
        rest = copy(self)
        rest._collapsing_seconds = 0.0
        rest._take(self.codes, np.flatnonzero(kept).astype(np.int32), self._doubled[kept])
        return rest

    def equal_rows(self) -> Clues:
        doubled = np.flatnonzero(self._doubled).astype(np.int32)
        return self._noted(self._comparable.of_pairs(doubled, doubled)).clues

    def _noted(self, found: NewClues) -> NewClues:
        """New clues; subclasses may record them."""
        return found

    def sample(self) -> ComparedPairs:
        """All pairs inside random groups of rows: as many a row as Hydra draws, at a fraction of the cost.

        Pairs of one group share rows; for finding clues that is no loss.
        """
        rows = self._sampled_rows()
        groups = max(1, -(-len(rows) // self._group_rows))
        offsets = np.linspace(0, len(rows), groups + 1).astype(np.int64)
        own = self.equal_rows()
        compared = self._compare_sample(ClusterPairs(rows, offsets, rows, offsets), self._collapsing_seconds)
        return replace(compared, clues=np.concatenate([own, compared.clues]))

    def estimate_pairs(self, agreement: Agreement) -> float:
        if all(left == right for left, right in agreement):
            columns = np.array([left for left, _ in agreement], dtype=np.int64)
            return self._scale * float(count_agreeing(self._sample_codes_by_row, columns, self._keep_nulls))
        work = replace(self._work, codes=self._sample_codes)
        alike = agreeing(work, start(work), agreement, self._keep_nulls)
        return self._scale * pairs_of_rows(alike, work.rows)

    def sample_agreeing(self, agreement: Agreement) -> ComparedPairs:
        started = self.clock()
        alike = agreeing(self._work, all_rows(self._sampled_rows()), agreement, self._keep_nulls)
        pairs = pieces(alike, self._group_rows)
        return self._compare_sample(pairs, self.clock() - started)

    def compare_agreeing(self, agreement: Agreement) -> ComparedPairs:
        started = self.clock()
        pairs = agreeing(self._work, start(self._work), agreement, self._keep_nulls)
        return self._compare(pairs, self.clock() - started)

    def compare_each(self, agreements: Sequence[Agreement]) -> list[ComparedPairs]:
        """Several at a time, each on one thread: grouping rows and taking new clues use no more than one. Those of many
        pairs go first, one by one on all threads."""
        control = Control(deadline=self._deadline, progress=self._progress)
        alone = [self._device.kind != "cpu" or self.estimate_pairs(a) > PAIRS_FOR_ALL_THREADS for a in agreements]
        found = {i: self.compare_agreeing(agreements[i]) for i in np.flatnonzero(alone).tolist()}
        rest = np.flatnonzero(np.logical_not(alone)).tolist()
        table = copy(self)
        table._work, table._progress = replace(self._work, threads=1), None
        table._threads, table._clock = 1, thread_time

        def work(task: int) -> None:
            found[rest[task]] = table.compare_agreeing(agreements[rest[task]])

        if not run_tasks([1.0] * len(rest), lambda: work, control):
            raise LimitReached(TIME_LIMIT)
        return [found[i] for i in range(len(agreements))]

    def compare_rows(self, rows: NDArray[np.int32]) -> ComparedPairs:
        everything = np.arange(self.rows, dtype=np.int32)
        return self._compare(all_rows(np.sort(rows), everything), 0.0)

    def _compare_sample(self, pairs: ClusterPairs, grouping_seconds: float) -> ComparedPairs:
        """Compare a part first: clues that it doesn't bring are rare, and only their pairs of rows are told."""
        cut = pairs.clusters // COMMON_PART
        first = neighbouring_clusters(pairs, 0, cut)
        rest = neighbouring_clusters(pairs, cut, pairs.clusters)
        common = self._compare(first, grouping_seconds)
        rare = self._compare(rest, 0.0)
        clues = np.concatenate([common.clues, rare.clues])
        seconds = common.comparing_seconds + rare.comparing_seconds
        return ComparedPairs(clues, rare.rows, common.pairs + rare.pairs, grouping_seconds, seconds)

    def _compare(self, pairs: ClusterPairs, grouping_seconds: float) -> ComparedPairs:
        started = self.clock()
        found = self._comparable.within(pairs, deadline=self._deadline, progress=self._progress, threads=self._threads)
        self._noted(found)
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        seconds = self.clock() - started
        return ComparedPairs(found.clues, found.rows, found.ordered_pairs // 2, grouping_seconds, seconds)

    def _sampled_rows(self) -> NDArray[np.int32]:
        """The first ones: rows are in random order."""
        most = self.rows if self._most_sampled is None else min(self.rows, self._most_sampled)
        return np.arange(most, dtype=np.int32)

    @property
    def _group_rows(self) -> int:
        """Rows of a group whose pairs are a sample."""
        return 2 * self.pairs_a_row + 1

    @property
    def _scale(self) -> float:
        """Pairs of rows for each pair of drawn ones."""
        sampled = self._sample_codes.shape[1]
        return float(self.rows * (self.rows - 1) / max(1, sampled * (sampled - 1)))


@kernel("int32[:, ::1], int64[::1], boolean")
def count_agreeing(codes: NDArray[np.int32], columns: NDArray[np.int64], keep_nulls: bool) -> int:
    """Unordered pairs of rows that agree on some columns, of int32 (rows, columns): by a 64-bit hash of what rows hold
    there, so that two values may, very rarely, be taken for one."""
    slots = 16
    while slots < 2 * len(codes):
        slots *= 2
    keys = np.empty(slots, dtype=np.uint64)
    counts = np.zeros(slots, dtype=np.int64)
    pairs = 0
    for row in range(len(codes)):
        key = np.uint64(0)
        known = True
        for c in columns:
            known &= keep_nulls or codes[row, c] >= 0
            key = mix_word(key, np.uint64(codes[row, c] + 1))
        if not known:
            continue
        slot = np.int64(key & np.uint64(slots - 1))
        while counts[slot] and keys[slot] != key:
            slot = (slot + 1) & (slots - 1)
        keys[slot] = key
        pairs += counts[slot]
        counts[slot] += 1
    return pairs
