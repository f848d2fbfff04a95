"""The start of CSV files: skipped lines, and the separator where the user has not named one.

A first line `sep=;`, as Excel writes it, names the separator. Without that line, if a comma yields one field only,
another separator is chosen if it is the only one that splits all of the first records into equally many fields.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_scan import Dialect

FRONT_CHARACTERS = 1 << 18
_GLANCE_CHARACTERS = 1 << 12  # enough for most headers
OTHER_SEPARATORS = ";\t|"
_RECORDS = 100
_NAMED = re.compile(r'"sep=(.)"|sep="(.)"|sep=(.)', re.IGNORECASE)


@dataclass(frozen=True)
class Front:
    """The start of the files of one table.

    Attributes
    ----------
    dialect : the dialect, with the detected separator
    skipped : the number of lines to skip in each file
    named : whether a first line names the separator
    notes : on a detected separator
    """

    dialect: Dialect
    skipped: list[int]
    named: bool
    notes: list[str]


def front_of(
    paths: Sequence[str],
    open_file: Callable[[str], AbstractContextManager[IO[bytes]]],
    dialect: Dialect,
    options: LoadOptions,
) -> Front:
    """Examine the start of files. Raises InputError if they name different separators."""
    skip = options.lines_in_front
    skipped = [skip] * len(paths)
    if options.sep is not None:
        return Front(dialect, skipped, False, [])
    named: dict[str, str] = {}
    fitting: set[tuple[str, int] | None] = set()
    for i, path in enumerate(paths):
        with open_file(path) as stream:
            text, whole = front_text(stream, dialect.encoding, skip, _GLANCE_CHARACTERS)
        own = None if skip else named_separator(text, dialect.quote)
        if own is not None:
            named[path], skipped[i] = own, 1
        elif dialect.sep == "," and None not in fitting and text.strip("\r\n"):
            first = next(records(text, whole, dialect), None)
            if not whole and (first is None or len(first[1]) == 1):
                with open_file(path) as stream:
                    text, whole = front_text(stream, dialect.encoding, skip)
            fitting.add(fitting_separator(text, whole, dialect, options.skip_footer))
    if named:
        sep = next(iter(named.values()))
        other = next((path for path, own in named.items() if own != sep), None)
        if other is not None:
            what = f"the first line of {other} names another separator than that of {next(iter(named))}"
            raise InputError(message(what, named[other], repr(sep), "Load files of one separator together"))
        note = f"the first line names the separator, {sep!r}, and is no row"
        return Front(replace(dialect, sep=sep), skipped, True, [note])
    found = next(iter(fitting)) if len(fitting) == 1 else None
    if found is None:
        return Front(dialect, skipped, False, [])
    sep, fields = found
    note = f"separator {sep!r} found: it splits each of the first records into {fields} fields (option sep for another)"
    return Front(replace(dialect, sep=sep), skipped, False, [note])


def front_text(stream: IO[bytes], encoding: str, skip: int, size: int = FRONT_CHARACTERS) -> tuple[str, bool]:
    """About the first `size` characters after `skip` lines, and whether the file ends there. Invalid bytes are
    replaced."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text, whole, first = "", False, True
    while not whole and len(text) < size:
        raw = stream.read(size)
        whole = not raw
        text += decoder.decode(raw, final=whole)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        newline = _newline(text)
        while skip and text:
            _, ended, text = text.partition(newline)
            skip -= bool(ended)
    return text, whole


def _newline(text: str) -> str:
    return "\r" if "\n" not in text and "\r" in text else "\n"


def named_separator(text: str, quote: str) -> str | None:
    """The separator that a file's first line names, as in `sep=;`."""
    found = _NAMED.fullmatch(text.partition(_newline(text))[0].removesuffix("\r"))
    sep = None if found is None else next(filter(None, found.groups()))
    return None if sep == quote else sep


def records(text: str, whole: bool, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """The records in the start of a file, except blank ones, with the 1-based line on which each begins.

    `whole`: the text is the whole file; otherwise its last record, which may be cut off, is omitted.
    """
    newline = _newline(text)
    lines = text.split(newline)
    if lines and not lines[-1]:
        lines.pop()
    reader = dialect.reader(line.removesuffix("\r") + "\n" for line in lines)
    line = 1
    try:
        for fields in reader:
            if fields and (whole or reader.line_num < len(lines)):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error:  # a field that is far too long, or a return inside of one
        return


def fitting_separator(text: str, whole: bool, dialect: Dialect, footer: int = 0) -> tuple[str, int] | None:
    """The only separator that splits all of the first records into the same number of fields, and that number.

    None if the first record has several fields already, or if no other separator or more than one fits. `footer`: the
    number of records at the end that need not fit.
    """
    first = next(records(text, whole, dialect), None)
    if first is None or len(first[1]) != 1:
        return None
    found = []
    for sep in OTHER_SEPARATORS:
        if sep in first[1][0] and sep not in (dialect.quote, dialect.escape):
            split = list(islice(records(text, whole, replace(dialect, sep=sep)), _RECORDS + footer))
            sizes = {len(fields) for _, fields in split[: max(1, len(split) - footer)]}
            if len(sizes) == 1 and sizes != {1}:
                found.append((sep, sizes.pop()))
    return found[0] if len(found) == 1 else None
