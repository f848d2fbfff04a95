"""What the results of all checks have in common: whether all holds, and a block for each rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import page
from tuplewise.engine.report.result import Chosen, Result
from tuplewise.engine.report.sections import Entry, Heading, Section

VERDICTS = {True: "holds", False: "VIOLATED", None: "UNDECIDED"}
MOST_ROWS = 2000
"""Rows that break rules, and that a page has at most, over all of its rules."""


class CheckedResult(Result):
    """A check that was done.

    Attributes
    ----------
    ASK : what to ask in place of the truth of a result
    SHOWN_ROWS : rows or values that break a rule, and that are shown of each
    FIGURES : headings of the figures that a page has of each rule
    """

    CHOICES = ()
    MISSING = "a limit was reached; what is not known is said with each rule"
    ASK: ClassVar[str]
    SHOWN_ROWS: ClassVar[int] = 10
    FIGURES: ClassVar[tuple[Heading, ...]] = ()

    def __bool__(self) -> NoReturn:
        article = "an" if type(self).__name__[0] in "IO" else "a"
        raise TypeError(f"{article} {type(self).__name__} is neither true nor false: ask .holds, or {self.ASK}")

    @property
    def _verdicts(self) -> Sequence[bool | None]:
        """Whether each holds; None: undecided."""
        return [one.holds for one in self._found.checks]

    @property
    def _facts(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _entry(self, number: int, most: int, plan: bool) -> Entry:
        """One of the rules, with at most so many rows that break it, or with its plan."""

    @property
    def holds(self) -> bool | None:
        """Whether all hold. None: none is known not to hold, but some are undecided."""
        verdicts = self._verdicts
        return False if False in verdicts else None if None in verdicts else True

    @property
    def failed(self) -> bool:
        """Whether some do not hold."""
        return self.holds is False

    def _summary(self) -> str:
        """How many of what was checked hold and how many do not."""
        verdicts = list(self._verdicts)
        counts = [(verdicts.count(v), word) for v, word in ((False, "violated"), (True, "hold"), (None, "undecided"))]
        told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return number_of(len(verdicts), *self.THINGS) + (f": {told}" if told else "")

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """All rules; in HTML the violated ones first, and no more than a page has."""
        verdicts = self._verdicts
        numbers = list(range(len(verdicts)))
        rows = self.SHOWN_ROWS if chosen.limit is None else chosen.limit
        if html:
            numbers = sorted(numbers, key=lambda i: verdicts[i] is not False)[: page.MOST]
            rows = min(rows, max(MOST_ROWS // max(len(numbers), 1), 1))
        entries = [self._entry(number, rows, chosen.plan) for number in numbers]
        cut = any(fold.cut for entry in entries for fold in entry.folds)
        columns: list[Heading] = [("verdict", "left"), ("rule", "left"), *self.FIGURES]
        return [Section("Rules", "rules", columns, entries, count=len(verdicts), cut=cut)]
