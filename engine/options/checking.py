"""What the check of given denial constraints can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options.choices import Nulls, RunOn
from tuplewise.engine.options.faults import choice_faults, flag_faults, limit_faults, number_faults, raise_faults
from tuplewise.engine.options.keywords import refuse_unknown, texts

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
class DcCheckOptions:
    """How `dc check` looks for violations of given rules, and how many it lists.

    Attributes
    ----------
    pairs : violating pairs that are listed of each rule, at most; all are counted
    key : columns that name rows in lists, instead of positions
    count_only : count pairs; list none, and rank no rows
    fail_on : what makes a check fail; None: any violating pair
    together : how rules that share predicates are checked together
    run_on : in this process, or in tasks of Spark
    """

    pairs: int = 100
    key: tuple[str, ...] = ()
    count_only: bool = False
    fail_on: FailOn | None = None
    together: Together = "auto"
    nulls: Nulls = "unknown"
    rules_syntax: RulesSyntax = "auto"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        problems = number_faults(self, pairs=0, seed=0) + flag_faults(self, "count_only")
        if len(set(self.key)) < len(self.key):
            problems.append(message("key", list(self.key), "each column once"))
        problems += choice_faults(self, nulls=Nulls, rules_syntax=RulesSyntax, together=Together, run_on=RunOn)
        raise_faults(problems + limit_faults(self))


class CheckKeywords(TypedDict, total=False):
    """What `tuplewise.check` can be told beside its own arguments; see DcCheckOptions."""

    count_only: bool
    fail_on: int | str | FailOn | None
    rules_syntax: RulesSyntax
    together: Together
    run_on: RunOn
    memory_limit: int | None
    seed: int


def dc_check_options(given: Mapping[str, Any]) -> DcCheckOptions:
    """Options of a check from keyword arguments; one name may stand for a key of one column."""
    refuse_unknown("check", DcCheckOptions, given)
    values = dict(given)
    values["key"] = () if values.get("key") is None else texts("key", values["key"])
    if values.get("fail_on") is not None:
        values["fail_on"] = FailOn.read(values["fail_on"])
    return DcCheckOptions(**values)
