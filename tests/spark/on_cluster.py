"""What drivers on a cluster are told to do (`loopback.Driver`): the functions run there, and return plain values.

Tables are small; so that their work is cut into several tiles, and searched as large tables are, sizes are small, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from watched import Watched, WatchedCounter

import tuplewise as tw
from tuplewise.engine.dc import distributed as dc_distributed
from tuplewise.engine.dc.violations import distributed as violations
from tuplewise.engine.od import distributed as od_distributed
from tuplewise.engine.od import search
from tuplewise.engine.options import RunOn
from tuplewise.engine.options.discovery import Algorithm
from tuplewise.engine.spark import pair_tiles, run
from tuplewise.engine.spark.session import open_session, stop
from tuplewise.engine.spark.tiles import TileSizes


def settings() -> dict[str, str]:
    """Of this driver."""
    found: dict[str, str] = json.loads(os.environ["LOOPBACK_CONF"])
    return found


def open_here(**more: str) -> dict[str, Any]:
    """Open a session on the cluster, and say who runs its tasks."""
    open_session(master=os.environ["LOOPBACK_MASTER"], conf={**settings(), **more})
    return who_runs()


def who_runs() -> dict[str, Any]:
    """Which processes run tasks of the open session."""
    ran = open_session().spark.range(0, 40, 1, 4).mapInArrow(_who, "python long, executor string, gpu string").collect()
    found = {name: sorted({row[name] for row in ran}) for name in ("python", "executor", "gpu")}
    return {**found, "driver": os.getpid()}


def close_here() -> None:
    """Stop the session."""
    stop()


def _who(batches: Any) -> Iterator[pa.RecordBatch]:
    """Python worker, executor and the addresses of its GPUs."""
    from pyspark import TaskContext

    context = TaskContext.get()
    given = context.resources().get("gpu") if context is not None else None
    gpu = "none" if given is None else ",".join(given.addresses)
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [os.getpid()], "executor": [os.getcwd()], "gpu": [gpu]})


class SmallDcTable(dc_distributed.SparkDcTable):
    """Groups of a few rows are cut, few rows are judged here, and comparing has a price: sets and validations."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options, estimate_rows=50, least_pairs=4000)

    def _compared(self, *given: Any, **how: Any) -> Any:
        compared = super()._compared(*given, **how)
        prices = {"grouping_seconds": 1e-4 * self.rows, "comparing_seconds": 1e-4 * compared.pairs}
        return replace(compared, rows=compared.rows[:0], **prices)


class SmallContextTable(od_distributed.SparkContextTable):
    """Few rows are sampled and judged here, and comparing has a price: sets and validations."""

    def __init__(self, *given: Any, **options: Any) -> None:
        few = {"sampled_rows": 40, "pairs_a_row": 1, "estimate_rows": 50}
        super().__init__(*given, **{**options, **few}, least_pairs=4000)

    def _compared(self, *given: Any, **how: Any) -> Any:
        compared = super()._compared(*given, **how)
        return replace(compared, grouping_seconds=1e-4 * self.rows, comparing_seconds=1e-3 * compared.pairs)


def small_sizes(tile_rows: int = 150, least_rows: int = 60) -> ExitStack:
    """While this is open, tables of some hundred rows are cut into tiles and searched as large ones are."""

    def sizes(spark: Any, rows: int, columns: int) -> TileSizes:
        return TileSizes(rows, slots=2, tile_rows=tile_rows, least_rows=least_rows, most_partitions=6)

    opened = ExitStack()
    opened.enter_context(patch.object(run, "cluster_sizes", sizes))
    opened.enter_context(patch.object(dc_distributed, "SparkDcTable", SmallDcTable))
    opened.enter_context(patch.object(od_distributed, "SparkContextTable", SmallContextTable))
    opened.enter_context(patch.object(search, "ALL_AT_ONCE", -1))
    counting = partial(pair_tiles.count_pairs, least_pairs=20_000)
    opened.enter_context(patch.object(pair_tiles, "count_pairs", counting))
    return opened


def watching(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """A call whose kernels are watched (`watched.py`), in rule checking and where all pairs are compared."""
    kernels = violations.KERNELS
    seen = {field.name: Watched(getattr(kernels, field.name)) for field in fields(kernels)}
    with (
        patch.object(violations, "KERNELS", replace(kernels, **seen)),
        patch.object(pair_tiles, "TileCounter", WatchedCounter),
    ):
        return function(*given, **named)


def _told(result: Any) -> dict[str, Any]:
    """What a result says, with the device."""
    said = result.to_dict()
    return {"device": said["device"], "device_reason": said["device_reason"], **said["result"]}


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in record.items() if k not in names}


def check_rules(table: Any, rules: str, run_on: RunOn, device: str = "cpu", **more: Any) -> dict[str, Any]:
    with small_sizes():
        told = _told(tw.check(table, rules, device=device, pairs=20, run_on=run_on, **more))
    return {**told, "rules": [_without(rule, "seconds", "plan") for rule in told["rules"]]}


def discover_dcs(table: Any, algorithm: Algorithm, run_on: RunOn, device: str = "cpu", **more: Any) -> dict[str, Any]:
    with small_sizes():
        return _told(tw.discover_dcs(table, device=device, run_on=run_on, algorithm=algorithm, **more))


def discover_ods(table: Any, run_on: RunOn, device: str = "cpu", tile_rows: int = 200) -> dict[str, Any]:
    """In Spark, tables of no more than `tile_rows` rows are sent to every worker; of others a context is a shuffle, or
    a sort."""
    with small_sizes(tile_rows, least_rows=100):
        return _told(tw.discover_ods(table, device=device, run_on=run_on))


def check_ods(table: Any, ods: list[str], run_on: RunOn, device: str = "cpu") -> dict[str, Any]:
    with small_sizes():
        return _told(tw.check_ods(table, ods, device=device, run_on=run_on))


def discover_fds(table: Any, run_on: RunOn, device: str = "cpu") -> dict[str, Any]:
    with small_sizes():
        return _told(tw.discover_fds(table, device=device, run_on=run_on))


def discover_keys(table: Any, run_on: RunOn, device: str = "cpu") -> dict[str, Any]:
    with small_sizes():
        return _told(tw.discover_keys(table, device=device, run_on=run_on))


def discover_inds(tables: dict[str, Any], run_on: RunOn) -> dict[str, Any]:
    found: dict[str, Any] = tw.discover_inds(tables, run_on=run_on).to_dict()["result"]
    return found


def check_inds(tables: dict[str, Any], inds: list[str], run_on: RunOn) -> list[dict[str, Any]]:
    checked = tw.check_inds(tables, inds, run_on=run_on).to_dict()["result"]["inds"]
    return [_without(one, "seconds") for one in checked]


def keep_inds(tables: dict[str, str], table: str, folder: str) -> dict[str, Any]:
    """A state in partitions; the rows of one table are deleted, and inserted again."""
    with tw.maintain_inds(folder, tables, run_on="spark") as state:
        built = [str(one) for one in state.inds]
        gone, back = state.delete(tables[table], table=table), state.insert(tables[table], table=table)
        lost, gained = [str(i) for i in gone.lost], [str(i) for i in back.gained]
        return {"built": built, "lost": lost, "gained": gained, "rows": state.rows}


def fault_of(function: Any, *given: Any, **named: Any) -> tuple[str, str]:
    """Class and text of what a call raises."""
    try:
        function(*given, **named)
    except tw.TuplewiseError as problem:
        return type(problem).__name__, str(problem)
    raise AssertionError(f"{function.__name__} raised nothing")
