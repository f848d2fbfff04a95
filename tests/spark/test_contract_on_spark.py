"""Contracts on tables in Spark: what the check of the same rows in this process finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tuplewise as tw
from tuplewise.engine.spark.streams import callbacks_closed
from tuplewise.stream import guard

pytestmark = pytest.mark.spark

CONTRACT = """
tuplewise_contract: 1
tables:
  orders:
    columns: {no: , person: , state: , ordered: , shipped: , fee: , zone: }
  people:
rules:
  - {id: no, table: orders, kind: key, rule: [no]}
  - {id: pair, table: orders, kind: key, rule: '[person, ordered]'}
  - {id: zone, table: orders, kind: fd, rule: person -> zone}
  - {id: fees, table: orders, kind: od, rule: '[zone]: ordered ~ fee'}
  - {id: days, table: orders, kind: row, rule: ordered <= shipped}
  - {id: state, table: orders, kind: values, rule: "state in ('open', 'sent')"}
  - {id: fee, table: orders, kind: range, rule: fee between 0 and 500}
  - {id: full, table: orders, kind: not_null, rule: shipped is not null}
  - {id: dc, table: orders, kind: dc, rule: not(t.person == u.person and t.ordered < u.ordered and t.fee > u.fee)}
  - {id: person, kind: ind, rule: orders.person <= people.id}
"""


def orders() -> pa.Table:
    rng = np.random.default_rng(3)
    rows = 400
    person = rng.integers(0, 40, rows)
    ordered = rng.integers(0, 60, rows)
    shipped = [None if i % 50 == 3 else int(day) for i, day in enumerate(ordered + rng.integers(-1, 9, rows))]
    no = np.arange(rows)
    no[[7, 9]] = 5
    return pa.table(
        {
            "no": no, "person": person, "state": ["opened" if i % 90 == 1 else "open" for i in range(rows)],
            "ordered": ordered, "shipped": pa.array(shipped, pa.int64()), "fee": ordered * 9 + (no % 70 == 1) * 80,
            "zone": person % 4 + (no % 60 == 2),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("contract") / "rules.yaml"
    path.write_text(CONTRACT)
    return path


@pytest.mark.usefixtures("spark")
def test_spark_finds_what_this_process_finds(contract: Path) -> None:
    paths = {name: contract.with_name(f"{name}.parquet") for name in ("orders", "people")}
    pq.write_table(orders(), paths["orders"], row_group_size=90)
    pq.write_table(pa.table({"id": np.arange(35)}), paths["people"])
    here = tw.check_contract(paths, contract, run_on="driver")
    there = tw.check_contract(paths, contract, run_on="spark")
    assert [rule["exceptions"] for rule in here.rules if rule["id"] != "full"] != []
    assert all(rule["exceptions"] for rule in here.rules)
    same = ("id", "holds", "failed", "exceptions", "of", "unit", "reason")
    assert [[rule[name] for name in same] for rule in there.rules] == [
        [rule[name] for name in same] for rule in here.rules
    ]
    assert [rule["examples"] for rule in there.rules if rule["kind"] in ("key", "fd", "row", "values", "range")] == [
        rule["examples"] for rule in here.rules if rule["kind"] in ("key", "fd", "row", "values", "range")
    ]
    assert [column["status"] for column in there.columns] == ["ok"] * 7
    sample = tw.check_contract(paths, contract, run_on="spark", sample=50)
    assert {rule["of"] for rule in sample.rules if rule["id"] in ("no", "pair")} == {50}


def test_a_stream_is_guarded(spark: Any, contract: Path, tmp_path: Path) -> None:
    """Good batches go on, bad ones into quarantine; a batch that comes again changes nothing."""
    source, quarantine, kept = tmp_path / "in", tmp_path / "bad", []
    source.mkdir()
    clean = pa.table({"zip": [1, 2], "city": ["A", "B"]})
    pq.write_table(clean, source / "1.parquet")
    rules = tmp_path / "rules.yaml"
    rules.write_text("tuplewise_contract: 1\ntables: {t: }\nrules:\n- {id: city, kind: fd, rule: zip -> city}\n")
    seen: list[tuple[int, bool]] = []
    guarded = guard(
        rules,
        lambda batch, number: kept.append(batch.count()),
        quarantine=str(quarantine),
        told=lambda number, found: seen.append((number, found.failed)),
    )
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).parquet(str(source)).writeStream.foreachBatch(guarded)
    stream = stream.option("checkpointLocation", str(tmp_path / "marks"))
    with callbacks_closed(spark):
        stream.trigger(availableNow=True).start().awaitTermination()
        pq.write_table(pa.table({"zip": [1, 1], "city": ["A", "B"]}), source / "2.parquet")
        stream.trigger(availableNow=True).start().awaitTermination()
    assert seen == [(0, False), (1, True)]
    assert kept == [2]
    assert sorted(path.name for path in quarantine.iterdir()) == ["batch=1"]
    bad = spark.read.parquet(str(quarantine / "batch=1"))
    guarded(bad, 1)  # as after a restart
    assert spark.read.parquet(str(quarantine / "batch=1")).count() == 2
