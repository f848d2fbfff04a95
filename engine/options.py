"""What each task can be told. Frozen, checked once; the command line and the Python functions share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from operator import index
from typing import Any, Literal, TypedDict, TypeVar, get_args

from tuplewise.engine.errors import InputError, message, near_names

Nulls = Literal["unknown", "value"]
RankBy = Literal["succinctness", "coverage", "g1"]
Minimality = Literal["implication", "subset"]
Algorithm = Literal["auto", "evidence", "hybrid", "hydra"]
RulesSyntax = Literal["auto", "holoclean", "desbordante"]
Together = Literal["auto", "cost", "frequency", "none"]
DependencyAlgorithm = Literal["auto", "hybrid", "levelwise"]
RunOn = Literal["auto", "driver", "spark"]
D = TypeVar("D", bound="DependencyOptions | OdCheckOptions")


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
        problems = _number_faults(self, rows=0)
        if self.bad_rows not in ("fail", "report"):
            problems.append(message("bad_rows", self.bad_rows, "'fail' or 'report'"))
        for name, value in (("sep", self.sep), ("quote", self.quote), ("escape", self.escape)):
            one = isinstance(value, str) and (len(value) == 1 or (name == "quote" and value == ""))
            if value is not None and not one:
                problems.append(message(name, value, "one character"))
        _collect(problems + _flag_faults(self, "header"))


@dataclass(frozen=True, kw_only=True)
class DcDiscoverOptions:
    """What `dc discover` looks for and how.

    `error` is g1, the share of ordered pairs that may violate a constraint; it is kept as the decimal that was
    written, so that the bound in pairs, floor(error * n * (n - 1)), is exact.

    With `sample_pairs` N it is estimated from N random pairs of rows; with error 0 a constraint is then listed where
    no pair of the sample violates it.
    """

    error: Decimal = Decimal(0)
    max_predicates: int | None = None
    cross_columns: bool = True
    single_tuple: bool = False
    order_text: bool = False
    shared_values: Decimal = Decimal("0.3")
    comparable_means: Decimal = Decimal("0.1")
    nulls: Nulls = "unknown"
    minimality: Minimality = "implication"
    algorithm: Algorithm = "auto"
    sample_pairs: int | None = None
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.error < 1:
            problems.append(message("error", str(self.error), "0 <= error < 1 (share of ordered pairs, g1)"))
        problems += _number_faults(self, max_predicates=1, sample_pairs=1, seed=0)
        problems += _flag_faults(self, "cross_columns", "single_tuple", "order_text")
        for name, value in (("shared_values", self.shared_values), ("comparable_means", self.comparable_means)):
            if not 0 <= value <= 1:
                problems.append(message(name, str(value), "0 to 1"))
        problems += _choice_faults(self, nulls=Nulls, minimality=Minimality, algorithm=Algorithm, run_on=RunOn)
        _collect(problems + self._algorithm_faults() + _limit_faults(self))

    def _algorithm_faults(self) -> list[str]:
        """What an algorithm that finds exact constraints only can't do."""
        if self.algorithm not in ("hybrid", "hydra"):
            return []
        faults = []
        if self.error > 0:
            hint = "Leave the algorithm out, or estimate g1 from a sample: --sample-pairs N"
            faults.append(message("algorithm with error above 0", self.algorithm, "'auto' or 'evidence'", hint))
        if self.sample_pairs is not None:
            hint = "A sample is searched as evidence is: leave the algorithm out"
            faults.append(message("algorithm with sample_pairs", self.algorithm, "'auto' or 'evidence'", hint))
        return faults


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
        problems = _number_faults(self, pairs=0, seed=0) + _flag_faults(self, "count_only")
        if len(set(self.key)) < len(self.key):
            problems.append(message("key", list(self.key), "each column once"))
        problems += _choice_faults(self, nulls=Nulls, rules_syntax=RulesSyntax, together=Together, run_on=RunOn)
        _collect(problems + _limit_faults(self))


@dataclass(frozen=True, kw_only=True)
class DependencyOptions:
    """What the discoveries of keys, functional and order dependencies have in common.

    Attributes
    ----------
    error : share of rows (g3) that may have to be removed so that a dependency holds; kept as the decimal that was
        written, so that the bound in rows, floor(error * n), is exact
    max_context : most columns of a key, of a left side, or of the context of an order dependency; None: any number
    """

    error: Decimal = Decimal(0)
    max_context: int | None = None
    algorithm: DependencyAlgorithm = "auto"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        _collect(self._faults())

    def _faults(self) -> list[str]:
        faults = []
        if not 0 <= self.error < 1:
            faults.append(message("error", str(self.error), "0 <= error < 1 (share of rows to remove, g3)"))
        faults += _number_faults(self, max_context=0, seed=0)
        faults += _choice_faults(self, algorithm=DependencyAlgorithm, run_on=RunOn)
        if self.error > 0 and self.algorithm == "hybrid":
            hint = "Leave the algorithm out"
            faults.append(message("algorithm with error above 0", self.algorithm, "'auto' or 'levelwise'", hint))
        return faults + _limit_faults(self)


@dataclass(frozen=True, kw_only=True)
class FdDiscoverOptions(DependencyOptions):
    """What `fd discover` looks for and how.

    Under nulls "unknown" a null is equal to nothing and differs from nothing: rows with a null on the left side are
    left out, and a null on the right violates nothing.
    """

    nulls: Nulls = "unknown"

    def _faults(self) -> list[str]:
        return super()._faults() + _choice_faults(self, nulls=Nulls)


@dataclass(frozen=True, kw_only=True)
class KeyDiscoverOptions(FdDiscoverOptions):
    """What `key discover` looks for and how: under nulls "unknown" rows with a null in the key are left out."""


@dataclass(frozen=True, kw_only=True)
class OdDiscoverOptions(DependencyOptions):
    """What `od discover` looks for and how.

    Attributes
    ----------
    lexicographic : most columns on each side of the list-based dependencies that are derived; None: none are
    nulls : always "value", equal to each other and before all others, as ORDER BY ... NULLS FIRST has them
    """

    lexicographic: int | None = None
    nulls: Nulls = "value"

    def _faults(self) -> list[str]:
        faults = super()._faults() + _number_faults(self, lexicographic=1) + _order_nulls_faults(self)
        if self.lexicographic is not None and self.error > 0:
            hint = "Dependencies with exceptions imply no list-based ones: leave one of the two out"
            faults.append(message("lexicographic with error", str(self.error), "0", hint))
        return faults


@dataclass(frozen=True, kw_only=True)
class OdCheckOptions:
    """How `od check` checks list-based order dependencies. Nulls are as in OdDiscoverOptions."""

    nulls: Nulls = "value"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        problems = _number_faults(self, seed=0) + _choice_faults(self, run_on=RunOn)
        _collect(problems + _order_nulls_faults(self) + _limit_faults(self))


def _order_nulls_faults(options: Any) -> list[str]:
    """Order dependencies know one rule for nulls."""
    if options.nulls == "value":
        return []
    hint = "Order dependencies are about ORDER BY ... NULLS FIRST: nulls are equal to each other and before all others"
    return [message("nulls of order dependencies", options.nulls, "'value'", hint)]


def _choice_faults(options: Any, **choices: Any) -> list[str]:
    """One message for each option that is none of its choices."""
    faults = []
    for name, allowed in choices.items():
        known = get_args(allowed)
        if getattr(options, name) not in known:
            faults.append(message(name, getattr(options, name), " or ".join(map(repr, known))))
    return faults


def _number_faults(options: Any, **least: int) -> list[str]:
    """One message for each option that is no whole number, or less than its least; whole numbers become `int`."""
    faults = []
    for name, bound in least.items():
        value = getattr(options, name)
        if value is None and options.__dataclass_fields__[name].default is None:
            continue
        number = _whole(value)
        if number is None:
            faults.append(message(name, "None" if value is None else value, f"a whole number, {bound} or more"))
        elif number < bound:
            faults.append(message(name, value, f"{bound} or more"))
        else:
            object.__setattr__(options, name, number)
    return faults


def _whole(value: Any) -> int | None:
    """A whole number of any type (NumPy's too); None for anything else."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def _flag_faults(options: Any, *names: str) -> list[str]:
    """One message for each option that is neither true nor false: text such as "no" would count as true."""
    given = {name: getattr(options, name) for name in names}
    return [message(n, v, "True or False") for n, v in given.items() if not isinstance(v, bool)]


def _limit_faults(options: Any) -> list[str]:
    """Faults in time_limit (any real number) and memory_limit (a whole one); both None or above 0."""
    faults = []
    limit, size = options.time_limit, options.memory_limit
    real = isinstance(limit, (Real, Decimal)) and not isinstance(limit, bool)
    if limit is not None and not (real and limit > 0):
        faults.append(message("time_limit", limit, "seconds above 0"))
    elif limit is not None:
        object.__setattr__(options, "time_limit", float(limit))
    if size is not None and (_whole(size) or 0) <= 0:
        faults.append(message("memory_limit", size, "bytes above 0, a whole number"))
    elif size is not None:
        object.__setattr__(options, "memory_limit", _whole(size))
    return faults


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
    minimality: Minimality
    algorithm: Algorithm
    sample_pairs: int | None
    run_on: RunOn
    memory_limit: int | None
    seed: int


class CheckKeywords(TypedDict, total=False):
    """What `tuplewise.check` can be told beside its own arguments; see DcCheckOptions."""

    count_only: bool
    fail_on: int | str | FailOn | None
    rules_syntax: RulesSyntax
    together: Together
    run_on: RunOn
    memory_limit: int | None
    seed: int


class DependencyKeywords(TypedDict, total=False):
    """What `discover_fds` and `discover_keys` can be told beside their own arguments; see DependencyOptions."""

    algorithm: DependencyAlgorithm
    run_on: RunOn
    memory_limit: int | None
    seed: int


class OdKeywords(DependencyKeywords, total=False):
    """What `discover_ods` can be told beside its own arguments; see OdDiscoverOptions."""

    nulls: Nulls


class OdCheckKeywords(TypedDict, total=False):
    """What `check_ods` can be told beside its own arguments; see OdCheckOptions."""

    nulls: Nulls
    run_on: RunOn
    memory_limit: int | None
    seed: int


def load_options(given: Mapping[str, Any]) -> LoadOptions:
    """Load options from keyword arguments; one name may stand for a list of one."""
    _refuse_unknown("load", LoadOptions, given)
    values = dict(given)
    for name in ("columns", "exclude", "null_tokens"):
        if values.get(name) is not None:
            values[name] = _texts(name, values[name])
    return LoadOptions(**values)


def dc_discover_options(given: Mapping[str, Any]) -> DcDiscoverOptions:
    """Discovery options from keyword arguments; numbers may be float, text or Decimal."""
    _refuse_unknown("discover_dcs", DcDiscoverOptions, given)
    values = dict(given)
    for name in ("error", "shared_values", "comparable_means"):
        if name in values:
            values[name] = exact_decimal(name, values[name])
    return DcDiscoverOptions(**values)


def dependency_options(function: str, kind: type[D], given: Mapping[str, Any]) -> D:
    """Options of one kind from keyword arguments of a function; an error may be float, text or Decimal."""
    _refuse_unknown(function, kind, given)
    values = dict(given)
    if "error" in values:
        values["error"] = exact_decimal("error", values["error"])
    return kind(**values)


def dc_check_options(given: Mapping[str, Any]) -> DcCheckOptions:
    """Options of a check from keyword arguments; one name may stand for a key of one column."""
    _refuse_unknown("check", DcCheckOptions, given)
    values = dict(given)
    values["key"] = () if values.get("key") is None else _texts("key", values["key"])
    if values.get("fail_on") is not None:
        values["fail_on"] = FailOn.read(values["fail_on"])
    return DcCheckOptions(**values)


def _texts(name: str, given: Any) -> tuple[str, ...]:
    """Names, or one name, as a tuple. Raises InputError for anything else."""
    texts = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(message(name, given, "text, or a list of texts"))
    return texts


def _refuse_unknown(function: str, options: type, given: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, but with near names."""
    known = [f.name for f in fields(options)]
    for name in given:
        if name not in known:
            raise TypeError(message(f"{function}() has no option", name, hint=near_names(name, known)))
