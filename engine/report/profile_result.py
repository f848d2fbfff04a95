"""What `profile` returns: the few rules of tables that are worth keeping, in every form that they are handed on in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from tuplewise.engine.errors import InputError, message, number_of
from tuplewise.engine.profile import columns
from tuplewise.engine.profile.columns import Histogram
from tuplewise.engine.report import profile_page, profile_words, sql
from tuplewise.engine.report.cells import Cells
from tuplewise.engine.report.ind_sql import IndWriter
from tuplewise.engine.report.result import Choice, Chosen, Fields, Result
from tuplewise.engine.report.sections import Heading, Section

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.profile.discover import TableProfile
    from tuplewise.engine.profile.inclusions import Inclusion
    from tuplewise.engine.profile.rule import Listed, Rule
    from tuplewise.engine.table.relation import Relation

EXAMPLES = 5
SHOWN_IN_REPR = 10
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


class ProfileResult(Result):
    """The few rules of tables that are worth keeping.

    Attributes
    ----------
    rules : list of ProfiledRule, best first
    columns : list of dicts, one for each column: type, nulls, distinct values and how they are spread
    warnings : list of dicts: what is odd about columns
    partial, notes, device, device_reason, timings_seconds : as of every Result

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

    COMMAND = "profile"
    ALL = ".rules, .to_pandas()"
    MISSING = "a limit was reached; there may be more rules"

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[ProfiledRule]:
        return iter(self.rules)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self._found.tables))
        said = f"{number_of(len(self), 'rule')} of {names}{', PARTIAL' if self.partial else ''}"
        return self._described(said, [f"{r.rank:2}. {r.english}" for r in self.rules[:SHOWN_IN_REPR]], len(self))

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

    def to_html(self, **listed: Unpack[Choice]) -> str:
        """A page with everything, in one file that needs no network."""
        return profile_page.page(self.to_dict(**listed))

    def _repr_html_(self) -> str:
        return profile_page.compact_html(self.to_dict())

    def _summary(self) -> str:
        return self._in_full(Chosen())

    def _in_full(self, chosen: Chosen) -> str:
        count = number_of(len(self), "rule")
        if chosen.limit is not None and chosen.limit < len(self):
            count = f"{chosen.limit:,} of {count}"
        return f"{count} worth keeping, of {number_of(len(self) + self._found.held_back, 'candidate')}"

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "shown": len(self),
            "held_back": self._found.held_back,
            "columns": self.columns,
            "warnings": self.warnings,
        }

    def _document(self, chosen: Chosen) -> tuple[dict[str, Any], dict[str, Any]]:
        document, lists = super()._document(chosen)
        document["result"]["rules"] = list(map(self._record, self.rules[: chosen.limit]))
        return document, lists

    def _table(self, chosen: Chosen) -> Fields:
        return Fields(FIELDS, map(_fields, self.rules[: chosen.limit]))

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        for one in self._found.tables.values():
            yield _writer(one, dialect).heading()
        for rule in self.rules[: chosen.limit]:
            yield "\n" + self._query(rule, dialect)

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """All rules, one a line; where more is to be said also what speaks for each, and rows that break it."""
        rules = self.rules[: chosen.limit]
        several = len(self._found.tables) > 1
        warned = [
            f"warning: {_place(one, several)} {one['text']}"
            for one in self.warnings
            if one["text"] != columns.ONE_VALUE
        ]
        return [
            _listed(rules, several, chosen.verbose),
            Section("", "lines", rows=self._details(rules) if chosen.verbose else ()),
            Section("", "lines", rows=["", *warned] if warned else ()),
        ]

    def _behind(self, sections: Sequence[Section], command_line: bool) -> list[str]:
        page = "A page with all this: -o report.html. Rows that break a rule: -v, or the page."
        return ["", page] if command_line and self.rules else []

    def _details(self, rules: Sequence[ProfiledRule]) -> list[str]:
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
        record["sql"] = self._query(rule, "spark")
        return record

    def _query(self, rule: ProfiledRule, dialect: str) -> str:
        table, listed = rule._home
        if table is None:
            return IndWriter(self._ind_tables, dialect).query(listed.ind)
        return _writer(table, dialect).query(profile_words.constraint(table.relation, listed.rule), rule.english)

    @cached_property
    def _ind_tables(self) -> Any:
        from tuplewise.engine.ind.found import TableFound

        return tuple(
            TableFound(name, table.relation.path, table.relation.all_rows, table.relation.columns)
            for name, table in self._found.tables.items()
        )

    @property
    def _relations(self) -> list[Relation]:
        return [table.relation for table in self._found.tables.values()]

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return [{**table, "name": name} for name, table in zip(self._found.tables, super()._tables, strict=True)]


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
        **_measured(rule, rule.rows),
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
        **_measured(inclusion, inclusion.values),
        "implies": (),
        "columns": {"dependent": str(dependent), "referenced": str(referenced)},
    }


def _measured(one: Rule | Inclusion, rows: int) -> dict[str, Any]:
    """What was measured of a rule that speaks of so many rows, or values."""
    return {
        "rows": rows,
        "exceptions": one.exceptions,
        "evidence": round(one.evidence, 3),
        "strength": round(one.strength, 6),
        "score": round(one.score, 4),
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
    return sql.writer_of(table.relation, dialect, None, table.nulls)


def _listed(rules: Sequence[ProfiledRule], with_table: bool, verbose: bool) -> Section:
    kinds: list[Heading] = [("", "right"), ("kind", "left")]
    kinds += [("table", "left")] if with_table else []
    kinds += [("evidence", "right"), ("strength", "right")] if verbose else []
    kinds += [("rule", "left"), ("in words", "left")]
    rows = []
    for rule in rules:
        row = [str(rule.rank), rule.kind]
        row += [rule.table] if with_table else []
        row += [f"{rule.evidence:,.0f}", f"{rule.strength:.4f}"] if verbose else []
        rows.append([*row, rule.rule, rule.english])
    return Section("", "table", kinds, rows)


def _place(warning: Mapping[str, Any], with_table: bool) -> str:
    names = ([warning["table"]] if with_table else []) + ([warning["column"]] if warning["column"] else [])
    return f"`{'.'.join(names)}`" if names else "the table:"
