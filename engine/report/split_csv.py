"""Splits CSV files in two. Records are copied as they are: only their beginnings and ends are scanned."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.report.split import ROW, RULES, Violators, check_count
from tuplewise.engine.report.sql import unused
from tuplewise.engine.table.csv import scan_table
from tuplewise.engine.table.csv_scan import CsvScan
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import Source, opened

_LINE_ENDS = "\r\n"


def split(
    relation: Relation, violators: Violators, source: Source, options: LoadOptions, valid: Path, violating: Path
) -> None:
    """Write each row of local CSV files to one of two files, in the source's own dialect and encoding.

    The files of a folder or a glob follow one another below one header. Lines in front of it and a footer are left out.
    Lines of violating rows begin with the row's position and the ids of its rules, separated by blanks. In front of the
    line, these are fields whatever the rest of the line is.
    """
    table = scan_table(source, options)
    sep = table.dialect.sep
    joiner = "|" if sep == " " else " "
    added = [joiner.join(ids) for ids in violators.rules]
    names = [unused(ROW, table.names), unused(RULES, table.names)]
    one_column = len(table.names) == 1
    end = "\r\n" if any(s.returns for s in table.scans) else "\n"
    positions = None if relation.positions is None else relation.positions.tolist()
    groups = violators.group.tolist()
    position = index = 0
    headed = not options.header
    with (
        valid.open("w", encoding=table.dialect.encoding, newline="") as good,
        violating.open("w", encoding=table.dialect.encoding, newline="") as bad,
    ):
        for name, scan in zip(source.files, table.scans, strict=True):
            records = _records(name, table.dialect.encoding, scan, one_column, options.header)
            if options.header and len(scan.lines):
                header = next(records)
                if not headed:
                    good.write(header + end)
                    bad.write(sep.join([*names, header]) + end)
                    headed = True
            for record in records:
                wanted = index < relation.rows and (positions is None or positions[index] == position)
                if wanted:
                    group = groups[index]
                    if group:
                        bad.write(f"{position}{sep}{added[group]}{sep}{record}{end}")
                    else:
                        good.write(record + end)
                    index += 1
                position += 1
    check_count(relation, index)


def _records(name: str, encoding: str, scan: CsvScan, one_column: bool, header: bool) -> Iterator[str]:
    """The records of a file, its header included, without their line ends.

    Blank lines are left out, except in a table of one column, where each is a row with a null.
    """
    line_end, starts = _line_end(name), scan.lines
    with opened(name) as stream:
        text = io.TextIOWrapper(stream, encoding, newline=line_end)
        lines: Iterator[str] = islice(text, None if scan.end_line is None else scan.end_line - 1)
        first = not scan.skipped_lines
        for _ in islice(lines, scan.skipped_lines):
            pass
        if not len(starts):
            yield from ("" for _ in lines if one_column)
            return
        for blank in islice(lines, int(starts[0]) - 1 - scan.skipped_lines):
            if one_column and not header:
                yield blank.rstrip(_LINE_ENDS)
        for size in [*np.diff(starts).tolist(), None]:  # the last record has all lines that are left
            parts = list(islice(lines, size))
            if first:
                parts[0], first = parts[0].removeprefix("\ufeff"), False
            if len(parts) == 1:
                yield parts[0].rstrip(_LINE_ENDS)
            else:
                yield from _rows(parts, one_column)


def _rows(parts: list[str], one_column: bool) -> Iterator[str]:
    """A record of several lines, and the blank lines after it if they are rows."""
    last = len(parts)
    while last > 1 and not parts[last - 1].strip(_LINE_ENDS):
        last -= 1
    yield "".join(parts[:last]).rstrip(_LINE_ENDS)
    if one_column:
        yield from ("" for _ in parts[last:])


def _line_end(name: str) -> Literal["\n", "\r"]:
    """The line end that the scan of the file used."""
    with opened(name) as stream:
        begin = stream.read(1 << 20)
    return "\r" if b"\r" in begin and b"\n" not in begin else "\n"
