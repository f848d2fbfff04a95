"""A contract in the form of another tool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exported:
    """The accepted rules of a contract in the form of another tool.

    Attributes
    ----------
    text : the content of a file
    suffix : how the name of such a file ends: `.sql`
    left_out : ids of the rules that the tool can't say, each with a comment in the text
    """

    text: str
    suffix: str
    left_out: tuple[str, ...]
