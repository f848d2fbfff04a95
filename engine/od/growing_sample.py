"""A table with a sample of its rows that grows by rows of violations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.order import PartitionedRows, lay_out_orders

NULL_CODE = -1


class GrowingSample:
    """The rows of a table and a sample of them, both laid out for checks.

    Parameters
    ----------
    codes : int32 (columns, rows), order-preserving dense ranks, -1 is null
    nulls, device : as `lay_out_orders` takes them
    drawn : rows that are drawn at random for the first sample, by `seed`; fewer where the table has fewer

    Attributes
    ----------
    """

    def __init__(
        self, codes: NDArray[np.int32], nulls: Literal["unknown", "value"], device: Any, drawn: int, seed: int
    ) -> None:
        self.codes, self.nulls, self._device, self._seed = codes, nulls, device, seed
        self.rows = int(codes.shape[1])
        self.table = self._lay_out(codes)
        self._sampled = np.zeros(self.rows, dtype=np.bool_)
        self._sampled[np.random.default_rng(seed).choice(self.rows, min(drawn, self.rows), replace=False)] = True
        self._sample: PartitionedRows | None = None

    @property
    def sample(self) -> PartitionedRows:
        """The sample, its rows in the order of `numbers`."""
        if self._sample is None:
            self._sample = self._lay_out(_dense(self.codes[:, self._sampled]))
        return self._sample

    @property
    def numbers(self) -> NDArray[np.int32]:
        """Which rows of the table the sample has: int32 (sampled,), ascending."""
        return np.flatnonzero(self._sampled).astype(np.int32)

    @property
    def sampled(self) -> int:
        """Rows of the sample."""
        return int(np.count_nonzero(self._sampled))

    def parts(self, shares: Sequence[float]) -> list[PartitionedRows]:
        """Laid out parts of the table, of these shares of its rows, drawn at random and each within the next."""
        drawn = np.random.default_rng(self._seed).permutation(self.rows)
        return [self._lay_out(_dense(np.take(self.codes, drawn[: int(share * self.rows)], axis=1))) for share in shares]

    def add(self, rows: NDArray[np.int32]) -> None:
        """Add rows to the sample, if they aren't in it."""
        if not self._sampled[rows].all():
            self._sampled[rows] = True
            self._sample = None

    def _lay_out(self, codes: NDArray[np.int32]) -> PartitionedRows:
        return lay_out_orders(codes, nulls=self.nulls, device=self._device)


def _dense(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Ranks without gaps, for each column; nulls stay nulls."""
    ranks = np.empty(codes.shape, dtype=np.int32)
    for rank, column in zip(ranks, codes, strict=True):
        values, rank[:] = np.unique(column, return_inverse=True)
        if len(values) and values[0] == NULL_CODE:
            rank -= 1
    return ranks
