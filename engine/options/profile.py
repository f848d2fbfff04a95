"""What `profile` can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.choices import Nulls, RunOn
from tuplewise.engine.options.faults import choice_faults, limit_faults, number_faults, raise_faults

MOST_CONTEXT = 3


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """How `profile` looks for the rules that are worth keeping.

    Attributes
    ----------
    limit : rules that are shown of each table, at most
    max_context : columns on the left side of a functional dependency, at most
    """

    limit: int = 25
    max_context: int = MOST_CONTEXT
    nulls: Nulls = "unknown"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        faults = number_faults(self, limit=1, max_context=1, seed=0)
        if not faults and self.max_context > MOST_CONTEXT:
            faults.append(message("max_context", self.max_context, f"1 to {MOST_CONTEXT}"))
        raise_faults(faults + choice_faults(self, nulls=Nulls, run_on=RunOn) + limit_faults(self))


class ProfileKeywords(TypedDict, total=False):
    """What `tuplewise.profile` can be told beside its own arguments; see ProfileOptions."""

    limit: int
    max_context: int
    memory_limit: int | None
    seed: int
    run_on: RunOn
