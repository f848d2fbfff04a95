"""What `discover_inds` returns: inclusion dependencies, and what speaks for each being a foreign key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import Face, InputError, all_spelled, message, number_of, python_option
from tuplewise.engine.ind.foreign_keys import ranked, with_evidence
from tuplewise.engine.ind.found import FoundInd, FoundInds, TableFound
from tuplewise.engine.report import csv, drawing, html, ind_model, json, list_page, model, text
from tuplewise.engine.report.ind_sql import IndWriter
from tuplewise.engine.report.sections import Section

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "ind discover"
FIELDS = (
    "dependent", "referenced", "dependent_distinct", "referenced_distinct", "missing_values", *ind_model.FIGURES,
)  # fmt: skip
SHOWN_IN_REPR = 5
DRAWN = 50


class IndResult:
    """The inclusion dependencies that hold between the columns of tables.

    Attributes
    ----------
    inds : list of FoundInd, by size, dependent and referenced columns: each with `ind`, `dependent_distinct`,
        `referenced_distinct`, `missing_values` and `evidence` (`coverage`, `name_likeness`, `key`, `unique`, `score`)
    trivial : how many more hold because the dependent side has no values
    tables : what was read of each table
    partial : whether a limit ended the search early
    notes : what a reader should know
    device, device_reason : what the kernels ran on, and why
    timings_seconds : what took how long

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> orders = pd.DataFrame({"no": [7, 8, 9], "customer": ["Ann", "Bob", "Ann"]})
    >>> customers = pd.DataFrame({"name": ["Ann", "Bob", "Eve"]})
    >>> found = tw.discover_inds({"orders": orders, "customers": customers})
    >>> [(str(one.ind), one.evidence.unique) for one in found.inds]
    [('orders.customer <= customers.name', True)]
    """

    def __init__(
        self,
        found: FoundInds,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        self._given = found
        self._options = dict(options or model.options_record(found.options))
        self._more_notes = list(notes)
        self._total_seconds = total_seconds
        self._face = face

    @cached_property
    def _found(self) -> FoundInds:
        return with_evidence(self._given)

    @property
    def inds(self) -> list[FoundInd]:
        return list(self._found.inds)

    def ranked(self, limit: int | None = None) -> list[FoundInd]:
        """The likeliest foreign keys first: by score."""
        _check_limit(limit)
        return ranked(self._found.inds)[:limit]

    @property
    def trivial(self) -> int:
        return self._given.trivial

    @property
    def tables(self) -> tuple[TableFound, ...]:
        return self._given.tables

    @property
    def partial(self) -> bool:
        return self._given.partial

    @property
    def notes(self) -> list[str]:
        return all_spelled((*self._given.notes, *self._more_notes), self._face)

    @property
    def device(self) -> str:
        return self._given.device

    @property
    def device_reason(self) -> str:
        return self._given.device_reason

    @property
    def timings_seconds(self) -> dict[str, float]:
        return dict(self._heading["timings_seconds"])

    def __len__(self) -> int:
        return len(self._given.inds)

    def __iter__(self) -> Iterator[FoundInd]:
        return iter(self._found.inds)

    def __repr__(self) -> str:
        best = self.ranked(SHOWN_IN_REPR)
        lines = [f"<IndResult: {self._summary()}{', PARTIAL' if self.partial else ''}, {self.device}>"]
        lines += [f"  {text.visible(str(one.ind))}" for one in best]
        if len(self) > len(best):
            lines.append(f"  ... and {len(self) - len(best):,} more: .inds, .to_pandas()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html.inds_html(self._heading, self._summary(), self._columns(), self._rows(self.ranked(text.SHOWN)))

    def to_dict(self, *, limit: int | None = None) -> dict[str, Any]:
        """The whole result as `tuplewise ind discover --format json` writes it; with `limit` the best so many."""
        document = {**self._heading_of_list(limit), "result": dict(self._heading["result"])}
        document["result"]["inds"] = [ind_model.ind_record(one) for one in self._listed(limit)]
        return document

    def to_json(self, *, limit: int | None = None) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json", limit=limit))

    def to_csv(self, *, limit: int | None = None) -> str:
        """One line a dependency, with a header: the columns of `to_pandas`."""
        return "".join(self.pieces("csv", limit=limit))

    def to_pandas(self, *, limit: int | None = None) -> pd.DataFrame:
        """One row a dependency: both sides as text, their figures, and what speaks for a foreign key."""
        import pandas as pd

        return pd.DataFrame(map(ind_model.ind_row, self._listed(limit)), columns=list(FIELDS))

    def to_html(self, *, limit: int | None = None) -> str:
        """One page for a browser: the likeliest foreign keys (500 unless limited) in a table to search and to sort."""
        best = self.ranked(limit or list_page.MOST)
        keys = [one for one in best if one.evidence.score >= drawing.SURE][:DRAWN]
        note = "Likeliest foreign keys first." if best else "There are none."
        sections = [
            list_page.listed("Inclusion dependencies", len(self), self._columns(), self._rows(best), note),
            Section("Likely foreign keys", "drawing", rows=list(map(ind_model.drawn, keys))),
        ]
        how = [("work", f"{self._given.work} ({self._given.work_reason})")]
        missing = "a limit was reached; there may be more inclusion dependencies"
        return list_page.list_page(self._heading, self._summary(), sections, how, missing)

    def to_sql(
        self, dialect: str = "spark", *, tables: Mapping[str, str] | None = None, limit: int | None = None
    ) -> str:
        """For each dependency a query that lists its missing values.

        Parameters
        ----------
        dialect : "spark", "duckdb" or "ansi"
        tables : what tables are called in the database, as one writes it there (`{"orders": "db.orders"}`); the others
            by the names that they were loaded under
        """
        return "".join(self.pieces("sql", dialect=dialect, tables=tables, limit=limit))

    def pieces(
        self,
        form: str,
        *,
        limit: int | None = None,
        dialect: str = "spark",
        tables: Mapping[str, str] | None = None,
    ) -> Iterator[str]:
        """The result as "json", "csv", "sql" or "html" in pieces of text, for results too long to hold as one."""
        _check_limit(limit)
        if form == "json":
            return json.pieces(self._heading_of_list(limit), map(ind_model.ind_record, self._listed(limit)))
        if form == "csv":
            return csv.pieces(map(ind_model.ind_row, self._listed(limit)), FIELDS)
        if form == "sql":
            writer = IndWriter(self.tables, dialect, tables or {}, self._given.options.as_text)
            return writer.script(one.ind for one in self._listed(limit))
        if form == "html":
            return iter([self.to_html(limit=limit)])
        raise InputError(message("format", form, "'json', 'csv', 'sql' or 'html'"))

    def to_text(
        self,
        *,
        limit: int | None = None,
        verbose: bool = False,
        width: int | None = None,
        color: bool = False,
        command_line: bool = False,
    ) -> str:
        """For people: a summary, and the likeliest foreign keys (20 unless limited).

        Where there are more, its last line says how to get them: here, or with `command_line` there.
        """
        best = self.ranked(limit or text.SHOWN)
        parts = [*ind_model.table_lines(self._heading, verbose), self._summary()]
        parts.append(text.how_it_ran(self._heading, verbose))
        if self.partial:
            parts.append("PARTIAL: a limit was reached; there may be more inclusion dependencies.")
        parts += [f"note: {note}" for note in self.notes]
        if best:
            parts += ["", "likeliest foreign keys first:", text.grid(self._columns(), self._rows(best))]
        if len(best) < len(self):
            parts += ["", text.MORE_THERE if command_line else text.MORE_HERE]
        return text.render(parts, width=width, color=color)

    def _summary(self) -> str:
        """How many there are, how far they hold, and how many hold for want of values."""
        count, error = len(self), self._given.options.error
        how_far = "exact" if error == 0 else f"at most {error:f} of the distinct values missing"
        compared = ", compared as text" if self._given.options.as_text else ""
        said = f"{number_of(count, 'inclusion dependency', 'inclusion dependencies')} ({how_far}{compared})"
        return f"{said}; {self.trivial:,} more of columns without values" if self.trivial else said

    def _columns(self) -> list[tuple[str, str]]:
        missing = [("missing", "right")] if self._given.options.error > 0 else []
        figures = ("score", "key", "names", "coverage")
        return [("", "right"), *((name, "right") for name in figures), *missing, ("dependency", "left")]

    def _rows(self, listed: Sequence[FoundInd]) -> list[list[str]]:
        rows = []
        for number, one in enumerate(listed, 1):
            figures = [f"{getattr(one.evidence, n):.2f}" for n in ("score", "key", "name_likeness", "coverage")]
            missing = [f"{one.missing_values:,}"] if self._given.options.error > 0 else []
            rows.append([str(number), *figures, *missing, str(one.ind)])
        return rows

    def _listed(self, limit: int | None) -> Sequence[FoundInd]:
        """All, in result order; with a limit the best."""
        return self._found.inds if limit is None else self.ranked(limit)

    def _heading_of_list(self, limit: int | None) -> dict[str, Any]:
        """The heading of a list that may be cut, which a note says."""
        _check_limit(limit)
        if limit is None or len(self) <= limit:
            return self._heading
        cut = f"the best {limit:,} of {len(self):,} inclusion dependencies are listed (limit)"
        return {**self._heading, "notes": [*self._heading["notes"], cut]}

    @cached_property
    def _heading(self) -> dict[str, Any]:
        """The result as JSON has it, with an empty list at its end."""
        how: dict[str, Any] = {"options": self._options, "notes": self.notes, "total_seconds": self._total_seconds}
        document = ind_model.heading(COMMAND, self._given, **how)
        document["result"] = {
            "work": self._given.work,
            "work_reason": self._given.work_reason,
            "measure": ind_model.MEASURE,
            "search": dict(self._given.search),
            "trivial": self.trivial,
            "count": len(self),
            "inds": [],
        }
        return document


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InputError(message("limit", limit, "1 or more"))
