"""What people are shown of a result: sections of a few kinds, which text, notebooks and pages draw each in their way.

Texts are as they are: what draws them escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["facts", "rules", "table", "columns", "drawing", "warnings", "lines"]
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
    cut : whether there are more rows than these
    """

    title: str
    rows: Sequence[Sequence[str]]
    columns: Sequence[Heading] = ()
    side: Side = "left"
    cut: bool = False


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
    remark : a line below the folds, in text
    """

    mark: str
    text: str
    said: str = ""
    figures: Sequence[str | Bar] = ()
    tag: str = ""
    folds: Sequence[Fold] = ()
    copies: Mapping[str, str] | None = None
    wrong: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Section:
    """A part of what is shown. Text and notebooks have those that are rules or tables.

    Attributes
    ----------
    kind : what its rows are
        "facts": pairs of a name and a value. "rules": `Entry`. "table": as many cells as there are columns, `str` or
        `Bar`. "columns": entries of "columns" in the JSON of `profile`, each with "rows", the rows of its table.
        "drawing": `(from table, its columns, to table, its columns, score)`, names and a number. "warnings": pairs of a
        place and a text. "lines": lines of text.
    columns : headings and the side that values stand on; "code" is for rules
    note : a sentence below the title
    folded : whether a reader has to open it
    heading : what stands above it in text and in notebooks, in place of title and note
    count : how many rows there are, of which these are the first; None: all are here
    cut : whether text leaves something out that other formats have
    """

    title: str
    kind: Kind
    columns: Sequence[Heading] = ()
    rows: Sequence[Any] = ()
    note: str = ""
    folded: bool = False
    heading: str = ""
    count: int | None = None
    cut: bool = False
