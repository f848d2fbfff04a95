"""What `od order-by` hands on: the shortest ORDER BY that sorts as a given one does."""

from __future__ import annotations

from dataclasses import dataclass

from tuplewise.engine.od.implied import SavedOds
from tuplewise.engine.od.list_od import read_order_by, write_order
from tuplewise.engine.od.order_by import shortest_order_by
from tuplewise.engine.report import json, model

COMMAND = "od order-by"


@dataclass(frozen=True)
class Shortened:
    """An ORDER BY, and the shortest one that sorts the table alike; both as text. `against`: the saved result."""

    order_by: str
    shortest: str
    against: str

    def to_json(self) -> str:
        """The whole result as JSON text."""
        document = model.heading(COMMAND, None, options={"against": self.against})
        document["result"] = {"order_by": self.order_by, "shortest": self.shortest}
        return json.dump(document)


def shorten(columns: str, against: str) -> Shortened:
    """The shortest ORDER BY for the table whose order dependencies `od discover` saved.

    Raises
    ------
    RuleError : for an ORDER BY that can't be read, with the place
    InputError : for a file that is no result of `od discover`
    """
    saved = SavedOds.read(against)
    items = read_order_by(columns, saved.names)
    given, shortest = (write_order(one) or "[]" for one in (items, shortest_order_by(items, saved)))
    return Shortened(given, shortest, against)
