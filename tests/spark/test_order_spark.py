"""Keys, functional and order dependencies over a table in Spark: what tasks decide is what this process decides, in
each way that they do it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from held import Held, unread
from numpy.typing import NDArray
from od.dependency_tables import functional_and_keys

import tuplewise as tw
from tuplewise.engine import placement
from tuplewise.engine.cli import main as cli
from tuplewise.engine.errors import InputError
from tuplewise.engine.loop import ComparedPairs
from tuplewise.engine.od import distributed_check, search
from tuplewise.engine.od.check import OTHER_ROWS
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, KEY, Dependencies, Targets
from tuplewise.engine.od.discover import discover, most_bytes_to_search, targets_of
from tuplewise.engine.od.distributed import SparkContextTable, discover_on_spark
from tuplewise.engine.od.lexicographic import check_orders
from tuplewise.engine.od.list_od import read_od
from tuplewise.engine.options import FdDiscoverOptions, KeyDiscoverOptions, OdDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.spark import run
from tuplewise.engine.spark.boundaries import Edge, Edges, crossings, edges_of
from tuplewise.engine.spark.orders import OrderChecks, cut_checks
from tuplewise.engine.spark.tiles import TileSizes
from tuplewise.engine.table.in_spark import TableInSpark
from tuplewise.engine.table.relation import Column, Relation
from tuplewise.engine.table.table import open_table
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.order import lay_out_orders
from tuplewise.gpu_kernels.words import EQUAL, GREATER, LESS, as_flags, as_masks, members, outcomes

POSITIONS = np.sort(np.random.default_rng(3).choice(10**11, 400, replace=False))
ROWS = 120


def table_of(seed: int) -> NDArray[np.int32]:
    """Ties, nulls, equal rows, one giant group by c0; much that holds by c2; codes with gaps, as a frame has them."""
    rng = np.random.default_rng(seed)
    v = rng.permutation(ROWS)
    codes = np.stack([rng.integers(-1, 2, ROWS), v % 4 - 1, v // 4, v // 8 - 1, 40 - v // 5]).astype(np.int32)
    codes[0, 8:] = 1
    codes[:, -9:] = codes[:, :9]
    return np.where(codes < 0, -1, codes * 7_000_000).astype(np.int32)


def dense(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same without gaps."""
    return np.stack([np.unique(c, return_inverse=True)[1] - (c.min() < 0) for c in codes]).astype(np.int32)


def relation_of(codes: NDArray[np.int32]) -> Relation:
    counts = [(len(np.unique(c[c >= 0])), int((c < 0).sum())) for c in codes]
    columns = tuple(Column(f"c{i}", "integer", "given", *count) for i, count in enumerate(counts))
    return Relation("table", None, columns, codes, {})


@contextmanager
def in_spark(
    spark: Any, codes: NDArray[np.int32], nulls: Any, made: type[SparkContextTable] = SparkContextTable, **options: Any
) -> Iterator[SparkContextTable]:
    held = Held.of(spark, relation_of(codes), POSITIONS[: codes.shape[1]])
    layout = search.clue_layout(len(codes), ordered=nulls == "value")
    table = made(held, layout, nulls=nulls, device="cpu", **options)
    try:
        yield table
    finally:
        table.close()
        held.close()


@dataclass(frozen=True)
class Way:
    """Rows that a task has room for, rows that are judged here, and the contexts that are asked about."""

    tile_rows: int
    estimate_rows: int
    contexts: tuple[tuple[int, ...], ...]

    def force(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def sizes(spark: Any, rows: int, columns: int) -> TileSizes:
            return TileSizes(rows, slots=1, tile_rows=self.tile_rows, least_rows=12)

        monkeypatch.setattr(run, "cluster_sizes", sizes)


WAYS = {
    "shared": Way(1000, 2, ((), (0,), (2,), (3,), (0, 1), (0, 2), (2, 4), (0, 1, 2), (1, 3, 4))),
    "classes": Way(60, 2, ((0,), (2,), (3,), (0, 1), (0, 2), (2, 4), (0, 1, 2), (1, 3, 4))),
    "mixed": Way(40, 60, ((0, 1), (2,), (2, 4), (0, 2, 3))),
    "sorted": Way(40, 2, ((), (0, 1))),
}


def every_check(
    contexts: Sequence[tuple[int, ...]], columns: int, nulls: str
) -> tuple[NDArray[np.uint64], NDArray[np.int32], Dependencies]:
    """All dependencies with these contexts."""
    listed = []
    for number, context in enumerate(contexts):
        rest = [c for c in range(columns) if c not in context]
        listed.append((number, KEY, -1, -1))
        listed += [(number, CONSTANT, a, -1) for a in rest]
        if nulls == "value":
            pairs = itertools.combinations(rest, 2)
            listed += [(number, kind, a, b) for a, b in pairs for kind in (ASCENDING, DESCENDING)]
    which, kind, left, right = np.array(listed, dtype=np.int32).T
    words = np.array([sum(1 << c for c in context) for context in contexts], dtype=np.uint64)[:, None]
    return words, which, Dependencies(words[which], kind.astype(np.int8), left, right)


def known_in(
    codes: NDArray[np.int32], nulls: Any, contexts: NDArray[np.uint64], which: NDArray[np.int32], wanted: Dependencies
) -> NDArray[np.bool_]:
    """What holds among the different rows, by the kernel in this process."""
    table = lay_out_orders(dense(np.unique(codes, axis=1)), nulls=nulls, device="cpu")
    return table.check(contexts, which, wanted.kind, wanted.left, wanted.right, limit=0).holds


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("way", "nulls"),
    [("shared", "value"), ("classes", "value"), ("mixed", "value"), ("sorted", "value"), ("mixed", "unknown")],
)
def test_tasks_decide_what_this_process_decides(
    spark: Any, way: str, nulls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    WAYS[way].force(monkeypatch)
    codes = table_of(5)
    contexts, which, wanted = every_check(WAYS[way].contexts, len(codes), nulls)
    known = known_in(codes, nulls, contexts, which, wanted)
    with in_spark(spark, codes, nulls, estimate_rows=WAYS[way].estimate_rows) as table:
        assert table.rows < ROWS
        holds, clues, rows = table.violating_pairs(contexts, which, wanted, 3)
    assert np.array_equal(holds, known)
    assert 1 < np.count_nonzero(holds) < len(holds) - 5
    assert len(rows) == 0
    violated = np.array([violates(clues, contexts[which[k]], wanted, k).any() for k in range(len(holds))])
    assert np.array_equal(violated, ~holds), "each one that is violated is so by a clue that came back"


def violates(clues: NDArray[np.uint64], context: NDArray[np.uint64], wanted: Dependencies, k: int) -> NDArray[np.bool_]:
    """Which clues violate a dependency."""
    alike = np.ones(len(clues), dtype=np.bool_)
    for column in members(context):
        alike &= outcomes(clues, column) == EQUAL
    if wanted.kind[k] == KEY:
        return alike
    left = outcomes(clues, int(wanted.left[k]))
    if wanted.kind[k] == CONSTANT:
        return alike & ((left == LESS) | (left == GREATER))
    right = outcomes(clues, int(wanted.right[k]))
    return alike & (left == LESS) & (right == (GREATER if wanted.kind[k] == ASCENDING else LESS))


class Cut:
    """Rows in random order, with two columns of context, a left one and three right ones; parts of them when sorted."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(2, 40))
        sizes = ((2, 2), (4, 1), (5, 3))
        self.context, left, self.right = (rng.integers(-1, v, (k, rows)).astype(np.int32) for v, k in sizes)
        self.left = left[0]
        order = np.lexsort((np.arange(rows), self.left, self.context[1], self.context[0]))
        cuts = np.unique(rng.integers(0, rows + 1, rng.integers(1, 9)))
        self.parts = [np.sort(part) for part in np.split(order, cuts) if len(part)]
        rng.shuffle(self.parts)

    def edges(self, part: NDArray[np.int64]) -> Edges:
        found = edges_of(self.context[:, part], self.left[part], self.right[:, part], 10 * part)
        again = [Edge.of_numbers(edge.as_numbers(), 2) for edge in found]
        assert [repr(edge) for edge in again] == [repr(edge) for edge in found]
        return Edges(*again)

    def violations(self, t: int, u: int) -> set[tuple[str, int]]:
        """What two rows of a class violate, and on which right column."""
        found = {("key", -1)}
        if self.left[t] == self.left[u]:
            return found
        t, u = (t, u) if self.left[t] < self.left[u] else (u, t)
        found |= {("falling", b) for b in range(3) if self.right[b, t] > self.right[b, u]}
        return found | {("rising", b) for b in range(3) if self.right[b, t] < self.right[b, u]} | {("constant", -1)}

    def pairs(self, rows: Sequence[int]) -> set[tuple[str, int, bytes]]:
        """What all pairs of some rows violate, and in which class."""
        key = {row: self.context[:, row].tobytes() for row in rows}
        return {
            (*violation, key[t])
            for t, u in itertools.combinations(rows, 2)
            if key[t] == key[u]
            for violation in self.violations(t, u)
        }


@pytest.mark.parametrize("seed", range(60))
def test_violations_are_met_wherever_partitions_are_cut(seed: int) -> None:
    """Cuts in classes and in ties, partitions of one row, classes over many: by definition."""
    cut = Cut(seed)
    met: set[tuple[str, int, bytes]] = set()
    for part in cut.parts:
        met |= cut.pairs(part.tolist())
    for crossing in crossings([cut.edges(part) for part in cut.parts]):
        told = [("key", -1, crossing.t, crossing.u)]
        told += [("constant", -1, crossing.t, crossing.u)] * (not crossing.constant)
        for name in ("falling", "rising"):
            told += [(name, b, *pair) for b, pair in enumerate(getattr(crossing, name).tolist()) if pair[0] >= 0]
        for name, column, t, u in told:
            key = cut.context[:, t // 10].tobytes()
            assert key == cut.context[:, u // 10].tobytes()
            assert (name, column) in cut.violations(t // 10, u // 10)
            met.add((name, column, key))
    assert met == cut.pairs(range(len(cut.left)))


def test_checks_are_cut_over_tasks() -> None:
    contexts, which, wanted = every_check(list(itertools.combinations(range(6), 2)), 6, "value")
    flags = as_flags(contexts, 6)
    assert np.array_equal(as_masks(flags), contexts)
    checks = OrderChecks(flags, which, wanted.kind, wanted.left, wanted.right, np.arange(len(which)) + 100)
    parts = cut_checks(checks, [9, 3, 200, 4, 5, 6], 4)
    assert np.array_equal(np.sort(np.concatenate([part.numbers for part in parts])), checks.numbers)
    assert [len(part) for part in parts] == [51, 68, 68, 68]
    for part in parts:
        for i, number in enumerate(part.numbers - 100):
            assert np.array_equal(part.contexts[part.which[i]], flags[which[number]])
            assert part.left[i] == wanted.left[number]
    assert all(part.contexts[:, 2].all() for part in parts[:1]), "contexts with the column of most values come together"


class Priced(SparkContextTable):
    """With prices that make the loop validate, or exhaust column sets, whatever the machine does."""

    pair_seconds = 0.1

    def _compared(self, *given: Any, **how: Any) -> ComparedPairs:
        compared = super()._compared(*given, **how)
        prices = self.pair_seconds * 1e-3 * self.rows, self.pair_seconds * compared.pairs
        return replace(compared, grouping_seconds=prices[0], comparing_seconds=prices[1])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("way", "nulls"),
    [("shared", "value"), ("mixed", "unknown"), pytest.param("sorted", "value", marks=pytest.mark.slow)],
)
def test_dependencies_are_those_found_in_this_process(
    spark: Any, way: str, nulls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    WAYS[way].force(monkeypatch)
    monkeypatch.setattr(search, "ALL_AT_ONCE", -1)
    monkeypatch.setattr(Priced, "pair_seconds", 1e-7 if way == "mixed" else 0.1)
    codes = table_of(11)
    codes = np.concatenate([codes[:, :60], codes[:, :9]], axis=1)
    targets = Targets.of_orders(len(codes)) if nulls == "value" else functional_and_keys(len(codes))
    how: dict[str, Any] = {"names": [f"c{i}" for i in range(5)], "nulls": nulls, "device": pick_device("cpu")}
    known = search.find(dense(codes), targets, **how)
    sample = {"estimate_rows": WAYS[way].estimate_rows // 2, "sampled_rows": 6, "pairs_a_row": 1}
    with in_spark(spark, codes, nulls, made=Priced, **sample) as table:
        found = search.find(codes[:, :0], targets, **how, table=table, rows=codes.shape[1])
    assert found.reached is None
    assert found.search["equal_rows"] == known.search["equal_rows"] > 0
    for part in ("contexts", "kind", "left", "right"):
        assert np.array_equal(getattr(found.dependencies, part), getattr(known.dependencies, part)), part
    assert len(known.dependencies) >= 5
    assert found.search["validated"] > found.search["violated"] > 0
    assert bool(found.search["column_sets"]) == (way == "mixed")


FILE = "".join(f"{i // 2},{i % 7},{'AB'[i % 3 // 2]},{(i * 37) % 19},{i * 3 % 19 or ''}\n" for i in range(40))


@pytest.fixture
def places(tmp_path: Path) -> str:
    path = tmp_path / "places.csv"
    path.write_text("id,zip,city,pay,rate\n" + FILE)
    return str(path)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_file_searched_in_spark_gives_the_same_bytes(
    places: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tw.discover_ods(places, device="cpu", run_on="driver")
    monkeypatch.setattr(placement, "SHARE_HERE", 0)  # no memory for it here
    argv = ["od", "discover", places, "--device", "cpu", "--format", "json", "-o", str(tmp_path / "found.json")]
    assert cli.run(argv) == 0
    there, known = json.loads((tmp_path / "found.json").read_text()), here.to_dict()
    for name in ("constant", "order_compatible", "count"):
        assert there["result"][name] == known["result"][name], name
    assert unread(there["tables"]) == unread(known["tables"])
    assert there["device_reason"].startswith("kernels run in the tasks of Spark")


KINDS: list[Any] = [
    OdDiscoverOptions(device="cpu"),
    FdDiscoverOptions(device="cpu", nulls="value"),
    KeyDiscoverOptions(device="cpu", algorithm="hybrid"),
]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_each_discovery_is_done_in_spark(spark: Any) -> None:
    relation = relation_of(dense(table_of(4)[:, 9:50]))
    held = Held.of(spark, relation, POSITIONS[: relation.rows])
    for options in KINDS:
        searched = (held, targets_of(options, len(relation.columns)), options)
        here, there = discover(relation, options), discover_on_spark(*searched, Run())
        for part in ("contexts", "kind", "left", "right"):
            assert np.array_equal(getattr(there.dependencies, part), getattr(here.dependencies, part))
        assert len(here.dependencies)
        assert there.notes == here.notes
        late = discover_on_spark(*searched, Run(deadline=0.0))
        assert late.partial
        assert not len(late.dependencies)
        assert late.complete_context == -1
        assert "time limit reached with" in late.notes[-1]
    held.close()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_without_pairs_is_searched_here(spark: Any, rows: int) -> None:
    options = OdDiscoverOptions(device="cpu", run_on="spark")
    frame = spark.createDataFrame([(1, 2)][:rows], "a int, b int")
    table = open_table(frame, most_bytes=0)
    assert isinstance(table, TableInSpark)
    there, here = discover(table, options), discover(tw.load(frame), OdDiscoverOptions())
    assert np.array_equal(there.dependencies.contexts, here.dependencies.contexts)
    assert there.notes == here.notes
    assert there.options == options


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_is_not_searched_in_spark_is_refused(places: str) -> None:
    with pytest.raises(InputError, match=r"run_on 'spark' with algorithm: 'levelwise'.*'auto' or 'hybrid'"):
        tw.discover_ods(places, run_on="spark", algorithm="levelwise")
    with pytest.raises(InputError, match=r"run_on 'spark' with error: '0\.1'.*counted in one process"):
        tw.discover_keys(places, run_on="spark", error=0.1)
    with pytest.raises(InputError, match=r"run_on 'spark' for a table that is held here.*a path"):
        tw.discover_fds(pd.DataFrame({"a": [1, 2]}), run_on="spark")
    assert most_bytes_to_search(OdDiscoverOptions(algorithm="levelwise")) is None, "such tables come here"
    assert most_bytes_to_search(KeyDiscoverOptions(run_on="driver")) is None
    assert most_bytes_to_search(KeyDiscoverOptions()) is not None


LISTS = ("c2 -> c3", "c2 -> c3, c4 desc", "c4 desc -> c2", "c0, c2 -> c3 desc", "c1, c3 -> c1, c2", "c2 -> c2")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_lists_are_checked_as_in_this_process(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS["sorted"].force(monkeypatch)
    monkeypatch.setattr(distributed_check, "ESTIMATE_ROWS", 2)
    relation = relation_of(dense(table_of(5)))
    ods = [read_od(text, relation.column_names) for text in LISTS]
    known = check_orders(relation, ods, device="cpu")
    assert {check.holds for check in known} == {True, False}
    held = Held.of(spark, relation, POSITIONS[:ROWS])
    rows, found = distributed_check.check_orders_on_spark(held, ods, device="cpu")
    held.close()
    for there, here in zip(found, known, strict=True):
        assert there.holds == here.holds, str(here.od)
        if there.violation is not None:
            pair = np.array(there.violation.rows)
            assert rows.positions is not None
            assert [there.violation.t, there.violation.u] == rows.positions[pair].tolist()
            two = replace(rows, codes=rows.codes[:, pair], positions=None)
            assert check_orders(two, [there.od], device="cpu")[0].holds is False
    late = distributed_check.check_orders_on_spark(held, ods[:2], device="cpu", run=Run(deadline=0.0))[1]
    assert [check.holds for check in late] == [None, None]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_lists_are_checked_on_a_file_in_spark(places: str, capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["id -> zip", "id, zip -> id"]
    there, here = (tw.check_ods(places, lists, device="cpu", run_on=where) for where in ("spark", "driver"))  # type: ignore[arg-type]
    assert [check.holds for check in there.ods] == [check.holds for check in here.ods] == [False, True]
    assert there.ods[0].violation is not None
    assert there.notes[-1] == OTHER_ROWS
    assert OTHER_ROWS not in here.notes
    assert there.to_dict()["tables"][0]["rows"] == 40
    assert there.device_reason is not None
    assert there.device_reason.startswith("kernels run in the tasks of Spark")
    assert cli.run(["od", "check", places, "--od", lists[1], "--device", "cpu", "--run-on", "spark"]) == 0
    assert "holds" in capsys.readouterr().out
