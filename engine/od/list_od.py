"""Order dependencies between lists, `month, week desc -> week`: how they are written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tuplewise.engine.errors import Fault, RuleError, describe, near_hint
from tuplewise.engine.scanner import BRACKETS, PLAIN, Scanner
from tuplewise.engine.table.schema import quote_name

Direction = Literal["asc", "desc"]

ARROWS = ("|->", "->", "↦", "→")
ACCEPTED_ORDER = 'Accepted: month, week desc | [a, b]. Names that are no plain word stand in `...` or "...".'
ACCEPTED = (
    "Accepted: month, week desc -> week | [a, b] -> [b, a] | [] -> a. "
    'Names that are no plain word stand in `...` or "...".'
)

_DIRECTION = re.compile(r"\s*\b(asc|desc)\b(?=\s*(?:[,\])]|\|->|->|↦|→|\Z))", re.IGNORECASE)
_END = re.compile(r"\s*(?:[,\])]|\|->|->|↦|→|\Z)")


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

    It holds where no two rows t, u with t before u on the left list, or equal to it, have t after u on the right one.
    An empty left list says that the columns on the right are constant. `str` writes it as `read_od` reads it.

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
    RuleError : with the position, what was expected, and names like an unknown one

    Examples
    --------
    >>> print(read_od("[month, week DESC] ↦ [`week` asc, month]", ["month", "week"]))
    month, week desc -> week, month
    """
    reader = _Reader(text, names)
    try:
        left = reader.items()
        if not reader.take(*ARROWS):
            raise reader.fault("expected a comma or ->")
        right = reader.items()
        if not right:
            raise reader.fault("expected the name of a column")
        reader.finish()
    except Fault as fault:
        raise _error(text, [*reader.unknown, fault]) from None
    if reader.unknown:
        raise _error(text, reader.unknown)
    return ListOd(left, right)


def read_order_by(text: str, names: Sequence[str]) -> tuple[OrderedColumn, ...]:
    """Read what stands behind ORDER BY: columns, each with `asc` or `desc` or neither.

    Raises
    ------
    RuleError : as `read_od` does

    Examples
    --------
    >>> read_order_by("month, week desc", ["month", "week"])
    (OrderedColumn(name='month', direction='asc'), OrderedColumn(name='week', direction='desc'))
    """
    reader = _Reader(text, names)
    try:
        items = reader.items()
        reader.finish()
    except Fault as fault:
        raise _order_error(text, [*reader.unknown, fault]) from None
    if reader.unknown:
        raise _order_error(text, reader.unknown)
    return items


def _error(text: str, faults: Sequence[Fault]) -> RuleError:
    return RuleError(describe(text, faults, "order dependency"), ACCEPTED)


def _order_error(text: str, faults: Sequence[Fault]) -> RuleError:
    return RuleError(describe(text, faults, "ORDER BY"), ACCEPTED_ORDER)


class _Reader(Scanner):
    """A text over the columns of a table. `unknown`: a fault for each name that no column has."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        super().__init__(text)
        self.names = names
        self._longest_first = sorted(filter(None, names), key=len, reverse=True)

    def items(self) -> tuple[OrderedColumn, ...]:
        """A list of columns, in brackets or not; empty in brackets, or where an arrow or the end is next."""
        bracket = self.take(*BRACKETS)
        closing = BRACKETS[bracket] if bracket else None
        found: list[OrderedColumn] = []
        if closing and self.take(closing):
            return ()
        if not closing and (self.skip_blanks() == len(self.text) or self.text.startswith(ARROWS, self.at)):
            return ()
        while True:
            found.append(self._item())
            if self.take(","):
                continue
            if closing and not self.take(closing):
                raise self.fault(f"expected a comma or {closing}")
            return tuple(found)

    def _item(self) -> OrderedColumn:
        at = self.skip_blanks()
        quoted = self.text.startswith(("`", '"'), at)
        name = self.quoted() if quoted else self._bare()
        if name not in self.names:
            self.unknown.append(Fault(f"no column of the name {name!r}", at, near_hint(name, self.names)))
        direction = _DIRECTION.match(self.text, self.at)
        if direction is None:
            return OrderedColumn(name, "asc")
        self.at = direction.end()
        return OrderedColumn(name, "asc" if direction.group(1).lower() == "asc" else "desc")

    def _bare(self) -> str:
        """A known plain word; else the longest known name; else all up to what can't belong to a name."""
        plain = PLAIN.match(self.text, self.at)
        if plain and plain.group() in self.names and self._ends(plain.end()):
            self.at = plain.end()
            return plain.group()
        for name in self._longest_first:
            if self.text.startswith(name, self.at) and self._ends(self.at + len(name)):
                self.at += len(name)
                return name
        end = _END.search(self.text, self.at)
        stop = end.start() if end else len(self.text)
        name = re.sub(r"\s+(?:asc|desc)$", "", self.text[self.at : stop], flags=re.IGNORECASE)
        if not name or re.search(r"[`\"\[\]()]", name):
            raise self.fault("expected the name of a column")
        self.at += len(name)
        return name

    def _ends(self, at: int) -> bool:
        """Whether a name may end here: a direction, a comma, a bracket, an arrow or the end comes next."""
        direction = _DIRECTION.match(self.text, at)
        return _END.match(self.text, direction.end() if direction else at) is not None
