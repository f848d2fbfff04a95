"""How a table is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import Wording, message
from tuplewise.engine.options.faults import flag_faults, number_faults, raise_faults
from tuplewise.engine.options.keywords import refuse_unknown, texts

READERS = ("auto", "arrow", "spark")


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a table is read (interface.md, common options)."""

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    null_tokens: tuple[str, ...] = ()
    sep: str | None = None
    quote: str = '"'
    escape: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    skip_rows: int = 0
    header_row: int | None = None
    skip_footer: int = 0
    decimal: str = "."
    thousands: str | None = None
    bad_rows: Literal["fail", "report"] = "fail"
    rows: int | None = None
    reader: Literal["auto", "arrow", "spark"] = "auto"
    master: str | None = None
    profile: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = number_faults(self, rows=0, skip_rows=0, header_row=1, skip_footer=0)
        if self.bad_rows not in ("fail", "report"):
            problems.append(message("bad_rows", self.bad_rows, "'fail' or 'report'"))
        if self.reader not in READERS:
            problems.append(message("reader", self.reader, ", ".join(map(repr, READERS))))
        for name, value in (("sep", self.sep), ("quote", self.quote), ("escape", self.escape)):
            one = isinstance(value, str) and (len(value) == 1 or (name == "quote" and value == ""))
            if value is not None and (not one or value in ("\n", "\r")):
                problems.append(message(name, value, "one character that ends no line"))
        if self.header_row is not None and self.skip_rows:
            problems.append(message("header_row with skip_rows", self.skip_rows, "one of the two"))
        if self.header_row is not None and self.header is False:
            hint = Wording("Take {skip_rows}")
            problems.append(message("header_row without a header", self.header_row, hint=hint))
        problems += self._notation_faults()
        raise_faults(problems + flag_faults(self, "header"))

    def _notation_faults(self) -> list[str]:
        allowed = "one character that is no letter, digit or sign"
        given = {"decimal": self.decimal} | ({} if self.thousands is None else {"thousands": self.thousands})
        shown = {name: "None" if mark is None else mark for name, mark in given.items()}
        problems = [message(name, mark, allowed) for name, mark in shown.items() if not _is_mark(mark)]
        if self.thousands is not None and self.decimal == self.thousands:
            problems.append(message("thousands", self.thousands, "another character than decimal"))
        return problems

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
        plain = {"skip_rows": 0, "header_row": None, "skip_footer": 0, "decimal": ".", "thousands": None}
        return [name for name, value in plain.items() if getattr(self, name) != value]


    def for_csv(self, format_: str) -> list[str]:
        """The options that were set and that say how CSV files are written. JSON lines have an encoding, too."""
        plain = {"sep": None, "quote": '"', "escape": None, "header": True}
        names = [name for name, value in plain.items() if getattr(self, name) != value] + self.for_arrow
        return names + (["encoding"] if format_ != "json" and self.encoding != "utf-8" else [])


def _is_mark(value: object) -> bool:
    """Whether this can stand between the digits of a number."""
    return isinstance(value, str) and len(value) == 1 and not value.isalnum() and value not in "+-\r\n\0"


class LoadKeywords(TypedDict, total=False):
    """What `tuplewise.load` can be told; see LoadOptions."""

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


def load_options(given: Mapping[str, Any]) -> LoadOptions:
    """Load options from keyword arguments; one name may stand for a list of one."""
    refuse_unknown("load", LoadOptions, given)
    values = dict(given)
    for name in ("columns", "exclude", "null_tokens"):
        if values.get(name) is not None:
            values[name] = texts(name, values[name])
    return LoadOptions(**values)
