"""Constraints as CSV: one row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

FIELDS = ("id", "rule", "kind", "violating_pairs", "g1", "succinctness", "coverage")


def pieces(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A header, then a line for each constraint."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    yield buffer.getvalue()
    for entry in entries:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(entry)
        yield buffer.getvalue()
