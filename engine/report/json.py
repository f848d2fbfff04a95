"""Results as JSON text: one object, each constraint on a line of its own, written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def dump(document: Mapping[str, Any]) -> str:
    """A whole document."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def pieces(document: Mapping[str, Any], *lists: Iterable[Any]) -> Iterator[str]:
    """A document whose last values are empty lists, with the entries of `lists` put into these, one a line.

    Made in pieces, so that a million entries need no memory of their own.
    """
    *heads, tail = dump(document).rsplit("[]", len(lists))
    if len(heads) != len(lists):
        raise ValueError(f"the document does not end in an empty list, or in {len(lists)} of them")
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for head, entries in zip(heads, lists, strict=True):
        yield head + "["
        separator = "\n"
        for entry in entries:
            yield separator + encode(entry)
            separator = ",\n"
        yield "]"
    yield tail
