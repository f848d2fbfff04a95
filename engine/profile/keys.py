"""Keys of one column: whether its values identify rows, and don't differ just by chance.

Measurements differ from row to row, too. The values of a key would collide if they were drawn at random from similar
values: whole numbers from their range, dates and times from the steps between the first and the last, texts letter by
letter from the letters at each place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuplewise.engine.profile import measures
from tuplewise.engine.profile.rule import Rule
from tuplewise.engine.profile.table import ProfiledTable

LONGEST_NAME = 40  # letters of a text that may name a row; longer ones are prose
PLAIN_TEXT = 10.0  # the evidence of texts that differ although letters drawn at random would, too, at most
PLAIN_TEXT_ROWS = 20  # rows that add one to it
LEAST_EVIDENCE = 1.0
LEAST_FILLED = 0.05  # share of rows with a value
MOST_LOOKED_AT = 200_000  # values of a column


def single_keys(table: ProfiledTable, seed: int) -> list[Rule]:
    """The columns that identify rows, except for at most a few rows that repeat a value."""
    found = []
    for number in range(len(table.relation.columns)):
        filled, distinct = int(table.filled[number]), int(table.distinct[number])
        repeated = filled - distinct
        if filled < 2 or filled < LEAST_FILLED * table.count or repeated > measures.MOST_DOUBLES * filled:
            continue
        evidence = collisions_by_chance(table, number, seed)
        if evidence < LEAST_EVIDENCE:
            continue
        strength = 1.0 - repeated / filled
        score = measures.key_score(strength, evidence, 1, filled / table.count)
        found.append(Rule("key", (number,), (), "", filled, repeated, evidence, strength, score))
    return found


def collisions_by_chance(table: ProfiledTable, number: int, seed: int) -> float:
    """The pairs of rows that would be equal if values were drawn at random from similar values."""
    column = table.relation.columns[number]
    some = table.some_values(number, MOST_LOOKED_AT, seed)
    pairs = some.rows * (some.rows - 1) / 2
    dictionary = table.relation.dictionaries[column.domain]
    values: Any = dictionary.take(pa.array(some.codes))
    if column.type == "text":
        return _texts(values, pairs, some.rows)
    if column.type in ("integer", "date", "timestamp") or (column.type in ("decimal", "double") and _are_whole(values)):
        return _steps(values, dictionary.take(pa.array([some.lowest, some.highest])), pairs)
    return 0.0


def _are_whole(values: Any) -> bool:
    """Whether numbers that may have fractions have none: those of tables that keep whole numbers so."""
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return bool(np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all())


def _steps(values: Any, outer: Any, pairs: float) -> float:
    """Whole numbers, dates and times: as many values as there are steps from the least to the greatest."""
    if pa.types.is_date(values.type):
        numbers = values.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = outer.cast(pa.int32()).to_pylist()
    elif pa.types.is_timestamp(values.type):
        numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        ends = outer.cast(pa.int64()).to_pylist()
    else:
        numbers = np.array([int(v) for v in values.to_pylist()], dtype=object)
        ends = [int(v) for v in outer.to_pylist()]
    first = min(numbers)
    step = max(1, int(np.gcd.reduce(numbers - first))) if len(numbers) > 1 else 1
    return pairs / ((int(ends[1]) - int(ends[0])) // step + 1)


def _texts(values: Any, pairs: float, rows: int) -> float:
    """Texts: letters drawn at each place from those that stand there; the end counts as a letter."""
    plain = min(PLAIN_TEXT, rows / PLAIN_TEXT_ROWS)
    lengths = pc.utf8_length(values).to_numpy(zero_copy_only=False)
    if lengths.max(initial=0) > LONGEST_NAME:
        return 0.0 if np.quantile(lengths, 0.99) > LONGEST_NAME else plain
    padded = pc.utf8_rpad(values, int(lengths.max(initial=0)), padding="\0").to_pylist()
    letters = np.array(padded, dtype=f"<U{max(1, int(lengths.max(initial=0)))}").view(np.uint32)
    letters = letters.reshape(len(padded), -1)
    same = 1.0
    for place in letters.T:
        counts = np.unique(place, return_counts=True)[1]
        same *= 1.0 - measures.differing_share(counts)
    return max(pairs * same, plain)
