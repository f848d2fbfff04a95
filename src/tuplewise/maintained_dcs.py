"""The public function that keeps denial constraints current, and what it returns; `tuplewise` hands them on."""

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
    """The minimal denial constraints of a table in a folder, kept current as rows come, go and change.

    Parameters
    ----------
    state : folder. With `table` a new or an empty one, in which the state is built; without, one that was built
        before, with the options that it was built with.
    table : what `load` returns, or anything that `load` reads. Its columns, their types and the predicate space are
        fixed from now on.
    progress : called with the name of each step, while the state is built

    Returns
    -------
    MaintainedDcs
        With `.insert()`, `.delete()`, `.update()`, `.constraints`, `.changes()`, `.revision`, `.rows`, `.result()` and
        `.close()`. It is the only writer of the folder until it is closed.

    Raises
    ------
    InputError
        Where the folder holds something, or is no state, damaged, of another version or written by another process;
        where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

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
    """An open state; close it, or use it in a `with` statement.

    Attributes
    ----------
    notes : what was to be said of the table that it was built of
    """

    def __init__(self, state: DcState, notes: Sequence[str] = ()) -> None:
        self._state = state
        self.notes = list(notes)
        self._working = threading.RLock()  # batches of a stream come in threads of their own

    @property
    def constraints(self) -> Sequence[DenialConstraint]:
        """The constraints that are listed now, in result order."""
        with self._working:
            return self._state.constraints()

    @property
    def revision(self) -> int:
        """How many changes there were."""
        return self._state.revision

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._state.rows

    def insert(self, rows: Any, *, bad_rows: str = "fail") -> AppliedRevision:
        """Rows that come, as one revision.

        Parameters
        ----------
        rows : a mapping by column names, or a list of such, or of sequences of values in the order of the columns; or a
            path, a frame, or what `load` returns
        bad_rows : "report" leaves rows out that have a value that doesn't fit its column's type, and notes it

        Returns
        -------
        Applied
            With `revision`, `rows`, `gained` (constraints), `lost` (each with `rule` and `broken_by`, the names of the
            rows t and u that violate it, or None where a constraint that is listed implies it), `row_ids` and `notes`.
        """
        return self._apply(rows, None, bad_rows, lambda batch: self._state.insert(batch))

    def update(self, ids: Any, rows: Any, *, bad_rows: str = "fail") -> AppliedRevision:
        """Rows that change, as one revision: they keep their ids.

        Parameters
        ----------
        ids : the id of each row; None: rows are told by the key of the state, or by a column row_id beside the others
        rows, bad_rows : as for `insert`

        Raises
        ------
        InputError
            Where a row isn't there: nothing is changed.
        """
        return self._apply(rows, (ids,), bad_rows, lambda batch: self._state.update(batch))

    def delete(self, ids: int | Iterable[int] | None = None, *, keys: Any = None) -> AppliedRevision:
        """Rows that go, as one revision, named by their ids or by their keys (a table with the key's columns).

        Raises InputError where a row isn't there: nothing is changed.
        """
        from tuplewise.engine.errors import InputError

        if (ids is None) == (keys is None):
            raise InputError("Rows to delete are named by ids, or by keys=: one of both")
        with self._working:
            return self._state.delete(self._state.row_ids_of(keys) if ids is None else _row_ids(ids))

    def changes(self, since: int, until: int | None = None) -> RuleChanges:
        """What was gained and lost since a revision (until another one; None: now), as `insert` says it."""
        with self._working:
            return self._state.changes(since, until)

    def result(self, revision: int | None = None) -> DcStateResult:
        """All that `tuplewise dc show` says, of now or of an earlier revision: what `discover_dcs` would return."""
        from tuplewise.engine.report.dc_state import DcStateResult

        with self._working:
            return DcStateResult(self._state, revision=revision)

    def foreach_batch(self, stream: str = "stream", *, bad_rows: str = "fail") -> Callable[[Any, int], None]:
        """What a Structured Streaming query of Spark calls with its batches: `frame.writeStream.foreachBatch(...)`.

        Each batch of rows is inserted once, as one revision: one that comes again, because the query ended before Spark
        had written down that it was done, changes nothing. What can't be inserted ends the query, with nothing of the
        batch applied, and comes again with the next start. Keep the state open as long as the query runs; other
        methods may be called meanwhile, and the batches of several queries, which wait for each other.

        Parameters
        ----------
        stream : name of the query, under which the state remembers the number of its last batch. Queries that don't
            share a checkpoint number their batches apart: each needs a name of its own in a state.
        bad_rows : "report" leaves rows out that have a value that doesn't fit its column's type, with a warning in the
            log `tuplewise`

        Returns
        -------
        callable
            Takes a frame, whose columns are those of the state, and the batch's number. Raises InputError as `insert`
            does, and for a batch older than the last one, which must be another query's.

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
        """Let go of the folder."""
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
        """Rows to insert; with `named` to update: by these ids, or by what is in the rows."""
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
    """Whether rows with a value that doesn't fit are left out. Raises InputError for what is no such option."""
    from tuplewise.engine.errors import InputError, message

    if bad_rows not in ("fail", "report"):
        raise InputError(message("bad_rows", bad_rows, "'fail' or 'report'"))
    return bad_rows == "report"


def _row_ids(ids: Any) -> Any:
    """Ids as int64 (ids,). Raises InputError for what is no id."""
    import numpy as np

    from tuplewise.engine.errors import InputError, message

    found = np.atleast_1d(np.asarray(list(ids) if not hasattr(ids, "__array__") and hasattr(ids, "__iter__") else ids))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InputError(message("row ids", ids, "whole numbers, as the state gave them"))
    return found.astype(np.int64)
