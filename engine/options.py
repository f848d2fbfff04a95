"""What each task can be told. Frozen, checked once; the command line and the Python functions share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from tuplewise.engine.errors import InputError, message

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
