"""The result of `profile` as a page for a browser, and as a table for a notebook."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.ind.dependency import parse_ind
from tuplewise.engine.report import drawing, text
from tuplewise.engine.report.page import columns, render_result, template, title
from tuplewise.engine.report.sections import Bar, Entry, Fold, Heading, Section

SHOWN_IN_NOTEBOOK = 10
_GROUPS = {
    "key": ("Keys", "No two rows are equal on these columns."),
    "fd": ("Functional dependencies", "Rows that are equal on the left are equal on the right."),
    "od": ("Orders", "Rows sorted by one column are sorted by the other."),
    "row": ("Within a row", "One column compared with another of the same row."),
    "constant": ("Constants", "Columns with one value."),
    "ind": ("Possible foreign keys", "Values of the left column occur in the right one."),
}
_FIGURES: tuple[Heading, ...] = (
    ("#", "right"), ("rule", "left"), ("exceptions", "right"), ("strength", "right"), ("evidence", "right"),
)  # fmt: skip
_HOW_TO_READ = (
    "Evidence: the rows that would contradict a rule if its columns had nothing to do with each other (its bars are "
    "logarithmic). Strength: 1 where nothing contradicts it, 0 where as much does as by chance. Exceptions: the fewest "
    "rows to remove so that it holds. Rows are counted from 0, without the header."
)


def page(document: Mapping[str, Any]) -> str:
    """One page of a profile: the JSON of `tuplewise profile` as a dict."""
    missing = "a limit was reached; there may be more rules"
    return render_result(document, _subtitle(document), list(_sections(document)), missing)


def compact_html(document: Mapping[str, Any]) -> str:
    """The best rules of a profile for a notebook: a table with its style in it, and no script."""
    result = document["result"]
    rendered: str = template("profile.html").render(
        subtitle=_subtitle(document),
        title=title(document),
        several=len(document["tables"]) > 1,
        rules=result["rules"][:SHOWN_IN_NOTEBOOK],
        more=max(len(result["rules"]) - SHOWN_IN_NOTEBOOK, 0),
        partial=document["partial"],
        notes=document["notes"],
    )
    return rendered


def _subtitle(document: Mapping[str, Any]) -> str:
    tables, shown = document["tables"], len(document["result"]["rules"])
    rows, columns = sum(t["rows"] for t in tables), sum(len(t["columns"]) for t in tables)
    said = [f"{len(tables):,} tables"] if len(tables) > 1 else []
    said += [number_of(rows, "row"), number_of(columns, "column"), f"{number_of(shown, 'rule')} worth keeping"]
    return ", ".join(said)


def _sections(document: Mapping[str, Any]) -> Iterator[Section]:
    result = document["result"]
    yield Section("Overview", "facts", rows=_overview(document), note=_HOW_TO_READ if result["rules"] else "")
    if not result["rules"]:
        yield Section("Rules", "rules", note="No rule stood out. Every rule that holds: dc, fd, od, key, ind discover.")
    for kind, (heading, note) in _GROUPS.items():
        rules = [rule for rule in result["rules"] if rule["kind"] == kind]
        if rules:
            yield Section(heading, "rules", _FIGURES, list(_entries(document, rules)), note)
    relations = _relations(document)
    dashed = "Dashed: less likely to be a foreign key." if any(one[-1] < drawing.SURE for one in relations) else ""
    yield Section("Relations between tables", "drawing", rows=relations, note=dashed)
    warnings = [(_place(document, one["table"], one["column"]), one["text"]) for one in result["warnings"]]
    yield Section("Warnings", "warnings", rows=warnings)
    yield from columns(document, result["columns"])


def _overview(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    tables, result = document["tables"], document["result"]
    facts = [("tables", f"{len(tables):,}")] if len(tables) > 1 else []
    facts += [
        ("rows", f"{sum(t['rows'] for t in tables):,}"),
        ("columns", f"{sum(len(t['columns']) for t in tables):,}"),
        ("rules", f"{result['shown']:,}"),
        ("held back", f"{result['held_back']:,}"),
    ]
    implied = sum(len(rule["implies"]) for rule in result["rules"])
    exceptions = sum(1 for rule in result["rules"] if rule["exceptions"])
    return [*facts, ("implied", f"{implied:,}"), ("with exceptions", f"{exceptions:,}")]


def _place(document: Mapping[str, Any], table: str, column: str | None) -> str:
    """What a warning is about; the table is told where there are several."""
    several = len(document["tables"]) > 1
    return table if column is None else f"{table}.{column}" if several else column


def _entries(document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    several = len(document["tables"]) > 1
    most = max([math.log1p(rule["evidence"] or 0) for rule in document["result"]["rules"]] + [1.0])
    for rule in rules:
        evidence, strength = rule["evidence"], rule["strength"]
        share = math.log1p(max(evidence or 0, 0)) / most
        yield Entry(
            mark=str(rule["rank"]),
            text=rule["rule"],
            said=rule["english"],
            figures=(
                f"{rule['exceptions']:,}",
                "–" if strength is None else Bar(text.strength(strength), min(max(strength, 0), 1)),
                "–" if evidence is None else Bar(f"{evidence:,.0f}", share),
            ),
            tag=rule["table"] if several and rule["kind"] != "ind" else "",
            folds=list(_folds(rule)),
            copies=_copies(document, rule),
        )


def _folds(rule: Mapping[str, Any]) -> Iterator[Fold]:
    examples, exceptions, implied = rule["examples"], rule["exceptions"], rule["implies"]
    if examples:
        cut = f" ({len(examples):,} shown)" if len(examples) < exceptions else ""
        yield Fold(number_of(exceptions, "exception") + cut, [[example["text"]] for example in examples])
    if implied:
        yield Fold(f"implies {number_of(len(implied), 'other')}", [[text] for text in implied], side="code")
    if rule["equivalent"]:
        pairs = [[" ↔ ".join(names)] for names in rule["equivalent"]]
        yield Fold(number_of(len(pairs), "pair") + " of columns that determine each other", pairs, side="code")


def _copies(document: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, str]:
    """The rule as text, as SQL and as a command that checks it, as far as there is such a thing."""
    copies = {"rule": rule["rule"]}
    if rule["sql"]:
        copies["SQL"] = rule["sql"]
    paths = {t["name"]: t["path"] for t in document["tables"]}
    if rule["kind"] == "ind":
        involved = dict(_side_pairs(document, rule))
        sides = [f"{name}={paths[name] or 'TABLE'}" for name in involved]
        copies["check"] = shlex.join(["tuplewise", "ind", "check", *sides, "--ind", rule["rule"]])
    elif rule["dc"]:
        path = paths.get(rule["table"]) or "TABLE"
        copies["check"] = shlex.join(["tuplewise", "dc", "check", path, "--rule", rule["dc"]])
    return copies


def _side_pairs(document: Mapping[str, Any], rule: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The two sides of an inclusion dependency: a table and its columns, the referring one first."""
    names = {t["name"]: [c["name"] for c in t["columns"]] for t in document["tables"]}
    ind = parse_ind(rule["rule"], names)
    return [(side[0].table, [a.column for a in side]) for side in (ind.dependent, ind.referenced)]


def _relations(document: Mapping[str, Any]) -> list[drawing.Relation]:
    """The inclusion dependencies, for a drawing."""
    drawn: list[drawing.Relation] = []
    for rule in document["result"]["rules"]:
        if rule["kind"] == "ind":
            (table, columns), (other, referenced) = _side_pairs(document, rule)
            drawn.append((table, columns, other, referenced, rule["score"]))
    return drawn
