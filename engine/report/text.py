"""Results as text for people: a summary of the table, the best constraints, and how to get the rest."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tuplewise.engine.errors import number_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table

    from tuplewise.engine.report.sections import Section

SHOWN = 20
LONGEST_VALUE = 40
_NAMED = re.compile(r"`([^`]+)`")
PLAIN_WIDTH = 10_000  # where nobody's window is: lines are as long as what they say


def visible(text: str) -> str:
    """Text with characters that could move a cursor or start a new line spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def render(parts: Iterable[Any], *, width: int | None = None, color: bool = False) -> str:
    """Rich tables and strings as one text. `width` None: as wide as needed."""
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width or PLAIN_WIDTH,
        force_terminal=color,
        color_system="standard" if color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        _print(console, part, wrap=width is not None)
    lines = (line.rstrip() for line in buffer.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _print(console: Console, part: Any, wrap: bool) -> None:
    if isinstance(part, str):
        console.print(visible(part), soft_wrap=not wrap)
    else:
        console.print(part)


def grid(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines. `columns`: headings, and the side of each; the last one folds where it is too long."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, (heading, side) in enumerate(columns):
        last = i == len(columns) - 1
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        table.add_column(visible(heading), justify=justify, overflow="fold", no_wrap=not last)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def table_lines(table: Mapping[str, Any], verbose: bool) -> list[Any]:
    """What was read: a line, and with `verbose` what read it and each column with its type, and why."""
    columns = table["columns"]
    line = f"{table['name']}: {number_of(table['rows'], 'row')}, {number_of(len(columns), 'column')}"
    types: dict[str, int] = {}
    for column in columns:
        types[column["type"]] = types.get(column["type"], 0) + 1
    if types:
        line += " (" + ", ".join(f"{count} {name}" for name, count in types.items()) + ")"
    if not verbose:
        return [line]
    rows = [[c["name"], c["type"], _known(c["distinct"]), _known(c["nulls"]), c["why"]] for c in columns]
    kinds = [("column", "left"), ("type", "left"), ("distinct", "right"), ("nulls", "right"), ("why", "left")]
    reader = [f"read by {table['reader']}: {table['reader_reason']}"] if table.get("reader") else []
    return [line, *reader, "", grid(kinds, rows), ""]


def _known(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def share(value: float | None) -> str:
    """A share of pairs or the like, short."""
    if value is None:
        return "-"
    return "0" if value == 0 else f"{value:.4g}"


def named_parts(said: str) -> list[tuple[str, bool]]:
    """The parts of a sentence, and whether each is a name that stood in back-quotes."""
    return [(part, i % 2 == 1) for i, part in enumerate(_NAMED.split(said)) if part]


def percent(value: float) -> str:
    """A share as a percentage, short."""
    return f"{share(100 * value)} %"


def strength(value: float) -> str:
    """Three digits, cut: what isn't 1 doesn't read as 1."""
    return "1" if value >= 1 else f"{math.floor(value * 1000) / 1000:.3f}"


def value(given: Any) -> str:
    """A value in a table: a long one is cut."""
    if given is None:
        return "(null)"
    if isinstance(given, bool):
        return "true" if given else "false"
    shown = str(given)
    return shown if len(shown) <= LONGEST_VALUE else shown[: LONGEST_VALUE - 1] + "…"


def section_parts(section: Section) -> list[Any]:
    """A section: a table below its heading, a block for each rule, or lines as they are."""
    if section.kind == "lines":
        return list(section.rows)
    if section.kind == "table" and section.rows:
        above = [f"{section.heading}:"] if section.heading else []
        return ["", *above, grid(section.columns, section.rows)]
    parts: list[Any] = []
    for entry in section.rows if section.kind == "rules" else ():
        parts += ["", f"{entry.mark}  {entry.text}", *([f"  {entry.said}"] if entry.said else [])]
        for fold in entry.folds:
            parts += ["", _indented(grid(fold.columns, fold.rows)), *([f"  {fold.title}"] if fold.title else [])]
        parts += [f"  {entry.remark}"] if entry.remark else []
    return parts


def _indented(part: Table) -> Padding:
    from rich.padding import Padding

    return Padding(part, (0, 0, 0, 2))


def bound(document: Mapping[str, Any]) -> str:
    """How far what a result lists holds."""
    error, result = document["options"]["error"], document["result"]
    measure, estimate = result.get("measure") or document["options"].get("error_measure", "g1"), result.get("estimate")
    if measure == "mu":
        measure = "1 - mu"
    if estimate is None:
        return "exact" if error == 0 else f"{measure} <= {error}"
    pairs = number_of(estimate["sampled_pairs"], "random pair")
    return f"not violated by {pairs}" if error == 0 else f"{measure} <= {error}, estimated from {pairs}"


def how_it_was_found(result: Mapping[str, Any], verbose: bool) -> list[Any]:
    """The algorithm and why; what a search compared and checked; with `verbose` each column set, or level, of it."""
    parts: list[Any] = [f"{result['algorithm']} ({result['algorithm_reason']})"]
    search = result["search"]
    if search is None:
        return parts
    said = [*_compared(search), *_sampled(search)]
    if "validated" in search:
        validated, violated = search["validated"], search["violated"]
        checked = f"{number_of(validated, 'candidate')} checked on the table, "
        checked += f"{violated:,} violated" if violated else "none violated"
        if validated or not search.get("undecided"):
            said.append(checked if validated else "nothing left to check on the table")
    if search.get("outlier_rows"):
        said.append(f"{number_of(search['outlier_rows'], 'outlier row')} compared with all others")
    if "preliminary_constraints" in search:
        preliminary = number_of(search["preliminary_constraints"], "rule")
        said.append(f"{preliminary} of the sample refined to {number_of(search['violating_pairs'], 'violating pair')}")
    parts += ["; ".join(said)] if said else []
    if verbose and (steps := _steps(search)):
        parts += ["", steps, ""]
    return parts


def _compared(search: Mapping[str, Any]) -> list[str]:
    """What was compared by a search that compares pairs of rows."""
    if "compared_pairs" not in search:
        return []
    compared, percent = search["compared_pairs"], share(100 * search["share_of_pairs"])
    said = f"compared {number_of(compared, 'pair')} of rows ({percent} % of all)"
    sets = search.get("column_sets", [])
    if sets:
        one_of = "one column set" if len(sets) == 1 else f"one of {len(sets):,} column sets"
        said += f", among them all that agree on {one_of}"
    return [said]


def _sampled(search: Mapping[str, Any]) -> list[str]:
    """What was checked on a sample by a search that goes level by level."""
    if "levels" not in search:
        return []
    said = number_of(len(search["levels"]), "level")
    checked, rows = search["checked_on_sample"], search["sample_rows"]
    if checked:
        said += f"; {number_of(checked, 'candidate')} checked on a sample, of {number_of(rows, 'row')} in the end"
    return [said]


def _steps(search: Mapping[str, Any]) -> Table | None:
    """Each column set that was exhausted, or each level."""
    if search.get("column_sets"):
        rows = [[_agreement(s["columns"]), f"{s['pairs']:,}", f"{s['decided']:,}"] for s in search["column_sets"]]
        return grid([("equal in", "left"), ("pairs", "right"), ("candidates decided", "right")], rows)
    if search.get("levels"):
        figures = ("level", "candidates", "sample_rows", "validated", "valid")
        rows = [[f"{level[name]:,}" for name in figures] for level in search["levels"]]
        headings = ("level", "candidates", "rows of the sample", "validated", "hold")
        return grid([(heading, "right") for heading in headings], rows)
    return None


def _agreement(columns: Sequence[Sequence[str]]) -> str:
    """A column set: columns that t and u agree on, `a = b` where t's a is u's b."""
    return ", ".join(left if left == right else f"{left} = {right}" for left, right in columns) or "(all pairs)"


def how_it_ran(document: Mapping[str, Any], verbose: bool) -> str:
    """The device, and how long it took; with `verbose` why that device, and each step."""
    seconds = document["timings_seconds"]
    took = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items() if name != "total")
    total = f"{seconds['total']:.2f} s" if "total" in seconds else ""
    if document["device"] is None:
        return total
    if verbose:
        return f"{document['device']} ({document['device_reason']}); {total} ({took})"
    return f"{document['device']}, {total}"


def space_parts(document: Mapping[str, Any], *, verbose: bool) -> list[Any]:
    """The text of `dc discover --explain-space`."""
    result = document["result"]
    groups = [[_operand_text(g["left"]), _operand_text(g["right"]), " ".join(g["operators"])] for g in result["groups"]]
    pairs = [
        [p["left"], p["right"], f"{100 * p['shared_values']:.4g} %", p["verdict"], p["why"]]
        for p in result["column_pairs"]
    ]
    parts = table_lines(document["tables"][0], verbose)
    predicates = number_of(result["predicate_space"], "predicate")
    parts += [f"predicate space: {predicates} over {number_of(len(groups), 'operand pair')}", ""]
    parts.append(grid([("left", "left"), ("right", "left"), ("operators", "left")], groups))
    if pairs:
        kinds = [("column", "left"), ("column", "left"), ("shared", "right"), ("verdict", "left"), ("why", "left")]
        parts += ["", "pairs of different columns of one type:", grid(kinds, pairs)]
    parts += [f"note: {note}" for note in document["notes"]]
    return parts


def _operand_text(operand: str | Sequence[str]) -> str:
    return operand if isinstance(operand, str) else ".".join(operand)


def doctor_parts(checks: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The text of `doctor`."""
    words = {True: "ok", False: "FAULT", None: "-"}
    rows = []
    for check in checks:
        rows.append([words[check["ok"]], check["name"], check["found"]])
        if check["advice"]:
            rows.append(["", "", f"-> {check['advice']}"])
    return [grid([("", "left"), ("check", "left"), ("found", "left")], rows)]
