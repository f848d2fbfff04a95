"""What the pages of all results have: their names, the columns of tables, how a result was found, and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuplewise.engine.report import text
from tuplewise.engine.report.page import render_page
from tuplewise.engine.report.sections import Section

_NAMED = 3


def render(document: Mapping[str, Any], subtitle: str, sections: Sequence[Section], missing: str) -> str:
    """The page of a document. `missing`: what is missing where it is partial."""
    return render_page(
        title(document),
        subtitle,
        sections,
        notes=document["notes"],
        partial=missing if document["partial"] else "",
        footer=f"tuplewise {document['version']}, {text.how_it_ran(document, verbose=False)}",
    )


def title(document: Mapping[str, Any]) -> str:
    """The names of the tables, as far as they are few."""
    names = [table["name"] for table in document["tables"]]
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} and {len(names) - 1:,} more tables"


def columns(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]] = ()) -> Iterator[Section]:
    """The columns of each table. `records`: entries with "table" and "distribution"; none: as "tables" has them."""
    tables = document["tables"]
    for table in tables:
        heading = "Columns" if len(tables) == 1 else f"Columns of {table['name']}"
        mine = [c for c in records if c["table"] == table["name"]] if records else table["columns"]
        yield Section(heading, "columns", rows=[{**c, "rows": max(table["rows"], 1)} for c in mine])


def how(document: Mapping[str, Any], found: Sequence[tuple[str, str]] = ()) -> Iterator[Section]:
    """How a result was found and with what settings. `found`: more facts on the former."""
    files = [(f"table {t['name']}", t["path"] or "from memory") for t in document["tables"]]
    device = f"{document['device']} ({document['device_reason']})"
    seconds = [(name.replace("_", " "), f"{value:.2f} s") for name, value in document["timings_seconds"].items()]
    facts = [*files, *found, ("device", device), *seconds, ("version", document["version"])]
    yield Section("How it was found", "facts", rows=facts, folded=True)
    yield Section("Settings", "facts", rows=list(_settings(document["options"])), folded=True)


def _settings(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}={one}" for key, one in value.items())
        elif isinstance(value, (list, tuple)):
            value = ", ".join(map(str, value))
        yield name.replace("_", " "), "–" if value is None or value == "" else str(value)
