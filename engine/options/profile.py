"""What `profile` can be told."""

from __future__ import annotations

from dataclasses import dataclass

from tuplewise.engine.options.common import Nulls, RunKeywords, RunOptions
from tuplewise.engine.options.option import Options, option

MOST_CONTEXT = 3


@dataclass(frozen=True, kw_only=True)
class ShownRules(Options):
    """Which rules a profile shows."""

    limit: int = option(25, "Most rules that are listed of each table, best first.", least=1, metavar="N")
    max_context: int = option(
        MOST_CONTEXT, "Most columns on the left side of a functional dependency (1 to 3).",
        least=1, most=MOST_CONTEXT, metavar="K",
    )
    nulls: Nulls = option(
        "unknown",
        "Rows with a null in a rule's columns are left out (unknown), or a null is a value equal to itself (value).",
    )


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(RunOptions, ShownRules):
    """How `profile` looks for the rules that are worth keeping."""


class ProfileKeywords(RunKeywords, total=False):
    """ProfileOptions, for editors."""

    limit: int
    max_context: int
    nulls: Nulls
