"""The profile of tables: the few rules of each that are worth keeping, and references between tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuplewise.engine.errors import LimitReached, placed
from tuplewise.engine.options import LoadOptions, Nulls, ProfileOptions
from tuplewise.engine.placement import refuse_spark
from tuplewise.engine.profile.columns import Frequent, Histogram, Warning_, warnings
from tuplewise.engine.profile.inclusions import Inclusion, inclusions
from tuplewise.engine.profile.search import Profiled, RuleSearch
from tuplewise.engine.profile.table import ProfiledTable, TableHere
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import Device, pick_device


@dataclass(frozen=True, eq=False)
class TableProfile:
    """The profile of one table: its rules, its columns, and warnings."""

    table: ProfiledTable
    nulls: Nulls
    found: Profiled
    distributions: tuple[Histogram | Frequent | None, ...]
    warnings: tuple[Warning_, ...]

    @property
    def relation(self) -> Relation:
        """Its columns, and what it was read from; of a table in Spark without rows."""
        return self.table.relation


@dataclass(frozen=True, eq=False)
class Profile:
    """The profile of some tables.

    Attributes
    ----------
    tables : by name, in the order given
    inclusions : likely foreign keys between tables, best first
    held_back : counted rules that are not shown
    """

    tables: Mapping[str, TableProfile]
    inclusions: tuple[Inclusion, ...]
    held_back: int
    options: ProfileOptions
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: tuple[str, ...]

    @property
    def relation(self) -> Relation:
        """The first table."""
        return next(iter(self.tables.values())).relation


def profile(
    tables: Mapping[str, Table],
    options: ProfileOptions | None = None,
    run: Run | None = None,
    *,
    sources: Mapping[str, Any] | None = None,
    reading: LoadOptions | None = None,
) -> Profile:
    """Find the rules of tables that are worth keeping, best first.

    Parameters
    ----------
    tables : by name
    run : rules counted by its time limit are listed; None: one that starts now, with the options' limits
    sources, reading : the sources of the tables and their options: if a table is in Spark, references are found there

    Raises
    ------
    DeviceError
        For a device that was asked for and can't be had.
    """
    options = options or ProfileOptions()
    run = run or Run(options)
    device = pick_device(options.device)
    clock = Clock()
    profiled: dict[str, TableProfile] = {}
    notes: list[str] = []
    for name, opened in tables.items():
        table = _profiled(opened, options, device, run)
        found = RuleSearch(table, options, run).run()
        clock.lap("rules")
        profiled[name] = _with_columns(table, options.nulls, found)
        clock.lap("columns")
        said = profiled[name].found.notes
        notes += placed(name, said) if len(tables) > 1 else said
    between: list[Inclusion] = []
    others, late = 0, False
    sources = sources if any(not isinstance(table, Relation) for table in tables.values()) else None
    held = _not_read_by_spark(sources or {})
    if len(tables) > 1 and held:
        notes.append(f"references were not looked for: some rows are in Spark, which can't read {', '.join(held)}")
    elif len(tables) > 1:
        columns = {name: one.relation for name, one in profiled.items()}
        how = reading if sources else None
        between, others, late = inclusions(columns, options, run, sources=sources, reading=how)
        if late:
            notes.append("the time limit came before references between tables were looked for")
        clock.lap("references")
    return Profile(
        tables=profiled,
        inclusions=tuple(between[: options.limit]),
        held_back=others + sum(table.found.held_back for table in profiled.values()),
        options=options,
        device=device.described,
        device_reason=device.reason,
        timings_seconds=clock.seconds,
        partial=late or any(table.found.partial for table in profiled.values()),
        notes=tuple(notes),
    )


def _profiled(opened: Table, options: ProfileOptions, device: Device, run: Run) -> ProfiledTable:
    """A table as the search takes it, wherever its rows are."""
    if isinstance(opened, Relation):
        refuse_spark(options, opened.name)
        return TableHere(opened, options, device, run)
    from tuplewise.engine.profile.spark_table import TableInTasks
    from tuplewise.engine.table.spark_encoded import encode_for

    return TableInTasks(encode_for("profiled", opened, opened.column_names, run.step), options, run)


def _with_columns(table: ProfiledTable, nulls: Nulls, found: Profiled) -> TableProfile:
    """A table with its rules, and what there is to say of its columns, unless the time limit comes first."""
    spread: list[Histogram | Frequent | None] = [None] * len(table.relation.columns)
    warned: list[Warning_] = []
    try:
        spread = table.distributions()
        warned += warnings(table, found.listed)
    except LimitReached:
        late = "the time limit came before it was told of all columns how their values are spread, and what is odd"
        found = replace(found, partial=True, notes=(*found.notes, late))
    return TableProfile(table, nulls, found, tuple(spread), tuple(warned))


def _not_read_by_spark(sources: Mapping[str, Any]) -> list[str]:
    from tuplewise.engine.ind.places import read_by_spark

    return [name for name, source in sources.items() if not read_by_spark(source)]
