"""Rules as read, with the names of their text for tuples and columns, and their conversion to constraints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuplewise.engine.dc.constraint import EXCHANGED, Constant, DenialConstraint, Operator, Predicate, Role
from tuplewise.engine.errors import Fault, Faults, Wording, near_hint

KNOWN_PAIRS = (("t", "u"), ("t", "s"), ("t", "t'"), ("t1", "t2"), ("t0", "t1"))
"""Names of tuples that mean (t, u) in this order, whichever comes first in a rule."""

_TABLE_FILE = re.compile(r"(.+\.(?:csv|tsv|txt))\.(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class DraftReference:
    """`variable.name`, with its place, the place of its name, and whether the name is final (`quoted`)."""

    variable: str
    name: str
    at: int
    name_at: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class DraftLiteral:
    """A constant. `bare`: a word without quotes, which is text in some syntaxes only."""

    constant: Constant
    at: int
    bare: bool = False


@dataclass(frozen=True, slots=True)
class DraftComparison:
    """Two operands, and the operator between them."""

    left: DraftReference | DraftLiteral
    operator: Operator
    right: DraftReference | DraftLiteral
    at: int


@dataclass
class RuleDraft:
    """A rule about tuples, as read.

    Attributes
    ----------
    comparisons : in order
    declared : names of tuples that the text declares, with their places
    negation, connectives : the signs of the text, which identify its syntax
    """

    comparisons: list[DraftComparison] = field(default_factory=list)
    declared: list[tuple[str, int]] = field(default_factory=list)
    negation: str = ""
    connectives: set[str] = field(default_factory=set)

    def constraint(self, columns: Sequence[str] | None) -> DenialConstraint:
        """The rule, normalised. Raises Faults."""
        try:
            return self._constraint(columns)
        except Fault as fault:
            raise Faults([fault]) from None

    def _constraint(self, columns: Sequence[str] | None) -> DenialConstraint:
        roles = self._roles()
        self._check_bare(columns, set(roles))
        sides = [side for c in self.comparisons for side in (c.left, c.right)]
        names = resolve([side for side in sides if isinstance(side, DraftReference)], columns)
        return DenialConstraint(tuple(_predicate(c, roles, names) for c in self.comparisons)).normalised()

    def _roles(self) -> dict[str, Role]:
        """The tuple that each name stands for."""
        places: dict[str, int] = {}
        for c in self.comparisons:
            for side in (c.left, c.right):
                if isinstance(side, DraftReference):
                    places.setdefault(side.variable, side.at)
        declared = [name for name, _ in self.declared]
        if self.declared:
            for name, at in places.items():
                if name not in declared:
                    raise Fault(f"tuple {name!r} is not declared", at, f"Declared: {', '.join(declared)}")
        order = [name for name in dict.fromkeys([*declared, *places]) if name in places]
        if len(order) > 2:
            raise Fault(f"a third tuple, {order[2]!r}", places[order[2]], "A rule is about one tuple or two")
        if len(order) == 2:
            order = next((list(pair) for pair in KNOWN_PAIRS if set(pair) == set(order)), order)
        return dict(zip(order, ("t", "u"), strict=False))

    def _check_bare(self, columns: Sequence[str] | None, variables: set[str]) -> None:
        """Raise Faults for bare words, except as text in the syntaxes without quotes."""
        desbordante = self.negation == "!" and variables <= {"t", "s"} and self.connectives <= {"and"}
        nadeef = self.negation == "not" and variables <= {"t1", "t2"} and self.connectives <= {"&"}
        metanome = self.negation == "¬" and variables <= {"t0", "t1"} and self.connectives <= {"^", "∧"}
        taken = {*variables, *(name for pair in KNOWN_PAIRS for name in pair)}
        faults = []
        for c in self.comparisons:
            for side in (c.left, c.right):
                if not isinstance(side, DraftLiteral) or not side.bare:
                    continue
                word = side.constant.text
                if columns is not None and word in columns:
                    hint = f"Write t.{word} or u.{word} for the column, '{word}' for text"
                    faults.append(Fault(f"{word!r} is a column, but of which tuple", side.at, hint))
                elif word in taken or not (desbordante or nadeef or metanome):
                    hint = Wording(
                        "Write '{}' for text, or t.{} for a column; {rules_syntax} takes bare text",
                        word, word, rules_syntax="desbordante",
                    )  # fmt: skip
                    faults.append(Fault(f"{word!r} is neither a column of a tuple nor a constant", side.at, hint))
        if faults:
            raise Faults(faults)


def _predicate(c: DraftComparison, roles: dict[str, Role], names: dict[int, str]) -> Predicate:
    left, right, operator = c.left, c.right, c.operator
    if isinstance(left, DraftLiteral):
        if isinstance(right, DraftLiteral):
            raise Fault("a comparison of two constants", c.at, "One side has to be a column, such as t.a")
        left, right, operator = right, left, EXCHANGED[operator]
    if isinstance(right, DraftReference):
        return Predicate(
            roles[left.variable], names[left.name_at], operator, roles[right.variable], names[right.name_at]
        )
    if right.constant.type == "null" and operator not in ("is", "is not"):
        column = f"{left.variable}.{left.name}"
        hint = f"Write `{column} is null` or `{column} is not null`"
        raise Fault("null in a comparison, which no value satisfies", right.at, hint)
    return Predicate(roles[left.variable], names[left.name_at], operator, None, right.constant)


def resolve(
    references: Sequence[DraftReference], columns: Sequence[str] | None, *, tables: bool = False
) -> dict[int, str]:
    """The column of each reference, by the place of its name. Raises Faults with all unknown names.

    `tables`: names may have a table and a dot in front (names of t0 and t1 always may, as in Metanome's rules). If the
    columns are known, the longest one that ends the name is taken; otherwise the front that all names share is removed.
    """
    if columns is None:
        return _without_tables(references, tables=tables)
    found: dict[int, str] = {}
    faults: list[Fault] = []
    front: str | None = None
    for r in references:
        column = r.name if r.name in columns else None
        if column is None and not r.quoted:
            column = _by_number(r.name, columns)
        if column is None and not r.quoted and (tables or r.variable in ("t0", "t1")):
            column = max((c for c in columns if r.name.endswith("." + c)), key=len, default=None)
            if column is not None:
                table = r.name.removesuffix("." + column)
                front = front or table
                if table != front:
                    faults.append(Fault(f"names of two tables, {front!r} and {table!r}", r.name_at))
        if column is None:
            faults.append(_unknown(r, columns))
        else:
            found[r.name_at] = column
    if faults:
        raise Faults(faults)
    return found


def _unknown(r: DraftReference, columns: Sequence[str]) -> Fault:
    what = f"no column of the name {r.name!r}"
    if not r.quoted and r.name.isascii() and r.name.isdigit():
        what += f", and numbers of columns are 0 to {len(columns) - 1}"
    last = r.name if r.quoted else r.name.rpartition(".")[2]  # a table may stand in front
    hint = near_hint(r.name, columns)
    return Fault(what, r.name_at, hint if hint and hint.startswith("Did") else near_hint(last, columns) or hint)


def _by_number(name: str, columns: Sequence[str]) -> str | None:
    """The column with this number, from 0."""
    if name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(columns):
        return columns[int(name)]
    return None


def _without_tables(references: Sequence[DraftReference], *, tables: bool) -> dict[int, str]:
    """The names, without the table that all of them begin with if the syntax has one."""
    bare = [r.name for r in references if not r.quoted]
    front = ""
    if tables and len(bare) > 1 and len(bare) == len(references):
        front = _common_front(bare)
    elif references and all(r.variable in ("t0", "t1") for r in references):
        files = {m.group(1) for m in map(_TABLE_FILE.fullmatch, bare) if m}
        if len(files) == 1 and all(_TABLE_FILE.fullmatch(name) for name in bare):
            front = files.pop() + "."
    return {r.name_at: r.name if r.quoted else r.name.removeprefix(front) for r in references}


def _common_front(names: Sequence[str]) -> str:
    """The longest common beginning that ends in a dot, shorter than every name."""
    front = ""
    for i, char in enumerate(names[0][:-1]):
        if char == "." and all(len(n) > i + 1 and n.startswith(names[0][: i + 1]) for n in names):
            front = names[0][: i + 1]
    return front
