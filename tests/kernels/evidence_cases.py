"""One body of checks of the CUDA twin of the evidence kernel, for the simulator and for a device."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda import evidence
from tuplewise.gpu_kernels.cuda.clue_counter import Sizes
from tuplewise.gpu_kernels.cuda.clue_table import Geometry
from tuplewise.gpu_kernels.words import Comparisons

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from oracles import clues as oracle

ACROSS, WITHIN_T, WITHIN_U = 0, 1, 2

TINY = Geometry(threads=4, tile_rows=4, batch=2, slots=4, copies=1)  # 4-row tiles, a block table of 4 clues
SMALL = Geometry(threads=8, tile_rows=4, batch=4, slots=16, copies=2)
COPIED = Geometry(threads=4, tile_rows=4, batch=2, slots=8, copies=2)


@dataclass
class Case:
    """One table, its comparisons and groups."""

    codes: NDArray[np.int32]
    comparisons: list[tuple[int, int, int, bool]]
    group_sizes: list[int] = field(default_factory=list)  # empty: one group of all rows
    nullable: bool = True

    def offsets(self) -> NDArray[np.int64]:
        sizes = self.group_sizes or [self.codes.shape[1]]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def layout(self) -> Comparisons:
        left, right, scope, ordered = zip(*self.comparisons, strict=True)
        return Comparisons(
            np.array(left, dtype=np.int32),
            np.array(right, dtype=np.int32),
            np.array(scope, dtype=np.int8),
            np.array(ordered, dtype=np.bool_),
            self.nullable,
        )

    def expected(self) -> dict[tuple[int, ...], int]:
        offsets = self.offsets()
        groups = [range(offsets[k], offsets[k + 1]) for k in range(len(offsets) - 1)]
        return oracle.count_clues(self.codes.tolist(), self.comparisons, groups, self.nullable)


def sizes(
    geometry: Geometry, *, blocks: int = 2, slots: int = 1 << 6, most: int = 1 << 12, band: int = 1 << 20
) -> Sizes:
    """Sizes of a run."""
    return Sizes(geometry, blocks, slots, most, band)


def count(case: Case, of: Sizes | None = None, control: Control | None = None) -> dict[tuple[int, ...], int]:
    """What the twin counts, checked for its promises: sorted, distinct, of the stated types."""
    clues, counts, complete = evidence.run(
        case.codes, case.layout(), case.offsets(), control or Control(), sizes=of
    )
    assert complete
    assert clues.dtype == np.uint64
    assert counts.dtype == np.int64
    rows = [tuple(int(w) for w in row) for row in clues]
    assert rows == sorted(set(rows))
    return dict(zip(rows, counts.tolist(), strict=True))


def check(case: Case, of: Sizes | None = None) -> None:
    """The twin's answer is the definition's."""
    assert count(case, of) == case.expected()


def table(seed: int, columns: int, rows: int, values: int = 3, nulls: bool = True) -> NDArray[np.int32]:
    """Random codes with ties, nulls, a constant column and duplicate rows; sorted, as the front door does."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1 if nulls else 0, values, (columns, rows)).astype(np.int32)
    codes[rng.integers(columns)] = 0
    if rows > 4:
        codes[:, rng.integers(rows, size=rows // 4)] = codes[:, rng.integers(rows, size=rows // 4)]
    return np.ascontiguousarray(codes[:, np.lexsort(codes[::-1])])


def same_columns(columns: int, ordered: int) -> list[tuple[int, int, int, bool]]:
    """Each column with itself; the first `ordered` of them with order."""
    return [(c, c, ACROSS, c < ordered) for c in range(columns)]


def all_scopes(columns: int) -> list[tuple[int, int, int, bool]]:
    """Same column, cross-column and within-row comparisons, with and without order."""
    found = same_columns(columns, columns // 2)
    for a in range(columns - 1):
        wanted = a % 2 == 0
        found += [(a, a + 1, scope, wanted) for scope in (ACROSS, WITHIN_T, WITHIN_U)]
        found.append((a + 1, a, ACROSS, wanted))
    return found


def wide(comparisons: int, columns: int) -> list[tuple[int, int, int, bool]]:
    """So many different comparisons of a few columns."""
    pool = [
        (a, b, scope, (a + b) % 3 > 0)
        for a in range(columns)
        for b in range(columns)
        for scope in (ACROSS, WITHIN_T, WITHIN_U)
    ]
    assert len(pool) >= comparisons
    return pool[:comparisons]


def all_different(rows: int) -> Case:
    """Every pair has a clue of its own: t.A : u.A for A = (row == i) tells t and u apart."""
    codes = np.eye(rows, dtype=np.int32)
    return Case(codes, same_columns(rows, rows), nullable=False)
