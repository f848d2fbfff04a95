"""What `od order-by` hands on: the shortest ORDER BY that sorts as a given one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuplewise.engine.errors import RuleError, message
from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.list_od import read_order_by, write_order
from tuplewise.engine.od.order_by import shortest_order_by
from tuplewise.engine.report import json, model
from tuplewise.engine.run import Clock

COMMAND = "od order-by"


@dataclass(frozen=True)
class Shortened:
    """An ORDER BY, and the shortest one that sorts the table alike; both as text.

    Attributes
    ----------
    against : the saved result
    minimal : whether there is no shorter one; else `notes` say why that isn't known
    """

    order_by: str
    shortest: str
    against: str
    minimal: bool
    notes: Sequence[str]
    timings_seconds: Mapping[str, float]

    def to_json(self) -> str:
        """The whole result as JSON text."""
        document = model.heading(
            COMMAND, None, options={"against": self.against}, timings_seconds=self.timings_seconds, notes=self.notes
        )
        document["result"] = {"order_by": self.order_by, "shortest": self.shortest, "minimal": self.minimal}
        return json.dump(document)


def shorten(columns: str, against: str) -> Shortened:
    """The shortest ORDER BY for the table whose order dependencies `od discover` saved.

    Raises
    ------
    RuleError : for an ORDER BY that can't be read, with the place
        or one without columns
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
    timings = {**clock.seconds, "total": sum(clock.seconds.values())}
    shortest = write_order(found.items) or "[]"
    return Shortened(write_order(items), shortest, against, found.shortest, found.notes, timings)
