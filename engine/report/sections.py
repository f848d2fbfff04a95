"""The shape that renderers draw: a result as sections of a few kinds. Texts are as they are: renderers escape them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["facts", "rules", "table", "columns", "drawing", "warnings"]
Side = Literal["left", "right", "code"]
Heading = tuple[str, Side]


@dataclass(frozen=True)
class Bar:
    """A figure that is also drawn, as a share from 0 to 1 of the longest bar."""

    text: str
    share: float


@dataclass(frozen=True)
class Fold:
    """What is folded beneath a rule: a table, or a list where there are no headings.

    Attributes
    ----------
    side : "code" where the entries of a list are rules
    """

    title: str
    rows: Sequence[Sequence[str]]
    columns: Sequence[str] = ()
    side: Side = "left"


@dataclass(frozen=True)
class Entry:
    """A rule.

    Attributes
    ----------
    mark : its place in the ranking, or a verdict
    text, said : the rule, and what it says in English
    figures : one for each further heading of the section
    tag : a word before the rule, such as the table that it is about
    copies : texts that it can be copied as, by what each is called
    wrong : whether it is a rule that is violated
    """

    mark: str
    text: str
    said: str = ""
    figures: Sequence[str | Bar] = ()
    tag: str = ""
    folds: Sequence[Fold] = ()
    copies: Mapping[str, str] | None = None
    wrong: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page, with a heading of its own.

    Attributes
    ----------
    kind : what its rows are
        "facts": pairs of a name and a value. "rules": `Entry`. "table": as many cells as there are columns, `str` or
        `Bar`. "columns": entries of "columns" in the JSON of `profile`, each with "rows", the rows of its table.
        "drawing": `(from table, its columns, to table, its columns, score)`, names and a number. "warnings": pairs of a
        place and a text.
    columns : headings and the side that values stand on; "code" is for rules
    note : a sentence below the heading
    folded : whether a reader has to open it
    """

    title: str
    kind: Kind
    columns: Sequence[Heading] = ()
    rows: Sequence[Any] = ()
    note: str = ""
    folded: bool = False
