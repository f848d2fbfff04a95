"""Seeded wide tables: few independent columns, and many that follow from them.

Such tables come out of joins of a fact table with its dimensions: the fact table's own columns are few, the columns of
a dimension follow from its key, and repeat, coarsen or combine one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

ROOT_BITS = (12, 11, 9, 7, 6, 4, 2, 1)  # of the columns that follow from nothing
WIDE_ROOTS = 6  # those with coarser ones
AMENDED_ROWS = 3  # for each bit of a root, in the same lot and in the next: rows that differ in it alone
LOT_ROWS = 50  # rows of a lot
FLAG_SHARE = 0.01  # of rows in which a flag is set
KINDS = ("coarse", "alias", "copy", "constant", "flag", "both")
SHARES = (0.55, 0.1, 0.08, 0.1, 0.07, 0.1)


def joined_dimensions(rows: int, *, columns: int, seed: int) -> pa.Table:
    """A table of whole numbers that has few keys, and few functional dependencies for its width.

    `id` is a key, and so are `lot` and `place` together. The roots `r0` to `r7` and the flags are drawn at random: of
    each there are rows that differ in it, in what follows from it, in `id`, and in one of `lot` and `place` alone. So
    nothing else determines it. Any other column is a coarser root, another name of a root, a copy of a column, a
    constant, or follows from two roots.

    Parameters
    ----------
    rows : 600 for each bit of a root and each flag, and a multiple of 100
    columns : at least 12
    seed : the same arguments give the same table

    Examples
    --------
    >>> table = joined_dimensions(40_000, columns=40, seed=1)
    >>> table.num_rows, table.num_columns, table.column_names[:4]
    (40000, 40, ['id', 'lot', 'place', 'r0'])
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    kinds = rng.choice(KINDS, columns - 3 - len(ROOT_BITS), p=SHARES).tolist()
    place_of_row = rng.permutation(rows)
    roots = _roots(rng, np.argsort(place_of_row), flags=kinds.count("flag"))
    made = {"id": rng.permutation(rows), "lot": place_of_row // LOT_ROWS, "place": place_of_row % LOT_ROWS}
    made |= {f"r{i}": root for i, root in enumerate(roots[: len(ROOT_BITS)])}
    flags = iter(roots[len(ROOT_BITS) :])
    for number, kind in enumerate(kinds):
        made[f"{kind}{number}"] = next(flags) if kind == "flag" else _following(rng, kind, made)
    return pa.table({name: pa.array(values.astype(np.int64)) for name, values in made.items()})


def _roots(rng: np.random.Generator, row_at: NDArray[np.int64], *, flags: int) -> list[NDArray[np.int64]]:
    """The roots, then the flags. `row_at`: the row of each place, lot by lot."""
    bits, rows = [*ROOT_BITS, *([1] * flags)], len(row_at)
    roots = [
        (rng.random(rows) < FLAG_SHARE).astype(np.int64) if i >= len(ROOT_BITS) else rng.integers(0, 1 << most, rows)
        for i, most in enumerate(bits)
    ]
    changes = [{}, *({i: 1 << bit} for i, most in enumerate(bits) for bit in range(most))]
    half = WIDE_ROOTS // 2  # what two roots make stays the same where both change alike
    changes += [{i: low, i + half: low} for i in range(half) for low in (1, 2, 3)]
    pairs = 2 * AMENDED_ROWS * len(changes)
    before = LOT_ROWS * 2 * rng.choice(rows // LOT_ROWS // 2, pairs, replace=False)
    amended = before + np.where(np.arange(pairs) % 2, 1, LOT_ROWS)
    for root in roots:
        root[row_at[amended]] = root[row_at[before]]
    for change, rows_of in zip(changes, np.split(row_at[amended], len(changes)), strict=True):
        for i, changed in change.items():
            roots[i][rows_of] ^= changed
    return roots


def _following(rng: np.random.Generator, kind: str, made: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """A column that follows from those that were made before it."""
    if kind == "constant":
        return np.full_like(made["r0"], rng.integers(0, 1_000))
    if kind == "copy":
        return made[rng.choice(list(made))]
    if kind == "alias":
        return _renamed(rng, made[f"r{rng.integers(len(ROOT_BITS))}"])
    if kind == "coarse":
        root = rng.integers(WIDE_ROOTS)
        return _renamed(rng, made[f"r{root}"] >> rng.integers(1, ROOT_BITS[root]))
    half = WIDE_ROOTS // 2
    first = rng.integers(half)
    return _renamed(rng, (made[f"r{first}"] ^ made[f"r{first + half}"]) & 3)


def _renamed(rng: np.random.Generator, column: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same column with other values."""
    return rng.permutation(int(column.max()) + 1)[column]
