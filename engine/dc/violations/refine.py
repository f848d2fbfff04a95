"""The pipeline of one rule up to its join: which rows take part, and the cluster pairs that its equalities leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.violations.planner import Equality
from tuplewise.engine.dc.violations.program import Program, passing_rows
from tuplewise.engine.relation.relation import NULL_CODE
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.refine import ClusterPairs, all_rows, refine_equal, restrict


@dataclass(frozen=True, eq=False)
class Work:
    """What every step needs: the codes, int32 (columns, rows), and where kernels run.

    `taken` gets the algorithm of each join that is prepared, for the plan in results.
    """

    codes: NDArray[np.int32]
    device: Device
    threads: int | None = None
    deadline: float | None = None
    taken: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])


def start(work: Work, left: NDArray[np.int32] | None = None, right: NDArray[np.int32] | None = None) -> ClusterPairs:
    """One pair of sets: all rows with all rows, or the given ones (int32, ascending)."""
    everything = np.arange(work.rows, dtype=np.int32)
    if left is None and right is None:
        return all_rows(everything)
    return all_rows(everything if left is None else left, everything if right is None else right)


def without_unfit(work: Work, program: Program, pairs: ClusterPairs, kinds: str = "tests and nulls") -> ClusterPairs:
    """Without the rows that can't take part by themselves.

    `kinds`: "tests" of single rows, "nulls" in columns that are compared, or both.
    """
    sides = []
    for tests, needed in (
        (program.left_tests, program.left_needed),
        (program.right_tests, program.right_needed),
    ):
        sides.append((tests if "tests" in kinds else (), needed if "nulls" in kinds else ()))
    left = passing_rows(work.codes, *sides[0])
    right = left if sides[0] == sides[1] else passing_rows(work.codes, *sides[1])
    return restrict(pairs, left, right)


def agreeing(work: Work, pairs: ClusterPairs, equalities: Iterable[Equality], keep_nulls: bool) -> ClusterPairs:
    """Cluster pairs that agree on these columns, too. Rows with a null there are left out unless nulls are values."""
    equalities = list(equalities)
    if not equalities or not pairs.clusters:
        return pairs
    if not keep_nulls:
        left = _without_null(work.codes, {a for a, _ in equalities})
        same = {a for a, _ in equalities} == {b for _, b in equalities}
        right = left if same else _without_null(work.codes, {b for _, b in equalities})
        pairs = restrict(pairs, left, right)
    return refine_equal(pairs, work.codes, equalities, device=work.device, threads=work.threads)


def _without_null(codes: NDArray[np.int32], columns: set[int]) -> NDArray[np.bool_] | None:
    passing: NDArray[np.bool_] | None = None
    for column in sorted(columns):
        there = codes[column] != NULL_CODE
        if not there.all():
            passing = there if passing is None else passing & there
    return passing
