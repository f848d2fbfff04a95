"""Layout of a table for the tiles of a rule: groups of rows that agree, with heavy groups cut into blocks.

Only figures come to the driver: sizes of heavy groups, a sample of codes, extremes of blocks. Rows are moved by Spark
SQL, which stays on the GPU under the RAPIDS Accelerator. The exception is finding the block of a row among many: SQL
has no search in a sorted array, so NumPy does it on Arrow batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.tasks import BlockFinder
from tuplewise.engine.spark.tiles import SAMPLES, BlockFigures, Tiles, TileSizes, block_keys, choose_blocks, plan_tiles
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison

NULL = -1  # the code of null


class RowCondition(Protocol):
    """A condition on a single row; see `engine.dc.violations.program.RowTest`."""

    @property
    def kind(self) -> str: ...
    @property
    def left(self) -> int: ...
    @property
    def right(self) -> int: ...
    @property
    def outcomes(self) -> int: ...
    @property
    def place(self) -> int: ...


class PairRule(Protocol):
    """The parts of a rule that the layout needs; see `engine.dc.violations.program.Program`."""

    @property
    def left_tests(self) -> Sequence[RowCondition]: ...
    @property
    def right_tests(self) -> Sequence[RowCondition]: ...
    @property
    def left_needed(self) -> Sequence[int]: ...
    @property
    def right_needed(self) -> Sequence[int]: ...
    @property
    def comparisons(self) -> Sequence[Comparison]: ...
    @property
    def symmetric(self) -> bool: ...
    @property
    def one_row(self) -> bool: ...


@dataclass(frozen=True)
class PairShape:
    """The way the pairs of a rule are cut.

    Attributes
    ----------
    keys : (left column, right column) pairs that have to be equal: rows that agree on them form a group
    others : the other comparisons
    split : the comparison whose columns cut large groups into ranges: the first inequality, else the first
        non-equality; None if there is none: positions cut them
    alike : whether both sides of a pair are grouped and cut by the same columns
    mirrored : whether the rule is also its own mirror, so that half of the tiles suffice
    """

    keys: tuple[tuple[int, int], ...]
    others: tuple[Comparison, ...]
    split: Comparison | None
    alike: bool
    mirrored: bool

    @property
    def same_keys(self) -> bool:
        """Whether a row is in the same group on both sides."""
        return all(a == b for a, b in self.keys)

    @property
    def key_names(self) -> list[str]:
        """The names of the columns of a key."""
        return [f"k{i}" for i in range(len(self.keys))]

    def key_columns(self, side: int) -> list[str]:
        """The columns that hold the key of a row on the left (0) or on the right (1)."""
        return [f"c{pair[side]}" for pair in self.keys]

    @classmethod
    def of(cls, rule: PairRule) -> PairShape:
        """The shape of a rule about two rows."""
        keys = tuple((c.left, c.right) for c in rule.comparisons if c.outcomes == EQUAL)
        others = tuple(c for c in rule.comparisons if c.outcomes != EQUAL)
        ordered = [c for c in others if c.outcomes != LESS | GREATER]
        split = next(iter([*ordered, *others]), None)
        alike = all(a == b for a, b in keys) and (split is None or split.left == split.right)
        return cls(keys, others, split, alike, alike and rule.symmetric)


def passing(tests: Sequence[RowCondition], needed: Sequence[int]) -> Column:
    """The condition that a row passes these tests and has no null in the columns `needed`."""
    conditions = [f.col(f"c{column}") != NULL for column in needed]
    for test in tests:
        left = f.col(f"c{test.left}")
        if test.kind == "null":
            conditions.append(left == NULL if test.outcomes == EQUAL else left != NULL)
        elif test.kind == "columns":
            conditions.append(_satisfied(left, f.col(f"c{test.right}"), test.outcomes))
        else:
            conditions.append(_satisfied(2 * left.cast("bigint"), f.lit(test.place).cast("bigint"), test.outcomes))
    return reduce(lambda a, b: a & b, conditions, f.lit(True))


def _satisfied(left: Column, right: Column, outcomes: int) -> Column:
    parts = [left < right] * bool(outcomes & LESS)
    parts += [left == right] * bool(outcomes & EQUAL)
    parts += [left > right] * bool(outcomes & GREATER)
    return reduce(lambda a, b: a | b, parts, f.lit(False))


@dataclass(eq=False)
class Layout:
    """The tiles of a rule on a table, and the rows with their groups and blocks.

    Attributes
    ----------
    rows : position, codes, whether a row can be t (`l`) and u (`r`), and its heavy group on each side (`lg`, `rg`; null
        if the row isn't on that side, or its group is not cut)
    light_tiles : number of tiles for groups that are not cut
    heavy : persisted rows of the groups that are cut: position, codes, block on each side (`lb`, `rb`; or null); None
        if there are none
    tiles : tiles of the groups that are cut
    left, right : figures of their blocks
    """

    shape: PairShape
    columns: int
    rows: DataFrame
    light_tiles: int
    heavy: DataFrame | None
    tiles: Tiles
    left: BlockFigures
    right: BlockFigures

    @property
    def codes(self) -> list[str]:
        """Names of the columns of codes."""
        return [f"c{i}" for i in range(self.columns)]

    def close(self) -> None:
        """Let Spark drop what it holds."""
        if self.heavy is not None:
            self.heavy.unpersist()


def lay_out(frame: DataFrame, columns: int, rule: PairRule, sizes: TileSizes, *, full: bool, seed: int = 0) -> Layout:
    """Find the groups of a rule, cut the heavy ones, and plan their tiles.

    Parameters
    ----------
    frame : position and codes c0, c1, ... (`columns` of them)
    full : list tiles all of whose pairs violate separately

    Notes
    -----
    Jobs: one for group sizes (a shuffle of keys, reduced before it); if there are heavy groups, one for a sample of
    their codes and one for the extremes of their blocks.
    """
    shape = PairShape.of(rule)
    fits = {"l": passing(rule.left_tests, rule.left_needed), "r": passing(rule.right_tests, rule.right_needed)}
    base = frame.select("position", *(f"c{i}" for i in range(columns)), *(c.alias(n) for n, c in fits.items()))
    base = base.where(f.col("l") | f.col("r"))
    heavy, group_rows, light_rows = _find_groups(base, shape, sizes)
    rows = _with_groups(base, shape, heavy, cut=len(group_rows) > 0)
    light_tiles = sizes.light_tiles(light_rows) if light_rows else 0
    if not shape.keys:
        light_tiles = min(light_tiles, 1)  # all rows are one group
    if not len(group_rows):
        nothing = np.zeros(0, dtype=np.int64)
        none = BlockFigures(nothing, *np.zeros((2, len(shape.others), 0), dtype=np.int32))
        tiles = Tiles(nothing, nothing, nothing, nothing, shape.mirrored)
        return Layout(shape, columns, rows, light_tiles, None, tiles, none, none)
    keys = _sampled_keys(rows, shape, group_rows, sizes, seed)
    blocks = choose_blocks(group_rows, keys, sizes)
    split = (None, None) if shape.split is None else (shape.split.left, shape.split.right)
    schema = "position bigint, " + "".join(f"c{i} int, " for i in range(columns)) + "lb bigint, rb bigint"
    finder = BlockFinder(blocks, columns, *split)
    placed = rows.where(f.col("lg").isNotNull() | f.col("rg").isNotNull()).mapInArrow(finder.run, schema).persist()
    try:
        left, right = _figures(placed, shape, len(blocks.group))
    except BaseException:
        placed.unpersist()
        raise
    outcomes = [c.outcomes for c in shape.others]
    tiles = plan_tiles(blocks.group, left, right, outcomes, mirrored=shape.mirrored, full=full)
    return Layout(shape, columns, rows, light_tiles, placed, tiles, left, right)


def _find_groups(
    base: DataFrame, shape: PairShape, sizes: TileSizes
) -> tuple[DataFrame | None, NDArray[np.int64], int]:
    """Heavy groups as a frame (k0, k1, ..., g), rows of the larger side of each, and rows of all others together.

    The last is 0 where no other group holds a pair of different rows. The frame is None where there are no keys.
    """
    names = shape.key_names
    if shape.same_keys:
        keys = [f.col(c).alias(k) for c, k in zip(shape.key_columns(0), names, strict=True)]
        sides = base.select(*keys, *(f.col(s).cast("bigint").alias(f"n{s}") for s in "lr"), f.lit(1).alias("n"))
    else:
        branches = []
        for side, fits in enumerate("lr"):
            keys = [f.col(c).alias(k) for c, k in zip(shape.key_columns(side), names, strict=True)]
            counts = [f.lit(int(side == s)).cast("bigint").alias(n) for s, n in enumerate(("nl", "nr"))]
            branches.append(base.where(f.col(fits)).select(*keys, *counts, f.lit(1).alias("n")))
        sides = branches[0].unionAll(branches[1])
    groups = sides.groupBy(*names).agg(*(f.sum(n).alias(n) for n in ("nl", "nr", "n")))
    larger = f.greatest("nl", "nr")
    paired = (f.col("nl") > 0) & (f.col("nr") > 0) & (f.col("n") > 1)
    marked = groups.select("*", larger.alias("rows"), paired.alias("paired"))
    marked = marked.withColumn("heavy", f.col("paired") & (larger > sizes.heavy_rows))
    keyed = [f.when(f.col("heavy"), f.col(k)).alias(k) for k in names]
    found = marked.groupBy("heavy", *keyed).agg(f.sum("rows").alias("rows"), f.max("paired").alias("paired")).collect()
    heavy = sorted((*(row[k] for k in names), row["rows"]) for row in found if row["heavy"])
    light_rows = sum(row["rows"] for row in found if not row["heavy"] and row["paired"])
    group_rows = np.array([row[-1] for row in heavy], dtype=np.int64)
    if not names or not heavy:
        return None, group_rows, light_rows
    columns = {k: pa.array([row[i] for row in heavy], pa.int32()) for i, k in enumerate(names)}
    numbered = pa.table({**columns, "g": pa.array(range(len(heavy)), pa.int64())})
    return frame_of(base.sparkSession, numbered), group_rows, light_rows


def _with_groups(base: DataFrame, shape: PairShape, heavy: DataFrame | None, *, cut: bool) -> DataFrame:
    """The rows with their heavy groups, `lg` and `rg`. Without keys all rows are in group 0, if it is cut."""
    if heavy is None:
        group = f.lit(0 if cut else None).cast("bigint")
        return base.select("*", *(f.when(f.col(s), group).alias(f"{s}g") for s in "lr"))
    found = base
    for side, fits in enumerate("l" if shape.same_keys else "lr"):
        renamed = heavy.select(*(f.col(k).alias(f"{fits}{k}") for k in shape.key_names), f.col("g").alias(f"{fits}h"))
        pairs = zip(shape.key_columns(side), shape.key_names, strict=True)
        on = reduce(lambda a, b: a & b, [f.col(c) == f.col(f"{fits}{k}") for c, k in pairs])
        found = found.join(f.broadcast(renamed), on, "left")
    groups = [f.when(f.col(s), f.col("lh" if shape.same_keys else f"{s}h")).alias(f"{s}g") for s in "lr"]
    return found.select(*base.columns, *groups)


def _sampled_keys(
    rows: DataFrame, shape: PairShape, group_rows: NDArray[np.int64], sizes: TileSizes, seed: int
) -> NDArray[np.int64]:
    """`block_keys` of sampled rows of heavy groups, for both sides if different columns cut them."""
    if shape.split is None:
        return np.zeros(0, dtype=np.int64)
    wanted = SAMPLES * sum(sizes.blocks(n) for n in group_rows.tolist())
    share = min(1.0, wanted / max(1, int(group_rows.sum())))
    groups = {"l": f.col("lg"), "r": f.col("rg")}
    if shape.alike:
        groups = {"l": f.coalesce("lg", "rg")}
    split = {"l": shape.split.left, "r": shape.split.right}
    chosen = [x for s, g in groups.items() for x in (g.alias(f"{s}g"), f.col(f"c{split[s]}").alias(f"{s}c"))]
    sample = rows.sample(share, seed).select(*chosen).where(" or ".join(f"{s}g is not null" for s in groups)).toArrow()
    keys = []
    for side in groups:
        own = sample.filter(sample[f"{side}g"].is_valid())
        keys.append(block_keys(own[f"{side}g"].to_numpy(), own[f"{side}c"].to_numpy()))
    return np.concatenate(keys)


def _figures(placed: DataFrame, shape: PairShape, blocks: int) -> tuple[BlockFigures, BlockFigures]:
    """The number of rows of each block on each side, and the extremes of the compared columns. One job."""
    sides = []
    for number, side in enumerate("lr"):
        read = [f.col(f"c{(c.left, c.right)[number]}").alias(f"v{i}") for i, c in enumerate(shape.others)]
        own = placed.where(f.col(f"{side}b").isNotNull())
        sides.append(own.select(f.lit(number).alias("side"), f.col(f"{side}b").alias("block"), *read))
    numbers = range(len(shape.others))
    extremes = [x for i in numbers for x in (f.min(f"v{i}").alias(f"low{i}"), f.max(f"v{i}").alias(f"high{i}"))]
    found = sides[0].unionAll(sides[1]).groupBy("side", "block").agg(f.count("*").alias("rows"), *extremes).toArrow()
    made = []
    for number in range(2):
        own = found.filter(found["side"].to_numpy() == number)
        block = own["block"].to_numpy()
        rows = np.zeros(blocks, dtype=np.int64)
        rows[block] = own["rows"].to_numpy()
        low, high = np.zeros((2, len(shape.others), blocks), dtype=np.int32)
        for i in numbers:
            low[i, block], high[i, block] = own[f"low{i}"].to_numpy(), own[f"high{i}"].to_numpy()
        made.append(BlockFigures(rows, low, high))
    return made[0], made[1]
