"""What the check of given denial constraints can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options.common import PAIR_NULLS, Nulls, RunKeywords, RunOptions
from tuplewise.engine.options.option import Options, option

RulesSyntax = Literal["auto", "holoclean", "desbordante"]
Together = Literal["auto", "cost", "frequency", "none"]


@dataclass(frozen=True, slots=True)
class FailOn:
    """How many ordered pairs may violate a rule before a check fails: so many, or a percentage of all ordered pairs.

    The bound is kept as the decimal that was written; more than it fails. Of a rule about one row, rows are counted.

    Examples
    --------
    >>> FailOn.read("0.5%").fails(5, of=1000), FailOn.read("0.5%").fails(6, of=1000), FailOn.read(10).fails(11, of=12)
    (False, True, True)
    """

    bound: Decimal
    percent: bool = False

    @classmethod
    def read(cls, value: Any) -> FailOn:
        """From a count (10, "10") or the text of a percentage ("0.5%"). Raises InputError for anything else."""
        if isinstance(value, FailOn):
            return value
        text = str(value).strip()
        percent = text.endswith("%")
        try:
            bound = Decimal(text.removesuffix("%").strip())
        except InvalidOperation:
            bound = Decimal("NaN")
        usable = bound.is_finite() and bound >= 0 and not isinstance(value, (bool, float))
        if not usable or (bound > 100 if percent else bound != bound.to_integral_value()):
            raise InputError(message("fail_on", value, "a count of pairs such as 10, or a percentage such as 0.5%"))
        return cls(bound, percent)

    def fails(self, violating_pairs: int, *, of: int) -> bool:
        """Whether so many violating pairs, `of` all, are more than the bound. Exact."""
        bound = Fraction(self.bound)
        return violating_pairs > (bound * of / 100 if self.percent else bound)

    def __str__(self) -> str:
        return f"{self.bound:f}%" if self.percent else f"{self.bound:f}"


@dataclass(frozen=True, kw_only=True)
class ShownViolations(Options):
    """Which violations of given rules are looked for and listed."""

    pairs: int = option(
        100, "Most violating pairs that are listed of each rule; all are counted.",
        least=0, metavar="N", default_is="100; text: 10",
    )
    key: tuple[str, ...] = option(
        (), "Name rows in lists by these columns, beside their positions.", unique=True, metavar="A,B"
    )
    count_only: bool = option(False, "Count pairs; list none, and rank no rows.")
    fail_on: FailOn | None = option(
        None,
        "The check fails where more ordered pairs violate a rule than this count (10) or share of all pairs (0.5%).",
        metavar="COUNT|PERCENT%", default_is="0",
    )
    together: Together = option("auto", "How rules that share predicates are checked together.")
    nulls: Nulls = option("unknown", PAIR_NULLS)
    rules_syntax: RulesSyntax = option("auto", "How rules are written, where it can't be told from them.")


@dataclass(frozen=True, kw_only=True)
class DcCheckOptions(RunOptions, ShownViolations):
    """How `dc check` looks for violations of given rules, and how many it lists."""


class CheckKeywords(RunKeywords, total=False):
    """DcCheckOptions, for editors."""

    pairs: int
    key: str | Sequence[str] | None
    count_only: bool
    fail_on: int | str | FailOn | None
    together: Together
    nulls: Nulls
    rules_syntax: RulesSyntax
