"""What the discovery of denial constraints can be told."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.common import PAIR_NULLS, ErrorMeasure, Nulls, RunKeywords, RunOptions, Share
from tuplewise.engine.options.option import Options, option

RankBy = Literal["genuineness", "succinctness", "coverage", "g1"]
Minimality = Literal["implication", "subset"]
Algorithm = Literal["auto", "evidence", "hybrid", "hydra"]


@dataclass(frozen=True, kw_only=True)
class DcRuleOptions(Options):
    """Which denial constraints there are, and how they are found.

    The error is kept as the decimal that was written, so that its bound in pairs, floor(error * n * (n - 1)), is exact.
    By "lift" it bounds the pairs that violate a constraint by those that would by chance: all pairs times the share
    that satisfies each predicate. Listed are constraints within the error that no stronger one within it implies; more
    predicates may be worse than fewer. Of a sample of pairs, with error 0, a constraint is listed where no pair of the
    sample violates it.
    """

    error: Decimal = option(
        Decimal(0), "Share of ordered pairs of rows (g1) that may violate a constraint.",
        least=0, below=1, allowed="0 <= error < 1 (share of ordered pairs, g1)", metavar="E", fixed=True,
    )
    error_measure: ErrorMeasure = option(
        "g1",
        "What {error} bounds. g1: share of ordered pairs that violate a constraint (0.001: one pair in 1,000: then a"
        " column with 1,000 values is a key, and hides the rules that it would be a part of). lift: violating pairs"
        " divided by those expected of unrelated columns (0.001: one in 1,000 of them).",
        by_task=True, fixed=True,
    )
    max_predicates: int | None = option(None, "Most predicates of a constraint.", least=1, metavar="K", fixed=True)
    cross_columns: bool = option(
        True, "Compare columns with each other, too.", off="Compare each column with itself only.", fixed=True
    )
    single_tuple: bool = option(False, "Also compare columns within one row.", fixed=True)
    order_text: bool = option(False, "Give text columns < and > too (by bytes).", fixed=True)
    shared_values: Decimal = option(
        Decimal("0.3"), "Share of distinct values that columns must have in common to be compared with each other.",
        least=0, most=1, metavar="S", fixed=True,
    )
    comparable_means: Decimal = option(
        Decimal("0.1"), "Ratio of means above which columns are compared by order, too.",
        least=0, most=1, metavar="S", fixed=True,
    )
    nulls: Nulls = option("unknown", PAIR_NULLS, fixed=True)
    minimality: Minimality = option(
        "implication", "Leave out constraints that another one implies, or only supersets.", fixed=True
    )
    algorithm: Algorithm = option(
        "auto",
        "How constraints are found: by comparing all pairs (evidence), by comparing few and checking the rest, for"
        " large tables (hybrid), or as Hydra does (hydra). With {error}, hybrid counts every listed rule exactly; the"
        " chance that it misses one is 1e-9.",
    )
    sample_pairs: int | None = option(
        None, "Estimate g1 from this number of random pairs, with confidence intervals.", least=1, metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class DcDiscoverOptions(RunOptions, DcRuleOptions):
    """What `dc discover` looks for and how."""

    def faults(self) -> list[str]:
        faults = []
        if self.error_measure not in ("g1", "lift"):
            hint = "g3 and mu are about dependencies: fd, key or od discover"
            faults.append(message("error_measure", self.error_measure, "'g1', 'lift'", hint))
        elif self.error_measure == "lift" and self.sample_pairs is not None:
            hint = "Leave one of the two out"
            faults.append(message("error_measure with sample_pairs", self.error_measure, "'g1'", hint))
        if self.algorithm == "hydra" and self.error > 0:
            hint = "Hydra finds exact constraints"
            faults.append(message("algorithm with error above 0", "hydra", "'auto', 'evidence' or 'hybrid'", hint))
        if self.algorithm == "hybrid" and self.error > 0 and self.error_measure == "lift":
            hint = "What chance would give needs all pairs"
            faults.append(message("algorithm with error_measure 'lift'", "hybrid", "'auto' or 'evidence'", hint))
        if self.algorithm in ("hybrid", "hydra") and self.sample_pairs is not None:
            hint = "A sample is searched as evidence is: leave the algorithm out"
            faults.append(message("algorithm with sample_pairs", self.algorithm, "'auto' or 'evidence'", hint))
        return faults


class DcRuleKeywords(TypedDict, total=False):
    """The options of denial constraints that a discovery and a state have, for editors."""

    error: Share
    nulls: Nulls
    max_predicates: int | None
    cross_columns: bool
    single_tuple: bool
    order_text: bool
    shared_values: Share
    comparable_means: Share
    minimality: Minimality
    algorithm: Algorithm


class DcKeywords(RunKeywords, DcRuleKeywords, total=False):
    """DcDiscoverOptions, for editors."""

    error_measure: ErrorMeasure
    sample_pairs: int | None
