"""The complete list of violating pairs in a file: Parquet or CSV, streamed, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.report import csv, files

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".parquet", ".csv")
_WHAT = "file of pairs"


def check_pairs_file(given: str) -> None:
    """Raise InputError now where the file could not be written later."""
    if Path(given).suffix.lower() not in ENDINGS:
        raise InputError(message(_WHAT, given, "a name that ends in .parquet or .csv"))
    files.check_target(_WHAT, given)
    if os.path.exists(given) and not os.path.isfile(given):
        raise InputError(message(_WHAT, given, "a file that can be replaced"))


def write_pairs(
    given: str, tables: Iterable[pa.Table], schema: pa.Schema, progress: Callable[[int], None] | None = None
) -> int:
    """Write pairs, table by table, and give back how many they were.

    Parameters
    ----------
    given : path, .parquet or .csv
    tables : of `schema`, each made when the one before is written, so that no more than one is held
    progress : told how many pairs are written

    Raises
    ------
    InputError
        Where the file can't be written. Then, and where making the tables fails, what was there before is unchanged.
    """
    check_pairs_file(given)
    path, ending = Path(os.path.realpath(given)), Path(given).suffix.lower()
    try:
        with files.replacing([path]) as (temporary,):
            return _write(temporary, ending, tables, schema, progress or (lambda pairs: None))
    except OSError as error:
        raise InputError(message(_WHAT, given, hint=f"It can't be written: {error.strerror or error}")) from error


def _write(
    path: Path, ending: str, tables: Iterable[pa.Table], schema: pa.Schema, progress: Callable[[int], None]
) -> int:
    written = 0

    def counted() -> Iterable[pa.Table]:
        nonlocal written
        for table in tables:
            yield table
            written += len(table)
            progress(written)

    if ending == ".csv":
        with path.open("wb") as stream:
            stream.writelines(csv.table_pieces(counted(), schema))
        return written
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in counted():
            writer.write_table(table)
    return written
