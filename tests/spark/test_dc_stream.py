"""Batches of Structured Streaming that come to a state of denial constraints: each once, whatever ends the query."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import tuplewise as tw
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.spark.streams import callbacks_closed

pytestmark = pytest.mark.spark

Handle = Callable[[Any, int], None]
SCHEMA = pa.schema(
    [
        ("zip", pa.string()),
        ("city", pa.string()),
        ("pay", pa.int64()),
        ("rate", pa.decimal128(9, 2)),
        ("share", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
IN_TEXT = ", ".join(f"`{name}` string" for name in SCHEMA.names)
IN_TYPES = "zip string, city string, pay long, rate decimal(9, 2), share double, day date, at timestamp"
STATE: dict[str, Any] = {"cross_columns": False, "device": "cpu"}


def rows_from(first: int, rows: int) -> pa.Table:
    """Rows that keep rules which later ones break; nulls in places."""
    at = np.arange(first, first + rows)
    noon = dt.datetime(2020, 3, 7, 12, 30, tzinfo=dt.UTC)
    columns = {
        "zip": [f"{v % 7:02}" for v in at],
        "city": [f"c{v % 7 // (1 + v // 12)}" for v in at],
        "pay": [int(v) * 10 - (0 if v < 10 else int(v) % 3 * 25) for v in at],
        "rate": [decimal.Decimal(int(v) // 2) / 4 for v in at],
        "share": [None if v % 11 == 5 else float(v % 5) / 8 for v in at],
        "day": [dt.date(2020, 1, 1) + dt.timedelta(int(v) * 7 % 10) for v in at],
        "at": [noon + dt.timedelta(hours=int(v) // 4, microseconds=int(v) % 2) for v in at],
    }
    return pa.table(columns, schema=SCHEMA)


FIRST, SECOND, THIRD = rows_from(0, 9), rows_from(9, 6), rows_from(15, 5)


def as_text(table: pa.Table) -> pa.Table:
    """The values as a file of text spells them."""

    def spelled(value: Any) -> str | None:
        return None if value is None else value.isoformat() if isinstance(value, dt.date) else str(value)

    return pa.table({name: pa.array(map(spelled, table[name].to_pylist()), pa.string()) for name in table.column_names})


def put(folder: Path, name: str, table: pa.Table, format: str = "csv") -> None:
    """A file of rows, which appears in the folder as a whole."""
    folder.mkdir(exist_ok=True)
    aside = folder.with_name(f"{folder.name}-{name}")
    if format == "parquet":
        pq.write_table(table, aside)
    elif format == "csv":
        csv.write_csv(as_text(table), aside)
    else:
        aside.write_text("".join(json.dumps(row) + "\n" for row in as_text(table).to_pylist()))
    aside.rename(folder / name)


def stream(spark: Any, folder: Path, handle: Handle, format: str = "csv") -> None:
    """A query over the files of the folder that were not handed over yet, a batch each; ends with the last one."""
    reader = spark.readStream.format(format).schema(IN_TYPES if format == "parquet" else IN_TEXT)
    frame = reader.option("header", "true").option("maxFilesPerTrigger", 1).load(str(folder))
    with callbacks_closed(spark):
        writer = frame.writeStream.foreachBatch(handle).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder.with_name(f"{folder.name}-checkpoint"))).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()


def check(state: tw.MaintainedDcs, folder: Path, *tables: pa.Table) -> None:
    """The rows of the state are these, in any order of batches, and its rules those of discovery."""
    rows = pa.concat_tables(tables)
    found = tw.discover_dcs(rows, space_from=folder)
    assert [str(rule) for rule in state.constraints] == [str(rule) for rule in found.constraints]
    with DcState(folder, write=False) as there:
        relation = there.relation()
    kept = []
    for column, codes in zip(relation.columns, relation.codes, strict=True):
        values = [*relation.dictionaries[column.domain].to_pylist(), None]  # a null's code is -1
        kept.append([values[code] for code in codes.tolist()])
    assert sorted(zip(*kept, strict=True), key=repr) == sorted((tuple(r.values()) for r in rows.to_pylist()), key=repr)


@pytest.fixture(autouse=True)
def port_closed(spark: Any) -> Iterator[None]:
    """The port that Spark calls functions of this process on is closed again after each test."""
    with callbacks_closed(spark):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def state(folder: Path) -> Iterator[tw.MaintainedDcs]:
    with tw.maintain_dcs(folder, FIRST, **STATE) as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_batches_are_revisions(spark: Any, state: tw.MaintainedDcs, folder: Path, files: Path, format: str) -> None:
    """Values of text files are read as the state's types, also where the session's time is another one."""
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "America/New_York")
    put(files, "1", SECOND, format)
    put(files, "2", THIRD, format)
    handle = state.foreach_batch("files")
    before = [str(rule) for rule in state.constraints]
    stream(elsewhere, files, handle, format)
    assert (state.revision, state.rows) == (2, 20)
    check(state, folder, FIRST, SECOND, THIRD)
    assert [str(rule) for rule in state.constraints] != before
    stream(elsewhere, files, handle, format)  # nothing new
    assert state.revision == 2
    put(files, "3", SECOND, format)
    stream(elsewhere, files, handle, format)
    assert state.revision == 3
    check(state, folder, FIRST, SECOND, THIRD, SECOND)


def test_a_batch_that_comes_again_changes_nothing(spark: Any, state: tw.MaintainedDcs, folder: Path) -> None:
    handle = state.foreach_batch("one")
    frame = spark.createDataFrame(as_text(SECOND))
    handle(frame, 0)
    handle(frame, 0)
    assert state.revision == 1
    handle(spark.createDataFrame(as_text(THIRD)).select(*reversed(THIRD.column_names)), 1)
    for again in (1, 1):
        handle(frame, again)
    check(state, folder, FIRST, SECOND, THIRD)
    with pytest.raises(tw.InputError, match="stream 'one' was applied up to batch 1, and an older one comes: 0"):
        handle(frame, 0)
    state.foreach_batch("two")(frame, 0)  # numbers of its own
    assert state.revision == 3
    state.foreach_batch("two")(frame.limit(0), 1)  # a batch of no rows is done, too
    assert (state.revision, state.rows) == (4, 26)
    check(state, folder, FIRST, SECOND, THIRD, SECOND)


def test_a_query_that_ends_before_spark_knows(spark: Any, folder: Path, files: Path) -> None:
    """The batch is applied, the process is another one, and Spark hands the batch over again."""
    put(files, "1", SECOND)
    came: list[int] = []
    with tw.maintain_dcs(folder, FIRST, **STATE) as state:
        insert = state.foreach_batch("files")

        def dying(frame: Any, number: int) -> None:
            came.append(number)
            insert(frame, number)
            raise RuntimeError("killed")

        with pytest.raises(Exception, match="killed"):
            stream(spark, files, dying)
        assert state.revision == 1
    put(files, "2", THIRD)
    with tw.maintain_dcs(folder) as state:
        insert = state.foreach_batch("files")

        def told(frame: Any, number: int) -> None:
            came.append(number)
            insert(frame, number)

        stream(spark, files, told)
        assert came == [0, 0, 1]
        assert (state.revision, state.rows) == (2, 20)
        check(state, folder, FIRST, SECOND, THIRD)


def killed(*given: Any, **options: Any) -> None:
    raise RuntimeError("killed")


def test_a_query_that_ends_before_the_state_has_it(
    spark: Any, state: tw.MaintainedDcs, folder: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(files, "1", SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(DcState, "insert", killed)
        with pytest.raises(Exception, match="killed"):
            stream(spark, files, state.foreach_batch())
    check(state, folder, FIRST)
    stream(spark, files, state.foreach_batch())
    assert state.revision == 1
    check(state, folder, FIRST, SECOND)


def test_a_value_that_does_not_fit_ends_the_query(
    spark: Any, state: tw.MaintainedDcs, folder: Path, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unfit = as_text(SECOND).set_column(2, "pay", pa.array(["90", "100", "much", "120", "130", "140"]))
    put(files, "1", unfit)
    expected = (
        r"InputError: column 'pay': a value doesn't fit type integer at row 2: 'much'; allowed: [^\n]*\. "
        r"Nothing was applied; bad_rows='report' leaves such rows out"
    )
    for _ in range(2):  # the batch comes again
        with pytest.raises(Exception, match=expected):
            stream(spark, files, state.foreach_batch("files"))
        assert (state.revision, state.rows) == (0, 9)
    check(state, folder, FIRST)
    with caplog.at_level(logging.WARNING, "tuplewise"):
        stream(spark, files, state.foreach_batch("files", bad_rows="report"))
    said = "1 row with a value that does not fit its column's type left out, the first at row 2"
    logged = [record.getMessage() for record in caplog.records if record.name == "tuplewise"]
    assert logged == [f"batch 0 of stream 'files': {said}"]
    assert (state.revision, state.rows) == (1, 14)


def test_what_is_no_batch_of_the_state(spark: Any, state: tw.MaintainedDcs, folder: Path) -> None:
    handle = state.foreach_batch()
    frame = spark.createDataFrame(as_text(SECOND))
    with pytest.raises(tw.InputError, match=r"has other columns than the state: .missing 'pay'; unknown 'pays'"):
        handle(frame.withColumnRenamed("pay", "pays"), 0)
    with pytest.raises(tw.InputError, match="Spark can't read this table: \"batch 0 of stream 'stream'\""):
        handle(frame.withColumn("pay", frame.city.cast("long")), 0)  # its plan fails
    assert state.revision == 0
    state.close()
    with pytest.raises(tw.InputError, match="the state is closed"):
        handle(frame, 0)
    with DcState(folder, write=False) as there:
        assert there.applied_batch("stream") == -1


def test_several_queries_at_the_same_time(spark: Any, state: tw.MaintainedDcs, folder: Path) -> None:
    """New values in each, among them the same ones; and the caller inserts meanwhile."""
    frame = spark.createDataFrame(as_text(SECOND))
    handles = [state.foreach_batch(name) for name in ("one", "two", "two")]
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(handle, frame, 0) for handle in handles]
        inserted = pool.submit(state.insert, THIRD)
        for one in running:
            one.result()
        assert inserted.result().rows in (14, 20, 26)
    assert (state.revision, state.rows) == (3, 26)
    check(state, folder, FIRST, SECOND, SECOND, THIRD)


def test_the_session_stays_as_it_was(spark: Any, state: tw.MaintainedDcs, files: Path) -> None:
    put(files, "1", SECOND)
    put(files, "2", THIRD)
    jvm = spark.sparkContext._jvm
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")

    def looks() -> list[Any]:
        active, default = (getattr(jvm.SparkSession, f"get{kind}Session")() for kind in ("Active", "Default"))
        return [
            *(dict(session.conf.getAll) for session in (spark, other)),
            *([t.name for t in session.catalog.listTables()] for session in (spark, other)),
            *(found.isDefined() and found.get().hashCode() for found in (active, default)),
            len(spark.sparkContext._jsc.getPersistentRDDs()),
            spark.sparkContext._gateway.__dict__.get("_callback_server"),
        ]

    settings: list[dict[str, str]] = []
    insert = state.foreach_batch()

    def handle(frame: Any, number: int) -> None:
        own = frame.sparkSession
        settings.append(dict(own.conf.getAll))
        insert(frame, number)
        settings.append(dict(own.conf.getAll))

    before = looks()
    stream(other, files, handle)
    assert looks() == before
    assert settings[0] == settings[1]
    assert settings[2] == settings[3]
    assert state.revision == 2
