"""Sequences whose items are made when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item", covariant=True)


class MadeOnAccess(Sequence[Item]):
    """A sequence that is equal to any other one of the same items, and is shown as a list of them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
