"""Rules from a schema of Pandera, of pandas or Polars frames: the object, or the YAML that Pandera writes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import ContractColumn, ContractTable, Severity
from tuplewise.engine.contract.forms import Key, NotNull, Range, ValueSet
from tuplewise.engine.contract.imports.imported import Imported, constant, content, listed, names, unlike
from tuplewise.engine.dc.constraint import Operator
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.relation import TypeName

_TYPES: tuple[tuple[str, TypeName], ...] = (
    (r"u?int\d*", "integer"), (r"float\d*|double", "double"), (r"decimal.*", "decimal"), (r"bool(ean)?", "boolean"),
    (r"datetime.*|timestamp.*", "timestamp"), (r"date(32)?", "date"), (r"str(ing)?(\[.*|)|utf8", "text"),
)  # fmt: skip
_OF_POLARS = re.compile(r"^schema_type:\s*polars", re.MULTILINE)


def read(source: Any) -> Imported:
    """The table and the rules of a schema.

    Parameters
    ----------
    source : the path of a YAML file, a `DataFrameSchema`, or a class derived from `DataFrameModel`

    Raises
    ------
    InputError : for what is none of these, and where Pandera is not installed
    """
    name = None
    if isinstance(source, (str, os.PathLike)):
        name, source = Path(source).stem, _from_yaml(content(source), str(source))
    elif isinstance(source, type) and hasattr(source, "to_schema"):
        source = source.to_schema()
    if not hasattr(source, "columns") or not hasattr(source, "checks"):
        kind = type(source).__name__
        raise InputError(message("schema of Pandera", kind, "a DataFrameSchema, or the path of its YAML"))
    return _Schema(source, str(source.name or name or "table")).imported


def _from_yaml(text: str, place: str) -> Any:
    try:
        schema = _of_polars() if _OF_POLARS.search(text) else _of_pandas()
    except ImportError as error:
        hint = f"Install pandera: {error}"
        raise InputError(message("YAML of Pandera is read by Pandera, which can't be imported", hint=hint)) from None
    try:
        return schema.from_yaml(text)
    except Exception as error:  # whatever its parser and its checks raise
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(message("file to import is no YAML of a Pandera schema", place, hint=said)) from None


def _of_pandas() -> Any:
    from pandera.pandas import DataFrameSchema

    return DataFrameSchema


def _of_polars() -> Any:
    from pandera.polars import DataFrameSchema

    return DataFrameSchema


class _Schema:
    """A schema that is being read."""

    def __init__(self, schema: Any, table: str) -> None:
        self.imported = Imported("Pandera")
        self._table = table
        columns = []
        for name, column in schema.columns.items():
            if getattr(column, "regex", False):
                self._note(f"columns whose names match {name!r}")
                continue
            columns.append(ContractColumn(str(name), self._type(str(name), column.dtype)))
        self.imported.tables.append(ContractTable(table, None, tuple(columns)))
        for described in columns:
            self._read_column(described, schema.columns[described.name])
        if unique := names(schema.unique):
            self.imported.propose(table, "key", Key(tuple(unique)))
            nullable = [name for name in unique if name in schema.columns and schema.columns[name].nullable]
            if nullable:
                self._note(f"key {listed(unique)}: that nulls of {listed(nullable)} are equal")
        for check in schema.checks:
            self._note(f"check of the whole frame {_said(check)}")
        if getattr(schema, "index", None) is not None:
            self._note("index: a contract is about columns")

    def _note(self, text: str) -> None:
        self.imported.notes.append(f"table {self._table!r}: {text}")

    def _type(self, name: str, dtype: Any) -> TypeName | None:
        if dtype is None:
            return None
        for pattern, type_ in _TYPES:
            if re.fullmatch(pattern, str(dtype), re.IGNORECASE):
                return type_
        if str(dtype) != "object":
            self._note(f"column {name!r}: type {str(dtype)!r}")
        return None

    def _read_column(self, described: ContractColumn, column: Any) -> None:
        name, propose = described.name, self.imported.propose
        if not column.nullable:
            propose(self._table, "not_null", NotNull(name))
        if column.unique:
            propose(self._table, "key", Key((name,)))
            if column.nullable:
                self._note(f"column {name!r}: unique: that nulls are equal")
        if not column.required:
            self._note(f"column {name!r}: that it may be missing")
        for check in column.checks:
            if not self._read_check(described, check):
                self._note(f"column {name!r}: check {_said(check)}")

    def _read_check(self, column: ContractColumn, check: Any) -> bool:
        """Propose what a check says; False for one that a contract has no kind for."""
        name, given = column.name, check.statistics or {}
        severity: Severity = "warning" if check.raise_warning else "error"

        def propose(kind: Any, form: Any) -> None:
            self.imported.propose(self._table, kind, form, severity)

        if check.name in _RELATIONS:
            operator, key = _RELATIONS[check.name]
            propose("dc", unlike(name, operator, constant(given[key], column.type)))
        elif check.name == "greater_than_or_equal_to":
            propose("range", Range(name, constant(given["min_value"], column.type), None))
        elif check.name == "less_than_or_equal_to":
            propose("range", Range(name, None, constant(given["max_value"], column.type)))
        elif check.name == "in_range":
            low, high = (constant(given[key], column.type) for key in ("min_value", "max_value"))
            closed = [given.get(key, True) for key in ("include_min", "include_max")]
            if any(closed):
                propose("range", Range(name, low if closed[0] else None, high if closed[1] else None))
            if not closed[0]:
                propose("dc", unlike(name, "<=", low))
            if not closed[1]:
                propose("dc", unlike(name, ">=", high))
        elif check.name in ("isin", "equal_to"):
            values = given["allowed_values"] if check.name == "isin" else [given["value"]]
            propose("values", ValueSet(name, tuple(constant(value, column.type) for value in values)))
        elif check.name == "notin":
            for value in given["forbidden_values"]:
                propose("dc", unlike(name, "==", constant(value, column.type)))
        else:
            return False
        return True


_RELATIONS: dict[str, tuple[Operator, str]] = {
    "greater_than": ("<=", "min_value"),
    "less_than": (">=", "max_value"),
    "not_equal_to": ("==", "value"),
}
"""Checks, with the relation to a constant that no value may have, and what the constant is called there."""


def _said(check: Any) -> str:
    """A check in words: its name, and what it was given."""
    given = ", ".join(f"{key}={value!r}" for key, value in (check.statistics or {}).items())
    return f"{check.error or check.name or 'without a name'!s}" + (f" ({given})" if given else "")
