"""What discoveries and checks return as a page for a browser: long lists are cut, and say where the rest is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import check_text, dependency_text, page_parts, text
from tuplewise.engine.report.sections import Entry, Fold, Heading, Section

MOST = 500
"""Rules that a page has, at most, unless a limit says otherwise."""
_MOST_PAIRS = 2000
_ALL = "All of them: --format json, csv or sql (to a file: -o FILE); in Python .to_json(), .to_csv() or .to_pandas()."


def list_page(
    document: Mapping[str, Any], summary: str, sections: Sequence[Section], how: Sequence[tuple[str, str]], missing: str
) -> str:
    """The page of some lists, with the columns of the tables and how the lists were found.

    Parameters
    ----------
    document : the result as JSON has it; its lists may be empty
    summary : how much was found
    how : facts on how, such as the algorithm
    missing : what is missing where the result is partial
    """
    whole = [*sections, *page_parts.columns(document), *page_parts.how(document, how)]
    return page_parts.render(document, summary, whole, missing)


def listed(
    title: str, count: int, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], note: str = ""
) -> Section:
    """A list whose last column is a rule. `count`: how many there are, of which `rows` are the first."""
    sides: list[Heading] = [(heading or "#", "right" if side == "right" else "left") for heading, side in columns]
    cut = f"The first {len(rows):,} of {count:,}. {_ALL}" if len(rows) < count else ""
    said = " ".join(part for part in (note, cut) if part)
    return Section(title, "table", [*sides[:-1], (sides[-1][0], "code")], rows, said)


def constraints_page(
    document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], ranked_by: str, groups: int
) -> str:
    """The page of `dc discover`; `records`: the constraints to show, best first, of so many groups of variants."""
    result = document["result"]
    count, estimate = result["count"], result["estimate"]
    confidence = None if estimate is None else estimate["confidence"]
    lift = text.by_chance(records)
    rows = list(text.constraint_rows(records, confidence, lift))
    summary = f"{number_of(count, 'minimal denial constraint')} ({text.bound(document)})"
    columns = text.constraint_columns(confidence, lift)
    note = f"Best first, by {ranked_by}." if rows else "There are none."
    if groups < count:
        note += " Rules that differ in operators only are one line, with the number of its variants."
        columns.insert(-1, ("variants", "right"))
        for row, record in zip(rows, records, strict=True):
            row.insert(-1, f"{record['variants']:,}")
    section = listed("Denial constraints", groups, columns, rows, note)
    return list_page(document, summary, [section], search(result), text.what_is_missing(result))


def dependencies_page(
    document: Mapping[str, Any], things: tuple[str, str], shown: Sequence[dependency_text.Shown], ranked_by: str
) -> str:
    """The page of discoveries of keys, functional and order dependencies; `shown`: the lists, as far as they go."""
    result, sections = document["result"], []
    for one in shown:
        title = (one.short or (things[1] if len(shown) == 1 else "derived")).capitalize()
        note = f"{one.means[0].upper()}{one.means[1:]}{one.order(ranked_by)}." if one.count else "There are none."
        sections.append(listed(title, one.count, one.columns(), one.rows(), note))
    summary = dependency_text.summary(document, things, shown)
    missing = text.what_is_missing(result, f"more {things[1]}")
    return list_page(document, summary, sections, search(result), missing)


def checks_page(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]], limit: int) -> str:
    """The page of `dc check`: each rule with its figures, and at most `limit` of its pairs."""
    shown = sorted(records, key=lambda record: record["holds"] is not False)[:MOST]
    pairs = min(limit, max(_MOST_PAIRS // max(len(shown), 1), 1))
    cut = f"The first {len(shown):,} of {len(records):,}. {_ALL}" if len(shown) < len(records) else ""
    columns: list[Heading] = [("verdict", "left"), ("rule", "left"), ("pairs", "right"), ("rows", "right")]
    section = Section("Rules", "rules", columns, [_checked(record, pairs) for record in shown], cut)
    summary = check_text.summary(document, records)
    return list_page(document, summary, [section], (), "a limit was reached; what is not known is said with each rule")


def search(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How a discovery searched."""
    algorithm, *said = text.how_it_was_found(result, verbose=False)
    return [("algorithm", algorithm), *(("search", one) for one in said)]


def _checked(record: Mapping[str, Any], limit: int) -> Entry:
    pairs = record["pairs"][:limit]
    folds = []
    if pairs:
        columns = list(check_text.pair_columns({**record, "pairs": pairs}))
        rows = list(zip(*(values for _, values in columns), strict=True))
        folds.append(Fold(check_text.listed(record, limit), rows, [heading for heading, _ in columns]))
    known = ("violating_pairs", "violating_rows")
    return Entry(
        mark=check_text.VERDICTS[record["holds"]].capitalize(),
        text=record["rule"],
        said=check_text.figures(record),
        figures=["–" if record[name] is None else f"{record[name]:,}" for name in known],
        folds=folds,
        copies={"rule": record["rule"]},
        wrong=record["holds"] is False,
    )
