"""Front door of the refinements: pairs of tuple-id sets, refined predicate by predicate, then counted or listed.

A refinement keeps the pairs of rows in some pairs of sets (*cluster pairs*) that satisfy a predicate. Equalities give
new cluster pairs. Inequalities and non-equalities come last, as a *join* inside each cluster pair, which counts, finds
or lists pairs of rows without storing them.

Of several GPUs the first one does all the work: cluster pairs, orders and columns stay there between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.join_types import (
    ALGORITHMS,
    EQUAL,
    GREATER,
    LESS,
    Algorithm,
    Comparison,
    KdTreePairJoin,
    PairJoin,
)

_Answer = TypeVar("_Answer")


def refine_equal(
    pairs: ClusterPairs,
    codes: NDArray[np.int32],
    equalities: Sequence[tuple[int, int]],
    *,
    device: Device | str = "auto",
    threads: int | None = None,
) -> ClusterPairs:
    """Refine cluster pairs by equalities.

    Parameters
    ----------
    codes : int32 array (columns, rows), C order
        Ranks; null (-1) is a value like any other. Where nulls are unknown, leave their rows out of `pairs`.
    equalities : (left column, right column) each
        Taken in order; consecutive ones make one step while their values fit one 64-bit key.

    Returns
    -------
    ClusterPairs
        Only pairs of sets with a pair of different rows, since others can't violate anything. Reflexive where `pairs`
        is and each equality compares a column with itself.

    Notes
    -----
    Cost: one sort of a 64-bit key for each row and step, or two passes where keys are dense enough to index a table
    (perfect hashing of codes). Memory: 16 bytes a row. Source: Pena, de Almeida, Naumann, "Fast Detection of Denial
    Constraint Violations", PVLDB 15(4), 2022, section 5.1. Departures: a sort or a table indexed by the dense codes
    replaces the hash table, whose order of entries would depend on the twin; two compared columns mark their values in
    one such table, so rows without a partner are dropped before the sort and neither side is the build side; several
    equalities make one step.
    """
    _check(pairs, codes, [c for pair in equalities for c in pair])
    picked, control = pick_device(device), Control(threads=threads)

    def on_gpu() -> ClusterPairs:
        from tuplewise.gpu_kernels.cuda.refine import refine_equal as run

        return run(pairs, codes, list(equalities), control)

    def on_cpu() -> ClusterPairs:
        from tuplewise.gpu_kernels.cpu.refine import refine_equal as run

        refined: ClusterPairs = run(pairs, codes, list(equalities), control)
        return refined

    return picked.run("refining clusters", on_gpu, on_cpu, forget=lambda: let_go(pairs, picked))


def join(
    pairs: ClusterPairs,
    codes: NDArray[np.int32],
    comparisons: Sequence[Comparison],
    algorithm: Algorithm,
    *,
    device: Device | str = "auto",
    threads: int | None = None,
    deadline: float | None = None,
) -> PairJoin:
    """Prepare to count, find and list the pairs of rows that satisfy `comparisons` inside cluster pairs.

    Parameters
    ----------
    pairs, codes : as in `refine_equal`
    comparisons : what a pair has to satisfy
    algorithm : "hsm" (hash-sort-merge): at most one comparison of any kind; partners are one or two slices of a sorted
        side. "iejoin": two inequalities; slices of one sorted side, counted by a wavelet matrix of the other column and
        listed by a tree of extremes. "kdtree": one or more inequalities. "rangetree": three or more inequalities, one
        level of bits after the other; lists like "kdtree". "bhsm" (binning-hash-sort-merge): any comparisons, by
        bitmaps of the right side that are kept for bins of sorted values, 64 rows an instruction.

    Raises
    ------
    ValueError
        Where shapes don't fit, or the algorithm doesn't support these comparisons.

    Notes
    -----
    n rows on each side, k pairs found: "hsm" n log n + k; "iejoin" n log n + k log n; "rangetree" n log^(d - 1) n for d
    inequalities; "kdtree" n^(2 - 1/d) at worst, close to n log n where few pairs satisfy them; "bhsm" n^2 / 64 for
    each comparison.
    Source: section 5.3 of the paper named at `refine_equal`; each module names its own source and departures.
    """
    _check(pairs, codes, [c for x in comparisons for c in (x.left, x.right)])
    _check_algorithm(algorithm, comparisons)
    picked = pick_device(device)
    if algorithm == "rangetree":
        from tuplewise.gpu_kernels.levels import LevelJoin

        def make(fewer: ClusterPairs, others: list[Comparison], algorithm: Algorithm) -> PairJoin:
            return join(fewer, codes, others, algorithm, device=picked, threads=threads, deadline=deadline)

        return LevelJoin(pairs, codes, list(comparisons), make)
    control = Control(deadline, threads=threads)

    def on_cpu() -> PairJoin:
        from tuplewise.gpu_kernels.cpu.refine import make_join

        made: PairJoin = make_join(pairs, codes, list(comparisons), algorithm, control)
        return made

    if picked.kind == "cpu":
        return on_cpu()

    def on_gpu() -> PairJoin:
        from tuplewise.gpu_kernels.cuda.refine import make_join

        return make_join(pairs, codes, list(comparisons), algorithm, control)

    return _JoinOnDevice(picked, on_gpu, on_cpu, lambda: let_go(pairs, picked))


class _JoinOnDevice:
    """Join on a GPU, replaced by a join on the CPU once the GPU has no room for it; see `KdTreePairJoin`."""

    def __init__(
        self,
        device: Device,
        on_gpu: Callable[[], PairJoin],
        on_cpu: Callable[[], PairJoin],
        forget: Callable[[], None],
    ) -> None:
        self._device, self._make, self._forget_pairs = device, (on_gpu, on_cpu), forget
        self._made: list[PairJoin | None] = [None, None]
        self._ask(lambda join: None)  # raises now where the join isn't possible

    def count(self, counts: NDArray[np.int64] | None, sign: int) -> int:
        if counts is None:
            return self._ask(lambda join: join.count(None, sign))

        def count(join: PairJoin) -> tuple[int, NDArray[np.int64]]:
            here = np.zeros_like(counts)  # a failure midway leaves `counts` unchanged
            return join.count(here, sign), here

        found, here = self._ask(count)
        counts += here
        return found

    def emit(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return self._ask(lambda join: join.emit(rows))

    def find(self, limit: int) -> NDArray[np.int32]:
        return self._ask(lambda join: join.find(limit))

    def nodes_for(self, sample_rows: int) -> float:
        return self._ask(lambda join: cast(KdTreePairJoin, join).nodes_for(sample_rows))

    def _ask(self, question: Callable[[PairJoin], _Answer]) -> _Answer:
        return self._device.run("joining clusters", self._of(0, question), self._of(1, question), self._forget)

    def _of(self, place: int, question: Callable[[PairJoin], _Answer]) -> Callable[[], _Answer]:
        """Function that calls the join on the GPU (0) or the CPU (1), making the join at its first call."""

        def ask() -> _Answer:
            join, self._made[place] = self._made[place], None
            if join is None:
                join = self._make[place]()
            answer = question(join)
            self._made[place] = join  # a failed join is made anew, in less memory
            return answer

        return ask

    def _forget(self) -> None:
        self._made[0] = None
        self._forget_pairs()


def let_go(pairs: ClusterPairs, device: Device) -> None:
    """Release what cluster pairs keep on a GPU."""
    pairs.kept.pop(("cuda", device.index), None)


def _check(pairs: ClusterPairs, codes: NDArray[np.int32], columns: Sequence[int]) -> None:
    if codes.ndim != 2 or codes.dtype != np.int32 or not codes.flags.c_contiguous:
        allowed = "int32 (columns, rows), C order"
        raise ValueError(f"codes: {codes.dtype} array of {codes.ndim} dimensions; allowed: {allowed}")
    if columns and not (min(columns) >= 0 and max(columns) < len(codes)):
        raise ValueError(f"a predicate names column {max(columns)} of {len(codes)}")
    for side, offsets in ((pairs.left, pairs.left_offsets), (pairs.right, pairs.right_offsets)):
        if side.dtype != np.int32 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(side):
            raise ValueError("cluster pairs: sides are int32, offsets begin with 0 and end with the length of the side")
    if len(pairs.left_offsets) != len(pairs.right_offsets):
        raise ValueError(f"cluster pairs: {pairs.clusters} left sets and {len(pairs.right_offsets) - 1} right sets")


def _check_algorithm(algorithm: str, comparisons: Sequence[Comparison]) -> None:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm: {algorithm!r}; allowed: {', '.join(map(repr, ALGORITHMS))}")
    ordered = all(c.outcomes in (LESS, LESS | EQUAL, GREATER, GREATER | EQUAL) for c in comparisons)
    fits = {
        "hsm": len(comparisons) <= 1,
        "iejoin": len(comparisons) == 2 and ordered,
        "kdtree": len(comparisons) >= 1 and ordered,
        "rangetree": len(comparisons) >= 3 and ordered,
        "bhsm": True,
    }[algorithm]
    if not fits:
        raise ValueError(f"algorithm {algorithm!r} can't do these comparisons: {list(comparisons)}")
