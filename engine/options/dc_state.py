"""How a state of denial constraints is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal, TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.discovery import Algorithm, DcDiscoverOptions, Minimality
from tuplewise.engine.options.faults import choice_faults, flag_faults, raise_faults
from tuplewise.engine.options.keywords import SHARES, exact_decimal, refuse_unknown_of, texts

StateIndex = Literal["auto", "zones", "published"]

RULES_OF_A_STATE = (
    "error", "error_measure", "max_predicates", "cross_columns", "single_tuple", "order_text", "shared_values",
    "comparable_means", "nulls", "minimality",
)  # fmt: skip
"""The options of a discovery that say which rules there are: a state fixes them."""
READING_OF_A_STATE = ("columns", "exclude", "types", "null_tokens")
"""The options of reading that say which columns and values there are: a state fixes these, too."""


@dataclass(frozen=True, kw_only=True)
class DcStateOptions:
    """How a state of denial constraints is kept; fixed when it is built.

    Attributes
    ----------
    discover : which rules are kept, and how they are found when the state is built: its algorithm, limits of memory and
        seed play no part later
    key : columns that name a row: no two rows have the same values in them, and none a null. Empty: rows are named by
        the ids that the state gives them
    counts : keep how many pairs leave each clue, exactly; always with an error above 0, which `counting` tells
    sync : hand each revision to the disk before it is said to be done, so that it survives a loss of power
    index : how pairs with a new row are found where constraints compare by order: by zones of sorted rows, or by the
        published index; "auto" takes zones
    """

    discover: DcDiscoverOptions = field(default_factory=DcDiscoverOptions)
    key: tuple[str, ...] = ()
    counts: bool = False
    sync: bool = False
    index: StateIndex = "auto"

    def __post_init__(self) -> None:
        faults = flag_faults(self, "counts", "sync") + choice_faults(self, index=StateIndex)
        if len(set(self.key)) < len(self.key):
            faults.append(message("key", list(self.key), "each column once"))
        raise_faults(faults + self._discovery_faults())

    @property
    def counting(self) -> bool:
        """Whether it is kept how many pairs leave each clue."""
        return self.counts or self.discover.error > 0

    def _discovery_faults(self) -> list[str]:
        """What a discovery can be told, and a state can't."""
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


class DcStateKeywords(TypedDict, total=False):
    """What `tuplewise.maintain_dcs` can be told beside its own arguments; see DcStateOptions and DcDiscoverOptions."""

    counts: bool
    sync: bool
    index: StateIndex
    null_tokens: Sequence[str]
    max_predicates: int | None
    cross_columns: bool
    single_tuple: bool
    order_text: bool
    shared_values: float | str | Decimal
    comparable_means: float | str | Decimal
    minimality: Minimality
    algorithm: Algorithm
    memory_limit: int | None
    seed: int


def dc_state_options(given: Mapping[str, Any]) -> DcStateOptions:
    """Options of a state from keyword arguments; one name may stand for a key of one column."""
    own = [f.name for f in fields(DcStateOptions) if f.name != "discover"]
    of_rules = [f.name for f in fields(DcDiscoverOptions)]
    refuse_unknown_of("maintain_dcs", [*own, *of_rules], given)
    values: dict[str, Any] = {n: exact_decimal(n, value) if n in SHARES else value for n, value in given.items()}
    values["key"] = () if values.get("key") is None else texts("key", values["key"])
    discover = DcDiscoverOptions(**{name: values.pop(name) for name in of_rules if name in values})
    return DcStateOptions(discover=discover, **values)
