"""Rules over whole Polars frames. Exports to Pandera hold this text, so it imports nothing of ours."""

import datetime
import operator
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def is_of_type(column: Any, wanted: str) -> bool:
    """Whether a column is of a type; one of doubles also where it holds whole numbers alone, or where nulls alone."""
    kind = column.dtype
    if kind == pl.Null or column.null_count() == len(column):
        return True
    fitting = {
        "integer": kind.is_integer() or (kind.is_float() and bool((column.drop_nulls() % 1 == 0).all())),
        "decimal": kind.is_numeric(),
        "double": kind.is_numeric(),
        "date": kind == pl.Date,
        "timestamp": kind in (pl.Date, pl.Datetime),
        "boolean": kind == pl.Boolean,
        "text": kind in (pl.String, pl.Categorical, pl.Enum),
    }
    return bool(fitting[wanted])


def plain(column: Any) -> Any:
    """A column whose values compare: categories as text, zones as UTC."""
    if column.dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if column.dtype == pl.Datetime and column.dtype.time_zone is not None:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column


def beside(column: Any, value: Any) -> Any:
    """A constant of the type of a column, as a column of one row."""
    if column.dtype in (pl.Date, pl.Datetime) and isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)  # noqa: UP017
        return pl.Series([moment]).cast(column.dtype if column.dtype == pl.Datetime else pl.Datetime("us"))
    if column.dtype.is_float() and isinstance(value, (int, Decimal)):
        value = float(value)
    return pl.Series([value])


def ranks(*columns: Any) -> list[Any]:
    """Columns as ranks in the order of all their values, from 1 on; a null is 0."""
    cells = pl.concat([pl.DataFrame({"cell": column}) for column in columns], how="vertical_relaxed")["cell"]
    if cells.dtype == pl.Null:
        cells = cells.cast(pl.Int64)
    found = cells.rank("dense").cast(pl.Int64).fill_null(0)
    ends = [0]
    for column in columns:
        ends.append(ends[-1] + len(column))
    return [found.slice(start, len(column)) for start, column in zip(ends, columns, strict=False)]


def together(rows: int, columns: Any) -> Any:
    """Columns of ranks as one: equal numbers where rows are equal in all."""
    found = pl.Series([0], dtype=pl.Int64).new_from_index(0, rows)
    for column in columns:
        found = (found * ((column.max() or 0) + 1) + column).rank("dense").cast(pl.Int64)
    return found


def chosen(frame: Any, names: Any, nulls_are_values: bool) -> Any:
    """The ranks of columns, and the positions of the rows that a rule on them speaks of."""
    cells = pl.DataFrame({f"c{i}": ranks(plain(frame[name]))[0] for i, name in enumerate(names)})
    cells = cells.with_columns(pl.int_range(pl.len()).alias("row"))
    if not nulls_are_values:
        cells = cells.filter(pl.all_horizontal(pl.col(f"c{i}") > 0 for i in range(len(names))))
    return [cells[f"c{i}"] for i in range(len(names))], cells["row"]


def verdict(frame: Any, rows: Any, exceptions: int, of: int, allowed: Any) -> Any:
    """True for each row, but for the given positions where more break a rule than is allowed: so many, or a share."""
    if exceptions <= (allowed * of if isinstance(allowed, Fraction) else allowed):
        rows = rows.clear()
    return pl.LazyFrame({"fine": ~pl.int_range(len(frame), eager=True).is_in(rows.implode())})


def key(frame: Any, names: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No two rows are equal in these columns. Listed: each row after the first of its kind."""
    columns, rows = chosen(frame, names, nulls_are_values)
    repeated = rows.filter(~together(len(rows), columns).is_first_distinct())
    return verdict(frame, repeated, len(repeated), len(rows), allowed)


def determines(frame: Any, names: Any, dependent: str, nulls_are_values: bool, allowed: Any) -> Any:
    """Rows that are equal in the columns have one value of the dependent. Listed: rows without the commonest value."""
    (*columns, values), rows = chosen(frame, [*names, dependent], nulls_are_values)
    cells = pl.DataFrame({"row": rows, "group": together(len(rows), columns), "value": values})
    cells = cells.with_columns(pl.len().over("group", "value").alias("size"))
    commonest = pl.col("value").filter(pl.col("size") == pl.col("size").max()).min().over("group")
    broken = cells.filter(pl.col("value") != commonest)["row"]
    return verdict(frame, broken, len(broken), len(rows), allowed)


def ordered(
    frame: Any, context: Any, left: str, right: str, ascending: bool, nulls_are_values: bool, allowed: Any
) -> Any:
    """Among rows equal in the context, one column rises or falls with another. Listed: rows in contradicting pairs.

    Counted are the fewest rows to remove: all but the longest chain.
    """
    (*columns, a, b), rows = chosen(frame, [*context, left, right], nulls_are_values)
    group = together(len(rows), columns)
    b = b if ascending else (b.max() or 0) - b
    b = group * ((b.max() or 0) + 1) + b  # above all of the groups before
    cells = pl.DataFrame({"row": rows, "group": group, "a": a, "b": b}).sort("group", "a", "b")
    cells = cells.with_columns(
        pl.col("b").cum_max().shift(1, fill_value=-1).alias("before"),
        pl.col("b").cum_min(reverse=True).shift(-1).fill_null(2**63 - 1).alias("after"),
    )
    before, after = pl.col("before").first().over("group", "a"), pl.col("after").last().over("group", "a")
    broken = cells.filter((before > pl.col("b")) | (after < pl.col("b")))["row"]
    ends: list[int] = []
    for value in cells["b"].to_list():
        place = bisect_right(ends, value)
        ends[place : place + 1] = [value]
    return verdict(frame, broken, len(rows) - len(ends), len(rows), allowed)


def included(frame: Any, names: Any, others: Any, allowed: Any) -> Any:
    """Each combination of values of columns occurs in other columns. Rows with a null don't count."""
    pairs = [ranks(plain(frame[name]), plain(frame[other])) for name, other in zip(names, others, strict=True)]
    cells = together(2 * len(frame), [pl.concat(pair) for pair in pairs])
    both = pl.DataFrame({"cells": cells, **{f"c{i}": pl.concat(pair) for i, pair in enumerate(pairs)}})
    both = both.with_columns(pl.int_range(pl.len()).alias("row"))
    both = both.filter(pl.all_horizontal(pl.col(f"c{i}") > 0 for i in range(len(pairs))))
    mine, theirs = both.filter(pl.col("row") < len(frame)), both.filter(pl.col("row") >= len(frame))
    missing = mine.join(theirs, on="cells", how="anti")["row"]
    return verdict(frame, missing, len(missing), len(mine), allowed)


def compared(frame: Any, predicate: Any, nulls_are_values: bool) -> Any:
    """Both sides of a predicate as ranks, the operator, and the rows of which it is known whether it holds."""
    _, left, sign, other, right = predicate
    column = plain(frame[left])
    if sign in ("is", "is not"):
        ranked = ranks(column)[0]
        return ranked, "==" if sign == "is" else "!=", ranked * 0, ranked >= 0
    a, b = ranks(column, beside(column, right) if other is None else plain(frame[right]))
    b = b if other is not None else b.new_from_index(0, len(frame))
    return a, sign, b, (a >= 0) & (b >= 0) if nulls_are_values else (a > 0) & (b > 0)


def denied(frame: Any, rules: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No row satisfies all predicates of one of the rules. A predicate: role, column, operator, role or None, other."""
    rows = pl.int_range(len(frame), eager=True)
    known, broken = rows >= 0, rows < 0
    for predicates in rules:
        found = rows >= 0
        for predicate in predicates:
            left, sign, right, sure = compared(frame, predicate, nulls_are_values)
            found &= OPERATORS[sign](left, right) & sure
            known &= sure
        broken |= found
    return verdict(frame, rows.filter(broken), broken.sum(), known.sum(), allowed)


def denied_pairs(frame: Any, predicates: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No two rows t and u satisfy all predicates. Listed: rows in such pairs; counted: ordered pairs."""
    rows = pl.int_range(len(frame), eager=True)
    sides = {role: {"row": rows} for role in ("t", "u")}
    fine = dict.fromkeys(("t", "u"), rows >= 0)
    tests = []
    for i, predicate in enumerate(predicates):
        role, _, _, other, _ = predicate
        left, sign, right, sure = compared(frame, predicate, nulls_are_values)
        if other in (None, role):
            fine[role] &= OPERATORS[sign](left, right) & sure
            continue
        if not nulls_are_values:
            fine[role] &= left > 0
            fine[other] &= right > 0
        sides[role][f"{role}{i}"], sides[other][f"{other}{i}"] = left, right
        tests.append(OPERATORS[sign](pl.col(f"{role}{i}"), pl.col(f"{other}{i}")))
    t, u = (pl.DataFrame(sides[role]).filter(fine[role]).lazy() for role in ("t", "u"))
    u = u.rename({"row": "other"})
    both = t.join_where(u, pl.col("row") != pl.col("other"), *tests).select("row", "other").collect()
    broken = pl.concat([both["row"], both["other"]]).unique()
    return verdict(frame, broken, len(both), len(frame) * (len(frame) - 1), allowed)
