"""Naming of the input tables, with distinct names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import find_source


def name_tables(given: Any) -> dict[str, Any]:
    """Tables by name, in order.

    Parameters
    ----------
    given : a mapping of names to tables, a list of tables, or one table; a table is a path, a frame or a Relation. In a
        list, a path is named after its file without endings, a Relation keeps its name, and a frame is "table".

    Raises
    ------
    InputError
        If there is no table, two have the same name, or a path names no file.

    Examples
    --------
    >>> list(name_tables({"a": None, "b": None}))
    ['a', 'b']
    """
    if isinstance(given, Mapping):
        named = [(str(name), table) for name, table in given.items()]
    elif isinstance(given, (str, os.PathLike, Relation)) or kind_of(given) or not isinstance(given, Iterable):
        named = [(_name_of(given), given)]
    else:
        named = [(_name_of(table), table) for table in given]
    if not named:
        raise InputError(message("no table was given", None, "one table or more"))
    tables: dict[str, Any] = {}
    for name, table in named:
        if name in tables:
            hint = "Name them: NAME=PATH on the command line, {name: table} in Python"
            both = f"{_shown(tables[name])} and {_shown(table)}"
            raise InputError(message(f"two tables are called {name!r}", both, "names that differ", hint))
        tables[name] = table
    return tables


def _name_of(table: Any) -> str:
    if isinstance(table, Relation):
        return table.name
    if isinstance(table, (str, os.PathLike)):
        return find_source(os.fspath(table)).name
    return "table"


def _shown(table: Any) -> str:
    if isinstance(table, (str, os.PathLike)):
        return os.fspath(table)
    return f"a {type(table).__name__}"
