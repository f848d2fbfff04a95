"""The page that goes through the rules of a contract: a switch for each, and the file with what was chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report.page import policy_of, source, template
from tuplewise.engine.report.version import version

STATUSES = ("proposed", "accepted", "rejected")


def page(document: Mapping[str, Any]) -> str:
    """One page for a browser that needs no network.

    Parameters
    ----------
    document : with these entries
        name : the name of the file
        rules : what is shown of each rule, in order; "switch" is the number of its status, or None where it has none
        pieces : the text of the file without the statuses, one piece more than there are of these
        statuses : what stands between the pieces: "left", as the file has it, "accepted" and "rejected"
    """
    rules = document["rules"]
    counts = Counter(rule["status"] for rule in rules)
    said = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES if counts[status])
    script = source("review.js")
    rendered: str = template("review.html").render(
        title=document["name"],
        subtitle=number_of(len(rules), "rule") + (f": {said}" if said else ""),
        listed=rules,
        counts={status: counts[status] for status in STATUSES if counts[status]},
        file={name: document[name] for name in ("name", "pieces", "statuses")},
        notes=[],
        partial="",
        footer=f"tuplewise {version()}",
        script=script,
        style=source("page.css") + source("review.css"),
        policy=policy_of(script),
    )
    return rendered
