"""What the discoveries of keys, functional and order dependencies can be told, and the check of order dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.choices import ErrorMeasure, Nulls, RunOn
from tuplewise.engine.options.faults import choice_faults, limit_faults, number_faults, raise_faults

DependencyAlgorithm = Literal["auto", "hybrid", "levelwise"]
DependencyRankBy = Literal["genuineness", "size"]
CONTEXT_BY_CHANCE = 3
"""Most columns of a context, unless said otherwise, where errors are relative to chance."""


@dataclass(frozen=True, kw_only=True)
class DependencyOptions:
    """What the discoveries of keys, functional and order dependencies have in common.

    Attributes
    ----------
    error : the error that a dependency may have; kept as the decimal that was written, so that the bound is exact
    error_measure : what it is
        "g3": the share of rows that have to be removed so that it holds. "g1": the share of ordered pairs that violate
        it. "lift": violating pairs, by those that would be by chance. "mu": 1 - mu+, of functional dependencies only.
    max_context : most columns of a key, of a left side, or of the context of an order dependency; None: any number
    """

    error: Decimal = Decimal(0)
    error_measure: ErrorMeasure = "g3"
    max_context: int | None = None
    algorithm: DependencyAlgorithm = "auto"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        raise_faults(self._faults())

    @property
    def relative(self) -> bool:
        """Whether errors are relative to chance."""
        return self.error > 0 and self.error_measure in ("lift", "mu")

    @property
    def most_context(self) -> int | None:
        """`max_context`, or what it is where nobody said."""
        return CONTEXT_BY_CHANCE if self.relative and self.max_context is None else self.max_context

    @property
    def _measures(self) -> tuple[ErrorMeasure, ...]:
        """Those that there are here."""
        return ("g3", "g1", "lift", "mu") if type(self) is FdDiscoverOptions else ("g3", "g1", "lift")

    def _faults(self) -> list[str]:
        faults = []
        if not 0 <= self.error < 1:
            faults.append(message("error", str(self.error), "0 <= error < 1 (share of rows to remove, g3)"))
        if self.error_measure not in self._measures:
            hint = "mu is defined for functional dependencies: fd discover" if self.error_measure == "mu" else None
            faults.append(message("error_measure", self.error_measure, ", ".join(map(repr, self._measures)), hint))
        faults += number_faults(self, max_context=0, seed=0)
        faults += choice_faults(self, algorithm=DependencyAlgorithm, run_on=RunOn)
        if self.error > 0 and self.algorithm == "hybrid":
            hint = "Leave the algorithm out"
            faults.append(message("algorithm with error above 0", self.algorithm, "'auto' or 'levelwise'", hint))
        return faults + limit_faults(self)


@dataclass(frozen=True, kw_only=True)
class FdDiscoverOptions(DependencyOptions):
    """What `fd discover` looks for and how.

    Under nulls "unknown" a null is equal to nothing and differs from nothing: rows with a null on the left side are
    left out, and a null on the right violates nothing.
    """

    nulls: Nulls = "unknown"

    def _faults(self) -> list[str]:
        return super()._faults() + choice_faults(self, nulls=Nulls)


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
        faults = super()._faults() + number_faults(self, lexicographic=1) + _order_nulls_faults(self)
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
        problems = number_faults(self, seed=0) + choice_faults(self, run_on=RunOn)
        raise_faults(problems + _order_nulls_faults(self) + limit_faults(self))


def _order_nulls_faults(options: Any) -> list[str]:
    """Order dependencies know one rule for nulls."""
    if options.nulls == "value":
        return []
    hint = "Order dependencies are about ORDER BY ... NULLS FIRST: nulls are equal to each other and before all others"
    return [message("nulls of order dependencies", options.nulls, "'value'", hint)]


class DependencyKeywords(TypedDict, total=False):
    """What `discover_fds` and `discover_keys` can be told beside their own arguments; see DependencyOptions."""

    error_measure: ErrorMeasure
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
