"""The attribute clustering of a state in memory: clusters, how many values each holds, and the INDs they allow.

Source: Shaabani and Meinel, "Incremental Discovery of Inclusion Dependencies", SSDBM 2017, section 5.1. The counts of
values per cluster are exact and kept for all clusters (the paper's CountCache keeps some and reads the rest from the
database). Departure: dependencies are not derived from all clusters after a change. For each pair (A, B) the number of
clusters that hold A without B is kept. A cluster that appears or disappears changes the pairs of its own attributes,
and A <= B holds if that number is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.values import Family

_CHUNK = 1 << 16  # clusters compared at once

Pair = tuple[int, int]


class Cluster:
    """A set of attributes.

    Attributes
    ----------
    mask : bit a is attribute a
    members : its attributes, ascending
    slots : position of each attribute in `members`
    places : byte offset of each attribute's count in a value's record of 32-bit numbers
    record_bytes : length of such a record
    """

    __slots__ = ("mask", "members", "number", "places", "record_bytes", "slots")

    def __init__(self, number: int, mask: int) -> None:
        self.number, self.mask = number, mask
        self.members = tuple(_bits(mask))
        self.slots = {a: i for i, a in enumerate(self.members)}
        self.places = {a: 4 + 4 * i for i, a in enumerate(self.members)}
        self.record_bytes = 4 + 4 * len(self.members)


class KeptClusters:
    """All clusters of a state.

    Parameters
    ----------
    attributes, families : columns, tables in order
    counts : by cluster number, the cluster's mask and number of values, at least 1

    Attributes
    ----------
    by_number : all clusters, including empty ones met since the state was opened
    values : number of values of each non-empty cluster
    """

    def __init__(
        self, attributes: Sequence[Attribute], families: Sequence[Family], counts: Mapping[int, tuple[int, int]]
    ) -> None:
        self.attributes, self.families = tuple(attributes), tuple(families)
        self.by_number = {number: Cluster(number, mask) for number, (mask, _) in counts.items()}
        self.values = {number: count for number, (_, count) in counts.items()}
        self._numbers = {cluster.mask: number for number, cluster in self.by_number.items()}
        self._next = max(self.by_number, default=-1) + 1
        self._grown: dict[Pair, Cluster] = {}
        self._shrunk: dict[Pair, Cluster | None] = {}
        n = len(attributes)
        self._lacking = np.zeros((n, n), dtype=np.int64)
        self._holders = np.zeros(n, dtype=np.int64)
        kinds = {family: i for i, family in enumerate(dict.fromkeys(families))}
        numbers = np.array([kinds[f] for f in families], dtype=np.int32)
        self._compared = numbers[:, None] == numbers[None, :]
        np.fill_diagonal(self._compared, False)
        masks = [cluster.mask for cluster in self.by_number.values()]
        for start in range(0, len(masks), _CHUNK):
            self._count(self._bits_of(masks[start : start + _CHUNK]), 1)

    def of_mask(self, mask: int) -> Cluster:
        """The cluster of these attributes, created if new."""
        number = self._numbers.get(mask)
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers[mask] = number
            self.by_number[number] = Cluster(number, mask)
        return self.by_number[number]

    def grown(self, cluster: Cluster | None, attribute: int) -> Cluster:
        """The cluster with one attribute more. None: the cluster without attributes."""
        number = -1 if cluster is None else cluster.number
        found = self._grown.get((number, attribute))
        if found is None:
            found = self.of_mask((0 if cluster is None else cluster.mask) | 1 << attribute)
            self._grown[number, attribute] = found
        return found

    def shrunk(self, cluster: Cluster, attribute: int) -> Cluster | None:
        """The cluster with one attribute less; None if no attribute is left."""
        key = cluster.number, attribute
        if key not in self._shrunk:
            mask = cluster.mask & ~(1 << attribute)
            self._shrunk[key] = self.of_mask(mask) if mask else None
        return self._shrunk[key]

    def change(self, moved: Mapping[int, int]) -> tuple[list[Pair], list[Pair]]:
        """Apply changes to the clusters' numbers of values; returns the dependencies gained and lost, ascending.

        Notes
        -----
        Only clusters that appear (from 0 values) or disappear cost work: the rows of their attributes in a matrix
        of attributes times attributes.
        """
        appeared, gone = [], []
        for number, by in moved.items():
            before = self.values.get(number, 0)
            after = before + by
            if after:
                self.values[number] = after
            else:
                self.values.pop(number, None)
            if not before and after:
                appeared.append(self.by_number[number].mask)
            elif before and not after:
                gone.append(self.by_number[number].mask)
        if not appeared and not gone:
            return [], []
        touched = 0
        for mask in (*appeared, *gone):
            touched |= mask
        rows = np.array(list(_bits(touched)), dtype=np.int64)
        held = self._holding(rows)
        for masks, sign in ((appeared, 1), (gone, -1)):
            for start in range(0, len(masks), _CHUNK):
                self._count(self._bits_of(masks[start : start + _CHUNK]), sign)
        holds = self._holding(rows)
        return _pairs(rows, holds & ~held), _pairs(rows, held & ~holds)

    def _holding(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether attribute a of `rows`, with values, is included in b: bool (rows, attributes)."""
        filled = (self._holders[rows] > 0)[:, None]
        return np.asarray((self._lacking[rows] == 0) & self._compared[rows] & filled)

    def _bits_of(self, masks: Sequence[int]) -> NDArray[np.float32]:
        """Masks as 0 and 1: float32 (clusters, attributes), exact in sums up to 2**24."""
        width = -(-len(self.attributes) // 8)
        packed = np.frombuffer(b"".join([m.to_bytes(width, "little") for m in masks]), dtype=np.uint8)
        bits = np.unpackbits(packed.reshape(len(masks), width), axis=1, bitorder="little")
        return bits[:, : len(self.attributes)].astype(np.float32)

    def _count(self, bits: NDArray[np.float32], sign: int) -> None:
        if len(bits) == 1:  # one cluster: only its rows
            inside = np.flatnonzero(bits[0])
            self._lacking[np.ix_(inside, np.flatnonzero(bits[0] == 0))] += sign
            self._holders[inside] += sign
            return
        self._lacking += sign * (bits.T @ (1 - bits)).astype(np.int64)
        self._holders += sign * bits.sum(axis=0).astype(np.int64)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether attribute a, with values, is included in b, bool (attributes, attributes)."""
        return self._holding(np.arange(len(self.attributes)))

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Number of distinct values of each attribute, int64 (attributes,)."""
        found = np.zeros(len(self.attributes), dtype=np.int64)
        numbers, counts = list(self.values), np.fromiter(self.values.values(), dtype=np.int64, count=len(self.values))
        for start in range(0, len(numbers), _CHUNK):
            part = self._bits_of([self.by_number[n].mask for n in numbers[start : start + _CHUNK]])
            found += counts[start : start + _CHUNK] @ part.astype(np.int64)
        return found


def _bits(mask: int) -> Iterable[int]:
    """The set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _pairs(rows: NDArray[np.int64], chosen: NDArray[np.bool_]) -> list[Pair]:
    places = np.argwhere(chosen)
    return [(int(rows[a]), int(b)) for a, b in places]
