"""Dependencies as text for people: a summary, and the first ones of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import text
from tuplewise.engine.report.dependencies import Named


@dataclass(frozen=True)
class Group:
    """Dependencies that are listed together.

    Attributes
    ----------
    name : of the list in JSON
    kinds : of `engine.od.dependency` that belong to it
    named : the class of its objects
    short : what a summary calls them; empty where there is one group only
    means : what they say of rows, for the heading of a list
    """

    name: str
    kinds: tuple[int, ...]
    named: type[Named]
    short: str
    means: str


@dataclass(frozen=True)
class Shown:
    """A list of which the first entries are shown.

    Attributes
    ----------
    means : what its entries say of rows
    short : what a summary calls them; empty where it doesn't
    count : how many there are
    entries : the first of them: text and rows to remove
    """

    means: str
    short: str
    count: int
    entries: Sequence[tuple[str, Mapping[str, Any]]]

    def heading(self) -> str:
        """What the list is, and how much of it is shown."""
        cut = f", the first {len(self.entries):,} of {self.count:,}" if len(self.entries) < self.count else ""
        return f"{self.means}{cut}:"

    def columns(self) -> list[tuple[str, str]]:
        """Headings, and the side that values stand on."""
        costs = [("rows to remove", "right"), ("g3", "right")] if self.entries and self.entries[0][1] else []
        return [("", "right"), *costs, ("dependency", "left")]

    def rows(self) -> list[list[str]]:
        """One for each dependency that is shown."""
        return [
            [str(i), *([f"{cost['rows_to_remove']:,}", text.share(cost["g3"])] if cost else []), dependency]
            for i, (dependency, cost) in enumerate(self.entries, 1)
        ]


def summary(document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[Shown]) -> str:
    """How many dependencies of which kind hold, and how far."""
    count = document["result"]["count"]
    kinds = [f"{s.count:,} {s.short}" for s in shown if s.short]
    named = number_of(count, *(f"minimal {thing}" for thing in things)) + f" ({text.bound(document)})"
    return f"{named}: {', '.join(kinds)}" if kinds and count else named


def parts(
    document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[Shown], *, verbose: bool
) -> list[Any]:
    """The text of a discovery: `document` as JSON has it, `shown` the dependencies to list."""
    result = document["result"]
    found = [*text.table_lines(document["tables"][0], verbose), summary(document, things, shown)]
    found += [text.how_it_ran(document, verbose), *text.how_it_was_found(result, verbose)]
    if document["partial"]:
        missing = text.what_is_missing(result, f"more {things[1]}")
        found.append(f"PARTIAL: {missing}.")
    found += [f"note: {note}" for note in document["notes"]]
    for one in shown:
        if one.entries:
            found += ["", one.heading(), text.grid(one.columns(), one.rows())]
    return found
