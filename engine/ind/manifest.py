"""Fixed part of a state of inclusion dependencies: tables, columns and their types, options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.rows import Attributes
from tuplewise.engine.ind.values import Family, family_of
from tuplewise.engine.options import IndStateOptions
from tuplewise.engine.state_folders import INDS, STATE_FILE, damaged, read_state_file, write_state_file
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE
from tuplewise.engine.table.rows import KeptColumn


@dataclass(frozen=True)
class KeptTable:
    """A table of a state. `path`: its source at the build; None for tables in memory."""

    name: str
    path: str | None
    columns: tuple[KeptColumn, ...]


@dataclass(frozen=True)
class Manifest:
    """The fixed part of a state, set by its build."""

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
        """The family of each attribute."""
        return tuple(family_of(c.type, self.options.as_text) for table in self.tables for c in table.columns)

    def table(self, name: str | None) -> Attributes:
        """The columns of a table (None: of the only one). Raises InputError with similar names for an unknown name."""
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
        """Write the manifest and sync it to disk."""
        write_state_file(folder, INDS, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read a manifest. Raises InputError if the folder is no state, is damaged, or is of another version."""
        record = read_state_file(folder, INDS)
        try:
            tables = tuple(
                KeptTable(t["name"], t["path"], tuple(KeptColumn(**column) for column in t["columns"]))
                for t in record["tables"]
            )
            options = IndStateOptions(**record["options"])
            manifest = cls(tables, options, tuple(record["null_tokens"]), str(record["written_by"]))
            known = all(c.type in DOMAIN_OF_TYPE for table in tables for c in table.columns)
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise damaged(folder, f"{STATE_FILE} can't be read: {error}", INDS) from error
        if not known or not tables or not all(table.columns for table in tables):
            raise damaged(folder, f"{STATE_FILE} names no tables, or types that aren't known", INDS)
        return manifest
