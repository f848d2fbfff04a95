"""Numbers of distinct values of columns and of column combinations: the basis of plans.

The dictionaries of an encoded table give the distinct values of each column, exactly and at no cost. Combinations of
columns are estimated from a sample of rows, corrected by the error of the same estimate on each single column.

Source: Freitag, Neumann, "Every Row Counts", CIDR 2019, as used by Pena, de Almeida, Naumann (PVLDB 15(4), 2022),
section 6.1. Departures: exact numbers replace HyperLogLog sketches, which would cost a pass over each column to
estimate numbers known from encoding. The estimate from the sample is the larger of two underestimates: that of
Charikar et al. (PODS 2000), square root of n / s for values seen once, and one based on how often sampled rows agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.table.relation import Relation

SAMPLE_SHARE = 0.01
LEAST_SAMPLE, LARGEST_SAMPLE = 20_000, 50_000


@dataclass
class Cardinalities:
    """Numbers of distinct values of a table.

    Attributes
    ----------
    rows : rows of the table
    distinct : number of distinct values of each column, known or estimated
    sample : int32 (columns, sampled rows), codes of rows drawn at random
    """

    rows: int
    distinct: Sequence[float]
    sample: NDArray[np.int32]
    _known: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)
    _off: dict[int, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of_codes(cls, codes: NDArray[np.int32], seed: int = 0) -> Cardinalities:
        """Cardinalities from codes alone, int32 (columns, rows); single columns are estimated from the sample, too."""
        sizes = cls(codes.shape[1], (), drawn_rows(codes, seed))
        if sizes.sample.shape[1] == 0:
            return cls(sizes.rows, [1.0] * len(codes), sizes.sample)
        alone = [min(float(sizes.rows), sizes._from_sample((c,))) for c in range(len(codes))]
        return cls(sizes.rows, alone, sizes.sample)

    def of(self, columns: Iterable[int]) -> float:
        """Estimated number of distinct combinations of values of some columns; for one column, the known number."""
        key = tuple(sorted(set(columns)))
        if not key:
            return 1.0
        if len(key) == 1:
            return max(1.0, float(self.distinct[key[0]]))
        if key not in self._known:
            self._known[key] = self._estimate(key)
        return self._known[key]

    def _estimate(self, columns: tuple[int, ...]) -> float:
        alone = [self.of([c]) for c in columns]
        most = min(float(max(1, self.rows)), math.prod(alone))
        if self.sample.shape[1] == 0:
            return most
        off = [self._off.get(c) or self._off.setdefault(c, self.of([c]) / self._from_sample((c,))) for c in columns]
        corrected = self._from_sample(columns) * math.prod(off) ** (1 / len(off))
        return float(min(most, max(*alone, corrected)))

    def alone(self, columns: Iterable[int]) -> float:
        """Expected rows that agree with no other row on some columns, if combinations were equally likely."""
        share = min(1.0, self.of(columns) / max(1, self.rows))
        low, high = 0.0, 1e9  # rows per possible combination, found from its distinct share: (1 - e^-x) / x
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if -math.expm1(-middle) / middle > share else (low, middle)
        return self.rows * math.exp(-high)

    def _from_sample(self, columns: tuple[int, ...]) -> float:
        """Distinct combinations of all rows, estimated from the sample: the larger of two underestimates.

        First: values seen once times sqrt(n / s), plus the others (low if nearly all values differ). Second: the number
        of equally likely combinations with the same rate of agreement in the sample (low if a few are frequent).
        """
        _, counts = np.unique(_combined(self.sample, columns), return_counts=True)
        sampled = int(counts.sum())
        once = int(np.count_nonzero(counts == 1))
        by_once = once * math.sqrt(self.rows / sampled) + len(counts) - once
        meetings = (float(np.dot(counts, counts - 1)) + 0.5) / max(1, sampled * (sampled - 1))
        by_meetings = -math.expm1(-self.rows * meetings) / meetings
        return max(1.0, by_once, by_meetings)


def _combined(codes: NDArray[np.int32], columns: tuple[int, ...]) -> NDArray[np.int64]:
    """A key for each combination of codes, int64 (rows,)."""
    keys = np.zeros(codes.shape[1], dtype=np.int64)
    for column in columns:
        span = int(codes[column].max(initial=-1)) + 2
        if int(keys.max(initial=0) + 1) * span >= 1 << 62:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        keys = keys * span + codes[column] + 1
    return keys


def cardinalities(relation: Relation, seed: int = 0) -> Cardinalities:
    """Cardinalities of a loaded relation, exact for single columns.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> cardinalities(tw.load(pd.DataFrame({"a": [1, 1, 2], "b": [3, 3, 3]}))).of([0, 1])
    2.0
    """
    return Cardinalities(relation.rows, [c.distinct for c in relation.columns], drawn_rows(relation.codes, seed))


def drawn_rows(codes: NDArray[np.int32], seed: int) -> NDArray[np.int32]:
    """Codes of about one row in a hundred, int32 (columns, sampled rows)."""
    rows = codes.shape[1]
    if rows == 0:
        return codes
    wanted = min(rows, max(LEAST_SAMPLE, min(LARGEST_SAMPLE, int(rows * SAMPLE_SHARE))))
    drawn = np.random.default_rng(seed).integers(0, rows, wanted)
    return codes[:, np.unique(drawn)]
