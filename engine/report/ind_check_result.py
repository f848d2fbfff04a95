"""What `check_inds` returns: whether inclusion dependencies hold, and the values and rows that break them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import Face, InputError, Wording, all_spelled, message, number_of, python_option, spelled
from tuplewise.engine.ind.check import Names, check_dependencies
from tuplewise.engine.ind.checked import CheckedInds, IndCheck
from tuplewise.engine.ind.dependency import InclusionDependency
from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.options import IndCheckOptions, LoadOptions
from tuplewise.engine.report import check_text, csv, html, ind_model, json, text
from tuplewise.engine.report.cells import json_values
from tuplewise.engine.report.checked_result import CheckedResult
from tuplewise.engine.report.ind_sql import IndWriter
from tuplewise.engine.report.ind_texts import read_all_inds
from tuplewise.engine.run import Run

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "ind check"
FIELDS = (
    "ind", "holds", "missing_values", "rows_missing", "rows_null", "dependent_distinct", "referenced_distinct",
    "reason", "seconds",
)  # fmt: skip
MORE_HERE = "More missing values: examples=N; all of them by a query: .to_sql()."
MORE_THERE = "More missing values: --examples N; all of them by a query: --format sql."
_COUNTS = ("missing_values", "rows_missing", "rows_null", "dependent_distinct", "referenced_distinct")


class IndCheckResult(CheckedResult):
    """Whether inclusion dependencies hold.

    Attributes
    ----------
    inds : list of IndCheck, each with `ind`, `holds`, `missing_values`, `rows_missing`, `rows_null`,
        `dependent_distinct`, `referenced_distinct`, `reason` and `examples` (`values`, `counts`, `rows`)
    tables : what was read of each table
    partial : whether some are undecided: a limit came first
    notes : what a reader should know
    timings_seconds : what took how long

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> child, parent = pd.DataFrame({"a": ["x", None, "z"]}), pd.DataFrame({"b": ["x", None]})
    >>> check = tw.check_inds({"child": child, "parent": parent}, "child.a <= parent.b").inds[0]
    >>> check.holds, check.missing_values, check.rows_missing, check.rows_null, check.examples.rows
    (False, 1, 1, 1, ((2,),))
    """

    _NO_TRUTH = "an IndCheckResult is neither true nor false: ask .holds, or .inds for each dependency"

    def __init__(
        self,
        found: CheckedInds,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        super().__init__(found, options=options, notes=notes, total_seconds=total_seconds, face=face)
        self._found: CheckedInds = found
        self.inds: list[IndCheck] = list(found.checks)

    def __len__(self) -> int:
        return len(self.inds)

    def __repr__(self) -> str:
        lines = [f"  {check_text.VERDICTS[check.holds]} {text.visible(str(check.ind))}" for check in self.inds]
        return "\n".join([f"<IndCheckResult: {self._summary()}>", *lines])

    def _repr_html_(self) -> str:
        return html.checked_html(self._heading, self._summary(), self._blocks())

    @property
    def _verdicts(self) -> list[bool | None]:
        return [one.holds for one in self.inds]

    @property
    def tables(self) -> tuple[TableFound, ...]:
        return self._found.tables

    @property
    def notes(self) -> list[str]:
        reasons = [Wording("{}: {}", check.ind, check.reason) for check in self.inds if check.reason is not None]
        return all_spelled((*self._found.notes, *reasons, *self._more_notes), self._face)

    @property
    def timings_seconds(self) -> dict[str, float]:
        return dict(self._heading["timings_seconds"])

    def to_dict(self) -> dict[str, Any]:
        """The whole result as `tuplewise ind check --format json` writes it."""
        return {**self._heading, "result": {**self._heading["result"], "inds": self._records()}}

    def to_json(self) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json"))

    def to_csv(self) -> str:
        """One line a dependency, with a header: the columns of `to_pandas`."""
        return "".join(self.pieces("csv"))

    def to_pandas(self) -> pd.DataFrame:
        """One row a dependency: ind, holds, missing_values, rows_missing, rows_null, dependent_distinct,
        referenced_distinct, reason, seconds."""
        import pandas as pd

        frame = pd.DataFrame(self._rows(), columns=list(FIELDS))
        return frame.astype(dict.fromkeys(_COUNTS, "Int64"))

    def to_sql(self, dialect: str = "spark", *, tables: Mapping[str, str] | None = None) -> str:
        """For each dependency a query that lists its missing values; `dialect` and `tables` as in IndResult.to_sql."""
        return "".join(self.pieces("sql", dialect=dialect, tables=tables))

    def pieces(self, form: str, *, dialect: str = "spark", tables: Mapping[str, str] | None = None) -> Iterator[str]:
        """The result as "json", "csv" or "sql" in pieces of text."""
        if form == "json":
            return json.pieces(self._heading, self._records())
        if form == "csv":
            return csv.pieces(self._rows(), FIELDS)
        if form == "sql":
            writer = IndWriter(self.tables, dialect, tables or {}, self._found.options.as_text)
            return writer.script(check.ind for check in self.inds)
        raise InputError(message("format", form, "'json', 'csv' or 'sql'"))

    def to_text(
        self, *, verbose: bool = False, width: int | None = None, color: bool = False, command_line: bool = False
    ) -> str:
        """For people: of each dependency whether it holds, and some of the values that are missing."""
        parts = [*ind_model.table_lines(self._heading, verbose), self._summary()]
        parts.append(text.how_it_ran(self._heading, verbose))
        parts += [f"note: {note}" for note in self.notes]
        cut = False
        for block in self._blocks():
            parts += ["", f"{block['verdict']}  {block['rule']}", f"  {block['figures']}"]
            if block["rows"]:
                grid = text.grid([(text.visible(h), "left") for h in block["headings"]], block["rows"])
                parts += ["", check_text.indented(grid), f"  {block['listed']}"]
                cut |= block["cut"]
        if cut:
            parts += ["", MORE_THERE if command_line else MORE_HERE]
        return text.render(parts, width=width, color=color)

    def _summary(self) -> str:
        verdicts = [check.holds for check in self.inds]
        said = check_text.counted("inclusion dependency", "inclusion dependencies", verdicts)
        return f"{said} (compared as text)" if self._found.options.as_text else said

    def _records(self) -> list[dict[str, Any]]:
        """The entries of "inds"."""
        return [
            {
                "ind": str(check.ind),
                "holds": check.holds,
                **{name: getattr(check, name) for name in _COUNTS},
                "reason": None if check.reason is None else spelled(check.reason, self._face),
                "examples": [
                    {"value": values[0] if check.ind.size == 1 else list(values), "count": count, "rows": list(rows)}
                    for values, count, rows in _examples(check)
                ],
                "seconds": round(check.seconds, 6),
            }
            for check in self.inds
        ]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for record in self._records():
            yield {name: record[name] for name in FIELDS}

    def _blocks(self) -> list[dict[str, Any]]:
        """What there is to show of each dependency."""
        return [_block(check) for check in self.inds]

    @cached_property
    def _heading(self) -> dict[str, Any]:
        """The result as JSON has it, with an empty list at its end."""
        how: dict[str, Any] = {"options": self._options, "notes": self.notes, "total_seconds": self._total_seconds}
        document = ind_model.heading(COMMAND, self._found, **how)
        document["result"] = {
            "work": self._found.work,
            "work_reason": self._found.work_reason,
            "measure": ind_model.MEASURE,
            "inds": [],
        }
        return document


def check_tables(
    tables: Mapping[str, Any],
    given: Any,
    options: IndCheckOptions,
    load_options: LoadOptions | None = None,
    run: Run | None = None,
) -> tuple[CheckedInds, list[str]]:
    """What `check_dependencies` finds of dependencies as a caller gives them, and notes on these."""
    notes: list[str] = []

    def read(names: Names) -> list[InclusionDependency]:
        inds, said = read_all_inds(given, names)
        notes.extend(said)
        return inds

    found = check_dependencies(tables, read, options, load_options, run)
    return found, notes


def _examples(check: IndCheck) -> list[tuple[tuple[Any, ...], int, tuple[int, ...]]]:
    """Missing values as JSON has them, the rows of each, and the first of these."""
    found = check.examples
    if found is None:
        return []
    columns = [json_values(array) for array in found.values]
    return list(zip(zip(*columns, strict=True), found.counts.tolist(), found.rows, strict=True))


def _block(check: IndCheck) -> dict[str, Any]:
    """A dependency, its figures, and a table of its examples."""
    examples = _examples(check)
    rows = [[*map(check_text.value, values), f"{count:,}", _places(count, first)] for values, count, first in examples]
    cut = check.missing_values is not None and len(examples) < check.missing_values
    listed = "all missing values" if len(rows) > 1 else "the only missing value"
    if cut:
        listed = f"{len(rows):,} of {check.missing_values:,} missing values, those of most rows"
    return {
        "rule": str(check.ind),
        "verdict": check_text.VERDICTS[check.holds],
        "figures": _figures(check),
        "headings": [*(a.column for a in check.ind.dependent), "rows", "at"],
        "rows": rows,
        "listed": listed,
        "cut": cut,
    }


def _places(count: int, first: Sequence[int]) -> str:
    """The first of some rows, with dots where there are more."""
    return ", ".join([*map(str, first), *(["..."] if count > len(first) else [])])


def _figures(check: IndCheck) -> str:
    """How many values and rows break it."""
    if check.missing_values is None:
        return "how many values are missing is not known: a limit came before"
    nulls = f"; {number_of(check.rows_null or 0, 'row')} left out for a null" if check.rows_null else ""
    if check.missing_values == 0:
        there = "no value is there" if check.dependent_distinct == 0 else "no value is missing"
        return f"{there}{nulls}"
    missing = f"{check.missing_values:,} of {number_of(check.dependent_distinct or 0, 'value')} missing"
    return f"{missing}, in {number_of(check.rows_missing or 0, 'row')}{nulls}"
