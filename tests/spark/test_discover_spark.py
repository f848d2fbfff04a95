"""Discovery over a table in Spark: what tasks compare and validate is what the definition says, however it is cut."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dc.dc_tables import encode, random_table
from held import Held, unread
from numpy.typing import NDArray
from oracles import clues as oracle

import tuplewise as tw
from tuplewise.engine import placement
from tuplewise.engine.cli import main as cli
from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.discover import most_bytes_to_search
from tuplewise.engine.dc.distributed import SparkDcTable
from tuplewise.engine.dc.distributed_figures import SparkFigures
from tuplewise.engine.dc.evidence import collect_evidence
from tuplewise.engine.dc.hybrid import find
from tuplewise.engine.dc.inversion import invert
from tuplewise.engine.dc.outcome_counts import table_outcome_counts, undecided_pairs
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.errors import InputError
from tuplewise.engine.loop import ComparedPairs
from tuplewise.engine.options import DcDiscoverOptions, LoadOptions
from tuplewise.engine.run import Run
from tuplewise.engine.spark import run
from tuplewise.engine.spark.tiles import TileSizes
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_frame import encode_as_frame
from tuplewise.engine.table.spark_load import load_with_spark, open_with_spark
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.words import WITHIN_T, outcomes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
POSITIONS = np.sort(np.random.default_rng(3).choice(10**11, 90, replace=False))
TYPES = ("integer", "integer", "text", "decimal", "text")


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(_: Any, rows: int, columns: int) -> TileSizes:
        return TileSizes(rows, slots=2, tile_rows=9, least_rows=4, most_partitions=3)

    monkeypatch.setattr(run, "cluster_sizes", sizes)


def space_of(relation: Relation, nulls: str, **options: Any) -> PredicateSpace:
    return build_space(relation, DcDiscoverOptions(nulls=nulls, shared_values=0, **options))  # type: ignore[arg-type]


@contextmanager
def in_spark(
    spark: Any, relation: Relation, space: PredicateSpace, made: type[SparkDcTable] = SparkDcTable, **sizes: int
) -> Iterator[SparkDcTable]:
    held = Held.of(spark, relation, POSITIONS[: relation.rows])
    table = made(held, space, device="cpu", **sizes)
    try:
        yield table
    finally:
        table.close()
        held.close()


class Definition:
    """Clues of pairs of different rows by definition, over distinct rows."""

    def __init__(self, relation: Relation, space: PredicateSpace) -> None:
        copies = Counter(zip(*relation.codes.tolist(), strict=True))
        self.rows = sorted(copies)
        self.repeated = [row for row, number in copies.items() if number > 1]
        self.unknown = space.options.nulls == "unknown"
        layout = space.layout
        columns = (layout.left.tolist(), layout.right.tolist(), layout.scope.tolist(), layout.ordered.tolist())
        self.comparisons = list(zip(*columns, strict=True))

    def clue(self, t: Sequence[int], u: Sequence[int]) -> tuple[int, ...]:
        return oracle.words(oracle.clue(list(zip(t, u, strict=True)), self.comparisons, 0, 1, self.unknown))

    def outcomes(self, row: Sequence[int], comparisons: Sequence[int]) -> tuple[int, ...]:
        """Of comparisons within a row."""
        found = oracle.clue(list(zip(row, row, strict=True)), self.comparisons, 0, 1, self.unknown)
        return tuple(found[g] for g in comparisons)

    def agreeing(self, agreement: Sequence[tuple[int, int]]) -> tuple[set[tuple[int, ...]], int]:
        """Clues of both orders, and how many pairs agree; where each column is its own partner, unordered ones."""
        pairs = [
            (t, u)
            for t, u in itertools.permutations(self.rows, 2)
            if all(t[a] == u[b] and not (self.unknown and t[a] == -1) for a, b in agreement)
        ]
        same = all(a == b for a, b in agreement)
        return {self.clue(*p) for t, u in pairs for p in ((t, u), (u, t))}, len(pairs) // (2 if same else 1)


def as_set(clues: NDArray[np.uint64]) -> set[tuple[int, ...]]:
    found = {tuple(row) for row in clues.tolist()}
    assert len(found) == len(clues)
    return found


AGREEMENTS = {
    "unknown": (((0, 0),), ((0, 0), (1, 3)), ()),
    "value": (((2, 2), (4, 4)), ((0, 1),), ((0, 1), (1, 0))),
}


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("nulls", "seed"), [("unknown", 1), ("value", 2)])
def test_agreeing_pairs_are_compared_whole_however_groups_are_cut(spark: Any, nulls: str, seed: int) -> None:
    relation = encode(random_table(seed, rows=60, types=TYPES, null_share=0.15, values=5, fewest=3))
    space = space_of(relation, nulls, single_tuple=True)
    truth = Definition(relation, space)
    met: set[tuple[int, ...]] = set()
    with in_spark(spark, relation, space, least_pairs=12) as table:
        assert table.rows == len(truth.rows) < 60
        wanted = [truth.agreeing(agreement) for agreement in AGREEMENTS[nulls]]
        assert [table.estimate_pairs(agreement) for agreement in AGREEMENTS[nulls]] == [pairs for _, pairs in wanted]
        some = table.sample_agreeing(AGREEMENTS[nulls][0])
        met |= as_set(some.clues)
        assert met <= wanted[0][0]
        assert 0 < some.pairs <= wanted[0][1]
        for agreement, (clues, pairs) in zip(AGREEMENTS[nulls], wanted, strict=True):
            found = table.compare_agreeing(agreement)
            assert as_set(found.clues) == clues - met, agreement
            assert found.pairs == pairs, agreement
            met |= clues


@pytest.mark.usefixtures("small_tiles")
def test_all_violating_pairs_leave_their_clues(spark: Any) -> None:
    relation = encode(random_table(7, rows=60, types=TYPES, null_share=0.15, values=5, fewest=3))
    space = space_of(relation, "unknown")
    truth = Definition(relation, space)
    rule = DenialConstraint((Predicate("t", "c0", "==", "u", "c1"), Predicate("t", "c3", "<", "u", "c3")))
    pairs = [
        (t, u)
        for t, u in itertools.permutations(truth.rows, 2)
        if t[0] == u[1] != -1 and -1 not in (t[3], u[3]) and t[3] < u[3]
    ]
    with in_spark(spark, relation, space) as table:
        assert table.estimate_violations(rule) == len(pairs) > 20
        assert table.all_violating_clues([rule], len(pairs) - 1) == [None]
        found = table.all_violating_clues([rule], len(pairs))[0]
        assert found is not None
        assert as_set(found) == {truth.clue(*p) for t, u in pairs for p in ((t, u), (u, t))}


def test_a_sample_has_every_row_and_pairs_of_equal_rows(spark: Any) -> None:
    relation = encode(random_table(5, rows=90, types=TYPES, null_share=0.15, values=5, fewest=3))
    space = space_of(relation, "unknown", single_tuple=True)
    truth = Definition(relation, space)
    with in_spark(spark, relation, space, made=Known, estimate_rows=40) as table:
        assert isinstance(table, Known)
        everything, own = truth.agreeing(())[0], {truth.clue(r, r) for r in truth.repeated}
        sampled = table.sample()
        assert own <= as_set(sampled.clues) <= everything | own
        assert len(truth.rows) / 2 <= sampled.pairs <= 20 * len(truth.rows)
        within = np.flatnonzero(space.scope == WITHIN_T).tolist()
        seen = set(zip(*(outcomes(sampled.clues, g).tolist() for g in within), strict=True))
        assert {truth.outcomes(row, within) for row in truth.rows} <= seen
        agreeing = table.compare_agreeing(((1, 1),))
        assert len(agreeing.rows) == len(agreeing.clues)
        outliers = np.unique(agreeing.rows)[:2]
        known = [tuple(row) for row in relation.codes[:, table.places_of(outliers)].T.tolist()]
        pairs = [(t, u) for t in known for u in truth.rows if t != u]
        found, rest = table.compare_rows(outliers), table.without(outliers)
        assert found.pairs == len(pairs)
        of_known = {truth.clue(*p) for t, u in pairs for p in ((t, u), (u, t))}
        assert as_set(found.clues) == of_known - as_set(sampled.clues) - as_set(agreeing.clues)
        assert rest.rows == table.rows - 2
        truth.rows = [row for row in truth.rows if row not in known]
        everything = truth.agreeing(())[0]
        assert as_set(rest.compare_agreeing(()).clues) == everything, "and none was met before"
        agreements = (((0, 0),), ((2, 2),), ())
        for agreement in agreements:
            assert rest.estimate_pairs(agreement) == pytest.approx(truth.agreeing(agreement)[1], rel=0.5)


class Known(SparkDcTable):
    """With the rows that it told of found again."""

    def places_of(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Indexes in the relation."""
        return np.searchsorted(POSITIONS, self._positions_of(numbers))


class Priced(SparkDcTable):
    """With prices that make the loop exhaust small column sets and validate the rest, whatever the machine does; no row
    is an outlier, or in a small table all would be."""

    def _compared(self, *given: Any, **how: Any) -> ComparedPairs:
        compared = super()._compared(*given, **how)
        prices = {"grouping_seconds": 1e-4 * self.rows, "comparing_seconds": 1.0 * compared.pairs}
        return replace(compared, rows=compared.rows[:0], **prices)


CASES: dict[str, tuple[int, tuple[str, ...], int, dict[str, Any]]] = {
    "unknown": (11, ("integer", "text", "integer", "date"), 40, {}),
    "value": (12, ("text", "decimal", "integer", "boolean"), 8, {"single_tuple": True, "minimality": "subset"}),
}


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("nulls", [pytest.param("unknown", marks=pytest.mark.slow), "value"])
def test_constraints_are_those_of_all_pairs(spark: Any, nulls: str) -> None:
    seed, types, estimate_rows, options = CASES[nulls]
    relation = encode(random_table(seed, rows=40, types=types, null_share=0.1, values=9, fewest=4))
    space = space_of(relation, nulls, **options)
    everything = invert(collect_evidence(relation, space, device="cpu"))
    elsewhere = replace(relation, codes=relation.codes[:, :0], table_rows=relation.rows)
    how: dict[str, Any] = {"device": pick_device("cpu"), "run": Run(), "lap": lambda _: None}
    with in_spark(spark, relation, space, made=Priced, least_pairs=12, estimate_rows=estimate_rows) as table:
        found = find(elsewhere, space, **how, table=table)
    for name in ("predicates", "sizes", "one_row"):
        assert np.array_equal(getattr(found.arrays, name), getattr(everything, name)), name
    assert len(found.arrays) > 5
    assert found.search["validated"] > found.search["violated"] > 0
    assert found.search["undecided"] == 0


ROWS = "".join(f"{i // 2},{i % 7},{'AB'[i % 3 // 2]},{(i * 37) % 19},{i * 3 % 19 or ''}\n" for i in range(40))


@pytest.fixture
def places(tmp_path: Path) -> str:
    path = tmp_path / "places.csv"
    path.write_text("id,zip,city,pay,rate\n" + ROWS)
    return str(path)


def test_a_file_searched_in_spark_gives_the_same_bytes(
    places: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tw.discover_dcs(places, device="cpu", run_on="driver", algorithm="evidence")
    monkeypatch.setattr(placement, "SHARE_HERE", 0)  # no memory for it here
    argv = ["dc", "discover", places, "--device", "cpu", "--format", "json", "-o", str(tmp_path / "found.json")]
    assert cli.run(argv) == 0
    there, known = json.loads((tmp_path / "found.json").read_text()), here.to_dict()
    for name in ("constraints", "count", "pairs", "predicate_space"):
        assert there["result"][name] == known["result"][name], name
    assert unread(there["tables"]) == unread(known["tables"])
    assert [n for n in there["notes"] if n in known["notes"]] == known["notes"]
    assert any(note.startswith("nulls (rule unknown)") for note in known["notes"])
    assert there["device_reason"].startswith("kernels run in the tasks of Spark")
    assert there["result"]["algorithm"] == "hybrid"
    assert there["result"]["search"]["undecided"] == 0
    late = tw.discover_dcs(places, device="cpu", run_on="spark", time_limit=1e-3)
    assert late.partial
    assert len(late) == 0
    assert "time limit reached before any constraint was decided" in late.notes


@pytest.mark.parametrize("rows", ["", "1,x\n"])
def test_tables_without_pairs_are_searched_here(tmp_path: Path, rows: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + rows)
    found = [tw.discover_dcs(str(tmp_path / "t.csv"), device="cpu", run_on=w) for w in ("spark", "driver")]  # type: ignore[arg-type]
    assert found[0].to_dict()["result"]["constraints"] == found[1].to_dict()["result"]["constraints"]
    assert found[0].notes == found[1].notes


DISCOVERIES: dict[str, Any] = {
    "dc": partial(tw.discover_dcs, algorithm="hybrid"), "fd": tw.discover_fds, "key": tw.discover_keys,
    "od": tw.discover_ods,
}  # fmt: skip
NO_VALUES = '"",""'
ALIKE = [
    *(("aa,7", kind) for kind in DISCOVERIES),
    *(pytest.param(NO_VALUES, kind, marks=[pytest.mark.slow] if kind in ("fd", "key") else []) for kind in DISCOVERIES),
]


@pytest.mark.parametrize(("row", "kind"), ALIKE)
def test_rows_that_are_all_equal(tmp_path: Path, row: str, kind: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + 5 * f"{row}\n")
    there, here = (
        DISCOVERIES[kind](str(path), device="cpu", run_on=way).to_dict()["result"] for way in ("spark", "driver")
    )
    for name in here.keys() - {"search", "algorithm", "algorithm_reason"}:
        assert there[name] == here[name], name
    assert there["count"] >= (0 if kind == "key" else 2)


def test_what_is_not_searched_in_spark_is_refused(places: str) -> None:
    with pytest.raises(InputError, match=r"run_on 'spark' with algorithm: 'hydra'.*'auto', 'evidence' or 'hybrid'"):
        tw.discover_dcs(places, run_on="spark", algorithm="hydra")
    with pytest.raises(InputError, match=r"run_on 'spark' with sample_pairs: '90'"):
        tw.discover_dcs(places, run_on="spark", error=0.1, sample_pairs=90)
    with pytest.raises(InputError, match="algorithm with error above 0: 'hybrid'; allowed: 'auto' or 'evidence'"):
        tw.discover_dcs(places, run_on="spark", error=0.1, algorithm="hybrid")
    with pytest.raises(InputError, match=r"run_on 'spark' for a table that is held here.*a path"):
        tw.discover_dcs(pd.DataFrame({"a": [1, 2]}), run_on="spark")
    assert most_bytes_to_search(DcDiscoverOptions(error=Decimal("0.1"))) is None, "such tables come here"
    assert most_bytes_to_search(DcDiscoverOptions(run_on="driver")) is None
    assert most_bytes_to_search(DcDiscoverOptions()) is not None


@pytest.mark.parametrize("wide", [False, True])
def test_figures_of_columns_are_those_of_the_relation(spark: Any, tmp_path: Path, wide: bool) -> None:
    rng = np.random.default_rng(wide)

    def drawn(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
        index = rng.integers(-1, len(values), 50)
        return pa.array(values, type_).take(pa.array(index, mask=index < 0))

    far = 2**62 if wide else 40  # codes are ranks, or the numbers themselves
    columns = {
        "a": drawn([-3, 1, 2, far], pa.int64()),
        "b": drawn([1, 2, 5, far], pa.int64()),
        "c": drawn([Decimal("1.00"), Decimal("2.50"), Decimal("-3.00")], pa.decimal128(8, 2)),
        "never": pa.nulls(50, pa.int64()),
    }
    if wide:
        columns["x"] = drawn([0.1, 0.7, 1e17, -0.0], pa.float64())
        columns["y"] = drawn([0.1, 0.7, 0.0, 2.5, float("nan")], pa.float64())
        columns["s"] = drawn(["u", "v", "w"], pa.string())
        columns["r"] = drawn(["v", "w", ""], pa.string())
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    opened = open_with_spark(str(tmp_path / "t.parquet"), None, LoadOptions(), None, None, lambda step: None)
    here = load_with_spark(str(tmp_path / "t.parquet"), None, LoadOptions(), None, None, lambda step: None)
    table = encode_as_frame(opened, list(columns), lambda step: None)
    figures = SparkFigures(table)
    options = DcDiscoverOptions(
        nulls="unknown" if wide else "value", single_tuple=True, shared_values=Decimal("0.1"), order_text=wide
    )
    space, known = build_space(table.header, options, figures), build_space(here, options)
    for name in ("left", "right", "shared", "larger", "kept", "ordered", "means"):
        assert np.array_equal(getattr(space.candidates, name), getattr(known.candidates, name)), name
    assert space.groups == known.groups > len(columns) + 3
    assert np.array_equal(figures.outcome_counts(space), table_outcome_counts(here, known))
    assert figures.undecided_pairs(space) == undecided_pairs(here, known)
    table.close()
