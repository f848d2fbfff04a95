"""Inclusion dependencies in Spark: the same as in-process, for all types, and kept current in partitions."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles.ind import inclusions

from tuplewise.engine import state_folders
from tuplewise.engine.cli.main import run
from tuplewise.engine.errors import InputError
from tuplewise.engine.ind import partitioned
from tuplewise.engine.ind.discover import unary_inds
from tuplewise.engine.ind.distributed import cluster_on_spark
from tuplewise.engine.ind.found import Clustered
from tuplewise.engine.ind.partitioned import PartitionedIndState
from tuplewise.engine.ind.partitioned_build import build
from tuplewise.engine.ind.partitioned_stream import apply_stream
from tuplewise.engine.ind.places import open_tables
from tuplewise.engine.ind.state import Change
from tuplewise.engine.ind.unary import cluster_tables
from tuplewise.engine.options import IndStateOptions, LoadOptions
from tuplewise.engine.spark import attribute_values

pytestmark = pytest.mark.spark


def all_types(rng: np.random.Generator, rows: int) -> pa.Table:
    """Values that are equal across types, and ones that only look alike; nulls in each column."""
    few = rng.integers(-3, 4, rows)

    def column(values: list[Any], type_: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if rng.random() < 0.1 else v for v in values], type_)

    days = [dt.date(2020, 1, 5) + dt.timedelta(int(v)) for v in few]
    return pa.table(
        {
            "whole": column(few.tolist(), pa.int64()),
            "short": column(few.tolist(), pa.int16()),
            "exact": column([decimal.Decimal(int(v)) / 2 for v in few], pa.decimal128(12, 2)),
            "large": column([decimal.Decimal(int(v)) * 10**18 for v in few], pa.decimal128(38, 3)),
            "real": column([-0.0 if v == 0 else float("nan") if v == 3 else v / 2 for v in few.tolist()]),
            "plus": column([0.0 if v == 0 else v / 2 for v in few.tolist()], pa.float32()),
            "day": column(days),
            "at": column([dt.datetime(2020, 1, d.day, 5 * (d.day % 2)) for d in days], pa.timestamp("us")),
            "flag": column((few > 0).tolist()),
            "text": column([str(v) for v in few.tolist()]),
            "true": column(["true" if v > 0 else "" for v in few.tolist()]),
            "none": pa.nulls(rows, pa.string()),
        }
    )


def same(there: Clustered, here: Clustered) -> None:
    assert there.clustering.attributes == here.clustering.attributes
    assert there.clustering.families == here.clustering.families
    assert there.clustering.masks.tobytes() == here.clustering.masks.tobytes()
    assert there.clustering.values.tolist() == here.clustering.values.tolist()
    for one, other in zip(there.tables, here.tables, strict=True):
        assert (one.name, one.path, one.rows) == (other.name, other.path, other.rows)
        assert [replace(c, why="") for c in one.columns] == [replace(c, why="") for c in other.columns]


def by_definition(table: pa.Table, found: Clustered) -> set[tuple[int, int]]:
    """The inclusions between the columns of the first table, as sets; -3 is no text."""
    columns = []
    for name, column in zip(table.column_names, found.tables[0].columns, strict=True):
        values = [v.replace(tzinfo=dt.UTC) if isinstance(v, dt.datetime) else v for v in table[name].to_pylist()]
        columns.append((column.type, [None if v == "-3" else v for v in values]))
    return {(one.dependent, one.referenced) for one in inclusions(columns)[0]}


def pairs_of(found: Clustered) -> set[tuple[int, int]]:
    """The same, as found."""
    first = len(found.tables[0].columns)
    holds = found.clustering.included()[:first, :first]
    return {(a, b) for a, b in np.argwhere(holds).tolist() if a != b and found.clustering.distinct[a]}


def write_csv(path: Path, table: pa.Table) -> str:
    from pyarrow import csv

    csv.write_csv(table, path)
    return str(path)


@pytest.mark.parametrize("as_text", [False, True])
def test_clusters_are_those_of_one_process(spark: Any, tmp_path: Path, as_text: bool) -> None:
    rng = np.random.default_rng(7)
    pq.write_table(all_types(rng, 40), tmp_path / "stored.parquet")
    tables = {
        "stored": str(tmp_path / "stored.parquet"),
        "read": write_csv(tmp_path / "read.csv", all_types(rng, 30)),
        "empty": write_csv(tmp_path / "empty.csv", all_types(rng, 30).slice(0, 0)),
    }
    options = LoadOptions(null_tokens=() if as_text else ("-3",))
    there = cluster_on_spark(open_tables(tables, options), as_text=as_text)
    here = cluster_tables(tables, options, as_text=as_text)
    same(there, here)
    if not as_text:
        assert pairs_of(there) == by_definition(pq.read_table(tmp_path / "stored.parquet"), there)


@pytest.mark.parametrize("words", [0, 4])
def test_many_attributes(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    """Sets of attributes as arrays, as of thousands, and as several words."""
    monkeypatch.setattr(attribute_values, "MOST_WORDS", words)
    rng = np.random.default_rng(3)
    table = pa.table({f"c{i}": rng.integers(0, i % 7 + 1, 9) for i in range(66)})
    pq.write_table(table, tmp_path / "wide.parquet")
    tables = {"wide": str(tmp_path / "wide.parquet")}
    same(cluster_on_spark(open_tables(tables, LoadOptions())), cluster_tables(tables))


TYPES = LoadOptions(types={"number": "decimal", "at": "timestamp"})


def some_rows(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows as text: numbers of several spellings, times, nulls."""
    numbers = np.array(["1", "1.0", "-2.50", "-2.5", "0", "7", "12345678901234567890"])
    times = np.array(["2020-01-01", "2020-01-01T00:00:00Z", "2021-02-03T04:05:06.5+01:00"])
    table = {
        "number": pa.array(numbers[rng.integers(0, len(numbers), rows)], mask=rng.random(rows) < 0.1),
        "at": pa.array(times[rng.integers(0, len(times), rows)]),
        "word": pa.array([f'w "{v}"' for v in rng.integers(0, 5, rows)], mask=rng.random(rows) < 0.1),
    }
    return pa.table(table)


def change(state: PartitionedIndState, kind: Literal["insert", "delete"], table: str, source: Any) -> Change:
    rows = state.read_rows(source, table)
    return Change(kind, rows.attributes, rows.rows)


class Model:
    """Tables of a state as rows in memory, and what a state built from them says."""

    def __init__(self, tables: dict[str, pa.Table], folder: Path) -> None:
        self.tables, self.folder = tables, folder

    def check(self, state: PartitionedIndState) -> None:
        files = {name: write_csv(self.folder / f"{name}.csv", table) for name, table in self.tables.items()}
        rebuilt = cluster_tables(files, TYPES).clustering
        assert state.clustering().masks.tobytes() == rebuilt.masks.tobytes()
        assert state.clustering().values.tolist() == rebuilt.values.tolist()
        assert state.rows == {name: len(table) for name, table in self.tables.items()}
        assert list(state.found().inds) == unary_inds(rebuilt)[0]
        nulls = [column.nulls for table in cluster_tables(files, TYPES).tables for column in table.columns]
        assert [column.nulls for table in state.found().tables for column in table.columns] == nulls


@pytest.fixture(scope="module")
def built(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pa.Table]]:
    """A state of two tables, and its rows; to be copied."""
    folder = tmp_path_factory.mktemp("built")
    rng = np.random.default_rng(11)
    tables = {"left": some_rows(rng, 12), "right": some_rows(rng, 20)}
    files = {name: write_csv(folder / f"{name}.csv", table) for name, table in tables.items()}
    made = build(folder / "state", files, IndStateOptions(), TYPES, written_by="test")
    assert made.folder == folder / "state"
    return folder / "state", tables


@pytest.fixture
def copied(built: tuple[Path, dict[str, pa.Table]], tmp_path: Path) -> tuple[Path, Model]:
    shutil.copytree(built[0], tmp_path / "state")
    return tmp_path / "state", Model(dict(built[1]), tmp_path)


def test_batches_equal_a_rebuild(spark: Any, copied: tuple[Path, Model], tmp_path: Path) -> None:
    folder, model = copied
    rng = np.random.default_rng(5)
    with PartitionedIndState(folder) as state:
        model.check(state)
        before = {str(one.ind) for one in state.found().inds}
        for step in range(2):
            left, right = model.tables["left"], model.tables["right"]
            new = some_rows(rng, 6)
            gone = left.take(rng.permutation(len(left))[:4])
            changes = [
                change(state, "delete", "left", write_csv(tmp_path / "gone.csv", gone)),
                change(state, "insert", "right", write_csv(tmp_path / "new.csv", new)),
            ]
            applied = state.apply(changes)
            model.tables = {"left": without(left, gone), "right": pa.concat_tables([right, new])}
            model.check(state)
            now = {str(one.ind) for one in state.found().inds}
            assert {str(i) for i in applied.gained} == now - before
            assert {str(i) for i in applied.lost} == before - now
            assert applied.revision == state.revision == step + 1
            before = now
    with PartitionedIndState(folder, write=False) as again:
        model.check(again)
        names = set(again._now.folders.values())
    assert {p.name for p in (folder / "values").iterdir()} == names


def without(table: pa.Table, gone: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    for row in gone.to_pylist():
        rows.remove(row)
    return pa.Table.from_pylist(rows, table.schema)


def test_a_value_that_is_not_there_is_refused(spark: Any, copied: tuple[Path, Model]) -> None:
    folder, model = copied
    with PartitionedIndState(folder) as state:
        row = model.tables["left"].slice(0, 1).set_column(2, "word", pa.array(["none such"]))
        none = r"column 'word': a value goes 1 times more than it comes, and the column has none of it: 'none such'\."
        with pytest.raises(InputError, match=rf"table 'left', {none} Nothing was applied"):
            state.apply([change(state, "delete", "left", row)])
        nulls = pa.table({name: pa.nulls(1, model.tables["left"].schema.field(name).type) for name in row.column_names})
        with pytest.raises(InputError, match="more rows to delete have no value than the table has"):
            state.apply([change(state, "delete", "left", pa.concat_tables([nulls] * 4))])
        unfit = pa.table({"number": ["x"], "at": ["2020-01-01"], "word": ["a"]})
        path = write_csv(folder.parent / "unfit.csv", unfit)
        with pytest.raises(InputError, match=r"column 'number': 1 value doesn't fit type decimal, the first at .*'x'"):
            state.apply([change(state, "insert", "left", path)])
        with pytest.raises(InputError, match=r"missing 'word'; unknown 'words'"):
            state.apply([change(state, "insert", "left", row.rename_columns(["number", "at", "words"]))])
        with pytest.raises(InputError, match=r"being written by this process"):
            PartitionedIndState(folder)
        model.check(state)
        assert state.revision == 0
    with pytest.raises(InputError, match="opened to be read only"):
        PartitionedIndState(folder, write=False).apply([])


@pytest.mark.parametrize("dies", ["write_counts", "below_zero", "moved_values", "put_in_place"])
def test_killed_between_writes(
    spark: Any, copied: tuple[Path, Model], monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    """A batch that ends anywhere before the rename has changed nothing; what it wrote is cleared away."""
    folder, model = copied
    where = state_folders if dies == "put_in_place" else partitioned

    def dying(*given: Any) -> Any:
        if dies == "write_counts":  # files are half written
            given[1].mkdir()
            (given[1] / "part").write_bytes(b"half")
        raise KeyboardInterrupt

    class Killed(PartitionedIndState):
        def _clear(self) -> None:
            """A killed process clears nothing."""

    state = Killed(folder)
    with monkeypatch.context() as patch:
        patch.setattr(where, dies, dying)
        patch.setattr(partitioned.shutil, "rmtree", lambda *given, **how: None)
        with pytest.raises(KeyboardInterrupt):
            state.apply([change(state, "insert", "left", model.tables["left"].slice(0, 1))])
    state.close()
    assert len(list((folder / "values").iterdir())) == 2
    with PartitionedIndState(folder) as again:
        model.check(again)
        assert len(list((folder / "values").iterdir())) == 1
        assert again.revision == 0


def test_ctrl_c_after_the_rename_keeps_the_batch(
    spark: Any, copied: tuple[Path, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, model = copied
    real, row = state_folders.put_in_place, model.tables["left"].slice(0, 1)

    def late(new: Path, old: Path) -> None:
        real(new, old)
        raise KeyboardInterrupt

    with PartitionedIndState(folder) as state:
        with monkeypatch.context() as patch:
            patch.setattr(state_folders, "put_in_place", late)
            with pytest.raises(KeyboardInterrupt):
                state.apply([change(state, "insert", "left", row)])
        model.tables["left"] = pa.concat_tables([model.tables["left"], row])
        model.check(state)
        assert state.revision == 1
        assert state.apply([change(state, "delete", "left", row)]).revision == 2  # its files are there


def test_batches_of_two_streams_at_the_same_time(spark: Any, copied: tuple[Path, Model]) -> None:
    folder, model = copied
    rows = {name: table.slice(0, 2) for name, table in model.tables.items()}
    frames = {
        name: spark.createDataFrame(table.append_column("_change", pa.array(["insert"] * 2)))
        for name, table in rows.items()
    }
    with PartitionedIndState(folder) as state:
        with ThreadPoolExecutor(2) as pool:
            applied = list(pool.map(lambda name: state.foreach_batch(frames[name], 0, table=name), frames))
        assert sorted(one.revision for one in applied if one is not None) == [1, 2]
        assert {name: place.batch for name, place in state.streams.items()} == {"left": 0, "right": 0}
        model.tables = {name: pa.concat_tables([table, rows[name]]) for name, table in model.tables.items()}
        model.check(state)


def test_a_stream_applies_each_batch_once(
    spark: Any, copied: tuple[Path, Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, model = copied
    changes = tmp_path / "changes"
    changes.mkdir()
    left = model.tables["left"]

    def put(name: str, rows: pa.Table, kind: str) -> None:
        write_csv(changes / name, rows.append_column("_change", pa.array([kind] * len(rows))))

    put("a.csv", left.slice(0, 2), "delete")
    put("b.csv", left.slice(3, 4), "insert")
    gateway = spark.sparkContext._gateway
    before = gateway.__dict__.get("_callback_server")
    with PartitionedIndState(folder) as state:
        # killed after the batch was applied, before Spark knew
        real = PartitionedIndState.foreach_batch

        def dying(self: PartitionedIndState, *given: Any, **how: Any) -> Any:
            real(self, *given, **how)
            raise InputError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(PartitionedIndState, "foreach_batch", dying)
            with pytest.raises(InputError, match="killed"):
                apply_stream(state, changes, table="left", files_a_batch=2)
        model.tables["left"] = pa.concat_tables([left.slice(2), left.slice(3, 4)])
        model.check(state)
        assert state.revision == 1
        put("c.csv", left.slice(5, 1), "insert")
        found = apply_stream(state, changes, table="left", files_a_batch=2)
        model.tables["left"] = pa.concat_tables([model.tables["left"], left.slice(5, 1)])
        model.check(state)
        assert [one.revision for one in found.batches] == [2]
        assert apply_stream(state, changes, table="left").batches == ()
        assert gateway.__dict__.get("_callback_server") is before  # a port opened for the stream is closed
        # a batch that can't be applied comes again
        put("d.csv", left.slice(0, 1), "upsert")
        with pytest.raises(InputError, match="column '_change': 'upsert'; allowed: 'insert' or 'delete'"):
            apply_stream(state, changes, table="left")
        with pytest.raises(InputError, match="'left' was applied up to batch 1 by another query"):
            state.foreach_batch(spark.range(1), 7, table="left", query="another")
        model.check(state)


def test_commands(spark: Any, copied: tuple[Path, Model], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, model = copied

    def said(*argv: str) -> dict[str, Any]:
        capsys.readouterr()
        assert run(["ind", *argv, "--format", "json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)["result"]
        return found

    files = [write_csv(tmp_path / f"{name}.csv", table) for name, table in model.tables.items()]
    folder = str(tmp_path / "new")
    types = ("--types", "number=decimal", "--types", "at=timestamp")
    started = said("init", folder, *files, "--run-on", "spark", *types)
    direct = said("discover", *files, *types, "--run-on", "spark")
    shown = said("show", folder)
    assert shown["inds"] == direct["inds"]
    assert len(started["gained"]) == shown["count"]
    gone = said("apply", folder, "--table", "left", "--delete", files[0])
    assert (gone["revision"], gone["rows"]) == (1, len(model.tables["right"]))
    changes = tmp_path / "changes"
    changes.mkdir()
    left = model.tables["left"]
    write_csv(changes / "1.csv", left.append_column("_change", pa.array(["insert"] * len(left))))
    back = said("apply", folder, "--table", "left", "--stream", str(changes))
    assert (back["revision"], back["rows"]) == (2, started["rows"])
    assert set(back["gained"]) == {lost["rule"] for lost in gone["lost"]}
    assert said("show", folder)["inds"] == direct["inds"]
    assert run(["ind", "init", str(tmp_path / "other"), *files, "--run-on", "spark", "--track-rows"]) == 2
    assert "a state in Spark doesn't take: 'track_rows'" in capsys.readouterr().err
