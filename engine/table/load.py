"""The front door of loading: any table to a Relation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.encode import encode
from tuplewise.engine.table.frames import arrow_table, kind_of, typed_column
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import repair_names, selected_columns, type_overrides
from tuplewise.engine.table.typing_columns import retype, without_tokens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]


def load(
    source: Any,
    options: LoadOptions | None = None,
    *,
    name: str | None = None,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    device: str = "auto",
) -> Relation:
    """A table as a Relation.

    Parameters
    ----------
    source : str, path or frame
        A CSV, TSV, Parquet, ORC or JSON-lines path (file, folder or glob; local, or a URL that Spark reads),
        `spark:db.table`, or a pandas, Polars, Arrow or Spark frame. Frames other than Spark's need no JVM.
    options : LoadOptions, optional
    name : str, optional
        What the table is called in results; the file's stem, the table's name or "table" where it isn't given.
    spark : SparkSession, optional
        The session to read with. Else the active one, else one that is started (and kept for the next call).
    progress : callable, optional
        Told the name of each step as it begins.
    most_bytes : int, optional
        Bytes that the codes may take here. Where a table that Spark reads takes more, `spark_load.BeyondDriver` is
        raised, with what Spark can read of it.
    device : str
        Where very many distinct texts are ranked, if cuDF is there: see `gpu_kernels.texts.rank_texts`.

    Returns
    -------
    Relation
        Rows in the order of their positions in the source.

    Raises
    ------
    InputError
        Where the source can't be read as it was asked for.
    """
    options = options or LoadOptions()
    report = progress or _ignore
    kind = kind_of(source)
    if kind in ("pandas", "polars", "arrow"):
        return _load_frame(source, kind, options, name or "table", report, device)
    if kind is None and not isinstance(source, (str, os.PathLike)):
        raise InputError(
            message(
                "a table of this type can't be read",
                type(source).__name__,
                "a path, or a pandas, Polars, Arrow or Spark DataFrame",
            )
        )
    from tuplewise.engine.table.spark_load import load_with_spark

    target = source if kind is not None else (str(source) if isinstance(source, str) else os.fspath(Path(source)))
    return load_with_spark(target, kind, options, name, spark, report, most_bytes=most_bytes, device=device)


def _ignore(step: str) -> None:
    """Progress that nobody asked for."""


def _load_frame(
    source: Any, kind: str, options: LoadOptions, table: str, report: Progress, device: str
) -> Relation:
    start = time.perf_counter()
    report("reading")
    given, arrays, labels, notes = arrow_table(source, kind)
    names, renamed = repair_names(given)
    kept = selected_columns(names, options, table)
    overrides = type_overrides(names, options.types, table)
    rows = len(arrays[0]) if arrays else 0
    if options.rows is not None:
        rows = min(rows, options.rows)
    dropped = {names[i] for i in range(len(names)) if i not in kept}
    notes = [n for n in notes if not any(n.startswith(f"column {d!r}") for d in dropped)]
    columns = []
    for i in kept:
        column, added = typed_column(names[i], arrays[i].slice(0, rows), labels[i])
        column = without_tokens(column, options.null_tokens)
        if names[i] in overrides:
            column = retype(column, overrides[names[i]], lambda row: f"row {row}")
        columns.append(column)
        notes.extend(added)
    loaded = time.perf_counter()
    report("encoding")
    codes, dictionaries, described = encode(columns, rows, device)
    timings = {"session": 0.0, "load": loaded - start, "encode": time.perf_counter() - loaded}
    return Relation(
        name=table,
        path=None,
        columns=described,
        codes=codes,
        dictionaries=dictionaries,
        notes=(*renamed, *notes),
        timings_seconds=timings,
    )
