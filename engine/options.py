"""What each task can be told. Frozen, checked once; the command line and the Python functions share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import InputError, message, near_names

Nulls = Literal["unknown", "value"]
RankBy = Literal["succinctness", "coverage", "g1"]


def _collect(problems: list[str]) -> None:
    if problems:
        raise InputError("; ".join(problems))


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
    master: str | None = None
    profile: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = []
        if self.rows is not None and self.rows < 0:
            problems.append(message("rows", self.rows, "0 or more"))
        if self.bad_rows not in ("fail", "report"):
            problems.append(message("bad_rows", self.bad_rows, "'fail' or 'report'"))
        for name, value in (("sep", self.sep), ("quote", self.quote), ("escape", self.escape)):
            if value is not None and len(value) != 1 and not (name == "quote" and value == ""):
                problems.append(message(name, value, "one character"))
        _collect(problems)


@dataclass(frozen=True, kw_only=True)
class DcDiscoverOptions:
    """What `dc discover` looks for and how.

    `error` is g1, the share of ordered pairs that may violate a constraint; it is kept as the decimal that was
    written, so that the bound in pairs, floor(error * n * (n - 1)), is exact.
    """

    error: Decimal = Decimal(0)
    max_predicates: int | None = None
    cross_columns: bool = True
    single_tuple: bool = False
    order_text: bool = False
    shared_values: Decimal = Decimal("0.3")
    comparable_means: Decimal = Decimal("0.1")
    nulls: Nulls = "unknown"
    minimality: Literal["implication", "subset"] = "implication"
    algorithm: Literal["auto", "evidence"] = "auto"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.error < 1:
            problems.append(message("error", str(self.error), "0 <= error < 1 (share of ordered pairs, g1)"))
        if self.max_predicates is not None and self.max_predicates < 1:
            problems.append(message("max_predicates", self.max_predicates, "1 or more"))
        for name, value in (("shared_values", self.shared_values), ("comparable_means", self.comparable_means)):
            if not 0 <= value <= 1:
                problems.append(message(name, str(value), "0 to 1"))
        if self.nulls not in ("unknown", "value"):
            problems.append(message("nulls", self.nulls, "'unknown' or 'value'"))
        if self.minimality not in ("implication", "subset"):
            problems.append(message("minimality", self.minimality, "'implication' or 'subset'"))
        if self.algorithm not in ("auto", "evidence"):
            problems.append(message("algorithm", self.algorithm, "'auto' or 'evidence'"))
        if self.time_limit is not None and self.time_limit <= 0:
            problems.append(message("time_limit", self.time_limit, "seconds above 0"))
        if self.memory_limit is not None and self.memory_limit <= 0:
            problems.append(message("memory_limit", self.memory_limit, "bytes above 0"))
        _collect(problems)


def exact_decimal(name: str, value: Any) -> Decimal:
    """A number as the decimal that it is written as: 0.1 is one tenth. Raises InputError for what is no number.

    Examples
    --------
    >>> exact_decimal("error", 0.1), exact_decimal("error", "1e-3")
    (Decimal('0.1'), Decimal('0.001'))
    """
    try:
        number = (
            value if isinstance(value, Decimal) else Decimal(value if isinstance(value, str) else repr(float(value)))
        )
    except (InvalidOperation, TypeError, ValueError):
        number = None
    if number is None or isinstance(value, bool) or not number.is_finite():
        raise InputError(message(name, value, "a decimal number"))
    return number


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
    master: str | None
    profile: str | None
    conf: Mapping[str, str]


class DcKeywords(TypedDict, total=False):
    """What `tuplewise.discover_dcs` can be told beside its own arguments; see DcDiscoverOptions."""

    cross_columns: bool
    single_tuple: bool
    order_text: bool
    shared_values: float | str | Decimal
    comparable_means: float | str | Decimal
    minimality: Literal["implication", "subset"]
    algorithm: Literal["auto", "evidence"]
    memory_limit: int | None
    seed: int


def load_options(given: Mapping[str, Any]) -> LoadOptions:
    """Load options from keyword arguments; one name may stand for a list of one."""
    _refuse_unknown("load", LoadOptions, given)
    values = dict(given)
    for name in ("columns", "exclude", "null_tokens"):
        if values.get(name) is not None:
            values[name] = (values[name],) if isinstance(values[name], str) else tuple(values[name])
    return LoadOptions(**values)


def dc_discover_options(given: Mapping[str, Any]) -> DcDiscoverOptions:
    """Discovery options from keyword arguments; numbers may be float, text or Decimal."""
    _refuse_unknown("discover_dcs", DcDiscoverOptions, given)
    values = dict(given)
    for name in ("error", "shared_values", "comparable_means"):
        if name in values:
            values[name] = exact_decimal(name, values[name])
    return DcDiscoverOptions(**values)


def _refuse_unknown(function: str, options: type, given: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, but with near names."""
    known = [f.name for f in fields(options)]
    for name in given:
        if name not in known:
            raise TypeError(message(f"{function}() has no option", name, hint=near_names(name, known)))
