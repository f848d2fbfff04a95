"""Results as HTML for notebooks. Everything that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tuplewise.engine.report import check_text
from tuplewise.engine.report.text import bound, interval, share, visible, what_is_missing

if TYPE_CHECKING:
    from jinja2 import Template


@lru_cache(maxsize=4)
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tuplewise.engine.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share
    environment.filters["interval"] = interval
    environment.filters["visible"] = visible
    return environment.get_template(name)


def constraints_html(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], ranked_by: str) -> str:
    """A table of the constraints to show, with a line that says of how many and how they were found."""
    rendered: str = _template("constraints.html").render(
        table=document["tables"][0],
        result=document["result"],
        bound=bound(document),
        missing=what_is_missing(document["result"]),
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        records=records,
        ranked_by=ranked_by,
    )
    return rendered


def check_html(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], limit: int) -> str:
    """A block for each rule: its verdict, its figures and its first pairs."""
    rules = []
    for record in records:
        shown = {**record, "pairs": record["pairs"][:limit]}
        columns = list(check_text.pair_columns(shown)) if shown["pairs"] else []
        rules.append(
            {
                "rule": record["rule"],
                "verdict": check_text.VERDICTS[record["holds"]],
                "figures": check_text.figures(record),
                "headings": [heading for heading, _ in columns],
                "rows": list(zip(*(values for _, values in columns), strict=True)),
                "listed": check_text.listed(record, limit) if columns else "",
            }
        )
    rendered: str = _template("check.html").render(
        table=document["tables"][0],
        summary=check_text.summary(document, records),
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        rules=rules,
    )
    return rendered
