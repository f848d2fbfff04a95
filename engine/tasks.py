"""Each task from a table to a result, for the public functions and the command line; and the run of a task."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import Face, InputError, message, near_names, python_option
from tuplewise.engine.options import (
    ContractCheckOptions,
    DcCheckOptions,
    DcDiscoverOptions,
    DependencyOptions,
    IndCheckOptions,
    IndDiscoverOptions,
    KeyDiscoverOptions,
    LoadOptions,
    OdCheckOptions,
    OdDiscoverOptions,
    ProfileOptions,
    RunOptions,
)
from tuplewise.engine.run import Limits, Progress, Run

if TYPE_CHECKING:
    from tuplewise.engine.contract.contract import Contract
    from tuplewise.engine.contract.diff import Diff
    from tuplewise.engine.contract.diff_result import DiffResult
    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace
    from tuplewise.engine.od.list_od import ListOd
    from tuplewise.engine.report.check_result import CheckResult
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.dependency_result import DependencyResult
    from tuplewise.engine.report.ind_check_result import IndCheckResult
    from tuplewise.engine.report.ind_result import IndResult
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.profile_result import ProfileResult
    from tuplewise.engine.table.in_spark import Table
    from tuplewise.engine.table.read_table import Needed
    from tuplewise.engine.table.relation import Relation

Shown = Mapping[str, Any] | None
"""Options that a result shows besides those of the task and of reading; None: it shows only the task's."""


class TaskRun(Run):
    """The run of a task that opens tables.

    Attributes
    ----------
    notes : notes for the result
    face : spells the options that notes name
    """

    def __init__(self, limits: Limits | None = None, progress: Progress | None = None) -> None:
        super().__init__(limits, progress)
        self.notes: list[str] = []
        self.face: Face = python_option

    def open(
        self, source: Any, options: LoadOptions | None, most_bytes: int | None, device: str, needed: Needed = None
    ) -> Table:
        """Open a table; see `open_table`.

        Neither Spark's start nor reading stops at the time limit; a note says if it has passed by then.
        """
        began = time.monotonic()
        how: dict[str, Any] = {"most_bytes": most_bytes, "device": device, "needed": needed}
        table = self._open(source, options, how)
        if self.over() and table is not source:  # else it was read before
            seconds = time.monotonic() - began
            over = f"the time limit was over before the table was read ({seconds:.1f} s), which it does not interrupt"
            self.notes.append(over)
        return table

    def load(self, source: Any, options: LoadOptions | None, device: str) -> Relation:
        """Load a table of any size."""
        from tuplewise.engine.table.relation import Relation

        table = self.open(source, options, None, device)
        assert isinstance(table, Relation), "tables of any size come here"
        return table

    def _open(self, source: Any, options: LoadOptions | None, how: Mapping[str, Any]) -> Table:
        from tuplewise.engine.table.table import open_table

        return open_table(source, options, progress=self.step, **how)

    def handed_on(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments of a result besides what was found. `options`: those that it shows; None: the task's own."""
        return {
            "options": options, "notes": self.notes, "total_seconds": self.seconds, "face": self.face,
        }  # fmt: skip


def discover_dcs(
    table: Any,
    options: DcDiscoverOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    space: KeptSpace | None = None,
    shown: Shown = None,
) -> DcResult:
    """Discover the minimal denial constraints of a table. `space`: that of a state, in place of the table's own."""
    from tuplewise.engine.dc.discover import discover, most_bytes_to_search
    from tuplewise.engine.report.dc_result import DcResult

    read = run.open(table, reading, most_bytes_to_search(options), options.device)
    found = discover(read, options, run=run) if space is None else space.discover(read, options, run=run)
    return DcResult(found, **run.handed_on(_record(options, reading, shown)))


def discover_dependencies(
    table: Any, options: DependencyOptions, run: TaskRun, *, reading: LoadOptions | None = None, shown: Shown = None
) -> DependencyResult:
    """Discover the minimal dependencies of a table, of the kind of the options: keys, functional or order ones."""
    from tuplewise.engine.od.discover import discover, most_bytes_to_search

    result = _result_of(options)
    read = run.open(table, reading, most_bytes_to_search(options), options.device)
    return result(discover(read, options, run), **run.handed_on(_record(options, reading, shown)))


def _result_of(options: DependencyOptions) -> type[DependencyResult]:
    """The class of the result for options."""
    if isinstance(options, OdDiscoverOptions):
        from tuplewise.engine.report.od_result import OdResult

        return OdResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult

    return KeyResult if isinstance(options, KeyDiscoverOptions) else FdResult


def check_dcs(
    table: Any,
    rules: Callable[[Sequence[str]], tuple[Sequence[DenialConstraint], Sequence[str]]],
    options: DcCheckOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    here: bool = False,
    shown: Shown = None,
) -> CheckResult:
    """Whether rules hold in a table.

    `rules`: reads them, given the names of the columns; with notes. `here`: rows have to be in this process.
    """
    from tuplewise.engine.dc.violations.detect import check_rules
    from tuplewise.engine.placement import most_bytes_here
    from tuplewise.engine.report.check_result import CheckResult

    needed = None
    for names in _names_before(table, reading):  # what is wrong with rules is said before the table is read
        _check_key(options.key, names)
        needed = _needed({*options.key, *(name for rule in rules(names)[0] for name in rule.columns)}, reading)
    read = run.open(table, reading, None if here else most_bytes_here(options), options.device, needed)
    _check_key(options.key, read.column_names)
    wanted, notes = rules(read.column_names)
    found = check_rules(read, wanted, options, run=run)
    run.notes += notes
    return CheckResult(found, **run.handed_on(_record(options, reading, shown)))


def _check_key(key: Collection[str], columns: Sequence[str]) -> None:
    for name in key:
        if name not in columns:
            raise InputError(message("key: there is no column of the name", name, hint=near_names(name, columns)))


def check_ods(
    table: Any,
    ods: Callable[[Sequence[str]], tuple[Sequence[ListOd], Sequence[str]]],
    options: OdCheckOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    shown: Shown = None,
) -> OdCheckResult:
    """Check list order dependencies on a table, or against those that were discovered in it.

    `table`: an OdResult, a SavedOds, or a table. `ods`: reads them, given the column names, and returns notes too.
    """
    from tuplewise.engine.od.check import check_saved, check_table
    from tuplewise.engine.od.implied import SavedOds
    from tuplewise.engine.placement import most_bytes_here
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.od_result import OdResult

    if isinstance(table, (OdResult, SavedOds)):
        saved = table.known if isinstance(table, OdResult) else table
        wanted, notes = ods(saved.names)
        found = check_saved(saved, wanted, options)
    else:
        needed = None
        for names in _names_before(table, reading):
            lists = [item.name for od in ods(names)[0] for item in (*od.left, *od.right)]
            needed = _needed(set(lists), reading)
        read = run.open(table, reading, most_bytes_here(options), options.device, needed)
        wanted, notes = ods(read.column_names)
        found = check_table(read, wanted, options, run=run)
    run.notes += notes
    return OdCheckResult(found, **run.handed_on(_record(options, reading, shown)))


def discover_inds(
    tables: Mapping[str, Any],
    options: IndDiscoverOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    shown: Shown = None,
) -> IndResult:
    """Discover the inclusion dependencies between the columns of tables, given by name."""
    from tuplewise.engine.ind.discover import discover
    from tuplewise.engine.report.ind_result import IndResult

    found = discover(tables, options, reading, run=run)
    return IndResult(found, **run.handed_on(_record(options, reading, shown)))


def check_inds(
    tables: Mapping[str, Any],
    inds: Any,
    options: IndCheckOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    shown: Shown = None,
) -> IndCheckResult:
    """Check inclusion dependencies between tables, given by name."""
    from tuplewise.engine.report.ind_check_result import IndCheckResult, check_tables

    found, notes = check_tables(tables, inds, options, reading, run=run)
    run.notes += notes
    return IndCheckResult(found, **run.handed_on(_record(options, reading, shown)))


def profile(
    tables: Mapping[str, Any],
    options: ProfileOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    contract: str | os.PathLike[str] | None = None,
    shown: Shown = None,
) -> ProfileResult:
    """Find the few rules worth keeping of tables, given by name. `contract`: the file that they are proposed in."""
    from tuplewise.engine.contract.file import ContractFile
    from tuplewise.engine.profile.discover import profile as search
    from tuplewise.engine.report.profile_result import ProfileResult

    kept = None if contract is None else ContractFile.opened(contract, options.nulls)
    opened = _open_all(tables, options, run, reading)
    found = search(opened, options, run, sources=tables, reading=reading)
    if kept is not None:
        run.notes.append(kept.propose(found))
    return ProfileResult(found, **run.handed_on(_record(options, reading, shown)))


def check_contract(
    tables: Any,
    contract: Contract,
    options: ContractCheckOptions,
    run: TaskRun,
    *,
    reading: LoadOptions | None = None,
    shown: Shown = None,
) -> ContractResult:
    """Check the accepted rules of a contract on its tables: by their names there, a single one by any name."""
    from tuplewise.engine.contract.check import check_contract as check
    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.contract.tables import tables_of_contract

    named = tables_of_contract(contract, tables)
    opened = _open_all(named, options, run, reading, contract)
    found = check(contract, opened, options, run, sources=named, reading=reading)
    return ContractResult(found, **run.handed_on(_record(options, reading, shown)))


def diff(
    a: Any, b: Any, options: ProfileOptions, run: TaskRun, *, reading: LoadOptions | None = None, shown: Shown = None
) -> DiffResult:
    """What differs between two tables, contracts or results, or between a contract and a table.

    Raises InputError for two of other kinds.
    """
    from tuplewise.engine.contract import diff_sides
    from tuplewise.engine.contract.diff import compare
    from tuplewise.engine.contract.diff_result import DiffResult

    kinds = (diff_sides.kind_of(a), diff_sides.kind_of(b))
    if kinds == ("result", "result"):
        found = compare(diff_sides.result_side(a), diff_sides.result_side(b), options, timings_seconds={})
    elif kinds == ("contract", "contract"):
        found = compare(diff_sides.contract_side(a), diff_sides.contract_side(b), options, timings_seconds={})
    elif kinds in (("table", "table"), ("contract", "table")):
        found = _diff_with_table(a, b, kinds[0] == "contract", options, run, reading)
    else:
        allowed = "two tables, two contracts, two results, or a contract and a table"
        raise InputError(message("these two can't be compared", f"a {kinds[0]} and a {kinds[1]}", allowed))
    return DiffResult(found, **run.handed_on(_record(options, reading, shown)))


def _diff_with_table(
    a: Any, b: Any, with_contract: bool, options: ProfileOptions, run: TaskRun, reading: LoadOptions | None
) -> Diff:
    """What differs between a contract or a table, and a table."""
    from tuplewise.engine.contract import diff_sides
    from tuplewise.engine.contract.diff import compare_tables, compare_with_table
    from tuplewise.engine.contract.file import read_contract
    from tuplewise.engine.ind.tables import name_tables
    from tuplewise.engine.profile.discover import profile as search

    (name,) = name_tables(b)
    called = [str(one) if isinstance(one, (str, os.PathLike)) else side for one, side in ((a, "A"), (b, "B"))]
    if with_contract:
        contract = read_contract(a)
        (table,) = _open_all({name: b}, options, run, reading).values()
        return compare_with_table(contract, diff_sides.contract_side(contract), table, called[1], options, run)
    tables = [_open_all({name: one}, options, run, reading)[name] for one in (a, b)]
    found = [
        search({name: table}, options, run, sources={name: source}, reading=reading)
        for table, source in zip(tables, (a, b), strict=True)
    ]
    return compare_tables(found, tables, called, options, run)


def _open_all(
    tables: Mapping[str, Any],
    options: RunOptions,
    run: TaskRun,
    reading: LoadOptions | None,
    contract: Contract | None = None,
) -> dict[str, Table]:
    """Tables of any size, opened under their names; with the types of a contract where their values allow it."""
    from tuplewise.engine.ind.tables import options_of_tables
    from tuplewise.engine.placement import most_bytes_here

    each, most = options_of_tables(tables, reading), most_bytes_here(options)
    opened = {}
    for name, source in tables.items():
        typed, needed = each[name], None
        if contract is not None:
            typed, needed = _as_kept(contract, name, source, typed)
        try:
            table = run.open(source, typed, most, options.device, needed)
        except InputError:
            if typed == each[name]:
                raise
            table = run.open(source, each[name], most, options.device, needed)
        opened[name] = replace(table, name=name)
    return opened


def _as_kept(contract: Contract, name: str, source: Any, reading: LoadOptions) -> tuple[LoadOptions, Needed]:
    """Reading options with the types that a contract has for a table; and the columns that it names.

    A file tells types by its values alone: codes of digits are text in the contract, and may look like numbers.
    """
    from tuplewise.engine.contract.forms import InclusionDependency, columns_of

    names = _names_before(source, reading)
    columns = contract.tables[name].columns or ()
    named = {column.name for column in columns}
    for rule in contract.accepted():
        if isinstance(rule.form, InclusionDependency):
            named |= {a.column for a in (*rule.form.dependent, *rule.form.referenced) if a.table == name}
        elif rule.table == name:
            named.update(columns_of(rule.form))
    known = set(names[0]) if names else set()
    types = {c.name: c.type for c in columns if c.type is not None and c.name in known and c.name not in reading.types}
    typed = replace(reading, types={**types, **reading.types}) if types else reading
    return typed, _needed(named & known, reading) if known else None


def _needed(named: set[str], reading: LoadOptions | None) -> frozenset[str] | None:
    """The columns that must be comparable: those that rules name, unless columns were selected."""
    return frozenset(named) if reading is None or reading.columns is None else None


def _names_before(table: Any, reading: LoadOptions | None) -> list[list[str]]:
    """A list with the column names of a table if they are known before reading; else an empty list."""
    from tuplewise.engine.table.peek import known_columns
    from tuplewise.engine.table.relation import Relation

    names = None if isinstance(table, Relation) else known_columns(table, reading or LoadOptions())
    return [] if names is None else [names]


def _record(options: Any, reading: LoadOptions | None, shown: Shown) -> dict[str, Any] | None:
    from tuplewise.engine.report import model

    return None if shown is None else model.options_record(*([reading] if reading else []), options, **shown)
