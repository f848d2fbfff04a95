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
    entries : the first of them: text, and, where they have exceptions, rows to remove and the error by a measure
    ranked : whether they are ranked where others are
    """

    means: str
    short: str
    count: int
    entries: Sequence[tuple[str, Mapping[str, Any]]]
    ranked: bool = True

    def heading(self, ranked_by: str) -> str:
        """What the list is, how much of it is shown, and in which order."""
        order = self.order(ranked_by)
        cut = f", the {'best' if order else 'first'} {len(self.entries):,} of {self.count:,}"
        return f"{self.means}{cut if len(self.entries) < self.count else ''}{order}:"

    def order(self, ranked_by: str) -> str:
        """What is said of the order, where there is something to say."""
        return ", by genuineness" if ranked_by == "genuineness" and self.ranked else ""

    def columns(self) -> list[tuple[str, str]]:
        """Headings, and the side that values stand on."""
        costs = [(name.replace("_", " "), "right") for name in self.entries[0][1]] if self.entries else []
        return [("", "right"), *costs, ("dependency", "left")]

    def rows(self) -> list[list[str]]:
        """One for each dependency that is shown."""
        return [
            [str(i), *(f"{n:,}" if isinstance(n, int) else text.share(n) for n in cost.values()), dependency]
            for i, (dependency, cost) in enumerate(self.entries, 1)
        ]


def summary(document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[Shown]) -> str:
    """How many dependencies of which kind hold, and how far."""
    count = document["result"]["count"]
    kinds = [f"{s.count:,} {s.short}" for s in shown if s.short]
    named = number_of(count, *(f"minimal {thing}" for thing in things)) + f" ({text.bound(document)})"
    return f"{named}: {', '.join(kinds)}" if kinds and count else named


def parts(
    document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[Shown], *, ranked_by: str, verbose: bool
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
            found += ["", one.heading(ranked_by), text.grid(one.columns(), one.rows())]
    return found
