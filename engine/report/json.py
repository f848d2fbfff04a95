"""Results as JSON text: one object, each constraint on a line of its own, written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def dump(document: Mapping[str, Any]) -> str:
    """A whole document."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def pieces(document: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A document whose last value is an empty list, with `entries` put into it, one a line.

    Made in pieces, so that a million entries need no memory of their own.
    """
    head, empty, tail = dump(document).rpartition("[]")
    if not empty:
        raise ValueError("the document does not end in an empty list")
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    yield head + "["
    separator = "\n"
    for entry in entries:
        yield separator + encode(entry)
        separator = ",\n"
    yield "]" + tail
