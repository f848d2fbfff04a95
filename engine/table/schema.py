"""Names and types of columns: selection by the user, repair of headers, and quoting."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.options import LoadOptions, raise_faults
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Relation, TypeName

ALL_COLUMNS = "*"
_NAMED = 5  # columns in a note

_ALIASES: dict[str, TypeName] = {
    "int": "integer",
    "bigint": "integer",
    "long": "integer",
    "numeric": "decimal",
    "float": "double",
    "datetime": "timestamp",
    "bool": "boolean",
    "string": "text",
    "str": "text",
}
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})")
_ESCAPES = re.compile(f"(?:{_ESCAPE.pattern})+")
_SHORT_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}
_RESERVED = frozenset({"and", "or", "not", "true", "false", "null"})


def quote_name(name: str) -> str:
    """A column name as rules write it: bare if it is a plain word, else in back-quotes, see `quote_text`.

    Examples
    --------
    >>> quote_name("zip"), quote_name("ident(String)"), quote_name("a`b")
    ('zip', '`ident(String)`', '`a``b`')
    """
    if _BARE_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return quote_text(name, "`")


def note_on_text(relation: Relation, ordered: Iterable[str]) -> list[str]:
    """A note on text columns whose order matters, if any. `ordered`: names of such columns, repeats allowed."""
    with_values = {c.name for c in relation.columns if c.type == "text" and c.distinct}
    names = [quote_name(name) for name in dict.fromkeys(ordered) if name in with_values]
    if not names:
        return []
    listed = names if len(names) <= _NAMED else [*names[:_NAMED], f"{len(names) - _NAMED:,} more columns"]
    subject = f"{', '.join(listed[:-1])} and {listed[-1]} are" if len(listed) > 1 else f"{listed[0]} is"
    return [
        f"{subject} text: compared byte by byte, so that '10:30' comes before '9:00'. Times and numbers that are text "
        "compare right where all are padded with zeros ('09:00')"
    ]


def quote_text(text: str, quote: str) -> str:
    r"""Quote a text (quotes inside are doubled) on one line, in printable characters; `quoted_text` reads it.

    Line breaks, tabs and other invisible characters become escapes between quoted parts.

    Examples
    --------
    >>> print(quote_text("it's", "'"), quote_text("Unit\nprice", "`"), quote_text("\ta", "`"))
    'it''s' `Unit`\n`price` ``\t`a`
    """
    parts = []
    for shown, characters in itertools.groupby(text, str.isprintable):
        part = "".join(characters)
        if shown:
            parts.append(f"{quote}{part.replace(quote, quote * 2)}{quote}")
        else:
            parts.append("".join(c.encode("unicode_escape").decode("ascii") for c in part))
    if not text or not text[0].isprintable():
        parts.insert(0, quote * 2)
    return "".join(parts)


def quoted_text(text: str, at: int) -> tuple[str, int] | None:
    """Read what `quote_text` wrote, from a quote on. Returns the text and the place after it; None if not closed."""
    quote = text[at]
    parts: list[str] = []
    while True:
        end = text.find(quote, at + 1)
        if end < 0:
            return None
        parts.append(text[at + 1 : end])
        at = end + 1
        if text.startswith(quote, at):  # a doubled one
            parts.append(quote)
            continue
        escapes = _ESCAPES.match(text, at)
        if escapes is None:
            return "".join(parts), at
        parts += map(_unescaped, _ESCAPE.findall(escapes.group()))
        at = escapes.end()
        if not text.startswith(quote, at):
            return "".join(parts), at


def _unescaped(escape: str) -> str:
    return _SHORT_ESCAPES.get(escape) or chr(int(escape[2:], 16))


def repair_names(header: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """Make names unique and non-empty. Returns them with a note on each changed name.

    A repeated name gets the suffix `_2`, `_3` and so on (the first free number). An empty name becomes `column_N`, N
    being its 1-based position.
    """
    taken = {h for h in header if h}
    names: list[str] = []
    notes: list[str] = []
    used: set[str] = set()
    for position, given in enumerate(header, start=1):
        base = given or f"column_{position}"
        name = base
        number = 2
        while name in used or (name != given and name in taken):
            name = f"{base}_{number}"
            number += 1
        used.add(name)
        names.append(name)
        if not given:
            notes.append(f"column {position} has no name: called {name!r}")
        elif name != given:
            notes.append(f"column {position} repeats the name {given!r}: called {name!r}")
    return names, notes


def numbered_names(columns: int) -> list[str]:
    """Names for columns without a header: c1, c2, ..."""
    return [f"c{i}" for i in range(1, columns + 1)]


def selected_columns(names: Sequence[str], options: LoadOptions, table: str) -> list[int]:
    """The indexes of the selected columns, in the order of the table (`columns`, then `exclude`)."""
    known, left_out = set(names), set(options.exclude)
    wanted = known if options.columns is None else set(options.columns)
    unknown = [n for n in (*(options.columns or ()), *options.exclude) if n not in known]
    if unknown:
        raise InputError(
            message(f"no column of that name in table {table!r}", unknown[0], hint=near_names(unknown[0], names))
        )
    if not names:
        raise InputError(message("this table has no columns", table))
    kept = [i for i, n in enumerate(names) if n in wanted and n not in left_out]
    if not kept:
        raise InputError(
            message(
                f"no column of table {table!r} is left", list(options.exclude), "at least one column", "Leave out fewer"
            )
        )
    return kept


def type_overrides(names: Sequence[str], types: Mapping[str, str], table: str) -> dict[str, TypeName]:
    """The requested types by column name; `*` stands for all columns that are not named."""
    problems = []
    overrides: dict[str, TypeName] = {}
    for column, given in types.items():
        type_ = _type_name(given)
        if type_ is None:
            problems.append(message(f"type of column {column!r}", given, ", ".join(DOMAIN_OF_TYPE)))
        elif column != ALL_COLUMNS and column not in names:
            problems.append(
                message(f"types: no column of that name in table {table!r}", column, hint=near_names(column, names))
            )
        elif column != ALL_COLUMNS:
            overrides[column] = type_
        else:
            for name in names:
                if name not in types:
                    overrides[name] = type_
    raise_faults(problems)
    return overrides


def _type_name(given: str) -> TypeName | None:
    word = given.strip().lower()
    for type_ in DOMAIN_OF_TYPE:
        if word == type_:
            return type_
    return _ALIASES.get(word)
