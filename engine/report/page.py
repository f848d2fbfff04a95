"""Sections as one HTML page that needs nothing else: no network, no fonts, no library.

All that comes from data is escaped by the template or held as JSON beside it, and the page's policy lets no script run
but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from tuplewise.engine.report import drawing
from tuplewise.engine.report.html import template
from tuplewise.engine.report.sections import Bar, Section
from tuplewise.engine.report.text import visible

SEARCHED_FROM = 8
"""Rows and rules that a page has at least where it has a search box."""


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
    script, style = _source("page.js"), _source("page.css")
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
        policy=_policy(script),
    )
    return rendered


@lru_cache(maxsize=4)
def _source(name: str) -> str:
    return resources.files("tuplewise.engine.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
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
