"""The check of a contract: all accepted rules of all tables, each table read once.

Keys, FDs and order rules are counted by the groupings of profiling, which rules with one left side share. All others
are denial constraints and checked together, so that they share their predicates. Inclusion dependencies come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tuplewise.engine.contract.chains import OutsideChains, outside_chains
from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable
from tuplewise.engine.contract.forms import (
    Form,
    FunctionalDependency,
    InclusionDependency,
    Key,
    OrderCompatibility,
    columns_of,
    constraints_of,
    read_form,
    read_inclusion,
)
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.rule_text.constants import check_types
from tuplewise.engine.errors import LimitReached, RuleError, placed
from tuplewise.engine.options import ContractCheckOptions, DcCheckOptions, IndCheckOptions, LoadOptions, ProfileOptions
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.rule import Rule, order_of
from tuplewise.engine.profile.table import ProfiledTable, TableHere, chosen_rows
from tuplewise.engine.report import profile_words
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.device import Device, pick_device

if TYPE_CHECKING:
    from tuplewise.engine.dc.violations.found import DcCheck, RuleCheck
    from tuplewise.engine.ind.found import IndCheck
    from tuplewise.engine.table.in_spark import Table

Unit = Literal["rows", "pairs"]
ColumnStatus = Literal["ok", "missing", "other type", "new"]


@dataclass(frozen=True, slots=True)
class Example:
    """Rows that break a rule, in words. `rows`: their 0-based positions in the source."""

    text: str
    rows: tuple[int, ...]

    @property
    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"text": self.text, "rows": list(self.rows)}


@dataclass(frozen=True)
class CheckedRule:
    """A rule that was checked.

    Attributes
    ----------
    exceptions : how many break it; None if it was not checked
        Key, FD, order rule: the fewest rows to remove so that it holds. Inclusion dependency: rows whose value is
        missing. Other rules of one row: rows. Of two: ordered pairs of rows.
    of : all that it speaks of, without those that nulls leave out; of pairs, all ordered pairs
    reason : why it was not checked, or ""
    """

    rule: ContractRule
    exceptions: int | None
    of: int
    unit: Unit
    examples: tuple[Example, ...] = ()
    reason: str = ""
    limited: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether nothing breaks it; None if that is not known."""
        return None if self.exceptions is None else self.exceptions == 0

    @property
    def within(self) -> bool | None:
        """Whether no more break it than its tolerance allows; None if a limit came before it was known."""
        if self.exceptions is None:
            return None if self.limited else False
        return self.rule.tolerance.allows(self.exceptions, self.of)

    @property
    def failed(self) -> bool:
        """Whether it makes the check fail."""
        return self.within is False and self.rule.severity == "error"

    @property
    def table(self) -> str:
        """The table that it is about; of an inclusion dependency the one that refers."""
        return self.rule.subject

    @property
    def said(self) -> str:
        """How many break it, in words."""
        if self.exceptions is None:
            return self.reason
        if not self.exceptions:
            return self.reason or "none breaks it"
        return f"{self.exceptions:,} of {self.of:,} {self.unit} {'breaks' if self.exceptions == 1 else 'break'} it"


_FITS = {
    "decimal": ("decimal", "integer", "double"),
    "double": ("double", "decimal", "integer"),
    "timestamp": ("timestamp", "date"),
}
"""Types that hold no other values than a column of a type may have: files tell types by the values that there are."""


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A column of the contract or of the table. `failed`: whether it makes the check fail."""

    table: str
    name: str
    expected: str | None
    type: str | None
    nulls: float | None
    nulls_before: float | None
    status: ColumnStatus
    failed: bool

    @property
    def said(self) -> str:
        """What there is to say of it."""
        if self.status == "missing":
            return f"column {self.name!r} is missing"
        if self.status == "new":
            return f"column {self.name!r} is not in the contract"
        return f"column {self.name!r} is of type {self.type}, in the contract {self.expected}"


@dataclass(frozen=True, eq=False)
class CheckedContract:
    """What the check of a contract found.

    Attributes
    ----------
    opened : the tables by name, for further looks at their rows
    """

    contract: Contract
    opened: Mapping[str, OpenedTable]
    rules: tuple[CheckedRule, ...]
    columns: tuple[CheckedColumn, ...]
    options: ContractCheckOptions
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: tuple[str, ...]

    @property
    def failures(self) -> int:
        """How many rules and columns make the check fail."""
        return sum(one.failed for one in self.rules) + sum(one.failed for one in self.columns)

    @property
    def relations(self) -> dict[str, Relation]:
        """The tables by name, without rows where these are in Spark."""
        return {name: one.relation for name, one in self.opened.items()}

    @property
    def relation(self) -> Relation:
        """The first table."""
        return next(iter(self.opened.values())).relation


def check_contract(
    contract: Contract,
    tables: Mapping[str, Table],
    options: ContractCheckOptions | None = None,
    run: Run | None = None,
    *,
    sources: Mapping[str, Any] | None = None,
    reading: LoadOptions | None = None,
) -> CheckedContract:
    """Check the accepted rules of a contract, and the columns of its tables.

    Parameters
    ----------
    contract : the contract
    tables : tables by their names in the contract; rules of other tables are not checked, which a note says
    run : after its time limit the other rules are undecided; None: one that starts now, with the options' limits
    sources, reading : the sources of the tables and their options: inclusion dependencies of tables in Spark are
        checked on them

    Raises
    ------
    RuleError
        For rules that can't be read once the columns are known, all in one error. A rule on a missing column, or on
        columns whose types can't be compared as it does, fails.
    DeviceError
        For a device that was asked for and can't be had.
    """
    options = options or ContractCheckOptions()
    run = run or Run(options)
    device = pick_device(options.device)
    clock = Clock()
    opened = {name: OpenedTable(table, contract, options, device, run) for name, table in tables.items()}
    columns = [column for name, one in opened.items() for column in one.columns(contract.tables[name])]
    clock.lap("columns")
    found: dict[str, CheckedRule] = {}
    for name, one in opened.items():
        own = [rule for rule in contract.accepted() if rule.table == name]
        found |= {checked.rule.id: checked for checked in one.check(own)}
    clock.lap("rules")
    between = [rule for rule in contract.accepted() if rule.kind == "ind"]
    notes: list[str] = []
    for name, one in opened.items():
        notes += placed(name, one.notes) if len(opened) > 1 else one.notes
    if between:
        checked, said = _check_inclusions(between, opened, options, run, sources, reading)
        found |= {one.rule.id: one for one in checked}
        notes += said
        clock.lap("references")
    notes += _left_out(contract, opened)
    rules = tuple(found[rule.id] for rule in contract.accepted() if rule.id in found)
    return CheckedContract(
        contract=contract,
        opened=opened,
        rules=rules,
        columns=tuple(columns),
        options=options,
        device=device.described,
        device_reason=device.reason,
        timings_seconds=clock.seconds,
        partial=any(rule.limited for rule in rules),
        notes=tuple(notes),
    )


def _left_out(contract: Contract, opened: Mapping[str, Any]) -> Iterator[str]:
    """Notes on what of a contract was not checked."""
    proposed = sum(rule.status == "proposed" for rule in contract.rules)
    if not contract.accepted():
        yield f"no rule is accepted: nothing was checked but columns ({proposed:,} proposed)"
    missing = {rule.table for rule in contract.accepted() if rule.kind != "ind"} - set(opened)
    for name in sorted(missing):
        count = sum(rule.table == name for rule in contract.accepted())
        yield f"table {name!r} was not given: {count:,} of its rules were not checked"


class OpenedTable:
    """A table of a contract that is being checked.

    Attributes
    ----------
    relation : names and types of its columns; its rows, where they are in this process
    rows : what counts them
    """

    def __init__(
        self, table: Table, contract: Contract, options: ContractCheckOptions, device: Device, run: Run
    ) -> None:
        self.notes: list[str] = []
        self._outside: dict[Rule, OutsideChains] = {}
        self._options, self._run, self.nulls = options, run, contract.nulls
        profiling = options.part(ProfileOptions, nulls=contract.nulls)
        self._encoded: Any = None
        if not isinstance(table, Relation):
            from tuplewise.engine.table.spark_encoded import encode_for

            self._encoded = encode_for("checked", table, table.column_names, run.step)
            table = self._sampled(None)
        else:
            from tuplewise.engine.placement import refuse_spark

            refuse_spark(options, table.name)
            table = self._sampled(table)
        self.relation: Relation
        self.rows: ProfiledTable
        if self._encoded is None:
            self.relation = table
            self.rows = TableHere(table, profiling, device, run)
        else:
            from tuplewise.engine.profile.spark_table import TableInTasks

            rows = TableInTasks(self._encoded, profiling, run)
            self.relation, self.rows = rows.relation, rows

    @property
    def in_spark(self) -> bool:
        """Whether its rows are in Spark."""
        return self._encoded is not None

    def _sampled(self, table: Relation | None) -> Relation:
        """The rows to check, where they are few enough or here already; else the rows stay in Spark."""
        most = self._options.sample
        rows = self._encoded.rows if table is None else table.rows
        if most is not None and most < rows:
            self.notes.append(f"{most:,} of {rows:,} rows were checked, drawn at random (seed {self._options.seed})")
            chosen = chosen_rows(rows, most, self._options.seed)
            if table is None:
                table, self._encoded = self._encoded.excerpt(chosen), None
            else:
                positions = chosen if table.positions is None else table.positions[chosen]
                codes = np.ascontiguousarray(table.codes[:, chosen])
                table = replace(table, codes=codes, positions=positions)
        return self._encoded.header if table is None else table

    def columns(self, expected: ContractTable) -> Iterator[CheckedColumn]:
        """The columns of the contract in its order, then those that the table has beside them."""
        there = {column.name: column for column in self.relation.columns}
        rows = max(self.relation.all_rows, 1)
        if self._options.sample is not None and self._encoded is None:
            rows = max(self.relation.rows, 1)
        for one in expected.columns or ():
            found = there.pop(one.name, None)
            if found is None:
                yield CheckedColumn(expected.name, one.name, one.type, None, None, one.nulls, "missing", True)
                continue
            other = one.type is not None and found.type not in _FITS.get(one.type, (one.type,)) and found.distinct > 0
            status: ColumnStatus = "other type" if other else "ok"
            nulls = round(self._null_rows(found.name, found.nulls) / rows, 6)
            yield CheckedColumn(expected.name, one.name, one.type, found.type, nulls, one.nulls, status, other)
        for found in there.values() if expected.columns is not None else ():
            nulls = round(self._null_rows(found.name, found.nulls) / rows, 6)
            fails = self._options.fail_on_new_columns
            yield CheckedColumn(expected.name, found.name, None, found.type, nulls, None, "new", fails)

    def _null_rows(self, name: str, of_all: int) -> int:
        if self._encoded is not None or self._options.sample is None:
            return of_all
        return int(np.count_nonzero(self.relation.codes[self.relation.index_of(name)] == NULL_CODE))

    def check(self, rules: Sequence[ContractRule]) -> list[CheckedRule]:
        """Check the rules of this table."""
        names = self.relation.column_names
        found, todo, faults = [], [], []
        for rule in rules:
            missing = [name for name in columns_of(rule.form) if name not in names]
            if missing:
                listed = ", ".join(map(repr, missing))
                reason = f"there is no column {listed}"
                found.append(CheckedRule(rule, None, 0, "rows", reason=reason))
                continue
            try:  # names without quotes may end elsewhere once the columns are known
                todo.append(replace(rule, form=read_form(rule.kind, rule.text, names)))
            except RuleError as error:
                faults.append(f"rule {rule.id!r}: {error.said}")
        if faults:
            raise RuleError("\n".join(faults))
        counted = [rule for rule in todo if isinstance(rule.form, (Key, FunctionalDependency, OrderCompatibility))]
        others = []
        for rule in todo:
            if rule not in counted:
                reason = self._not_compared(rule.form)
                if reason:
                    found.append(CheckedRule(rule, None, 0, "rows", reason=reason))
                else:
                    others.append(rule)
        ways: list[tuple[Callable[[list[ContractRule]], list[CheckedRule]], list[ContractRule]]] = []
        ways = [(self._count, counted), (self._check_constraints, others)]
        for way, own in ways:
            try:
                found += way(own) if own else []
            except LimitReached as error:
                self.notes.append(str(error))
                found += [_undecided(rule) for rule in own if all(one.rule.id != rule.id for one in found)]
        return found

    def _count(self, rules: list[ContractRule]) -> list[CheckedRule]:
        """Count the rows that break keys, FDs and order rules, in batches; after the time limit none any more."""
        counts: dict[str, tuple[int, int]] = {}
        of_fds: dict[tuple[int, ...], list[int]] = {}
        profiled = {rule.id: self.profiled(rule.form) for rule in rules}
        try:
            for one in profiled.values():
                if one.kind == "fd":
                    of_fds.setdefault(tuple(sorted(one.left)), []).append(one.right[0])
            sides = list(of_fds)
            fds: dict[Any, Any] = {}
            for start in range(0, len(sides), self.rows.at_once):
                self._run.mind()
                batch = sides[start : start + self.rows.at_once]
                fds |= self.rows.count_fds({left: sorted(set(of_fds[left])) for left in batch})
            for rule_id, one in profiled.items():
                self._run.mind()
                if one.kind == "fd":
                    found = fds[tuple(sorted(one.left)), one.right[0]]
                    counts[rule_id] = (found.exceptions, found.rows)
                elif one.kind == "key":
                    (found,) = self.rows.count_keys([one.left])
                    counts[rule_id] = (found.exceptions, found.rows)
                else:
                    if self.in_spark:
                        (removed,) = self.rows.rows_to_remove([order_of(one)])
                    else:
                        removed = len(self.out_of_order(one).rows)
                    counts[rule_id] = (removed, self._rows_with_values(one.columns))
        except LimitReached as error:
            self.notes.append(str(error))
        return [
            CheckedRule(rule, *counts[rule.id], "rows", self._examples(profiled[rule.id], counts[rule.id][0]))
            if rule.id in counts
            else _undecided(rule)
            for rule in rules
        ]

    def out_of_order(self, rule: Rule) -> OutsideChains:
        """The fewest rows that an order rule has to lose; of a table in this process."""
        if rule not in self._outside:
            self._outside[rule] = outside_chains(self._counted, *order_of(rule))
        return self._outside[rule]

    @property
    def _counted(self) -> CountedRelation:
        """The rows in this process, for counting."""
        assert isinstance(self.rows, TableHere), "the rows are in this process"
        return self.rows

    def _rows_with_values(self, columns: Sequence[int]) -> int:
        """The rows with a value in each of some columns."""
        if all(self.rows.filled[column] == self.rows.count for column in columns):
            return self.rows.count
        (found,) = self.rows.count_keys([tuple(columns)])
        return found.rows

    def profiled(self, form: Form) -> Rule:
        """A key, FD or order rule by numbers of columns."""
        index = self.relation.index_of
        if isinstance(form, Key):
            return Rule("key", tuple(map(index, form.columns)), (), "", 0, 0, 0.0, 0.0, 0.0)
        if isinstance(form, FunctionalDependency):
            left = tuple(map(index, form.determinant))
            return Rule("fd", left, (index(form.dependent),), "", 0, 0, 0.0, 0.0, 0.0)
        assert isinstance(form, OrderCompatibility)
        left = tuple(map(index, form.context))
        right = (index(form.left), index(form.right))
        return Rule("od", left, right, form.direction, 0, 0, 0.0, 0.0, 0.0)

    def _examples(self, rule: Rule, exceptions: int) -> tuple[Example, ...]:
        if not exceptions or not self._options.examples:
            return ()
        most = self._options.examples
        if rule.kind == "od" and not self.in_spark:
            relation, broken = self.relation, self.out_of_order(rule).exceptions(most)
        else:
            relation, broken = self.rows.broken(rule, most)
        found = profile_words.examples(relation, rule, broken)
        return tuple(Example(one["text"], tuple(one["rows"])) for one in found)

    def _check_constraints(self, rules: list[ContractRule]) -> list[CheckedRule]:
        """Check rules that are denial constraints: those on one row together, and those on two."""
        constraints = [dc for rule in rules for dc in constraints_of(rule.form)]
        checks: dict[DenialConstraint, tuple[Relation, RuleCheck]] = {}
        for one_row in (True, False):
            own = list(dict.fromkeys(dc for dc in constraints if dc.names_one_tuple is one_row))
            checks |= self._denied_with_rows(own, one_row) if own else {}
        rows = self.rows.count
        found = []
        for rule in rules:
            own_checks = [checks[dc] for dc in constraints_of(rule.form)]
            if any(check.violating_pairs is None for _, check in own_checks):
                found.append(_undecided(rule))
                continue
            first = own_checks[0][1]
            of = rows - first.rows_unknown if first.one_row else rows * (rows - 1)
            examples = [example for shown in own_checks for example in _in_words(*shown)]
            broken = sum(check.violating_pairs or 0 for _, check in own_checks)
            unit: Unit = "rows" if first.one_row else "pairs"
            found.append(CheckedRule(rule, broken, of, unit, tuple(examples[: self._options.examples])))
        return found

    def _denied_with_rows(
        self, constraints: Sequence[DenialConstraint], one_row: bool
    ) -> dict[DenialConstraint, tuple[Relation, RuleCheck]]:
        """Each constraint with its check and the first rows or pairs that violate it.

        Those on one row are counted first, since a list takes eight bytes a row for each; then the violated are listed.
        """
        listing = DcCheckOptions(pairs=self._options.examples)
        counting = DcCheckOptions(count_only=True)
        found = self._denied(constraints, counting if one_row or not self._options.examples else listing)
        self.notes += [note for note in found.notes if note not in self.notes]
        checks = {dc: (found.relation, check) for dc, check in zip(constraints, found.rules, strict=True)}
        violated = [dc for dc, (_, check) in checks.items() if check.violating_pairs and not len(check.pairs)]
        if violated and self._options.examples:
            listed = self._denied(violated, listing)
            checks |= {dc: (listed.relation, check) for dc, check in zip(violated, listed.rules, strict=True)}
        return checks

    def _not_compared(self, form: Form) -> str:
        """Why the values that a rule compares can't be compared, or "": a column may have become one of text."""
        try:
            for constraint in constraints_of(form):
                check_types(self.relation, constraint)
        except RuleError as error:
            return str(error.said).split("; allowed", 1)[0]
        return ""

    def _denied(self, rules: Sequence[DenialConstraint], options: DcCheckOptions) -> DcCheck:
        options = replace(options, nulls=self.nulls, device=self._options.device)
        run = Run(deadline=self._run.deadline)
        if self._encoded is not None:
            from tuplewise.engine.dc.violations.distributed import check_on_spark

            return check_on_spark(self._encoded, rules, options, run)
        from tuplewise.engine.dc.violations.detect import check_rules

        return check_rules(self.relation, rules, options, run)


def _undecided(rule: ContractRule) -> CheckedRule:
    reason = "a limit came before it was checked"
    return CheckedRule(rule, None, 0, "rows", reason=reason, limited=True)


def _in_words(relation: Relation, check: RuleCheck) -> Iterator[Example]:
    """The listed violations of a rule: `row 3: `a` is 5`; `rows 3 and 7: `zip` is 1 and 1, `city` is 'A' and 'B'`."""
    columns = [(name, relation.index_of(name)) for name in check.rule.columns]
    for t, u in check.pairs.tolist():
        rows = (t,) if u < 0 else (t, u)
        cells = []
        for name, column in columns:
            values = relation.values(column, np.array(rows)).to_pylist()
            cells.append(f"`{name}` is {' and '.join(map(profile_words.shown, values))}")
        positions = tuple(map(relation.position_of, rows))
        place = f"row {positions[0]}" if len(rows) == 1 else f"rows {positions[0]} and {positions[1]}"
        yield Example(f"{place}: {', '.join(cells)}", positions)


def _check_inclusions(
    rules: Sequence[ContractRule],
    opened: Mapping[str, OpenedTable],
    options: ContractCheckOptions,
    run: Run,
    sources: Mapping[str, Any] | None,
    reading: LoadOptions | None,
) -> tuple[list[CheckedRule], list[str]]:
    """Check inclusion dependencies between the tables that are there. A sample is not taken for them."""
    from tuplewise.engine.ind.check import check_dependencies

    names = {name: one.relation.column_names for name, one in opened.items()}
    found, todo, notes = [], [], list[str]()
    for rule in rules:
        assert isinstance(rule.form, InclusionDependency)
        attributes = (*rule.form.dependent, *rule.form.referenced)
        absent = sorted({a.table for a in attributes} - names.keys())
        if absent:
            notes.append(f"rule {rule.id!r} was not checked: table {', '.join(map(repr, absent))} was not given")
            continue
        missing = [str(a) for a in attributes if a.column not in names[a.table]]
        if missing:
            found.append(CheckedRule(rule, None, 0, "rows", reason=f"there is no column {', '.join(missing)}"))
        else:
            todo.append(rule)
    if not todo:
        return found, notes
    in_spark = any(one.in_spark for one in opened.values()) or options.sample is not None
    tables: Mapping[str, Any] = {name: one.relation for name, one in opened.items()}
    if in_spark and sources is not None:
        tables = sources
    inds = [read_inclusion(rule.text, names) for rule in todo]
    checking = options.part(IndCheckOptions)
    checked = check_dependencies(tables, lambda _: inds, checking, reading, Run(deadline=run.deadline))
    notes += [note for note in checked.notes if not note.endswith("it was not read")]
    rows = {name: one.relation.all_rows for name, one in opened.items()}
    return [*found, *(_of_inclusion(*both, rows) for both in zip(todo, checked.checks, strict=True))], notes


def _of_inclusion(rule: ContractRule, check: IndCheck, rows: Mapping[str, int]) -> CheckedRule:
    if check.rows_missing is None:
        return _undecided(rule)
    examples = []
    if check.examples is not None:
        columns = [array.to_pylist() for array in check.examples.values]
        listed = zip(zip(*columns, strict=True), check.examples.counts.tolist(), check.examples.rows, strict=True)
        for values, count, first in listed:
            shown = ", ".join(map(profile_words.shown, values))
            examples.append(Example(f"{shown} is missing, in {count:,} row{'s' * (count > 1)}", tuple(first)))
    of = rows[check.ind.dependent[0].table] - (check.rows_null or 0)
    return CheckedRule(rule, check.rows_missing, of, "rows", tuple(examples), reason=check.reason or "")
