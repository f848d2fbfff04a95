"""Texts to rank, and their ranks by definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

# Byte order is not that of UTF-16: U+10000 comes after U+FFFD. Then empty texts, NUL inside, texts that begin others.
AWKWARD = ["", "\0", "a", "a\0", "a\0b", "ab", "b", "é", "e\u0301", "\ufffd", "\U00010000", "\U0010ffff", "名", "A"]


def defined(parts: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """Distinct texts by bytes, and how many distinct ones lie below each value."""
    distinct = sorted({value for part in parts for value in part}, key=lambda text: text.encode())
    return distinct, [[distinct.index(value) for value in part] for part in parts]


def arrays(parts: Sequence[Sequence[str]]) -> list[pa.Array]:
    return [pa.array(part, pa.large_string()) for part in parts]


def check(found: tuple[pa.Array, list[Any]], parts: Sequence[Sequence[str]]) -> None:
    distinct, ranks = found
    assert distinct.type == pa.large_string()
    assert all(rank.dtype == np.int32 for rank in ranks)
    assert (distinct.to_pylist(), [rank.tolist() for rank in ranks]) == defined(parts)
