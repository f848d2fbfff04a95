"""Order dependencies between lists, `month, week desc -> week`: their type, writing and parsing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tuplewise.engine.errors import Fault, near_hint
from tuplewise.engine.scanner import BRACKETS, Scanner
from tuplewise.engine.table.schema import quote_name

Direction = Literal["asc", "desc"]

ARROWS = ("|->", "->", "↦", "→")
ACCEPTED_ORDER = 'Accepted: month, week desc | [a, b]. Names that are no plain word stand in `...` or "...".'
ACCEPTED = (
    "Accepted: month, week desc -> week | [a, b] -> [b, a] | [] -> a. "
    'Names that are no plain word stand in `...` or "...".'
)

_END = r"\s*(?:[,\])]|\|->|->|↦|→|\Z)"
_DIRECTION = re.compile(rf"\s*\b(asc|desc)\b(?={_END})", re.IGNORECASE)
_AFTER_KNOWN = re.compile(rf"(?:{_DIRECTION.pattern}|{_END})", re.IGNORECASE)
_AFTER_OTHER = re.compile(rf"(?:\s+(?:asc|desc))?{_END}", re.IGNORECASE)


class OrderedColumn(NamedTuple):
    """One item of an ORDER BY: a column's name and its direction, "asc" (nulls first) or "desc" (nulls last).

    Examples
    --------
    >>> str(OrderedColumn("week", "desc"))
    'week desc'
    """

    name: str
    direction: Direction = "asc"

    def __str__(self) -> str:
        return quote_name(self.name) + (" desc" if self.direction == "desc" else "")


@dataclass(frozen=True)
class ListOd:
    """An order dependency `left -> right`: rows sorted by the left list are sorted by the right one.

    It is violated by two rows t, u if t is before u or equal to u on the left list, and after u on the right list.
    With an empty left list, the columns on the right are constant. `str` writes the text that `read_od` reads.

    Examples
    --------
    >>> od = ListOd((OrderedColumn("month"), OrderedColumn("week", "desc")), (OrderedColumn("day of week"),))
    >>> str(od), read_od(str(od), ["month", "week", "day of week"]) == od
    ('month, week desc -> `day of week`', True)
    """

    left: tuple[OrderedColumn, ...]
    right: tuple[OrderedColumn, ...]

    def __str__(self) -> str:
        return f"{write_order(self.left) or '[]'} -> {write_order(self.right) or '[]'}"


def write_order(items: Iterable[OrderedColumn]) -> str:
    """An ORDER BY list as text: `month, week desc`."""
    return ", ".join(map(str, items))


def read_od(text: str, names: Sequence[str]) -> ListOd:
    """Read a list order dependency.

    Parameters
    ----------
    text : two lists of columns with `->`, `|->`, `→` or `↦` between them, each list bare or in brackets, each column
        with `asc` or `desc` behind it or neither (`asc`). Names that are no plain word stand in back-quotes or double
        quotes (doubled inside), or bare where no other reading is possible. The left list may be empty.
    names : the columns of the table

    Raises
    ------
    RuleError : with the position, what was expected, and names similar to an unknown one

    Examples
    --------
    >>> print(read_od("[month, week DESC] ↦ [`week` asc, month]", ["month", "week"]))
    month, week desc -> week, month
    """
    reader = _ListReader(text, names)
    return reader.whole(reader.dependency, "order dependency", ACCEPTED)


def read_order_by(text: str, names: Sequence[str]) -> tuple[OrderedColumn, ...]:
    """Read the list of an ORDER BY: columns, each with `asc` or `desc` or neither.

    Raises
    ------
    RuleError : as for `read_od`

    Examples
    --------
    >>> read_order_by("month, week desc", ["month", "week"])
    (OrderedColumn(name='month', direction='asc'), OrderedColumn(name='week', direction='desc'))
    """
    reader = _ListReader(text, names)
    return reader.whole(reader.items, "ORDER BY", ACCEPTED_ORDER)


class _ListReader(Scanner):
    """A text over the columns of a table. `unknown`: a fault for each name that is no column."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        super().__init__(text)
        self.names = names

    def dependency(self) -> ListOd:
        """Two lists with an arrow between them."""
        left = self.items()
        if not self.take(*ARROWS):
            raise self.fault("expected a comma or ->")
        right = self.items()
        if not right:
            raise self.fault("expected the name of a column")
        return ListOd(left, right)

    def items(self) -> tuple[OrderedColumn, ...]:
        """A list of columns, in brackets or not; empty in brackets, or where an arrow or the end is next."""
        bracket = self.take(*BRACKETS)
        closing = BRACKETS[bracket] if bracket else None
        if self.take(closing) if closing else self.at_end() or self.sees(*ARROWS):
            return ()
        return tuple(self.separated(self._item, closing))

    def _item(self) -> OrderedColumn:
        at = self.skip_blanks()
        name = self.quoted() if self.sees("`", '"') else self.bare_name(self.names, _AFTER_KNOWN, _AFTER_OTHER)
        if name not in self.names:
            self.unknown.append(Fault(f"no column of the name {name!r}", at, near_hint(name, self.names)))
        direction = _DIRECTION.match(self.text, self.at)
        if direction is None:
            return OrderedColumn(name, "asc")
        self.at = direction.end()
        return OrderedColumn(name, "asc" if direction.group(1).lower() == "asc" else "desc")
