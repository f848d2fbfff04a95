"""Conversion of gapped codes to dense ranks, for work on a whole table."""

from __future__ import annotations

from collections.abc import Sequence

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


def _distinct(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct codes of a column, ascending, and the index of each row's code among them."""
    import pyarrow as pa

    encoded = pa.array(np.ascontiguousarray(codes)).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    order = np.argsort(distinct)
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return distinct[order], places[encoded.indices.to_numpy()]
