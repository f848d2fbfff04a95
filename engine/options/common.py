"""Options that several tasks have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypedDict

from tuplewise.engine.options.option import Options, option

Nulls = Literal["unknown", "value"]
RunOn = Literal["auto", "driver", "spark"]
ErrorMeasure = Literal["g1", "g3", "lift", "mu"]
Share = float | str | Decimal
"""What a share of something may be given as; a float is taken as the decimal that it is written as."""

PAIR_NULLS = "A null satisfies no predicate (unknown), or is a value equal to itself and lower than all others (value)."


@dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
    """What a task runs on, and how long."""

    device: str = option(
        "auto", "What the kernels run on. The result is the same on each.", metavar="auto|cpu|cuda[:N]"
    )
    time_limit: float | None = option(
        None,
        "Stop after so many seconds with what was found by then, which is marked partial (exit code 3). Spark's start"
        " and reading the table count, but are not interrupted.",
        metavar="SECONDS",
    )
    memory_limit: int | None = option(
        None, "Stop when this process holds more bytes; on the command line also as 512M or 4G.",
        least=1, allowed="bytes above 0, a whole number", metavar="BYTES",
    )
    seed: int = option(0, "Seed of whatever is drawn at random.", least=0, metavar="N")


@dataclass(frozen=True, kw_only=True)
class RunOptions(LimitOptions):
    """What a task runs on, how long, and where."""

    run_on: RunOn = option("auto", "Work in this process (driver), or in Spark's tasks (spark).")


@dataclass(frozen=True, kw_only=True)
class SparkOptions(Options):
    """Which Spark is used, and how it is set."""

    master: str | None = option(None, "Spark master.", metavar="URL", default_is="local, all cores")
    profile: str | None = option(None, "Spark profile.", metavar="NAME")
    conf: Mapping[str, str] = option({}, "Spark settings.", metavar="KEY=VALUE")


class LimitKeywords(TypedDict, total=False):
    """LimitOptions, for editors."""

    device: str
    time_limit: float | None
    memory_limit: int | None
    seed: int


class RunKeywords(LimitKeywords, total=False):
    """RunOptions, for editors."""

    run_on: RunOn
