"""How a table is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from tuplewise.engine.errors import Wording, message
from tuplewise.engine.options.common import SparkOptions
from tuplewise.engine.options.option import Options, declarations, option

_A_MARK = "one character that is no letter, digit or sign"
_ENDS_NO_LINE = "one character that ends no line"


def _ends_no_line(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) == 1 and value not in "\r\n")


def _is_mark(value: object) -> bool:
    """Whether this can stand between the digits of a number."""
    return isinstance(value, str) and len(value) == 1 and not value.isalnum() and value not in "+-\r\n\0"


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """How a table is read, whoever reads it (docs/reference/options.md)."""

    columns: tuple[str, ...] | None = option(None, "Use these columns only.", metavar="A,B", fixed=True)
    exclude: tuple[str, ...] = option((), "Leave these columns out.", metavar="A,B", fixed=True)
    types: Mapping[str, str] = option(
        {}, "Types of columns, by name (`*`: of all): integer, decimal, double, date, timestamp, boolean, text.",
        metavar="COL=TYPE", last_equals=True, fixed=True,
    )
    null_tokens: tuple[str, ...] = option((), "Texts that are nulls.", metavar="TEXT", each="null-token", fixed=True)
    sep: str | None = option(
        None, "CSV: what separates fields.",
        check=_ends_no_line, allowed=_ENDS_NO_LINE, metavar="CHAR", default_is="comma; tab for .tsv",
    )
    quote: str = option(
        '"', "CSV: quote; empty for none.",
        check=lambda value: value == "" or _ends_no_line(value), allowed=_ENDS_NO_LINE, metavar="CHAR",
    )
    escape: str | None = option(
        None, "CSV: escape character.",
        check=_ends_no_line, allowed=_ENDS_NO_LINE, metavar="CHAR", default_is="none, quotes are doubled",
    )
    encoding: str = option("utf-8", "CSV: character encoding.", metavar="NAME")
    header: bool = option(True, "CSV: the first line names the columns.", off="CSV: the first line is data.")
    skip_rows: int = option(0, "CSV: number of lines in front to pass over.", least=0, metavar="N")
    header_row: int | None = option(None, "CSV: number of the line with the header (from 1).", least=1, metavar="N")
    skip_footer: int = option(0, "CSV: number of records at the end that are no rows.", least=0, metavar="N")
    decimal: str = option(".", "CSV: decimal character of numbers.", check=_is_mark, allowed=_A_MARK, metavar="CHAR")
    thousands: str | None = option(
        None, "CSV: what groups the digits of numbers.",
        check=_is_mark, allowed=_A_MARK, metavar="CHAR", default_is="nothing",
    )
    bad_rows: Literal["fail", "report"] = option(
        "fail", "CSV: what becomes of rows with too few or too many fields: an error, or left out and reported."
    )
    rows: int | None = option(None, "Use this number of rows only, the first ones.", least=0, metavar="N")
    reader: Literal["auto", "arrow", "spark"] = option(
        "auto", "What reads the table: Arrow in this process, or Spark (auto: Arrow where it fits in memory)."
    )


@dataclass(frozen=True, kw_only=True)
class LoadOptions(SparkOptions, TableOptions):
    """How a table is read, and by which Spark where Spark reads it."""

    def faults(self) -> list[str]:
        faults = []
        if self.header_row is not None and self.skip_rows:
            faults.append(message("header_row with skip_rows", self.skip_rows, "one of the two"))
        if self.header_row is not None and self.header is False:
            faults.append(message("header_row without a header", self.header_row, hint=Wording("Take {skip_rows}")))
        if self.thousands is not None and self.decimal == self.thousands:
            faults.append(message("thousands", self.thousands, "another character than decimal"))
        return faults

    @property
    def lines_in_front(self) -> int:
        """How many lines of each CSV file are passed over."""
        return self.skip_rows if self.header_row is None else self.header_row - 1

    @property
    def notation(self) -> tuple[str, str | None] | None:
        """How numbers of CSV files are written, by their decimal character and that of thousands; None: plainly."""
        return None if (self.decimal, self.thousands) == (".", None) else (self.decimal, self.thousands)

    @property
    def for_arrow(self) -> list[str]:
        """The options that were set and that Spark's reader of CSV doesn't know."""
        return self._set("skip_rows", "header_row", "skip_footer", "decimal", "thousands")

    def for_csv(self, format_: str) -> list[str]:
        """The options that were set and that say how CSV files are written. JSON lines have an encoding, too."""
        names = self._set("sep", "quote", "escape", "header") + self.for_arrow
        return names + (self._set("encoding") if format_ != "json" else [])

    def _set(self, *names: str) -> list[str]:
        """Those of some options that are not what they are by default."""
        declared = declarations(LoadOptions)
        return [name for name in names if getattr(self, name) != declared[name].default]


class LoadKeywords(TypedDict, total=False):
    """LoadOptions, for editors."""

    columns: Sequence[str] | None
    exclude: Sequence[str]
    types: Mapping[str, str]
    null_tokens: Sequence[str]
    sep: str | None
    quote: str
    escape: str | None
    encoding: str
    header: bool
    skip_rows: int
    header_row: int | None
    skip_footer: int
    decimal: str
    thousands: str | None
    bad_rows: Literal["fail", "report"]
    rows: int | None
    reader: Literal["auto", "arrow", "spark"]
    master: str | None
    profile: str | None
    conf: Mapping[str, str]
