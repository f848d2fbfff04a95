"""What changes of states hand on: which rules are listed since, and which no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report.result import Chosen, Ran, Result
from tuplewise.engine.report.sections import Section


class ChangeResult(Result):
    """What a revision of a state brought, or several.

    Attributes
    ----------
    revision : the last one
    gained, lost : what is listed since, and no more
    notes : what a reader should know
    """

    FORMS = ("json",)
    CHOICES = ()

    def __init__(
        self,
        command: str,
        tables: Sequence[Mapping[str, Any]],
        ran: Ran,
        *,
        revision: int,
        gained: Sequence[Any],
        lost: Sequence[Any],
        options: Mapping[str, Any],
        notes: Sequence[str],
    ) -> None:
        super().__init__(ran, options=options, notes=notes, total_seconds=ran.timings_seconds["total"])
        self.COMMAND = command
        self.revision, self.gained, self.lost = revision, list(gained), list(lost)
        self._all_tables = [dict(table) for table in tables]

    def __repr__(self) -> str:
        counts = f"revision {self.revision}, {len(self.gained)} gained, {len(self.lost)} lost"
        return self._described(counts, (), 0)

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return self._all_tables

    @property
    def _spark(self) -> Mapping[str, str] | None:
        spark: Mapping[str, str] | None = self._found.spark
        return spark

    def _since(self) -> str:
        """Which revisions it is about."""
        return f"revision {self.revision}"

    def _summary(self) -> str:
        return f"{self._since()}: {number_of(len(self.gained), *self.THINGS)} gained, {len(self.lost):,} lost"

    def _how(self, verbose: bool) -> list[Any]:
        return []

    def _lines(self, limit: int) -> list[str]:
        """What was gained and lost, as text."""
        return [*(f"+ {one}" for one in self.gained), *(f"- {one}" for one in self.lost)]

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        if not html:
            return [Section("", "lines", rows=self._lines(chosen.limit or most))]
        gained = [["+", str(one)] for one in self.gained]
        rows = gained + [["-", str(getattr(one, "rule", one))] for one in self.lost]
        columns: list[Any] = [("gained or lost", "left"), ("rule", "code")]
        return [Section("Rules gained and lost", "table", columns, rows[:most], count=len(rows))]
