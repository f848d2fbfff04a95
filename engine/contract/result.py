"""What the check of a contract returns, in every form that it is handed on in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tuplewise.engine.contract import ci
from tuplewise.engine.contract.check import CheckedColumn, CheckedContract, CheckedRule
from tuplewise.engine.contract.repairs import suggestions, write_suggestions
from tuplewise.engine.errors import number_of
from tuplewise.engine.report.checked_result import CheckedResult
from tuplewise.engine.report.result import Chosen, Fields
from tuplewise.engine.report.sections import Entry, Fold, Section
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import quote_name

if TYPE_CHECKING:
    import pandas as pd

FIELDS = (
    "id", "table", "kind", "rule", "english", "severity", "holds", "failed", "exceptions", "of", "unit", "tolerance",
    "reason",
)  # fmt: skip


class ContractResult(CheckedResult):
    """Whether tables keep the rules of a contract.

    Attributes
    ----------
    rules : list of dicts, one for each checked rule: id, table, kind, rule, english, severity, holds, failed,
        exceptions, of, unit, tolerance, examples, reason
    columns : list of dicts, one for each column: table, name, expected, type, nulls, nulls_before, status, failed
    failed : whether a rule of severity "error" is broken beyond its tolerance, or columns are not as they should be
    holds : whether nothing breaks any rule; None: some are undecided
    partial, notes, device, device_reason, timings_seconds : as of every Result
    """

    COMMAND = "check"
    FORMS = ("json", "csv", "html", "junit", "github")
    THINGS = ("rule", "rules")
    ALL = ".rules, .to_pandas()"
    ASK = ".failed"
    FIGURES = (("exceptions", "right"), ("allowed", "right"))
    _found: CheckedContract

    def __len__(self) -> int:
        return len(self._found.rules)

    def __repr__(self) -> str:
        lines = [f"{verdict(one)} {one.rule.id}: {one.rule.text}" for one in self._found.rules]
        return self._described(self._summary(), lines, len(lines))

    @cached_property
    def rules(self) -> list[dict[str, Any]]:
        """The checked rules, in the order of the contract."""
        return [_rule_record(one) for one in self._found.rules]

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the contract, and those that tables have beside them."""
        return [_column_record(one) for one in self._found.columns]

    def with_notes(self, notes: Sequence[str]) -> ContractResult:
        """The same result with more notes."""
        more = [*self._more_notes, *notes]
        seconds = self._total_seconds
        return ContractResult(self._found, options=self._options, notes=more, total_seconds=seconds, face=self._face)

    @property
    def checked(self) -> CheckedContract:
        """What was found, as objects."""
        return self._found

    @property
    def failed(self) -> bool:
        """Whether the check fails."""
        return self._found.failures > 0

    def failures(self) -> str:
        """What makes the check fail, a line for each rule and column, with rows that break it."""
        lines = [f"{self._summary()} (contract {self._found.contract.name!r})"]
        lines += [f"  {one.table}: {one.said}" for one in self._found.columns if one.failed]
        for rule in self._found.rules:
            if rule.failed or rule.within is None:
                lines.append(f"  {rule.rule.id}: {rule.rule.text}: {rule.said}")
                lines += [f"    {example.text}" for example in rule.examples]
        return "\n".join(lines)

    def _noted(self) -> list[str]:
        """Columns that the contract lacks are told of, where they don't make the check fail."""
        new = [one.name for one in self._found.columns if one.status == "new" and not one.failed]
        listed = ", ".join(quote_name(name) for name in new[:NAMED]) + (", ..." if len(new) > NAMED else "")
        said = f"{number_of(len(new), 'column')} not in the contract: {listed}"
        return [*super()._noted(), *([said] if new else [])]

    @property
    def _verdicts(self) -> Sequence[bool | None]:
        return [one.holds for one in self._found.rules]

    def _summary(self) -> str:
        verdicts = [verdict(one) for one in self._found.rules]
        counts = ", ".join(f"{verdicts.count(word):,} {said}" for word, said in _SAID.items() if word in verdicts)
        broken = sum(one.failed for one in self._found.columns)
        columns = f"; {number_of(broken, 'column')} not as the contract says" if broken else ""
        return f"{number_of(len(self), 'rule')}{': ' if counts else ''}{counts}{columns}"

    @property
    def _facts(self) -> dict[str, Any]:
        found = self._found
        return {
            "contract": found.contract.name,
            "columns": self.columns,
            "failed": found.failures,
        }

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"rules": self.rules}

    def _other_forms(self) -> Mapping[str, Callable[[], Iterable[str]]]:
        return {"junit": lambda: [ci.junit(self._found)], "github": lambda: ci.github(self._found)}

    def _table(self, chosen: Chosen) -> Fields:
        return Fields(FIELDS, ({**rule, "tolerance": str(one.rule.tolerance)} for rule, one in self._both))

    @property
    def _both(self) -> Iterator[tuple[dict[str, Any], CheckedRule]]:
        return zip(self.rules, self._found.rules, strict=True)

    def to_junit(self) -> str:
        """The check as JUnit XML: a test case for each rule and column."""
        return "".join(self.pieces("junit"))

    def repairs(self, limit: int | None = None) -> pd.DataFrame:
        """The fewest rows or cells to change so that broken rules hold: all, or the first `limit` of each rule.

        For keys, FDs, order rules and rules of one row. Nothing is changed.

        Returns
        -------
        DataFrame
            rule_id, table, kind, row (0-based position), action ("change" or "remove"), column, value, suggested, why
        """
        found, _ = suggestions(self._found, limit)
        return found.to_pandas()

    def write_repairs(self, path: str) -> list[str]:
        """Write all of `repairs` to a Parquet or CSV file, whole or not at all. Returns notes on what was written."""
        return write_suggestions(self._found, path)

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """Columns that are not as they should be, and the rules: in text a line each, then what breaks them."""
        odd = [one for one in self._found.columns if one.failed]
        rows = [[one.table, one.name, one.status, one.expected or "", one.type or ""] for one in odd]
        headings = ("table", "column", "", "in the contract", "in the table")
        sections = [Section("Columns", "table", [(heading, "left") for heading in headings], rows)] if rows else []
        if html:
            (rules,) = super()._sections(chosen, most, html=html)
            return [*sections, replace(rules, rows=sorted(rules.rows, key=lambda entry: not entry.wrong))]
        checked = sorted(self._found.rules, key=lambda one: (not one.failed, one.within is True))
        lines = [[verdict(one), one.rule.id, one.rule.text, one.said, str(one.rule.tolerance)] for one in checked]
        named = ("", "id", "rule", "", "allowed")
        broken = [one for one in checked if one.examples and one.within is not True]
        details = [line for one in broken for line in ("", self._headline(one), *(f"  {e.text}" for e in one.examples))]
        details = ["", "Rows are counted from 0, without the header.", *details] if broken else []
        listed = Section("", "table", [(heading, "left") for heading in named], lines)
        return [*sections, listed, Section("", "lines", rows=details)]

    def _headline(self, one: CheckedRule) -> str:
        more = " (the first)" if len(one.examples) == self._found.options.examples else ""
        return f"{one.rule.id}: {one.rule.english or one.rule.text}{more}"

    def _entry(self, number: int, most: int, plan: bool) -> Entry:
        checked = self._found.rules[number]
        rule = checked.rule
        cut = len(checked.examples) == self._found.options.examples
        fold = Fold("rows that break it" + (", the first" if cut else ""), [[one.text] for one in checked.examples])
        return Entry(
            verdict(checked),
            rule.text,
            rule.english,
            [checked.said, str(rule.tolerance)],
            tag=rule.table if len(self._found.relations) > 1 else "",
            folds=[fold] if checked.examples else (),
            copies={"id": rule.id},
            wrong=checked.failed,
            remark="; ".join(filter(None, (rule.id, rule.note, rule.owner and f"owner: {rule.owner}"))),
        )

    @property
    def _relations(self) -> list[Relation]:
        return list(self._found.relations.values())

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return [{**one, "name": name} for name, one in zip(self._found.relations, super()._tables, strict=True)]


NAMED = 8
"""New columns that a note names."""
_SAID = {
    "VIOLATED": "violated", "warning": "violated, but warnings only", "within": "broken within their tolerance",
    "UNDECIDED": "undecided", "holds": "hold",
}  # fmt: skip


def verdict(one: CheckedRule) -> str:
    """What became of a rule, in a word."""
    if one.within is None:
        return "UNDECIDED"
    if not one.within:
        return "VIOLATED" if one.failed else "warning"
    return "holds" if one.holds else "within"


def _rule_record(one: CheckedRule) -> dict[str, Any]:
    """One entry of "rules"."""
    rule = one.rule
    return {
        "id": rule.id,
        "table": one.table,
        "kind": rule.kind,
        "rule": rule.text,
        "english": rule.english,
        "severity": rule.severity,
        "holds": one.holds,
        "failed": one.failed,
        "exceptions": one.exceptions,
        "of": one.of,
        "unit": one.unit,
        "tolerance": rule.tolerance.record,
        "examples": [example.record for example in one.examples],
        "reason": one.reason,
    }


def _column_record(one: CheckedColumn) -> dict[str, Any]:
    names = ("table", "name", "expected", "type", "nulls", "nulls_before", "status", "failed")
    return {name: getattr(one, name) for name in names}
