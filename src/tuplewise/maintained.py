"""The public function that keeps inclusion dependencies current, and what it returns; `tuplewise` hands them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import IndInitOptions, IndStateOptions, takes
from tuplewise.engine.state_folders import ClosedOnExit

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from tuplewise.engine.ind.dependency import InclusionDependency
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Applied
    from tuplewise.engine.options import IndStateKeywords
    from tuplewise.engine.report.ind_state import IndStateResult


@takes(IndInitOptions)
def maintain_inds(
    state: str | os.PathLike[str],
    tables: Any = None,
    **options: Unpack[IndStateKeywords],
) -> MaintainedInds:
    """The unary inclusion dependencies of tables in a folder, kept current as rows come, go and change.

    Parameters
    ----------
    state : folder. With `tables` a new or an empty one, in which the state is built; without, one that was built
        before, with the options that it was built with.
    tables : list of tables, or tables by name, as for `discover_inds`; the types of their columns are fixed

    Returns
    -------
    MaintainedInds
        With `.insert()`, `.delete()`, `.update()`, `.inds`, `.revision`, `.rows`, `.result()` and `.close()`. It is the
        only writer of the folder until it is closed.

    Raises
    ------
    InputError
        Where the folder holds something, or is no state, damaged, of another version or written by another process;
        where a table or an option can't be used.

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
    """An open state; close it, or use it in a `with` statement.

    Attributes
    ----------
    notes : what was to be said of the tables that it was built of
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
        """How many changes there were."""
        return self._state.revision

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table, by its name."""
        return self._state.rows

    def insert(self, rows: Any, *, table: str | None = None, bad_rows: str = "fail") -> Applied:
        """Rows that come to a table.

        Parameters
        ----------
        rows : a mapping by column names, or a list of such, or of sequences of values in the order of the columns; or a
            path, a frame, or what `load` returns
        table : its name; may be left out where there is one
        bad_rows : "report" leaves rows out that have a value that doesn't fit its column's type, and notes it

        Returns
        -------
        Applied
            With `revision`, `gained`, `lost`, `rows` and `notes`.
        """
        return self._apply([("insert", rows)], table, bad_rows)

    def delete(self, rows: Any, *, table: str | None = None, bad_rows: str = "fail") -> Applied:
        """Rows that go, as for `insert`. Raises InputError where a value is not there so often: nothing is changed."""
        return self._apply([("delete", rows)], table, bad_rows)

    def update(self, old: Any, new: Any, *, table: str | None = None) -> Applied:
        """Rows that change, as one revision: as they were, and, in the same order, as they are."""
        return self._apply([("old", old), ("new", new)], table, "fail")

    def result(self) -> IndStateResult:
        """All that `tuplewise ind show` says."""
        from tuplewise.engine.report.ind_state import IndStateResult

        return IndStateResult(self._state)

    def close(self) -> None:
        """Let go of the folder."""
        self._state.close()

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({rows:,} rows)" for name, rows in self.rows.items())
        return f"<MaintainedInds: revision {self.revision} of {tables} in {str(self._state.folder)!r}>"

    def _apply(self, given: list[tuple[str, Any]], table: str | None, bad_rows: str) -> Applied:
        from dataclasses import replace

        from tuplewise.engine.errors import InputError, message
        from tuplewise.engine.ind.state import Change, update_of

        if bad_rows not in ("fail", "report"):
            raise InputError(message("bad_rows", bad_rows, "'fail' or 'report'"))
        read = [self._state.read_rows(rows, table, leave_out=bad_rows == "report") for _, rows in given]
        if len(read) == 2:
            changes = update_of(*read)
        else:
            changes = [Change("insert" if given[0][0] == "insert" else "delete", read[0].attributes, read[0].rows)]
        applied = self._state.apply(changes)
        notes = tuple(note for one in read for note in one.notes)
        return replace(applied, notes=notes) if notes else applied
