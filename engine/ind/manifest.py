"""What is fixed when a state of inclusion dependencies is built: tables, columns and their types, options."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.rows import Attributes
from tuplewise.engine.ind.values import Family, family_of
from tuplewise.engine.options import IndStateOptions
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.writer_lock import damaged

FORMAT = 1
"""Version of what a folder holds; another number with every change to it."""
MANIFEST = "state.json"
KIND = "tuplewise inclusion dependencies"


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
            hint = Wording("Name the table: {table:NAME}")
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
            raise damaged(folder, f"{MANIFEST} can't be read: {error}", "ind") from error
        if not known or not tables or not all(table.columns for table in tables):
            raise damaged(folder, f"{MANIFEST} names no tables, or types that aren't known", "ind")
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
        raise damaged(folder, f"{MANIFEST} can't be read: {error}", "ind") from error
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise InputError(message("this folder is not a state of inclusion dependencies", str(folder), hint=hint))
    return record
