"""Results as HTML for notebooks. Everything that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tuplewise.engine.report.text import share, visible

if TYPE_CHECKING:
    from jinja2 import Template


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tuplewise.engine.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share
    environment.filters["visible"] = visible
    return environment.get_template("constraints.html")


def constraints_html(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], ranked_by: str) -> str:
    """A table of the constraints to show, with a line that says of how many and how they were found."""
    rendered: str = _template().render(
        table=document["tables"][0],
        result=document["result"],
        error=document["options"]["error"],
        device=document["device"],
        partial=document["partial"],
        notes=document["notes"],
        records=records,
        ranked_by=ranked_by,
    )
    return rendered
