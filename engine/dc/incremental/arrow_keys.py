"""Conversion between keys and typed values of the dictionaries of a Relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tuplewise.engine.dc.incremental.keys import (
    TURN,
    WIDE_BYTES,
    Keys,
    Numbers,
    Texts,
    WideNumbers,
    binary_of,
    texts_of,
    widened,
)
from tuplewise.engine.table.relation import Domain

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_DIGITS = 38


def keys_of_arrow(domain: Domain, values: pa.Array) -> Keys:
    """Keys of typed values (no nulls), in the order given.

    Parameters
    ----------
    values : int64, decimal128 or decimal256 (number), float64, date32, timestamp in us or ns, bool, large_string
    """
    import pyarrow as pa

    if domain == "text":
        return texts_of(values.cast(pa.large_binary()))
    if domain == "double":
        plain = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64) + 0.0
        plain[np.isnan(plain)] = np.nan
        bits = plain.view(np.int64)
        return Numbers(np.where(bits < 0, bits ^ TURN, bits))
    if domain == "boolean":
        return Numbers(np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64))
    if domain == "date":
        return Numbers(np.asarray(values.cast(pa.int32()).to_numpy(zero_copy_only=False), dtype=np.int64))
    if domain == "timestamp":
        return _instants(values)
    if pa.types.is_int64(values.type):
        return Numbers(np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64))
    return _decimals(values)


def _instants(values: pa.Array) -> Numbers:
    import pyarrow as pa

    if values.type.unit != "ns":
        values = values.cast(pa.timestamp("us", tz=values.type.tz))
    whole = np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
    if values.type.unit != "ns":
        return Numbers(whole)
    micro, rest = np.divmod(whole, np.int64(1000))
    return Numbers(whole, 3) if rest.any() else Numbers(micro)


def _decimals(values: pa.Array) -> Numbers | WideNumbers:
    words = values.type.byte_width // 8
    buffer = values.buffers()[1]
    if not len(values) or buffer is None:
        return Numbers(np.empty(0, dtype=np.int64), values.type.scale)
    start = values.offset * words
    content = np.frombuffer(buffer, dtype=np.int64)[start : start + len(values) * words].reshape(-1, words)
    low = np.ascontiguousarray(content[:, 0])
    if (content[:, 1:] == (low >> 63)[:, None]).all():
        return Numbers(low, values.type.scale)
    wide = np.empty((len(values), WIDE_BYTES), dtype=np.uint8)
    wide[:] = np.where(content[:, -1] < 0, 0xFF, 0).astype(np.uint8)[:, None]
    wide[:, -8 * words :] = np.ascontiguousarray(content[:, ::-1]).byteswap().view(np.uint8).reshape(len(values), -1)
    wide[:, 0] ^= 0x80
    return WideNumbers(wide, values.type.scale)


def arrow_of_keys(domain: Domain, keys: Keys, *, decimal_type: bool = False) -> pa.Array:
    """Values of keys, with the type of a Relation's dictionary.

    Parameters
    ----------
    decimal_type : numbers are decimals, even if they are whole
    """
    import pyarrow as pa

    if isinstance(keys, Texts):
        binary = binary_of(keys)
        return pa.Array.from_buffers(pa.large_string(), len(keys), binary.buffers())
    if domain == "double":
        assert isinstance(keys, Numbers)
        bits = np.where(keys.values < 0, keys.values ^ TURN, keys.values)
        return pa.array(bits.view(np.float64))
    if domain == "timestamp":
        return _timestamps(keys)
    if domain == "number" and (decimal_type or keys.scale or isinstance(keys, WideNumbers)):
        return _decimal_array(keys)
    assert isinstance(keys, Numbers)
    if domain == "date":
        return pa.array(keys.values.astype(np.int32)).cast(pa.date32())
    if domain == "boolean":
        return pa.array(keys.values.astype(np.bool_))
    return pa.array(keys.values)


def _timestamps(keys: Numbers | WideNumbers) -> pa.Array:
    import pyarrow as pa

    nano = pa.timestamp("ns", tz="UTC")
    micro = pa.timestamp("us", tz="UTC")
    assert isinstance(keys, Numbers)
    if keys.scale == 0:
        return pa.array(keys.values).cast(micro)
    if (keys.values % 1000 == 0).all():
        return pa.array(keys.values // 1000).cast(micro)
    return pa.array(keys.values).cast(nano)


def _decimal_array(keys: Numbers | WideNumbers) -> pa.Array:
    """decimal128 of 38 digits if all numbers fit, else decimal256 of 76 digits."""
    import pyarrow as pa

    wide_type = pa.decimal256(2 * _MOST_DIGITS, keys.scale)
    if isinstance(keys, Numbers) and keys.scale <= _MOST_DIGITS:
        words = np.stack([keys.values, keys.values >> 63], axis=1)
        narrow_type = pa.decimal128(_MOST_DIGITS, keys.scale)
        return pa.Array.from_buffers(narrow_type, len(keys), [None, pa.py_buffer(words)])
    wide = keys if isinstance(keys, WideNumbers) else widened(keys)
    content = wide.content[:, ::-1].copy()
    content[:, -1] ^= 0x80
    array = pa.Array.from_buffers(wide_type, len(keys), [None, pa.py_buffer(content)])
    if keys.scale > _MOST_DIGITS:
        return array
    try:
        return array.cast(pa.decimal128(_MOST_DIGITS, keys.scale))
    except pa.ArrowInvalid:
        return array
