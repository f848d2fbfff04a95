"""The fixed part of a state, for a discovery from scratch (`dc discover --space-from STATE`)."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace

from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DcDiscoverOptions, LoadOptions, fixed_by_a_state
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Relation, TypeName


@dataclass(frozen=True, eq=False)
class KeptSpace:
    """The predicate space of a state, its columns and their types, and the options that define its rules.

    Examples
    --------
    `discover(table read with load_options(...), discover_options(...))` finds the constraints that the state would hold
    for the rows of the table.
    """

    space: PredicateSpace
    options: DcDiscoverOptions
    types: tuple[TypeName, ...]
    null_tokens: tuple[str, ...]

    @classmethod
    def of_state(cls, folder: str | os.PathLike[str]) -> KeptSpace:
        """Read the space of the state in a folder. Raises InputError as opening the state does."""
        with DcState(folder, write=False, device="cpu") as state:
            types = tuple(column.type for column in state.columns)
            return cls(state.space, state.options.discover, types, tuple(state.null_tokens))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in the order of the state."""
        return self.space.names

    def load_options(self, given: LoadOptions | None = None) -> LoadOptions:
        """Options for reading a table: `given`, with the state's columns, types and nulls."""
        types = dict(zip(self.names, self.types, strict=True))
        return replace(
            given or LoadOptions(), columns=self.names, exclude=(), types=types, null_tokens=self.null_tokens
        )

    def discover_options(self, options: DcDiscoverOptions, given: Collection[str] = ()) -> DcDiscoverOptions:
        """Options for discovery: `options`, with the state's options that define its rules.

        Raises InputError if one of these was requested: its name is in `given`, or its value is not the default.
        """
        plain, fixed = DcDiscoverOptions(), fixed_by_a_state(DcDiscoverOptions)
        asked = [n for n in fixed if n in given or getattr(options, n) != getattr(plain, n)]
        if asked:
            hint = "Leave them out: the state says which rules there are"
            raise InputError(message("options that a state of space_from fixes", ", ".join(asked), hint=hint))
        return replace(options, **{name: getattr(self.options, name) for name in fixed})

    def discover(self, table: Table, options: DcDiscoverOptions, run: Run) -> DcDiscovery:
        """`discover.discover` in this space. Raises InputError if a column is missing or has another type."""
        if isinstance(table, Relation):
            table = self._matched(table)
        return discover(table, options, space=self.space, run=run)

    def _matched(self, relation: Relation) -> Relation:
        """Restrict the relation to the state's columns, in the state's order."""
        chosen = relation.select(self.names)
        faults = [
            message(f"type of column {column.name!r} of table {relation.name!r}", column.type, f"{kept!r}, the state's")
            for column, kept in zip(chosen.columns, self.types, strict=True)
            if column.domain != DOMAIN_OF_TYPE[kept]
        ]
        if faults:
            hint = "Load it with the types that the state has, or hand over the path or frame itself"
            raise InputError(f"{'; '.join(faults)}. {hint}")
        return chosen
