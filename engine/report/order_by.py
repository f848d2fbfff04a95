"""The result of `od order-by`: the shortest ORDER BY that sorts a table as a given one does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tuplewise.engine.errors import RuleError, message
from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.list_od import read_order_by, write_order
from tuplewise.engine.od.order_by import shortest_order_by
from tuplewise.engine.report import json, model
from tuplewise.engine.run import Clock

COMMAND = "od order-by"


@dataclass(frozen=True)
class Shortened:
    """An ORDER BY, and the shortest one that sorts the table the same way; both as text.

    Attributes
    ----------
    against : path of the saved result
    minimal : whether no shorter one exists; where that is not known, `notes` say why
    partial : never; for `write_found`
    """

    order_by: str
    shortest: str
    against: str
    minimal: bool
    notes: Sequence[str]
    timings_seconds: Mapping[str, float]
    partial: ClassVar[bool] = False

    def pieces(self, form: str) -> Iterable[str]:
        """The JSON: the only form but text."""
        document = model.heading(
            COMMAND, None, options={"against": self.against}, timings_seconds=self.timings_seconds, notes=self.notes
        )
        document["result"] = {"order_by": self.order_by, "shortest": self.shortest, "minimal": self.minimal}
        return [json.dump(document)]

    def to_text(self, **how: Any) -> str:
        """The shortest one alone, on one line: to be used by other programs."""
        return f"{self.shortest}\n"


def shorten(columns: str, against: str) -> Shortened:
    """The shortest ORDER BY for the table whose order dependencies `od discover` saved.

    Raises
    ------
    RuleError : for an ORDER BY without columns, or one that can't be read (with the position)
    InputError : for a file that is no result of `od discover`
    """
    clock = Clock()
    saved = SavedOds.read(against)
    clock.lap("reading")
    items = read_order_by(columns, saved.names)
    if not items:
        raise RuleError(message("columns of ORDER BY", columns, 'one or more, such as "year, month desc"'))
    found = shortest_order_by(items, saved)
    clock.lap("shortening")
    shortest = write_order(found.items) or "[]"
    return Shortened(write_order(items), shortest, against, found.shortest, found.notes, clock.with_total())
