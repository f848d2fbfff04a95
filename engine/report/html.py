"""Results as HTML for notebooks. Everything that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import check_text, dependency_text, text

if TYPE_CHECKING:
    from jinja2 import Template

    from tuplewise.engine.report.dependency_text import Shown


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
    filters = (
        number_of, text.interval, text.named_parts, text.percent, text.share, text.strength, text.variants,
        text.visible,
    )  # fmt: skip
    environment.filters.update((one.__name__, one) for one in filters)
    return environment.get_template(name)


def constraints_html(
    document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], ranked_by: str, groups: int
) -> str:
    """A table of the constraints to show, of so many, with a line that says how many there are and how found."""
    rendered: str = template("constraints.html").render(
        table=document["tables"][0],
        result=document["result"],
        bound=text.bound(document),
        missing=text.what_is_missing(document["result"]),
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        records=records,
        ranked_by=ranked_by,
        groups=groups,
    )
    return rendered


def dependencies_html(
    document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[Shown], ranked_by: str
) -> str:
    """A table of the first dependencies of each kind, below a line that says how many there are."""
    rendered: str = template("dependencies.html").render(
        table=document["tables"][0],
        summary=dependency_text.summary(document, things, shown),
        algorithm=document["result"]["algorithm"],
        missing=text.what_is_missing(document["result"], f"more {things[1]}"),
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        shown=shown,
        ranked_by=ranked_by,
    )
    return rendered


def check_html(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], limit: int) -> str:
    """A block for each rule: its verdict, its figures and its first pairs."""
    blocks = [
        {
            **record,
            "pairs": record["pairs"][:limit],
            "figures": check_text.figures(record),
            "listed": check_text.listed(record, limit),
        }
        for record in records
    ]
    return blocks_html(document, check_text.summary(document, records), blocks)


def blocks_html(document: Mapping[str, Any], summary: str, blocks: Sequence[Mapping[str, Any]]) -> str:
    """A block for each thing that was checked. Of a block: rule, holds, figures, pairs, one_row, listed."""
    rules = []
    for block in blocks:
        columns = list(check_text.pair_columns(block)) if block["pairs"] else []
        rules.append(
            {
                "rule": block["rule"],
                "verdict": check_text.VERDICTS[block["holds"]],
                "figures": block["figures"],
                "headings": [heading for heading, _ in columns],
                "rows": list(zip(*(values for _, values in columns), strict=True)),
                "listed": block["listed"],
            }
        )
    tables = document["tables"]
    rendered: str = template("check.html").render(
        table=tables[0] if tables else None,
        summary=summary,
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        rules=rules,
    )
    return rendered


def inds_html(
    document: Mapping[str, Any], summary: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]
) -> str:
    """A table of the likeliest foreign keys, below a line for each table and one that says how many there are."""
    rendered: str = template("inds.html").render(
        tables=document["tables"],
        summary=summary,
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        columns=columns,
        rows=rows,
    )
    return rendered


def checked_html(document: Mapping[str, Any], summary: str, blocks: Sequence[Mapping[str, Any]]) -> str:
    """A block for each thing that was checked in several tables. Of a block: rule, verdict, figures, headings, rows,
    listed."""
    rendered: str = template("check.html").render(
        table=None,
        summary=summary,
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        rules=blocks,
    )
    return rendered
