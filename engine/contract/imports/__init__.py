"""Rules of other tools as proposals of a contract: one module for each format, loaded when it is asked for."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import ContractRule
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.contract.formats import FORMATS, OF_TEXT
from tuplewise.engine.contract.forms import InclusionDependency, columns_of
from tuplewise.engine.contract.imports.imported import Imported, content
from tuplewise.engine.errors import InputError, message, near_names, number_of
from tuplewise.engine.options import Nulls

__all__ = ["FORMATS", "Imported", "import_to", "read", "text_of"]

NULLS: Nulls = "unknown"
"""Other tools leave rows with a null out."""


def read(source: Any, format_: str) -> Imported:
    """What a file, or an object of another library, says of tables.

    Raises
    ------
    InputError : for an unknown format, or a source that can't be read
    """
    if format_ not in FORMATS:
        raise InputError(message("format to import", format_, ", ".join(sorted(FORMATS)), near_names(format_, FORMATS)))
    module, _, name = FORMATS[format_].partition(":")
    reads = getattr(importlib.import_module(module), name)
    if format_ in OF_TEXT:
        contract, notes = reads(content(source), str(source))
        return Imported(str(source), list(contract.tables.values()), list(contract.rules), notes)
    found: Imported = reads(source)
    return found


def text_of(imported: Imported) -> str:
    """A new contract with all rules proposed. Comments at its end say what was not read."""
    file = ContractFile.new("rules.yaml", NULLS)
    _add(file, imported)
    return _with_comments(file, imported)


def _with_comments(file: ContractFile, imported: Imported) -> str:
    return file.text() + "".join(f"# Not read: {_on_one_line(note)}\n" for note in imported.notes)


def import_to(imported: Imported, path: str | os.PathLike[str]) -> str:
    """Propose the rules in the contract of a file, which is made where there is none. Returns how many, in words.

    Rules on columns that a contract lacks are noted instead: it could not be read with them.
    """
    file = ContractFile.opened(path, NULLS)
    added = _add(file, imported)
    if not Path(path).exists():
        file = ContractFile(path, _with_comments(file, imported))
    file.save()
    return f"{number_of(added, 'rule')} proposed in {str(path)!r}, {number_of(len(imported.notes), 'thing')} not read"


def _add(file: ContractFile, imported: Imported) -> int:
    for table in imported.tables:
        file.add_table(table)
    known = {name: table.column_names for name, table in file.contract.tables.items()}
    rules = []
    for rule in imported.rules:
        missing = [name for table, name in _named(rule) if known[table] and name not in known[table]]
        if missing:
            listed = ", ".join(map(repr, missing))
            imported.notes.append(f"{rule.text}: the contract has no column {listed}: add it there")
        else:
            rules.append(rule)
    return len(file.add_rules(rules))


def _named(rule: ContractRule) -> list[tuple[str, str]]:
    """The columns that a rule names, with their tables."""
    if isinstance(rule.form, InclusionDependency):
        return [*rule.form.dependent, *rule.form.referenced]
    return [(rule.table, name) for name in columns_of(rule.form)]


def _on_one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
