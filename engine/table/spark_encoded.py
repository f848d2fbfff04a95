"""Encoding of an open table for a task that runs in Spark, with one clear error if that is impossible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.spark_encode import NotInSpark
from tuplewise.engine.table.spark_frame import EncodedFrame, encode_as_frame
from tuplewise.engine.table.spark_load import spark_failures

HINTS = {
    "searched": "Discover in this process",
    "checked": "Check it in this process",
    "profiled": "Profile it in this process",
}


def encode_for(
    work: Literal["searched", "checked", "profiled"],
    opened: TableInSpark,
    names: Sequence[str],
    step: Callable[[str], None],
    *,
    shown: Sequence[str] = (),
) -> EncodedFrame:
    """See `spark_frame.encode_as_frame`. Raises InputError if a column can only be encoded in this process."""
    try:
        with spark_failures(opened.name):
            return encode_as_frame(opened, names, step, shown=shown)
    except NotInSpark as reason:
        hint = Wording("{}: {run_on}", HINTS[work], run_on="driver")
        raise InputError(message(f"this table can't be {work} in Spark: {reason}", hint=hint)) from reason
