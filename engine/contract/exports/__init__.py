"""Accepted rules as other tools take them: one module for each target, loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.exports.exported import Exported
from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.options import SqlDialect

__all__ = ["TARGETS", "WITH_DIALECT", "Exported", "export"]

_HERE = "tuplewise.engine.contract.exports"
TARGETS: dict[str, str] = {
    "dbt": f"{_HERE}.dbt:export",
    "deequ": f"{_HERE}.deequ:export",
    "frictionless": f"{_HERE}.frictionless:export",
    "gx": f"{_HERE}.great_expectations:export",
    "pandera": f"{_HERE}.pandera:export_pandas",
    "pandera-polars": f"{_HERE}.pandera:export_polars",
    "pydeequ": f"{_HERE}.deequ:export_python",
    "schema": f"{_HERE}.file_schema:export",
    "soda": f"{_HERE}.soda:export",
    "spark": f"{_HERE}.spark_filters:export",
    "sql": f"{_HERE}.sql:export",
}
"""The targets, and the function of each: module:name, called with a contract and the name of one table or None."""
DIALECT: SqlDialect = "spark"
WITH_DIALECT = ("sql", "dbt", "soda")
"""Targets whose functions take `dialect`, too."""


def export(contract: Contract, to: str, table: str | None = None, dialect: SqlDialect = DIALECT) -> Exported:
    """The accepted rules of a contract, as a target takes them.

    Parameters
    ----------
    to : one of `TARGETS`
    table : the rules of this table alone
    dialect : for targets that write SQL

    Raises
    ------
    InputError : for an unknown target or table, or a dialect where none is written
    """
    if to not in TARGETS:
        raise InputError(message("target of an export", to, ", ".join(sorted(TARGETS)), near_names(to, TARGETS)))
    contract.accepted(table)
    more: dict[str, Any] = {}
    if to in WITH_DIALECT:
        more["dialect"] = dialect
    elif dialect != DIALECT:
        raise InputError(Wording("{dialect} is for {}, not {}", ", ".join(WITH_DIALECT), to, dialect=dialect))
    module, _, name = TARGETS[to].partition(":")
    exported: Exported = getattr(importlib.import_module(module), name)(contract, table, **more)
    return exported
