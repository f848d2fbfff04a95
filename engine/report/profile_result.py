"""What `profile` returns: the few rules of tables that are worth keeping, in every form that they are handed on in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, all_spelled, message, number_of
from tuplewise.engine.profile import columns
from tuplewise.engine.profile.columns import Histogram
from tuplewise.engine.report import csv, json, model, profile_words, sql, text
from tuplewise.engine.report.cells import Cells
from tuplewise.engine.report.discovery_result import DiscoveryResult
from tuplewise.engine.report.ind_sql import IndWriter

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.profile.discover import TableProfile
    from tuplewise.engine.profile.inclusions import Inclusion
    from tuplewise.engine.profile.rule import Listed

EXAMPLES = 5
FIELDS = ("rank", "table", "kind", "rule", "english", "rows", "exceptions", "evidence", "strength", "score")


@dataclass(frozen=True)
class ProfiledRule:
    """A rule that is worth keeping.

    Attributes
    ----------
    rank : 1 is the best
    table : name of its table; of a foreign key of the table that refers
    kind : "key", "fd", "od", "row", "constant" or "ind"
    rule : text, `zip -> city`
    english : the same in words, with the number of rows that break it
    rows, exceptions : rows that it speaks of, and the fewest to remove so that it holds ("ind": distinct values)
    evidence : how many would contradict it, were its columns independent
    strength : 0 where as many contradict it as by chance, 1 where none does
    score : what rules are ranked by
    implies : rules that follow from this one and better ones
    columns : by the name that JSON has, such as determinant and dependent
    """

    rank: int
    table: str
    kind: str
    rule: str
    english: str
    rows: int
    exceptions: int
    evidence: float
    strength: float
    score: float
    implies: tuple[str, ...]
    columns: Mapping[str, Any]
    _home: Any = field(repr=False, compare=False, default=None)

    def __str__(self) -> str:
        return self.rule

    def broken_by(self, limit: int | None = None) -> pd.DataFrame:
        """The rows that break it, likely wrong cells first: 0-based position, and values of its columns.

        Without them the rule holds. Of an order rule these are all rows in contradicting pairs, those in most first, so
        more than its `exceptions`; of a table in Spark the first 100 of them.
        """
        import pandas as pd

        table, listed = self._home
        if table is None:
            hint = "tw.check_inds lists the missing values"
            raise InputError(message("rows that break a foreign key", self.rule, "a rule of one table", hint))
        relation, broken = table.table.broken(listed.rule, limit)
        columns = {"row": [relation.position_of(int(r)) for r in broken.rows]}
        for number in listed.rule.columns:
            name = relation.columns[number].name
            columns[name if name != "row" else "row_"] = Cells(relation).values(name, broken.rows).to_pylist()
        return pd.DataFrame(columns)


class ProfileResult(DiscoveryResult):
    """The few rules of tables that are worth keeping.

    Attributes
    ----------
    rules : list of ProfiledRule, best first
    columns : list of dicts, one for each column: type, nulls, distinct values and how they are spread
    warnings : list of dicts: what is odd about columns
    partial : whether a limit ended the search early
    notes : what a reader should know about the tables or the search
    device, device_reason : what the kernels ran on, and why
    timings_seconds : what took how long

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> rows = [(f"Z{i % 40}", f"City {i % 40 // 2}", 2000 + i) for i in range(400)]
    >>> found = tw.profile(pd.DataFrame(rows, columns=["zip", "city", "no"]))
    >>> for rule in found.rules:
    ...     print(rule.rule, "|", rule.english)
    [no] | `no` identifies a row
    zip -> city | each `zip` has one `city`
    """

    @property
    def notes(self) -> list[str]:
        of_tables = [note for table in self._found.tables.values() for note in table.relation.notes]
        return all_spelled((*of_tables, *self._found.notes, *self._more_notes), self._face)

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[ProfiledRule]:
        return iter(self.rules)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._found.tables))
        shown = "".join(f"\n  {r.rank:2}. {text.visible(r.english)}" for r in self.rules[:10])
        more = f"\n  ... and {len(self) - 10:,} more: .rules, .to_pandas()" if len(self) > 10 else ""
        partial = ", PARTIAL" if self.partial else ""
        return f"<ProfileResult: {number_of(len(self), 'rule')} of {names}{partial}>{shown}{more}"

    @cached_property
    def rules(self) -> list[ProfiledRule]:
        """The rules of all tables and the references between them, best first."""
        found: list[tuple[float, dict[str, Any], Any]] = []
        for name, table in self._found.tables.items():
            found += [(one.rule.score, _rule_of(name, table, one), (table, one)) for one in table.found.listed]
        found += [(one.score, _inclusion_of(one), (None, one)) for one in self._found.inclusions]
        found.sort(key=lambda entry: -entry[0])
        return [ProfiledRule(rank=i, _home=home, **values) for i, (_, values, home) in enumerate(found, 1)]

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """Each column with its type, nulls, distinct values and how these are spread."""
        return [
            {
                "table": name,
                "name": column.name,
                "type": column.type,
                "why": column.why,
                "nulls": column.nulls,
                "distinct": column.distinct,
                "distribution": _spread(spread),
            }
            for name, table in self._found.tables.items()
            for column, spread in zip(table.relation.columns, table.distributions, strict=True)
        ]

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What is odd about columns and rows."""
        return [
            {"table": name, "column": one.column, "text": one.text}
            for name, table in self._found.tables.items()
            for one in table.warnings
        ]

    def to_dict(self, *, limit: int | None = None) -> dict[str, Any]:
        """The whole result as the command line's `--format json` writes it; the best `limit` rules."""
        _check_limit(limit)
        document = {**self._heading, "result": dict(self._heading["result"])}
        document["result"]["rules"] = [self._record(rule) for rule in self.rules[:limit]]
        return document

    def to_json(self, *, limit: int | None = None) -> str:
        """The whole result as JSON text."""
        return json.dump(self.to_dict(limit=limit))

    def to_csv(self, *, limit: int | None = None) -> str:
        """One line a rule, with a header: the columns of `to_pandas`."""
        return "".join(self.pieces("csv", limit=limit))

    def to_pandas(self, *, limit: int | None = None) -> pd.DataFrame:
        """One row a rule: rank, table, kind, rule, english, rows, exceptions, evidence, strength, score."""
        import pandas as pd

        return pd.DataFrame([_fields(rule) for rule in self.rules[:limit]], columns=list(FIELDS))

    def to_sql(self, dialect: str = "spark", *, limit: int | None = None) -> str:
        """For each rule a query that lists the rows that break it. `dialect`: "spark", "duckdb" or "ansi"."""
        return "".join(self.pieces("sql", dialect=dialect, limit=limit))

    def to_html(self) -> str:
        """A page with everything, in one file that needs no network."""
        from tuplewise.engine.report import profile_page

        return profile_page.page(self.to_dict())

    def _repr_html_(self) -> str:
        from tuplewise.engine.report import profile_page

        return profile_page.compact_html(self.to_dict())

    def pieces(self, form: str, *, limit: int | None = None, dialect: str = "spark") -> Iterator[str]:
        """The result as "json", "csv", "sql" or "html", in pieces of text."""
        _check_limit(limit)
        if form == "json":
            return iter([self.to_json(limit=limit)])
        if form == "csv":
            return csv.pieces((_fields(rule) for rule in self.rules[:limit]), FIELDS)
        if form == "html":
            return iter([self.to_html()])
        if form == "sql":
            return self._queries(dialect, limit)
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
        """The rules for people, one a line; with `verbose` also what speaks for each, and rows that break it."""
        _check_limit(limit)
        heading = self._heading
        parts: list[Any] = []
        for table in heading["tables"]:
            parts += text.table_lines(table, verbose)
        rules = self.rules[:limit]
        held_back = heading["result"]["held_back"]
        count = number_of(len(self), "rule")
        count = f"{len(rules):,} of {count}" if len(rules) < len(self) else count
        parts.append(f"{count} worth keeping, of {number_of(len(self) + held_back, 'candidate')}")
        parts.append(text.how_it_ran(heading, verbose))
        if self.partial:
            parts.append("PARTIAL: a limit was reached; there may be more rules.")
        parts += [f"note: {note}" for note in self.notes]
        if rules:
            parts += ["", _grid(rules, len(self._found.tables) > 1, verbose)]
        if verbose:
            parts += self._shown_examples(rules)
        with_table = len(self._found.tables) > 1
        warned = [f"{_place(w, with_table)} {w['text']}" for w in self.warnings if w["text"] != columns.ONE_VALUE]
        parts += (["", *(f"warning: {one}" for one in warned)]) if warned else []
        if command_line and rules:
            parts += ["", "A page with all this: -o report.html. Rows that break a rule: -v, or the page."]
        return text.render(parts, width=width, color=color)

    def _shown_examples(self, rules: Sequence[ProfiledRule]) -> list[str]:
        parts = ["", "Rows are counted from 0, without the header."] if any(r.exceptions for r in rules) else []
        for rule in rules:
            found = self._examples(rule)
            if found or rule.implies:
                parts += ["", f"{rule.rank}. {rule.rule}"]
                parts += [f"   implies {', '.join(rule.implies)}"] if rule.implies else []
                parts += [f"   {one['text']}" for one in found]
        return parts

    def _examples(self, rule: ProfiledRule) -> list[dict[str, Any]]:
        table, listed = rule._home
        if table is None or not rule.exceptions:
            return []
        if rule.rank not in self._kept_examples:
            relation, broken = table.table.broken(listed.rule, EXAMPLES)
            self._kept_examples[rule.rank] = profile_words.examples(relation, listed.rule, broken)
        return self._kept_examples[rule.rank]

    @cached_property
    def _kept_examples(self) -> dict[int, list[dict[str, Any]]]:
        return {}

    def _record(self, rule: ProfiledRule) -> dict[str, Any]:
        table, listed = rule._home
        record = {**_fields(rule), **rule.columns, "implies": list(rule.implies)}
        record["equivalent"] = [] if table is None else _equivalent(table, listed)
        record["examples"] = self._examples(rule)
        record["dc"] = None if table is None else str(profile_words.constraint(table.relation, listed.rule))
        record["sql"] = "".join(self._query(rule, "spark"))
        return record

    def _queries(self, dialect: str, limit: int | None) -> Iterator[str]:
        for table in self._found.tables.values():
            yield _writer(table, dialect).heading()
        for rule in self.rules[:limit]:
            yield "\n"
            yield from self._query(rule, dialect)

    def _query(self, rule: ProfiledRule, dialect: str) -> Iterator[str]:
        table, listed = rule._home
        if table is None:
            yield IndWriter(self._ind_tables, dialect).query(listed.ind)
        else:
            yield _writer(table, dialect).query(profile_words.constraint(table.relation, listed.rule), rule.english)

    @cached_property
    def _ind_tables(self) -> Any:
        from tuplewise.engine.ind.found import TableFound

        return tuple(
            TableFound(name, table.relation.path, table.relation.all_rows, table.relation.columns)
            for name, table in self._found.tables.items()
        )

    @cached_property
    def _heading(self) -> dict[str, Any]:
        found = self._found
        relations = [table.relation for table in found.tables.values()]
        loading: dict[str, float] = {}
        for relation in relations:
            for stage, seconds in relation.timings_seconds.items():
                loading[stage] = loading.get(stage, 0.0) + seconds
        document = model.heading(
            "profile",
            None,
            options=self._options,
            device=found.device,
            device_reason=found.device_reason,
            timings_seconds={**loading, **found.timings_seconds, "total": self._total_seconds},
            partial=found.partial,
            notes=self.notes,
        )
        named = zip(found.tables, relations, strict=True)
        document["tables"] = [{**model.table_record(relation), "name": name} for name, relation in named]
        document["spark"] = next((dict(r.spark) for r in relations if r.spark is not None), None)
        document["result"] = {
            "shown": len(self),
            "held_back": found.held_back,
            "columns": self.columns,
            "warnings": self.warnings,
            "rules": [],
        }
        return document


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InputError(message("limit", limit, "1 or more"))


def _rule_of(name: str, table: TableProfile, listed: Listed) -> dict[str, Any]:
    rule, relation = listed.rule, table.relation
    columns = [relation.columns[c].name for c in rule.columns]
    left, right = columns[: len(rule.left)], columns[len(rule.left) :]
    by_kind: dict[str, dict[str, Any]] = {
        "key": {"columns": left},
        "fd": {"determinant": left, "dependent": right[:1]},
        "od": {"context": left, "left": right[:1], "right": right[1:], "direction": rule.sense},
        "row": {"left": left[:1], "op": rule.sense, "right": right[:1]},
        "constant": {"column": right[:1]},
    }
    single = {"dependent", "left", "right", "column"}
    own = {key: value[0] if key in single else value for key, value in by_kind[rule.kind].items()}
    return {
        "table": name,
        "kind": rule.kind,
        "rule": profile_words.rule_text(relation, rule),
        "english": profile_words.english(table.table, listed),
        "rows": rule.rows,
        "exceptions": rule.exceptions,
        "evidence": round(rule.evidence, 3),
        "strength": round(rule.strength, 6),
        "score": round(rule.score, 4),
        "implies": tuple(profile_words.rule_text(relation, one) for one in listed.implies),
        "columns": own,
    }


def _inclusion_of(inclusion: Inclusion) -> dict[str, Any]:
    dependent, referenced = inclusion.ind.dependent[0], inclusion.ind.referenced[0]
    return {
        "table": dependent.table,
        "kind": "ind",
        "rule": str(inclusion.ind),
        "english": profile_words.inclusion_english(inclusion),
        "rows": inclusion.values,
        "exceptions": inclusion.exceptions,
        "evidence": round(inclusion.evidence, 3),
        "strength": round(inclusion.strength, 6),
        "score": round(inclusion.score, 4),
        "implies": (),
        "columns": {"dependent": str(dependent), "referenced": str(referenced)},
    }


def _fields(rule: ProfiledRule) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in FIELDS}


def _equivalent(table: TableProfile, listed: Listed) -> list[list[str]]:
    names = table.relation.column_names
    return [[names[b], names[a]] for a, b in listed.equivalent]


def _spread(spread: Any) -> dict[str, Any] | None:
    if spread is None:
        return None
    if isinstance(spread, Histogram):
        return {"kind": "histogram", "low": spread.low, "high": spread.high, "counts": list(spread.counts)}
    return {"kind": "values", "values": [list(one) for one in spread.values], "other": spread.other}


def _writer(table: TableProfile, dialect: str) -> sql.Writer:
    sql.check_dialect(dialect)
    return sql.Writer(
        columns=table.relation.column_names,
        types=[c.type for c in table.relation.columns],
        table=[table.relation.name],
        dialect=dialect,
        nulls=table.nulls,
    )


def _grid(rules: Sequence[ProfiledRule], with_table: bool, verbose: bool) -> Any:
    kinds = [("", "right"), ("kind", "left")]
    kinds += [("table", "left")] if with_table else []
    kinds += [("evidence", "right"), ("strength", "right")] if verbose else []
    kinds += [("rule", "left"), ("in words", "left")]
    rows = []
    for rule in rules:
        row = [str(rule.rank), rule.kind]
        row += [rule.table] if with_table else []
        row += [f"{rule.evidence:,.0f}", f"{rule.strength:.4f}"] if verbose else []
        rows.append([*row, rule.rule, rule.english])
    return text.grid(kinds, rows)


def _place(warning: Mapping[str, Any], with_table: bool) -> str:
    names = ([warning["table"]] if with_table else []) + ([warning["column"]] if warning["column"] else [])
    return f"`{'.'.join(names)}`" if names else "the table:"
