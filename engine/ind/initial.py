"""Build of a state from tables: all values with their frequencies are sorted and appended, not inserted one by one.

The folder is built next to its final place and renamed once it is complete and on disk. An interrupted build thus
leaves no half-built state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import placed
from tuplewise.engine.ind.incremental import long_entry, long_hash, record_layout
from tuplewise.engine.ind.manifest import KeptTable, Manifest
from tuplewise.engine.ind.rows import ColumnRows, SortedValues, cut
from tuplewise.engine.ind.store import LONGEST_NAME, META, Store, heading, long_key, put_cluster
from tuplewise.engine.ind.tables import options_of_tables
from tuplewise.engine.options import IndStateOptions, LoadOptions
from tuplewise.engine.state_folders import INDS, beside, real_folder
from tuplewise.engine.table.read_table import typed
from tuplewise.engine.table.reader import read_table
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.text_types import note_on_no_values
from tuplewise.gpu_kernels.inclusion import BITS
from tuplewise.gpu_kernels.words import mask_words

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 200_000
_NARROW = 0xFFFFFFFF
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Built:
    """Result of a build.

    Attributes
    ----------
    values : number of distinct values of all families
    notes : notes from reading, each prefixed with the name of its table
    """

    folder: Path
    values: int
    notes: tuple[str, ...]
    spark: Mapping[str, str] | None


def build(
    folder: str | os.PathLike[str],
    tables: Mapping[str, Any],
    options: IndStateOptions,
    load_options: LoadOptions | None = None,
    *,
    written_by: str,
    progress: Progress | None = None,
) -> Built:
    """Build a state of some tables.

    Parameters
    ----------
    folder : a folder that does not exist or is empty
    tables : paths, frames or Relations by name, see `name_tables`
    written_by : version to record in the state

    Raises
    ------
    InputError
        If the folder is not empty, a table can't be read, or the disk is full.

    Notes
    -----
    Cost: hashing the values of each column (Arrow), sorting the distinct ones of all columns, and appending them to the
    store in order. Memory: one table's values and the distinct values of all columns, about three times over.
    """
    target = real_folder(folder)
    report = progress or (lambda step: None)
    with beside(target, INDS) as place:
        load_options = load_options or LoadOptions()
        of_tables = options_of_tables(tables, load_options)
        gathered = _Gathered(options)
        kept: list[KeptTable] = []
        rows: list[int] = []
        filled: list[int] = []
        notes: list[str] = []
        spark = None
        for number, (name, source) in enumerate(tables.items()):
            report(f"reading {name}")
            own = of_tables[name]
            table = typed(read_table(source, own, name), own, as_text=options.as_text)
            inferred = zip(table.columns, table.inferred, strict=True)
            empty = [note_on_no_values(c.name) for c, text in inferred if text and not len(c.values)]
            notes += placed(name, (*table.notes, *empty))
            columns = tuple(KeptColumn(c.name, c.type, c.why) for c in table.columns)
            kept.append(KeptTable(name, table.path, columns))
            rows.append(table.rows)
            spark = spark or table.spark
            manifest = Manifest(tuple(kept), options, load_options.null_tokens, written_by)
            columns_rows = ColumnRows(table, replace(manifest.table(name), table=number))
            filled.extend(columns_rows.filled())
            gathered.take(columns_rows)
            del table, columns_rows
        values = _fill(place, manifest, gathered, (rows, filled), report)
        manifest.write(place)
    return Built(target, values, tuple(notes), spark)


class _Gathered:
    """Names of the values of all columns, their counts per column, and the hashes of rows."""

    def __init__(self, options: IndStateOptions) -> None:
        self._options = options
        self.names: list[pa.Array] = []
        self.attributes: list[NDArray[np.int32]] = []
        self.counts: list[NDArray[np.int64]] = []
        self.row_keys: list[tuple[bytes, NDArray[np.uint64]]] = []

    def take(self, rows: ColumnRows) -> None:
        for attribute, names, counts in rows.columns():
            self.names.append(names)
            self.attributes.append(np.full(len(names), attribute, dtype=np.int32))
            self.counts.append(counts)
        if self._options.track_rows:
            keys, parts, prefix = rows.hashes(), [], b""
            while some := list(islice(keys, _AT_ONCE)):
                prefix = some[0][:-16]
                parts.append(np.frombuffer(b"".join([key[-16:] for key in some]), dtype=">u8").astype(np.uint64))
            if parts:
                self.row_keys.append((prefix, np.concatenate(parts).reshape(-1, 2)))


def _clusters(values: SortedValues, words: int) -> tuple[NDArray[np.int64], list[int], list[int]]:
    """The cluster number of each value, and the mask and number of values of each cluster."""
    masks = np.zeros((len(values.starts), words), dtype=np.uint64)
    bit = np.uint64(1) << (values.attributes % BITS).astype(np.uint64)
    for word in range(words if len(values.starts) else 0):
        own = np.where(values.attributes // BITS == word, bit, np.uint64(0))
        masks[:, word] = np.bitwise_or.reduceat(own, values.starts)
    if words == 1:
        found, numbers, held = np.unique(masks[:, 0], return_inverse=True, return_counts=True)
    else:
        found, numbers, held = np.unique(masks, axis=0, return_inverse=True, return_counts=True)
    whole = [int.from_bytes(mask.astype("<u8").tobytes(), "little") for mask in found]
    return numbers.reshape(-1), whole, held.tolist()


def _records(
    values: SortedValues, numbers: NDArray[np.int64], start: int, stop: int, insert_only: bool
) -> list[bytes]:
    """The records of some values, given their cluster numbers."""
    if insert_only:
        return cut(numbers[start:stop].astype("<u4").tobytes(), np.arange(stop - start + 1) * 4)
    ends = np.append(values.starts, len(values.attributes))[start + 1 : stop + 1]
    first = int(values.starts[start])
    counts = values.counts[first : int(ends[-1])]
    flat = np.empty(len(counts) + stop - start, dtype="<u4")
    heads = values.starts[start:stop] - first + np.arange(stop - start)
    is_head = np.zeros(len(flat), dtype=np.bool_)
    is_head[heads] = True
    flat[heads] = numbers[start:stop]
    flat[~is_head] = counts.astype("<u4")
    records = cut(flat.tobytes(), np.append(heads, len(flat)) * 4)
    for entry in np.flatnonzero(counts > _NARROW):  # more than 32 bits
        value = int(np.searchsorted(values.starts, first + entry, side="right")) - 1
        own = values.counts[values.starts[value] : int(ends[value - start])].tolist()
        records[value - start] = record_layout(len(own), wide=True).pack(int(numbers[value]), *own)
    return records


def _fill(
    place: Path, manifest: Manifest, gathered: _Gathered, rows: tuple[list[int], list[int]], report: Progress
) -> int:
    """Write the store; returns its number of values. `rows`: of each table, and non-null rows of each attribute."""
    report("sorting values")
    values = SortedValues.of(gathered.names, gathered.attributes, gathered.counts)
    gathered.names.clear()
    attributes = len(manifest.attributes)
    numbers, masks, held = _clusters(values, mask_words(attributes))
    report("writing the state")
    store = Store(place)
    with closing(store):
        entry_bytes = 4 if not manifest.options.insert_only else 0
        tracked = sum(len(hashes) for _, hashes in gathered.row_keys)
        store.reserve(values.names.nbytes + 16 * len(numbers) + entry_bytes * len(values.counts) + 40 * tracked)
        long: list[tuple[bytes, bytes]] = []
        for part in _appended(values, numbers, manifest.options.insert_only, gathered.row_keys, long):
            store.write(partial(_append, records=part))
        store.write(partial(_put_long, records=long))

        def head(transaction: Any) -> None:
            for number, (mask, count) in enumerate(zip(masks, held, strict=True)):
                put_cluster(transaction, number, mask, count, attributes)
            transaction.put(META, heading(0, len(long), *rows))

        store.write(head)
        store.sync()
    return len(numbers)


Record = tuple[bytes, bytes]


def _appended(
    values: SortedValues,
    numbers: NDArray[np.int64],
    insert_only: bool,
    row_keys: Sequence[tuple[bytes, NDArray[np.uint64]]],
    long: list[Record],
) -> Iterator[list[Record]]:
    """Records of rows and values in key order, in parts. Records of values with long names go to `long`."""
    for prefix, hashes in row_keys:
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
        hashes = hashes[order]
        new = np.ones(len(hashes), dtype=np.bool_)
        new[1:] = (hashes[1:] != hashes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        times = np.diff(np.append(first, len(hashes))).astype("<u8")
        for start in range(0, len(first), _AT_ONCE):
            part = hashes[first[start : start + _AT_ONCE]].astype(">u8").tobytes()
            keys = [prefix + part[i : i + 16] for i in range(0, len(part), 16)]
            counts = cut(times[start : start + _AT_ONCE].tobytes(), np.arange(len(keys) + 1) * 8)
            yield list(zip(keys, counts, strict=True))
    for start in range(0, len(numbers), _AT_ONCE):
        stop = min(start + _AT_ONCE, len(numbers))
        names = values.names.slice(start, stop - start).to_pylist()
        records = list(zip(names, _records(values, numbers, start, stop, insert_only), strict=True))
        if max(map(len, names)) > LONGEST_NAME:
            long.extend(record for record in records if len(record[0]) > LONGEST_NAME)
            records = [record for record in records if len(record[0]) <= LONGEST_NAME]
        yield records


def _append(transaction: Any, records: list[Record]) -> None:
    if records:
        transaction.cursor().putmulti(records, append=True)


def _put_long(transaction: Any, records: Sequence[Record]) -> None:
    """Store values too long for a key: number them, and file their names under their hashes."""
    for number, (name, record) in enumerate(records):
        key = long_hash(name)
        transaction.put(key, (transaction.get(key) or b"") + long_entry(number, name))
        transaction.put(long_key(name, number), record)
