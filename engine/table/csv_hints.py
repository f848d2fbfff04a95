"""Hints on malformed rows of CSV files: a title above the header, totals at the end."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import Wording
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_front import OTHER_SEPARATORS, front_text, records
from tuplewise.engine.table.csv_scan import CsvScan, Dialect
from tuplewise.engine.table.raw import RowPlaces
from tuplewise.engine.table.source import opened

_TITLE_LINES = 20
_RECORDS = 120
_FOOTER_RECORDS = 5
_FOOTER = re.compile(
    r"\W*(?:(?:grand |sub)?totals?|sums?|summe|gesamt|all rows|averages?|mean|rows?|records?|count|notes?|footnotes?|"
    r"sources?|quelle|generated|created|exported|copyright|end of|\d+ (?:rows|records))\b|\W*©|\W*\*",
    re.IGNORECASE,
)


def hint_on_bad_rows(
    files: Sequence[str], scans: Sequence[CsvScan], dialect: Dialect, options: LoadOptions, places: RowPlaces,
    bad: NDArray[np.int64],
) -> str | None:  # fmt: skip
    """A hint that names the line of the header or the size of a footer, and the option to use; None if neither shows.

    `bad`: int64, ascending: the positions of the malformed rows.
    """
    filled = next(i for i, scan in enumerate(scans) if len(scan.lines))
    line = _header_line(files[filled], scans[filled].skipped_lines, dialect, options.sep is None)
    if line is not None:
        return Wording("Line {} looks like the header: {skip_rows}", line, skip_rows=line - 1)
    footer = _footer(files, dialect.encoding, places, bad)
    if footer:
        what = "The last record looks" if footer == 1 else f"The last {footer} records look"
        return Wording("{} like a footer: {skip_footer}", what, skip_footer=options.skip_footer + footer)
    return None


def _header_line(path: str, skipped: int, dialect: Dialect, any_separator: bool) -> int | None:
    """The 1-based line of a header below a title; None if there is no title."""
    with opened(path) as stream:
        text, whole = front_text(stream, dialect.encoding, skipped)
    found = []
    for sep in (dialect.sep, *(OTHER_SEPARATORS if any_separator else "")):
        if sep not in (dialect.quote, dialect.escape):
            line = _line_behind_titles(list(islice(records(text, whole, replace(dialect, sep=sep)), _RECORDS)))
            found += [] if line is None else [skipped + line]
    return min(found, default=None)


def _line_behind_titles(found: list[tuple[int, list[str]]]) -> int | None:
    """The line of the first record with as many fields as most later ones, if the first record has fewer."""
    if len(found) < 3:
        return None
    (first_line, first), later = found[0], found[1:]
    common = Counter(len(fields) for _, fields in later).most_common(1)[0][0]
    for at, (line, fields) in enumerate(later):
        if line > _TITLE_LINES:
            return None
        if len(fields) != common:
            continue
        behind = later[at + 1 :]
        agree = sum(len(other) == common for _, other in behind)
        # A header that lacks one field stands right in front of its rows: that is no title.
        title = len(first) < common and (len(first) == 1 or 2 * len(first) <= common or line > first_line + 1)
        return line if title and 2 * agree > len(behind) and _names(fields) else None
    return None


def _names(fields: Sequence[str]) -> bool:
    """Whether the fields look like column names: at least half of them contain letters."""
    words = sum(re.search(r"[^\W\d]", field) is not None for field in fields)
    return 2 * words >= len(fields)


def _footer(files: Sequence[str], encoding: str, places: RowPlaces, bad: NDArray[np.int64]) -> int:
    """The number of records at the end of each file that look like a footer; 0 unless these are the malformed ones."""
    rows = np.searchsorted(places.position, bad)
    footer, rest = 0, len(rows)
    for i in np.unique(places.file):
        own = np.flatnonzero(places.file == i)
        count = int(np.count_nonzero(places.file[rows] == i))
        if not 0 < count <= min(_FOOTER_RECORDS, len(own)) or (footer and count != footer):
            return 0
        if not np.isin(own[-count:], rows).all():
            return 0
        footer, rest = count, rest - count
    first = rows[0]
    lines = places.line[rows[places.file[rows] == places.file[first]]]
    return footer if footer and not rest and _begin_so(files[places.file[first]], encoding, lines) else 0


def _begin_so(path: str, encoding: str, lines: NDArray[np.int64]) -> bool:
    """Whether one of the lines begins with a word that is typical of footers."""
    wanted = set(lines.tolist())
    with opened(path) as stream:
        text = io.TextIOWrapper(stream, encoding, errors="replace")
        found = any(
            number in wanted and _FOOTER.match(line) is not None
            for number, line in enumerate(islice(text, int(lines[-1])), start=1)
        )
        text.detach()
    return found
