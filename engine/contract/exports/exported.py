"""What an export hands back."""

from __future__ import annotations

from dataclasses import dataclass


class CannotSay(Exception):
    """Why a target can't say a rule."""


@dataclass(frozen=True)
class Exported:
    """The rules of a contract as another tool takes them.

    Attributes
    ----------
    text : the content of the file
    suffix : what the name of such a file ends with
    left_out : ids of the rules that the target can't say; the text says why, too
    """

    text: str
    suffix: str
    left_out: tuple[str, ...] = ()
