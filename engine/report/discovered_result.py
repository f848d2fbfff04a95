"""What the results of discoveries of rules in one table have in common: how they searched, and how far rules hold."""

from __future__ import annotations

from typing import Any, ClassVar

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import text
from tuplewise.engine.report.result import Result


class DiscoveredResult(Result):
    """Rules that hold in a table, and what is known of the search.

    Attributes
    ----------
    SMALLER : what may be missing where a limit ended the search
    """

    CHOICES = ("rank_by", "limit")
    SMALLER: ClassVar[str]

    def __len__(self) -> int:
        return int(self._facts["count"])

    def _counted(self) -> str:
        """How many rules there are."""
        return number_of(len(self), *(f"minimal {thing}" for thing in self.THINGS))

    def _summary(self) -> str:
        return f"{self._counted()} ({text.bound(self._heading)})"

    def _described_as(self, best: list[str]) -> str:
        """The text of `repr`; `best`: the first of the rules."""
        how_far = text.bound(self._heading) + (", PARTIAL" if self.partial else "")
        rows = number_of(self.relation.all_rows, "row")
        said = f"{self._counted()} of {self.relation.name!r} ({how_far}), {rows}, {self.device}"
        return self._described(said, best, len(self))

    def _how(self, verbose: bool) -> list[Any]:
        return [*super()._how(verbose), *text.how_it_was_found(self._facts, verbose)]

    def _method(self) -> list[tuple[str, str]]:
        algorithm, *said = text.how_it_was_found(self._facts, verbose=False)
        return [("algorithm", algorithm), *(("search", one) for one in said)]

    def _missing(self) -> str:
        """The same, and how many candidates were left undecided."""
        missing = f"a limit was reached; there may be {self.SMALLER}"
        undecided = (self._facts["search"] or {}).get("undecided")
        if not undecided:
            return missing
        return f"{missing}: {undecided:,} candidate{' was' if undecided == 1 else 's were'} undecided"
