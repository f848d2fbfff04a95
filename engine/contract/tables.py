"""The tables that a contract is checked on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.ind.tables import name_tables


def tables_of_contract(contract: Contract, given: Any = None) -> dict[str, Any]:
    """The given tables by their names in the contract.

    Parameters
    ----------
    given : as for `name_tables`; one table may have any name where the contract has one, too. None or nothing: the
        tables that the contract names the paths of.

    Raises
    ------
    InputError : for a table that the contract doesn't have; for no table where the contract lacks a path
    """
    if given is None or (isinstance(given, (list, tuple, Mapping)) and not given):
        return _from_paths(contract)
    named = name_tables(given)
    if len(named) == 1 and len(contract.tables) == 1:
        return dict(zip(contract.tables, named.values(), strict=True))
    for name in named:
        if name not in contract.tables:
            near = near_names(name, contract.tables)
            named_so = "Name it: NAME=PATH on the command line, {name: table} in Python"
            hint = f"{near} {named_so}" if near else named_so
            raise InputError(message(f"no table of this name in contract {contract.name!r}", name, hint=hint))
    return named


def _from_paths(contract: Contract) -> dict[str, Any]:
    """The tables that a contract names the paths of, which are relative to its folder."""
    found = {}
    for name, table in contract.tables.items():
        if table.path is None:
            hint = f"contract {contract.name!r} has no path for it"
            raise InputError(message("no table was given for", name, hint=hint))
        local = "://" not in table.path and not table.path.startswith("spark:")
        found[name] = str(Path(contract.name).parent / table.path) if local else table.path
    return found
