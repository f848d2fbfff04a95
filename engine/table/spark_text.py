"""The rules of `text_types` as Spark expressions: the spelling of a value, and the value as a type."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.table.relation import TypeName
from tuplewise.engine.table.text_types import FITS, PATTERNS, WHOLE_EXPONENT

MOST_DIGITS = 38
MISFIT = "misfit"


def spells(column: Column, pattern: str) -> Column:
    r"""Whether the value matches the pattern from start to end. `\z`, since `$` in Java allows a line end after it."""
    return column.rlike(rf"\A(?:{pattern})\z")


def digits(column: Column) -> Column:
    """The number of digits of a number without an exponent; a zero before the point is not counted."""
    lead = column.startswith("0.") | column.startswith("-0.")
    signs = column.startswith("-").cast("int") + column.contains(".").cast("int")
    return f.length(column) - signs - lead.cast("int")


def spelling(column: Column) -> Column:
    """The spelling of a non-null value, one of text_types.Spelling."""
    count = digits(column)
    mantissa = f.substring_index(f.lower(column), "e", 1)
    number = column.try_cast("double")
    finite = (f.abs(number) < float("inf")) & ((number != 0.0) | spells(mantissa, r"-?0(\.0+)?"))
    day = f.substring(column, 1, 10).try_cast("date").isNotNull()
    integer = (
        f.when(count <= 15, "integer15")
        .when(column.try_cast("bigint").isNotNull(), "integer64")
        .when(count <= MOST_DIGITS, "integer38")
        .otherwise("integer_more")
    )
    decimal = (
        f.when(count <= 15, "decimal15")
        .when(count <= 17, "decimal17")
        .when(count <= MOST_DIGITS, "decimal38")
        .otherwise("decimal_more")
    )
    exponent = f.when((digits(mantissa) <= 17) & finite, "exponent").otherwise("exponent_more")
    numbers = {"integer": integer, "decimal": decimal, "exponent": exponent}
    found = []
    for kind, pattern in PATTERNS.items():
        matches = spells(column, pattern) & day if kind in ("date", "timestamp") else spells(column, pattern)
        found.append(f.when(matches, numbers.get(kind, f.lit(kind))))
    return f.coalesce(*found, f.lit("other"))


def one_number_twice(frame: DataFrame, column: Column) -> tuple[str, str] | None:
    """See `arrow_text.one_number_twice`; for a column of a frame, nulls ignored. One job."""
    value = f.col("value")
    numbers = frame.select(column.alias("value")).where(value.isNotNull()).groupBy(value.try_cast("double"))
    found = numbers.agg(
        f.min(f.when(spells(value, WHOLE_EXPONENT), value)).alias("one"),
        f.min(value).alias("lowest"),
        f.max(value).alias("highest"),
    ).where("one is not null and lowest != highest")
    best = found.agg(f.min(f.struct("one", "lowest", "highest")).alias("best")).collect()[0]["best"]
    if best is None:
        return None
    return best["one"], best["highest"] if best["one"] == best["lowest"] else best["lowest"]


def fits(column: Column, type_: TypeName) -> Column:
    """`misfit` for a value that doesn't fit the type, `integer_more` for integers beyond 64 bits, else `fits`."""
    if type_ == "text":
        return f.lit("fits")
    good = spells(column, FITS[type_])
    if type_ in ("date", "timestamp"):
        good = good & f.substring(column, 1, 10).try_cast("date").isNotNull()
    elif type_ in ("integer", "decimal"):
        good = good & (whole_digits(column) + fraction_digits(column) <= MOST_DIGITS)
    wide = f.lit(type_ == "integer") & column.try_cast("bigint").isNull()
    return f.when(~good, MISFIT).when(wide, "integer_more").otherwise("fits")


def whole_digits(column: Column) -> Column:
    """Digits before the point, without leading zeros."""
    return f.length(f.ltrim(f.ltrim(f.substring_index(column, ".", 1), f.lit("+-")), f.lit("0")))


def fraction_digits(column: Column) -> Column:
    """Digits after the point."""
    return f.when(column.contains("."), f.length(f.substring_index(column, ".", -1))).otherwise(0)


def parsed(column: Column, type_: TypeName, scale: int | None) -> Column:
    """The value as a type. `scale`: of decimals and of integers beyond 64 bits; None for 64-bit integers."""
    if type_ in ("integer", "decimal"):
        return column.try_cast("bigint" if scale is None else f"decimal({MOST_DIGITS},{scale})")
    if type_ == "double":
        signed_nan = spells(f.lower(column), r"[+-]nan")
        return f.when(signed_nan, float("nan")).otherwise(column.try_cast("double"))
    if type_ == "boolean":
        return f.lower(column) == "true"
    if type_ == "timestamp":  # Spark takes a zone after seconds only
        zone_after_minutes = f.substring(column, 17, 1).isin("Z", "+", "-")
        whole = f.concat(f.substring(column, 1, 16), f.lit(":00"), f.substring(column, 17, 6))
        return f.when(zone_after_minutes, whole).otherwise(column).try_cast("timestamp")
    return column if type_ == "text" else column.try_cast(type_)
