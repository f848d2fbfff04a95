"""Public function for keeping denial constraints current, and its result type, re-exported by `tuplewise`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import OF_A_STATE, DcDiscoverOptions, DcStateOptions, LoadOptions, takes
from tuplewise.engine.state_folders import ClosedOnExit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Unpack

    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.incremental.applied import AppliedRevision, RuleChanges
    from tuplewise.engine.dc.incremental.rows import RowBatch
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.options import DcStateKeywords
    from tuplewise.engine.report.dc_state import DcStateResult


@takes(DcStateOptions, DcDiscoverOptions, LoadOptions, only={*OF_A_STATE, "null_tokens"})
def maintain_dcs(
    state: str | os.PathLike[str],
    table: Any = None,
    *,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[DcStateKeywords],
) -> MaintainedDcs:
    """Keep the minimal denial constraints of a table current as rows are inserted, deleted and updated.

    Parameters
    ----------
    state : folder of the state
        With `table`, a new or empty folder, where the state is built. Without, the folder of an existing state, which
        keeps the options that it was built with.
    table : what load returns, or anything that load reads
        Its columns, their types and the predicate space are fixed from then on.
    progress : called with the name of each step while the state is built

    Returns
    -------
    MaintainedDcs
        With `.insert()`, `.delete()`, `.update()`, `.constraints`, `.changes()`, `.revision`, `.rows`, `.result()` and
        `.close()`. It is the only writer of the folder until it is closed.

    Raises
    ------
    InputError
        If a new state's folder is not empty; if the folder is not a state, is damaged, has another version or is
        written by another process; if the table or an option can't be used.
    DeviceError
        If a requested device is not available.

    Examples
    --------
    >>> import tempfile, pandas as pd, tuplewise as tw
    >>> table = pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "B"]})
    >>> with tempfile.TemporaryDirectory() as folder, tw.maintain_dcs(folder, table) as state:
    ...     change = state.insert({"zip": "02", "city": "C"})
    ...     print(change.revision, *(f"{lost.rule} broken by {lost.broken_by}" for lost in change.lost), sep="; ")
    1; not(t.zip == u.zip and t.city != u.city) broken by (3, 2)
    """
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.errors import InputError, message

    given: dict[str, Any] = {**options}
    reading = LoadOptions(null_tokens=given.pop("null_tokens", ()))
    asked = DcStateOptions.of("maintain_dcs", given)
    device = asked.discover.device
    if table is None:
        if reading.null_tokens or asked != DcStateOptions(discover=DcDiscoverOptions(device=device)):
            hint = "Leave the options out, or name the table to build a state of"
            raise InputError(message("a state that was built before keeps its options", str(state), hint=hint))
        return MaintainedDcs(DcState(state, device=device))
    from tuplewise.engine.dc.incremental import initial
    from tuplewise.engine.report.version import version
    from tuplewise.engine.table.table import load

    initial.check_folder(state)
    relation = load(table, reading, progress=progress, device=device)
    how: dict[str, Any] = {"written_by": version(), "null_tokens": reading.null_tokens}
    initial.build(state, relation, asked, **how, progress=progress)
    return MaintainedDcs(DcState(state, device=device), initial.notes_on_first_rows(relation))


class MaintainedDcs(ClosedOnExit):
    """An open state. Close it after use, or use it in a `with` statement.

    Attributes
    ----------
    notes : notes on the table that the state was built from
    """

    def __init__(self, state: DcState, notes: Sequence[str] = ()) -> None:
        self._state = state
        self.notes = list(notes)
        self._working = threading.RLock()  # batches of a stream arrive in their own threads

    @property
    def constraints(self) -> Sequence[DenialConstraint]:
        """The constraints listed now, in result order."""
        with self._working:
            return self._state.constraints()

    @property
    def revision(self) -> int:
        """Number of revisions so far."""
        return self._state.revision

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._state.rows

    def insert(self, rows: Any, *, bad_rows: str = "fail") -> AppliedRevision:
        """Insert rows as one revision.

        Parameters
        ----------
        rows : rows in any form
            A mapping by column names; a list of such mappings, or of sequences of values in column order; a path; a
            frame; or what `load` returns.
        bad_rows : "report" leaves out rows with a value that doesn't fit its column's type, and adds a note

        Returns
        -------
        AppliedRevision
            With `revision`, `rows`, `gained` (constraints), `lost`, `row_ids` and `notes`. Each entry of `lost` has
            `rule` and `broken_by`: the names of violating rows t and u, or None if a listed constraint implies it.
        """
        return self._apply(rows, None, bad_rows, lambda batch: self._state.insert(batch))

    def update(self, ids: Any, rows: Any, *, bad_rows: str = "fail") -> AppliedRevision:
        """Update rows as one revision. They keep their ids.

        Parameters
        ----------
        ids : the id of each row; None: rows are found by the state's key, or by an extra column `row_id`
        rows, bad_rows : as for `insert`

        Raises
        ------
        InputError
            If a row doesn't exist; nothing is changed then.
        """
        return self._apply(rows, (ids,), bad_rows, lambda batch: self._state.update(batch))

    def delete(self, ids: int | Iterable[int] | None = None, *, keys: Any = None) -> AppliedRevision:
        """Delete rows as one revision, by their ids or by their keys (a table with the key's columns).

        Raises InputError if a row doesn't exist; nothing is changed then.
        """
        from tuplewise.engine.errors import InputError

        if (ids is None) == (keys is None):
            raise InputError("Rows to delete are named by ids, or by keys=: one of both")
        with self._working:
            return self._state.delete(self._state.row_ids_of(keys) if ids is None else _row_ids(ids))

    def changes(self, since: int, until: int | None = None) -> RuleChanges:
        """Constraints gained and lost between two revisions (`until` None: now), in the form that `insert` returns."""
        with self._working:
            return self._state.changes(since, until)

    def result(self, revision: int | None = None) -> DcStateResult:
        """The result that `discover_dcs` would return now or at an earlier revision, as in `tuplewise dc show`."""
        from tuplewise.engine.report.dc_state import DcStateResult

        with self._working:
            return DcStateResult(self._state, revision=revision)

    def foreach_batch(self, stream: str = "stream", *, bad_rows: str = "fail") -> Callable[[Any, int], None]:
        """Make the function that a Spark Structured Streaming query takes: `frame.writeStream.foreachBatch(...)`.

        Each batch is inserted exactly once, as one revision. Spark repeats a batch if the query ended before it
        recorded the batch as done; the repeat changes nothing. A batch that can't be inserted ends the query. Nothing
        of that batch is applied, and Spark repeats it at the next start. Keep the state open while the query runs.
        Other methods may be called meanwhile. Batches of several queries wait for each other.

        Parameters
        ----------
        stream : name of the query
            The state stores the number of the query's last batch under this name. Queries without a common checkpoint
            number their batches separately, so each needs its own name in a state.
        bad_rows : "fail" or "report"
            "report" leaves out rows with a value that doesn't fit its column's type, and logs a warning (`tuplewise`).

        Returns
        -------
        callable
            Takes a frame with the state's columns, and the batch's number. Raises InputError as `insert` does, and for
            a batch older than the last one, which must belong to another query.

        Examples
        --------
        >>> with tw.maintain_dcs("orders_rules") as state:  # doctest: +SKIP
        ...     writer = orders.writeStream.foreachBatch(state.foreach_batch("orders"))
        ...     writer.option("checkpointLocation", "orders_checkpoint").start().awaitTermination()
        """
        leave_out = _leaves_out(bad_rows)

        def insert(frame: Any, number: int) -> None:
            from tuplewise.engine.dc.incremental.stream import insert_batch

            insert_batch(self._state, frame, number, stream, self._working, leave_out=leave_out)

        return insert

    def close(self) -> None:
        """Close the state and release its folder."""
        with self._working:
            self._state.close()

    def __repr__(self) -> str:
        return (
            f"<MaintainedDcs: revision {self.revision} of {self._state.name} ({self.rows:,} rows), "
            f"{len(self.constraints):,} constraints, in {str(self._state.folder)!r}>"
        )

    def _apply(
        self, rows: Any, named: tuple[Any] | None, bad_rows: str, apply: Callable[[RowBatch], AppliedRevision]
    ) -> AppliedRevision:
        """Insert rows; with `named`, update them by these ids or by the keys or ids in the rows."""
        from dataclasses import replace

        from tuplewise.engine.errors import InputError, message

        leave_out = _leaves_out(bad_rows)
        by_rows = named is not None and named[0] is None
        with self._working:
            batch = self._state.read(rows, leave_out=leave_out, with_row_id=by_rows)
            if named is not None and not by_rows:
                ids = _row_ids(named[0])
                if len(ids) != len(batch.codes):
                    what = message("not as many ids as rows", f"{len(ids)} ids, {len(batch.codes)} rows")
                    raise InputError(what + ". Name each row by one id, in their order")
                batch = replace(batch, row_ids=ids)
            applied = apply(batch)
        return replace(applied, notes=tuple(dict.fromkeys((*batch.notes, *applied.notes))))


def _leaves_out(bad_rows: str) -> bool:
    """Whether rows with a value that doesn't fit are left out. Raises InputError for an unknown option."""
    from tuplewise.engine.errors import InputError, message

    if bad_rows not in ("fail", "report"):
        raise InputError(message("bad_rows", bad_rows, "'fail' or 'report'"))
    return bad_rows == "report"


def _row_ids(ids: Any) -> Any:
    """Ids as int64 (ids,). Raises InputError for a value that is not an id."""
    import numpy as np

    from tuplewise.engine.errors import InputError, message

    found = np.atleast_1d(np.asarray(list(ids) if not hasattr(ids, "__array__") and hasattr(ids, "__iter__") else ids))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InputError(message("row ids", ids, "whole numbers, as the state gave them"))
    return found.astype(np.int64)
