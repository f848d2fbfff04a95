# ruff: noqa: E501  # a line is an input
"""Tables in all their oddities, each with what reading it must give: stated by hand, from the meaning of the format."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

Rows = list[tuple[Any, ...]]
Files = dict[str, bytes | Callable[[Path], None]]


@dataclass(frozen=True)
class Input:
    """A table and what comes of it.

    Attributes
    ----------
    files : their content, or what writes them, by path below a folder
    path : what is named on the command line, below that folder
    rows, types, positions : what must come; None where that isn't stated
    error : pattern of the message, where it must be refused
    notes : patterns, one for each note
    spark : None where Spark's reader must give the same; else a pattern of its refusal, or "differs: why"
    """

    name: str
    files: Files
    path: str
    options: dict[str, Any] = field(default_factory=dict)
    names: list[str] | None = None
    types: list[str] | None = None
    rows: Rows | None = None
    positions: list[int] | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    spark: str | None = None

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if callable(content):
                content(target)
            else:
                target.write_bytes(content)
        return folder / self.path


def csv(name: str, text: str | bytes, rows: Rows | None = None, *, file: str = "t.csv", **more: Any) -> Input:
    content = text if isinstance(text, bytes) else text.encode()
    return _input(f"csv {name}", {file: content}, file, rows, more)


def files(name: str, parts: dict[str, Any], path: str, rows: Rows | None = None, **more: Any) -> Input:
    written: Files = {key: part if isinstance(part, bytes) else _writer(part) for key, part in parts.items()}
    return _input(name, written, path, rows, more)


def _input(name: str, written: Files, path: str, rows: Rows | None, more: dict[str, Any]) -> Input:
    """`more`: fields of Input, else options of loading; these with `_` at their end where both have such a name."""
    own = {key: value for key, value in more.items() if key in Input.__dataclass_fields__}
    options = {key.rstrip("_"): value for key, value in more.items() if key not in own}
    return Input(name, written, path, options, rows=rows, **own)


def _writer(table: pa.Table) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        if path.suffix == ".orc":
            orc.write_table(table, str(path))
        else:
            pq.write_table(table, path)

    return write


def jsonl(name: str, text: str, rows: Rows | None = None, **more: Any) -> Input:
    return files(f"json {name}", {"t.jsonl": text.encode()}, "t.jsonl", rows, **more)


def _packed(content: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def _tar(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


UTC = dt.UTC
AB: Rows = [(1, "x"), (2, "y")]
PACKED_AS = "Spark tells packing by the ending"
NAMED = "Spark can't pass over a first line that names the separator"
NO_TYPE = r"^Spark can't open column '\w' of this table, whose type is \S.* \([A-Z].*\): '.*'\. Take reader='arrow'$"
ARROW_ONLY = "only Arrow's reader knows --"

CSV = [
    csv("plain", "a,b\n1,x\n2,y\n", AB, names=["a", "b"], types=["integer", "text"]),
    csv("no last line end", "a,b\n1,x\n2,y", AB),
    csv("CR LF", "a,b\r\n1,x\r\n2,y\r\n", AB),
    csv("CR alone", "a,b\r1,x\r2,y\r", AB),
    csv("mixed line ends", "a,b\n1,x\r\n2,y\n", error="mixes line ends"),
    csv("CR inside of a field", "a,b\n1,x\rz\n2,y\n", [(1, "x\rz"), (2, "y")]),
    csv("byte order mark", "\ufeffa,b\n1,x\n2,y\n", AB),
    csv("byte order mark and quotes", '\ufeff"a",b\n1,x\n2,y\n', AB),
    csv("blank lines", "a,b\n\n1,x\n\n\n2,y\n\n", AB, notes=("4 blank lines skipped",)),
    csv("blank lines first", "\n\na,b\n1,x\n2,y\n", AB, notes=("2 blank lines skipped",)),
    csv("blank lines with CR LF", "a,b\r\n\r\n1,x\r\n2,y\r\n", AB, notes=("1 blank line skipped",)),
    csv("blanks around fields", "a,b\n 1,x \n2,y\n", [(" 1", "x "), ("2", "y")],
        notes=("column 'a' mixes numbers",)),
    csv("quoted", '"a","b"\n"1","x"\n2,"y"\n', AB),
    csv("doubled quotes", 'a,b\n1,"x""z"\n2,""""\n', [(1, 'x"z'), (2, '"')]),
    csv("newline in quotes", 'a,b\n1,"x\nz"\n2,y\n', [(1, "x\nz"), (2, "y")]),
    csv("blank line in quotes", 'a,b\n1,"x\n\nz"\n2,y\n', [(1, "x\n\nz"), (2, "y")]),
    csv("CR LF in quotes", 'a,b\r\n1,"x\r\nz"\r\n2,y\r\n', [(1, "x\r\nz"), (2, "y")]),
    csv("separator in quotes", 'a,b\n1,"x,z"\n2,y\n', [(1, "x,z"), (2, "y")]),
    csv("quote inside of a field", 'a,b\n1,x"z\n2,6" pipe\n', [(1, 'x"z'), (2, '6" pipe')]),
    csv("text behind a closing quote", 'a,b\n1,"x"z\n2,y\n', [(1, "xz"), (2, "y")], spark="behind a closing quote"),
    csv("a backslash before a closing quote", 'a,b\n1,"x\\"y"\n2,z\n', [(1, 'x\\y"'), (2, "z")],
        spark="behind a closing quote"),
    csv("a title longer than a field may be", "T" * 300_000 + "\na,b\n1,x\n2,y\n", AB, skip_rows=1, spark="only Arrow's reader"),
    csv("a long header", "a,b" + "h" * 300_000 + "\n1,x\n2,y\n", AB),
    csv("quote never closed", 'a,b\n1,"x\n2,y\n', error="opened and never closed"),
    csv("no quotes at all", 'a,b\n1,"x\n2,y"\n', [(1, '"x'), (2, 'y"')], quote=""),
    csv("another quote", "a,b\n1,'x,z'\n2,'it''s'\n", [(1, "x,z"), (2, "it's")], quote="'"),
    csv("escape", 'a,b\n1,"x\\"z"\n2,"y\\\\"\n', [(1, 'x"z'), (2, "y\\")], escape="\\"),
    csv("escape before another letter", 'a,b\n1,"x\\n"\n2,y\\z\n', [(1, "x\\n"), (2, "y\\z")], escape="\\"),
    csv("backslash is a letter", 'a,b\n1,x\\\n2,"y\\"\n', [(1, "x\\"), (2, "y\\")]),
    csv("null and empty text", 'a,b\n1,\n2,""\n', [(1, None), (2, "")]),
    csv("null last, no line end", "a,b\n1,x\n2,", [(1, "x"), (2, None)]),
    csv("null last behind quotes, no line end", 'a,b\n1,x\n"2",', [(1, "x"), (2, None)]),
    csv("row of nulls", "a,b\n1,x\n,\n", [(1, "x"), (None, None)]),
    csv("null tokens", "a,b\n1,NA\nNULL,y\n", [(1, None), (None, "y")], null_tokens=("NA", "NULL")),
    csv("NA is text", "a,b\n1,NA\nNULL,y\n", [("1", "NA"), ("NULL", "y")], notes=("column 'a' mixes numbers",)),
    csv("quoted null token", 'a\n"NA"\nx\n', [(None,), ("x",)], null_tokens=("NA",)),
    csv("row too short", "a,b\n1,x\n2\n", error=r"1 row does not have 2 fields \(line 3\)"),
    csv("row too long", "a,b\n1,x\n2,y,z\n\n3\n", error=r"2 rows do not have 2 fields \(lines 3, 5\)"),
    csv("bad rows left out", "a,b\n1,x\n2\n3,y\n4,5,6\n", [(1, "x"), (3, "y")], positions=[0, 2], bad_rows="report",
        notes=(r"2 rows do not have 2 fields \(lines 3, 5\): left out; positions count them",)),
    csv("bad rows behind a quoted line break", 'a,b\n1,"x\nz"\n2\n3,y\n', [(1, "x\nz"), (3, "y")], positions=[0, 2],
        bad_rows="report", notes=(r"1 row does not have 2 fields \(line 4\)",)),
    csv("bad row beyond the first rows", "a,b\n1,x\n2,y\n3\n", AB, rows_=2),
    csv("first rows", "a,b\n1,x\n2,y\n3,z\n", AB, rows_=2),
    csv("no rows at all", "a,b\n1,x\n", [], rows_=0),
    csv("header only", "a,b\n", [], names=["a", "b"], types=["text", "text"]),
    csv("header only, no line end", "a,b", [], names=["a", "b"]),
    csv("empty file", "", error="this file is empty"),
    csv("line ends only", "\n\n\n", error="this file is empty"),
    csv("no header", "1,x\n2,y\n", AB, names=["c1", "c2"], header=False),
    csv("a header of numbers", "1,2.5\n3,4\n", [(3, 4)], names=["1", "2.5"],
        notes=(r"the header holds numbers only \('1', '2\.5'\): is it a row\? \(header=False\)",)),
    csv("a header with a number", "year,2020\n3,4\n", [(3, 4)]),
    csv("no header, blank lines first", "\n1,x\n\n2,y\n", AB, header=False, notes=("2 blank lines skipped",)),
    csv("repeated names", "a,a,a_2\n1,2,3\n", [(1, 2, 3)], names=["a", "a_3", "a_2"],
        notes=("column 2 repeats the name 'a': called 'a_3'",)),
    csv("empty names", "a,,\n1,2,3\n", [(1, 2, 3)], names=["a", "column_2", "column_3"],
        notes=("column 2 has no name", "column 3 has no name")),
    csv("names with dots, blanks and quotes", '"a.b","c ""d""",`e`\n1,2,3\n', [(1, 2, 3)],
        names=["a.b", 'c "d"', "`e`"]),
    csv("a line break in a name", '"Unit\nprice",b\n1,2\n', [(1, 2)], names=["Unit\nprice", "b"]),
    csv("names that differ in case", "id,ID\n1,2\n", [(1, 2)], names=["id", "ID"]),
    csv("one column", "a\n1\n2\n", [(1,), (2,)]),
    csv("one column with blank lines", "a\n1\n\n2\n\n", [(1,), (None,), (2,), (None,)]),
    csv("one column, blank lines before the header", "\n\na\n1\n2\n", [(1,), (2,)], notes=("2 blank lines skipped",)),
    csv("one column of quoted empty text", 'a\n""\nx\n', [("",), ("x",)]),
    csv("one column, bad rows", "a\n1\n2,3\n4\n", [(1,), (4,)], positions=[0, 2], bad_rows="report",
        notes=("1 row does not have 1 field ",)),
    csv("one column that seems to be two", "a;b\n1;2\nx\n", [("1;2",), ("x",)], notes=("is that the separator",)),
    csv("one column that seems to be two, commas asked for", "a;b\n1;2\n", [("1;2",)], sep=","),
    csv("semicolons that nobody named", "a;b\n1;x\n2;y\n", AB, names=["a", "b"],
        notes=(r"separator ';' found: it splits each of the first records into 2 fields \(option sep for another\)",)),
    csv("tabs that nobody named", "a\tb\n1\tx\n2\ty\n", AB, notes=(r"separator '\\t' found",)),
    csv("bars that nobody named, CR LF", "a|b\r\n1|x\r\n2|y\r\n", AB, notes=(r"separator '\|' found",)),
    csv("semicolons that nobody named, and quotes", '"a;";b\n1;"x;\nz"\n\n2;y\n', [(1, "x;\nz"), (2, "y")],
        names=["a;", "b"], notes=("separator ';' found", "1 blank line skipped")),
    csv("semicolons that nobody named, and commas in rows", "Country;Count\nDE;1,5\nFR;2,25\n",
        [("DE", "1,5"), ("FR", "2,25")],
        notes=("separator ';' found", r"column 'Count' holds numbers with commas \(e\.g\. '1,5'\), read as text: decimal=',' reads")),
    csv("semicolons that nobody named, without a header", "1;x\n2;y\n", AB, names=["c1", "c2"], header=False,
        notes=("separator ';' found",)),
    csv("semicolons that nobody named, a bad row late", "a;b\n" + "1;x\n" * 150 + "2\n",
        error=r"1 row does not have 2 fields \(line 152\)"),
    csv("semicolons that nobody named, in latin-1", "a;b\n1;é\n2;y\n".encode("latin-1"), [(1, "é"), (2, "y")],
        encoding="latin-1", notes=("separator ';' found",)),
    csv("two separators that fit", "a;b|c\n1;x|z\n", [("1;x|z",)], notes=("is that the separator",)),
    csv("a separator in quotes only", '"a;b"\n"1;x"\n', [("1;x",)], notes=("is that the separator",)),
    csv("a comma in the header", "a,b;c\n1,x;z\n", [(1, "x;z")], names=["a", "b;c"]),
    csv("semicolons in a file of tabs", "a;b\n1;x\n", [("1;x",)], file="t.tsv", notes=("is that the separator",)),
    csv("a separator that is named first", "sep=;\na;b\n1;x\n2;y\n", AB, names=["a", "b"], spark=NAMED,
        notes=("the first line names the separator, ';', and is no row",)),
    csv("a separator that is named in quotes, CR LF", '"sep=|"\r\na|b\r\n1|x\r\n2|y\r\n', AB, spark=NAMED,
        notes=(r"names the separator, '\|'",)),
    csv("a separator that is named, byte order mark", "\ufeffsep=\t\na\tb\n1\tx\n2\ty\n", AB, spark=NAMED,
        notes=("names the separator",)),
    csv("a separator that is named, no header", "sep=;\n1;x\n2;y\n", AB, header=False, spark=NAMED,
        notes=("names the separator",)),
    csv("a separator that is named, bad row", "sep=;\na;b\n1;x\n2\n3;y\n", [(1, "x"), (3, "y")], positions=[0, 2],
        bad_rows="report", spark=NAMED, notes=("names the separator", r"1 row does not have 2 fields \(line 4\)")),
    csv("a separator that is named, another one asked for", "sep=;\n1;x\n", [(1, "x")], names=["sep=", "column_2"], sep=";",
        notes=("column 2 has no name",)),
    csv("a separator that is named, and nothing else", "sep=;\n", error="this file is empty", spark=NAMED),
    csv("a separator that is named, packed", gzip.compress(b"sep=;\na;b\n1;x\n2;y\n"), AB, file="t.csv.gz", spark=NAMED,
        notes=("names the separator",)),
    csv("a line that names no separator", "sep=ab\n1\n2\n", [(1,), (2,)], names=["sep=ab"]),
    files("csv folder, each file names its separator", {"t/1.csv": b"sep=;\na;b\n1;x\n", "t/2.csv": b"a;b\n2;y\n"}, "t",
          AB, spark=NAMED, notes=("names the separator",)),
    files("csv folder, files name different separators", {"t/1.csv": b"sep=;\na;b\n1;x\n", "t/2.csv": b"sep=|\na|b\n2|y\n"},
          "t", spark=NAMED, error="the first line of .*2.csv names another separator than that of .*1.csv: '|'"),
    files("csv folder, a separator that nobody named", {"t/1.csv": b"a;b\n1;x\n", "t/2.csv": b"a;b\n2;y\n"}, "t", AB,
          notes=("separator ';' found",)),
    files("csv folder, a separator that does not fit all files", {"t/1.csv": b"a;b\n1;x\n", "t/2.csv": b"a;b\ny\n"}, "t",
          [("1;x",), ("y",)], notes=("is that the separator",)),
    csv("lines in front", 'A "title\n\na,b\n1,x\n2,y\n', AB, names=["a", "b"], skip_rows=2, spark=ARROW_ONLY),
    csv("the line of the header", "A title\n\na,b\n1,x\n2,y\n", AB, names=["a", "b"], header_row=3, spark=ARROW_ONLY),
    csv("the line of the header is the first", "a,b\n1,x\n2,y\n", AB, header_row=1, spark=ARROW_ONLY),
    csv("lines in front, byte order mark, CR LF", "\ufeffA title\r\na,b\r\n1,x\r\n2,y\r\n", AB, skip_rows=1,
        spark=ARROW_ONLY),
    csv("lines in front, CR alone", "A title\ra,b\r1,x\r2,y\r", AB, skip_rows=1, spark=ARROW_ONLY),
    csv("lines in front in latin-1", "Straße\na,b\n1,é\n2,y\n".encode("latin-1"), [(1, "é"), (2, "y")], skip_rows=1,
        encoding="latin-1", spark=ARROW_ONLY),
    csv("lines in front, letters of several bytes", "Straße\na,b\n1,é\n2,y\n", [(1, "é"), (2, "y")], skip_rows=1,
        spark=ARROW_ONLY),
    csv("lines in front, packed", gzip.compress(b"title\na,b\n1,x\n2,y\n"), AB, skip_rows=1, file="t.csv.gz",
        spark=ARROW_ONLY),
    csv("lines in front without a header", "title\n1,x\n2,y\n", AB, header=False, skip_rows=1, spark=ARROW_ONLY),
    csv("lines in front of one column, no header", "title\n\n1\n\n2\n", [(None,), (1,), (None,), (2,)], header=False,
        skip_rows=1, spark=ARROW_ONLY),
    csv("lines in front and blank lines", "title\n\na,b\n1,x\n\n2,y\n", AB, skip_rows=1, spark=ARROW_ONLY,
        notes=("2 blank lines skipped",)),
    csv("lines in front, bad row", "title\n\na,b\n1,x\n2\n3,y\n", [(1, "x"), (3, "y")], positions=[0, 2], skip_rows=2,
        bad_rows="report", spark=ARROW_ONLY, notes=(r"1 row does not have 2 fields \(line 5\)",)),
    csv("lines in front, a value that doesn't fit", "title\na,b\n1,x\n", skip_rows=1, types_={"b": "integer"},
        error="doesn't fit type integer at line 3", spark=ARROW_ONLY),
    csv("lines in front and semicolons", "title\na;b\n1;x\n2;y\n", AB, skip_rows=1, spark=ARROW_ONLY,
        notes=("separator ';' found",)),
    csv("lines in front, and quotes read by the letter", 'title\na,b\n1,x"z\n2,"y"\n', [(1, 'x"z'), (2, "y")], skip_rows=1,
        spark=ARROW_ONLY),
    csv("all lines in front", "a,b\n1,x\n", skip_rows=2, error="nothing is left of this file.*skip_rows",
        spark=ARROW_ONLY),
    csv("more lines in front than there are", "a,b\n1,x", skip_rows=9, error="nothing is left of this file",
        spark=ARROW_ONLY),
    files("csv folder, lines in front of each file", {"t/1.csv": b"x\na,b\n1,x\n", "t/2.csv": b"y\na,b\n2,y\n"}, "t", AB,
          skip_rows=1, spark=ARROW_ONLY),
    csv("a footer", "a,b\n1,x\n2,y\nTotal 3\n", AB, types=["integer", "text"], skip_footer=1, spark=ARROW_ONLY),
    csv("a footer of two records, no last line end", 'a,b\n1,x\n2,y\n\nTotal,3,,\n"of\nall"', AB, skip_footer=2,
        spark=ARROW_ONLY),
    csv("a footer, CR LF, byte order mark", "\ufeffa,b\r\n1,x\r\n2,y\r\nTotal\r\n\r\n", AB, skip_footer=1, spark=ARROW_ONLY),
    csv("a footer, packed, in latin-1", gzip.compress("a,b\n1,é\n2,y\nSumme\n".encode("latin-1")), [(1, "é"), (2, "y")],
        skip_footer=1, encoding="latin-1", file="t.csv.gz", spark=ARROW_ONLY),
    csv("a footer of one column", "a\n1\n\n2\n\nTotal\n\n", [(1,), (None,), (2,)], skip_footer=1, spark=ARROW_ONLY),
    csv("a footer behind an empty last field", 'a,b\n1,x\n"2",\nTotal', [(1, "x"), (2, None)], skip_footer=1,
        spark=ARROW_ONLY),
    csv("a footer of more records than there are", "a,b\n1,x\n", [], names=["a", "b"], skip_footer=9, spark=ARROW_ONLY),
    csv("a footer and nothing else", "1,x\n2,y\n", error="nothing is left", skip_footer=2, header=False, spark=ARROW_ONLY),
    csv("a footer and quotes read by the letter", 'a,b\n1,x"z\n2,"y"\nTotal\n', [(1, 'x"z'), (2, "y")], skip_footer=1,
        spark=ARROW_ONLY),
    csv("a footer, bad row", "a,b\n1,x\n2\n3,y\nTotal\n", [(1, "x"), (3, "y")], positions=[0, 2], skip_footer=1,
        bad_rows="report", spark=ARROW_ONLY, notes=(r"1 row does not have 2 fields \(line 3\)",)),
    files("csv folder, a footer in each file", {"t/1.csv": b"a,b\n1,x\nTotal\n", "t/2.csv": b"a,b\n2,y\nTotal\n"}, "t", AB,
          skip_footer=1, spark=ARROW_ONLY),
    csv("title, separator, footer and numbers at once", "T\na;b\n1.234,5;x\n-,5;y\nTotal;;\n", types=["text", "text"],
        rows=[("1.234,5", "x"), ("-,5", "y")], header_row=2, skip_footer=1, decimal=",", thousands=".", spark=ARROW_ONLY,
        notes=("separator ';' found", r"column 'a' mixes numbers \(e\.g\. '1\.234,5'\) and text \(e\.g\. '-,5'\): read as text")),
    csv("a title in front of the header", "My report\n\na,b,c\n1,x,2\n2,y,3\n",
        error=r"3 rows do not have 1 field \(lines 3, 4, 5\)\. Line 3 looks like the header: skip_rows=2$"),
    csv("a title with a comma", "My report, 2024\na,b,c,d\n1,x,2,3\n2,y,3,4\n", error="Line 2 looks like the header: skip_rows=1$"),
    csv("a title and a lone column of its own", "My report\nby me\na,b\n1,x\n2,y\n", error="Line 3 looks like the header: skip_rows=2$"),
    csv("a title in front of semicolons", "My report\na;b\n1,5;x\n2,5;y\n", error="Line 2 looks like the header: skip_rows=1$"),
    csv("one title of two", "My\nreport\na,b\n1,x\n2,y\n", error="Line 3 looks like the header: skip_rows=2$", skip_rows=1,
        spark=ARROW_ONLY),
    csv("numbers only are no header", "a\n1,2\n3,4\n", error="2 rows do not have 1 field .*bad_rows='report'$"),
    csv("a header that lacks the name of the first column", "a,b\n1,x,2\n2,y,3\n", error="do not have 2 fields .*bad_rows='report'$"),
    csv("a total at the end", "a,b\n1,x\n2,y\nTotal 3\n",
        error=r"1 row does not have 2 fields \(line 4\)\. The last record looks like a footer: skip_footer=1$"),
    csv("two records of a footer", "a,b\n1,x\n2,y\n\nTotal,3,\nSource: me\n", error="The last 2 records look like a footer: skip_footer=2$"),
    csv("a total at the end and another bad row", "a,b\n1\n2,y\nTotal\n", error="2 rows do not .*bad_rows='report'$"),
    csv("a short row at the end", "a,b\n1,x\n2\n", error="1 row does not .*bad_rows='report'$"),
    files("csv folder, a total at the end of each file", {"t/1.csv": b"a,b\n1,x\nTotal\n", "t/2.csv": b"a,b\n2,y\nTotal\n"},
          "t", error="2 rows .*The last record looks like a footer: skip_footer=1$"),
    files("csv folder, a total at the end of one file", {"t/1.csv": b"a,b\n1,x\n", "t/2.csv": b"a,b\n2,y\nTotal\n"},
          "t", error="1 row .*bad_rows='report'$"),
    csv("decimal commas that nobody named", 'a,b,c\n"1,50","1.234,5","1,234"\n2,"-3,25","1,234.5"\n', [("1,50", "1.234,5", "1,234"),
        ("2", "-3,25", "1,234.5")], types=["text", "text", "text"],
        notes=(r"column 'a' holds numbers with commas \(e\.g\. '1,50'\), read as text: decimal=',' reads them$",
               r"column 'b' .*: decimal=',' with thousands='\.' reads them$",
               r"column 'c' .*: thousands=',' reads them, or decimal=',' where the comma is a decimal one$")),
    csv("commas that are not all in numbers", 'a\n"1,5"\n"1,5,"\nx\n', types=["text"]),
    csv("decimal commas", 'a,b\n"1,50",x\n"-2,5",y\n', [(Decimal("1.5"), "x"), (Decimal("-2.5"), "y")],
        types=["decimal", "text"], decimal=",", spark=ARROW_ONLY),
    csv("decimal commas and thousands", "a;b\n1.234,50;1.234\n1234,5;1234\n-1.000.000,0;0\n",
        [(Decimal("1234.5"), 1234), (Decimal("1234.5"), 1234), (Decimal("-1000000"), 0)], types=["decimal", "integer"],
        sep=";", decimal=",", thousands=".", spark=ARROW_ONLY),
    csv("thousands by blanks", "a\n1 234.5\n12 345\n3\n", [(1234.5,), (12345.0,), (3.0,)], types=["double"], thousands=" ",
        spark=ARROW_ONLY),
    csv("thousands by letters of several bytes", "a\n1\u202f234\n2\n", [(1234,), (2,)], types=["integer"], thousands="\u202f",
        spark=ARROW_ONLY),
    csv("thousands that group wrongly", 'a\n"1,23"\n"1,234"\n', [("1,23",), ("1,234",)], types=["text"], thousands=",",
        spark=ARROW_ONLY, notes=("column 'a' mixes numbers",)),
    csv("points where commas are decimal", 'a\n"1,5"\n1.5\n', [("1,5",), ("1.5",)], types=["text"], decimal=",",
        spark=ARROW_ONLY, notes=(r"column 'a' mixes numbers .* and text \(e\.g\. '1\.5'\): read as text",)),
    csv("exponents with decimal commas", 'a\n"1,5e3"\n"2,0E-1"\n', [(1500.0,), (0.2,)], types=["double"], decimal=",",
        spark=ARROW_ONLY),
    csv("words and dates where commas are decimal", 'a,b,c\n"x,y",2020-01-01,\n"1,5",2020-01-02,true\n',
        [("x,y", dt.date(2020, 1, 1), None), ("1,5", dt.date(2020, 1, 2), True)], types=["text", "date", "boolean"],
        decimal=",", spark=ARROW_ONLY, notes=("column 'a' mixes numbers",)),
    csv("types asked for where commas are decimal", 'a,b\n"1,5","1,5"\n"2,5","2,5"\n', [(1.5, "1,5"), (2.5, "2,5")],
        types=["double", "text"], types_={"a": "double", "b": "text"}, decimal=",", spark=ARROW_ONLY),
    csv("a number that doesn't fit where commas are decimal", 'a\n"1,5"\n1.5\n', types_={"a": "double"}, decimal=",",
        error="a value doesn't fit type double at line 3: '1.5'", spark=ARROW_ONLY),
    csv("null tokens where commas are decimal", 'a\n"1,5"\n"-9,0"\n', [(Decimal("1.5"),), (None,)], decimal=",",
        null_tokens=("-9,0",), spark=ARROW_ONLY),
    csv("null tokens that fit no type", "a\n1\nNA\n", [(1.0,), (None,)], null_tokens=("NA",), types_={"a": "double"}),
    csv("tabs by the ending", "a\tb\n1\tx\n2\ty\n", AB, file="t.tsv"),
    csv("tabs and empty fields", "a\tb\n1\t\n\t\n", [(1, None), (None, None)], file="t.tsv"),
    csv("bars by the ending", "a|b\n1|x\n2|y\n", AB, file="t.psv"),
    csv("semicolons", "a;b\n1;x\n2;y\n", AB, sep=";"),
    csv("separator of two bytes", "a§b\n1§x\n2§y\n", AB, sep="§"),
    csv("latin-1", "a,b\n1,é\n2,y\n".encode("latin-1"), [(1, "é"), (2, "y")], encoding="latin-1"),
    csv("cp1252", "a,b\n1,“x”\n2,y\n".encode("cp1252"), [(1, "“x”"), (2, "y")], encoding="cp1252"),
    csv("utf-16", "a,b\n1,é\n2,y\n".encode("utf-16"), [(1, "é"), (2, "y")], encoding="utf-16"),
    csv("utf-32", "a,b\n1,é\n2,y\n".encode("utf-32"), [(1, "é"), (2, "y")], encoding="utf-32"),
    csv("utf-16 taken for utf-8", "a,b\n1,x\n".encode("utf-16"), error="encoding='utf-16'$"),
    csv("utf-16-le taken for utf-8", "a,b\n1,x\n".encode("utf-16-le"), error="encoding='utf-16-le'$"),
    csv("utf-16-be taken for utf-8", "a,b\n1,x\n".encode("utf-16-be"), error="encoding='utf-16-be'$"),
    csv("utf-32 taken for utf-8", "a,b\n1,x\n".encode("utf-32"), error="encoding='utf-32'$"),
    csv("utf-32-le taken for latin-1", "a,b\n1,x\n".encode("utf-32-le"), error="encoding='utf-32-le'$", encoding="latin-1"),
    csv("utf-32-be taken for utf-8", "a,b\n1,x\n".encode("utf-32-be"), error="encoding='utf-32-be'$"),
    csv("shift-jis taken for utf-8", "名前,b\n東京都,x\n大阪,y\n".encode("shift_jis"), error="encoding='shift_jis'$"),
    csv("shift-jis with katakana of half width", "a,b\nｱｲｳ,x\n大阪府の市,y\n".encode("shift_jis"), error="encoding='shift_jis'$"),
    csv("shift-jis", "名前,b\n東京都,x\n".encode("shift_jis"), [("東京都", "x")], names=["名前", "b"], encoding="shift_jis"),
    csv("Cyrillic taken for utf-8", "имя,b\nМосква,x\n".encode("cp1251"), error="script is not Latin.*encoding='cp1251'"),
    csv("utf-8 with a byte of latin-1", "a,b\n1,日本\n2,дом\n".encode() + b"3,caf\xe9\n", error="encoding='latin-1'$"),
    csv("an apostrophe of Windows taken for utf-8", "a,b\n1,it’s\n".encode("cp1252"), error="encoding='cp1252'$"),
    csv("an apostrophe of Windows taken for latin-1", "a,b\n1,it’s\n".encode("cp1252"), [(1, "it\x92s")], encoding="latin-1",
        notes=(r"t\.csv holds control characters in latin-1, .* \(encoding='cp1252'\)",)),
    csv("latin-1 taken for utf-8", "a,b\n1,é\n".encode("latin-1"), error="line 2: .*encoding='latin-1'"),
    csv("cp1252 taken for utf-8", "a,b\n1,“x”\n".encode("cp1252"), error="encoding='cp1252'"),
    csv("not text", bytes([0, 1, 2, 200]) * 500, error="not a text file"),
    csv("encoding that nobody knows", "a\n1\n", error="encoding: 'klingon'", encoding="klingon"),
    csv("Unicode", "ä,𝔟\n1,日本\n2,👩‍🚀\n", [(1, "日本"), (2, "👩‍🚀")], names=["ä", "𝔟"]),
    csv("NUL in text", "a,b\n1,x\0z\n2,y\n", [(1, "x\0z"), (2, "y")]),
    csv("types", "i,d,x,day,at,b\n1,1.50,1.5,2020-02-29,2020-01-01T05:00:00Z,true\n-2,2.5,2e3,1900-01-01,2020-01-01 05:00,FALSE\n",
        [(1, Decimal("1.5"), 1.5, dt.date(2020, 2, 29), dt.datetime(2020, 1, 1, 5, tzinfo=UTC), True),
         (-2, Decimal("2.5"), 2000.0, dt.date(1900, 1, 1), dt.datetime(2020, 1, 1, 5, tzinfo=UTC), False)],
        types=["integer", "decimal", "double", "date", "timestamp", "boolean"]),
    csv("numbers that would lose digits", "a,b,c\n007,1.0000000000000000001,9223372036854775808\n8,2,1\n",
        [("007", Decimal("1.0000000000000000001"), Decimal(9223372036854775808)), ("8", Decimal(2), Decimal(1))],
        types=["text", "decimal", "decimal"]),
    csv("types that were asked for", "a,b\n1,2\n3,4\n", [("1", 2.0), ("3", 4.0)], types_={"a": "text", "b": "double"}),
    csv("a value that doesn't fit", "a,b\n1,x\n2,y\n", error="column 'b': a value doesn't fit type integer at line 2 and",
        types_={"b": "integer"}),
    csv("an unknown column", "zip,b\n1,x\n", error="no column of that name.*'zipp'.*zip", columns=("zipp",)),
    csv("an unknown type", "zip,b\n1,x\n", error="type of column 'zip': 'strng'", types_={"zip": "strng"}),
    csv("some columns", "a,b,c\n1,x,2\n3,y,4\n", [(1, 2), (3, 4)], columns=("c", "a")),
    csv("columns left out", "a,b,c\n1,x,2\n3,y,4\n", [(1, 2), (3, 4)], exclude=("b",)),
    csv("an all-null column", "a,b,\n1,x,\n2,y,\n", [(1, "x", None), (2, "y", None)], notes=("column 3 has no name",)),
    csv("bad row only", "a,b\n1\n", [], bad_rows="report", notes=("1 row does not have 2 fields",)),
    csv("a named hidden file", "a,b\n1,x\n2,y\n", AB, file="_t.csv", spark="passes over names that begin with"),
    csv("a colon in the name", "a,b\n1,x\n2,y\n", AB, file="10:30.csv", spark="no path with a colon"),
    csv("odd characters in the name", "a,b\n1,x\n2,y\n", AB, file="a[1] {x}*?.csv"),
    csv("gzip", gzip.compress(b"a,b\n1,x\n2,y\n"), AB, file="t.csv.gz"),
    csv("gzip of two members", gzip.compress(b"a,b\n1,x\n") + gzip.compress(b"2,y\n"), AB, file="t.csv.gz"),
    csv("bz2", bz2.compress(b"a,b\n1,x\n2,y\n"), AB, file="t.csv.bz2"),
    csv("zstd", pa.compress(b"a,b\n1,x\n2,y\n", "zstd", asbytes=True), AB, file="t.csv.zst"),
    csv("part numbers", "p,q\n12E4,1\n120000,2\n5E1,3\n50,4\n,5\n", [("12E4", 1), ("120000", 2), ("5E1", 3), ("50", 4), (None, 5)],
        types=["text", "integer"], notes=("column 'p': '12E4' and '120000' would be the same number: read as text",)),
    csv("part numbers, the other first", "p\n9E0\n1E1\n10\n9\n", types=["text"], notes=("'1E1' and '10' would be",)),
    csv("part numbers like decimals", "p,n\n2E0,1\n2.0,2\n7,3\n", types=["text", "integer"], notes=("'2E0' and '2.0' would be",)),
    csv("zeros with and without an exponent", "p\n0E3\n-0\n1\n", types=["text"], notes=("'0E3' and '-0' would be",)),
    csv("exponents that tell numbers apart", "p,q,r\n12E4,1.2E1,1.0\n5,12.0,1.00\n7,3,2\n", types=["double", "double", "double"]),
    csv("exponents as null tokens", "p\n12E4\n120000\n5E0\n", types=["double"], null_tokens=("12E4",)),
    csv("lz4", _packed(b"a,b\n1,x\n2,y\n", "lz4"), AB, file="t.csv.lz4", spark="unpacks no lz4"),
    csv("xz", lzma.compress(b"a,b\n1,x\n2,y\n"), AB, file="t.csv.xz", spark="unpacks no xz"),
    csv("gzip without the ending", gzip.compress(b"a,b\n1,x\n2,y\n"), AB, spark=PACKED_AS),
    csv("gzip without the ending in latin-1", gzip.compress(b"a,b\n1,x\n2,y\n"), AB, encoding="latin-1", spark=PACKED_AS),
    csv("ending in capitals", gzip.compress(b"a,b\n1,x\n2,y\n"), AB, file="T.CSV.GZ", spark=PACKED_AS),
    csv("plain text called .gz", "a,b\n1,x\n2,y\n", AB, file="t.csv.gz", spark=PACKED_AS),
    csv("gzip cut short", gzip.compress(b"a,b\n1,x\n2,y\n")[:-9], error="damaged", file="t.csv.gz"),
    csv("a workbook", b"PK\x03\x04....", error="an Excel workbook can't be read.*as CSV", file="t.xlsx"),
    csv("a zip archive", b"PK\x03\x04....", error="a zip archive can't be read.*Unpack", file="t.csv.zip"),
    csv("a tar archive", _tar("a.csv", b"a,b\n1,x\n"), error="a tar archive can't be read.*Unpack", file="t.tar"),
    csv("a tar archive called CSV", _tar("a.csv", b"a,b\n1,x\n"), error="a tar archive can't be read", encoding="latin-1"),
    csv("a packed tar archive", gzip.compress(_tar("a.csv", b"a,b\n1,x\n")), error="a tar archive can't be read", file="t.tgz"),
    files("csv folder", {"t/1.csv": b"a,b\n1,x\n", "t/2.csv": b"a,b\n2,y\n", "t/_SUCCESS": b""}, "t", AB),
    files("csv folder with hidden data", {"t/1.csv": b"a,b\n1,x\n", "t/_2.csv": b"a,b\n2,y\n"}, "t", [(1, "x")],
          notes=(r"1 hidden file passed over \(names that begin with _ or \.\): _2\.csv",)),
    files("csv glob", {"1.csv": b"a,b\n1,x\n", "2.csv": b"a,b\n2,y\n", "3.txt": b"z\n1\n"}, "*.csv", AB),
    files("csv folder, one file empty", {"t/1.csv": b"a,b\n1,x\n", "t/2.csv": b"", "t/3.csv": b"a,b\n2,y\n"}, "t", AB,
          notes=(r"1 empty file passed over, e\.g\. .*2\.csv$",)),
    files("csv folder, two files of blank lines", {"t/1.csv": b"\n", "t/2.csv": b"a,b\n1,x\n2,y\n", "t/3.csv": b"\n"}, "t", AB,
          notes=(r"2 empty files passed over, e\.g\. .*1\.csv$", "2 blank lines skipped")),
    files("csv folder, headers differ", {"t/1.csv": b"a,b\n1,x\n", "t/2.csv": b"a,c\n2,y\n"}, "t",
          error="the header of .*2.csv is not that of"),
    files("csv folder, bad row in the second", {"t/1.csv": b"a,b\n1,x\n", "t/2.csv": b"a,b\n2\n3,y\n"}, "t",
          [(1, "x"), (3, "y")], positions=[0, 2], bad_rows="report", notes=(r"1 row .*\(line .*2\.csv:2\)",)),
    files("csv folder names hold columns", {"t/year=2023/p.csv": b"a,b\n1,x\n", "t/year=2024/p.csv": b"a,b\n2,y\n"}, "t",
          [(1, "x", 2023), (2, "y", 2024)], names=["a", "b", "year"], spark="folder names hold columns"),
    files("a folder without data", {"t/_SUCCESS": b""}, "t", error="this folder holds no data files"),
    files("several formats", {"t/1.csv": b"a\n1\n", "t/2.parquet": pa.table({"a": [1]})}, "t", error="several formats"),
]  # fmt: skip

_TYPED = pa.table(
    {
        "i": pa.array([1, None, 9007199254740993], pa.int64()),
        "small": pa.array([1, None, 3], pa.int8()),
        "d": pa.array([Decimal("1.50"), None, Decimal("2.25")]),
        "x": [0.5, None, float("nan")],
        "s": ["a", None, ""],
        "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]),
        "at": pa.array([dt.datetime(2020, 1, 1, 5), None, dt.datetime(2019, 1, 1)], pa.timestamp("us", "UTC")),
        "b": [True, None, False],
    }
)
_TYPES = ["integer", "integer", "decimal", "double", "text", "date", "timestamp", "boolean"]


def _part(**columns: Any) -> pa.Table:
    return pa.table(columns)


TYPED = [
    files("parquet", {"t.parquet": _TYPED}, "t.parquet", types=_TYPES),
    files("orc", {"t.orc": _TYPED.set_column(6, "at", _TYPED["at"].cast(pa.timestamp("us")))}, "t.orc", types=_TYPES),
    files("orc instants", {"t.orc": _TYPED}, "t.orc", types=_TYPES, spark="^Spark can't open this table .* Take reader='arrow'$"),
    files("parquet bytes", {"t.parquet": _part(a=[b"\xff\0", None])}, "t.parquet", [("ff00",), (None,)]),
    files("orc bytes", {"t.orc": _part(a=[b"\xff\0", None])}, "t.orc", [("ff00",), (None,)]),
    files("parquet UUIDs", {"t.parquet": _part(a=pa.array([b"0123456789abcdef"], pa.uuid()))}, "t.parquet",
          [("30313233343536373839616263646566",)], spark=NO_TYPE),
    files("parquet, some columns", {"t.parquet": _TYPED}, "t.parquet", [(1, "a"), (None, None), (9007199254740993, "")],
          columns=("s", "i"), names=["i", "s"]),
    files("parquet, first rows", {"t.parquet": _TYPED}, "t.parquet", [(1,)], columns=("i",), rows_=1),
    files("parquet, text as a date", {"t.parquet": _part(a=["2020-01-01", "x"])}, "t.parquet", types_={"a": "date"},
          error="column 'a': a value doesn't fit type date at row 1"),
    files("parquet timestamps without a zone", {"t.parquet": _part(t=pa.array([0, 1], pa.timestamp("ms")))}, "t.parquet",
          [(dt.datetime(1970, 1, 1, tzinfo=UTC),), (dt.datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC),)]),
    files("parquet timestamps in nanoseconds", {"t.parquet": _part(t=pa.array([1, 0], pa.timestamp("ns")))}, "t.parquet",
          types=["timestamp"]),
    files("parquet unsigned", {"t.parquet": _part(a=pa.array([2**64 - 1, 1], pa.uint64()), b=pa.array([1, 2], pa.uint8()))},
          "t.parquet", [(Decimal(2**64 - 1), 1), (Decimal(1), 2)], types=["decimal", "integer"]),
    files("parquet, unsigned then signed",
          {"t/1.parquet": _part(a=pa.array([2**64 - 1], pa.uint64())), "t/2.parquet": _part(a=[-1])}, "t", [(2**64 - 1,), (-1,)],
          types=["decimal"]),
    files("parquet dictionary", {"t.parquet": _part(a=pa.array(["x", None, "x"]).dictionary_encode())}, "t.parquet",
          [("x",), (None,), ("x",)]),
    files("parquet lists and bytes, excluded", {"t.parquet": _part(k=[1], blob=[b"x"], list=[[1]])}, "t.parquet", [(1,)],
          exclude=("blob", "list")),
    files("parquet lists", {"t.parquet": _part(k=[1], list=[[1]])}, "t.parquet",
          error="column 'list' can't be compared.*exclude='list'", spark="differs: Spark names the type in its words"),
    files("parquet, text names that need quoting", {"t.parquet": _part(**{"a.b": [1], "c d": [2]})}, "t.parquet", [(1, 2)],
          names=["a.b", "c d"]),
    files("parquet, one name twice",
          {"t.parquet": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])}, "t.parquet", [(1, 2)],
          names=["a", "a_2"], notes=("column 2 repeats",), spark="one name, which Spark can't read"),
    files("parquet time of day", {"t.parquet": _part(t=pa.array([3600000, 1000], pa.time32("ms")))}, "t.parquet",
          [("01:00:00.000",), ("00:00:01.000",)], spark=NO_TYPE),
    files("parquet half floats", {"t.parquet": _part(a=pa.array([1.5, 2.5], pa.float32()).cast(pa.float16()))}, "t.parquet",
          [(1.5,), (2.5,)], spark=NO_TYPE),
    files("parquet decimal of 60 digits", {"t.parquet": _part(a=pa.array([Decimal("1" * 60)], pa.decimal256(60, 0)))},
          "t.parquet", [(Decimal("1" * 60),)], spark=NO_TYPE),
    files("parquet named otherwise", {"t.csv": _TYPED}, "t.csv", types=_TYPES),
    files("parquet cut short", {"t.parquet": b"PAR1...."}, "t.parquet", error="is not Parquet, or is damaged"),
    files("text called parquet", {"t.parquet": b"a,b\n1,2\n"}, "t.parquet", error="is not Parquet"),
    files("orc cut short", {"t.orc": b"ORC....."}, "t.orc", error="is not ORC, or is damaged"),
    files("parquet folder", {"t/1.parquet": _part(a=[1], b=["x"]), "t/2.parquet": _part(a=[2], b=["y"])}, "t", AB),
    files("parquet folder names hold columns",
          {"t/zip=007/p.parquet": _part(v=[1]), "t/zip=8/p.parquet": _part(v=[2])}, "t", [(1, "007"), (2, "8")]),
    files("parquet folder names in Unicode and null",
          {"t/c=S%C3%A3o/p.parquet": _part(v=[1]), "t/c=__HIVE_DEFAULT_PARTITION__/p.parquet": _part(v=[2])}, "t",
          [(1, "São"), (2, None)], spark="Spark takes the bytes of folder names for Latin-1"),
    files("csv glob below folder names", {"t/year=2023/p.csv": b"a\n1\n", "t/year=2024/p.csv": b"a\n2\n"}, "t/*/p.csv",
          [(1, 2023), (2, 2024)], names=["a", "year"], spark="folder names hold columns"),
    files("parquet glob below folder names", {"t/y=1/p.parquet": _part(a=[1]), "t/y=2/p.parquet": _part(a=[2])}, "t/y=*/*.parquet",
          [(1, 1), (2, 2)], names=["a", "y"], spark="folder names hold columns"),
    files("parquet with options of CSV", {"t.parquet": _part(a=[1])}, "t.parquet", [(1,)], sep=";", skip_rows=3,
          notes=("sep, skip_rows: for CSV only, without effect here",), spark="differs: Spark says nothing"),
    files("parquet, a column that one file lacks",
          {"t/1.parquet": _part(id=[1]), "t/2.parquet": _part(id=[2], extra=["x"])}, "t", [(1, None), (2, "x")],
          names=["id", "extra"], notes=(r"column 'extra' is not in 1 of 2 files, e\.g\. .*1\.parquet: null there",)),
    files("parquet, names that differ in case", {"t/1.parquet": _part(id=[1]), "t/2.parquet": _part(ID=[2])}, "t",
          error="columns differ in case only: 'id' in .*1.parquet, 'ID' in.*2.parquet"),
    files("parquet, int then bigint",
          {"t/1.parquet": _part(a=pa.array([1], pa.int32())), "t/2.parquet": _part(a=pa.array([2**40], pa.int64()))}, "t",
          [(1,), (2**40,)]),
    files("parquet, float then double",
          {"t/1.parquet": _part(a=pa.array([0.5], pa.float32())), "t/2.parquet": _part(a=[0.1])}, "t", [(0.5,), (0.1,)]),
    files("parquet, decimals of two scales",
          {"t/1.parquet": _part(a=pa.array([Decimal("1.5")])), "t/2.parquet": _part(a=pa.array([Decimal("22.25")]))}, "t",
          [(Decimal("1.5"),), (Decimal("22.25"),)]),
    files("parquet, microseconds then nanoseconds",
          {"t/1.parquet": _part(a=pa.array([1], pa.timestamp("us"))), "t/2.parquet": _part(a=pa.array([1], pa.timestamp("ns")))},
          "t", types=["timestamp"], spark="Spark can't join timestamps in nanoseconds"),
    files("parquet, int then text", {"t/1.parquet": _part(a=[1]), "t/2.parquet": _part(a=["x"])}, "t",
          error="column 'a' is int64 in .*1.parquet and string in .*2.parquet, which have no common type"),
    files("parquet, nothing then text", {"t/1.parquet": _part(a=pa.nulls(1)), "t/2.parquet": _part(a=["x"])}, "t",
          [(None,), ("x",)], spark="Spark can't read this table"),
    files("parquet without rows", {"t.parquet": _part(a=pa.array([], pa.int64()))}, "t.parquet", []),
]  # fmt: skip

JSON = [
    jsonl("lines", '{"z":1,"a":"007","c":1.50,"d":"2020-01-01","b":true}\n\n{"z":9007199254740993,"a":"8","c":2.25}\n',
          [(1, "007", Decimal("1.5"), dt.date(2020, 1, 1), True), (9007199254740993, "8", Decimal("2.25"), None, None)],
          names=["z", "a", "c", "d", "b"], types=["integer", "text", "decimal", "date", "boolean"]),
    jsonl("numbers in quotes are text", '{"a":"1"}\n{"a":"2"}\n', [("1",), ("2",)], types=["text"]),
    jsonl("numbers and text", '{"a":1}\n{"a":"x"}\n', [("1",), ("x",)]),
    jsonl("null and missing", '{"a":1,"b":null}\n{"a":2}\n', [(1, None), (2, None)]),
    jsonl("escapes", '{"a":"x\\n\\u00e9"}\n', [("x\né",)]),
    jsonl("broken line", '{"a":1}\n{"a":\n', error=r"1 row is not a JSON object \(line 2\)"),
    jsonl("broken line left out", '{"a":1}\nnot\n{"a":2}\n', [(1,), (2,)], positions=[0, 2], bad_rows="report",
          notes=(r"1 row is not a JSON object \(line 2\)",)),
    jsonl("two objects on one line", '{"id":1}{"id":2}\n{"id":3}\n', error=r"1 row is not a JSON object \(line 1\)",
          spark="several objects on one line"),
    jsonl("an array on one line", '[{"id":1},{"id":2}]\n{"id":3}\n', error=r"1 row is not a JSON object \(line 1\)",
          spark="several objects on one line"),
    jsonl("a repeated key", '{"a":1,"a":2}\n{"a":3}\n', error=r"1 row is not a JSON object \(line 1\)",
          spark="differs: Spark refuses in its own words"),
    jsonl("nothing", "\n", error="this file is empty"),
    jsonl("objects without keys", "{}\n{}\n", error="the JSON objects have no keys|no JSON object was found",
          spark="differs: Spark tells no object without keys from none"),
    jsonl("an array over the whole file", '[{"a":1},\n{"a":2}]\n', error="no JSON object was found.*one object a line",
          spark="differs: Spark gives no hint"),
    jsonl("nested, excluded", json.dumps({"a": 1, "n": {"x": 1}, "l": [1]}) + "\n", [(1,)], exclude=("n", "l")),
    jsonl("nested", json.dumps({"a": 1, "n": {"x": 1}}) + "\n", error="column 'n' can't be compared.*exclude='n'",
          spark="differs: Spark names the type in its words"),
    jsonl("keys of different case", '{"id":1,"ID":2}\n', [(1, 2)], names=["id", "ID"]),
    jsonl("keys that come later", '{"b":1}\n{"b":2,"a":3}\n', [(1, None), (2, 3)], names=["b", "a"]),
    files("json folder, one file empty", {"t/1.jsonl": b'{"a":1}\n', "t/2.jsonl": b"\n"}, "t", [(1,)],
          notes=(r"1 empty file passed over, e\.g\. .*2\.jsonl$",)),
    files("json lines packed", {"t.jsonl.gz": gzip.compress(b'{"a":1}\n{"a":2}\n')}, "t.jsonl.gz", [(1,), (2,)]),
]  # fmt: skip

INPUTS = [*CSV, *TYPED, *JSON]
