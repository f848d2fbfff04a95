"""What the discoveries of keys, functional and order dependencies can be told, and the check of order dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tuplewise.engine.errors import message
from tuplewise.engine.options.common import (
    ErrorMeasure,
    LimitKeywords,
    LimitOptions,
    Nulls,
    RunKeywords,
    RunOptions,
    Share,
)
from tuplewise.engine.options.option import Options, option

DependencyAlgorithm = Literal["auto", "hybrid", "levelwise"]
DependencyRankBy = Literal["genuineness", "size"]
CONTEXT_BY_CHANCE = 3
"""Most columns of a context, unless said otherwise, where errors are relative to chance."""
_ORDER_NULLS = "Always value: nulls are equal to each other and before all others, as in ORDER BY ... NULLS FIRST."


@dataclass(frozen=True, kw_only=True)
class WhichDependencies(Options):
    """Which dependencies there are, and how they are found. The error is kept as the decimal that was written."""

    error: Decimal = option(
        Decimal(0), "Error that a dependency may have, by {error_measure}.",
        least=0, below=1, allowed="0 <= error < 1 (share of rows to remove, g3)", metavar="E",
    )
    error_measure: ErrorMeasure = option(
        "g3",
        "What {error} bounds. g3: share of rows to remove so that it holds (0.01: one row in 100 may be wrong, and a"
        " column that repeats one value in 100 is a key, and hides the rules that it would be a part of). g1: share of"
        " ordered pairs that violate it. lift: violating pairs divided by those expected of unrelated columns (0.01:"
        " one in 100 of them). mu: 1 - mu+, which counts rows instead of pairs; results show mu+ (functional"
        " dependencies only). By lift and mu a dependency may hold while one with more columns on the left does not:"
        " listed are those that hold while none with fewer of their columns does.",
        by_task=True,
    )
    max_context: int | None = option(
        None, "Most columns of a key, of a left side, or of the context of an order dependency.",
        least=0, metavar="K", default_is=f"any number; {CONTEXT_BY_CHANCE} with an error by lift or mu",
    )
    algorithm: DependencyAlgorithm = option(
        "auto",
        "How they are found: by comparing few pairs of rows and checking the rest (hybrid), or level by level as HyOD"
        " does (levelwise).",
    )


@dataclass(frozen=True, kw_only=True)
class DependencyOptions(RunOptions, WhichDependencies):
    """What the discoveries of keys, functional and order dependencies have in common."""

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

    def faults(self) -> list[str]:
        faults = []
        if self.error_measure not in self._measures:
            hint = "mu is defined for functional dependencies: fd discover" if self.error_measure == "mu" else None
            faults.append(message("error_measure", self.error_measure, ", ".join(map(repr, self._measures)), hint))
        if self.error > 0 and self.algorithm == "hybrid":
            hint = "Leave the algorithm out"
            faults.append(message("algorithm with error above 0", self.algorithm, "'auto' or 'levelwise'", hint))
        return faults


@dataclass(frozen=True, kw_only=True)
class FdDiscoverOptions(DependencyOptions):
    """What `fd discover` looks for and how."""

    nulls: Nulls = option(
        "unknown",
        "A null is equal to nothing and differs from nothing (unknown: rows with a null on the left are left out, and a"
        " null on the right violates nothing), or is a value equal to itself (value).",
    )


@dataclass(frozen=True, kw_only=True)
class KeyDiscoverOptions(FdDiscoverOptions):
    """What `key discover` looks for and how."""

    nulls: Nulls = option(
        "unknown", "Rows with a null in the key are left out (unknown), or a null is a value equal to itself (value)."
    )


@dataclass(frozen=True, kw_only=True)
class OdDiscoverOptions(DependencyOptions):
    """What `od discover` looks for and how."""

    lexicographic: int | None = option(
        None,
        "Also derive the dependencies between lists of at most this many columns, such as month, week -> quarter.",
        least=1, metavar="N",
    )
    nulls: Nulls = option("value", _ORDER_NULLS)

    def faults(self) -> list[str]:
        faults = super().faults() + _order_nulls_faults(self.nulls)
        if self.lexicographic is not None and self.error > 0:
            hint = "Dependencies with exceptions imply no list-based ones: leave one of the two out"
            faults.append(message("lexicographic with error", str(self.error), "0", hint))
        return faults


@dataclass(frozen=True, kw_only=True)
class OrderNulls(Options):
    """The one way in which order dependencies know nulls."""

    nulls: Nulls = option("value", _ORDER_NULLS)


@dataclass(frozen=True, kw_only=True)
class OdCheckOptions(RunOptions, OrderNulls):
    """How `od check` checks order dependencies between lists."""

    def faults(self) -> list[str]:
        return _order_nulls_faults(self.nulls)


@dataclass(frozen=True, kw_only=True)
class TogetherOptions(LimitOptions):
    """What the discovery of several kinds of rules at once can be told."""

    nulls: Nulls = option(
        "value",
        "One rule for all kinds, as for each of them. Order dependencies know value only; on a table without nulls it"
        " makes no difference.",
    )
    max_predicates: int | None = option(None, "Most predicates of a constraint.", least=1)
    max_context: int | None = option(None, "Most columns of a key, of a left side, or of a context.", least=0)


def _order_nulls_faults(nulls: Nulls) -> list[str]:
    """Order dependencies know one rule for nulls."""
    if nulls == "value":
        return []
    hint = "Order dependencies are about ORDER BY ... NULLS FIRST: nulls are equal to each other and before all others"
    return [message("nulls of order dependencies", nulls, "'value'", hint)]


class DependencyKeywords(RunKeywords, total=False):
    """FdDiscoverOptions and KeyDiscoverOptions, for editors."""

    error: Share
    error_measure: ErrorMeasure
    max_context: int | None
    algorithm: DependencyAlgorithm
    nulls: Nulls


class OdKeywords(DependencyKeywords, total=False):
    """OdDiscoverOptions, for editors."""

    lexicographic: int | None


class OdCheckKeywords(RunKeywords, total=False):
    """OdCheckOptions, for editors."""

    nulls: Nulls


class TogetherKeywords(LimitKeywords, total=False):
    """TogetherOptions, for editors."""

    nulls: Nulls
    max_predicates: int | None
    max_context: int | None
