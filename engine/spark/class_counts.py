"""Counts, in Spark's tasks, of the agreement on some columns among rows that are equal on others.

One shuffle distributes the rows by their values on several numbered left sides at once. Kernels count within the
classes of a task. They return sums of whole numbers, so the result does not depend on partitioning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tuplewise.engine.spark.resources import task_device
from tuplewise.engine.spark.tasks import Batches, spare_zip_reading
from tuplewise.gpu_kernels.agreement import FRACTION_BITS, count_agreement
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.order import lay_out_orders
from tuplewise.gpu_kernels.order_types import ASCENDING, DESCENDING
from tuplewise.gpu_kernels.refine import refine_equal

NULL = -1
COPIES = "copies"
WHOLE = -1
"""The target that stands for a class itself."""
FIGURES = ("rows", "classes", "majority", "pairs", "contradictions")
MOST_TARGETS = 8
"""Targets of one left side that are counted together: a row is sent with all of them."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A left side and the targets to count in its classes. Rows with a null in `left` or `filled` are left out."""

    left: tuple[int, ...]
    targets: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """The counts of a target, or of the classes themselves.

    Attributes
    ----------
    rows, classes : those with a value in the target
    majority : rows with their class's most frequent value
    pairs : for the classes themselves, unordered pairs of rows of one class; for a target, those that differ on it
    contradictions : see `gpu_kernels.agreement`
    """

    rows: int = 0
    classes: int = 0
    majority: int = 0
    pairs: int = 0
    contradictions: float = 0.0


def count_classes(frame: DataFrame, asks: Sequence[Ask], device: str) -> list[dict[int, ClassFigures]]:
    """The figures of each ask: of its targets, and of its classes themselves under `WHOLE`. One job.

    Parameters
    ----------
    frame : codes c0, c1, ... (int); null is -1

    Notes
    -----
    Rows that are equal on all columns of an ask are collapsed into one with their number before the shuffle. If few
    values on the left determine those on the right, hardly anything is sent, however large the classes. Other rows go
    through two shuffles, 4 bytes a code. A task holds the distinct rows of its classes.
    """
    parts = [(n, Ask(ask.left, some, ask.filled)) for n, ask in enumerate(asks) for some in _in_parts(ask.targets)]
    sent = _sent(frame, [ask for _, ask in parts])
    left, right = _names("l", [ask.left for _, ask in parts]), _names("r", [ask.targets for _, ask in parts])
    equal = sent.groupBy("ask", *left, *right).agg(f.count("*").alias(COPIES)).repartition("ask", *left)
    schema = ", ".join(("ask int", "target int", *(f"{name} bigint" for name in FIGURES)))
    work = partial(_count, asks=[ask for _, ask in parts], device=device)
    sums = equal.mapInArrow(work, schema).groupBy("ask", "target").agg(*(f.sum(name) for name in FIGURES))
    found: list[dict[int, ClassFigures]] = [{WHOLE: ClassFigures()} for _ in asks]
    for n, ask in enumerate(asks):
        found[n].update((target, ClassFigures()) for target in ask.targets)
    for number, target, rows, classes, majority, pairs, steps in sums.collect():
        counted = ClassFigures(rows, classes, majority, pairs, steps / float(1 << FRACTION_BITS))
        found[parts[number][0]][target] = counted
    return found


def _in_parts(targets: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [targets[i : i + MOST_TARGETS] for i in range(0, max(1, len(targets)), MOST_TARGETS)]


def count_removals(frame: DataFrame, orders: Sequence[tuple[tuple[int, ...], int, int, bool]]) -> list[int]:
    """For each order rule (context, a, b, ascending) the fewest rows to remove so that it holds. One job.

    Notes
    -----
    For each rule all rows are shuffled by its context. A task holds the rows of its classes.
    """
    asks = [Ask(context, (a, b), (a, b)) for context, a, b, _ in orders]
    left = _names("l", [ask.left for ask in asks])
    sent = _sent(frame, asks).repartition("ask", *left)
    work = partial(_remove, asks=asks, ascending=[order[3] for order in orders])
    sums = sent.mapInArrow(work, "ask int, rows bigint").groupBy("ask").agg(f.sum("rows")).collect()
    found = {int(number): int(rows) for number, rows in sums}
    return [found.get(number, 0) for number in range(len(orders))]


def distinct_pairs(frame: DataFrame, a: int, b: int, most: int) -> pa.Table | None:
    """The pairs of non-null values of two columns, as a, b and the rows of each; None if there are more than `most`.

    Collects 16 bytes a pair.
    """
    both = frame.where(f"c{a} <> {NULL} and c{b} <> {NULL}").groupBy(
        f.col(f"c{a}").alias("a"), f.col(f"c{b}").alias("b")
    )
    found = both.agg(f.count("*").alias(COPIES)).limit(most + 1).toArrow()
    return found if len(found) <= most else None


def _names(letter: str, sides: Sequence[Sequence[int]]) -> list[str]:
    return [f"{letter}{i}" for i in range(max(map(len, sides), default=0))]


def _sent(frame: DataFrame, asks: Sequence[Ask]) -> DataFrame:
    """Each row once for each ask that applies to it: number of the ask, left codes l0, l1, ..., right ones r0, ..."""
    lefts, rights = _names("l", [a.left for a in asks]), _names("r", [a.targets for a in asks])

    def padded(columns: Sequence[int], names: Sequence[str]) -> list[Column]:
        given = [f.col(f"c{c}") for c in columns] + [f.lit(0)] * (len(names) - len(columns))
        return [column.alias(name) for column, name in zip(given, names, strict=True)]

    cells = []
    for number, ask in enumerate(asks):
        own = f.struct(f.lit(number).alias("ask"), *padded(ask.left, lefts), *padded(ask.targets, rights))
        needed = sorted({*ask.left, *ask.filled})
        condition = f.expr(" and ".join(f"c{c} <> {NULL}" for c in needed) or "true")
        cells.append(f.when(condition, own))
    return frame.select(f.explode(f.array(*cells)).alias("cell")).where("cell is not null").select("cell.*")


def _by_ask(batches: Batches, asks: Sequence[Ask]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a task, grouped by ask. Each class is complete."""
    spare_zip_reading()
    given = list(batches)
    if not given:
        return
    table = pa.Table.from_batches(given)
    for number in pc.unique(table["ask"]).to_pylist():
        yield number, table.filter(pc.equal(table["ask"], number))


def _codes(table: pa.Table, letter: str, columns: int) -> NDArray[np.int32]:
    """The codes of one side, int32 (columns, rows), made dense for the kernels. Null stays null."""
    codes = np.empty((columns, len(table)), dtype=np.int32)
    for i in range(columns):
        values, codes[i] = np.unique(table[f"{letter}{i}"].to_numpy(), return_inverse=True)
        codes[i] -= int(len(values) > 0 and values[0] == NULL)
    return codes


def _count(batches: Batches, asks: Sequence[Ask], device: str) -> Iterator[pa.RecordBatch]:
    lines = []
    for number, table in _by_ask(batches, asks):
        ask = asks[number]
        copies = np.asarray(table[COPIES].to_numpy(), dtype=np.int64)
        classes = _classes(_codes(table, "l", len(ask.left)), device)
        found = count_agreement(
            classes, _codes(table, "r", len(ask.targets)), range(len(ask.targets)), copies=copies, threads=1
        )
        steps = np.rint(found.contradictions * (1 << FRACTION_BITS)).astype(np.int64)
        figures = (found.rows, found.classes, found.majority, found.differing_pairs // 2, steps)
        lines += [(number, t, *own) for t, own in zip(ask.targets, np.transpose(figures).tolist(), strict=True)]
        sizes = np.add.reduceat(copies[classes.left], classes.left_offsets[:-1])
        pairs = int((sizes * (sizes - 1) // 2).sum())
        lines.append((number, WHOLE, int(copies.sum()), classes.clusters, 0, pairs, 0))
    if lines:
        names = ["ask", "target", *FIGURES]
        types = [pa.int32(), pa.int32(), *[pa.int64()] * len(FIGURES)]
        columns = zip(zip(*lines, strict=True), types, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(column, type_) for column, type_ in columns], names=names)


def _classes(codes: NDArray[np.int32], device: str) -> ClusterPairs:
    """The classes of rows, including those of one row."""
    rows = np.arange(codes.shape[1], dtype=np.int32)
    groups = all_rows(rows)
    if len(codes):
        equalities = [(c, c) for c in range(len(codes))]
        groups = refine_equal(groups, codes, equalities, device=task_device(device), threads=1)
    single = np.ones(len(rows), dtype=np.bool_)
    single[groups.left] = False
    alone = rows[single]
    members = np.concatenate([groups.left, alone])
    offsets = np.concatenate([groups.left_offsets, groups.left_offsets[-1] + 1 + np.arange(len(alone))])
    return ClusterPairs(members, offsets, members, offsets)


def _remove(batches: Batches, asks: Sequence[Ask], ascending: Sequence[bool]) -> Iterator[pa.RecordBatch]:
    lines = []
    for number, table in _by_ask(batches, asks):
        context = len(asks[number].left)
        codes = np.concatenate([_codes(table, "l", context), _codes(table, "r", 2)])
        bits = np.array([[(1 << context) - 1]], dtype=np.uint64)
        kind = ASCENDING if ascending[number] else DESCENDING
        check = (np.array([value]) for value in (0, kind, context, context + 1))
        found = lay_out_orders(codes, device="cpu", threads=1).removals(bits, *check)
        lines.append((number, int(found.rows[0])))
    if lines:
        numbers, rows = zip(*lines, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(numbers, pa.int32()), pa.array(rows, pa.int64())], names=["ask", "rows"]
        )
