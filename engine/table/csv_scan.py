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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

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


@dataclass(frozen=True)
class CsvScan:
    """The result of a scan.

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

    lines: NDArray[np.int64]
    blank_before: NDArray[np.int64]
    first_record: list[str]
    quotes: bool
    quoted_newlines: bool
    needs_escape: bool
    inner_newlines: int
    inner_returns: int
    returns: bool
    stray_returns: bool
    behind_quotes: bool
    header_end: int
    marked: bool
    controls: bool
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
        self._begin = 0
        self._last_ends = np.empty((2, 0), dtype=np.int64)  # of the last records: bytes, and the line behind each
        self._quote = dialect.quote.encode()
        self._line = 1
        self._records = 0
        self._lines: list[NDArray[np.int64]] = []
        self._blank_before: list[NDArray[np.int64]] = []
        self._first: list[str] | None = None
        self._quotes = self._quoted_newlines = self._needs_escape = self._walking = self._returns = False
        self._inner_newlines = self._inner_returns = 0
        self._stray_returns = self._behind_quotes = False
        self._done = self._header_end = 0

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
        self._begin = self._header_end = self._done
        return data[at:]

    def take(self, data: bytes, *, last: bool) -> bytes:
        """Scan whole records. Returns the start of the next, incomplete record."""
        if not data:
            return b""
        quotes = bool(self._quote) and self._quote in data
        self._quotes |= quotes
        self._needs_escape |= quotes and b"\\" in data
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
            if (quotes and len(ends) == 0) or self._open(data[done:]):
                line = self._line + data.count(b"\n", 0, done)
                if self._open(data[done:]):
                    raise InputError(
                        message(
                            f"{self._path}, line {line}: a quote is opened and never closed",
                            self._dialect.quote,
                            hint=Wording("Mend the file, or name its quote character: {quote}"),
                        )
                    )
            ends = np.append(ends, len(data))
            done = len(data)
        self._note(data, ends, newline)
        self._done += done
        return data[done:]

    def _escaped(self, data: bytes) -> bool:
        escape = self._dialect.escape
        return escape is not None and escape != self._dialect.quote and escape.encode() in data

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
        self._behind_quotes |= not np.isin(bytes_[closing[closing < len(data) - 1] + 1], ends_fields).all()
        self._needs_escape |= bool((quotes[2::2] - quotes[1:-1:2] == 1).any()) if len(quotes) > 2 else False
        newlines = np.flatnonzero(bytes_ == newline)
        inside = np.searchsorted(quotes, newlines) & 1
        self._quoted_newlines |= bool(inside.any())
        ends: NDArray[np.int64] = newlines[inside == 0] + 1
        return ends

    def _pattern(self) -> re.Pattern[bytes]:
        quote = re.escape(self._quote)
        sep = re.escape(self._dialect.sep.encode())
        escape = self._dialect.escape
        if escape is not None and escape != self._dialect.quote:
            inside = (
                rb"(?:[^" + quote + re.escape(escape.encode()) + rb"]|" + re.escape(escape.encode()) + rb"(?s:.))*+"
            )
        else:
            inside = rb"[^" + quote + rb"]*+(?:" + quote + quote + rb"[^" + quote + rb"]*+)*+"
        rest = rb"(?:(?!" + sep + rb")[^\n])*+"
        field = rb"(?:" + quote + inside + quote + rest + rb"|(?!" + quote + rb")" + rest + rb")"
        return re.compile(field + rb"(?:" + sep + field + rb")*+(?:\n|\Z)")

    def _behind_pattern(self) -> re.Pattern[bytes]:
        """A pattern for text after a closing quote; it may match by mistake where quotes are doubled."""
        quote, sep = re.escape(self._quote), re.escape(self._dialect.sep.encode())
        inside = rb"[^" + quote + rb"]*+(?:" + quote + quote + rb"[^" + quote + rb"]*+)*+"
        return re.compile(rb"(?:\A|" + sep + rb"|\n)" + quote + inside + quote + rb"(?!" + sep + rb"|\r?\n|\Z)")

    def _walk(self, data: bytes, last: bool) -> NDArray[np.int64]:
        """The ends of records, found one record at a time."""
        self._walking = self._quoted_newlines = self._needs_escape = True
        pattern = self._pattern()
        if self._dialect.escape in (None, self._dialect.quote):
            self._behind_quotes = self._behind_quotes or self._behind_pattern().search(data) is not None
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
            self._check_line_ends(ended, returns, starts)
            size = size - returns
        blank = size == 0
        newlines = np.flatnonzero(bytes_[: int(ends[-1])] == newline)
        inner = newlines[~np.isin(newlines, ends - 1)] if len(newlines) > len(ends) else newlines[:0]
        self._inner_newlines += len(inner)
        self._inner_returns += int(np.count_nonzero(bytes_[inner - 1] == _RETURN))
        self._returns |= returns is not None and bool(returns.any())
        if newline == _NEWLINE and b"\r" in data:
            own = np.flatnonzero(bytes_[: int(ends[-1])] == _RETURN)
            self._stray_returns |= bool((bytes_[np.minimum(own + 1, len(bytes_) - 1)] != _NEWLINE).any())
        line = self._line + np.searchsorted(newlines, starts)
        self._lines.append(line[~blank].astype(np.int64))
        self._blank_before.append(self._records + np.cumsum(~blank)[blank])
        if self._first is None and not blank.all():
            index = int(np.flatnonzero(~blank)[0])
            self._first = self._fields(data[int(starts[index]) : int(ends[index])])
            self._header_end = self._done + int(ends[index])
        if self._part.footer:
            behind = self._line + np.searchsorted(newlines, ends[~blank])
            own = np.stack([self._done + ends[~blank], behind])
            self._last_ends = np.concatenate([self._last_ends, own], axis=1)[:, -self._part.footer - 1 :]
        self._records += int((~blank).sum())
        self._line += len(newlines)

    def _check_line_ends(self, ended: NDArray[np.bool_], returns: NDArray[np.bool_], starts: NDArray[np.int64]) -> None:
        if not returns.any() or returns[ended].all():
            return
        first = bool(returns[ended][0])
        if not first:
            raise InputError(
                message(
                    f"{self._path} mixes line ends: some lines end with CR LF, others with LF alone",
                    hint="Write it with one kind of line end",
                )
            )

    def _fields(self, record: bytes) -> list[str]:
        dialect = self._dialect
        escape = dialect.escape if dialect.escape != dialect.quote else None
        reader = csv.reader(
            io.StringIO(record.decode(), newline=""),
            delimiter=dialect.sep,
            quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
            escapechar=escape,
            doublequote=escape is None,
        )
        longest = csv.field_size_limit(len(record) + 1)  # it is the whole process's
        try:
            return next(reader, [])
        finally:
            csv.field_size_limit(longest)

    def result(self, marked: bool, controls: bool) -> CsvScan:
        empty = np.empty(0, dtype=np.int64)
        lines, blank_before = np.concatenate([empty, *self._lines]), np.concatenate([empty, *self._blank_before])
        skipped = self._part.skip - self._to_skip
        end = end_line = None
        footer = min(self._part.footer, max(0, len(lines) - int(self._part.header)))
        if footer:  # blank lines in front of a footer belong to it
            rows = len(lines) - footer
            end, end_line = map(int, self._last_ends[:, -footer - 1]) if rows else (self._begin, skipped + 1)
            lines, blank_before = lines[:rows], blank_before[blank_before < rows]
        return CsvScan(
            lines=lines,
            blank_before=blank_before,
            first_record=self._first or [],
            quotes=self._quotes,
            quoted_newlines=self._quoted_newlines,
            needs_escape=self._needs_escape,
            inner_newlines=self._inner_newlines,
            inner_returns=self._inner_returns,
            returns=self._returns,
            stray_returns=self._stray_returns,
            behind_quotes=self._behind_quotes,
            header_end=self._header_end,
            marked=marked,
            controls=controls,
            begin=self._begin,
            skipped_lines=skipped,
            end=end,
            end_line=end_line,
        )


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
