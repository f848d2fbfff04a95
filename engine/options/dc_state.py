"""How a state of denial constraints is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tuplewise.engine.errors import message
from tuplewise.engine.options.discovery import DcDiscoverOptions, DcRuleKeywords
from tuplewise.engine.options.option import Options, declarations, option, refuse_unknown

StateIndex = Literal["auto", "zones", "published"]


@dataclass(frozen=True, kw_only=True)
class DcStateOptions(Options):
    """How a state of denial constraints is kept; fixed when it is built.

    Attributes
    ----------
    discover : which rules are kept, and how they are found when the state is built: its algorithm, limits of memory and
        seed play no part later
    """

    discover: DcDiscoverOptions = field(default_factory=DcDiscoverOptions)
    key: tuple[str, ...] = option(
        (),
        "Name rows by these columns: no two rows have the same values in them, and none a null.",
        unique=True, metavar="A,B", default_is="by the ids that the state gives them",
    )
    counts: bool = option(False, "Keep how many pairs of rows leave each clue, exactly; always with {error} above 0.")
    sync: bool = option(
        False, "Hand each revision to the disk before it is done: it survives a loss of power, not a kill alone."
    )
    index: StateIndex = option(
        "auto",
        "How pairs with a new row are found where rules compare by order: in zones of sorted rows (auto takes these),"
        " or by the published index.",
    )

    @classmethod
    def of(cls, function: str, given: Mapping[str, Any]) -> Self:
        """From keyword arguments, those of the discovery among them."""
        of_rules = declarations(DcDiscoverOptions)
        refuse_unknown(function, [*declarations(cls), *of_rules], given)
        own = {name: value for name, value in given.items() if name not in of_rules}
        rules = {name: value for name, value in given.items() if name in of_rules}
        return cls(discover=DcDiscoverOptions(**rules), **own)

    @property
    def counting(self) -> bool:
        """Whether it is kept how many pairs leave each clue."""
        return self.counts or self.discover.error > 0

    def faults(self) -> list[str]:
        found, faults = self.discover, []
        if found.sample_pairs is not None:
            hint = "A state is exact: rules that a sample of pairs suggests can't be kept current"
            faults.append(message("sample_pairs of a state", found.sample_pairs, "None", hint))
        if found.error_measure == "lift":
            hint = "What chance would give changes with each row: rules that a state keeps have an error by g1"
            faults.append(message("error_measure of a state", found.error_measure, "'g1'", hint))
        if found.run_on == "spark":
            hint = "A state is kept by one process: new rows are compared with rows that it holds"
            faults.append(message("run_on of a state of denial constraints", "spark", "'auto' or 'driver'", hint))
        if found.time_limit is not None:
            hint = "A state is built whole, or not at all: its rules are not known before"
            faults.append(message("time_limit of a state", found.time_limit, "None", hint))
        if found.algorithm == "hydra":
            hint = "What later rows are compared with is told by the other two alone"
            faults.append(message("algorithm of a state", found.algorithm, "'auto', 'evidence' or 'hybrid'", hint))
        elif self.counts and found.algorithm == "hybrid":
            hint = "Only evidence of all pairs has counts: leave the algorithm out"
            faults.append(message("algorithm with counts", found.algorithm, "'auto' or 'evidence'", hint))
        return faults


OF_A_STATE = frozenset((*declarations(DcStateOptions), *declarations(DcDiscoverOptions))) - {
    "error_measure", "sample_pairs", "time_limit", "run_on",
}  # fmt: skip
"""What a state can be told: a discovery can be told more."""


class DcStateKeywords(DcRuleKeywords, total=False):
    """DcStateOptions and its DcDiscoverOptions, without what a state can't be told, and null tokens; for editors."""

    key: str | Sequence[str] | None
    counts: bool
    sync: bool
    index: StateIndex
    null_tokens: Sequence[str]
    device: str
    memory_limit: int | None
    seed: int
