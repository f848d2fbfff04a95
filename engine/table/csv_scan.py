"""A scan of the bytes of a CSV file before it is read: records and their lines, blank lines, invalid bytes.

The readers of Arrow and Spark report no line numbers and drop blank lines; Spark also replaces invalid bytes. The scan
finds all of these. It follows RFC 4180: a quote opens a quoted field only at the start of the field, and a doubled
quote inside stands for one quote.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.table.encodings import WINDOWS_ONLY, encoding_hint

_BLOCK_BYTES = 1 << 22
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True)
class Dialect:
    """The dialect of a CSV file."""

    sep: str
    quote: str
    escape: str | None
    encoding: str

    @property
    def own_escape(self) -> str | None:
        """The escape character; None if quotes are escaped by doubling them."""
        return None if self.escape == self.quote else self.escape

    @property
    def quoted(self) -> str:
        """A regular expression for the text between an opening and a closing quote."""
        quote = re.escape(self.quote)
        if self.own_escape is None:
            return rf"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        escape = re.escape(self.own_escape)
        return rf"(?:[^{quote}{escape}]|{escape}(?s:.))*+"

    def reader(self, lines: Iterable[str]) -> Any:
        """Python's own reader, a `csv.reader`."""
        return csv.reader(
            lines, delimiter=self.sep, quotechar=self.quote or None, escapechar=self.own_escape,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE, doublequote=self.own_escape is None,
        )  # fmt: skip


def _nothing() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class CsvScan:
    """The result of a scan, which the scan fills in.

    Attributes
    ----------
    lines : int64 (records,), 1-based line on which each non-blank record begins; the header is the first
    blank_before : int64 (blank lines,), number of non-blank records before each blank line
    first_record : fields of the first record
    quotes, quoted_newlines : whether there are quotes, and newlines inside quotes
    needs_escape : whether there are doubled quotes, or quotes and backslashes
    inner_newlines, inner_returns : number of newlines inside quotes, and how many of them are CR LF
    returns : whether records end with CR LF
    behind_quotes : whether text follows a closing quote; may be true by mistake in files with stray quotes
    stray_returns : whether a CR is followed by something other than LF although lines end with LF
    header_end : bytes of UTF-8 up to the end of the first record, without a byte order mark
    marked : whether the file begins with a byte order mark
    controls : whether a file in Latin-1 holds control characters that are quotes and dashes in Windows-1252
    begin, skipped_lines : bytes of UTF-8 and lines that were skipped at the start
    end, end_line : if there is a footer, bytes of UTF-8 up to the end of the last data row, and the line after it;
        else None
    """

    lines: NDArray[np.int64] = field(default_factory=_nothing)
    blank_before: NDArray[np.int64] = field(default_factory=_nothing)
    first_record: list[str] = field(default_factory=list)
    quotes: bool = False
    quoted_newlines: bool = False
    needs_escape: bool = False
    inner_newlines: int = 0
    inner_returns: int = 0
    returns: bool = False
    stray_returns: bool = False
    behind_quotes: bool = False
    header_end: int = 0
    marked: bool = False
    controls: bool = False
    begin: int = 0
    skipped_lines: int = 0
    end: int | None = None
    end_line: int | None = None


@dataclass(frozen=True)
class TableExtent:
    """The part of a CSV file that is its table.

    Attributes
    ----------
    skip : number of lines to skip at the start
    footer : number of records at the end that are not rows
    header : whether the first record is the header, which never counts as footer
    """

    skip: int = 0
    footer: int = 0
    header: bool = True


_ALL = TableExtent()


def scan_csv(
    stream: IO[bytes], path: str, dialect: Dialect, kept: list[bytes] | None = None, part: TableExtent = _ALL
) -> CsvScan:
    """Scan a file once. `kept` receives its text as UTF-8 without a byte order mark.

    Raises InputError for bytes that are invalid in the encoding, and for a quote that is never closed.

    Notes
    -----
    Linear in bytes, with NumPy over blocks that begin at a record; a file with stray quotes is walked record by record.
    """
    text = _Utf8(stream, path, dialect.encoding)
    scanner = _Scanner(path, dialect, part)
    rest = b""
    while True:
        block = text.read(_BLOCK_BYTES)
        if kept is not None:
            kept.append(block)
        data = scanner.pass_over(rest + block)
        rest = scanner.take(data, last=not block)
        if not block:
            return scanner.result(text.marked, text.controls)


class _Utf8:
    """A reader that turns a stream of any encoding into UTF-8. Errors name the line of an invalid byte."""

    def __init__(self, stream: IO[bytes], path: str, encoding: str) -> None:
        self._stream = stream
        self._path = path
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._lines = 0
        self._first = True
        self.marked = self.controls = False

    def read(self, size: int) -> bytes:
        raw = self._stream.read(size)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as problem:
            before = problem.object[: problem.start].decode(self._encoding, "ignore")
            line = self._lines + before.count("\n") + 1
            byte = problem.object[problem.start : problem.start + 1].hex()
            raise InputError(
                message(
                    f"{self._path}, line {line}: a byte that encoding {self._encoding} does not allow",
                    f"0x{byte}",
                    hint=encoding_hint(problem.object, line == 1),
                )
            ) from None
        if self._first and text:
            self._first = False
            self.marked = text[0] == "\ufeff"
            text = text.removeprefix("\ufeff")
            if text[:200].count("\0") > len(text[:200]) // 4:
                hint = encoding_hint(raw, True)
                raise InputError(message(f"{self._path} holds NUL bytes in encoding", self._encoding, hint=hint))
        if self._encoding == "iso8859-1" and not self.controls:
            self.controls = WINDOWS_ONLY.search(raw) is not None
        self._lines += text.count("\n")
        if not text and raw:
            return self.read(size)  # a block that ended inside of a character
        return text.encode()


class _Scanner:
    def __init__(self, path: str, dialect: Dialect, part: TableExtent) -> None:
        self._path = path
        self._dialect = dialect
        self._part = part
        self._to_skip = part.skip
        self._found = CsvScan()
        self._last_ends = np.empty((2, 0), dtype=np.int64)  # of the last records: bytes, and the line behind each
        self._quote = dialect.quote.encode()
        self._line = 1
        self._records = 0
        self._lines: list[NDArray[np.int64]] = []
        self._blank_before: list[NDArray[np.int64]] = []
        self._walking = False
        self._done = 0

    def pass_over(self, data: bytes) -> bytes:
        """The data after the lines to skip."""
        if not self._to_skip:
            return data
        newline = b"\n" if b"\n" in data or b"\r" not in data else b"\r"
        at = 0
        while self._to_skip and at < len(data):
            end = data.find(newline, at) + 1
            if end:
                self._to_skip -= 1
                self._line += 1
            at = end or len(data)
        self._done += at
        self._found.begin = self._found.header_end = self._done
        return data[at:]

    def take(self, data: bytes, *, last: bool) -> bytes:
        """Scan whole records. Returns the start of the next, incomplete record."""
        if not data:
            return b""
        quotes = bool(self._quote) and self._quote in data
        self._found.quotes |= quotes
        self._found.needs_escape |= quotes and b"\\" in data
        newline = _NEWLINE if b"\n" in data or b"\r" not in data else _RETURN
        if quotes and (self._walking or self._escaped(data)):
            ends = self._walk(data, last)
        elif quotes:
            found = self._ends_by_parity(data, newline)
            ends = self._walk(data, last) if found is None else found
        else:
            ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == newline) + 1
        done = int(ends[-1]) if len(ends) else 0
        if last and done < len(data):
            if self._open(data[done:]):
                line = self._line + data.count(b"\n", 0, done)
                what = f"{self._path}, line {line}: a quote is opened and never closed"
                hint = Wording("Mend the file, or name its quote character: {quote}")
                raise InputError(message(what, self._dialect.quote, hint=hint))
            ends = np.append(ends, len(data))
            done = len(data)
        self._note(data, ends, newline)
        self._done += done
        return data[done:]

    def _escaped(self, data: bytes) -> bool:
        escape = self._dialect.own_escape
        return escape is not None and escape.encode() in data

    def _ends_by_parity(self, data: bytes, newline: int) -> NDArray[np.int64] | None:
        """The ends of records, if all quotes come in pairs; None if a quote is inside an unquoted field."""
        if len(self._dialect.sep.encode()) > 1 or len(self._quote) > 1:
            return None
        bytes_ = np.frombuffer(data, dtype=np.uint8)
        quote = self._quote[0]
        quotes = np.flatnonzero(bytes_ == quote)
        opening = quotes[0::2]
        before = bytes_[opening[opening > 0] - 1]
        ends_fields = np.array([newline, _RETURN, ord(self._dialect.sep), quote], dtype=np.uint8)
        if not np.isin(before, ends_fields).all():
            return None
        closing = quotes[1::2]
        self._found.behind_quotes |= not np.isin(bytes_[closing[closing < len(data) - 1] + 1], ends_fields).all()
        self._found.needs_escape |= bool((quotes[2::2] - quotes[1:-1:2] == 1).any()) if len(quotes) > 2 else False
        newlines = np.flatnonzero(bytes_ == newline)
        inside = np.searchsorted(quotes, newlines) & 1
        self._found.quoted_newlines |= bool(inside.any())
        ends: NDArray[np.int64] = newlines[inside == 0] + 1
        return ends

    def _pattern(self) -> re.Pattern[bytes]:
        quote, sep = re.escape(self._dialect.quote), re.escape(self._dialect.sep)
        rest = rf"(?:(?!{sep})[^\n])*+"
        field = rf"(?:{quote}{self._dialect.quoted}{quote}{rest}|(?!{quote}){rest})"
        return re.compile(rf"{field}(?:{sep}{field})*+(?:\n|\Z)".encode())

    def _behind_pattern(self) -> re.Pattern[bytes]:
        """A pattern for text after a closing quote; it may match by mistake where quotes are doubled."""
        quote, sep = re.escape(self._dialect.quote), re.escape(self._dialect.sep)
        quoted = f"{quote}{self._dialect.quoted}{quote}"
        return re.compile(rf"(?:\A|{sep}|\n){quoted}(?!{sep}|\r?\n|\Z)".encode())

    def _walk(self, data: bytes, last: bool) -> NDArray[np.int64]:
        """The ends of records, found one record at a time."""
        self._walking = self._found.quoted_newlines = self._found.needs_escape = True
        pattern = self._pattern()
        if self._dialect.own_escape is None:
            self._found.behind_quotes = self._found.behind_quotes or self._behind_pattern().search(data) is not None
        ends = []
        position = 0
        while position < len(data):
            found = pattern.match(data, position)
            if found is None or (found.end() == len(data) and data[-1:] != b"\n" and not last):
                break
            position = found.end()
            ends.append(position)
        if ends and not last and data[ends[-1] - 1 : ends[-1]] != b"\n":
            ends.pop()
        return np.array(ends, dtype=np.int64)

    def _open(self, tail: bytes) -> bool:
        """Whether the text after the last record, at the end of the file, is inside quotes."""
        return bool(self._quote) and self._quote in tail and self._pattern().match(tail) is None

    def _note(self, data: bytes, ends: NDArray[np.int64], newline: int) -> None:
        if len(ends) == 0:
            return
        bytes_ = np.frombuffer(data, dtype=np.uint8)
        starts = np.concatenate([[0], ends[:-1]])
        size = ends - starts
        ended = bytes_[ends - 1] == newline
        size = size - ended
        returns = ended & (size > 0) & (bytes_[np.maximum(ends - 2, 0)] == _RETURN) if newline == _NEWLINE else None
        if returns is not None:
            self._check_line_ends(returns[ended])
            size = size - returns
        blank = size == 0
        newlines = np.flatnonzero(bytes_[: int(ends[-1])] == newline)
        inner = newlines[~np.isin(newlines, ends - 1)] if len(newlines) > len(ends) else newlines[:0]
        self._found.inner_newlines += len(inner)
        self._found.inner_returns += int(np.count_nonzero(bytes_[inner - 1] == _RETURN))
        self._found.returns |= returns is not None and bool(returns.any())
        if newline == _NEWLINE and b"\r" in data:
            own = np.flatnonzero(bytes_[: int(ends[-1])] == _RETURN)
            self._found.stray_returns |= bool((bytes_[np.minimum(own + 1, len(bytes_) - 1)] != _NEWLINE).any())
        line = self._line + np.searchsorted(newlines, starts)
        self._lines.append(line[~blank].astype(np.int64))
        self._blank_before.append(self._records + np.cumsum(~blank)[blank])
        if not self._records and not blank.all():
            index = int(np.flatnonzero(~blank)[0])
            self._found.first_record = self._fields(data[int(starts[index]) : int(ends[index])])
            self._found.header_end = self._done + int(ends[index])
        if self._part.footer:
            behind = self._line + np.searchsorted(newlines, ends[~blank])
            own = np.stack([self._done + ends[~blank], behind])
            self._last_ends = np.concatenate([self._last_ends, own], axis=1)[:, -self._part.footer - 1 :]
        self._records += int((~blank).sum())
        self._line += len(newlines)

    def _check_line_ends(self, returns: NDArray[np.bool_]) -> None:
        """Raise InputError if the first line ends with LF alone, and another one with CR LF."""
        if returns.any() and not returns[0]:
            what = f"{self._path} mixes line ends: some lines end with CR LF, others with LF alone"
            raise InputError(message(what, hint="Write it with one kind of line end"))

    def _fields(self, record: bytes) -> list[str]:
        reader = self._dialect.reader(io.StringIO(record.decode(), newline=""))
        longest = csv.field_size_limit(len(record) + 1)  # it is the whole process's
        try:
            return next(reader, [])
        finally:
            csv.field_size_limit(longest)

    def result(self, marked: bool, controls: bool) -> CsvScan:
        found = self._found
        found.marked, found.controls = marked, controls
        found.skipped_lines = self._part.skip - self._to_skip
        found.lines = np.concatenate([found.lines, *self._lines])
        found.blank_before = np.concatenate([found.blank_before, *self._blank_before])
        footer = min(self._part.footer, max(0, len(found.lines) - int(self._part.header)))
        if footer:  # blank lines in front of a footer belong to it
            rows = len(found.lines) - footer
            last = self._last_ends[:, -footer - 1] if rows else (found.begin, found.skipped_lines + 1)
            found.end, found.end_line = map(int, last)
            found.lines, found.blank_before = found.lines[:rows], found.blank_before[found.blank_before < rows]
        return found


def scan_lines(stream: IO[bytes], path: str, encoding: str) -> Iterator[tuple[int, bytes]]:
    """The non-blank lines as UTF-8, each with its 1-based number."""
    text = _Utf8(stream, path, codecs.lookup(encoding).name)
    rest = b""
    line = 0
    while True:
        block = text.read(_BLOCK_BYTES)
        whole = (rest + block).split(b"\n")
        rest = whole.pop() if block else b""
        for content in whole:
            line += 1
            if content.strip():
                yield line, content
        if not block:
            return
