"""What the discovery and the check of inclusion dependencies can be told."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.choices import Nulls, RunOn
from tuplewise.engine.options.faults import choice_faults, flag_faults, limit_faults, number_faults, raise_faults


@dataclass(frozen=True, kw_only=True)
class IndOptions:
    """What the discovery and the check of inclusion dependencies have in common.

    Attributes
    ----------
    error : share of the distinct values of the dependent side that may be missing on the referenced side; kept as the
        decimal that was written, so that the bound in values, floor(error * distinct), is exact
    as_text : compare all values as the text that they are written as, whatever their types
    nulls : always "unknown": rows with a null are left out, on both sides
    """

    error: Decimal = Decimal(0)
    as_text: bool = False
    nulls: Nulls = "unknown"
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int = 0
    run_on: RunOn = "auto"

    def __post_init__(self) -> None:
        raise_faults(self._faults())

    def _faults(self) -> list[str]:
        faults = []
        if not 0 <= self.error < 1:
            faults.append(message("error", str(self.error), "0 <= error < 1 (share of distinct values missing)"))
        faults += flag_faults(self, "as_text") + number_faults(self, seed=0) + choice_faults(self, run_on=RunOn)
        if self.nulls != "unknown":
            hint = "A null is no value: it has to be in no other column, and stands for none"
            faults.append(message("nulls of inclusion dependencies", self.nulls, "'unknown'", hint))
        return faults + limit_faults(self)


@dataclass(frozen=True, kw_only=True)
class IndDiscoverOptions(IndOptions):
    """What `ind discover` looks for and how.

    Attributes
    ----------
    max_arity : most columns of each side
    """

    max_arity: int = 1

    def _faults(self) -> list[str]:
        return super()._faults() + number_faults(self, max_arity=1)


@dataclass(frozen=True, kw_only=True)
class IndCheckOptions(IndOptions):
    """How `ind check` checks given dependencies.

    Attributes
    ----------
    examples : missing values that are listed of each, at most; all are counted
    """

    examples: int = 10

    def _faults(self) -> list[str]:
        faults = super()._faults() + number_faults(self, examples=0)
        if self.device not in ("auto", "cpu"):
            faults.append(message("device of a check of inclusion dependencies", self.device, "'auto' or 'cpu'"))
        return faults


@dataclass(frozen=True, kw_only=True)
class IndStateOptions:
    """How a state of inclusion dependencies is kept; fixed when it is built.

    Attributes
    ----------
    as_text : compare all values as the text that they are written as, whatever their types
    insert_only : keep which columns have a value, not how often: smaller and quicker, and rows can't be deleted
    track_rows : keep how often each row occurs, so that a delete of any row that isn't there is recognised
    sync : hand each revision to the disk before it is said to be done, so that it survives a loss of power
    """

    as_text: bool = False
    insert_only: bool = False
    track_rows: bool = False
    sync: bool = False

    def __post_init__(self) -> None:
        faults = flag_faults(self, "as_text", "insert_only", "track_rows", "sync")
        if self.insert_only and self.track_rows:
            faults.append("track_rows is for deletes, which insert_only does not take: leave one of both out")
        raise_faults(faults)


class IndKeywords(TypedDict, total=False):
    """What `discover_inds` and `check_inds` can be told beside their own arguments; see IndOptions."""

    nulls: Nulls
    run_on: RunOn
    memory_limit: int | None
    seed: int
