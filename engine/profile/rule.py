"""A rule of a profile, with its measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["key", "fd", "od", "row", "constant"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about the columns of one table, by their numbers.

    Attributes
    ----------
    kind : what it says
        "key": no two rows are equal on `left`. "fd": rows equal on `left` are equal on `right`. "od": among rows equal
        on `left`, the two columns of `right` are ordered alike, or oppositely. "row": in each row, the column of `left`
        is in relation `sense` to that of `right`. "constant": the column of `right` has one value.
    sense : "ascending" or "descending" of an "od", an operator of a "row", else ""
    rows : rows that the rule speaks of: those without a null in its columns
    exceptions : the fewest rows to remove so that it holds
    evidence : rows (of a key of several columns and of a row's rule: pairs, rows) that would contradict it, were its
        columns independent of each other
    strength : 0 where as much contradicts it as by chance, 1 where nothing does
    score : what rules are ranked by
    """

    kind: Kind
    left: tuple[int, ...]
    right: tuple[int, ...]
    sense: str
    rows: int
    exceptions: int
    evidence: float
    strength: float
    score: float

    @property
    def columns(self) -> tuple[int, ...]:
        return (*self.left, *self.right)


@dataclass(frozen=True, slots=True)
class Listed:
    """A shown rule, and the rules folded below it.

    Attributes
    ----------
    implies : rules that follow from this one and better ones
    equivalent : pairs of columns that determine each other
    """

    rule: Rule
    implies: tuple[Rule, ...] = ()
    equivalent: tuple[tuple[int, int], ...] = ()
