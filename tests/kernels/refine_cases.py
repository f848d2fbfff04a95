"""One body of checks of the refinements, for the CPU twin, the simulator and a device."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison, PairJoin
from tuplewise.gpu_kernels.refine import join, refine_equal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from oracles import refine as oracle

ORDERED = (LESS, LESS | EQUAL, GREATER, GREATER | EQUAL)
EVERY = (*ORDERED, EQUAL, LESS | GREATER, LESS | EQUAL | GREATER)
JOINS: tuple[Algorithm, ...] = ("hsm", "iejoin", "kdtree", "bhsm", "rangetree")
LIMITS = (1, 3, 1000)


@dataclass
class Case:
    """A table, the rows of both sides (no right side: the pair is reflexive) and what they have to agree on."""

    codes: NDArray[np.int32]
    equalities: list[tuple[int, int]] = field(default_factory=list)
    left: NDArray[np.int32] | None = None
    right: NDArray[np.int32] | None = None

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    def start(self) -> ClusterPairs:
        """One new pair of sets."""
        left = np.arange(self.rows, dtype=np.int32) if self.left is None else self.left
        return all_rows(left, self.right)

    def refined(self, device: str) -> ClusterPairs:
        return refine_equal(self.start(), self.codes, self.equalities, device=device)

    def expected(self) -> oracle.Clusters:
        """The cluster pairs by definition."""
        start = self.start()
        clusters = [(start.left.tolist(), start.right.tolist())]
        return oracle.refine(self.codes.tolist(), clusters, self.equalities, start.reflexive)


def random_case(rng: np.random.Generator, rows: int, values: int, columns: int = 4) -> Case:
    """Codes with ties and nulls; one set or two; up to two equalities, some between different columns."""
    codes = rng.integers(-1, values, (columns, rows)).astype(np.int32)
    equalities = []
    for _ in range(int(rng.integers(0, 3))):
        a, b = (int(x) for x in rng.integers(0, columns, 2))
        equalities.append((a, a if rng.random() < 0.5 else b))
    if rng.random() < 0.5:
        return Case(codes, equalities)
    sides = [np.flatnonzero(rng.random(rows) < 0.7).astype(np.int32) for _ in range(2)]
    return Case(codes, equalities, *sides)


def random_comparisons(
    rng: np.random.Generator, algorithm: Algorithm, columns: int = 4, most: int = 3
) -> list[Comparison]:
    """As many and of such kinds as the algorithm does."""
    fewest, most = {"hsm": (0, 1), "iejoin": (2, 2), "kdtree": (1, most), "bhsm": (0, most), "rangetree": (3, 3)}[
        algorithm
    ]
    kinds = EVERY if algorithm in ("hsm", "bhsm") else ORDERED
    number = int(rng.integers(fewest, most + 1))
    return [
        Comparison(int(rng.integers(columns)), int(rng.integers(columns)), int(rng.choice(kinds)))
        for _ in range(number)
    ]


def clusters_of(pairs: ClusterPairs) -> oracle.Clusters:
    """The sets as lists."""
    return [
        (
            pairs.left[pairs.left_offsets[c] : pairs.left_offsets[c + 1]].tolist(),
            pairs.right[pairs.right_offsets[c] : pairs.right_offsets[c + 1]].tolist(),
        )
        for c in range(pairs.clusters)
    ]


def check_refined(case: Case, device: str) -> ClusterPairs:
    """Equality refinement is the definition's, in the definition's order."""
    pairs = case.refined(device)
    assert clusters_of(pairs) == case.expected(), case
    assert pairs.left.dtype == pairs.right.dtype == np.int32
    assert pairs.left_offsets.dtype == pairs.right_offsets.dtype == np.int64
    same_columns = all(left == right for left, right in case.equalities)
    assert pairs.reflexive == (case.right is None and same_columns)
    return pairs


def check_join(
    case: Case, pairs: ClusterPairs, comparisons: list[Comparison], algorithm: Algorithm, device: str
) -> None:
    """Counts, lists and witnesses are the definition's."""
    made = join(pairs, case.codes, comparisons, algorithm, device=device)
    table, plain = case.codes.tolist(), [(c.left, c.right, c.outcomes) for c in comparisons]
    clusters = clusters_of(pairs)
    partners = oracle.partners(table, clusters, plain)
    wanted = np.array([len(partners.get(row, [])) for row in range(case.rows)], dtype=np.int64)

    counts = np.full(case.rows, 5, dtype=np.int64)
    assert made.count(counts, -1) == wanted.sum(), (case, comparisons, algorithm)
    assert (counts == 5 - wanted).all()
    assert made.count(None, 1) == wanted.sum()

    rows = np.arange(case.rows, dtype=np.int32)[::-1].copy()
    offsets, right = made.emit(rows)
    assert offsets.dtype == np.int64
    assert right.dtype == np.int32
    assert offsets.tolist() == [0, *np.cumsum(wanted[rows]).tolist()]
    assert right.tolist() == [u for row in rows.tolist() for u in partners.get(row, [])]
    check_found(made, table, clusters, plain, algorithm)


def check_found(
    made: PairJoin,
    table: list[list[int]],
    clusters: oracle.Clusters,
    comparisons: list[oracle.Comparison],
    algorithm: Algorithm,
) -> None:
    """`find` gives the first pairs of a stated order; trees, whose order is their own, pairs that are right."""
    by_place = oracle.pairs_by_place(table, clusters, comparisons)
    for limit in LIMITS:
        found = [(int(t), int(u)) for t, u in made.find(limit)]
        if algorithm == "hsm":
            assert found == oracle.pairs_by_slices(table, clusters, comparisons)[:limit]
        elif algorithm == "iejoin":
            assert found == oracle.pairs_by_extremes(table, clusters, comparisons)[:limit]
        elif algorithm == "bhsm":
            assert found == by_place[:limit]
        elif algorithm == "kdtree":  # left rows by their places, the partners of each as the tree has them
            assert [t for t, _ in found] == [t for t, _ in by_place][:limit]
            assert len(set(found)) == len(found)
        assert set(found) <= set(by_place)
        assert bool(found) == bool(by_place)


def check_same(case: Case, comparisons: list[Comparison], algorithm: Algorithm, device: str, other: str) -> None:
    """Two twins give the same bytes: cluster pairs, counts, lists and witnesses."""
    sides = [case.refined(name) for name in (device, other)]
    for name in ("left", "left_offsets", "right", "right_offsets"):
        same_bytes(*(getattr(pairs, name) for pairs in sides))
    joins = [
        join(pairs, case.codes, comparisons, algorithm, device=name)
        for pairs, name in zip(sides, (device, other), strict=True)
    ]
    counts = [np.zeros(case.rows, dtype=np.int64) for _ in joins]
    totals = [made.count(counted, 1) for made, counted in zip(joins, counts, strict=True)]
    assert totals[0] == totals[1]
    same_bytes(*counts)
    few = np.flatnonzero(counts[0])[:50].astype(np.int32)
    for one, two in zip(*(made.emit(few) for made in joins), strict=True):
        same_bytes(one, two)
    for limit in LIMITS:
        same_bytes(*(made.find(limit) for made in joins))
    if algorithm == "kdtree":
        nodes = [made.nodes_for(7) for made in joins]  # type: ignore[attr-defined]
        assert nodes[0] == nodes[1]


def same_bytes(one: NDArray[np.generic], two: NDArray[np.generic]) -> None:
    """Equal in type, shape and bytes."""
    assert (one.dtype, one.shape) == (two.dtype, two.shape)
    assert one.tobytes() == two.tobytes()
