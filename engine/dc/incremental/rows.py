"""New rows for a state from any source: matched by column names, given the state's types, and encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries
from tuplewise.engine.dc.incremental.keys import PlainKey, keys_of_rows
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.encode import encode
from tuplewise.engine.table.read_table import fit_types, left_out_note
from tuplewise.engine.table.reader import read_columns
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.rows import KeptColumn, plain_rows, read_rows

ROW_ID = "row_id"
_ROW_ID = KeptColumn(ROW_ID, "integer", "ids that the state gave")


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Rows for a state.

    Attributes
    ----------
    codes : int32 (rows, columns), C order
    additions : values that are new to the dictionaries
    row_ids : int64 (rows,), the ids of the rows that these replace; None if the rows have no ids
    notes : notes from reading
    version : version of the dictionaries of `codes`
    """

    codes: NDArray[np.int32]
    additions: Additions
    row_ids: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    version: int = 0


def read_batch(
    source: Any,
    columns: Sequence[KeptColumn],
    dictionaries: Dictionaries,
    null_tokens: Sequence[str],
    load_options: LoadOptions | None = None,
    *,
    leave_out: bool = False,
    with_row_id: bool = False,
) -> RowBatch:
    """Read rows for a state, with columns matched by name.

    Parameters
    ----------
    source : path, frame or Relation; one mapping by column names; or a list of mappings or of sequences of values
    null_tokens : texts that mean null
    leave_out : leave out rows with a value that doesn't fit its column's type
    with_row_id : an extra column `row_id` gives the row of the state that each row replaces

    Raises
    ------
    InputError
        If columns are missing or unknown, or a value doesn't fit; the message names its row and column.
    GapsExhausted
        If the dictionaries have no room for new values.
    """
    with_row_id = with_row_id and all(column.name != ROW_ID for column in columns)
    rows = plain_rows(source)
    if rows is not None:
        identified = with_row_id and _names_rows(rows)
        wanted = [*columns, _ROW_ID] if identified else columns
        keys, left_out = read_keys(wanted, rows, null_tokens, leave_out=leave_out)
        ids = _ids_of(keys.pop(), "row {}".format) if identified else None
        codes, additions = dictionaries.encode_keys([column.domain for column in columns], keys)
        return RowBatch(codes, additions, ids, left_out_note(left_out, "row {}".format))
    relation, row_ids, notes = _read_relation(
        source, columns, null_tokens, load_options, leave_out=leave_out, with_row_id=with_row_id
    )
    codes, additions = dictionaries.encode(relation)
    return RowBatch(codes, additions, row_ids, notes)


def keys_of(
    source: Any,
    columns: Sequence[KeptColumn],
    dictionaries: Dictionaries,
    null_tokens: Sequence[str],
    load_options: LoadOptions | None = None,
) -> NDArray[np.int32]:
    """Codes of the key columns of rows, which may lack other columns.

    Parameters
    ----------
    source : as for `read_batch`; sequences have values of the key columns only
    columns : columns of the key

    Returns
    -------
    int32 (rows, key columns), C order: -1 is null, -2 a value that no row ever had

    Raises
    ------
    InputError
        If a column of the key is missing, or a value doesn't fit.
    """
    rows = plain_rows(source)
    if rows is not None:
        names = [column.name for column in columns]
        keys, _ = read_keys(columns, [_only(row, names) for row in rows], null_tokens)
        return dictionaries.known_keys([column.domain for column in columns], keys)
    relation, _, _ = _read_relation(source, columns, null_tokens, load_options, others=True)
    return dictionaries.known(relation)


def read_keys(
    columns: Sequence[KeptColumn], rows: Sequence[Any], null_tokens: Sequence[str] = (), *, leave_out: bool = False
) -> tuple[list[list[PlainKey | None]], list[int]]:
    """`read_rows` with the values of each column as keys."""
    names, types = [column.name for column in columns], [column.type for column in columns]
    read, left_out = read_rows(rows, names, types, null_tokens, leave_out=leave_out)
    return keys_of_rows(types, read), left_out


def _only(row: Any, names: Sequence[str]) -> Any:
    """The wanted part of a mapping, if it is complete."""
    if isinstance(row, Mapping) and len(row) > len(names) and all(name in row for name in names):
        return {name: row[name] for name in names}
    return row


def _names_rows(rows: Sequence[Any]) -> bool:
    """Whether rows are mappings with the id of the row of the state that each replaces."""
    return any(isinstance(row, Mapping) and ROW_ID in row for row in rows)


def _ids_of(given: Sequence[Any], place: Callable[[int], str]) -> NDArray[np.int64]:
    """Ids of rows, int64. Raises InputError for what is none; `place`: names the row."""
    for row, id_ in enumerate(given):
        if id_ is None or not 0 <= id_ < 1 << 63:
            fault, shown = f"column {ROW_ID!r}: no id of a row at {place(row)}", "null" if id_ is None else int(id_)
            raise InputError(message(fault, shown, "ids that the state gave", "Nothing was applied"))
    return np.array([int(id_) for id_ in given], dtype=np.int64)


def _read_relation(
    source: Any,
    columns: Sequence[KeptColumn],
    null_tokens: Sequence[str],
    load_options: LoadOptions | None,
    *,
    leave_out: bool = False,
    with_row_id: bool = False,
    others: bool = False,
) -> tuple[Relation, NDArray[np.int64] | None, tuple[str, ...]]:
    """Read typed rows of a file, a frame or a Relation; with their ids, and notes."""
    names = [column.name for column in columns]
    beside = ROW_ID if with_row_id else None
    read = read_columns(source, names, load_options or LoadOptions(), "rows", "the batch", beside=beside, others=others)
    types = [*(column.type for column in columns), *(["integer"] if len(read.columns) > len(columns) else [])]
    fitting = fit_types(read, types, null_tokens, leave_out=leave_out)  # type: ignore[arg-type]
    typed = list(fitting.columns)
    ids = None
    if len(typed) > len(columns):
        column = typed.pop()
        values = [*column.values.to_pylist(), None]  # the last: of null, whose index is -1
        ids = _ids_of([values[i] for i in column.index.tolist()], fitting.locate)
    codes, dictionaries, described = encode(typed, fitting.rows)
    return Relation("rows", read.path, described, codes, dictionaries), ids, fitting.notes
