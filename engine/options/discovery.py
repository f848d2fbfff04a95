"""What the discovery of denial constraints can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import Wording, message
from tuplewise.engine.options.choices import ErrorMeasure, Nulls, RunOn
from tuplewise.engine.options.faults import choice_faults, flag_faults, limit_faults, number_faults, raise_faults
from tuplewise.engine.options.keywords import options_of

RankBy = Literal["genuineness", "succinctness", "coverage", "g1"]
Minimality = Literal["implication", "subset"]
Algorithm = Literal["auto", "evidence", "hybrid", "hydra"]


@dataclass(frozen=True, kw_only=True)
class DcDiscoverOptions:
    """What `dc discover` looks for and how.

    `error` is g1, the share of ordered pairs that may violate a constraint; it is kept as the decimal that was
    written, so that the bound in pairs, floor(error * n * (n - 1)), is exact.

    With `error_measure` "lift" it is not the share of all pairs that may violate a constraint, but of those that would
    by chance: all pairs times the share that satisfies each predicate. Listed are constraints within the error that no
    stronger one within it implies; more predicates may be worse than fewer.

    With `sample_pairs` N it is estimated from N random pairs of rows; with error 0 a constraint is then listed where
    no pair of the sample violates it.
    """

    error: Decimal = Decimal(0)
    error_measure: ErrorMeasure = "g1"
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
        if self.error_measure not in ("g1", "lift"):
            hint = "g3 and mu are about dependencies: fd, key or od discover"
            problems.append(message("error_measure", self.error_measure, "'g1', 'lift'", hint))
        elif self.error_measure == "lift" and self.sample_pairs is not None:
            hint = "Leave one of the two out"
            problems.append(message("error_measure with sample_pairs", self.error_measure, "'g1'", hint))
        problems += number_faults(self, max_predicates=1, sample_pairs=1, seed=0)
        problems += flag_faults(self, "cross_columns", "single_tuple", "order_text")
        for name, value in (("shared_values", self.shared_values), ("comparable_means", self.comparable_means)):
            if not 0 <= value <= 1:
                problems.append(message(name, str(value), "0 to 1"))
        problems += choice_faults(self, nulls=Nulls, minimality=Minimality, algorithm=Algorithm, run_on=RunOn)
        raise_faults(problems + self._algorithm_faults() + limit_faults(self))

    def _algorithm_faults(self) -> list[str]:
        """What an algorithm that finds exact constraints only can't do."""
        if self.algorithm not in ("hybrid", "hydra"):
            return []
        faults = []
        if self.error > 0:
            sample = Wording("Leave the algorithm out, or estimate g1 from a sample: {sample_pairs:N}")
            faults.append(message("algorithm with error above 0", self.algorithm, "'auto' or 'evidence'", sample))
        if self.sample_pairs is not None:
            hint = "A sample is searched as evidence is: leave the algorithm out"
            faults.append(message("algorithm with sample_pairs", self.algorithm, "'auto' or 'evidence'", hint))
        return faults


class DcKeywords(TypedDict, total=False):
    """What `tuplewise.discover_dcs` can be told beside its own arguments; see DcDiscoverOptions."""

    error_measure: ErrorMeasure
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


def dc_discover_options(given: Mapping[str, Any]) -> DcDiscoverOptions:
    """Discovery options from keyword arguments."""
    return options_of("discover_dcs", DcDiscoverOptions, given)
