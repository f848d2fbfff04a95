"""How a table is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import message
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
    bad_rows: Literal["fail", "report"] = "fail"
    rows: int | None = None
    reader: Literal["auto", "arrow", "spark"] = "auto"
    master: str | None = None
    profile: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = number_faults(self, rows=0)
        if self.bad_rows not in ("fail", "report"):
            problems.append(message("bad_rows", self.bad_rows, "'fail' or 'report'"))
        if self.reader not in READERS:
            problems.append(message("reader", self.reader, ", ".join(map(repr, READERS))))
        for name, value in (("sep", self.sep), ("quote", self.quote), ("escape", self.escape)):
            one = isinstance(value, str) and (len(value) == 1 or (name == "quote" and value == ""))
            if value is not None and not one:
                problems.append(message(name, value, "one character"))
        raise_faults(problems + flag_faults(self, "header"))


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
