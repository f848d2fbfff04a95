"""Public function and class for maintained inclusion dependencies, exported by `tuplewise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import IndInitOptions, IndStateOptions, takes
from tuplewise.engine.state_folders import ClosedOnExit

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from tuplewise.engine.ind.dependency import InclusionDependency
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Applied, Kind
    from tuplewise.engine.options import IndStateKeywords
    from tuplewise.engine.report.ind_state import IndStateResult


@takes(IndInitOptions)
def maintain_inds(
    state: str | os.PathLike[str],
    tables: Any = None,
    **options: Unpack[IndStateKeywords],
) -> MaintainedInds:
    """Keep the inclusion dependencies between single columns current as rows are inserted, deleted and updated.

    Parameters
    ----------
    state : folder of the state
        With `tables`, a new or empty folder, where the state is built. Without, the folder of an existing state, which
        keeps the options that it was built with.
    tables : list of tables, or tables by name
        As for `discover_inds`. The column types are fixed from then on.

    Returns
    -------
    MaintainedInds
        With `.insert()`, `.delete()`, `.update()`, `.inds`, `.revision`, `.rows`, `.result()` and `.close()`. It is the
        only writer of the folder until it is closed.

    Raises
    ------
    InputError
        If the folder for a new state is not empty; if an existing one is no state, is damaged, is of another version,
        or is in use by another writer; if a table or an option can't be used.

    Examples
    --------
    >>> import tempfile, pandas as pd, tuplewise as tw
    >>> table = pd.DataFrame({"a": ["x", "y"], "b": ["x", "z"]})
    >>> with tempfile.TemporaryDirectory() as folder, tw.maintain_inds(folder, {"t": table}) as state:
    ...     change = state.insert({"a": "z", "b": "y"})
    ...     print(change.revision, *change.gained, sep=", ")
    1, t.a <= t.b, t.b <= t.a
    """
    from tuplewise.engine.errors import InputError, message
    from tuplewise.engine.ind.open_state import build_state, open_state
    from tuplewise.engine.ind.tables import name_tables
    from tuplewise.engine.report.version import version

    asked = IndInitOptions.of("maintain_inds", options)
    kept = asked.part(IndStateOptions)
    if tables is None:
        if kept != IndStateOptions():
            hint = "Leave the options out, or name the tables to build a state of"
            raise InputError(message("a state that was built before keeps its options", str(state), hint=hint))
        return MaintainedInds(open_state(state))
    built = build_state(state, name_tables(tables), kept, run_on=asked.run_on, written_by=version())
    return MaintainedInds(open_state(built.folder), built.notes)


class MaintainedInds(ClosedOnExit):
    """An open state. Close it, or use it in a `with` statement.

    Attributes
    ----------
    notes : notes from the build on its tables; empty for a state opened without `tables`
    """

    def __init__(self, state: AnyState, notes: tuple[str, ...] = ()) -> None:
        self._state = state
        self.notes = list(notes)

    @property
    def inds(self) -> list[InclusionDependency]:
        """The dependencies that hold, by dependent and referenced columns."""
        return [found.ind for found in self._state.found().inds]

    @property
    def revision(self) -> int:
        """Number of changes since the build."""
        return self._state.revision

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table, by table name."""
        return self._state.rows

    def insert(self, rows: Any, *, table: str | None = None, bad_rows: str = "fail") -> Applied:
        """Insert rows into a table.

        Parameters
        ----------
        rows : rows in any form
            A mapping by column names; a list of such mappings, or of sequences of values in column order; a path; a
            frame; or what `load` returns.
        table : name of the table; optional if there is only one
        bad_rows : "report" skips rows with a value that doesn't fit its column's type, and adds a note; "fail" raises

        Returns
        -------
        Applied
            With `revision`, `gained`, `lost`, `rows` and `notes`.
        """
        return self._apply([("insert", rows)], table, bad_rows)

    def delete(self, rows: Any, *, table: str | None = None, bad_rows: str = "fail") -> Applied:
        """Delete rows, given as for `insert`. Raises InputError if a value occurs too seldom: nothing is changed."""
        return self._apply([("delete", rows)], table, bad_rows)

    def update(self, old: Any, new: Any, *, table: str | None = None) -> Applied:
        """Replace rows, as one revision. `new` has the same number of rows as `old`, in the same order."""
        return self._apply([("delete", old), ("insert", new)], table, "fail")

    def result(self) -> IndStateResult:
        """Everything that `tuplewise ind show` reports."""
        from tuplewise.engine.report.ind_state import IndStateResult

        return IndStateResult(self._state)

    def close(self) -> None:
        """Close the state and release its folder."""
        self._state.close()

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({rows:,} rows)" for name, rows in self.rows.items())
        return f"<MaintainedInds: revision {self.revision} of {tables} in {str(self._state.folder)!r}>"

    def _apply(self, given: list[tuple[Kind, Any]], table: str | None, bad_rows: str) -> Applied:
        from dataclasses import replace

        from tuplewise.engine.errors import InputError, message
        from tuplewise.engine.ind.state import Change, update_of

        if bad_rows not in ("fail", "report"):
            raise InputError(message("bad_rows", bad_rows, "'fail' or 'report'"))
        read = [self._state.read_rows(rows, table, leave_out=bad_rows == "report") for _, rows in given]
        changes = update_of(*read) if len(read) == 2 else [Change(given[0][0], read[0].attributes, read[0].rows)]
        applied = self._state.apply(changes)
        notes = tuple(note for one in read for note in one.notes)
        return replace(applied, notes=notes) if notes else applied
