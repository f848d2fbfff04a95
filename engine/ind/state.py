"""A state: the unary INDs of some tables in a folder, kept current as rows come and go.

The folder holds `state.json` (tables, columns and their types, options: fixed when the state is built), LMDB's file
(`store`), and two files of locks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency, unary
from tuplewise.engine.ind.discover import unary_inds
from tuplewise.engine.ind.found import FoundInd
from tuplewise.engine.ind.incremental import BelowZero, Fold, extract_rows, merge_rows
from tuplewise.engine.ind.kept_clusters import KeptClusters, Pair
from tuplewise.engine.ind.rows import Attributes, Rows
from tuplewise.engine.ind.store import CLUSTER, META, Store, WriterLock, damaged
from tuplewise.engine.ind.values import FAMILIES, Family, family_of
from tuplewise.engine.options import IndStateOptions
from tuplewise.engine.relation.relation import DOMAIN_OF_TYPE, TypeName

FORMAT = 1
"""Version of what a folder holds; another number with every change to it."""
MANIFEST = "state.json"
KIND = "tuplewise inclusion dependencies"
_WORD_BYTES = 8


@dataclass(frozen=True)
class KeptColumn:
    name: str
    type: TypeName
    why: str


@dataclass(frozen=True)
class KeptTable:
    """A table of a state. `path`: what it was built from, None for tables in memory."""

    name: str
    path: str | None
    columns: tuple[KeptColumn, ...]


@dataclass(frozen=True)
class Manifest:
    """What is fixed when a state is built."""

    tables: tuple[KeptTable, ...]
    options: IndStateOptions
    null_tokens: tuple[str, ...]
    written_by: str

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """All columns, tables in order."""
        return tuple(Attribute(table.name, column.name) for table in self.tables for column in table.columns)

    @property
    def families(self) -> tuple[Family, ...]:
        """What the values of each attribute are compared with."""
        return tuple(family_of(c.type, self.options.as_text) for table in self.tables for c in table.columns)

    def table(self, name: str | None) -> Attributes:
        """The columns of a table, None: of the only one. Raises InputError with near names where there is none."""
        names = [table.name for table in self.tables]
        if name is None and len(names) > 1:
            hint = "Name the table: --table NAME"
            raise InputError(message("the state has several tables", ", ".join(names), hint=hint))
        if name is not None and name not in names:
            raise InputError(message("the state has no table of the name", name, hint=near_names(name, names)))
        number = 0 if name is None else names.index(name)
        columns = self.tables[number].columns
        return Attributes(
            table=number,
            first=sum(len(table.columns) for table in self.tables[:number]),
            names=tuple(c.name for c in columns),
            types=tuple(c.type for c in columns),
            families=tuple(family_of(c.type, self.options.as_text) for c in columns),
        )

    def write(self, folder: Path) -> None:
        """Write it, and hand it to the disk."""
        record = {"kind": KIND, "format": FORMAT, **asdict(self)}
        with (folder / MANIFEST).open("w", encoding="utf-8") as stream:
            json.dump(record, stream, indent=1, ensure_ascii=False)
            stream.flush()
            os.fsync(stream.fileno())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Raises InputError where the folder is no state, is damaged, or is of another version."""
        record = _record(folder)
        if record.get("format") != FORMAT:
            hint = "Use the version that wrote it, or build it again from the tables: tuplewise ind init"
            written = f"format {record.get('format')!r}, written by tuplewise {record.get('written_by')}"
            fault = f"the state {str(folder)!r} is of another version"
            raise InputError(message(fault, written, f"format {FORMAT}", hint))
        try:
            tables = tuple(
                KeptTable(t["name"], t["path"], tuple(KeptColumn(**column) for column in t["columns"]))
                for t in record["tables"]
            )
            options = IndStateOptions(**record["options"])
            manifest = cls(tables, options, tuple(record["null_tokens"]), str(record["written_by"]))
            known = all(c.type in DOMAIN_OF_TYPE for table in tables for c in table.columns)
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise damaged(folder, f"{MANIFEST} can't be read: {error}") from error
        if not known or not tables or not all(table.columns for table in tables):
            raise damaged(folder, f"{MANIFEST} names no tables, or types that aren't known")
        return manifest


def _record(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InputError(message("no such state", str(folder), "a folder that ind init made"))
    path = folder / MANIFEST
    hint = "Name the folder that ind init made"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(message(f"this folder is not a state: it has no {MANIFEST}", str(folder), hint=hint)) from None
    except (OSError, ValueError) as error:
        raise damaged(folder, f"{MANIFEST} can't be read: {error}") from error
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise InputError(message("this folder is not a state of inclusion dependencies", str(folder), hint=hint))
    return record


@dataclass(frozen=True)
class Change:
    """Rows that come to a table, or go."""

    kind: Literal["insert", "delete"]
    attributes: Attributes
    rows: Rows


@dataclass(frozen=True)
class Applied:
    """What a revision brought.

    Attributes
    ----------
    gained, lost : dependencies that are listed now and were not before, and the other way round; of an attribute that
        has lost its last value no dependency is listed: it is included everywhere
    rows : of each table
    """

    revision: int
    gained: tuple[InclusionDependency, ...]
    lost: tuple[InclusionDependency, ...]
    rows: Mapping[str, int]


class IndState:
    """An open state.

    Parameters
    ----------
    folder : that `initial.build` made
    write : whether rows are to be applied; other processes may then read, not write

    Attributes
    ----------
    manifest : what was fixed when it was built
    revision : 0 when it was built, one more with every change

    Raises
    ------
    InputError
        Where the folder is no state, is damaged, of another version, or written by another process.

    Notes
    -----
    Opening costs one pass over the clusters. A change costs a read and a write for each different value of each
    attribute, whatever the size of the tables (a walk of the height of a B-tree).
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool = True) -> None:
        self.folder = Path(os.path.realpath(os.path.expanduser(os.fspath(folder))))
        self.manifest = Manifest.read(self.folder)
        self._lock = WriterLock(self.folder) if write else None
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
        if heading is None or len(heading) != 8 * (2 + tables):
            raise damaged(self.folder, "the store has no heading")
        self.revision, self._next_long, *self._rows = heading_numbers(heading)
        counts: dict[int, tuple[int, int]] = {}
        cursor = transaction.cursor()
        if cursor.set_range(CLUSTER):
            for key, record in cursor:
                if key[:1] != CLUSTER:
                    break
                if len(key) != 5 or len(record) != 8 + width:
                    raise damaged(self.folder, "the store holds a cluster that can't be read")
                counts[int.from_bytes(key[1:], "big")] = cluster_of(record)
        self._clusters = KeptClusters(attributes, families, counts)

    def close(self) -> None:
        """Let go of the folder. May be called again."""
        if self._open:
            self._open = False
            self._store.close()
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {table.name: rows for table, rows in zip(self.manifest.tables, self._rows, strict=True)}

    @property
    def used_bytes(self) -> int:
        """Bytes of the store that hold something or did."""
        return self._store.used_bytes

    @property
    def clusters(self) -> KeptClusters:
        return self._clusters

    def found(self) -> tuple[list[FoundInd], int]:
        """The dependencies that hold, in result order, and how many there are of attributes without values."""
        return unary_inds(self._clusters.clustering())

    def apply(self, changes: Sequence[Change]) -> Applied:
        """Take rows away and add rows, as one revision: rows that go are of those that were there before.

        Raises
        ------
        InputError
            Where the state is closed or only read, or a row that goes isn't there; nothing is then changed.
        """
        self._check_open(changes)
        ordered = sorted(changes, key=lambda change: change.kind != "delete")
        tallies = [(change, change.rows.tally(), self._tracked(change)) for change in ordered]

        def work(transaction: Any) -> tuple[Fold, list[int]]:
            fold = Fold(
                transaction, self._clusters, frequencies=not self.manifest.options.insert_only,
                next_long=self._next_long,
            )  # fmt: skip
            rows = list(self._rows)
            for change, names, keys in tallies:
                self._fold_change(transaction, fold, rows, change, names, keys)
            values = self._clusters.values
            for number, by in fold.moved.items():
                if by:
                    mask = self._clusters.by_number[number].mask
                    put_cluster(transaction, number, mask, values.get(number, 0) + by, len(self._clusters.attributes))
            transaction.put(META, heading(self.revision + 1, fold.next_long, rows))
            return fold, rows

        fold, self._rows = self._store.write(work)
        self._next_long = fold.next_long
        self.revision += 1
        gained, lost = self._clusters.change({n: by for n, by in fold.moved.items() if by})
        return Applied(self.revision, self._inds(gained), self._inds(lost), self.rows)

    def _check_open(self, changes: Sequence[Change]) -> None:
        if not self._open or self._lock is None:
            fault = "is closed" if not self._open else "was opened to be read only"
            raise InputError(message(f"the state {fault}", str(self.folder), hint="Open it again"))
        if self.manifest.options.insert_only and any(change.kind == "delete" for change in changes):
            hint = "Build it again without --insert-only: it keeps no frequencies of values"
            raise InputError(message("this state takes no deletes and no updates", "--insert-only", hint=hint))

    def _tracked(self, change: Change) -> dict[bytes, int]:
        """How often each row occurs in a change, by its key; nothing where rows are not tracked."""
        counts: dict[bytes, int] = {}
        if self.manifest.options.track_rows:
            for key in change.rows.hashes():
                counts[key] = counts.get(key, 0) + 1
        return counts

    def _fold_change(
        self, transaction: Any, fold: Fold, rows: list[int], change: Change, names: Any, keys: Mapping[bytes, int]
    ) -> None:
        table = change.attributes.table
        if change.kind == "insert":
            rows[table] += change.rows.count
            fold.merge(names)
            if keys:
                merge_rows(transaction, keys)
            return
        try:
            fold.extract(names)
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
        shown = value_text(below.name, type_)
        place = change.rows.place(below.name, below.attribute, below.held)
        fault = f"table {table!r}, column {change.attributes.names[column]!r}: {place} to delete has a value that"
        fault += f" the column does not have so often ({held} left)"
        return InputError(message(fault, shown if len(shown) <= 80 else shown[:77] + "...", hint=NOTHING))

    def _inds(self, pairs: Sequence[Pair]) -> tuple[InclusionDependency, ...]:
        attributes = self._clusters.attributes
        return tuple(unary(attributes[a], attributes[b]) for a, b in pairs)


NOTHING = "Nothing was applied"


def mask_bytes(attributes: int) -> int:
    """Bytes of a cluster's mask in the store."""
    return -(-attributes // _WORD_BYTES)


def put_cluster(transaction: Any, number: int, mask: int, values: int, attributes: int) -> None:
    """Write how many values a cluster holds; no cluster without values stands in the store."""
    key = CLUSTER + number.to_bytes(4, "big")
    if values:
        transaction.put(key, values.to_bytes(8, "little") + mask.to_bytes(mask_bytes(attributes), "little"))
    else:
        transaction.delete(key)


def cluster_of(record: bytes) -> tuple[int, int]:
    """Mask and values of a cluster's record."""
    return int.from_bytes(record[8:], "little"), int.from_bytes(record[:8], "little")


def heading(revision: int, next_long: int, rows: Sequence[int]) -> bytes:
    """The record of META."""
    return np.array([revision, next_long, *rows], dtype="<u8").tobytes()


def heading_numbers(record: bytes) -> list[int]:
    """Revision, number of the next long value, and rows of each table."""
    numbers: list[int] = np.frombuffer(record, dtype="<u8").tolist()
    return numbers


def value_text(name: bytes, type_: TypeName) -> str:
    """A value as people write it, from its name."""
    family, canonical = FAMILIES[name[0] & 0x0F], name[1:]
    if family == "double":
        return repr(float(np.frombuffer(canonical, dtype=">f8")[0]))
    text = canonical.decode("utf-8", "replace")
    if family != "instant":
        return text
    micro, _, nano = text.partition(".")
    moment = np.datetime64(int(micro), "us")
    return str(moment.astype("datetime64[D]") if type_ == "date" else moment) + nano
