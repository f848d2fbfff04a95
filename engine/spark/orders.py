"""Checks of keys, constancies and order compatibility in Spark's tasks, for tables beyond one machine.

There are three ways: over the codes of the whole table, which are broadcast (tasks share the contexts); over rows
shuffled by some columns of all contexts (classes stay whole); and over rows sorted by one context and left column, for
classes too large for a task (violations across partitions are found by `boundaries`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tuplewise.engine.spark.boundaries import Edge, Edges, crossings, edges_of
from tuplewise.engine.spark.layout import NULL
from tuplewise.engine.spark.resources import task_device
from tuplewise.engine.spark.tasks import Batches, spare_zip_reading
from tuplewise.engine.spark.tiles import TileSizes
from tuplewise.gpu_kernels import clues
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.order import PartitionedRows, lay_out_orders
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, KEY, ranked_contexts
from tuplewise.gpu_kernels.words import ClueLayout, as_masks

Nulls = Literal["unknown", "value"]
FOUND = "of bigint, numbers array<bigint>"
"""What tasks return: a check that is violated, with positions t and u where they are told; or NO_CHECK and a clue, or
the edges of a partition."""
NO_CHECK = -1


@dataclass(frozen=True, eq=False)
class OrderChecks:
    """Dependencies to check, as in `gpu_kernels.order`, with contexts as flags.

    Attributes
    ----------
    contexts : bool (contexts, columns), distinct
    which, left, right : int32 (checks,); kind : int8 (checks,)
    numbers : int64 (checks,), the number of each in results
    """

    contexts: NDArray[np.bool_]
    which: NDArray[np.int32]
    kind: NDArray[np.int8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.which)

    def take(self, index: NDArray[np.bool_] | NDArray[np.int64]) -> OrderChecks:
        """Some checks, with the contexts that they have."""
        used, which = np.unique(self.which[index], return_inverse=True)
        return OrderChecks(
            self.contexts[used], which.astype(np.int32).ravel(), self.kind[index], self.left[index], self.right[index],
            self.numbers[index],
        )  # fmt: skip

    @property
    def columns(self) -> NDArray[np.int64]:
        """All columns of the checks, ascending."""
        used: NDArray[np.bool_] = np.logical_or.reduce(self.contexts, axis=0)
        used[self.left[self.kind != KEY]] = True
        used[self.right[self.kind >= ASCENDING]] = True
        return np.flatnonzero(used)

    def over(self, columns: Sequence[int]) -> OrderChecks:
        """The same checks with columns numbered by their places among `columns`."""
        place = np.full(self.contexts.shape[1], -1, dtype=np.int32)
        place[list(columns)] = np.arange(len(columns), dtype=np.int32)
        left = np.where(self.kind == KEY, -1, place[self.left]).astype(np.int32)
        right = np.where(self.kind >= ASCENDING, place[self.right], -1).astype(np.int32)
        return replace(self, contexts=self.contexts[:, list(columns)], left=left, right=right)

    def violated_in(self, rows: PartitionedRows, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The violating pairs of rows, int32 (pairs, 2), at most `limit` of each check, and the check of each pair."""
        checked = rows.check(as_masks(self.contexts), self.which, self.kind, self.left, self.right, limit=limit)
        return np.repeat(self.numbers, np.diff(checked.first)), checked.pairs


def laid_out(codes: NDArray[np.int32], nulls: Nulls, device: Device | str) -> PartitionedRows:
    """Lay out rows for checks in one thread. The codes of a frame may have gaps: they are made dense."""
    dense = np.empty(codes.shape, dtype=np.int32)
    for ranks, column in zip(dense, codes, strict=True):
        values, ranks[:] = np.unique(column, return_inverse=True)
        ranks -= len(values) > 0 and values[0] == NULL
    return lay_out_orders(dense, nulls=nulls, device=device, threads=1)


class SharedRows:
    """The broadcast codes of a table, int32 (columns, rows). A worker lays them out once for all its tasks."""

    def __init__(self, codes: NDArray[np.int32], layout: ClueLayout, nulls: Nulls) -> None:
        self._codes, self._layout, self._nulls = codes, layout, nulls
        self._rows: PartitionedRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}

    def check(
        self, checks: OrderChecks, limit: int, device: Device | str
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The checks that are violated, and the clues of violating pairs, at most `limit` of each."""
        if self._rows is None:
            self._rows = laid_out(self._codes, self._nulls, device)
        numbers, pairs = checks.violated_in(self._rows, limit)
        used, places = np.unique(pairs, return_inverse=True)
        t, u = np.ascontiguousarray(places.astype(np.int32).reshape(-1, 2).T)
        codes = np.ascontiguousarray(self._codes[:, used])
        rows = clues.lay_out(codes, self._layout, nulls=self._nulls, device="cpu", threads=1)
        return np.unique(numbers), rows.of_pairs(t, u).clues


@dataclass(frozen=True, eq=False)
class SharedWork:
    """The input of tasks that check contexts over the codes of a whole table."""

    rows: Broadcast[SharedRows]
    parts: Sequence[OrderChecks]
    limit: int
    device: str

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        spare_zip_reading()
        for batch in batches:
            for part in batch.column("id").to_pylist():
                violated, found = self.rows.value.check(self.parts[part], self.limit, task_device(self.device))
                yield _found(violated, np.zeros((len(violated), 0), dtype=np.int64))
                yield _found(np.full(len(found), NO_CHECK), found.view(np.int64))


@dataclass(frozen=True, eq=False)
class WholeClasses:
    """The input of tasks that get all rows of some classes, for contexts with common columns."""

    checks: OrderChecks
    nulls: Nulls
    limit: int
    device: str

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        spare_zip_reading()
        positions, codes = _gathered(batches, self.checks.contexts.shape[1])
        if len(positions) > 1:
            numbers, pairs = self.checks.violated_in(
                laid_out(codes, self.nulls, task_device(self.device)), self.limit
            )
            yield _found(numbers, positions[pairs])


@dataclass(frozen=True, eq=False)
class RangeOfRows:
    """The input of tasks that get a range of rows by (context, left, position): columns in this order, followed by the
    right ones. All checks have this context, and this left column or none (keys)."""

    checks: OrderChecks
    context: int
    nulls: Nulls
    limit: int
    device: str

    @property
    def first_right(self) -> int:
        return self.context + int(self.checks.kind[0] != KEY)

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        spare_zip_reading()
        positions, codes = _gathered(batches, self.checks.contexts.shape[1])
        if not len(positions):
            return
        numbers, pairs = self.checks.violated_in(laid_out(codes, self.nulls, task_device(self.device)), self.limit)
        yield _found(numbers, positions[pairs])
        begin = self.first_right
        left = codes[self.context] if begin > self.context else np.zeros(len(positions), dtype=np.int32)
        edges = edges_of(codes[: self.context], left, codes[begin:], positions)
        yield _found(np.full(2, NO_CHECK), np.stack([edge.as_numbers() for edge in edges]))

    def across(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """The violating pairs across partitions: (check, t, u). `edges`: the rows that `run` returned, in pairs."""
        both = [Edges(*(Edge.of_numbers(numbers, self.context) for numbers in pair)) for pair in edges]
        checks, begin = self.checks, self.first_right
        found = [np.zeros((0, 3), dtype=np.int64)]
        for met in crossings(both):
            pairs = np.full((len(checks), 2), -1, dtype=np.int64)
            pairs[(checks.kind == KEY) | ((checks.kind == CONSTANT) & (not met.constant))] = met.t, met.u
            for ordered, swaps in ((checks.kind == ASCENDING, met.falling), (checks.kind > ASCENDING, met.rising)):
                pairs[ordered] = swaps[checks.right[ordered] - begin]
            violated = pairs[:, 0] >= 0
            found.append(np.column_stack([checks.numbers[violated], pairs[violated]]))
        return np.concatenate(found)


@dataclass(frozen=True)
class OrdersOnSpark:
    """The rows of one table.

    Attributes
    ----------
    frame : position (bigint) and codes c0, c1, ... (int); null is -1
    """

    frame: DataFrame
    nulls: Nulls
    sizes: TileSizes
    limit: int
    device: str = "cpu"

    def check_classes(self, checks: OrderChecks, by: Sequence[int]) -> NDArray[np.int64]:
        """The violating pairs (check, t, u) by position, at most `limit` of each check and task. One shuffle.

        `by`: columns that all contexts contain; every class by them fits a task.
        """
        columns = [int(c) for c in checks.columns]
        rows = self._chosen(columns, without_null=by)
        rows = rows.repartition(self.sizes.light_tiles(self.sizes.rows), *(f"c{columns.index(c)}" for c in by))
        work = WholeClasses(checks.over(columns), self.nulls, self.limit, self.device)
        of, _, numbers = _collected(rows.mapInArrow(work.run, FOUND))
        return np.column_stack([of, numbers.reshape(-1, 2)])

    def check_sorted(self, checks: OrderChecks) -> NDArray[np.int64]:
        """See `check_classes`; for checks with one context and left column and classes of any size. Costs a sample for
        the bounds of the ranges, and one shuffle."""
        context = np.flatnonzero(checks.contexts[0]).tolist()
        key = checks.kind[0] == KEY
        left = [] if key else [int(checks.left[0])]
        right = np.unique(checks.right[checks.kind >= ASCENDING]).tolist()
        columns = [*context, *left, *right]
        constant = left if bool(np.any(checks.kind == CONSTANT)) else []
        rows = self._chosen(columns, without_null=[*context, *constant])
        by = [*(f"c{i}" for i in range(len(context) + len(left))), "position"]
        rows = rows.repartitionByRange(self.sizes.light_tiles(self.sizes.rows), *by)
        work = RangeOfRows(checks.over(columns), len(context), self.nulls, self.limit, self.device)
        of, lengths, numbers = _collected(rows.mapInArrow(work.run, FOUND))
        inside = of != NO_CHECK
        each = np.repeat(inside, lengths)
        within = np.column_stack([of[inside], numbers[each].reshape(-1, 2)])
        partitions = int(np.count_nonzero(~inside)) // 2
        if partitions < 2:
            return within
        return np.concatenate([within, work.across(numbers[~each].reshape(partitions, 2, -1))])

    def _chosen(self, columns: Sequence[int], *, without_null: Sequence[int]) -> DataFrame:
        """Some columns, renumbered, of the rows that can be in a class: if nulls agree with nothing, those without null
        in some columns."""
        rows = self.frame
        if self.nulls == "unknown" and without_null:
            rows = rows.where(reduce(lambda a, b: a & b, [f.col(f"c{c}") != NULL for c in without_null]))
        return rows.select("position", *(f.col(f"c{c}").alias(f"c{i}") for i, c in enumerate(columns)))


def check_shared(
    spark: SparkSession, rows: Broadcast[SharedRows], parts: Sequence[OrderChecks], limit: int, words: int, device: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The violated checks, and distinct clues of their pairs, uint64 (clues, words). One task for each part."""
    work = SharedWork(rows, parts, limit, device)
    told = spark.range(0, len(parts), 1, len(parts)).mapInArrow(work.run, FOUND)
    of, _, numbers = _collected(told)
    found = np.ascontiguousarray(numbers.reshape(-1, words)).view(np.uint64)
    return of[of != NO_CHECK], np.unique(found, axis=0)


def cut_checks(checks: OrderChecks, distinct: Sequence[int], parts: int) -> list[OrderChecks]:
    """Cut checks into at most so many parts of about equal size. Contexts that share their columns of most values stay
    together, since partitions are refined in that order. `distinct`: values of each column."""
    by_rank = np.argsort(-np.array(distinct, dtype=np.int64), kind="stable")
    _, order = ranked_contexts(as_masks(checks.contexts), by_rank)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    before = np.cumsum(np.bincount(place[checks.which], minlength=len(order)))
    part = ((before - 1) * parts // max(1, len(checks)))[place[checks.which]]
    return [checks.take(np.flatnonzero(part == number)) for number in np.unique(part)]


def _gathered(batches: Batches, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """All rows of a task in order of position: positions, and codes, int32 (columns, rows)."""
    parts = list(batches)
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros((columns, 0), dtype=np.int32)
    table = pa.Table.from_batches(parts)
    positions = table["position"].to_numpy()
    order = np.argsort(positions, kind="stable")
    codes = np.empty((columns, len(order)), dtype=np.int32)
    for i in range(columns):
        codes[i] = table[f"c{i}"].to_numpy()[order]
    return np.asarray(positions[order], dtype=np.int64), codes


def _found(of: NDArray[np.int64], numbers: NDArray[Any]) -> pa.RecordBatch:
    """FOUND; `numbers`: int64 (found, numbers of each)."""
    offsets = np.arange(len(of) + 1, dtype=np.int32) * np.int32(numbers.shape[1])
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(numbers.ravel(), dtype=np.int64)))
    return pa.RecordBatch.from_arrays([pa.array(of.astype(np.int64)), lists], names=["of", "numbers"])


def _collected(found: DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """FOUND: `of`, how many numbers each has, and all numbers one after the other; what a task told stays together."""
    table = found.toArrow().combine_chunks()
    of = np.asarray(table["of"].to_numpy(), dtype=np.int64)
    lists = table["numbers"].combine_chunks()
    ends = np.asarray(lists.offsets, dtype=np.int64)
    lengths = ends[1:] - ends[:-1]
    return of, lengths, np.asarray(lists.flatten(), dtype=np.int64)
