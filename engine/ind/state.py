"""A state: the unary INDs of some tables in a folder, kept current as rows are inserted and deleted.

The folder holds `state.json` (tables, columns and their types, options: fixed when the state is built), LMDB's file
(`store`), and two lock files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message, shortened
from tuplewise.engine.ind.dependency import InclusionDependency, unary
from tuplewise.engine.ind.found import FoundInd, FoundInds, TableFound
from tuplewise.engine.ind.incremental import BelowZero, ValueChanges, extract_rows, merge_rows
from tuplewise.engine.ind.kept_clusters import KeptClusters, Pair
from tuplewise.engine.ind.manifest import Manifest
from tuplewise.engine.ind.rows import Attributes, ColumnRows, PlainRows, TypedRows
from tuplewise.engine.ind.store import (
    CLUSTER,
    META,
    Store,
    cluster_of,
    heading,
    heading_numbers,
    mask_bytes,
    put_cluster,
    value_text,
)
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions
from tuplewise.engine.state_folders import INDS, ClosedOnExit, WriterLock, damaged, real_folder
from tuplewise.engine.table.read_table import fit_types, left_out_note
from tuplewise.engine.table.reader import read_columns
from tuplewise.engine.table.relation import Column
from tuplewise.engine.table.rows import plain_rows

Kind = Literal["insert", "delete"]


@dataclass(frozen=True)
class Change:
    """Rows to insert into a table, or to delete from it."""

    kind: Kind
    attributes: Attributes
    rows: TypedRows


@dataclass(frozen=True)
class ReadRows:
    """Rows for a table, and notes from reading them."""

    attributes: Attributes
    rows: TypedRows
    notes: tuple[str, ...]


def update_of(old: ReadRows, new: ReadRows) -> list[Change]:
    """Changes that replace old rows by new ones, in the same order. Raises InputError if their numbers differ."""
    if old.rows.count != new.rows.count:
        counts = f"{old.rows.count} old, {new.rows.count} new"
        raise InputError(message("an update has not as many new rows as old ones", counts, hint=NOTHING))
    return [Change("delete", old.attributes, old.rows), Change("insert", new.attributes, new.rows)]


@dataclass(frozen=True)
class Applied:
    """Effects of a revision.

    Attributes
    ----------
    gained, lost : dependencies newly listed, and no longer listed. An attribute without values is included everywhere,
        so its dependencies are not listed.
    rows : number of rows of each table
    notes : notes from reading the rows
    """

    revision: int
    gained: tuple[InclusionDependency, ...]
    lost: tuple[InclusionDependency, ...]
    rows: Mapping[str, int]
    notes: tuple[str, ...] = ()


class IndState(ClosedOnExit):
    """An open state.

    Parameters
    ----------
    folder : made by `initial.build`
    write : whether changes will be applied; other processes may then read, but not write

    Attributes
    ----------
    manifest : the fixed part of the state
    revision : number of changes since the build

    Raises
    ------
    InputError
        If the folder is no state, is damaged, of another version, or in use by another writer.

    Notes
    -----
    Opening costs one pass over the clusters. A change costs a read and a write for each distinct value of each
    attribute, whatever the size of the tables (a walk down the height of a B-tree).
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool = True) -> None:
        self.folder = real_folder(folder)
        self.manifest = Manifest.read(self.folder)
        self._tables: dict[str | None, Attributes] = {}
        self._lock = WriterLock(self.folder, INDS) if write else None
        try:
            self._store = Store(self.folder, sync=self.manifest.options.sync, write=write)
            try:
                self._store.read(self._load)
            except BaseException:
                self._store.close()
                raise
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        self._open = True

    def _load(self, transaction: Any) -> None:
        attributes, families = self.manifest.attributes, self.manifest.families
        tables = len(self.manifest.tables)
        heading = transaction.get(META)
        width = mask_bytes(len(attributes))
        if heading is None or len(heading) != 8 * (2 + tables + len(attributes)):
            raise damaged(self.folder, "the store has no heading", INDS)
        self.revision, self._next_long, *rows = heading_numbers(heading)
        self._rows, self._filled = rows[:tables], rows[tables:]
        counts: dict[int, tuple[int, int]] = {}
        cursor = transaction.cursor()
        if cursor.set_range(CLUSTER):
            for key, record in cursor:
                if key[:1] != CLUSTER:
                    break
                if len(key) != 5 or len(record) != 8 + width:
                    raise damaged(self.folder, "the store holds a cluster that can't be read", INDS)
                counts[int.from_bytes(key[1:], "big")] = cluster_of(record)
        self._clusters = KeptClusters(attributes, families, counts)

    def close(self) -> None:
        """Release the folder. May be called again."""
        if self._open:
            self._open = False
            self._store.close()
            if self._lock is not None:
                self._lock.release()

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table."""
        return {table.name: rows for table, rows in zip(self.manifest.tables, self._rows, strict=True)}

    @property
    def used_bytes(self) -> int:
        """Bytes of the store in use or used before."""
        return self._store.used_bytes

    def found(self) -> FoundInds:
        """The dependencies that hold, equal to those of a discovery on the same rows."""
        clusters = self._clusters
        return found_in_state(self.manifest, clusters.holds, clusters.distinct, self._rows, self._filled)

    def read_rows(
        self, source: Any, table: str | None = None, load_options: LoadOptions | None = None, *, leave_out: bool = False
    ) -> ReadRows:
        """Read rows for a table of the state, with columns matched by name.

        Parameters
        ----------
        source : path, frame or Relation; a mapping by column names; or a list of mappings, or of sequences of values
        table : None: the only one
        leave_out : leave out rows with a value that doesn't fit its column's type

        Raises
        ------
        InputError
            If columns are missing or unknown, or a value doesn't fit (with its row and column).
        """
        attributes = self._tables.get(table)
        if attributes is None:
            attributes = self._tables[table] = self.manifest.table(table)
        given = plain_rows(source)
        if given is not None:
            rows = PlainRows(given, attributes, self.manifest.null_tokens, leave_out=leave_out)
            return ReadRows(attributes, rows, left_out_note(rows.left_out, "row {}".format))
        name = self.manifest.tables[attributes.table].name
        what = f"the rows for table {name!r}"
        read = read_columns(source, attributes.names, load_options or LoadOptions(), name, what)
        fitting = fit_types(read, attributes.types, self.manifest.null_tokens, leave_out=leave_out)
        return ReadRows(attributes, ColumnRows(fitting, attributes), fitting.notes)

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Delete and insert rows, as one revision. Only rows present before it can be deleted.

        Raises
        ------
        InputError
            If the state is closed or read-only, or a row to delete isn't there. Nothing is then changed.
        """
        self._check_open(changes)
        ordered = sorted(changes, key=lambda change: change.kind != "delete")
        tallies = [(change, change.rows.tally(), self._tracked(change)) for change in ordered]
        filled, left, absent = list(self._filled), list(self._rows), None
        for change in ordered:
            sign = 1 if change.kind == "insert" else -1
            for attribute, count in enumerate(change.rows.filled(), start=change.attributes.first):
                filled[attribute] += sign * count
            left[change.attributes.table] += sign * change.rows.count
            absent = absent or absent_nulls(self.manifest, change.attributes, filled, left[change.attributes.table])

        def work(transaction: Any) -> tuple[ValueChanges, list[int]]:
            value_changes = ValueChanges(
                transaction, self._clusters, frequencies=not self.manifest.options.insert_only,
                next_long=self._next_long,
            )  # fmt: skip
            rows = list(self._rows)
            for change, names, keys in tallies:
                self._fold_change(transaction, value_changes, rows, change, names, keys)
            if absent is not None:
                raise absent
            values = self._clusters.values
            for number, by in value_changes.moved.items():
                if by:
                    mask = self._clusters.by_number[number].mask
                    put_cluster(transaction, number, mask, values.get(number, 0) + by, len(self._clusters.attributes))
            transaction.put(META, heading(self.revision + 1, value_changes.next_long, rows, filled))
            return value_changes, rows

        try:
            value_changes, self._rows = self._store.write(work)
            self._next_long, self._filled = value_changes.next_long, filled
            self.revision += 1
            gained, lost = self._clusters.change({n: by for n, by in value_changes.moved.items() if by})
        except InputError:
            raise
        except BaseException:  # Ctrl-C may come once the revision is written but not yet fully known here
            self._store.read(self._load)
            raise
        return Applied(self.revision, self._inds(gained), self._inds(lost), self.rows)

    def _check_open(self, changes: Sequence[Change]) -> None:
        if not self._open or self._lock is None:
            fault = "is closed" if not self._open else "was opened to be read only"
            raise InputError(message(f"the state {fault}", str(self.folder), hint="Open it again"))
        if self.manifest.options.insert_only and any(change.kind == "delete" for change in changes):
            hint = Wording("Build it again without {insert_only}: it keeps no frequencies of values")
            raise InputError(message("this state takes no deletes and no updates", hint=hint))

    def _tracked(self, change: Change) -> dict[bytes, int]:
        """Number of occurrences of each row in a change, by row key; empty if rows are not tracked."""
        counts: dict[bytes, int] = {}
        if self.manifest.options.track_rows:
            for key in change.rows.hashes():
                counts[key] = counts.get(key, 0) + 1
        return counts

    def _fold_change(
        self,
        transaction: Any,
        value_changes: ValueChanges,
        rows: list[int],
        change: Change,
        names: Any,
        keys: Mapping[bytes, int],
    ) -> None:
        table = change.attributes.table
        if change.kind == "insert":
            rows[table] += change.rows.count
            value_changes.merge(names)
            if keys:
                merge_rows(transaction, keys)
            return
        try:
            value_changes.extract(names)
            if keys:
                extract_rows(transaction, keys)
        except BelowZero as below:
            raise self._below_zero(change, below) from None
        if rows[table] < change.rows.count:
            name = self.manifest.tables[table].name
            gone = change.rows.count
            raise InputError(message(f"table {name!r} has {rows[table]} rows; to delete", gone, hint=NOTHING))
        rows[table] -= change.rows.count

    def _below_zero(self, change: Change, below: BelowZero) -> InputError:
        table = self.manifest.tables[change.attributes.table].name
        held = "none" if below.held == 0 else f"only {below.held}"
        if below.attribute < 0:
            found = [row for row, key in enumerate(change.rows.hashes()) if key == below.name]
            place = change.rows.locate(found[below.held])
            fault = f"table {table!r}: {place} to delete is not in the table ({held} of it)"
            return InputError(message(fault, hint=NOTHING))
        column = below.attribute - change.attributes.first
        type_ = change.attributes.types[column]
        place = change.rows.place(below.name, below.attribute, below.held)
        fault = f"table {table!r}, column {change.attributes.names[column]!r}: {place} to delete has a value that"
        fault += f" the column does not have so often ({held} left)"
        return InputError(message(fault, shortened(value_text(below.name, type_)), hint=NOTHING))

    def _inds(self, pairs: Sequence[Pair]) -> tuple[InclusionDependency, ...]:
        attributes = self._clusters.attributes
        return tuple(unary(attributes[a], attributes[b]) for a, b in pairs)


NOTHING = "Nothing was applied"


def found_in_state(
    manifest: Manifest,
    holds: NDArray[np.bool_],
    distinct: NDArray[np.int64],
    rows: Sequence[int],
    filled: Sequence[int],
) -> FoundInds:
    """The dependencies in a state's clusters.

    Parameters
    ----------
    holds : bool (attributes, attributes), whether a is included in b. Entries with a = b, or with an a without values,
        are ignored.
    distinct : int64 (attributes,), number of distinct values of each
    rows, filled : rows of each table, and non-null rows of each attribute
    """
    attributes, values, first = manifest.attributes, distinct.tolist(), 0
    inds = tuple(
        FoundInd(unary(attributes[a], attributes[b]), values[a], values[b], 0)
        for a, b in np.argwhere(holds).tolist()
        if a != b and values[a]
    )
    tables = []
    for table, count in zip(manifest.tables, rows, strict=True):
        columns = tuple(
            Column(c.name, c.type, c.why, values[first + i], count - filled[first + i])
            for i, c in enumerate(table.columns)
        )
        tables.append(TableFound(table.name, table.path, count, columns))
        first += len(columns)
    return FoundInds(
        tables=tuple(tables),
        attributes=attributes,
        inds=inds,
        trivial=values.count(0) * (len(values) - 1),
        options=IndDiscoverOptions(as_text=manifest.options.as_text),
        work="driver",
        work_reason="the state keeps the clusters of all values",
        device="cpu",
        device_reason="only counts of clusters are added up",
        timings_seconds={},
    )


def absent_nulls(manifest: Manifest, attributes: Attributes, filled: Sequence[int], rows: int) -> InputError | None:
    """The error for a change that deletes more nulls than a table has: it would leave more values than rows.

    `filled`: non-null rows of each attribute of the state; `rows`: rows of the table; both after the change.
    """
    for attribute, name in enumerate(attributes.names, start=attributes.first):
        if filled[attribute] > rows:
            many = filled[attribute] - rows
            fault = f"table {manifest.tables[attributes.table].name!r}, column {name!r}: "
            fault += f"{many} more rows to delete have no value than the table has"
            return InputError(message(fault, hint=NOTHING))
    return None
