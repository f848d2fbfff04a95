"""What every command hands on: one document, and the formats that are made of it, each written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict, Unpack

from tuplewise.engine.errors import Face, InputError, all_spelled, message, python_option
from tuplewise.engine.report import csv, json, model, page, text
from tuplewise.engine.report.sections import Section

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.table.relation import Relation

SHOWN_IN_REPR = 5


class Choice(TypedDict, total=False):
    """Which entries are listed, and how.

    Attributes
    ----------
    rank_by : the order; None: result order
    limit : so many at most
    plan : tell how rules were checked in place of their pairs
    """

    rank_by: str | None
    limit: int | None
    plan: bool


class Chosen(NamedTuple):
    """The same, checked, and whether text says more of each entry."""

    rank_by: str | None = None
    limit: int | None = None
    plan: bool = False
    verbose: bool = False


class Fields(NamedTuple):
    """The lines of CSV, and of data frames: names of columns, and a record for each line."""

    names: Sequence[str]
    records: Iterable[Mapping[str, Any]]


class Ran(NamedTuple):
    """How a change of a state ran."""

    timings_seconds: Mapping[str, float]
    device: str | None = None
    device_reason: str | None = None
    spark: Mapping[str, str] | None = None
    relation: Relation | None = None
    partial: bool = False
    notes: Sequence[str] = ()


class Result(ABC):
    """What a command found, and every form to hand it on in. Subclasses say what is particular to their kind.

    Attributes
    ----------
    COMMAND : of the command line
    FORMS : what `pieces` writes
    CHOICES : which of `Choice` all formats take; CHOICES_OF_TEXT: which text takes
    RANKINGS : values of rank_by
    THINGS : what one entry is called, and several
    ALL : what has all entries, in Python
    MISSING : what is missing where the result is partial
    MORE : how to get what text leaves out, from Python and on the command line

    Parameters
    ----------
    found : what was found, with its options, timings, notes and device
    options : as results state them; None: those of `found`
    notes : what is to be said beside what `found` says
    total_seconds : what all took, loading included
    face : spells the options that notes name
    """

    COMMAND: str
    FORMS: ClassVar[tuple[str, ...]] = ("json", "csv", "sql", "html")
    CHOICES: ClassVar[tuple[str, ...]] = ("limit",)
    CHOICES_OF_TEXT: ClassVar[tuple[str, ...]] = ()
    RANKINGS: ClassVar[tuple[str, ...]] = ()
    THINGS: ClassVar[tuple[str, str]]
    ALL: ClassVar[str]
    MISSING: ClassVar[str] = "a limit was reached"
    MORE: ClassVar[tuple[str, str]] = (
        "All of them: .to_json(), .to_csv(), .to_pandas() or .to_sql(); more here: .to_text(limit=N).",
        "All of them: --format json, csv or sql (to a file: -o FILE); more here: --limit N.",
    )

    def __init__(
        self,
        found: Any,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        self._found = found
        self._options = dict(options or model.options_record(found.options))
        self._more_notes = list(notes)
        self._total_seconds = total_seconds
        self._face = face

    # What a kind says of itself

    @abstractmethod
    def _summary(self) -> str:
        """How much was found."""

    @property
    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What "result" holds in JSON before its lists."""

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        """The lists that end the JSON, by name. They may be too long to hold."""
        return {}

    def _cut(self, chosen: Chosen) -> list[str]:
        """Notes on what is not listed."""
        return []

    def _table(self, chosen: Chosen) -> Fields:
        """The lines of CSV and of data frames."""
        raise InputError(f"{type(self).__name__} has no lines for a table: see .to_json() and .to_text()")

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        """The queries of SQL; kinds without them don't have the format."""
        return iter(())

    def _other_forms(self) -> Mapping[str, Callable[[], Iterable[str]]]:
        """What makes the texts of formats that only this kind has."""
        return {}

    @abstractmethod
    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """What people are shown, `most` entries unless a limit is chosen; `html`: in a browser or a notebook."""

    def _in_full(self, chosen: Chosen) -> str:
        """The summary as text has it."""
        return self._summary()

    def _method(self) -> list[tuple[str, str]]:
        """How it was found, as facts of the page."""
        return []

    def _how(self, verbose: bool) -> list[Any]:
        """How it was found, as lines of the text."""
        return [text.how_it_ran(self._heading, verbose)]

    def _missing(self) -> str:
        """What is missing where the result is partial."""
        return self.MISSING

    def _behind(self, sections: Sequence[Section], command_line: bool) -> list[Any]:
        """The last lines of the text: where there is more, how to get it."""
        return ["", self.MORE[command_line]] if any(section.cut for section in sections) else []

    def _noted(self) -> list[str]:
        """Notes on the tables and on what was found."""
        return [*(note for one in self._relations for note in one.notes), *self._found.notes]

    # What results have

    @property
    def relation(self) -> Relation:
        """The table."""
        relation: Relation = self._found.relation
        return relation

    @property
    def partial(self) -> bool:
        """Whether a limit ended the work early."""
        return bool(self._found.partial)

    @property
    def notes(self) -> list[str]:
        """What a reader should know about the tables or the work."""
        return all_spelled((*self._noted(), *self._more_notes), self._face)

    @property
    def device(self) -> str:
        """What the kernels ran on; None where no table was looked at."""
        device: str = self._found.device
        return device

    @property
    def device_reason(self) -> str:
        """Why they ran on that."""
        reason: str = self._found.device_reason
        return reason

    @property
    def timings_seconds(self) -> dict[str, float]:
        """What took how long."""
        return dict(self._heading["timings_seconds"])

    # Formats

    def to_dict(self, **listed: Unpack[Choice]) -> dict[str, Any]:
        """The whole result as the command line's `--format json` writes it."""
        document, lists = self._document(self._chosen(self.CHOICES, listed))
        document["result"].update((name, list(entries)) for name, entries in lists.items())
        return document

    def to_json(self, **listed: Unpack[Choice]) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json", **listed))

    def to_csv(self, **listed: Unpack[Choice]) -> str:
        """A header, and a line for each entry: the columns of `to_pandas`; several names have commas between them."""
        return "".join(self.pieces("csv", **listed))

    def to_pandas(self, **listed: Unpack[Choice]) -> pd.DataFrame:
        """A row for each entry, with the fields that it has in JSON; several names are a tuple."""
        import pandas as pd

        names, records = self._table(self._chosen(self.CHOICES, listed))
        return pd.DataFrame([{name: one[name] for name in names} for one in records], columns=list(names))

    def to_sql(
        self,
        dialect: str = "spark",
        *,
        table: str | None = None,
        tables: Mapping[str, str] | None = None,
        **listed: Unpack[Choice],
    ) -> str:
        """For each entry a query that lists what breaks it.

        Parameters
        ----------
        dialect : "spark", "duckdb", "postgres" or "ansi"
        table : name of the table in the database, as one writes it there (`db.orders`, `"my db".orders`);
            default: the name that the table was loaded under. Of several tables `tables` names some, by their names
            (`{"orders": "db.orders"}`).

        Examples
        --------
        >>> import pandas as pd, tuplewise as tw
        >>> query = tw.discover_dcs(pd.DataFrame({"a": [1, 2, 3]})).to_sql("duckdb", table="main.things")
        >>> 'FROM "main"."things"' in query
        True
        """
        return "".join(self.pieces("sql", dialect=dialect, table=table, tables=tables, **listed))

    def to_html(self, **listed: Unpack[Choice]) -> str:
        """One page for a browser that needs no network: the first entries (500 unless limited), to search and sort."""
        chosen = self._chosen(self.CHOICES, listed)
        sections = [*self._sections(chosen, page.MOST, html=True), *page.columns(self._heading)]
        return page.render_result(self._heading, self._summary(), sections, self._missing(), self._method())

    def _repr_html_(self) -> str:
        sections = self._sections(Chosen(), text.SHOWN, html=True)
        return page.render_notebook(self._heading, self._in_full(Chosen()), sections, self._missing())

    def to_text(
        self,
        *,
        verbose: bool = False,
        width: int | None = None,
        color: bool = False,
        command_line: bool = False,
        **listed: Unpack[Choice],
    ) -> str:
        """For people: a summary and the best entries (20 unless limited).

        Where there are more, the last line says how to get them: here, or with `command_line` there.
        """
        chosen = self._chosen(self.CHOICES_OF_TEXT or self.CHOICES, listed)._replace(verbose=verbose)
        sections = self._sections(chosen, text.SHOWN, html=False)
        heading = self._heading
        parts: list[Any] = [line for table in heading["tables"] for line in text.table_lines(table, verbose)]
        parts += [self._in_full(chosen), *self._how(verbose)]
        parts += [f"PARTIAL: {self._missing()}."] if self.partial else []
        parts += [f"note: {note}" for note in self.notes]
        for section in sections:
            parts += text.section_parts(section)
        return text.render([*parts, *self._behind(sections, command_line)], width=width, color=color)

    def pieces(
        self,
        form: str = "json",
        *,
        dialect: str = "spark",
        table: str | None = None,
        tables: Mapping[str, str] | None = None,
        **listed: Unpack[Choice],
    ) -> Iterator[str]:
        """The result in one of its formats but text, in pieces of text, for results too long to hold as one."""
        if form not in self.FORMS:
            *others, last = map(repr, self.FORMS)
            raise InputError(message("format", form, f"{', '.join(others)} or {last}" if others else last))
        chosen = self._chosen(self.CHOICES, listed)
        if form == "json":
            document, lists = self._document(chosen)
            return json.pieces(document, *lists.values())
        if form == "csv":
            return self._csv(chosen)
        if form == "sql":
            return self._queries(chosen, dialect, table, tables or {})
        own = self._other_forms()
        if form in own:
            return iter(own[form]())
        return iter([self.to_html(**listed)])

    def _described(self, said: str, lines: Sequence[str], count: int) -> str:
        """The text of `repr`: what was found, and the first of so many entries."""
        shown = [f"<{type(self).__name__}: {said}>", *(f"  {text.visible(line)}" for line in lines)]
        if count > len(lines):
            shown.append(f"  ... and {count - len(lines):,} more: {self.ALL}")
        return "\n".join(shown)

    def _csv(self, chosen: Chosen) -> Iterator[str]:
        names, records = self._table(chosen)
        return csv.pieces(records, names)

    # What formats are made of

    @property
    def _relations(self) -> list[Relation]:
        """The tables whose rows were looked at, where there are such."""
        return [] if self._found.relation is None else [self._found.relation]

    @property
    def _tables(self) -> list[dict[str, Any]]:
        """The entries of "tables"."""
        return [model.table_record(relation) for relation in self._relations]

    @property
    def _spark(self) -> Mapping[str, str] | None:
        return next((relation.spark for relation in self._relations if relation.spark is not None), None)

    @cached_property
    def _heading(self) -> dict[str, Any]:
        """The result as JSON has it, without the lists that end it."""
        loading: dict[str, float] = {}
        for relation in self._relations:
            for stage, seconds in relation.timings_seconds.items():
                loading[stage] = loading.get(stage, 0.0) + seconds
        document = model.heading(
            self.COMMAND,
            None,
            options=self._options,
            device=self._found.device,
            device_reason=self._found.device_reason,
            timings_seconds={**loading, **self._found.timings_seconds, "total": self._total_seconds},
            partial=self.partial,
            notes=self.notes,
        )
        document["tables"] = self._tables
        document["spark"] = None if self._spark is None else dict(self._spark)
        document["result"] = self._facts
        return document

    def _document(self, chosen: Chosen) -> tuple[dict[str, Any], dict[str, Iterable[Any]]]:
        """The document with empty lists at its end, and what belongs into them."""
        lists, heading = self._lists(chosen), self._heading
        result = {**heading["result"], **{name: [] for name in lists}}
        return {**heading, "notes": [*heading["notes"], *self._cut(chosen)], "result": result}, lists

    def _chosen(self, allowed: Sequence[str], listed: Choice) -> Chosen:
        """What is listed. Raises TypeError for what this kind doesn't take, InputError for other faults."""
        for name in listed:
            if name not in allowed:
                raise TypeError(f"{type(self).__name__} does not take {name!r} here")
        chosen = Chosen(**listed)
        least = 1 if "limit" in self.CHOICES else 0
        if chosen.limit is not None and chosen.limit < least:
            raise InputError(message("limit", chosen.limit, f"{least} or more"))
        if chosen.rank_by is not None and chosen.rank_by not in self.RANKINGS:
            raise InputError(message("rank_by", chosen.rank_by, ", ".join(map(repr, self.RANKINGS))))
        return chosen
