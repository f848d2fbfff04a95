"""Columns of a profiled table: the distribution of their values, and warnings about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tuplewise.engine.profile.rule import Listed, Rule
from tuplewise.engine.table.relation import NULL_CODE, Relation

if TYPE_CHECKING:
    from tuplewise.engine.profile.table import ProfiledTable

BINS = 24
SHOWN_VALUES = 6
FEW_VALUES = 12
"""Values of an ordered column that are shown one by one."""
ONE_VALUE = "has one value"
MOSTLY_NULL = 0.95
MOSTLY_NUMBERS = 0.8
FEW_ALIKE = 0.1
"""Share of rows that are alike but for their keys; where more are, the other columns describe kinds of things."""
MOST_LOOKED_AT = 100_000  # distinct texts
_NUMBER = r"^\s*[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?\s*$"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows in `BINS` bins of equal width from the lowest to the highest finite value, which are given as text.

    Infinities count in the outermost bins, NaN in the last one.
    """

    low: str
    high: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frequent:
    """The most frequent values with their rows, and the number of rows with other values."""

    values: tuple[tuple[str, int], ...]
    other: int


@dataclass(frozen=True, slots=True)
class Warning_:
    """A warning about a column, or about the table if `column` is None."""

    column: str | None
    text: str


def distribution(relation: Relation, number: int) -> Histogram | Frequent | None:
    """The distribution of a column's values; None if it has none."""
    column, codes = relation.columns[number], relation.codes[number]
    rows_of_code = np.bincount(codes[codes != NULL_CODE])
    present = np.flatnonzero(rows_of_code)
    counts = rows_of_code[present]
    if not len(present):
        return None
    dictionary = relation.dictionaries[column.domain]
    if column.ordered and len(present) > FEW_VALUES:
        return _histogram(dictionary, present, counts)
    best = np.lexsort((present, -counts))[:SHOWN_VALUES]
    values = tuple((spelled(dictionary[int(present[i])].as_py()), int(counts[i])) for i in best)
    return Frequent(values, int(counts.sum() - sum(count for _, count in values)))


def spelled(value: Any) -> str:
    """A value as text; decimals without trailing zeros."""
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(value)


def _histogram(dictionary: Any, present: NDArray[Any], counts: NDArray[Any]) -> Histogram:
    values = as_numbers(dictionary.take(pa.array(present)))
    finite = np.flatnonzero(np.isfinite(values))
    ends = finite[[0, -1]] if len(finite) else np.array([0, -1])
    low, high = (spelled(dictionary[int(code)].as_py()) for code in present[ends])
    least, most = values[ends]
    if not len(finite) or least == most:
        return Histogram(low, high, (int(counts.sum()),))
    found, _ = np.histogram(np.fmax(least, np.fmin(values, most)), bins=BINS, weights=counts)
    return Histogram(low, high, tuple(round(n) for n in found.tolist()))


def as_numbers(values: Any) -> NDArray[np.float64]:
    """Numbers, dates and times as numbers."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers: NDArray[np.float64] = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def warnings(table: ProfiledTable, listed: Sequence[Listed]) -> Iterator[Warning_]:
    """Warnings about columns and repeated rows. `listed`: the rules that were found."""
    relation, rows = table.relation, table.count
    texts = [number for number, column in enumerate(relation.columns) if column.type == "text" and column.distinct > 2]
    lowest = dict(zip(texts, table.lowest_values(texts, MOST_LOOKED_AT), strict=True))
    for number, column in enumerate(relation.columns):
        filled = rows - column.nulls
        if rows and not filled:
            yield Warning_(column.name, "has no values")
        elif column.distinct == 1 and rows > 1:
            yield Warning_(column.name, ONE_VALUE + (f", and {column.nulls:,} nulls" if column.nulls else ""))
        elif column.nulls > MOSTLY_NULL * rows:
            yield Warning_(column.name, f"is null in {column.nulls:,} of {rows:,} rows")
        if number in lowest and (mixed := _other_than_numbers(relation.dictionaries["text"], lowest[number])):
            yield Warning_(column.name, mixed)
    yield from _scaled(table, listed)
    yield from _alike(table, [one.rule for one in listed if one.rule.kind == "key"])


def _scaled(table: ProfiledTable, listed: Sequence[Listed]) -> Iterator[Warning_]:
    """Warnings about columns that hold the numbers of another column in another unit."""
    relation = table.relation
    alike = [one.rule.right for one in listed if one.rule.kind == "od" and not one.rule.left]
    alike += [pair for one in listed for pair in one.equivalent]
    for a, b in sorted({(min(pair), max(pair)) for pair in alike}):
        if {relation.columns[a].domain, relation.columns[b].domain} <= {"number", "double"}:
            found = _line(table, a, b)
            if found is not None:
                factor, offset = found
                shift = "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset):.12g}"
                text = f"is {factor:.12g} x `{relation.columns[a].name}`{shift} in every row"
                yield Warning_(relation.columns[b].name, text)


def _line(table: ProfiledTable, a: int, b: int) -> tuple[float, float] | None:
    """The factor and the offset with which b follows from a in every row; None if there are none."""
    columns, dictionaries = table.relation.columns, table.relation.dictionaries
    pairs = zip((a, b), table.value_pairs(a, b), strict=True)
    x, y = (as_numbers(dictionaries[columns[c].domain].take(pa.array(codes))) for c, codes in pairs)
    if len(x) < FEW_VALUES or not (np.isfinite(x).all() and np.isfinite(y).all()) or x.min() == x.max():
        return None
    factor = float((y[x.argmax()] - y[x.argmin()]) / (x.max() - x.min()))
    factor = float(f"{factor:.10g}")
    offset = float(f"{float(y[x.argmin()] - factor * x.min()):.10g}")
    off = np.abs(factor * x + offset - y)
    return (factor, offset) if factor and bool(np.all(off <= 1e-9 * np.abs(y).max())) else None


def _other_than_numbers(dictionary: Any, present: NDArray[np.int32]) -> str | None:
    """If most texts of a column are numbers: how many are not, with an example."""
    texts = dictionary.take(pa.array(present))
    is_number = pc.match_substring_regex(texts, _NUMBER).to_numpy(zero_copy_only=False)
    others = int(np.count_nonzero(~is_number))
    if not 0 < others <= (1 - MOSTLY_NUMBERS) * len(present):
        return None
    example = texts[int(np.flatnonzero(~is_number)[0])].as_py()
    return f"is text: {others:,} of {len(present):,} values are not numbers, such as {example[:40]!r}"


def _alike(table: ProfiledTable, keys: Sequence[Rule]) -> Iterator[Warning_]:
    columns = range(len(table.relation.columns))
    doubled = table.repeated(columns)
    if doubled:
        yield Warning_(None, f"{doubled:,} of {table.count:,} rows repeat another one in all columns")
    names = {rule.left[0] for rule in keys if len(rule.left) == 1}
    others = [c for c in columns if c not in names]
    if names and len(others) >= 2:
        alike = table.repeated(others)
        if doubled < alike <= FEW_ALIKE * table.count:
            listed = ", ".join(table.relation.columns[c].name for c in sorted(names))
            yield Warning_(None, f"{alike:,} of {table.count:,} rows repeat another one in all columns but {listed}")
