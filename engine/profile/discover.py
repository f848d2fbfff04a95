"""The profile of tables: the few rules of each that are worth keeping, and how they refer to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuplewise.engine.options import Nulls, ProfileOptions
from tuplewise.engine.profile.columns import Frequent, Histogram, Warning_, distribution, warnings
from tuplewise.engine.profile.inclusions import Inclusion, inclusions
from tuplewise.engine.profile.rows import Rows
from tuplewise.engine.profile.search import Profiled, profile_table
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import pick_device


@dataclass(frozen=True, eq=False)
class TableProfile:
    """One table: its rules, its columns, and what is odd about it."""

    relation: Relation
    rows: Rows
    nulls: Nulls
    found: Profiled
    distributions: tuple[Histogram | Frequent | None, ...]
    warnings: tuple[Warning_, ...]


@dataclass(frozen=True, eq=False)
class Profile:
    """What a profile found.

    Attributes
    ----------
    tables : by name, in the order given
    inclusions : likely foreign keys between tables, best first
    held_back : rules that were counted and are not shown
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
    tables: Mapping[str, Relation],
    options: ProfileOptions | None = None,
    run: Run | None = None,
) -> Profile:
    """The rules of tables that are worth keeping, best first.

    Parameters
    ----------
    tables : by name
    run : what is counted at its time limit is listed; None: one that begins now, with the options' limits

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
    for name, relation in tables.items():
        found = profile_table(relation, options, device, run)
        clock.lap("rules")
        rows = Rows(relation, options.nulls, device)
        spread = tuple(distribution(relation, i) for i in range(len(relation.columns)))
        odd = tuple(warnings(relation, rows, found.listed))
        profiled[name] = TableProfile(relation, rows, options.nulls, found, spread, odd)
        clock.lap("columns")
        notes += [f"{name}: {note}" if len(tables) > 1 else note for note in found.notes]
    between: list[Inclusion] = []
    others, late = 0, False
    if len(tables) > 1:
        between, others, late = inclusions(tables, options, run)
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
