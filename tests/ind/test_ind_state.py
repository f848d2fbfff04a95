"""A state of inclusion dependencies against a rebuild from scratch by sets: random rows, kill and reopen; the paper."""

from __future__ import annotations

import gzip
import random
import tempfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tuplewise as tw
from benchmarks.ind_state_cases import TABLES as TPCH
from benchmarks.ind_state_cases import TpchTables, drawn_lines
from benchmarks.outside import MissingData
from tests.oracles.ind import inclusions
from tuplewise.engine.ind import incremental, store
from tuplewise.engine.ind.initial import build
from tuplewise.engine.ind.state import Change, IndState
from tuplewise.engine.options import IndStateOptions

PAPER = [("a", "a", "f", "a"), ("b", "b", "e", "a"), ("b", "c", "f", "c"), ("d", "d", "f", "c")]
LONG = "long " * 150  # more bytes than a key may have
TEXTS = [None, "", "a", "b", "1", LONG, LONG + "a", "naïve 名"]
NUMBERS = [None, 0, 1, 2, 10**18, -1]
TABLES = {
    "r": {"a": ("text", TEXTS), "n": ("integer", NUMBERS), "b": ("text", TEXTS)},
    "s": {"m": ("decimal", [None, Decimal(1), Decimal("0.5"), Decimal(10**18)]), "c": ("text", TEXTS)},
}
ARROW = {"text": pa.string(), "integer": pa.int64(), "decimal": pa.decimal128(30, 2)}


def frame(rows: list[tuple[Any, ...]], names: str = "ABCD") -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(names))


def texts(inds: Any) -> list[str]:
    return [str(one) for one in inds]


def test_the_example_of_the_paper(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": frame(PAPER)}) as state:
        assert texts(state.inds) == ["t.A <= t.B", "t.D <= t.B"]
        change = state.delete({"A": "b", "B": "b", "C": "e", "D": "a"})
        assert (texts(change.gained), texts(change.lost)) == ([], ["t.A <= t.B"])
        assert texts(state.inds) == ["t.D <= t.B"]
        change = state.insert([PAPER[1]])
        assert texts(state.inds) == ["t.A <= t.B", "t.D <= t.B"]
        change = state.insert([("c", "c", "e", "e")])
        assert (texts(change.gained), texts(change.lost)) == (["t.B <= t.A"], ["t.D <= t.B"])
        assert texts(state.inds) == ["t.A <= t.B", "t.B <= t.A"]
        assert (state.revision, state.rows) == (3, {"t": 5})
    with tw.maintain_inds(tmp_path / "s") as state:
        assert (state.revision, texts(state.inds)) == (3, ["t.A <= t.B", "t.B <= t.A"])


def test_an_update_is_one_revision(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": frame(PAPER)}) as state:
        change = state.update([("b", "c", "f", "c")], [("b", "g", "f", "g")])
        assert (change.revision, change.rows) == (1, {"t": 4})
        assert (texts(change.gained), texts(change.lost)) == ([], ["t.D <= t.B"])
        with pytest.raises(tw.InputError, match=r"not as many new rows as old ones: '1 old, 2 new'"):
            state.update([PAPER[0]], PAPER[:2])
        assert state.revision == 1


class Kept(RuleBasedStateMachine):
    """Rows come, go and change, one by one and in batches, the state is closed and opened; all against sets."""

    options = IndStateOptions()

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state"
        self.rows: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": []}

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.state.close()
        self.folder.cleanup()

    @initialize(data=st.data())
    def built(self, data: st.DataObject) -> None:
        for name in TABLES:
            self.rows[name] = data.draw(st.lists(drawn_row(name), max_size=6))
        build(self.path, {n: arrow(n, rows) for n, rows in self.rows.items()}, self.options, written_by="test")
        self.state = IndState(self.path)
        self.inds = self.expected()[0]
        self.revision = 0

    @rule(name=st.sampled_from(sorted(TABLES)), data=st.data(), whole=st.booleans())
    def insert(self, name: str, data: st.DataObject, whole: bool) -> None:
        rows = data.draw(st.lists(drawn_row(name), max_size=4))
        self.apply([("insert", name, rows)], whole)

    @rule(name=st.sampled_from(sorted(TABLES)), data=st.data(), whole=st.booleans())
    def delete(self, name: str, data: st.DataObject, whole: bool) -> None:
        self.apply([("delete", name, self.some(name, data))], whole)

    @rule(name=st.sampled_from(sorted(TABLES)), data=st.data(), whole=st.booleans())
    def update(self, name: str, data: st.DataObject, whole: bool) -> None:
        old = self.some(name, data)
        new = data.draw(st.lists(drawn_row(name), min_size=len(old), max_size=len(old)))
        self.apply([("delete", name, old), ("insert", name, new)], whole)

    @rule(name=st.sampled_from(sorted(TABLES)), data=st.data(), whole=st.booleans())
    def delete_what_is_not_there(self, name: str, data: st.DataObject, whole: bool) -> None:
        rows = data.draw(st.lists(drawn_row(name), min_size=1, max_size=3))
        too_many = len(rows) > len(self.rows[name])
        for c in range(len(TABLES[name])):
            held = Counter(row[c] for row in self.rows[name])
            taken = Counter(row[c] for row in rows if row[c] is not None)
            too_many |= any(count > held[value] for value, count in taken.items())
        if too_many:
            with pytest.raises(tw.InputError, match=r"Nothing was applied"):
                self.state.apply([self.change("delete", name, rows, whole)])

    @rule()
    def reopen(self) -> None:
        self.state.close()
        self.state = IndState(self.path)

    def some(self, name: str, data: st.DataObject) -> list[tuple[Any, ...]]:
        held = self.rows[name]
        chosen = data.draw(st.sets(st.integers(0, len(held) - 1), max_size=3)) if held else set()
        return [held[i] for i in sorted(chosen)]

    def change(self, kind: Any, name: str, rows: list[tuple[Any, ...]], whole: bool) -> Change:
        read = self.state.read_rows(arrow(name, rows) if whole else rows, name)
        return Change(kind, read.attributes, read.rows)

    def apply(self, changes: list[tuple[str, str, list[tuple[Any, ...]]]], whole: bool) -> None:
        applied = self.state.apply([self.change(kind, name, rows, whole) for kind, name, rows in changes])
        for kind, name, rows in changes:
            for row in rows:
                if kind == "delete":
                    self.rows[name].remove(row)
                else:
                    self.rows[name].append(row)
        self.revision += 1
        now, _ = self.expected()
        assert set(texts(applied.gained)) == {i[0] for i in now} - {i[0] for i in self.inds}
        assert set(texts(applied.lost)) == {i[0] for i in self.inds} - {i[0] for i in now}
        self.inds = now

    def expected(self) -> tuple[list[tuple[str, int, int]], int]:
        columns, names = [], []
        for name, kinds in TABLES.items():
            for c, (column, (type_, _)) in enumerate(kinds.items()):
                columns.append((type_, [row[c] for row in self.rows[name]]))
                names.append(f"{name}.{column}")
        found, trivial = inclusions(columns)
        listed = [
            (f"{names[i.dependent]} <= {names[i.referenced]}", i.dependent_distinct, i.referenced_distinct)
            for i in found
        ]
        return listed, trivial

    @invariant()
    def as_rebuilt(self) -> None:
        if not hasattr(self, "state"):
            return
        found = self.state.found()
        assert self.state.revision == self.revision
        assert self.state.rows == {name: len(rows) for name, rows in self.rows.items()}
        kept = [(str(one.ind), one.dependent_distinct, one.referenced_distinct) for one in found.inds]
        assert (kept, found.trivial) == self.expected()
        for table in found.tables:
            nulls = [sum(row[c] is None for row in self.rows[table.name]) for c in range(len(table.columns))]
            assert [column.nulls for column in table.columns] == nulls


class KeptWithRows(Kept):
    options = IndStateOptions(track_rows=True)


class KeptInBatches(Kept):
    """Values of one attribute are changed all at once, as those of large changes are."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(incremental, "_WORTHWHILE", 0)

    def teardown(self) -> None:
        self.patch.undo()
        super().teardown()


def drawn_row(name: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.sampled_from(values) for _, values in TABLES[name].values()))


def arrow(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = TABLES[name]
    columns = [pa.array([row[c] for row in rows], ARROW[kind]) for c, (kind, _) in enumerate(kinds.values())]
    return pa.table(columns, names=list(kinds))


QUICK = settings(
    max_examples=25, stateful_step_count=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestKept = Kept.TestCase
TestKept.settings = QUICK
TestKeptWithRows = KeptWithRows.TestCase
TestKeptWithRows.settings = settings(QUICK, max_examples=10)
TestKeptInBatches = KeptInBatches.TestCase
TestKeptInBatches.settings = QUICK


def test_values_of_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "long_hash", lambda name: store.LONG + b"0" * 16)
    monkeypatch.setattr("tuplewise.engine.ind.initial.long_hash", incremental.long_hash)
    table = pd.DataFrame({"a": [LONG + "1", LONG + "2"], "b": [LONG + "2", LONG + "3"]})
    with tw.maintain_inds(tmp_path / "s", {"t": table}) as state:
        assert texts(state.inds) == []
        assert texts(state.insert({"a": LONG + "1", "b": LONG + "1"}).gained) == ["t.a <= t.b"]
        assert texts(state.delete({"a": LONG + "1", "b": LONG + "1"}).lost) == ["t.a <= t.b"]
        with pytest.raises(tw.InputError, match=r"does not have so often"):
            state.delete({"a": LONG + "9", "b": LONG + "2"})


def test_counts_beyond_32_bits(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame({"a": ["x", "y"], "b": ["x", "z"]})}) as state:
        name = store.value_prefix("text") + b"x"

        def put(transaction: Any) -> None:
            record = transaction.get(name)
            most = (2**32 - 1).to_bytes(4, "little")
            transaction.put(name, record[:4] + most + record[8:])

        state._state._store.write(put)
        state.insert({"a": "x", "b": "z"})
        wide = state._state._store.read(lambda transaction: transaction.get(name))
        assert incremental.record_layout(2, wide=True).unpack(wide)[1:] == (2**32, 1)
        state.delete({"a": "x", "b": "z"})
        assert texts(state.insert({"a": "z", "b": "y"}).gained) == ["t.a <= t.b", "t.b <= t.a"]


def test_rows_as_objects_and_as_columns_are_the_same(tmp_path: Path) -> None:
    columns = {
        "i": pa.array([1, None], pa.int64()), "d": pa.array([Decimal("1.50"), None]), "f": pa.array([-0.0, None]),
        "day": pa.array([date(2026, 1, 2), None]), "b": pa.array([True, None]),
        "at": pa.array([datetime(2026, 1, 2, 3, tzinfo=UTC), None]), "t": pa.array(["x", None]),
    }  # fmt: skip
    spelled = [
        [1, "1", "+1", Decimal(1), 1.0],
        [Decimal("1.5"), "1.50", "01.5", 1.5],
        [0.0, -0.0, "0", "0.0", 0],
        [date(2026, 1, 2), "2026-01-02", datetime(2026, 1, 2)],
        [True, "TRUE", "true"],
        [datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00Z", pd.Timestamp("2026-01-02 03:00")],
        ["x", "x"],
    ]
    with tw.maintain_inds(tmp_path / "s", {"t": pa.table(columns)}, track_rows=True) as state:
        for c, values in enumerate(spelled):
            for value in values:
                row = [one[0] for one in spelled]
                row[c] = value
                state.insert([row])
                state.delete(pa.table(columns).slice(0, 1))
        state.insert([[None] * 7, dict.fromkeys(columns)])
        state.delete(pa.table(columns).slice(1, 1))
        with pytest.raises(tw.InputError, match=r"'i': .* type integer at row 1: 'x'; allowed: digits.* leaves such"):
            state.insert([[None] * 7, ["x"] + [None] * 6])
        with pytest.raises(tw.InputError, match=r"column 'day': a value doesn't fit type date at row 0"):
            state.insert([[None] * 3 + ["2026-02-30"] + [None] * 3])
        with pytest.raises(tw.InputError, match=r"column 'b'"):
            state.insert([[None] * 4 + [1] + [None] * 2])
        change = state.insert([[None] * 7, ["x"] + [None] * 6], bad_rows="report")
        assert change.rows == {"t": 4}
        assert "1 row with a value that does not fit its column's type left out, the first at row 1" in change.notes


def test_misfits_in_frames(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})}) as state:
        bad = pd.DataFrame({"b": ["x", "y", "z"], "a": ["3", "x", "4"]})  # in another order
        with pytest.raises(tw.InputError, match=r"column 'a': a value doesn't fit type integer at row 1: 'x'"):
            state.insert(bad)
        assert (state.revision, state.rows) == (0, {"t": 2})
        change = state.insert(bad, bad_rows="report")
        assert change.rows == {"t": 4}
        assert [c.distinct for c in state.result().tables[0].columns] == [4, 3]
        with pytest.raises(tw.InputError, match=r"bad_rows: 'x'; allowed: 'fail' or 'report'"):
            state.insert(bad, bad_rows="x")


def test_typed_columns_and_text(tmp_path: Path) -> None:
    tables = {"a": pd.DataFrame({"x": ["1", "x"]}), "b": pd.DataFrame({"y": [1, 2]})}
    with tw.maintain_inds(tmp_path / "typed", tables) as state:
        state.delete({"x": "x"}, table="a")
        assert state.inds == []  # text and numbers are not compared
    with tw.maintain_inds(tmp_path / "text", tables, as_text=True) as state:
        assert texts(state.delete({"x": "x"}, table="a").gained) == ["a.x <= b.y"]
        with pytest.raises(tw.InputError, match=r"the state has several tables: 'a, b'"):
            state.insert({"x": "1"})
        with pytest.raises(tw.InputError, match=r"no table of the name: 'aa'. Did you mean 'a'"):
            state.insert({"x": "1"}, table="aa")


def test_an_absent_row_is_recognised_where_rows_are_tracked(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": ["x", "y", "y", None], "b": ["x", "y", "y", None]})
    crossed = {"a": "x", "b": "y"}  # each value is there, the row is not
    with tw.maintain_inds(tmp_path / "values", {"t": table}) as state:
        assert state.delete(crossed).revision == 1
    with tw.maintain_inds(tmp_path / "rows", {"t": table}, track_rows=True) as state:
        with pytest.raises(tw.InputError, match=r"table 't': row 0 to delete is not in the table \(none of it\)"):
            state.delete(crossed)
        with pytest.raises(tw.InputError, match=r"row 2 to delete has a value .* \(only 2 left\): 'y'"):
            state.delete([("y", "y")] * 3)
        state.delete([("y", "y")] * 2)
        state.delete([(None, None)])
        with pytest.raises(tw.InputError, match=r"row 0 to delete is not in the table"):
            state.delete([(None, None)])
        assert state.rows == {"t": 1}


def test_rows_of_nulls_are_counted(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame({"a": [None, "x"]})}) as state:
        state.delete([(None,)])
        state.delete({"a": "x"})
        with pytest.raises(tw.InputError, match=r"table 't' has 0 rows; to delete: 1. Nothing was applied"):
            state.delete([(None,)])
        assert (state.inds, state.result().trivial) == ([], 0)


def test_insert_only(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": frame(PAPER)}, insert_only=True) as state:
        assert texts(state.insert([("c", "c", "e", "e")] * 3).gained) == ["t.B <= t.A"]
        assert texts(state.inds) == ["t.A <= t.B", "t.B <= t.A"]
        with pytest.raises(tw.InputError, match=r"no updates\. Build it again without insert_only: it"):
            state.delete([PAPER[0]])
    with pytest.raises(tw.InputError, match=r"track_rows is for deletes"):
        tw.maintain_inds(tmp_path / "both", {"t": frame(PAPER)}, insert_only=True, track_rows=True)


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 130])
def test_many_columns(tmp_path: Path, columns: int) -> None:
    draw = random.Random(columns)
    rows = [tuple(draw.choice("abcde" if c % 3 else "ab") for c in range(columns)) for _ in range(6)]
    more = [tuple(draw.choice("abcdefg") for _ in range(columns)) for _ in range(3)]
    names = [f"c{c}" for c in range(columns)]

    def expected(held: list[tuple[str, ...]]) -> list[str]:
        found, _ = inclusions([("text", [row[c] for row in held]) for c in range(columns)])
        return [f"t.c{i.dependent} <= t.c{i.referenced}" for i in found]

    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame(rows, columns=names)}) as state:
        assert texts(state.inds) == expected(rows)
        state.insert(pd.DataFrame(more, columns=names))
        assert texts(state.inds) == expected(rows + more)
        state.delete(rows[:4])
        assert texts(state.inds) == expected(rows[4:] + more)
    with tw.maintain_inds(tmp_path / "s") as state:
        assert texts(state.inds) == expected(rows[4:] + more)


@pytest.mark.slow
@pytest.mark.outside
def test_tpch_as_text(tmp_path: Path) -> None:
    tables = TpchTables("tpch", 0.1)
    try:
        folder = tables.write(tmp_path)
    except MissingData as problem:
        pytest.skip(str(problem))
    files = {table: folder / f"{table}.csv" for table in TPCH}
    with tw.maintain_inds(tmp_path / "s", files, as_text=True) as state:
        inds = texts(state.inds)
        assert len(inds) == 96  # as Spider finds
        assert texts(state.insert([drawn_lines(folder / "lineitem.csv", 1, 1)[0]], table="lineitem").lost) == [
            "lineitem.l_orderkey <= orders.o_orderkey"
        ]
        state.delete(drawn_lines(folder / "lineitem.csv", 1, 1), table="lineitem")
        assert texts(state.inds) == inds


def test_a_table_that_was_empty_grows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    with tw.maintain_inds(tmp_path / "s", [tmp_path / "t.csv"]) as state:
        assert (state.inds, state.result().trivial) == ([], 2)
        note = "t: column 'a' has no values: its type is text from now on; types={'COL': 'TYPE'} fixes another"
        assert note in state.notes
        assert texts(state.insert([("1", "1"), ("1", "2")]).gained) == ["t.a <= t.b"]


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": frame(PAPER)}) as state:
        with pytest.raises(tw.InputError, match=r"other columns than the state: \"missing 'C', 'D'; unknown 'E'\""):
            state.insert(pd.DataFrame({"A": ["x"], "B": ["x"], "E": ["x"]}))
        with pytest.raises(tw.InputError, match=r"row 0 has other columns than the state: \"missing 'D'\""):
            state.insert({"A": "x", "B": "x", "C": "x"})
        with pytest.raises(tw.InputError, match=r"row 1 has another number of values: 3; allowed: 4"):
            state.insert([PAPER[0], ("a", "b", "c")])
        assert state.revision == 0


def test_the_map_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LEAST_ROOM", 256 << 10)
    monkeypatch.setattr(store, "_ROOM_SHARE", 1 << 30)
    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame({"a": ["x"], "b": ["y"]})}) as state:
        before = (tmp_path / "s" / "data.mdb").stat().st_size
        rows = [(f"{i:060}", f"{i + 1:060}") for i in range(20_000)]
        state.insert(pd.DataFrame(rows, columns=["a", "b"]))
        assert (tmp_path / "s" / "data.mdb").stat().st_size > 8 * before
        assert texts(state.insert([("y", "x"), (f"{20_000:060}", f"{0:060}")]).gained) == ["t.a <= t.b", "t.b <= t.a"]


def test_a_row_with_a_null_that_is_not_there_does_not_go(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": pd.DataFrame({"a": ["x", "y"], "b": ["x", None]})}) as state:
        with pytest.raises(tw.InputError, match=r"column 'a': 1 more rows to delete have no value.*Nothing was"):
            state.delete([(None, "x")])
        assert (state.revision, state.rows) == (0, {"t": 2})
        assert state.delete([("x", None)]).rows == {"t": 1}


@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_misfit_in_a_compressed_file_is_named_with_its_line(tmp_path: Path, names: str) -> None:
    rows = [names, "1" * len(names), "x" * len(names), "2" * len(names)]
    (tmp_path / "new.csv.gz").write_bytes(gzip.compress("\n".join(map(",".join, rows)).encode()))
    table = pd.DataFrame({name: [1, 2] for name in names})
    with (
        tw.maintain_inds(tmp_path / "s", {"t": table}) as state,
        pytest.raises(tw.InputError, match=r"type integer at line 3: 'x'.*Nothing was applied; bad_rows"),
    ):
        state.insert(tmp_path / "new.csv.gz")
