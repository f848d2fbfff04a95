"""Accepted rules as other tools take them: one module for each target, loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.exports.exported import Exported
from tuplewise.engine.contract.formats import TARGETS, WITH_DIALECT
from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.options import SqlDialect

__all__ = ["TARGETS", "WITH_DIALECT", "Exported", "export"]

DIALECT: SqlDialect = "spark"


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
