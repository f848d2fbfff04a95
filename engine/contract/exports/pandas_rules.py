"""Rules over whole pandas frames. Exports to Pandera hold this text, so it imports nothing of ours."""

import operator
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
FITTING = {
    "integer": ("integer",),
    "decimal": ("integer", "decimal", "floating", "mixed-integer-float"),
    "double": ("integer", "decimal", "floating", "mixed-integer-float"),
    "date": ("date", "datetime64", "datetime"),
    "timestamp": ("date", "datetime64", "datetime"),
    "boolean": ("boolean",),
    "text": ("string",),
}
MOST_ROWS, MOST_CELLS = 2048, 1 << 22


def is_of_type(column: Any, wanted: str) -> bool:
    """Whether a column holds values of a type, whatever pandas keeps them in: whole numbers with gaps are floats."""
    found = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    if found == "empty" or found in FITTING[wanted]:
        return True
    return wanted == "integer" and found == "floating" and bool((column.dropna() % 1 == 0).all())


def plain(column: Any) -> Any:
    """A column whose values compare: categories as their values, dates as instants, zones as UTC."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object).infer_objects()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype == object:
        found = pd.api.types.infer_dtype(column, skipna=True)
        if found == "date":
            return column.astype("datetime64[us]")
        if found == "datetime":
            return pd.to_datetime(column, utc=True).dt.tz_localize(None)
    return column


def beside(column: Any, value: Any) -> Any:
    """A constant of the type of a column, as a column of one row."""
    if pd.api.types.is_datetime64_dtype(column.dtype) and isinstance(value, str):
        moment = pd.Timestamp(value)
        value = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
    elif pd.api.types.is_float_dtype(column.dtype) and isinstance(value, (int, Decimal)):
        value = float(value)
    return pd.Series([value])


def ranks(*columns: Any) -> Any:
    """Columns as ranks in the order of all their values; a null is -1."""
    if len({column.dtype for column in columns}) > 1:
        columns = tuple(column.astype(object) for column in columns)
    codes, _ = pd.factorize(pd.concat(columns, ignore_index=True), sort=True)
    return np.split(codes.astype(np.int64), np.cumsum([len(column) for column in columns])[:-1])


def together(rows: int, columns: Any) -> Any:
    """Columns of ranks as one: equal numbers where rows are equal in all."""
    found = np.zeros(rows, dtype=np.int64)
    for column in columns:
        found = np.unique(found * (column.max(initial=-1) + 2) + column, return_inverse=True)[1].astype(np.int64)
    return found


def chosen(frame: Any, names: Any, nulls_are_values: bool) -> Any:
    """The ranks of columns, and the positions of the rows that a rule on them speaks of."""
    columns = [ranks(plain(frame[name]))[0] for name in names]
    known = np.ones(len(frame), dtype=bool)
    for column in columns if not nulls_are_values else ():
        known &= column >= 0
    return [column[known] for column in columns], np.flatnonzero(known)


def verdict(frame: Any, rows: Any, exceptions: int, of: int, allowed: Any) -> Any:
    """True for each row, but for the given positions where more break a rule than is allowed: so many, or a share."""
    fine = np.ones(len(frame), dtype=bool)
    if exceptions > (allowed * of if isinstance(allowed, Fraction) else allowed):
        fine[rows] = False
    return pd.Series(fine, index=frame.index)


def key(frame: Any, names: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No two rows are equal in these columns. Listed: each row after the first of its kind."""
    columns, rows = chosen(frame, names, nulls_are_values)
    repeated = rows[pd.Series(together(len(rows), columns)).duplicated().to_numpy()]
    return verdict(frame, repeated, len(repeated), len(rows), allowed)


def determines(frame: Any, names: Any, dependent: str, nulls_are_values: bool, allowed: Any) -> Any:
    """Rows that are equal in the columns have one value of the dependent. Listed: rows without the commonest value."""
    (*columns, values), rows = chosen(frame, [*names, dependent], nulls_are_values)
    cells = pd.DataFrame({"group": together(len(rows), columns), "value": values})
    counts = cells.groupby(["group", "value"], as_index=False).size().sort_values(
        ["group", "size", "value"], ascending=[True, False, True]
    )  # fmt: skip
    commonest = counts.drop_duplicates("group").set_index("group")["value"]
    broken = rows[cells["value"].to_numpy() != commonest.loc[cells["group"]].to_numpy()]
    return verdict(frame, broken, len(broken), len(rows), allowed)


def ordered(
    frame: Any, context: Any, left: str, right: str, ascending: bool, nulls_are_values: bool, allowed: Any
) -> Any:
    """Among rows equal in the context, one column rises or falls with another. Listed: rows in contradicting pairs.

    Counted are the fewest rows to remove: all but the longest chain.
    """
    (*columns, a, b), rows = chosen(frame, [*context, left, right], nulls_are_values)
    group = together(len(rows), columns)
    b = b if ascending else -b
    low = b.min(initial=0)
    b = group * (b.max(initial=0) - low + 1) + b - low  # above all of the groups before
    order = np.lexsort((b, a, group))
    b, tied = b[order], together(len(rows), [group, a])[order]
    starts = np.flatnonzero(np.append(True, np.diff(tied) != 0))[: len(rows)]
    sizes = np.diff(np.append(starts, len(rows)))
    before = np.append(-1, np.maximum.accumulate(b))[starts].repeat(sizes)
    after = np.append(np.minimum.accumulate(b[::-1])[::-1], np.iinfo(np.int64).max)[starts + sizes].repeat(sizes)
    ends: list[int] = []
    for value in b.tolist():
        place = bisect_right(ends, value)
        ends[place : place + 1] = [value]
    broken = rows[order[(before > b) | (after < b)]]
    return verdict(frame, broken, len(rows) - len(ends), len(rows), allowed)


def included(frame: Any, names: Any, others: Any, allowed: Any) -> Any:
    """Each combination of values of columns occurs in other columns. Rows with a null don't count."""
    pairs = [ranks(plain(frame[name]), plain(frame[other])) for name, other in zip(names, others, strict=True)]
    cells = together(2 * len(frame), [np.concatenate(pair) for pair in pairs])
    full = np.logical_and.reduce([np.concatenate(pair) >= 0 for pair in pairs])
    mine, theirs = np.split(cells, 2)
    known, there = np.split(full, 2)
    missing = np.flatnonzero(known & ~np.isin(mine, theirs[there]))
    return verdict(frame, missing, len(missing), int(known.sum()), allowed)


def compared(frame: Any, predicate: Any, nulls_are_values: bool) -> Any:
    """Both sides of a predicate as ranks, the operator, and the rows of which it is known whether it holds."""
    _, left, sign, other, right = predicate
    column = plain(frame[left])
    if sign in ("is", "is not"):
        ranked = ranks(column)[0]
        return ranked, "==" if sign == "is" else "!=", np.full(len(frame), -1), np.ones(len(frame), dtype=bool)
    a, b = ranks(column, beside(column, right) if other is None else plain(frame[right]))
    b = b if other is not None else np.full(len(frame), b[0])
    return a, sign, b, (a >= 0) & (b >= 0) | nulls_are_values


def denied(frame: Any, rules: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No row satisfies all predicates of one of the rules. A predicate: role, column, operator, role or None, other."""
    known, broken = np.ones(len(frame), dtype=bool), np.zeros(len(frame), dtype=bool)
    for predicates in rules:
        found = np.ones(len(frame), dtype=bool)
        for predicate in predicates:
            left, sign, right, sure = compared(frame, predicate, nulls_are_values)
            found &= OPERATORS[sign](left, right) & sure
            known &= sure
        broken |= found
    return verdict(frame, np.flatnonzero(broken), int(broken.sum()), int(known.sum()), allowed)


def denied_pairs(frame: Any, predicates: Any, nulls_are_values: bool, allowed: Any) -> Any:
    """No two rows t and u satisfy all predicates. Listed: rows in such pairs; counted: ordered pairs.

    Rows are compared where they agree on what t and u must have in common: with nothing, each row with each.
    """
    chosen_rows = {role: np.ones(len(frame), dtype=bool) for role in ("t", "u")}
    keys, tests = [], []
    for predicate in predicates:
        role, _, _, other, _ = predicate
        left, sign, right, sure = compared(frame, predicate, nulls_are_values)
        if other in (None, role):
            chosen_rows[role] &= OPERATORS[sign](left, right) & sure
            continue
        if not nulls_are_values:
            chosen_rows[role] &= left >= 0
            chosen_rows[other] &= right >= 0
        if sign == "==":
            keys.append((left, right))
        else:
            tests.append((left, sign, right))
    both = together(2 * len(frame), [np.concatenate(pair) for pair in keys])
    t, u = np.flatnonzero(chosen_rows["t"]), np.flatnonzero(chosen_rows["u"])
    key_t, key_u = both[: len(frame)][t], both[len(frame) :][u]
    t, u = t[np.argsort(key_t, kind="stable")], u[np.argsort(key_u, kind="stable")]
    key_t, key_u = np.sort(key_t), np.sort(key_u)
    broken, pairs, start = np.zeros(len(frame), dtype=bool), 0, 0
    while start < len(t):
        size, first = MOST_ROWS, int(np.searchsorted(key_u, key_t[start]))
        last = int(np.searchsorted(key_u, key_t[min(start + size, len(t)) - 1], "right"))
        while size > 1 and size * (last - first) > MOST_CELLS:
            size //= 2
            last = int(np.searchsorted(key_u, key_t[min(start + size, len(t)) - 1], "right"))
        ts, us = t[start : start + size], u[first:last]
        found = (key_t[start : start + size, None] == key_u[None, first:last]) & (ts[:, None] != us[None, :])
        for left, sign, right in tests:
            found &= OPERATORS[sign](left[ts][:, None], right[us][None, :])
        pairs += int(found.sum())
        broken[ts[found.any(axis=1)]] = True
        broken[us[found.any(axis=0)]] = True
        start += size
    return verdict(frame, np.flatnonzero(broken), pairs, len(frame) * (len(frame) - 1), allowed)
