"""Encoding in this process: typed columns become dense int32 ranks. Comparable columns share one dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, NULL_CODE, Column, Domain, TypeName
from tuplewise.gpu_kernels.cpu.texts import run as rank_by_value
from tuplewise.gpu_kernels.texts import rank_texts

_MOST_DIGITS = 38


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """A typed column: a list of values, and for each row the index of its value.

    Attributes
    ----------
    values : pyarrow array (values,), no nulls
        int64 or decimal (integer, decimal), float64, date32, timestamp with zone UTC, bool, large_string. May hold
        repeated values, and values that no row has.
    index : int32 array (rows,)
        Into `values`; -1 is null.
    """

    name: str
    type: TypeName
    why: str
    values: pa.Array
    index: NDArray[np.int32]


def indexed(array: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int32]]:
    """The distinct non-null values of an array in order of appearance, and each row's index into them (-1: null)."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    index = np.array(
        pc.fill_null(encoded.indices.cast("int32"), NULL_CODE).to_numpy(zero_copy_only=False), dtype=np.int32
    )
    values = encoded.dictionary
    if values.null_count:  # a dictionary may hold null as a value
        keep = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        moved = np.where(keep, np.cumsum(keep) - 1, NULL_CODE).astype(np.int32)
        index = np.where(index >= 0, moved[index], NULL_CODE).astype(np.int32)
        values = values.drop_null()
    return values, index


def encode(
    columns: Sequence[TypedColumn], rows: int, device: str = "auto", into: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int32], dict[Domain, pa.Array], tuple[Column, ...]]:
    """Ranks of all values.

    Parameters
    ----------
    device : the device that ranks large sets of text, see `rank_texts`. The ranks don't depend on it.
    into : int32 (columns, rows), C order, optional
        Receives the codes. Its rows may be the columns' own indexes, in order, which are then overwritten.

    Returns
    -------
    codes : int32 (columns, rows), C order, read-only
    dictionaries : domain to ascending distinct values
    described : for each column its Column, with counts of distinct values and nulls

    Notes
    -----
    Each column is hashed once (`indexed`); only distinct values are sorted. Linear in cells, plus sorting.
    """
    codes = np.empty((len(columns), rows), dtype=np.int32) if into is None else into
    dictionaries: dict[Domain, pa.Array] = {}
    described: list[Column | None] = [None] * len(columns)
    domains: dict[Domain, list[int]] = {}
    for i, column in enumerate(columns):
        domains.setdefault(DOMAIN_OF_TYPE[column.type], []).append(i)
    for domain, members in domains.items():
        used = [_used(columns[i]) for i in members]
        dictionary, ranks = _merge(domain, [values for values, _ in used], [columns[i].name for i in members], device)
        dictionaries[domain] = dictionary
        for i, (_, places), rank in zip(members, used, ranks, strict=True):
            column = columns[i]
            lookup = np.full(len(column.values) + 1, NULL_CODE, dtype=np.int32)  # the last entry is null's: index -1
            lookup[places] = rank
            nulls = int(np.count_nonzero(column.index == NULL_CODE))
            np.take(lookup, column.index, out=codes[i], mode="wrap")
            distinct = int(np.count_nonzero(np.bincount(rank, minlength=1)))  # equal values may stand there twice
            described[i] = Column(column.name, column.type, column.why, distinct, nulls)
    codes.setflags(write=False)
    return codes, dictionaries, tuple(c for c in described if c is not None)


def _used(column: TypedColumn) -> tuple[pa.Array, NDArray[np.int64]]:
    """The values that occur in some row, and their places in `values`."""
    used = np.zeros(len(column.values) + 1, dtype=np.bool_)
    used[column.index] = True  # null's is the last: index -1
    places = np.flatnonzero(used[:-1])
    if len(places) == len(column.values):
        return column.values, places
    return column.values.take(pa.array(places)), places


def _merge(
    domain: Domain, parts: list[pa.Array], names: list[str], device: str
) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """The ascending distinct values of all parts, and the rank of each part's values in them."""
    if domain == "double":
        return _merge_numpy([_plain_doubles(p) for p in parts], pa.float64())
    if domain == "date":
        return _merge_numpy([p.cast(pa.int32()).to_numpy(zero_copy_only=False) for p in parts], pa.date32())
    if domain == "timestamp":
        unit = _timestamp_type(parts, names)
        return _merge_numpy([p.cast(unit).cast(pa.int64()).to_numpy(zero_copy_only=False) for p in parts], unit)
    if domain == "boolean":
        return _merge_numpy([p.to_numpy(zero_copy_only=False).astype(np.bool_) for p in parts], pa.bool_())
    if domain == "number":
        if all(pa.types.is_int64(p.type) for p in parts):
            return _merge_numpy([p.to_numpy(zero_copy_only=False) for p in parts], pa.int64())
        return _merge_decimals(parts)
    return rank_texts([p.cast(pa.large_string()) for p in parts], device=device)


def _merge_numpy(parts: list[NDArray[np.generic]], type_: pa.DataType) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    union, ranks = _merge_dense(parts) or _merge_sorted(parts)
    plain = pa.array(union)
    return (plain if plain.type == type_ else plain.cast(type_)), ranks


def _merge_dense(parts: list[NDArray[np.generic]]) -> tuple[NDArray[np.generic], list[NDArray[np.int32]]] | None:
    """Rank by a table over the range of the values if whole numbers are dense enough, else None. Linear."""
    filled = [p for p in parts if len(p)]
    if not filled or filled[0].dtype.kind != "i":
        return None
    low = min(int(p.min()) for p in filled)
    span = max(int(p.max()) for p in filled) - low + 1
    if span > max(1024, 4 * sum(len(p) for p in filled)):
        return None
    present = np.zeros(span, dtype=np.bool_)
    for p in filled:
        present[p - low] = True
    rank_of = np.cumsum(present, dtype=np.int32) - np.int32(1)
    union = (np.flatnonzero(present) + low).astype(filled[0].dtype)
    return union, [rank_of[p - low] for p in parts]


def _merge_sorted(parts: list[NDArray[np.generic]]) -> tuple[NDArray[np.generic], list[NDArray[np.int32]]]:
    """Rank by sorting each part first. Looking up sorted values walks through the union once."""
    orders = [np.argsort(p) for p in parts]
    ordered = [p[o] for p, o in zip(parts, orders, strict=True)]
    union = np.unique(np.concatenate(ordered))
    ranks = []
    for values, order in zip(ordered, orders, strict=True):
        rank = np.empty(len(values), dtype=np.int32)
        rank[order] = np.searchsorted(union, values)
        ranks.append(rank)
    return union, ranks


def _plain_doubles(values: pa.Array) -> NDArray[np.float64]:
    """Doubles with -0.0 as 0.0 and a single NaN, which sorts last."""
    plain = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain


def _merge_decimals(parts: list[pa.Array]) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """Rank whole numbers and decimals of any scale in one decimal type that holds them all, of 38 or 76 digits."""
    scale = max(p.type.scale if pa.types.is_decimal(p.type) else 0 for p in parts)
    wide = pa.decimal256(2 * _MOST_DIGITS, scale)
    narrow = pa.decimal128(_MOST_DIGITS, scale)
    try:
        return rank_by_value([_as_decimal(p, narrow) for p in parts])
    except pa.ArrowInvalid:
        return rank_by_value([_as_decimal(p, wide) for p in parts])


def _as_decimal(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_int64(values.type):  # Arrow turns int64 into a decimal only where 19 digits and the scale fit
        values = values.cast(pa.decimal256(19, 0))
    return values.cast(type_)


def _timestamp_type(parts: list[pa.Array], names: list[str]) -> pa.DataType:
    """The unit of all timestamps: microseconds, or nanoseconds if a value needs them."""
    micro = pa.timestamp("us", tz="UTC")
    try:
        for p in parts:
            p.cast(micro)
        return micro
    except pa.ArrowInvalid:
        nano = pa.timestamp("ns", tz="UTC")
        try:
            for p in parts:
                p.cast(nano)
        except pa.ArrowInvalid:
            raise InputError(
                message(
                    "timestamps in nanoseconds and others outside of the years 1677 to 2262",
                    names,
                    "one of both in a table",
                    "Exclude a column",
                )
            ) from None
        return nano
