"""What the discovery and the check of inclusion dependencies can be told, and how a state of them is kept."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypedDict

from tuplewise.engine.errors import message
from tuplewise.engine.options.common import Nulls, RunKeywords, RunOn, RunOptions, Share
from tuplewise.engine.options.option import Options, option

_AS_TEXT = "Compare all values as the text that they are written as, whatever their types."


@dataclass(frozen=True, kw_only=True)
class WhichInds(Options):
    """Which inclusion dependencies hold.

    The error is kept as the decimal that was written, so that its bound in values, floor(error * distinct), is exact.
    """

    error: Decimal = option(
        Decimal(0), "Share of the distinct values of the dependent side that may be missing on the referenced side.",
        least=0, below=1, allowed="0 <= error < 1 (share of distinct values missing)", metavar="E",
    )
    as_text: bool = option(False, _AS_TEXT)
    nulls: Nulls = option("unknown", "Always unknown: a null is no value, on either side.")


@dataclass(frozen=True, kw_only=True)
class IndOptions(RunOptions, WhichInds):
    """What the discovery and the check of inclusion dependencies have in common."""

    def faults(self) -> list[str]:
        if self.nulls == "unknown":
            return []
        hint = "A null is no value: it has to be in no other column, and stands for none"
        return [message("nulls of inclusion dependencies", self.nulls, "'unknown'", hint)]


@dataclass(frozen=True, kw_only=True)
class IndDiscoverOptions(IndOptions):
    """What `ind discover` looks for and how."""

    max_arity: int = option(1, "Most columns on each side.", least=1, metavar="K")


@dataclass(frozen=True, kw_only=True)
class IndCheckOptions(IndOptions):
    """How `ind check` checks given dependencies."""

    examples: int = option(
        10, "Most missing values that are listed of each dependency; all are counted.", least=0, metavar="N"
    )

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.device not in ("auto", "cpu"):
            faults.append(message("device of a check of inclusion dependencies", self.device, "'auto' or 'cpu'"))
        return faults


@dataclass(frozen=True, kw_only=True)
class IndStateOptions(Options):
    """How a state of inclusion dependencies is kept; fixed when it is built."""

    as_text: bool = option(False, _AS_TEXT)
    insert_only: bool = option(
        False, "Keep which columns have a value, not how often: smaller and quicker, and rows can't be deleted."
    )
    track_rows: bool = option(
        False, "Keep how often each row occurs, so that a delete of any row that isn't there is an error."
    )
    sync: bool = option(
        False, "Hand each revision to the disk before it is done: it survives a loss of power, not a kill alone."
    )

    def faults(self) -> list[str]:
        if self.insert_only and self.track_rows:
            return ["track_rows is for deletes, which insert_only does not take: leave one of both out"]
        return []


@dataclass(frozen=True, kw_only=True)
class IndInitOptions(IndStateOptions):
    """How a state of inclusion dependencies is built."""

    run_on: RunOn = option(
        "auto",
        "Where the state is kept: by one process (driver, auto), or in partitions by Spark, beyond one machine"
        " (spark).",
    )


class IndKeywords(RunKeywords, total=False):
    """IndOptions, for editors."""

    error: Share
    as_text: bool
    nulls: Nulls


class IndDiscoverKeywords(IndKeywords, total=False):
    """IndDiscoverOptions, for editors."""

    max_arity: int


class IndCheckKeywords(IndKeywords, total=False):
    """IndCheckOptions, for editors."""

    examples: int


class IndStateKeywords(TypedDict, total=False):
    """IndInitOptions, for editors."""

    as_text: bool
    insert_only: bool
    track_rows: bool
    sync: bool
    run_on: RunOn
