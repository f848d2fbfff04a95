"""CUDA twin of the refinements: equality refinement, and the choice of the join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda import grouping
from tuplewise.gpu_kernels.cuda.bitmaps import BitmapJoin
from tuplewise.gpu_kernels.cuda.grouping import bits_for, extremes_of
from tuplewise.gpu_kernels.cuda.kd_tree import KdTreeJoin
from tuplewise.gpu_kernels.cuda.primitives import empty, launch, output, running_sums, to_host
from tuplewise.gpu_kernels.cuda.resident import Resident, Side, place_of_device, resident
from tuplewise.gpu_kernels.cuda.sorted_join import SortedJoin
from tuplewise.gpu_kernels.cuda.wavelet import WaveletJoin
from tuplewise.gpu_kernels.join_types import Comparison, PairJoin

JOINS: dict[str, Callable[..., PairJoin]] = {
    "hsm": SortedJoin,
    "iejoin": WaveletJoin,
    "kdtree": KdTreeJoin,
    "bhsm": BitmapJoin,
}


def make_join(
    pairs: ClusterPairs, codes: NDArray[np.int32], comparisons: list[Comparison], algorithm: str, control: Control
) -> PairJoin:
    """Make the join of one algorithm on the current device; see the front door."""
    if not comparisons:
        algorithm = "hsm"  # whole clusters need no bitmaps
    return JOINS[algorithm](pairs, codes, comparisons, control)


def refine_equal(
    pairs: ClusterPairs, codes: NDArray[np.int32], equalities: list[tuple[int, int]], control: Control
) -> ClusterPairs:
    """Refine cluster pairs by equalities on the current device; see the front door.

    Notes
    -----
    Cost: one sort a step, for as many columns as fit 64 bits beside cluster and place. Memory: 45 bytes a row on the
    device. Departures from the CPU twin, which change no answer: there are no tables indexed by code and no bit maps of
    partners, since a sort on the device costs less than they would save; both sides of a pair are sorted together, left
    rows before right rows, so that runs of equal keys are the new cluster pairs.

    Floor: 40 bytes a row and step (a key is written, sorted, which reads and writes it at least once, and split; the
    new row is written), so 8 microseconds for 1,000,000 rows at the 4.8e12 bytes a second of an H200. Recorded there,
    with the columns on the device: 4.8 ms for two columns. At this size the time goes to launches, waits of the host
    for sums and the copy of the answer, not to memory.
    """
    if not equalities:
        return pairs
    within = sorted_equalities(pairs, equalities)
    if not len(pairs.left) or not len(pairs.right):
        return _nothing(pairs.reflexive and all(reflexive for reflexive, _ in within))
    there = resident(pairs, codes)
    step = _Step(there, pairs.reflexive)
    for reflexive, columns in within:
        if not reflexive and step.right is None:
            step.part(step.left)
        while columns and step.clusters:
            columns = columns[step.refine(columns) :]
    return step.result()


def sorted_equalities(
    pairs: ClusterPairs, equalities: list[tuple[int, int]]
) -> list[tuple[bool, list[tuple[int, int]]]]:
    """Order of equalities: while both sides are one set, first those that keep it one, then the others."""
    if not pairs.reflexive:
        return [(False, equalities)]
    same = list(dict.fromkeys((left, right) for left, right in equalities if left == right))
    others = [(left, right) for left, right in equalities if left != right]
    return [step for step in ((True, same), (False, others)) if step[1]]


def _nothing(reflexive: bool) -> ClusterPairs:
    """Empty cluster pairs."""
    rows, offsets = np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    if reflexive:
        return ClusterPairs(rows, offsets, rows, offsets)
    return ClusterPairs(rows, offsets, rows.copy(), offsets.copy())


class _Step:
    """Members of cluster pairs on the device, left rows before right rows (from `split` on), while they are refined.

    While both sides are one set there are only left rows.
    """

    def __init__(self, there: Resident, reflexive: bool) -> None:
        self.there = there
        self.left: Side = there.left
        self.right: Side | None = None
        self.clusters = there.left.clusters
        self.members: Any = self.left.rows
        self.split: int = self.left.rows.shape[0]
        if not reflexive:
            self.part(there.right)

    def part(self, right: Side) -> None:
        """Separate the sides: from here on they are different sets, or are compared on different columns."""
        self.right = right
        self.members = _one_after_the_other(self.left.rows, right.rows)

    def refine(self, columns: list[tuple[int, int]]) -> int:
        """Refine by as many of the first columns as fit one key; returns how many."""
        n = self.members.shape[0]
        numbers = self.left.numbers
        if self.right is not None:
            numbers = _one_after_the_other(numbers, self.right.numbers)
        place_bits = bits_for(n)
        room = grouping.KEY_BITS - bits_for(self.clusters) - place_bits
        keys = output(grouping.begin_keys_kernel, n, np.uint64, numbers)
        taken = 0
        for left, right in columns:
            codes = self._codes(left, right)
            lowest, highest = extremes_of(codes)
            bits = bits_for(highest - lowest + 1)
            room -= bits
            if room < 0 and not taken:  # even this column alone is too wide
                order = grouping.two_pass_order(numbers, codes, lowest, bits, place_bits)
                self._keep_runs(order, output(grouping.flag_changes_kernel, n, np.int32, numbers, codes, order))
                return 1
            if room < 0:
                break
            launch(grouping.append_codes_kernel, n, codes, lowest, bits, keys)
            taken += 1
        self._keep_runs(*grouping.sorted_keys(keys, place_bits))
        return taken

    def _codes(self, left: int, right: int) -> Any:
        codes = empty(self.members.shape[0], np.int32)
        launch(grouping.gather_codes_kernel, self.split, self.there.column(left), self.members[: self.split],
               codes[: self.split])  # fmt: skip
        if self.right is not None:
            launch(grouping.gather_codes_kernel, codes.shape[0] - self.split, self.there.column(right),
                   self.members[self.split :], codes[self.split :])  # fmt: skip
        return codes

    def _keep_runs(self, order: Any, flags: Any) -> None:
        """Make cluster pairs of the runs of equal keys that have a pair of different rows."""
        n = self.members.shape[0]
        run_numbers, starts, runs = grouping.runs_of(flags)
        kept, left_sizes, right_sizes = (empty(runs, np.int64) for _ in range(3))
        launch(grouping.measure_runs_kernel, runs, starts, order, self.members, self.split, kept, left_sizes,
               right_sizes)  # fmt: skip
        kept_before, left_before, right_before = map(running_sums, (kept, left_sizes, right_sizes))
        totals = (int(to_host(sums[-1:])[0]) for sums in (kept_before, left_before, right_before))
        self.clusters, left_rows, right_rows = totals
        if not self.clusters:
            return
        rows = empty(left_rows + right_rows, np.int32)
        launch(grouping.scatter_runs_kernel, n, starts, order, self.members, run_numbers, kept, left_before,
               right_before, left_rows, rows)  # fmt: skip
        self.left = self._side(rows[:left_rows], kept_before, left_before, runs)
        if self.right is not None:
            self.right = self._side(rows[left_rows:], kept_before, right_before, runs)
        self.members, self.split = rows, left_rows

    def _side(self, rows: Any, kept_before: Any, before: Any, runs: int) -> Side:
        offsets = empty(self.clusters + 1, np.int64)
        launch(grouping.scatter_offsets_kernel, runs + 1, kept_before, before, offsets)
        return Side(rows, offsets, self.clusters)

    def result(self) -> ClusterPairs:
        """Cluster pairs, with their copies on the device."""
        if not self.clusters:
            return _nothing(self.right is None)
        left = (to_host(self.left.rows), to_host(self.left.offsets))
        right = left if self.right is None else (to_host(self.right.rows), to_host(self.right.offsets))
        there = Resident(self.there.codes, self.there.columns, self.left, self.right or self.left)
        return ClusterPairs(*left, *right, kept={place_of_device(): there})


def _one_after_the_other(left: Any, right: Any) -> Any:
    """Concatenate two int32 arrays."""
    both = empty(left.shape[0] + right.shape[0], np.int32)
    both[: left.shape[0]].copy_to_device(left)
    both[left.shape[0] :].copy_to_device(right)
    return both
