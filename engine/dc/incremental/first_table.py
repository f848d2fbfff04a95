"""The table that a state is built of: whether there is room for it, and how it is read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.typed_tables import read_table, typed
from tuplewise.engine.table.encode import encode
from tuplewise.engine.table.load import load
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.typing_columns import ASKED_FOR
from tuplewise.engine.writer_lock import check_new


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise InputError where a state can't be built in this folder, before any work."""
    check_new(Path(os.path.realpath(os.path.expanduser(os.fspath(folder)))), "dc", "insert")


def read_first(
    source: Any,
    options: LoadOptions | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    most_bytes: int | None = None,
    device: str = "auto",
) -> Relation:
    """A table as `load` reads it, but local CSV and Parquet files without a JVM, as later rows are read.

    `device`: see `load`. Raises InputError where it can't be read.
    """
    options = options or LoadOptions()
    if isinstance(source, Relation):
        return source
    if not isinstance(source, (str, os.PathLike)):
        return load(source, options, progress=progress, most_bytes=most_bytes, device=device)
    start = time.perf_counter()
    if progress is not None:
        progress("reading")
    table, added = typed(read_table(source, options, find_source(os.fspath(source)).name), options, as_text=False)
    loaded = time.perf_counter()
    if progress is not None:
        progress("encoding")
    codes, dictionaries, columns = encode(table.columns, table.rows, device)
    inferred = [text and c.why != ASKED_FOR for c, text in zip(columns, table.texts, strict=True)]
    empty = [c.name for c, told in zip(columns, inferred, strict=True) if told and not c.distinct]
    hint = "its type is text from now on; --types COL=TYPE fixes another"
    notes = [*table.notes, *added, *(f"column {name!r} has no values: {hint}" for name in empty)]
    seconds = {"session": 0.0, "load": loaded - start, "encode": time.perf_counter() - loaded}
    return Relation(
        table.name, table.path, columns, codes, dictionaries, notes=tuple(notes), timings_seconds=seconds,
        spark=table.spark,
    )  # fmt: skip
