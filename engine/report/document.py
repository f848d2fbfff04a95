"""A document without entries to choose from, in its two forms: JSON, and text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tuplewise.engine.report import json, text


@dataclass(frozen=True)
class Document:
    """The answer of a command that lists no rules, such as `doctor`.

    Attributes
    ----------
    values : the JSON
    parts : makes the parts of the text; called with whether it is to say more
    partial : never; for `write_found`
    """

    values: Mapping[str, Any]
    parts: Callable[[bool], list[Any]]
    partial: ClassVar[bool] = False

    def pieces(self, form: str, **listed: Any) -> Iterable[str]:
        """The JSON: the only form but text."""
        return [json.dump(self.values)]

    def to_text(self, *, verbose: bool, width: int | None, color: bool, **listed: Any) -> str:
        """The text for people."""
        return text.render(self.parts(verbose), width=width, color=color)
