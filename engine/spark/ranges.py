"""Which range a value lies in, as a Spark expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def choose_leaf(value: Column, bounds: Sequence[Column], leaves: Sequence[Column]) -> Column:
    """The leaf of the range that a value lies in: leaf 0 below the first bound, leaf i + 1 from bound i on.

    `bounds`: ascending. A tree of comparisons, so each row takes as many as the logarithm of the bounds; unlike a join
    with ranges it stays on the GPU and moves no rows. Null lies below all.
    """
    from pyspark.sql import functions as f

    if not bounds:
        return leaves[0]
    middle = len(bounds) // 2
    lower = choose_leaf(value, bounds[:middle], leaves[: middle + 1])
    upper = choose_leaf(value, bounds[middle + 1 :], leaves[middle + 1 :])
    return f.when(value >= bounds[middle], upper).otherwise(lower)
