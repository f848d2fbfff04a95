"""Batches of a Structured Streaming query that come to a state, each inserted once, by its number."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.frames import kind_of
from tuplewise.engine.table.spark_load import load_with_spark, spark_failures


def insert_batch(
    state: DcState, frame: Any, number: int, stream: str, working: AbstractContextManager[Any], *,
    leave_out: bool = False,
) -> None:  # fmt: skip
    """Insert a batch of a stream, unless it was inserted before.

    Parameters
    ----------
    frame : the batch, of Spark or another kind; a column of text is read as the type that its column has in the state
    number : of the batch. Those of a query ascend, and only the last one comes again.
    stream : what tells the numbers of several queries apart
    working : held while the state is used; the batch's own plan is computed before
    leave_out : leave rows out that have a value that doesn't fit, with a warning in the log `tuplewise`

    Raises
    ------
    InputError
        Where the batch can't be read or inserted, or is older than the last one that was. Nothing is then changed.

    Notes
    -----
    Spark writes down which rows are batch n before it hands them over, and that it is done after; the state writes n in
    the same record as what the batch changes. So a batch that comes again, because the process ended between the two,
    is known. All of a batch comes to this process, as Arrow, through a clone of its session.
    """
    with working:
        if _came_before(state, number, stream):
            return
    rows, kind = frame, kind_of(frame)
    if kind in ("spark", "connect"):
        # The size that Spark states of a batch is no guide to where it is best encoded: of many sources it knows none.
        name = f"batch {number} of stream {stream!r}"
        with spark_failures(name):
            loaded = load_with_spark(frame, kind, LoadOptions(), name, None, lambda step: None, large=False)
        rows = replace(loaded, notes=())  # they say of each batch that its rows have no order
    with working:
        if _came_before(state, number, stream):  # as two calls at the same time
            return
        batch = state.read(rows, leave_out=leave_out)
        state.insert(batch, batch_id=(stream, number))
    if leave_out:
        for note in batch.notes:
            logging.getLogger("tuplewise").warning("batch %d of stream %r: %s", number, stream, note)


def _came_before(state: DcState, number: int, stream: str) -> bool:
    """Whether a batch is the last one that was inserted.

    Raises InputError for an older one. A query never repeats these, so its rows are another query's, and would be lost.
    """
    last = state.applied_batch(stream)
    if number < last:
        hint = "Go on with the checkpoint of the query that wrote it, or name the stream of another query otherwise"
        what = f"stream {stream!r} was applied up to batch {last}, and an older one comes"
        raise InputError(message(what, number, f"{last} or a later one", hint))
    return number == last
