"""Counts of candidates on all rows: what contradicts each, and what would by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.profile import measures
from tuplewise.engine.profile.candidates import Columns
from tuplewise.engine.profile.rows import ClassSizes, CountedRelation
from tuplewise.engine.table.relation import NULL_CODE
from tuplewise.gpu_kernels.agreement import count_agreement
from tuplewise.gpu_kernels.order import lay_out_orders
from tuplewise.gpu_kernels.order_types import ASCENDING, DESCENDING


@dataclass(frozen=True, slots=True)
class CandidateCounts:
    """The counts of a candidate. `strength`, `evidence`: see `measures`; others: see `rule.Rule`."""

    rows: int
    exceptions: int
    evidence: float
    strength: float


def counted_fd(rows: int, classes: int, exceptions: int, contradictions: float, differing: float) -> CandidateCounts:
    """The counts of an FD, from its rows, their classes, and the share of their pairs that differ on its target."""
    by_chance = measures.fd_evidence(rows, classes, differing)
    return CandidateCounts(rows, exceptions, by_chance, measures.mu_plus(contradictions, by_chance))


def counted_key(classes: ClassSizes, differing: Sequence[float]) -> CandidateCounts:
    """The counts of a key, from its classes and the share of pairs that differ on each of its columns."""
    by_chance = classes.rows * (classes.rows - 1) / 2 * float(np.prod([1.0 - share for share in differing]))
    strength = max(0.0, 1.0 - classes.pairs / by_chance) if by_chance > 0 else 0.0
    return CandidateCounts(classes.rows, classes.repeated, by_chance, strength)


def counted_order(
    both: ClassSizes, tied_a: ClassSizes, tied_b: ClassSizes, tied_both: ClassSizes, discordant: int
) -> CandidateCounts:
    """The counts of an order rule, from its classes, and from those in which A, B or both are equal too."""
    strict = both.pairs - tied_a.pairs - tied_b.pairs + tied_both.pairs
    gamma = (strict - 2 * discordant) / strict if strict else 0.0
    evidence = both.repeated * (strict / both.pairs) / 2 if both.pairs else 0.0
    return CandidateCounts(both.rows, discordant, evidence, gamma)


def count_fds(rows: CountedRelation, left: Columns, targets: Sequence[int]) -> dict[int, CandidateCounts]:
    """The counts of FDs with one left side, by target, without rows with a null on either side."""
    classes = rows.classes(left)
    figures = count_agreement(classes.groups, rows.codes, targets)
    present = rows.without_nulls(left)
    counted = {}
    for i, target in enumerate(targets):
        column = rows.codes[target]
        if rows.filled[target] == rows.count:
            speaking = classes.rows
        elif present is None:
            speaking = int(rows.filled[target])
        else:
            speaking = int(np.count_nonzero(present & (column != NULL_CODE)))
        grouped, kinds = int(figures.rows[i]), int(figures.classes[i])
        count = speaking - grouped + kinds
        differing = float(rows.differing[target]) if speaking == rows.filled[target] else _differing(column, present)
        exceptions = grouped - int(figures.majority[i])
        counted[target] = counted_fd(speaking, count, exceptions, float(figures.contradictions[i]), differing)
    return counted


def _differing(column: NDArray[np.int32], present: NDArray[np.bool_] | None) -> float:
    kept = column if present is None else column[present]
    return measures.differing_share(np.bincount(kept[kept != NULL_CODE]))


def count_key(rows: CountedRelation, columns: Columns) -> CandidateCounts:
    """The counts of a key of several columns: equal pairs, and those expected by chance."""
    classes = rows.classes(columns)
    present = rows.without_nulls(columns)
    shares = [float(rows.differing[c]) if present is None else _differing(rows.codes[c], present) for c in columns]
    return counted_key(classes, shares)


def count_order(rows: CountedRelation, context: Columns, a: int, b: int, discordant: int) -> CandidateCounts:
    """The counts of an order rule with so many contradicting pairs; its strength is gamma."""
    both = rows.classes(context, also_filled=(a, b))
    tied_a, tied_b = rows.classes((*context, a), also_filled=(b,)), rows.classes((*context, b), also_filled=(a,))
    return counted_order(both, tied_a, tied_b, rows.classes((*context, a, b)), discordant)


def rows_to_remove(rows: CountedRelation, context: Columns, a: int, b: int, ascending: bool) -> int:
    """The fewest rows to remove so that an order rule holds, without rows with a null in its columns."""
    columns = sorted({*context, a, b})
    present = rows.without_nulls(columns)
    codes = rows.codes[columns] if present is None else rows.codes[columns][:, present]
    place = {column: i for i, column in enumerate(columns)}
    bits = np.array([[sum(1 << place[c] for c in context)]], dtype=np.uint64)
    numbers = (np.array([value]) for value in (0, ASCENDING if ascending else DESCENDING, place[a], place[b]))
    laid_out = lay_out_orders(np.ascontiguousarray(codes), device="cpu")
    return int(laid_out.removals(bits, *numbers).rows[0])


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """A comparison of two columns of one domain, row by row.

    Attributes
    ----------
    rows : rows with a value in both
    above, equal, below : rows whose first value is above, equal to or below the second
    above_by_chance, equal_by_chance, below_by_chance : the same numbers expected if values were paired at random
    """

    rows: int
    above: int
    equal: int
    above_by_chance: float
    equal_by_chance: float

    @property
    def below(self) -> int:
        return self.rows - self.above - self.equal

    @property
    def below_by_chance(self) -> float:
        return self.rows - self.above_by_chance - self.equal_by_chance


def compare(left: NDArray[np.int32], right: NDArray[np.int32]) -> ColumnComparison:
    """Compare the codes of two columns in each row."""
    kept = (left != NULL_CODE) & (right != NULL_CODE)
    left, right = left[kept], right[kept]
    count = len(left)
    size = int(max(left.max(initial=0), right.max(initial=0))) + 1
    of_left, of_right = np.bincount(left, minlength=size), np.bincount(right, minlength=size).astype(np.float64)
    lower = np.cumsum(of_right) - of_right
    return ColumnComparison(
        rows=count,
        above=int(np.count_nonzero(left > right)),
        equal=int(np.count_nonzero(left == right)),
        above_by_chance=float(np.dot(of_left, lower)) / max(count, 1),
        equal_by_chance=float(np.dot(of_left, of_right)) / max(count, 1),
    )
