"""Sections as HTML: one page that needs nothing else (no network, no fonts, no library), or a part of a notebook.

All that comes from data is escaped by the templates or held as JSON beside them, and the page's policy lets no script
run but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import drawing, text
from tuplewise.engine.report.sections import Bar, Section
from tuplewise.engine.report.text import visible

if TYPE_CHECKING:
    from jinja2 import Template

SEARCHED_FROM = 8
"""Rows and rules that a page has at least where it has a search box."""
MOST = 500
"""Rules that a page has, at most, unless a limit says otherwise."""
_ALL = "All of them: --format json, csv or sql (to a file: -o FILE); in Python .to_json(), .to_csv() or .to_pandas()."
_NAMED = 3


@lru_cache(maxsize=8)
def template(name: str) -> Template:
    """A template of this package, which escapes all that it is given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tuplewise.engine.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (number_of, text.named_parts, text.percent, text.strength, text.visible)
    environment.filters.update((one.__name__, one) for one in filters)
    return environment.get_template(name)


def render_result(
    document: Mapping[str, Any],
    summary: str,
    sections: Sequence[Section],
    missing: str,
    method: Sequence[tuple[str, str]] = (),
    title_: str = "",
) -> str:
    """The page of a result.

    Parameters
    ----------
    document : the result as JSON has it; its lists may be empty
    summary : how much was found
    missing : what is missing where it is partial
    method : facts on how it was found, such as the algorithm
    title_ : what it is called; "": by its tables
    """
    return render_page(
        title_ or title(document),
        summary,
        [*map(_with_rest, sections), *_how(document, method)],
        notes=document["notes"],
        partial=missing if document["partial"] else "",
        footer=f"tuplewise {document['version']}, {text.how_it_ran(document, verbose=False)}",
    )


def _with_rest(section: Section) -> Section:
    """A list that is cut says where the rest is."""
    if section.count is None or len(section.rows) == section.count:
        return section
    cut = f"The first {len(section.rows):,} of {section.count:,}. {_ALL}"
    return replace(section, note=f"{section.note} {cut}".strip())


def render_notebook(document: Mapping[str, Any], summary: str, sections: Sequence[Section], missing: str) -> str:
    """The rules and tables of a result, below a line that says what was found."""
    rendered: str = template("notebook.html").render(
        document=document, summary=summary, missing=missing, sections=[one for one in sections if one.rows]
    )
    return rendered


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    notes: Sequence[str] = (),
    partial: str = "",
    footer: str = "",
) -> str:
    """One page.

    Parameters
    ----------
    title, subtitle : what it is about, and a line below that
    sections : what it shows, in order; empty ones are left out
    notes : what a reader should know first
    partial : what is missing because a limit came before
    footer : the last line

    Examples
    --------
    >>> "<h1><bdi>tax</bdi></h1>" in render_page("tax", "3 rows", [])
    True
    """
    shown = [section for section in sections if section.rows or section.note]
    script, style = source("page.js"), source("page.css")
    entries = [row for section in shown if section.kind == "rules" for row in section.rows]
    listed = len(entries) + sum(len(s.rows) for s in shown if s.kind in ("table", "columns"))
    rendered: str = template("page.html").render(
        title=title,
        subtitle=subtitle,
        sections=[(f"s{number}", section) for number, section in enumerate(shown, 1)],
        notes=notes,
        partial=partial,
        footer=footer,
        searched=listed >= SEARCHED_FROM,
        copies=[list(entry.copies.values()) for entry in entries if entry.copies],
        is_bar=lambda cell: isinstance(cell, Bar),
        drawing=drawing,
        distribution=_distribution,
        script=script,
        style=style,
        policy=policy_of(script),
    )
    return rendered


@lru_cache(maxsize=4)
def source(name: str) -> str:
    """The text of a script or a style sheet of this package."""
    return resources.files("tuplewise.engine.report").joinpath("templates", name).read_text(encoding="utf-8")


def policy_of(script: str) -> str:
    """What a browser may load and run: nothing but this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _distribution(column: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the values of a column lie: marks to draw, what they say, and a line below them."""
    found = column.get("distribution")
    if found is None:
        return None
    if found["kind"] == "histogram":
        low, high = visible(str(found["low"])), visible(str(found["high"]))
        says = f"from {low} to {high}; most in one of {len(found['counts'])} ranges: {max([0, *found['counts']]):,}"
        return {"path": drawing.histogram(found["counts"]), "says": says, "ends": (low, high)}
    values = [(visible(str(value)), count) for value, count in found["values"]]
    counts = [count for _, count in values] + ([found["other"]] if found["other"] else [])
    total = max(sum(counts), 1)
    said = [f"{value} {100 * count / total:.0f} %" for value, count in values]
    others = [f"others {100 * found['other'] / total:.0f} %"] if found["other"] else []
    return {
        "strip": drawing.strip(counts),
        "named": len(values),
        "says": ", ".join([*said, *others]),
        "values": said[:3],
    }


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


def _how(document: Mapping[str, Any], method: Sequence[tuple[str, str]]) -> Iterator[Section]:
    """How a result was found, and with what settings."""
    files = [(f"table {t['name']}", t["path"] or "from memory") for t in document["tables"]]
    device = [("device", f"{document['device']} ({document['device_reason']})")] if document["device"] else []
    seconds = [(name.replace("_", " "), f"{value:.2f} s") for name, value in document["timings_seconds"].items()]
    facts = [*files, *method, *device, *seconds, ("version", document["version"])]
    yield Section("How it was found", "facts", rows=facts, folded=True)
    yield Section("Settings", "facts", rows=list(_settings(document["options"])), folded=True)


def _settings(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}={one}" for key, one in value.items())
        elif isinstance(value, (list, tuple)):
            value = ", ".join(map(str, value))
        yield name.replace("_", " "), "–" if value is None or value == "" else str(value)
