"""What `diff` returns, in every form that it is handed on in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Unpack

from tuplewise.engine.contract.diff import Change, ColumnDifference, Diff, RuleDifference
from tuplewise.engine.contract.diff_sides import SideColumn
from tuplewise.engine.errors import number_of
from tuplewise.engine.report import page
from tuplewise.engine.report.result import Choice, Chosen, Result
from tuplewise.engine.report.sections import Entry, Fold, Heading, Section
from tuplewise.engine.report.text import percent
from tuplewise.engine.table.relation import Relation

CHANGES: tuple[Change, ...] = ("lost", "weaker", "changed", "stronger", "gained")
_COLUMN_SAID = {"removed": "removed", "added": "added", "type": "other type", "nulls": "other share of nulls"}


class DiffResult(Result):
    """What differs between A and B: two tables, two contracts, two results, or a contract and a table.

    In JSON, "result" has:

    - "a", "b": {"name", "kind": "table|contract|result", "command"}; command: of results
    - "differs", "regressed", "unchanged" (how many rules), "undecided" (how many a limit left open)
    - "columns": [{"change": "removed|added|type|nulls", "table", "name", "before", "after"}];
      before, after: {"type", "nulls"}, or null
    - "lost", "weaker", "changed", "stronger", "gained":
      [{"table", "kind", "rule", "english", "why", "before", "after", "broken_by"}];
      before, after: {"exceptions", "of", "share", "status", "severity", "tolerance"}, each null where it isn't known;
      or null; broken_by: {"text", "rows"}, a row or a pair of rows of B, or null

    Attributes
    ----------
    lost : rules of A that B breaks, or lacks
    gained : rules of B that A breaks, or lacks
    weaker, stronger : rules of both that more, or fewer, rows of B break; in contracts, rules that B is less, or more,
        strict about
    changed : rules that are weaker in one way and stronger in another, or of which it can't be told
    columns : columns that were removed or added, or are of another type, or have another share of nulls
    differs : whether anything does
    regressed : whether rules were lost or columns removed
    partial, notes, device, device_reason, timings_seconds : as of every Result
    """

    COMMAND = "diff"
    FORMS = ("json", "html")
    CHOICES = ()
    THINGS = ("rule", "rules")
    ALL = ".lost, .gained, .weaker, .stronger, .changed"
    MISSING = "a limit was reached; rules may be missing"
    _found: Diff

    def __bool__(self) -> NoReturn:
        raise TypeError("a DiffResult is neither true nor false: ask .differs or .regressed")

    def __repr__(self) -> str:
        lines = [f"{one.change}: {one.rule.text}" for one in self._found.rules[:5]]
        return self._described(self._summary(), lines, len(self._found.rules))

    @property
    def lost(self) -> list[dict[str, Any]]:
        """Rules that are lost, as JSON has them."""
        return self._records("lost")

    @property
    def gained(self) -> list[dict[str, Any]]:
        """Rules that are gained."""
        return self._records("gained")

    @property
    def weaker(self) -> list[dict[str, Any]]:
        """Rules that are weaker."""
        return self._records("weaker")

    @property
    def stronger(self) -> list[dict[str, Any]]:
        """Rules that are stronger."""
        return self._records("stronger")

    @property
    def changed(self) -> list[dict[str, Any]]:
        """Rules that are weaker in one way and stronger in another, or neither."""
        return self._records("changed")

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Columns that differ."""
        return [_column_record(one) for one in self._found.columns]

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self._found.rules or self._found.columns)

    @property
    def regressed(self) -> bool:
        """Whether rules were lost or columns removed."""
        removed = any(one.change == "removed" for one in self._found.columns)
        return removed or any(one.change == "lost" for one in self._found.rules)

    def _records(self, change: Change) -> list[dict[str, Any]]:
        return [_rule_record(one) for one in self._found.rules if one.change == change]

    def _summary(self) -> str:
        changes = [one.change for one in self._found.rules]
        counts = [f"{changes.count(change):,} {change}" for change in CHANGES if change in changes]
        said = f"rules: {', '.join(counts)}" if counts else "no rule differs"
        said += f", {self._found.unchanged:,} as before" if self._found.unchanged else ""
        said += f", {self._found.undecided:,} undecided" if self._found.undecided else ""
        columns = len({(one.column.table, one.column.name) for one in self._found.columns})
        return f"{said}; {number_of(columns, 'column')} differ{'s' if columns == 1 else ''}" if columns else said

    @property
    def _facts(self) -> dict[str, Any]:
        sides = {"a": self._found.before, "b": self._found.after}
        return {
            **{name: {"name": s.name, "kind": s.kind, "command": s.command or None} for name, s in sides.items()},
            "differs": self.differs,
            "regressed": self.regressed,
            "unchanged": self._found.unchanged,
            "undecided": self._found.undecided,
            "columns": self.columns,
        }

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {change: self._records(change) for change in CHANGES}

    @property
    def _title(self) -> str:
        return f"{self._found.before.name} → {self._found.after.name}"

    def _in_full(self, chosen: Chosen) -> str:
        return f"{self._title}: {self._summary()}"

    def _how(self, verbose: bool) -> list[Any]:
        return super()._how(verbose) if self._found.relations else []

    def to_html(self, **listed: Unpack[Choice]) -> str:
        """A page with what differs, in one file that needs no network."""
        sections = self._sections(self._chosen(self.CHOICES, listed), page.MOST, html=True)
        return page.render_result(self._heading, self._summary(), sections, self._missing(), title_=self._title)

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        rows = [
            [*([one.column.table] if self._several else []), one.column.name, _COLUMN_SAID[one.change], *_both(one)]
            for one in self._found.columns
        ]
        headings = [*(["table"] if self._several else []), "column", "change", "before", "after"]
        sections = [Section("Columns", "table", [(one, "left") for one in headings], rows, heading="columns")]
        if not html:
            return [*sections, Section("", "rules", rows=[self._entry(one, html) for one in self._found.rules])]
        for change in CHANGES:
            mine = [one for one in self._found.rules if one.change == change]
            entries = [self._entry(one, html) for one in mine[:most]]
            sections.append(Section(_TITLES[change], "rules", _RULES, entries, count=len(mine)))
        return [one for one in sections if one.rows]

    @property
    def _several(self) -> bool:
        return any(len(side.tables) > 1 for side in (self._found.before, self._found.after))

    def _entry(self, one: RuleDifference, html: bool) -> Entry:
        rule = one.rule
        broken = one.after.broken_by if one.after is not None and one.change in ("lost", "weaker") else None
        said = f"{rule.english}; {one.why}" if rule.english and one.why else rule.english or one.why
        folds = []
        if broken:
            rows = [[broken["text"]]]
            folds = [Fold("broken by", rows) if html else Fold("", rows, [("broken by", "left")])]
        table = rule.table if self._several else ""
        mark, tag = (one.change, f"{table} {rule.kind}".strip()) if html else (f"{one.change} {rule.kind}", table)
        return Entry(mark, rule.text, said, tag=tag, folds=folds, wrong=one.change == "lost")

    @property
    def _relations(self) -> list[Relation]:
        return list(self._found.relations)

    @property
    def _tables(self) -> list[dict[str, Any]]:
        """Tables are called as they were given: both may have one name."""
        sides = [side.name for side in (self._found.before, self._found.after) if side.kind == "table"]
        return [{**one, "name": name} for one, name in zip(super()._tables, sides, strict=False)]

    @property
    def _spark(self) -> Mapping[str, str] | None:
        return super()._spark if self._found.relations else None


_RULES: tuple[Heading, ...] = (("change", "left"), ("rule", "left"))
_TITLES: dict[Change, str] = {
    "lost": "Lost rules", "weaker": "Weaker rules", "changed": "Changed rules", "stronger": "Stronger rules",
    "gained": "Gained rules",
}  # fmt: skip


def _rule_record(one: RuleDifference) -> dict[str, Any]:
    broken = one.after.broken_by if one.after is not None else None
    return {
        "table": one.rule.table,
        "kind": one.rule.kind,
        "rule": one.rule.text,
        "english": one.rule.english,
        "why": one.why,
        "before": None if one.before is None else one.before.record,
        "after": None if one.after is None else one.after.record,
        "broken_by": None if broken is None else dict(broken),
    }


def _column_record(one: ColumnDifference) -> dict[str, Any]:
    return {
        "change": one.change,
        "table": one.column.table,
        "name": one.column.name,
        "before": None if one.before is None else one.before.record,
        "after": None if one.after is None else one.after.record,
    }


def _both(one: ColumnDifference) -> Sequence[str]:
    """What a column was and is, in words."""

    def said(column: SideColumn | None) -> str:
        if column is None:
            return ""
        return percent(column.nulls or 0.0) if one.change == "nulls" else column.type or ""

    return said(one.before), said(one.after)
