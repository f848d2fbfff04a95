"""Values put into and taken out of a state's store: the merge and the extract operator, for many values at once.

Source: Shaabani and Meinel, "Incremental Discovery of Inclusion Dependencies", SSDBM 2017, sections 4.2 and 5: merge
(Definition 4.4, Algorithms 1 to 4) and extract (Definition 4.8, Algorithms 5 and 6). Departures: a change is folded to
one count for each value and attribute before the store is read, so that each value is read and written once however
many rows have it. (Within a change this saves what the paper's ValCache saves. Between changes the store's file stays
mapped into memory, and a read walks down pages that the system caches.) Steps from a cluster to the one with an
attribute more or less are remembered. Counts of values are kept for all clusters, see `kept_clusters`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.ind.kept_clusters import Cluster, KeptClusters
from tuplewise.engine.ind.rows import SortedValues, cut
from tuplewise.engine.ind.store import LONG, LONGEST_NAME, long_key

Counts = dict[int, int]
"""Number of occurrences of a value in each attribute, by attribute number."""
Names = Mapping[bytes, Counts]
"""Values by name: the prefix of their family and their canonical bytes."""

_NARROW = 0xFFFFFFFF
_WORTHWHILE = 64  # values that are changed together
_NUMBER = struct.Struct("<I")
_LONG_ENTRY = struct.Struct("<QI")


@cache
def record_layout(attributes: int, *, wide: bool = False) -> struct.Struct:
    """A value's record: its cluster, then how often each attribute of the cluster holds it, ascending.

    32 bits each, or 64 each (`wide`) if one needs more; the record's length tells which.
    """
    return struct.Struct(f"<I{attributes}{'Q' if wide else 'I'}")


class BelowZero(Exception):
    """A value or row deleted more often than it occurs.

    Attributes
    ----------
    name : the value's name, or the row's key
    attribute : number of the attribute; -1 for a row
    held : number of its occurrences
    """

    def __init__(self, name: bytes, attribute: int, held: int) -> None:
        super().__init__(name, attribute, held)
        self.name, self.attribute, self.held = name, attribute, held


class ValueChanges:
    """Changes to values within one transaction.

    Parameters
    ----------
    transaction : transaction of the store
    clusters : clusters of the state; unchanged, except for new ones without values
    frequencies : False keeps only which attributes hold a value, so that nothing can be deleted
    next_long : number of the next value too long for a key

    Attributes
    ----------
    moved : number of values that each cluster gained (or, below 0, lost)
    """

    def __init__(self, transaction: Any, clusters: KeptClusters, *, frequencies: bool, next_long: int) -> None:
        self._transaction, self._clusters, self._frequencies = transaction, clusters, frequencies
        self.next_long = next_long
        self.moved: Counts = {}
        self._long_names: dict[bytes, bytes] = {}

    def merge(self, names: SortedValues | Names) -> None:
        """Insert values, each with its number of new occurrences in each attribute."""
        if isinstance(names, SortedValues):
            names = self._most(names, 1)
        keyed = self._keyed(names, new=True)
        keys = sorted(keyed)
        found = dict(self._transaction.cursor().getmulti(keys))
        records, rest = self._one_number(keyed, keys, found, 1)
        for key in rest:
            record = found.get(key)
            changed = self._merged(record, keyed[key])
            if changed is not None and changed is not record:
                records.append((key, changed))
        self._transaction.cursor().putmulti(records)

    def extract(self, names: SortedValues | Names) -> None:
        """Delete values. Raises BelowZero if a value occurs too seldom."""
        if isinstance(names, SortedValues):
            names = self._most(names, -1)
        keyed = self._keyed(names, new=False)
        keys = sorted(keyed)
        found = dict(self._transaction.cursor().getmulti(keys))
        records, rest = self._one_number(keyed, keys, found, -1)
        gone = []
        for key in rest:
            counts, record = keyed[key], found.get(key)
            if record is None:
                raise BelowZero(self._long_names.get(key, key), next(iter(counts)), 0)
            left = self._extracted(record, counts, key)
            if left is None:
                gone.append(key)
            else:
                records.append((key, left))
        self._transaction.cursor().putmulti(records)
        for key in gone:
            self._transaction.delete(key)
            if key in self._long_names:
                self._forget(self._long_names[key])

    def _one_number(
        self, keyed: Names, keys: Sequence[bytes], found: Mapping[bytes, bytes], sign: int
    ) -> tuple[list[tuple[bytes, bytes]], Sequence[bytes]]:
        """Records in which a single number changes (most of them), and the keys of the other records."""
        if not self._frequencies:
            return [], keys
        records, rest = [], []
        by_number, number_of = self._clusters.by_number, int.from_bytes
        for key in keys:
            counts, record = keyed[key], found.get(key)
            if record is not None and len(counts) == 1:
                ((attribute, count),) = counts.items()
                cluster = by_number[number_of(record[:4], "little")]
                place = cluster.places.get(attribute)
                if place is not None and len(record) == cluster.record_bytes:
                    held = number_of(record[place : place + 4], "little") + sign * count
                    if 0 < held <= _NARROW:
                        records.append((key, record[:place] + held.to_bytes(4, "little") + record[place + 4 :]))
                        continue
            rest.append(key)
        return records, rest

    def _most(self, values: SortedValues, sign: int) -> Names:
        """Insert (1) or delete (-1), all at once, the values that need no step between clusters; returns the rest.

        These are values of one attribute that appear, disappear, or keep their cluster: most of a large change.
        """
        alone = np.flatnonzero(values.sizes == 1)
        if not self._frequencies or len(alone) < max(1, _WORTHWHILE):
            return values.counts_of(np.arange(len(values.starts)))
        names = values.names.to_pylist()
        keys = [names[i] for i in alone.tolist()]
        if max(map(len, keys)) > LONGEST_NAME:
            short = [i for i, key in enumerate(keys) if len(key) <= LONGEST_NAME]
            alone, keys = alone[short], [keys[i] for i in short]
        entries = values.starts[alone]
        attributes, counts = values.attributes[entries].astype(np.int64), values.counts[entries]
        found = dict(self._transaction.cursor().getmulti(keys))
        records = [found.get(key) for key in keys]
        there = np.array([record is not None for record in records], dtype=np.bool_)
        done = np.zeros(len(keys), dtype=np.bool_)
        changed: list[bytes | None] = [None] * len(keys)
        present = np.flatnonzero(there)
        if len(present):
            old = [records[i] for i in present.tolist()]
            self._stay(old, attributes[present], sign * counts[present], present, changed, done)  # type: ignore[arg-type]
        if sign > 0:
            self._come(np.flatnonzero(~there), attributes, counts, changed, done)
        put = [(key, record) for key, record in zip(keys, changed, strict=True) if record is not None]
        self._transaction.cursor().putmulti(put)
        gone = np.flatnonzero(done & there)
        for i in gone.tolist():
            if changed[i] is None:
                self._transaction.delete(keys[i])
        left = np.ones(len(values.starts), dtype=np.bool_)
        left[alone[done]] = False
        return values.counts_of(np.flatnonzero(left))

    def _stay(
        self,
        records: list[bytes],
        attributes: NDArray[np.int64],
        counts: NDArray[np.int64],
        places: NDArray[np.int64],
        changed: list[bytes | None],
        done: NDArray[np.bool_],
    ) -> None:
        """Change one number of each record whose cluster stays, or whose value is gone (`changed` stays None)."""
        sizes = np.fromiter(map(len, records), dtype=np.int64, count=len(records)) // 4
        ends = np.cumsum(sizes)
        starts = ends - sizes
        words = np.frombuffer(b"".join(records), dtype="<u4").copy()
        numbers = words[starts].astype(np.int64)
        width = len(self._clusters.attributes)
        pairs, which = np.unique(numbers * width + attributes, return_inverse=True)
        shapes = np.zeros((len(pairs), 2), dtype=np.int64)
        for i, pair in enumerate(pairs.tolist()):
            cluster = self._clusters.by_number[pair // width]
            shapes[i] = cluster.places.get(pair % width, 0) // 4, cluster.record_bytes // 4
        slot, whole = shapes[which, 0], shapes[which, 1]
        known = (slot > 0) & (sizes == whole)
        at = np.where(known, starts + slot, starts)
        held = words[at].astype(np.int64) + counts
        stays = known & (held > 0) & (held <= _NARROW)
        words[at[stays]] = held[stays]
        parts = cut(words.tobytes(), 4 * np.append(starts, ends[-1]))
        for i in np.flatnonzero(stays).tolist():
            changed[places[i]] = parts[i]
        gone = known & (held == 0) & (sizes == 2)
        for number, times in zip(*np.unique(numbers[gone], return_counts=True), strict=True):
            self.moved[int(number)] = self.moved.get(int(number), 0) - int(times)
        done[places[stays | gone]] = True

    def _come(
        self,
        new: NDArray[np.int64],
        attributes: NDArray[np.int64],
        counts: NDArray[np.int64],
        changed: list[bytes | None],
        done: NDArray[np.bool_],
    ) -> None:
        """Make the records of new values."""
        new = new[counts[new] <= _NARROW]
        which, places, times = np.unique(attributes[new], return_inverse=True, return_counts=True)
        clusters = [self._clusters.grown(None, attribute).number for attribute in which.tolist()]
        for number, count in zip(clusters, times.tolist(), strict=True):
            self.moved[number] = self.moved.get(number, 0) + count
        words = np.empty((len(new), 2), dtype="<u4")
        words[:, 0] = np.array(clusters, dtype=np.int64)[places]
        words[:, 1] = counts[new]
        for i, record in zip(new.tolist(), cut(words.tobytes(), 8 * np.arange(len(new) + 1)), strict=True):
            changed[i] = record
        done[new] = True

    def _merged(self, record: bytes | None, counts: Counts) -> bytes | None:
        """A value's record (None: a new value) with counts added; the same object if nothing changes."""
        cluster, held = (None, list[int]()) if record is None else self._read(record)
        start = cluster
        for attribute, count in counts.items():
            slot = None if cluster is None else cluster.slots.get(attribute)
            if slot is None:
                cluster = self._clusters.grown(cluster, attribute)
                if self._frequencies:
                    held.insert(cluster.slots[attribute], count)
            elif self._frequencies:
                held[slot] += count
        if cluster is start and not self._frequencies:
            return record
        assert cluster is not None
        self._move(start, cluster)
        return _write(cluster, held)

    def _extracted(self, record: bytes, counts: Counts, key: bytes) -> bytes | None:
        """A value's record with counts subtracted; None if nothing is left."""
        start, held = self._read(record)
        cluster: Cluster | None = start
        for attribute, count in counts.items():
            slot = None if cluster is None else cluster.slots.get(attribute)
            if cluster is None or slot is None or held[slot] < count:
                raise BelowZero(self._long_names.get(key, key), attribute, 0 if slot is None else held[slot])
            if held[slot] > count:
                held[slot] -= count
            else:
                cluster = self._clusters.shrunk(cluster, attribute)
                del held[slot]
        self._move(start, cluster)
        return None if cluster is None else _write(cluster, held)

    def _read(self, record: bytes) -> tuple[Cluster, list[int]]:
        """The cluster of a record, and the occurrences in each of its attributes (empty: not kept)."""
        (number,) = _NUMBER.unpack_from(record)
        cluster = self._clusters.by_number[number]
        if not self._frequencies:
            return cluster, []
        attributes = len(cluster.members)
        wide = len(record) != 4 + 4 * attributes
        return cluster, list(record_layout(attributes, wide=wide).unpack(record))[1:]

    def _move(self, start: Cluster | None, end: Cluster | None) -> None:
        if start is end:
            return
        if start is not None:
            self.moved[start.number] = self.moved.get(start.number, 0) - 1
        if end is not None:
            self.moved[end.number] = self.moved.get(end.number, 0) + 1

    def _keyed(self, names: Names, *, new: bool) -> Names:
        """Counts by the store's key of each name. `new`: assign numbers to new long values."""
        if not names or len(max(names, key=len)) <= LONGEST_NAME:
            return names
        keyed = {}
        for name, counts in names.items():
            key = name
            if len(name) > LONGEST_NAME:
                number = self._long(name, new)
                if number is None:
                    raise BelowZero(name, next(iter(counts)), 0)
                key = long_key(name, number)
                self._long_names[key] = name
            keyed[key] = counts
        return keyed

    def _long(self, name: bytes, new: bool) -> int | None:
        """The number of a long value, found by its hash, then by all its bytes."""
        key = long_hash(name)
        bucket = self._transaction.get(key) or b""
        for number, held in long_entries(bucket):
            if held == name:
                return number
        if not new:
            return None
        number, self.next_long = self.next_long, self.next_long + 1
        self._transaction.put(key, bucket + long_entry(number, name))
        return number

    def _forget(self, name: bytes) -> None:
        key = long_hash(name)
        left = [long_entry(n, held) for n, held in long_entries(self._transaction.get(key)) if held != name]
        if left:
            self._transaction.put(key, b"".join(left))
        else:
            self._transaction.delete(key)


def _write(cluster: Cluster, held: Sequence[int]) -> bytes:
    try:
        return record_layout(len(held)).pack(cluster.number, *held)
    except struct.error:
        return record_layout(len(held), wide=True).pack(cluster.number, *held)


def long_hash(name: bytes) -> bytes:
    """The key of the long values with one hash."""
    return LONG + hashlib.blake2b(name, digest_size=16).digest()


def long_entry(number: int, name: bytes) -> bytes:
    return _LONG_ENTRY.pack(number, len(name)) + name


def long_entries(bucket: bytes) -> list[tuple[int, bytes]]:
    """The long values with one hash, and their numbers."""
    entries, at = [], 0
    while at < len(bucket):
        number, size = _LONG_ENTRY.unpack_from(bucket, at)
        at += _LONG_ENTRY.size
        entries.append((number, bucket[at : at + size]))
        at += size
    return entries


_TIMES = struct.Struct("<Q")


def merge_rows(transaction: Any, keys: Mapping[bytes, int]) -> None:
    """Add to the counts of rows, by key."""
    found = dict(transaction.cursor().getmulti(list(keys)))
    records = sorted((k, _TIMES.pack(n + (_TIMES.unpack(found[k])[0] if k in found else 0))) for k, n in keys.items())
    transaction.cursor().putmulti(records)


def extract_rows(transaction: Any, keys: Mapping[bytes, int]) -> None:
    """Subtract from the counts of rows. Raises BelowZero if a row occurs too seldom."""
    found = dict(transaction.cursor().getmulti(list(keys)))
    records = []
    for key, count in keys.items():
        held = _TIMES.unpack(found[key])[0] if key in found else 0
        if held < count:
            raise BelowZero(key, -1, held)
        if held > count:
            records.append((key, _TIMES.pack(held - count)))
        else:
            transaction.delete(key)
    transaction.cursor().putmulti(sorted(records))
