"""Conversion of gapped codes to dense ranks, for work on a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.table.relation import NULL_CODE, Column, Domain
from tuplewise.engine.table.rows import KeptColumn


def rank_codes(
    columns: Sequence[KeptColumn], codes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], tuple[Column, ...], dict[Domain, NDArray[np.int32]]]:
    """Convert codes to ranks that are dense over each domain.

    Parameters
    ----------
    codes : int32 (rows, columns)

    Returns
    -------
    ranks : int32 (columns, rows), C order, read-only
    columns : with counts of distinct values and nulls
    used : codes of each domain that occur in rows, ascending
    """
    ranks = np.empty(codes.shape[::-1], dtype=np.int32)
    described: dict[int, Column] = {}
    used: dict[Domain, NDArray[np.int32]] = {}
    for domain in {column.domain: None for column in columns}:
        members = [c for c, column in enumerate(columns) if column.domain == domain]
        parts = [_distinct(codes[:, c]) for c in members]
        every = np.sort(np.concatenate([distinct for distinct, _ in parts]))  # spread codes are slow in np.unique
        every = every[np.append(every[1:] != every[:-1], True)[: len(every)] & (every != NULL_CODE)]
        used[domain] = every
        for c, (distinct, places) in zip(members, parts, strict=True):
            rank = np.where(distinct == NULL_CODE, NULL_CODE, every.searchsorted(distinct)).astype(np.int32)
            np.take(rank, places, out=ranks[c])
            nulls = int(np.count_nonzero(ranks[c] == NULL_CODE))
            column = columns[c]
            described[c] = Column(column.name, column.type, column.why, len(distinct) - (nulls > 0), nulls)
    ranks.setflags(write=False)
    return ranks, tuple(described[c] for c in range(len(columns))), used


def ranks_by_places(
    columns: Sequence[KeptColumn], kept: Sequence[tuple[NDArray[np.int32], NDArray[np.unsignedinteger[Any]]]],
    tail: NDArray[np.int32], rows: NDArray[np.int64],
) -> tuple[NDArray[np.int32], tuple[Column, ...]]:  # fmt: skip
    """Convert codes to ranks by what a checkpoint has counted: a tenth of the time of `rank_codes`.

    Values that no row of `rows` has may leave gaps between ranks, and are counted as distinct values too.

    Parameters
    ----------
    kept : of each column the distinct codes, ascending, and the place of each row of the base among them
    tail : int32 (rows after the base, columns)
    rows : numbers of the rows that are wanted, in order

    Returns
    -------
    ranks : int32 (columns, rows), C order
    columns : with counts of distinct values and nulls
    """
    base = len(kept[0][1]) if kept else 0
    ranks = np.empty((len(columns), len(rows)), dtype=np.int32)
    described: dict[int, Column] = {}
    every_row = np.empty(base + len(tail), dtype=np.int32)
    for domain in {column.domain: None for column in columns}:
        members = [c for c, column in enumerate(columns) if column.domain == domain]
        distinct = {c: _merged([kept[c][0], np.sort(tail[:, c])]) for c in members}
        every = _merged(list(distinct.values()))
        every = every[every != NULL_CODE]
        for c in members:
            codes, places = kept[c]
            np.take(_ranks_of(codes, every), places, out=every_row[:base])
            every_row[base:] = _ranks_of(tail[:, c], every)
            np.take(every_row, rows, out=ranks[c])
            nulls, column = int(np.count_nonzero(ranks[c] == NULL_CODE)), columns[c]
            count = len(distinct[c]) - bool(len(distinct[c]) and distinct[c][0] == NULL_CODE)
            described[c] = Column(column.name, column.type, column.why, count, nulls)
    return ranks, tuple(described[c] for c in range(len(columns)))


def _merged(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The distinct codes of ascending parts, ascending. A stable sort merges them, ten times as fast as `np.unique`."""
    every = np.sort(np.concatenate(parts), kind="stable")
    first = np.ones(len(every), dtype=np.bool_)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    return every[first]


def _ranks_of(codes: NDArray[np.int32], every: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(codes == NULL_CODE, NULL_CODE, every.searchsorted(codes)).astype(np.int32)


def _distinct(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct codes of a column, ascending, and the index of each row's code among them."""
    import pyarrow as pa

    encoded = pa.array(np.ascontiguousarray(codes)).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return distinct[order], places[encoded.indices.to_numpy()]
