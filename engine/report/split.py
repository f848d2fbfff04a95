"""Splits a table in two: rows that violate no rule, and violating rows, each with its position and its rules.

Rows of local CSV files are copied byte for byte (in the encoding of the source). Rows of local Parquet files keep the
values and types of their file, including columns that were not loaded. Rows of any other source are written to Parquet
with the values that were loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message, number_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.report import files
from tuplewise.engine.report.cells import Cells
from tuplewise.engine.report.sql import unused
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.source import Source, find_source

if TYPE_CHECKING:
    import pyarrow as pa

_WHAT = "folder to split into"
_BATCH_ROWS = 1 << 16
ROW, RULES = "row_position", "violated_rules"


@dataclass(frozen=True)
class Violators:
    """The rules that each row violates.

    Attributes
    ----------
    group : int32 (rows,), index into `rules`; 0 for no rule
    rules : ids of the violated rules of each group; the first is empty
    """

    group: NDArray[np.int32]
    rules: list[list[str]]

    @classmethod
    def of(cls, rows: int, ids: Sequence[str], counts: Sequence[NDArray[np.int64]]) -> Violators:
        """From the violating pairs of each row: int64 (rows,) for each rule."""
        group = np.zeros(rows, dtype=np.int32)
        some = np.zeros(rows, dtype=np.bool_)
        for c in counts:
            some |= c > 0
        found = np.flatnonzero(some)
        rules: list[list[str]] = [[]]
        if len(found):
            violated = np.stack([c[found] > 0 for c in counts])
            kinds, which = np.unique(violated, axis=1, return_inverse=True)
            rules += [[ids[i] for i in np.flatnonzero(kind).tolist()] for kind in kinds.T]
            group[found] = which.reshape(-1) + 1
        return cls(group, rules)


def file_names(source: Source) -> tuple[str, str]:
    """The names of the two files."""
    ending = "parquet"
    if source.format == "csv" and source.local:
        ending = "tsv" if source.sep == "\t" else "csv"
    return f"valid.{ending}", f"violating.{ending}"


def check_split_folder(given: str, table: str) -> None:
    """Raise InputError before the work where the two files could not be written, or the folder holds other files."""
    source, path = find_source(table), Path(os.path.realpath(given))
    names = file_names(source)
    if any(Path(os.path.realpath(f)).parent == path for f in source.files):
        raise InputError(message(_WHAT, given, "another folder than the table's"))
    if not path.exists():
        if not path.parent.is_dir():
            raise InputError(message(_WHAT, given, hint=f"There is no folder {str(path.parent)!r}"))
        where = path.parent
    elif not path.is_dir():
        raise InputError(message(_WHAT, given, "a folder; this is a file"))
    else:
        others = sorted(set(os.listdir(path)) - set(names))
        if others:
            allowed = f"a new or empty folder, or one with {names[0]} and {names[1]} only, which are replaced"
            raise InputError(message(f"{_WHAT} holds {others[0]!r}", given, allowed))
        where = path
    if not os.access(where, os.W_OK):
        raise InputError(message(_WHAT, given, hint=f"{str(where)!r} can't be written"))


def split(given: str, relation: Relation, violators: Violators, table: str, options: LoadOptions) -> str:
    """Write both files, whole or not at all; rows keep their order. Returns a sentence on the two files.

    Parameters
    ----------
    given : the folder; see `check_split_folder`
    relation, violators : the table and its violating rows
    table, options : the source, and how it was read

    Raises
    ------
    InputError
        If a file can't be written, or the source has changed since it was loaded.
    """
    source, path = find_source(table), Path(os.path.realpath(given))
    names = file_names(source)
    try:
        with files.new_folder(path), files.replacing([path / name for name in names]) as (valid, violating):
            how = _write(relation, violators, source, options, valid, violating)
    except OSError as error:
        raise InputError(message(_WHAT, given, hint=f"It can't be written: {error.strerror or error}")) from error
    bad = int(np.count_nonzero(violators.group))
    return (
        f"split: {number_of(relation.rows - bad, 'row')} in {os.path.join(given, names[0])!r}, {bad:,} in "
        f"{os.path.join(given, names[1])!r} ({how})"
    )


def _write(
    relation: Relation, violators: Violators, source: Source, options: LoadOptions, valid: Path, violating: Path
) -> Literal["rows as they stand in the source", "values as they were loaded"]:
    from tuplewise.engine.report import split_csv

    if source.local and source.format == "csv":
        split_csv.split(relation, violators, source, options, valid, violating)
        return "rows as they stand in the source"
    schema = _common_schema(source)
    if schema is None:
        cells = Cells(relation)
        loaded = [(name, cells.type_of(name)) for name in relation.column_names]
        _write_parquet(_loaded(cells, loaded), relation, violators, loaded, valid, violating)
        return "values as they were loaded"
    _write_parquet(_stored(source), relation, violators, [(f.name, f.type) for f in schema], valid, violating)
    return "rows as they stand in the source"


def _common_schema(source: Source) -> pa.Schema | None:
    """The schema of local Parquet files; None if they differ, or names of folders hold columns."""
    if not source.local or source.format != "parquet" or any("=" in os.path.dirname(f) for f in source.files):
        return None
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(f).remove_metadata() for f in source.files]
    plain = len(set(schemas[0].names)) == len(schemas[0].names)
    return schemas[0] if plain and all(s.equals(schemas[0]) for s in schemas) else None


def _stored(source: Source) -> Iterator[tuple[int, pa.Table]]:
    """Rows as stored in Parquet files, in batches, each with the position of its first row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    position = 0
    for name in source.files:
        with pq.ParquetFile(name) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield position, pa.Table.from_batches([batch.replace_schema_metadata(None)])
                position += len(batch)


def _loaded(cells: Cells, columns: Sequence[tuple[str, pa.DataType]]) -> Iterator[tuple[int, pa.Table]]:
    """Rows as loaded, in batches. The position is -1 in place of the first row's: the rows are the relation's."""
    import pyarrow as pa

    for start in range(0, cells.relation.rows, _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        yield -1, pa.Table.from_arrays([cells.values(name, part) for name, _ in columns], schema=pa.schema(columns))


def _write_parquet(
    batches: Iterator[tuple[int, pa.Table]],
    relation: Relation,
    violators: Violators,
    columns: Sequence[tuple[str, pa.DataType]],
    valid: Path,
    violating: Path,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [name for name, _ in columns]
    plain = pa.schema(columns)
    extra = [(unused(ROW, names), pa.int64()), (unused(RULES, names), pa.list_(pa.string()))]
    rules = pa.array(violators.rules, pa.list_(pa.string()))
    done = 0
    with pq.ParquetWriter(valid, plain) as good, pq.ParquetWriter(violating, pa.schema([*extra, *columns])) as bad:
        for start, table in batches:
            index = np.arange(done, done + len(table)) if start < 0 else _rows_within(relation, start, len(table))
            there = np.flatnonzero(index >= 0)
            done += len(there)
            group = violators.group[index[there]]
            good.write_table(table.take(pa.array(there[group == 0])).cast(plain))
            rows = there[group > 0]
            positions = index[rows] if relation.positions is None else relation.positions[index[rows]]
            added = [pa.array(positions.astype(np.int64)), rules.take(pa.array(group[group > 0]))]
            chosen = table.take(pa.array(rows))
            bad.write_table(pa.Table.from_arrays([*added, *chosen.columns], names=[n for n, _ in extra] + names))
    check_count(relation, done)


def _rows_within(relation: Relation, start: int, size: int) -> NDArray[np.int64]:
    """Index in the relation of the rows at `size` positions from `start` on; -1 for rows that were not loaded."""
    wanted = np.arange(start, start + size, dtype=np.int64)
    if relation.positions is None:
        return np.where(wanted < relation.rows, wanted, -1)
    at = np.searchsorted(relation.positions, wanted)
    found = np.minimum(at, max(relation.rows - 1, 0))
    there = relation.positions[found] == wanted if relation.rows else np.zeros(size, dtype=np.bool_)
    return np.where(there, found, -1)


def check_count(relation: Relation, written: int) -> None:
    """Raise InputError where the source has not as many rows as were loaded."""
    if written != relation.rows:
        raise InputError(
            message("rows of the source when it was split", written, f"{relation.rows}, as when it was loaded")
        )
