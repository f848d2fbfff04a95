"""Rules from a Table Schema, or from a data package, in JSON. Frictionless itself is not needed for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import ContractColumn, ContractTable
from tuplewise.engine.contract.forms import InclusionDependency, Key, NotNull, Range, ValueSet
from tuplewise.engine.contract.imports.imported import Imported, constant, content, listed, names, unlike
from tuplewise.engine.errors import InputError, RuleError, message
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.table.relation import TypeName

_TYPES: dict[str, TypeName] = {
    "integer": "integer", "number": "decimal", "date": "date", "datetime": "timestamp", "boolean": "boolean",
    "string": "text",
}  # fmt: skip
_ACCEPTED = 'a Table Schema ({"fields": [...]}) or a data package ({"resources": [...]})'


def read(source: Any) -> Imported:
    """The tables and rules of a schema or package.

    Parameters
    ----------
    source : the path of its JSON, a mapping, or an object of Frictionless (`Schema`, `Resource`, `Package`)

    Raises
    ------
    InputError : for what is none of these
    """
    folder, name, found = Path(), "table", source
    if isinstance(source, (str, os.PathLike)):
        folder, name, found = Path(source).parent, Path(source).stem, _parsed(content(source), str(source))
    elif hasattr(source, "to_descriptor"):
        found = source.to_descriptor()
    if not isinstance(found, Mapping) or not any(key in found for key in ("fields", "resources", "schema")):
        raise InputError(message("what was to be imported is no Table Schema", allowed=_ACCEPTED))
    if "fields" in found:
        found = {"resources": [{"name": name, "schema": found}]}
    elif "schema" in found:
        found = {"resources": [found]}
    return _Package(found, folder).imported


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(message("file to import is no JSON", place, hint=str(error))) from None


class _Package:
    """A data package that is being read."""

    def __init__(self, found: Mapping[str, Any], folder: Path) -> None:
        self.imported = Imported("Frictionless")
        self._folder = folder
        schemas = {}
        for number, resource in enumerate(found["resources"], start=1):
            name = str(resource.get("title") or resource.get("name") or f"table {number}")
            schema = self._schema(name, resource.get("schema"))
            if schema is not None:
                schemas[str(resource.get("name", name))] = (name, resource, schema)
        self._tables = {resource: name for resource, (name, _, _) in schemas.items()}
        for name, resource, schema in schemas.values():
            self._read_table(name, resource, schema)
        for name, _, schema in schemas.values():
            self._read_references(name, schema)

    def _schema(self, table: str, given: Any) -> Mapping[str, Any] | None:
        if isinstance(given, str) and "://" not in given:
            given = _parsed(content(self._folder / given), given)
        if isinstance(given, Mapping) and "fields" in given:
            return given
        self._note(f"table {table!r}: it has no schema here")
        return None

    def _note(self, text: str) -> None:
        self.imported.notes.append(text)

    def _read_table(self, table: str, resource: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        columns = []
        for field in schema["fields"]:
            type_ = _TYPES.get(field.get("type", "any"))
            columns.append(ContractColumn(str(field["name"]), type_))
            if type_ is None and field.get("type", "any") != "any":
                self._note(f"table {table!r}, column {field['name']!r}: type {field['type']!r}")
        path = resource.get("path")
        self.imported.tables.append(ContractTable(table, path if isinstance(path, str) else None, tuple(columns)))
        if schema.get("missingValues", [""]) != [""]:
            self._note(f"table {table!r}: missing values {listed(schema['missingValues'])}: give them where it is read")
        primary = names(schema.get("primaryKey"))
        for name in primary:
            self.imported.propose(table, "not_null", NotNull(name))
        for key in (primary, *map(names, schema.get("uniqueKeys", ()))):
            if key:
                self.imported.propose(table, "key", Key(tuple(key)))
        for column, field in zip(columns, schema["fields"], strict=True):
            self._read_constraints(table, column, dict(field.get("constraints") or {}))

    def _read_constraints(self, table: str, column: ContractColumn, given: dict[str, Any]) -> None:
        """Propose what the constraints of a field say; note those that a contract has no kind for."""
        name, propose = column.name, self.imported.propose

        def taken(constraint: str) -> Any:
            value = given.pop(constraint, None)
            return None if value is None else constant(value, column.type)

        if given.pop("required", False):
            propose(table, "not_null", NotNull(name))
        if given.pop("unique", False):
            propose(table, "key", Key((name,)))
        if values := given.pop("enum", None):
            propose(table, "values", ValueSet(name, tuple(constant(value, column.type) for value in values)))
        low, high = taken("minimum"), taken("maximum")
        if low is not None or high is not None:
            propose(table, "range", Range(name, low, high))
        if (above := taken("exclusiveMinimum")) is not None:
            propose(table, "dc", unlike(name, "<=", above))
        if (below := taken("exclusiveMaximum")) is not None:
            propose(table, "dc", unlike(name, ">=", below))
        for constraint, value in given.items():
            self._note(f"table {table!r}, column {name!r}: {constraint} {value!r}")

    def _read_references(self, table: str, schema: Mapping[str, Any]) -> None:
        for key in schema.get("foreignKeys", ()):
            reference = key["reference"]
            other = self._tables.get(reference["resource"]) if reference.get("resource") else table
            columns, others = names(key["fields"]), names(reference["fields"])
            if other is None:
                self._note(f"table {table!r}: foreign key {listed(columns)}: no resource {reference['resource']!r}")
                continue
            try:
                sides = (tuple(Attribute(t, c) for c in of) for t, of in ((table, columns), (other, others)))
                self.imported.propose("", "ind", InclusionDependency(*sides))
            except RuleError as error:
                self._note(f"table {table!r}: foreign key {listed(columns)}: {error.said}")
