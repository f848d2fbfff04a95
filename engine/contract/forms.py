"""The kinds of rules of a contract: how each is written, and what it says.

Each form has the `text` that a contract holds. Keys, FDs and order rules are those of discovery; the others are here.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from tuplewise.engine.dc.constraint import NULL, Constant, DenialConstraint, Operator, Predicate
from tuplewise.engine.dc.rule_text.reading import read_rule
from tuplewise.engine.dc.rule_text.scanner import Cursor, number_constant, spells_number
from tuplewise.engine.errors import Fault, RuleError, message, near_hint
from tuplewise.engine.ind.dependency import InclusionDependency, parse_ind
from tuplewise.engine.report.dependencies import Direction, FunctionalDependency, Key, OrderCompatibility
from tuplewise.engine.table.schema import quote_name

__all__ = [
    "KINDS",
    "Constant",
    "DenialConstraint",
    "Form",
    "FunctionalDependency",
    "InclusionDependency",
    "Key",
    "Kind",
    "NotNull",
    "OrderCompatibility",
    "Range",
    "RowForm",
    "RowOrder",
    "ValueSet",
    "check_kind",
    "columns_of",
    "constant_of",
    "constraints_of",
    "read_form",
    "read_inclusion",
]

Kind = Literal["key", "fd", "od", "row", "values", "range", "not_null", "dc", "ind"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_NEGATED: dict[str, Operator] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class RowOrder:
    """In each row, one column is in a relation to another.

    Examples
    --------
    >>> print(RowOrder("depart", "<=", "arrive"), RowOrder("depart", "<=", "arrive").constraints[0])
    depart <= arrive not(t.depart > t.arrive)
    """

    left: str
    operator: Operator
    right: str

    def __str__(self) -> str:
        return f"{quote_name(self.left)} {self.operator} {quote_name(self.right)}"

    @property
    def constraints(self) -> tuple[DenialConstraint, ...]:
        return (DenialConstraint((Predicate("t", self.left, _NEGATED[self.operator], "t", self.right),)),)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A column has no other values than these.

    Examples
    --------
    >>> print(ValueSet("state", (Constant("open", "text"), Constant("closed", "text"))))
    state in ('open', 'closed')
    """

    column: str
    values: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"{quote_name(self.column)} in ({', '.join(map(str, self.values))})"

    @property
    def constraints(self) -> tuple[DenialConstraint, ...]:
        return (DenialConstraint(tuple(Predicate("t", self.column, "!=", None, value) for value in self.values)),)


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a column lie between two ends, which belong to it. None: no end on that side.

    Examples
    --------
    >>> print(Range("age", Constant("0", "integer"), Constant("120", "integer")))
    age between 0 and 120
    """

    column: str
    low: Constant | None
    high: Constant | None

    def __str__(self) -> str:
        name = quote_name(self.column)
        if self.low is not None and self.high is not None:
            return f"{name} between {self.low} and {self.high}"
        return f"{name} <= {self.high}" if self.low is None else f"{name} >= {self.low}"

    @property
    def constraints(self) -> tuple[DenialConstraint, ...]:
        ends: list[tuple[Operator, Constant | None]] = [("<", self.low), (">", self.high)]
        beyond = (Predicate("t", self.column, operator, None, end) for operator, end in ends if end is not None)
        return tuple(DenialConstraint((predicate,)) for predicate in beyond)


@dataclass(frozen=True, slots=True)
class NotNull:
    """A column has a value in each row.

    Examples
    --------
    >>> print(NotNull("e mail"))
    `e mail` is not null
    """

    column: str

    def __str__(self) -> str:
        return f"{quote_name(self.column)} is not null"

    @property
    def constraints(self) -> tuple[DenialConstraint, ...]:
        return (DenialConstraint((Predicate("t", self.column, "is", None, NULL),)),)


RowForm = RowOrder | ValueSet | Range | NotNull
Form = Key | FunctionalDependency | OrderCompatibility | RowForm | DenialConstraint | InclusionDependency


def columns_of(form: Form) -> tuple[str, ...]:
    """The columns that a rule names, each once; of an inclusion dependency those of the side that refers."""
    if isinstance(form, Key):
        return form.columns
    if isinstance(form, FunctionalDependency):
        return (*form.determinant, form.dependent)
    if isinstance(form, OrderCompatibility):
        return (*form.context, form.left, form.right)
    if isinstance(form, InclusionDependency):
        return tuple(attribute.column for attribute in form.dependent)
    if isinstance(form, RowOrder):
        return (form.left, form.right)
    return form.columns if isinstance(form, DenialConstraint) else (form.column,)


def constraints_of(form: Form) -> tuple[DenialConstraint, ...]:
    """A denial constraint, or a rule of one row as such: a row breaks the rule that breaks one of them."""
    if isinstance(form, DenialConstraint):
        return (form,)
    assert isinstance(form, RowForm), "keys, dependencies and order rules are counted otherwise"
    return form.constraints


def read_form(kind: Kind, text: str, columns: Sequence[str] = ()) -> Form:
    """Read the text of a rule about one table.

    Parameters
    ----------
    kind : what it is, but "ind": see `read_inclusion`
    columns : names of the table's columns; none: names are taken as they are written

    Raises
    ------
    RuleError : with the position and what was expected, and names similar to one that is no column

    Examples
    --------
    >>> print(read_form("od", "[origin]: dep ~ arr desc"), read_form("range", "age >= 0").constraints[0])
    [origin]: dep ~ arr desc not(t.age < 0)
    >>> print(read_form("values", "state in ('open', 'closed')"), read_form("fd", "zip -> city"))
    state in ('open', 'closed') zip -> city
    """
    if kind == "dc":
        return read_rule(text, columns=list(columns) or None)
    reader = _FormReader(text, columns)
    read, accepted = _READ[kind]
    found: Form = reader.whole(lambda: read(reader), f"rule of the kind {kind}", f"It is written {accepted}.")
    return found


def read_inclusion(text: str, tables: Mapping[str, Sequence[str]]) -> InclusionDependency:
    """Read the text of an inclusion dependency between tables, given with their columns.

    Of a table without columns the plain or quoted names that the text has behind its name are taken.

    Examples
    --------
    >>> print(read_inclusion("orders.person <= people.id", {"orders": ["no", "person"], "people": []}))
    orders.person <= people.id
    """
    return parse_ind(text, {name: columns or _named_in(text, name) for name, columns in tables.items()})


def _named_in(text: str, table: str) -> list[str]:
    """The plain or quoted names behind the name of a table: `table.a`, `table[a, b]`."""
    name = r"(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|[^\W\d]\w*)"
    before = rf"(?<!\w)[`\"]?{re.escape(table)}[`\"]?"
    found = re.findall(rf"{before}\s*\.\s*({name})", text)
    for listed in re.findall(rf"{before}\s*\[([^\]]*)\]", text):
        found += re.findall(name, listed)
    return [one[1:-1].replace(one[0] * 2, one[0]) if one[0] in "`\"" else one for one in found]


def constant_of(value: Any) -> Constant:
    """The constant that a value of a table is written as: dates and times as text.

    Examples
    --------
    >>> print(constant_of(5), constant_of("it's"), constant_of(datetime.date(2024, 1, 31)), constant_of(True))
    5 'it''s' '2024-01-31' true
    """
    if isinstance(value, bool):
        return Constant(str(value).lower(), "boolean")
    if isinstance(value, (int, Decimal)):
        text = format(value, "f")
        return number_constant(text.rstrip("0").rstrip(".") if "." in text else text)
    if isinstance(value, float):
        special = value != value or value in (float("inf"), float("-inf"))
        return Constant(str(value), "text") if special else number_constant(repr(value).removesuffix(".0"))
    if isinstance(value, datetime.datetime):
        return Constant(value.isoformat(sep=" "), "text")
    return Constant(value.isoformat() if isinstance(value, datetime.date) else str(value), "text")


class _FormReader(Cursor):
    """The text of a rule with a place in it."""

    def name(self) -> str:
        """The name of a column: in quotes, or a known one, or a plain word."""
        at = self.skip_blanks()
        names = self.columns or ()
        quoted = self.sees("`", '"')
        name = self.quoted() if quoted else self.bare_name(names, _FOLLOWS, _UNTIL)
        if not quoted and name not in names and (spells_number(name) or name.startswith("'")):
            hint = "Constants stand in the kinds range (age >= 4), values and dc (not(t.age <= 0))"
            raise Fault(f"expected the name of a column, found {name!r}", at, hint)
        if names and name not in names:
            self.unknown.append(Fault(f"no column of the name {name!r}", at, near_hint(name, names)))
        return name

    def names_until(self, closing: str | None) -> tuple[str, ...]:
        """Names with commas between them, up to a bracket or the next sign; there may be none."""
        if self.take(closing) if closing else self.sees("->", "→"):
            return ()
        return tuple(self.separated(self.name, closing))

    def bracketed(self) -> tuple[str, ...]:
        """Names in square brackets."""
        self.expect("[", "[")
        return self.names_until("]")

    def constant(self) -> Constant:
        """Text in quotes, a number, true or false."""
        at = self.skip_blanks()
        found = self.literal()
        if found is None or found.bare or found.constant.type == "null":
            self.at = at
            raise self.fault("expected text in single quotes, a number, true or false")
        return found.constant

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            raise self.fault(f"expected {word}")


_FOLLOWS = re.compile(r"\s*(?:[,\])~<>=!→]|->|$)|\s+(?i:in|between|is|asc|desc)\b")
_UNTIL = re.compile(r"\s*(?:[,\])~<>=!→]|->|$)|\s")


def _key(reader: _FormReader) -> Key:
    columns = reader.bracketed() if reader.sees("[") else tuple(reader.separated(reader.name, None))
    if not columns:
        raise reader.fault("expected the name of a column")
    return Key(columns)


def _fd(reader: _FormReader) -> FunctionalDependency:
    left = reader.bracketed() if reader.sees("[") else reader.names_until(None)
    if not reader.take("->", "→"):
        raise reader.fault("expected ->")
    return FunctionalDependency(left, reader.name())


def _od(reader: _FormReader) -> OrderCompatibility:
    context: tuple[str, ...] = ()
    if reader.sees("["):
        context = reader.bracketed()
        reader.expect(":", "a colon")
    left = reader.name()
    reader.expect("~", "~")
    right = reader.name()
    direction: Direction = "descending" if reader.take_word("desc", "asc") == "desc" else "ascending"
    return OrderCompatibility(context, left, right, direction)


def _row(reader: _FormReader) -> RowOrder:
    left, operator = reader.name(), reader.operator()
    if operator is None:
        raise reader.fault("expected ==, !=, <, <=, > or >=")
    return RowOrder(left, operator, reader.name())


def _values(reader: _FormReader) -> ValueSet:
    column = reader.name()
    reader.expect_word("in")
    reader.expect("(", "(")
    return ValueSet(column, tuple(reader.separated(reader.constant, ")")))


def _range(reader: _FormReader) -> Range:
    column = reader.name()
    if reader.take_word("between"):
        at = reader.skip_blanks()
        low = reader.constant()
        reader.expect_word("and")
        high = reader.constant()
        if "text" not in (low.type, high.type) and Decimal(low.text) > Decimal(high.text):
            raise Fault(f"a range from {low} to {high} holds nothing", at, "The lower end comes first")
        return Range(column, low, high)
    sign = reader.take("<=", ">=")
    if sign is None:
        hint = f"The ends of a range belong to it. Without them, kind dc: not(t.{quote_name(column)} <= 0)"
        raise reader.fault("expected between, >= or <=", hint if reader.sees("<", ">") else None)
    end = reader.constant()
    return Range(column, end, None) if sign == ">=" else Range(column, None, end)


def _not_null(reader: _FormReader) -> NotNull:
    column = reader.name()
    for word in ("is", "not", "null"):
        reader.expect_word(word)
    return NotNull(column)


_READ: dict[str, tuple[Callable[[_FormReader], Any], str]] = {
    "key": (_key, "[order_id] or [order_id, line]"),
    "fd": (_fd, "zip -> city or zip, street -> city"),
    "od": (_od, "ordered ~ shipped or [customer]: ordered ~ discount desc"),
    "row": (_row, "ordered <= shipped"),
    "values": (_values, "state in ('open', 'closed')"),
    "range": (_range, "age between 0 and 120, age >= 0 or age <= 120"),
    "not_null": (_not_null, "email is not null"),
}


def check_kind(kind: str) -> Kind:
    """The kind of a rule. Raises RuleError for another text."""
    for known in KINDS:
        if kind == known:
            return known
    raise RuleError(message("kind of a rule", kind, ", ".join(KINDS)))
