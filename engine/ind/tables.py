"""The input tables: distinct names, and options that name columns, split between several tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.options import LoadOptions, raise_faults
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.peek import known_columns
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import ALL_COLUMNS
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


def options_of_tables(tables: Mapping[str, Any], options: LoadOptions | None = None) -> dict[str, LoadOptions]:
    """Load options for each table.

    `columns`, `exclude` and `types` name columns of any of the tables, as `column` (of each table that has it) or as
    `table.column`. A name missing from all tables with columns known before loading is left to the other tables.

    Parameters
    ----------
    tables : paths, frames or Relations, by name

    Raises
    ------
    InputError
        One error for all names that no table has, with similar names; or if a table has none of `columns`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> tables = {"t": pa.table({"a": [1], "b": [1]}), "u": pa.table({"a": [1]})}
    >>> found = options_of_tables(tables, LoadOptions(exclude=("t.a",), types={"a": "text"}))
    >>> found["t"].exclude, found["u"].exclude, dict(found["u"].types)
    (('a',), (), {'a': 'text'})
    """
    options = options or LoadOptions()
    named = [*(options.columns or ()), *options.exclude, *(c for c in options.types if c != ALL_COLUMNS)]
    if not named:
        return dict.fromkeys(tables, options)
    every = replace(options, columns=None, exclude=(), types={})
    names = {name: known_columns(table, every) for name, table in tables.items()}
    _refuse_unknown(named, names)
    found = {}
    for table, known in names.items():
        columns = None if options.columns is None else _own(options.columns, table, known)
        if columns == ():
            hint = Wording("Name one of each table, or leave columns out by name: {exclude}")
            asked = list(options.columns or ())
            raise InputError(message(f"no column of table {table!r} is asked for", asked, hint=hint))
        types = [(own, type_) for c, type_ in options.types.items() for own in _own([c], table, known)]
        found[table] = replace(
            options, columns=columns, exclude=_own(options.exclude, table, known), types=dict(types)
        )
    return found


def options_for_columns(options: LoadOptions, columns: Sequence[str]) -> LoadOptions:
    """Load options for one table, restricted to these columns."""
    types = {column: type_ for column, type_ in options.types.items() if column in (*columns, ALL_COLUMNS)}
    return replace(options, columns=tuple(columns), exclude=(), types=types)


def _own(named: Iterable[str], table: str, known: Sequence[str] | None) -> tuple[str, ...]:
    """The named columns of this table, without the table's name."""
    found = []
    for name in named:
        bare = name.removeprefix(f"{table}.")
        if name == ALL_COLUMNS or (known is None and bare == name) or name in (known or ()):
            found.append(name)
        elif bare != name and (known is None or bare in known):
            found.append(bare)
    return tuple(dict.fromkeys(found))


def _refuse_unknown(named: Sequence[str], names: Mapping[str, Sequence[str] | None]) -> None:
    unknown = [n for n in dict.fromkeys(named) if not any(_own([n], table, known) for table, known in names.items())]
    if unknown:
        known = dict.fromkeys(c for columns in names.values() for c in columns or ())
        what = "no table has a column of that name"
        raise_faults([message(what, n, hint=near_names(n, known)) for n in unknown])
