"""Typed values as text."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tuplewise.engine.table.relation import TypeName


def decimal_digits(values: pa.Array, *, trim: bool) -> pa.Array:
    """Decimals as text, with all digits of their scale, or without trailing zeros in the fraction."""
    scale, width = values.type.scale, values.type.byte_width
    kind = pa.decimal128(38, 0) if width == 16 else pa.decimal256(76, 0)
    unscaled = pa.Array.from_buffers(kind, len(values), values.buffers(), offset=values.offset).cast(pa.large_string())
    if scale == 0:
        return unscaled
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    fraction = pc.utf8_rtrim(fraction, "0") if trim else fraction
    nothing, dot, minus = (pa.scalar(text, pa.large_string()) for text in ("", ".", "-"))
    point = pc.if_else(pc.equal(fraction, nothing), nothing, dot)
    sign = pc.if_else(pc.starts_with(unscaled, "-"), minus, nothing)
    return pc.binary_join_element_wise(sign, whole, point, fraction, nothing)


def to_spark_text(type_: TypeName, values: pa.Array) -> pa.Array:
    """Convert values to text as Spark does in UTC. large_string (values,); there are no nulls.

    Notes
    -----
    Doubles are written as by Java, with the fewest digits that identify the number. Java before 19 writes one digit
    more in some cases.
    """
    if type_ == "double":
        return pa.array([_java_double(v) for v in values.to_pylist()], pa.large_string())
    if type_ == "timestamp":
        text = values.cast(pa.timestamp(values.type.unit, tz="UTC")).cast(pa.timestamp(values.type.unit))
        text = text.cast(pa.large_string())
        text = pc.replace_substring_regex(text, r"(\.[0-9]{6})[0-9]+\z", r"\1")  # Spark's have microseconds
        return pc.replace_substring_regex(text, r"\.?0+\z", "") if values.type.unit != "s" else text
    if type_ == "decimal" and pa.types.is_decimal(values.type):
        return decimal_digits(values, trim=False)
    return values.cast(pa.large_string())


def _java_double(value: float) -> str:
    """A double as Java's Double.toString writes it."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f") if value != int(value) else f"{value:.1f}"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
