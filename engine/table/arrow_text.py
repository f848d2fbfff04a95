"""Types of text columns in this process: spellings counted and values parsed with Arrow, over distinct values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.text_types import FITS, PATTERNS, WHOLE_EXPONENT, Spelling, SpellingCount

_MOST_DIGITS = 38
_BEGINNINGS = np.frombuffer(b"+-0123456789tTfF", dtype=np.uint8)  # first bytes of every text that a pattern matches
_DAYS_OF_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)


def matches(values: pa.Array, pattern: str) -> NDArray[np.bool_]:
    """The values that match the pattern from start to end, as a mask. `values`: text without nulls."""
    return _bools(pc.match_substring_regex(values, rf"\A(?:{pattern})\z"))


def _bools(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


NO_NUMBER = "\ue000"
"""A prefix for text that reads as a plain number but is none in the notation of its file."""


def in_plain_notation(values: pa.Array, decimal: str, thousands: str | None) -> pa.Array:
    """Rewrite the numbers of a notation as plain numbers.

    Parameters
    ----------
    values : large_string (values,), no nulls
    decimal, thousands : the decimal separator and the thousands separator; None: digits are not grouped

    Returns
    -------
    large_string (values,)
        `-1.234,5` becomes `-1234.5`. Other text is unchanged, but gets the prefix NO_NUMBER where it would read as a
        plain number.
    """
    whole, point = "[0-9]+", re.escape(decimal)
    if thousands is not None:
        whole = rf"(?:[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
    number = rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    hit = matches(values, number)
    plain = values if thousands is None else pc.replace_substring(values, thousands, "")
    plain = pc.replace_substring(plain, decimal, ".")
    other = ~hit & matches(values, r"[+-]?[0-9.,]*[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?")
    found = pc.if_else(pa.array(hit), plain, values)
    marked = pc.binary_join_element_wise(pa.scalar(NO_NUMBER, values.type), values, pa.scalar("", values.type))
    return pc.if_else(pa.array(other), marked, found)


def count_spellings(values: pa.Array, rows: NDArray[np.int64]) -> dict[Spelling, SpellingCount]:
    """Rows and lowest value of each spelling.

    Parameters
    ----------
    values : distinct text (values,), no nulls
    rows : int64 (values,), how many rows hold each value

    Notes
    -----
    Linear in the distinct values. Common spellings come first: a column of whole numbers takes one or two passes.
    Words are recognised by their first character.
    """
    found: dict[Spelling, SpellingCount] = {}
    begins = np.isin(_first_bytes(values), _BEGINNINGS)
    rest = np.flatnonzero(begins)
    for kind, pattern in PATTERNS.items():
        if len(rest) == 0:
            break
        left = values if len(rest) == len(values) else values.take(rest)
        hit = matches(left, pattern)
        if not hit.any():
            continue
        chosen = rest[hit]
        for spelling, mask in _split(kind, values.take(chosen)).items():
            _add(found, spelling, values, rows, chosen[mask])
        rest = rest[~hit]
    _add(found, "other", values, rows, np.concatenate([rest, np.flatnonzero(~begins)]))
    return found


def one_number_twice(values: pa.Array) -> tuple[str, str] | None:
    """Two spellings of one double, the first with an exponent and no point; None if no double is spelled twice.

    The first is the lowest such spelling by bytes, the second the highest or lowest of the others.

    Parameters
    ----------
    values : distinct text (values,), each of which spells a double
    """
    whole = matches(values, WHOLE_EXPONENT)
    if not whole.any():
        return None
    doubles = np.asarray(parse(values, "double")[0].to_numpy(zero_copy_only=False)) + 0.0  # one zero
    _, number, count = np.unique(doubles, return_inverse=True, return_counts=True)
    number = number.ravel()
    first: dict[int, str] = {}
    for i in np.flatnonzero(whole & (count[number] > 1)).tolist():
        text, which = values[i].as_py(), int(number[i])
        first[which] = min(text, first.get(which, text))
    if not first:
        return None
    which, one = min(first.items(), key=lambda item: item[1])
    same = [values[i].as_py() for i in np.flatnonzero(number == which).tolist()]
    return one, max(same) if one == min(same) else min(same)


def _first_bytes(values: pa.Array) -> NDArray[np.uint8]:
    """The first byte of each value, uint8 (values,); 0 for an empty value."""
    values = values.cast(pa.large_string())
    _, places, content = values.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    first = np.zeros(len(values), dtype=np.uint8)
    filled = np.flatnonzero(ends[1:] > ends[:-1])
    if len(filled):
        first[filled] = np.frombuffer(content, dtype=np.uint8)[ends[filled]]
    return first


def _add(
    found: dict[Spelling, SpellingCount],
    spelling: Spelling,
    values: pa.Array,
    rows: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> None:
    if len(chosen) == 0:
        return
    count = int(rows[chosen].sum())
    example = pc.min(values.take(chosen)).as_py()
    if spelling in found:
        count += found[spelling].rows
        example = min(example, found[spelling].example, key=lambda v: v.encode())
    found[spelling] = SpellingCount(count, example)


def _split(kind: Any, values: pa.Array) -> dict[Spelling, NDArray[np.bool_]]:
    """The spellings of values that match a pattern, as masks."""
    if kind == "integer":
        return _split_integers(values)
    if kind == "decimal":
        return _split_decimals(values)
    if kind == "exponent":
        return _split_exponents(values)
    real = _calendar(values) if kind in ("date", "timestamp") else np.ones(len(values), dtype=np.bool_)
    return {kind: real, "other": ~real}


def _digits(values: pa.Array, front: str = r"-?(0(\.)|)") -> NDArray[np.int64]:
    """The number of digits of each number without an exponent, after a front: the sign, and a zero before the point."""
    bare = pc.replace_substring(pc.replace_substring_regex(values, rf"\A{front}", ""), ".", "")
    return np.asarray(pc.utf8_length(bare).to_numpy(zero_copy_only=False), dtype=np.int64)


def _split_integers(values: pa.Array) -> dict[Spelling, NDArray[np.bool_]]:
    digits = _digits(values)
    fits = digits < 19
    if (digits == 19).any():
        bare = pc.replace_substring_regex(values, r"\A-", "")
        negative = _bools(pc.starts_with(values, "-"))
        small = _bools(pc.less_equal(bare, "9223372036854775807"))
        least = _bools(pc.equal(values, "-9223372036854775808"))
        fits |= (digits == 19) & (small | (negative & least))
    return {
        "integer15": digits <= 15,
        "integer64": (digits > 15) & fits,
        "integer38": ~fits & (digits <= _MOST_DIGITS),
        "integer_more": digits > _MOST_DIGITS,
    }


def _split_decimals(values: pa.Array) -> dict[Spelling, NDArray[np.bool_]]:
    digits = _digits(values)
    return {
        "decimal15": digits <= 15,
        "decimal17": (digits > 15) & (digits <= 17),
        "decimal38": (digits > 17) & (digits <= _MOST_DIGITS),
        "decimal_more": digits > _MOST_DIGITS,
    }


def _split_exponents(values: pa.Array) -> dict[Spelling, NDArray[np.bool_]]:
    mantissa = pc.replace_substring_regex(values, r"[eE].*\z", "")
    number = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)
    zero = matches(mantissa, r"-?0(\.0+)?")
    plain = (_digits(mantissa) <= 17) & np.isfinite(number) & ((number != 0) | zero)
    return {"exponent": plain, "exponent_more": ~plain}


def _calendar(values: pa.Array) -> NDArray[np.bool_]:
    """The values whose first ten characters are an existing date, as a mask. All values begin as DATE does."""
    year, month, day = (
        pc.cast(pc.utf8_slice_codeunits(values, a, b), pa.int64()).to_numpy(zero_copy_only=False)
        for a, b in ((0, 4), (5, 7), (8, 10))
    )
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return np.asarray(day <= _DAYS_OF_MONTH[month] + (leap & (month == 2)), dtype=np.bool_)


def parse(values: pa.Array, type_: TypeName) -> tuple[pa.Array, NDArray[np.int64]]:
    """Parse text as a type. Returns the values and the indexes of those that don't fit.

    Parameters
    ----------
    values : large_string (values,), no nulls

    Returns
    -------
    typed : int64, decimal128, decimal256, float64, date32, timestamp[us, UTC], bool or large_string (values,)
        Null where a value doesn't fit.
    misfits : int64, ascending
    """
    if type_ == "text":
        return values, np.empty(0, dtype=np.int64)
    fits = matches(values, FITS[type_])
    if type_ in ("date", "timestamp") and fits.any():
        fits[fits] = _calendar(values.filter(pa.array(fits)))
    elif type_ in ("integer", "decimal") and fits.any():
        fits[fits] = _digits(values.filter(pa.array(fits)), "[+-]?0*") <= _MOST_DIGITS
    misfits = np.flatnonzero(~fits)
    left = values if len(misfits) == 0 else pc.if_else(pa.array(fits), values, pa.scalar(None, values.type))
    return _PARSERS[type_](left), misfits


def _parse_integers(values: pa.Array) -> pa.Array:
    plain = pc.replace_substring_regex(values, r"\A\+", "")
    try:
        return pc.cast(plain, pa.int64())
    except pa.ArrowInvalid:
        return _parse_decimals(values)


def _parse_decimals(values: pa.Array) -> pa.Array:
    plain = pc.replace_substring_regex(values, r"\A\+", "")
    plain = pc.replace_substring_regex(plain, r"\A(-?)0+([0-9])", r"\1\2")
    plain = pc.replace_substring_regex(plain, r"\A(-?)\.", r"\10.")
    plain = pc.replace_substring_regex(plain, r"\.\z", "")
    fraction = pc.utf8_length(pc.replace_substring_regex(plain, r"\A[^.]*\.?", ""))
    scale = pc.max(fraction).as_py() or 0
    whole = pc.max(pc.utf8_length(pc.replace_substring_regex(plain, r"\A-|\..*\z", ""))).as_py() or 0
    if whole + scale <= _MOST_DIGITS:
        return pc.cast(plain, pa.decimal128(_MOST_DIGITS, scale))
    return pc.cast(plain, pa.decimal256(2 * _MOST_DIGITS, scale))


def _parse_doubles(values: pa.Array) -> pa.Array:
    return pc.cast(pc.replace_substring_regex(values, r"\A(\+|-(?P<nan>[nN][aA][nN]))", r"\2"), pa.float64())


def _parse_timestamps(values: pa.Array) -> pa.Array:
    """Parse timestamps; without a zone they are UTC. The pattern allows zeros beyond microseconds: they are cut."""
    plain = pc.replace_substring_regex(values, r"(\.[0-9]{6})0+", r"\1")
    plain = pc.replace_substring_regex(plain, r"\A([-0-9]{10})\z", r"\1 00:00")
    plain = pc.replace_substring_regex(plain, r"([+-][0-9]{2}):?([0-9]{2})\z", r"\1:\2")
    plain = pc.replace_substring_regex(plain, r"([T ][0-9:.]+)\z", r"\1Z")
    return pc.cast(plain, pa.timestamp("us", tz="UTC"))


_PARSERS: dict[TypeName, Callable[[pa.Array], pa.Array]] = {
    "integer": _parse_integers,
    "decimal": _parse_decimals,
    "double": _parse_doubles,
    "date": lambda values: pc.cast(values, pa.date32()),
    "timestamp": _parse_timestamps,
    "boolean": lambda values: pc.cast(pc.utf8_lower(values), pa.bool_()),
}
