"""Checks of rules on a table whose codes stay in Spark: the same figures as in-process, for tables beyond one machine.

`engine.spark.run` cuts the pairs into tiles and adds up their results. This module binds rules, gives tasks their
kernels, and assembles the results.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Role
from tuplewise.engine.dc.violations.cardinalities import LARGEST_SAMPLE, Cardinalities
from tuplewise.engine.dc.violations.count import count_pairs, count_program, prepared, row_counts
from tuplewise.engine.dc.violations.existence import find_pairs
from tuplewise.engine.dc.violations.found import Cell, DcCheck, RuleCheck, remarks
from tuplewise.engine.dc.violations.listing import CHUNK_PAIRS, FIRST_CHUNK_PAIRS, pairs_in_order
from tuplewise.engine.dc.violations.planner import plan
from tuplewise.engine.dc.violations.program import OneRowTest, Program, bind
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.run import Run
from tuplewise.engine.spark import jobs
from tuplewise.engine.spark import run as on_spark
from tuplewise.engine.spark.resources import devices_of_tasks
from tuplewise.engine.spark.tasks import RowChoice, TileKernels
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.engine.table.spark_encoded import encode_for
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.join_types import Comparison

WORST_ROWS = 100
Codes = NDArray[np.int32]


def list_tile(
    codes: Codes, rule: Program, left: RowChoice, right: RowChoice, one_way: bool, device: Device | str
) -> Iterator[NDArray[np.int64]]:
    """List the violating pairs of a tile in chunks, in order."""
    work, made, pairs = prepared(codes, rule, left, right, device, threads=1)
    if pairs is None:
        return
    as_left = np.zeros(work.rows, dtype=np.int64)
    if count_pairs(work, made, pairs, rule.keep_nulls, as_left):
        yield from pairs_in_order(work, made, pairs, as_left, one_way, FIRST_CHUNK_PAIRS, CHUNK_PAIRS)


def find_in_tile(
    codes: Codes, rule: Program, left: RowChoice, right: RowChoice, limit: int, device: Device | str
) -> NDArray[np.int64]:
    """Find at most `limit` violating pairs of a tile."""
    work, made, pairs = prepared(codes, rule, left, right, device, threads=1)
    if pairs is None:
        return np.empty((0, 2), dtype=np.int64)
    return find_pairs(work, made, pairs, rule.keep_nulls, limit)


KERNELS = TileKernels(partial(count_program, threads=1), partial(row_counts, threads=1), list_tile, find_in_tile)


def check_in_spark(
    opened: TableInSpark,
    rules: Sequence[DenialConstraint],
    options: DcCheckOptions,
    run: Run,
) -> DcCheck:
    """Check rules on a table whose rows stay in Spark. Only columns named by the rules are encoded."""
    used = {name for rule in rules for name in rule.columns}
    table = encode_for("checked", opened, sorted(used) or opened.column_names[:1], run.step, shown=options.key)
    found = check_on_spark(table, rules, options, run)
    table.close_with(found.on_spark)
    return found


def check_on_spark(
    table: EncodedFrame,
    rules: Sequence[DenialConstraint],
    options: DcCheckOptions,
    run: Run | None = None,
) -> DcCheck:
    """Find the violations of some rules in a table in Spark; see `detect.check_rules`.

    Returns
    -------
    DcCheck
        Its relation holds only the listed rows (`table_rows` is the size of the table). `row_counts` covers the
        `WORST_ROWS` rows with the most pairs; it is 0 for the other listed rows.
    """
    run, began = run or Run(options), time.monotonic()
    spark = table.frame.sparkSession
    rules = [rule.normalised(table.header.column_names) for rule in rules]
    programs = [bind(rule, table.header, options.nulls) for rule in rules]
    sizes = cardinalities_on_spark(table, options.seed)
    unknown = _rows_unknown(table, programs)
    planned = time.monotonic()
    device, reason = devices_of_tasks(spark, options.device)
    found: list[tuple[on_spark.Violations | int | None, float]] = []
    reached = None
    for number, program in enumerate(programs):
        start = time.monotonic()
        figures: on_spark.Violations | int | None = None
        if reached is None:
            try:
                with jobs.until(spark, run.deadline):
                    figures = _check_one(table, program, options)
            except TimeoutError:
                reached = "the time limit was reached before every rule was checked"
        found.append((figures, time.monotonic() - start))
        run.tell("checking", (number + 1) / len(programs))
    relation = table.excerpt(_listed_positions([figures for figures, _ in found]))
    checks = []
    for rule, program, rows_unknown, (figures, seconds) in zip(rules, programs, unknown, found, strict=True):
        steps = list(plan(program, sizes, table.header.column_names).steps)
        checks.append(_as_check(relation, rule, program, options, figures, rows_unknown, steps, seconds))
    return DcCheck(
        relation=replace(relation, table_rows=table.rows),
        options=options,
        rules=tuple(checks),
        device=device,
        device_reason=reason,
        timings_seconds={"plan": planned - began, "check": time.monotonic() - planned},
        partial=any(check.holds is None for check in checks),
        notes=(*remarks(rules, table.header), *(() if reached is None else (reached,))),
        on_spark=SparkPairs(table, rules, programs, options),
    )


@dataclass(frozen=True, eq=False)
class SparkPairs:
    """All pairs of a check, computed when they are written."""

    _table: EncodedFrame
    _rules: Sequence[DenialConstraint]
    _programs: Sequence[Program]
    _options: DcCheckOptions

    def write_pairs(
        self, folder: str, columns: Sequence[Cell], own: Sequence[Sequence[Cell]], deadline: float | None
    ) -> None:
        """Write all pairs of all rules as a folder of Parquet files, unordered, completely or not at all.

        Parameters
        ----------
        columns : cells (role, column) of the list, written after the rule and the rows; joined to pairs by position
        own : the cells of each rule; other cells are null
        deadline : `time.monotonic()` value at which TimeoutError is raised
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(jobs.until(self._table.frame.sparkSession, deadline))
            lists = []
            for rule, program, cells in zip(self._rules, self._programs, own, strict=True):
                asked = rule_on(self._table, program, self._options.device, self._options.seed)
                pairs = (
                    stack.enter_context(on_spark.all_pairs(asked)) if not program.never else on_spark.no_pairs(asked)
                )
                values = {role: self._table.values(_names(role, cells)) for role in ("t", "u") if _names(role, cells)}
                named = (rule.id, rule.rule) if len(self._rules) > 1 else None
                lists.append(on_spark.with_values(pairs, values, named))
            on_spark.write_whole(on_spark.put_together(lists, [_column(c) for c in columns]), folder)


def _column(cell: Cell) -> str:
    return f"{cell[0]}.{cell[1]}"


def _names(role: Role, cells: Sequence[Cell]) -> dict[str, str]:
    return {name: _column((role, name)) for of, name in cells if of == role}


def count_pairs_on_spark(
    table: EncodedFrame, rules: Sequence[DenialConstraint], *, nulls: str = "unknown", device: str = "auto",
    deadline: float | None = None,
) -> list[int]:  # fmt: skip
    """Number of violating ordered pairs of each rule about two rows. Raises TimeoutError at the deadline."""
    spark = table.frame.sparkSession

    def pairs(program: Program) -> int:
        with jobs.until(spark, deadline):
            return 0 if program.never else on_spark.count_pairs(rule_on(table, program, device))

    programs = [bind(rule.normalised(table.header.column_names), table.header, nulls) for rule in rules]
    return jobs.at_once(spark, [partial(pairs, program) for program in programs])


def find_witnesses_on_spark(
    table: EncodedFrame, rules: Sequence[DenialConstraint], *, nulls: str = "unknown", limit: int = 1,
    device: str = "auto", deadline: float | None = None,
) -> list[NDArray[np.int64]]:  # fmt: skip
    """At most `limit` violating pairs of each rule, by position; see `existence.find_witnesses`."""
    spark = table.frame.sparkSession

    def witnesses(rule: DenialConstraint) -> NDArray[np.int64]:
        program = bind(rule, table.header, nulls)
        with jobs.until(spark, deadline):
            if program.never:
                return np.empty((0, 2), dtype=np.int64)
            if program.one_row:
                return on_spark.check_rows(rule_on(table, program, device), rows=limit).first
            return on_spark.find_pairs(rule_on(table, program, device), limit)

    return jobs.at_once(spark, [partial(witnesses, rule) for rule in rules])


def rule_on(table: EncodedFrame, program: Program, device: str = "auto", seed: int = 0) -> on_spark.RuleOnSpark:
    """A bound rule together with the table columns it reads."""
    narrowed, columns = narrow(program)
    frame = table.frame.selectExpr("position", *(f"c{c} as c{i}" for i, c in enumerate(columns)))
    sizes = on_spark.cluster_sizes(table.frame.sparkSession, table.rows, len(columns))
    return on_spark.RuleOnSpark(frame, len(columns), narrowed, KERNELS, sizes, device, seed)


def narrow(program: Program) -> tuple[Program, list[int]]:
    """The program with only the columns it reads, renumbered, and their original numbers."""
    tests = (*program.left_tests, *program.right_tests)
    read = {c.left for c in program.comparisons} | {c.right for c in program.comparisons}
    read |= {t.left for t in tests} | {t.right for t in tests if t.kind == "columns"}
    columns = sorted(read | set(program.left_needed) | set(program.right_needed) | set(program.named))
    place = {c: i for i, c in enumerate(columns)}

    def moved(given: Sequence[OneRowTest]) -> tuple[OneRowTest, ...]:
        return tuple(replace(t, left=place[t.left], right=place.get(t.right, -1)) for t in given)

    return replace(
        program,
        left_tests=moved(program.left_tests),
        right_tests=moved(program.right_tests),
        comparisons=tuple(sorted(Comparison(place[c.left], place[c.right], c.outcomes) for c in program.comparisons)),
        left_needed=tuple(place[c] for c in program.left_needed),
        right_needed=tuple(place[c] for c in program.right_needed),
        named=tuple(place[c] for c in program.named),
    ), columns


def cardinalities_on_spark(table: EncodedFrame, seed: int) -> Cardinalities:
    """Cardinalities from the counted distinct values of the columns and a sample of rows."""
    share = min(1.0, LARGEST_SAMPLE / max(1, table.rows))
    sample = table.frame.sample(share, seed).toArrow()
    drawn = np.zeros((len(table.header.columns), len(sample)), dtype=np.int32)
    for name in sample.column_names[1:]:  # after position
        drawn[int(name[1:])] = sample[name].to_numpy()
    return Cardinalities(table.rows, [c.distinct for c in table.header.columns], drawn)


def _check_one(table: EncodedFrame, program: Program, options: DcCheckOptions) -> on_spark.Violations | int:
    """Violations of one rule; with `count_only`, only the number of pairs."""
    if program.never:
        return 0 if options.count_only else on_spark.NOTHING
    asked = rule_on(table, program, options.device, options.seed)
    if program.one_row:
        found = on_spark.check_rows(asked, rows=0 if options.count_only else max(options.pairs, WORST_ROWS))
        return found.pairs if options.count_only else found
    if options.count_only:
        return on_spark.count_pairs(asked)
    return on_spark.check_pairs(asked, pairs=options.pairs, worst=WORST_ROWS)


def _rows_unknown(table: EncodedFrame, programs: Sequence[Program]) -> list[int]:
    """Number of rows that nulls leave out of each rule. One job."""
    named = [[f"c{c} = {NULL_CODE}" for c in program.named] for program in programs]
    return on_spark.count_where(table.frame, [" or ".join(conditions) for conditions in named])


def _listed_positions(found: Sequence[on_spark.Violations | int | None]) -> NDArray[np.int64]:
    """Positions of all listed rows, ascending."""
    parts = [np.zeros(0, dtype=np.int64)]
    for figures in found:
        if isinstance(figures, on_spark.Violations):
            parts += [figures.first.ravel(), figures.worst_rows]
    every = np.unique(np.concatenate(parts))
    return every[every >= 0]


def _as_check(
    relation: Relation, rule: DenialConstraint, program: Program, options: DcCheckOptions,
    figures: on_spark.Violations | int | None, rows_unknown: int, steps: list[dict[str, Any]], seconds: float,
) -> RuleCheck:  # fmt: skip
    """The figures of one rule, with rows given by their index in the excerpt."""
    positions = relation.positions if relation.positions is not None else np.arange(relation.rows)
    pairs = np.empty((0, 2), dtype=np.int64)
    counts = rows = None
    total = figures if isinstance(figures, int) else None
    if isinstance(figures, on_spark.Violations):
        total, rows = figures.pairs, figures.rows
        first = figures.first[: options.pairs]
        pairs = np.where(first < 0, -1, np.searchsorted(positions, first)).astype(np.int64).reshape(-1, 2)
        counts = np.zeros(relation.rows, dtype=np.int64)
        counts[np.searchsorted(positions, figures.worst_rows)] = figures.worst_counts
    elif program.one_row:
        rows = total
    return RuleCheck(
        rule=rule,
        violating_pairs=total,
        violating_rows=rows,
        rows_unknown=rows_unknown,
        symmetric=program.symmetric,
        one_row=program.one_row,
        pairs=pairs,
        row_counts=counts,
        plan=steps,
        seconds=seconds,
    )  # fmt: skip
