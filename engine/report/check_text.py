"""The result of `dc check` as text for people: a block for each rule, with its first pairs and its worst rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.report import text

if TYPE_CHECKING:
    from rich.padding import Padding

MORE_HERE = "All pairs: .pairs(), or .write_pairs(path) into a file; more here: .to_text(limit=N); the rows: .rows()."
MORE_THERE = "All pairs: --pairs-out FILE.parquet (or .csv); more here: --pairs N; the rows: --split FOLDER."
VERDICTS = {True: "holds", False: "VIOLATED", None: "UNDECIDED"}


def check_parts(
    document: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    *,
    limit: int,
    plan: bool,
    verbose: bool,
    command_line: bool,
) -> list[Any]:
    """The text of `dc check`: `document` as JSON has it, `records` its rules, `limit` how many pairs each shows.

    With `plan` the steps of each rule are told instead of its pairs. Where pairs are left out, the last line says how
    to get them: on the command line, or from Python.
    """
    parts = [*text.table_lines(document["tables"][0], verbose), summary(document, records)]
    parts.append(text.how_it_ran(document, verbose))
    if document["partial"]:
        parts.append("PARTIAL: a limit was reached; what is not known is said with each rule.")
    parts += [f"note: {note}" for note in document["notes"]]
    cut = False
    for record in records:
        parts += ["", f"{VERDICTS[record['holds']]}  {record['rule']}", f"  {figures(record)}"]
        if plan:
            parts += ["", _plan_grid(record)]
        elif record["pairs"] and limit:
            parts += ["", indented(pair_grid(record, limit)), f"  {listed(record, limit)}"]
            cut |= min(limit, len(record["pairs"])) < len(record["pairs"]) or record["truncated"]
        worst = record["worst_rows"][: text.SHOWN_ROWS]
        if worst and worst[0]["pairs"] > 1 and not plan:
            parts.append("  rows in most pairs: " + ", ".join(f"{row_name(w['row'])} ({w['pairs']:,})" for w in worst))
    if cut:
        parts += ["", MORE_THERE if command_line else MORE_HERE]
    return parts


def summary(document: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """How many rules hold and how many do not, and how many fail."""
    line = counted("rule", "rules", [record["holds"] for record in records])
    if document["options"]["fail_on"] is not None:
        failed = sum(bool(record["failed"]) for record in records)
        line += f"; {failed:,} beyond the bound of {document['options']['fail_on']}"
    return line


def counted(thing: str, things: str, verdicts: Sequence[bool | None]) -> str:
    """How many of what was checked hold and how many do not."""
    said = [f"{verdicts.count(v):,} {word}" for v, word in ((False, "violated"), (True, "hold"), (None, "undecided"))]
    told = ", ".join(s for s in said if not s.startswith("0 "))
    return number_of(len(verdicts), thing, things) + (f": {told}" if told else "")


def figures(record: Mapping[str, Any]) -> str:
    """By how many pairs and rows a rule is violated."""
    what = "row" if record["one_row"] else "ordered pair"
    pairs, rows, unknown = record["violating_pairs"], record["violating_rows"], record["rows_unknown"]
    if pairs is None:
        line = "how many pairs violate it is not known: a limit came before"
    elif pairs == 0:
        line = f"no {what} violates it"
    else:
        share = text.share(100 * record["g1"])
        line = f"{number_of(pairs, what)} ({share} % of all)"
        if rows is not None and not record["one_row"]:
            line += f", {number_of(rows, 'row')}"
    if unknown:
        line += f"; {number_of(unknown, 'row')} left out for a null"
    return line


def listed(record: Mapping[str, Any], limit: int) -> str:
    """How many of the pairs are shown."""
    shown = min(limit, len(record["pairs"]))
    once = ", each once (t before u)" if record["symmetric"] else ""
    what = "row" if record["one_row"] else "pair"
    whole = shown == len(record["pairs"]) and not record["truncated"]
    if whole:
        return f"all {what}s{once}" if shown > 1 or once else f"the only {what}"
    return f"the first {number_of(shown, what)}{once}"


def row_name(row: Any) -> str:
    """A row by its position, or by its key."""
    if isinstance(row, Mapping):
        return " ".join(f"{name}={value(v)}" for name, v in row.items())
    return value(row)


def pair_columns(record: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Heading and values of each column of a list of pairs: which rows, then their cells."""
    pairs = record["pairs"]
    for role in ("t",) if record["one_row"] else ("t", "u"):
        if isinstance(pairs[0][role], Mapping):
            for name in pairs[0][role]:
                yield f"{role}.{name}", [value(p[role][name]) for p in pairs]
        else:
            yield role, [value(p[role]) for p in pairs]
    named = set() if not isinstance(pairs[0]["t"], Mapping) else set(pairs[0]["t"])
    for i, (role, name) in enumerate(pairs[0]["cells"]):
        if name not in named:
            yield f"{role}.{name}", [value(p["values"][i]) for p in pairs]


def pair_grid(record: Mapping[str, Any], limit: int) -> Any:
    """The first pairs of a rule as a table."""
    columns = list(pair_columns({**record, "pairs": record["pairs"][:limit]}))
    return text.grid(
        [(text.visible(heading), "left") for heading, _ in columns],
        zip(*(values for _, values in columns), strict=True),
    )


def value(given: Any) -> str:
    """A value in a table: a long one is cut."""
    if given is None:
        return "(null)"
    if isinstance(given, bool):
        return "true" if given else "false"
    shown = str(given)
    return shown if len(shown) <= text.LONGEST_VALUE else shown[: text.LONGEST_VALUE - 1] + "…"


def _plan_grid(record: Mapping[str, Any]) -> Any:
    rows = []
    for number, step in enumerate(record["plan"], 1):
        known = {
            k.removeprefix("estimated_"): n for k, n in step.items() if k.startswith("estimated_") and n is not None
        }
        estimates = [f"{n:,.0f} {what}" for what, n in known.items()]
        done = step["step"] if not step.get("predicates") else f"{step['step']}: {' and '.join(step['predicates'])}"
        rows.append([str(number), done, str(step.get("algorithm", "")), ", ".join(estimates), str(step.get("why", ""))])
    kinds = [("", "right"), ("step", "left"), ("algorithm", "left"), ("estimate", "left"), ("why", "left")]
    return indented(text.grid(kinds, rows))


def indented(part: Any) -> Padding:
    """A part of a text, further to the right."""
    from rich.padding import Padding

    return Padding(part, (0, 0, 0, 2))
