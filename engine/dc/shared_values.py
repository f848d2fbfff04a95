"""Figures of column pairs that determine the predicate space: common distinct values, and means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.compiled import kernel

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnFigures(Protocol):
    """Figures of the values of a table, in this process or elsewhere."""

    def shared_distinct(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
        """Number of distinct non-null codes common to two columns, int64 (pairs,).

        left, right : int32 (pairs,), columns with a common dictionary
        """

    def means(self, columns: NDArray[np.int32]) -> tuple[Fraction | None, ...]:
        """Mean of the non-null values of some columns; None for other columns and if the mean isn't a finite number.

        Integers and decimals are summed exactly. Doubles are summed in value order, so the mean, a double, doesn't
        depend on the order of the rows.
        """


@dataclass(frozen=True)
class FiguresOf:
    """Figures of a relation, from its codes."""

    relation: Relation

    def shared_distinct(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
        if len(left) == 0:
            return np.zeros(0, dtype=np.int64)
        values: list[NDArray[np.int32]] = []
        offsets = np.zeros(len(self.relation.columns) + 1, dtype=np.int64)
        for column in np.unique(np.concatenate((left, right))):
            distinct = np.unique(self.relation.codes[column])
            distinct = distinct[distinct != NULL_CODE]
            values.append(distinct)
            offsets[column + 1] = len(distinct)
        np.cumsum(offsets, out=offsets)
        return np.asarray(_count_common(np.concatenate(values), offsets, left, right))

    def means(self, columns: NDArray[np.int32]) -> tuple[Fraction | None, ...]:
        import pyarrow as pa

        relation = self.relation
        means: list[Fraction | None] = [None] * len(relation.columns)
        for column in columns.tolist():
            codes = relation.codes[column]
            distinct, counts = np.unique(codes[codes != NULL_CODE], return_counts=True)
            if len(distinct):
                domain = relation.columns[column].domain
                total = exact_sum(relation.dictionaries[domain].take(pa.array(distinct)), counts.astype(np.int64))
                means[column] = None if total is None else total / int(counts.sum())
        return tuple(means)


@kernel("int32[::1], int64[::1], int32[::1], int32[::1]")
def _count_common(
    values: NDArray[np.int32], offsets: NDArray[np.int64], left: NDArray[np.int32], right: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Count common values by one merge of two ascending runs of `values` for each pair."""
    common = np.zeros(len(left), dtype=np.int64)
    for k in range(len(left)):
        i, i_end = offsets[left[k]], offsets[left[k] + 1]
        j, j_end = offsets[right[k]], offsets[right[k] + 1]
        count = 0
        while i < i_end and j < j_end:
            a, b = values[i], values[j]
            count += a == b
            i += a <= b
            j += b <= a
        common[k] = count
    return common


def exact_sum(values: pa.Array, counts: NDArray[np.int64]) -> Fraction | None:
    """Sum of values times counts; None if it is not finite."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    kind = values.type
    if pa.types.is_integer(kind):
        return Fraction(_sum_words(values.cast(pa.int64()).to_numpy().reshape(-1, 1), counts))
    if pa.types.is_decimal128(kind) or pa.types.is_decimal256(kind):
        words = kind.bit_width // 64
        data = np.frombuffer(values.buffers()[1], dtype=np.int64).reshape(-1, words)
        data = data[values.offset : values.offset + len(values)]
        return Fraction(_sum_words(data, counts)) / Fraction(10 ** int(kind.scale))
    with np.errstate(all="ignore"):
        total = float(np.sum(values.to_numpy(zero_copy_only=False) * counts))
    return Fraction(total) if np.isfinite(total) else None


def _sum_words(words: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Exact sum of two's-complement numbers times counts; words: int64 (values, words), least significant first.

    The sum of 32-bit halves times counts stays below 2**63 if the counts sum to less than 2**31.
    """
    total = 0
    last = words.shape[1] - 1
    for i in range(last + 1):
        word = words[:, i]
        low = int(np.sum((word & 0xFFFFFFFF) * counts))
        high = word >> 32 if i == last else (word >> 32) & 0xFFFFFFFF
        total += (low + (int(np.sum(high * counts)) << 32)) << (64 * i)
    return total


def mean_ratio_above(
    means: Sequence[Fraction | None], left: NDArray[np.int32], right: NDArray[np.int32], threshold: Decimal
) -> NDArray[np.bool_]:
    """Whether two means have one sign and the smaller is over `threshold` of the larger in size; bool (pairs,).

    Floating point decides if the ratio is clearly on one side, fractions if it is near the threshold.
    """
    if len(left) == 0:
        return np.zeros(0, dtype=np.bool_)
    rough = np.array([_rough(m) for m in means], dtype=np.float64)
    known = np.array([m is not None for m in means], dtype=np.bool_)
    sign = np.array([0 if m is None else (m > 0) - (m < 0) for m in means], dtype=np.int8)
    smaller = np.minimum(np.abs(rough[left]), np.abs(rough[right]))
    larger = np.maximum(np.abs(rough[left]), np.abs(rough[right]))
    limit = float(threshold) * larger
    alike = known[left] & known[right] & (sign[left] == sign[right])
    above: NDArray[np.bool_] = alike & (smaller > limit)
    near = alike & (np.abs(smaller - limit) <= 1e-9 * larger + 1e-300)
    for i in np.flatnonzero(near):
        sizes = sorted((abs(means[left[i]] or Fraction(0)), abs(means[right[i]] or Fraction(0))))
        above[i] = sizes[0] > Fraction(threshold) * sizes[1]
    return above


def _rough(mean: Fraction | None) -> float:
    """A double near the mean; the largest double if the mean is beyond it (doubles in the data are finite)."""
    if mean is None:
        return 0.0
    try:
        return float(mean)
    except OverflowError:
        return float(np.finfo(np.float64).max)
