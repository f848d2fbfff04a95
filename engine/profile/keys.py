"""Keys of one column: whether its values are of the kind that name rows, not only different by chance.

Measurements differ from row to row, too. What tells a key is that its values would collide, were they drawn at random
from what such values look like: whole numbers from the range that they span, dates and times from the steps between
the first and the last, texts letter by letter from the letters that stand at each place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuplewise.engine.profile import measures
from tuplewise.engine.profile.rows import Rows
from tuplewise.engine.profile.rule import Rule
from tuplewise.engine.table.relation import Relation

LONGEST_NAME = 40  # letters of a text that may name a row; longer ones are prose
PLAIN_TEXT = 10.0  # the evidence of texts that differ although letters drawn at random would, too, at most
PLAIN_TEXT_ROWS = 20  # rows that add one to it
LEAST_EVIDENCE = 1.0
LEAST_FILLED = 0.05  # share of rows with a value
MOST_LOOKED_AT = 200_000  # values of a column


def single_keys(relation: Relation, rows: Rows, seed: int) -> list[Rule]:
    """The columns that name rows, with at most a few rows that repeat a value."""
    found = []
    for number in range(len(relation.columns)):
        filled, distinct = int(rows.filled[number]), int(rows.distinct[number])
        repeated = filled - distinct
        if filled < 2 or filled < LEAST_FILLED * rows.count or repeated > measures.MOST_DOUBLES * filled:
            continue
        evidence = collisions_by_chance(relation, number, seed)
        if evidence < LEAST_EVIDENCE:
            continue
        strength = 1.0 - repeated / filled
        score = measures.key_score(strength, evidence, 1, filled / rows.count)
        found.append(Rule("key", (number,), (), "", filled, repeated, evidence, strength, score))
    return found


def collisions_by_chance(relation: Relation, number: int, seed: int) -> float:
    """Pairs of rows that would have the same value, were values drawn at random from their kind."""
    column = relation.columns[number]
    codes = relation.codes[number]
    kept = np.unique(codes[codes >= 0])
    count = len(codes[codes >= 0])
    pairs = count * (count - 1) / 2
    values: Any = relation.dictionaries[column.domain].take(pa.array(_some(kept, seed)))
    if column.type == "text":
        return _texts(values, pairs, count)
    if column.type in ("integer", "date", "timestamp") or (column.type in ("decimal", "double") and _are_whole(values)):
        return _steps(values, kept, relation.dictionaries[column.domain], pairs)
    return 0.0


def _some(codes: Any, seed: int) -> Any:
    if len(codes) <= MOST_LOOKED_AT:
        return codes
    return np.sort(np.random.default_rng(seed).choice(codes, MOST_LOOKED_AT, replace=False))


def _are_whole(values: Any) -> bool:
    """Whether numbers that may have fractions have none: those of tables that keep whole numbers so."""
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return bool(np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all())


def _steps(values: Any, kept: Any, dictionary: Any, pairs: float) -> float:
    """Whole numbers, dates and times: as many values as there are steps from the least to the greatest."""
    if pa.types.is_date(values.type):
        numbers = values.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = dictionary.take(pa.array([int(kept[0]), int(kept[-1])])).cast(pa.int32()).to_pylist()
    elif pa.types.is_timestamp(values.type):
        numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        ends = dictionary.take(pa.array([int(kept[0]), int(kept[-1])])).cast(pa.int64()).to_pylist()
    else:
        numbers = np.array([int(v) for v in values.to_pylist()], dtype=object)
        ends = [int(v) for v in dictionary.take(pa.array([int(kept[0]), int(kept[-1])])).to_pylist()]
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
