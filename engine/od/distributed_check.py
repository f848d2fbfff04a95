"""Checks of order dependencies between lists on a table whose codes stay in Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.local_table import ESTIMATE_ROWS
from tuplewise.engine.od.distributed import ContextsOnSpark
from tuplewise.engine.od.lexicographic import OdCheck, SetOd, arrays_of, set_based, signed, violation_of
from tuplewise.engine.od.list_od import ListOd
from tuplewise.engine.run import Run
from tuplewise.engine.spark import jobs, run
from tuplewise.engine.spark.agreeing import sampled_rows
from tuplewise.engine.spark.orders import OrderChecks
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_encoded import encode_for
from tuplewise.engine.table.spark_frame import EncodedFrame

Pair = NDArray[np.int64]  # positions t and u


def check_in_spark(
    opened: TableInSpark,
    ods: Sequence[ListOd],
    *,
    device: str = "auto",
    seed: int = 0,
    run: Run,
) -> tuple[Relation, list[OdCheck]]:
    """Check list order dependencies on a table whose rows stay in Spark; see `check_orders_on_spark`."""
    used = {item.name for od in ods for item in (*od.left, *od.right)}
    table = encode_for("checked", opened, sorted(used), run.step)
    with closing(table):
        return check_orders_on_spark(table, ods, device=device, seed=seed, run=run)


def check_orders_on_spark(
    table: EncodedFrame,
    ods: Sequence[ListOd],
    *,
    device: str = "auto",
    seed: int = 0,
    run: Run | None = None,
) -> tuple[Relation, list[OdCheck]]:
    """Check list order dependencies on a table in Spark; see `lexicographic.check_orders`.

    Returns
    -------
    relation : the rows that violations name (`table_rows` says how many the table has)
    checks : verdicts are those of `check_orders`; where one is violated, the two rows may be others

    Notes
    -----
    A job, at least, for each dependency; as many as `distributed.ContextsOnSpark` needs for its set-based ones.
    """
    run = run or Run()
    report = run.stage("checking")
    rows = _Rows(table, device, seed)
    checks: list[OdCheck] = []
    pairs: list[Pair | None] = []
    for od in ods:
        began, holds, pair = time.monotonic(), None, None
        try:
            with jobs.until(table.frame.sparkSession, run.deadline):
                pair = rows.violation(od)
            holds = pair is None
        except TimeoutError:
            pass
        pairs.append(pair)
        checks.append(OdCheck(od, holds, None, time.monotonic() - began))
        if report is not None:
            report(len(checks) / len(ods))
    named = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(pair for pair in pairs if pair is not None)]))
    relation = replace(table.excerpt(named), table_rows=table.rows)
    found = []
    for check, pair in zip(checks, pairs, strict=True):
        violation = None
        if pair is not None:
            left = signed(check.od.left, relation.column_names)
            violation = violation_of(relation, left, np.searchsorted(named, pair).astype(np.int32))
        found.append(OdCheck(check.od, check.holds, violation, check.seconds))
    return relation, found


class _Rows:
    """The rows of the table, and what is known of them."""

    def __init__(self, table: EncodedFrame, device: str, seed: int) -> None:
        self._table, self._device, self._seed = table, device, seed
        self._contexts: ContextsOnSpark | None = None
        self._known: dict[SetOd, Pair | None] = {}

    def violation(self, od: ListOd) -> Pair | None:
        """Two rows that break a dependency; None: it holds."""
        names = self._table.header.column_names
        parts = set_based(signed(od.left, names), signed(od.right, names))
        new = [part for part in parts if part not in self._known]
        if new and self._table.rows > 1:
            self._check(new)
        return next((pair for part in parts if (pair := self._known.get(part)) is not None), None)

    def _check(self, parts: Sequence[SetOd]) -> None:
        columns = len(self._table.header.columns)
        if self._contexts is None:
            frame, rows = self._table.frame, self._table.rows
            sample_codes = sampled_rows(frame, columns, rows, ESTIMATE_ROWS, self._seed)
            sizes = run.cluster_sizes(frame.sparkSession, rows, columns)
            self._contexts = ContextsOnSpark(frame, sample_codes, rows, "value", sizes, self._device)
        contexts, which, kind, left, right = arrays_of(parts)
        flags = np.zeros((len(contexts), columns), dtype=np.bool_)
        for number, context in enumerate(contexts):
            flags[number, sorted(context)] = True
        checks = OrderChecks(flags, which, kind, left, right, np.arange(len(parts), dtype=np.int64))
        self._known |= dict.fromkeys(parts)
        for number, *pair in self._contexts.violations(checks, limit=1).tolist():
            self._known[parts[number]] = np.array(pair, dtype=np.int64)
