"""Denial constraints kept current: small cases by hand, each step compared with the definition and with discovery."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tuplewise as tw
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.incremental import counting, deciding
from tuplewise.engine.dc.incremental import state as state_module
from tuplewise.engine.dc.incremental.folder import StateFolder
from tuplewise.engine.dc.incremental.initial import build
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from dc_tables import POOLS
from histories import History, arrow, texts

TAX = [("zip", "integer"), ("city", "text"), ("pay", "integer")]
TAX_ROWS = [(10, "a", 100), (10, "a", 200), (20, "b", 300), (30, "b", 400)]
FD = "not(t.zip == u.zip and t.city != u.city)"
INDEXES = ("zones", "published")


def options_of(**given: Any) -> DcStateOptions:
    kept = {name: given.pop(name) for name in ("key", "counts", "sync", "index") if name in given}
    return DcStateOptions(discover=DcDiscoverOptions(device="cpu", **given), **kept)


def plain(**given: Any) -> DcStateOptions:
    return options_of(cross_columns=False, **given)


@pytest.fixture(params=INDEXES)
def index(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------- insert, delete, update


def test_rules_are_lost_and_gained_with_the_pair_that_breaks_them(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        assert FD in h.rules[0]
        applied = h.insert((20, "c", 500))
        (lost,) = [one for one in applied.lost if str(one.rule) == FD]
        assert lost.broken_by is not None
        assert sorted(lost.broken_by) == [2, 4]
        assert applied.row_ids.tolist() == [4]
        assert h.delete(4).gained
        assert h.rules[2] == h.rules[0]
        h.check_past()


def test_pairs_inside_the_batch_count(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        applied = h.insert((99, "x", 7000), (98, "z", 6000), (99, "y", 8000))
        (lost,) = [one for one in applied.lost if str(one.rule) == FD]
        assert lost.broken_by is not None
        assert sorted(lost.broken_by) == [4, 6]


def test_an_update_is_one_revision_and_keeps_its_row(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        applied = h.update({1: (10, "z", 200)})
        assert FD in texts(one.rule for one in applied.lost)
        assert len(applied.row_ids) == 0
        assert h.state.next_row_id == 4
        h.update({0: (10, "z", 100), 2: (20, "a", 100)})
        assert FD in h.rules[-1]
        h.update({0: (10, "z", 100)})  # what it was
        assert h.rules[-1] == h.rules[-2]
        h.update(dict.fromkeys(range(4), (7, "q", 7)))
        h.check_past()


def test_an_update_and_its_pair_inside_the_batch(tmp_path: Path, index: str) -> None:
    """Both rows of the pair that breaks the rule are new versions."""
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        applied = h.update({0: (77, "m", 1), 3: (77, "n", 1)})
        assert {tuple(sorted(one.broken_by)) for one in applied.lost if one.broken_by} >= {(0, 3)}


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("single", [False, True])
def test_from_no_rows_up_and_down_again(tmp_path: Path, nulls: Any, single: bool, index: str) -> None:
    columns = [("a", "integer"), ("b", "integer")]
    options = options_of(nulls=nulls, single_tuple=single, shared_values=Decimal(0), index=index)
    with History(tmp_path / "s", columns, [], options) as h:
        assert h.rules == [[]]
        h.insert((1, 2))
        h.insert((1, 2))
        h.insert((2, None), (None, None))
        h.reopen()
        h.delete(0)
        h.delete(2, 3)
        h.delete(1)
        assert h.rules[-1] == []
        h.insert((3, 1), (4, 4))
        h.delete(4, 5)
        h.kill()
        assert h.state.rows == 0
        h.check_past()


def test_one_row_teaches_rules_about_one_row(tmp_path: Path, index: str) -> None:
    columns = [("a", "integer"), ("b", "integer")]
    with History(tmp_path / "s", columns, [(1, 3), (2, 5), (3, 3)], options_of(single_tuple=True, index=index)) as h:
        rule = "not(t.a > t.b)"
        assert rule in h.rules[0]
        applied = h.insert((5, 1))
        (lost,) = [one for one in applied.lost if str(one.rule) == rule]
        assert lost.broken_by == (3, None)
        h.delete(0, 1, 2)
        assert len(h.state.relation().codes[0]) == 1
        h.update({3: (1, 3)})
        h.update({3: (3, 3)})
        h.insert((1, 3))
        h.delete(3, 4)


def test_equal_rows(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", TAX, [TAX_ROWS[0]] * 3 + TAX_ROWS[2:], plain(index=index)) as h:
        key = "not(t.pay == u.pay)"
        assert key not in h.rules[-1]
        h.delete(1)  # two are left, whichever is kept for them
        assert key not in h.rules[-1]
        h.delete(0)
        assert key in h.rules[-1]
        applied = h.insert(TAX_ROWS[0], TAX_ROWS[0])
        assert {tuple(sorted(one.broken_by)) for one in applied.lost if one.broken_by} <= {(2, 5), (2, 6), (5, 6)}
        h.delete(2, 5)
        assert key in h.rules[-1]
        h.update({3: TAX_ROWS[0]})
        assert key not in h.rules[-1]


def test_deletes_of_every_row_in_turn(tmp_path: Path, index: str) -> None:
    """Each witness goes once, and another is found or none is left."""
    rng = random.Random(1)
    rows = [(rng.randrange(3), rng.choice("ab"), rng.randrange(4)) for _ in range(12)]
    with History(tmp_path / "s", TAX, rows, plain(index=index)) as h:
        for row in rng.sample(range(12), 12):
            h.delete(row)
        h.check_past()


KNOWN = {"SEEK_COMPARISONS": 0, "SMALL_ROWS": 0, "MOST_TAIL": 0, "WITNESSES": 1}


@pytest.mark.parametrize(
    "given",
    [
        {"cross_columns": False}, {"shared_values": Decimal(0)}, {"minimality": "subset", "cross_columns": False},
        {"single_tuple": True, "shared_values": Decimal(0)}, {"minimality": "subset"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("nulls", [0.0, 0.25])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_one_check_decides_all_that_miss_a_lost_clue(
    tmp_path: Path, seed: int, nulls: float, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where lost clues are not found again: without nulls, one rule tells whether a clue is still there."""
    for name, value in KNOWN.items():
        monkeypatch.setattr(deciding, name, value)
    checked: list[int] = []
    removed: list[int] = []
    opened: list[int] = []
    find, without, decide = deciding.find_witnesses, deciding.without_edges, deciding.Deciding._decide

    def counting_find(relation: Any, rules: Any, **how: Any) -> Any:
        checked.append(len(rules))
        return find(relation, rules, **how)

    def counting_without(sets: Any, edges: Any, gone: Any, wanted: Any) -> Any:
        removed.append(len(gone))
        return without(sets, edges, gone, wanted)

    def counting_decide(self: Any, sets: Any, open_: Any, *rest: Any) -> Any:
        opened.append(int(open_.sum()))
        return decide(self, sets, open_, *rest)

    monkeypatch.setattr(deciding, "find_witnesses", counting_find)
    monkeypatch.setattr(deciding, "without_edges", counting_without)
    monkeypatch.setattr(deciding.Deciding, "_decide", counting_decide)
    rng = random.Random(seed)
    columns = [("a", "integer"), ("b", "integer"), ("c", "text")]

    def drawn(count: int) -> list[tuple[Any, ...]]:
        rows = [(rng.randrange(4), rng.randrange(4), rng.choice("abc")) for _ in range(count)]
        return [tuple(None if rng.random() < nulls else value for value in row) for row in rows]

    with History(tmp_path / "s", columns, drawn(9), options_of(index="zones", **given)) as h:
        for step in range(14):
            held = sorted(h.table.rows)
            if step % 4 == 3 or len(held) < 4:
                h.insert(*drawn(2))
            elif step % 4 == 2:
                h.update({rng.choice(held): drawn(1)[0]})
            else:
                h.delete(rng.choice(held))
        h.check_past()
    assert sum(opened) > 0
    assert 0 < sum(checked) <= (2 * sum(removed) if not nulls else 2 * sum(opened))


def test_undone_by_reversing(tmp_path: Path, index: str) -> None:
    rng = random.Random(2)
    rows = [(rng.randrange(4), rng.choice("abc"), rng.randrange(6)) for _ in range(8)]
    with History(tmp_path / "s", TAX, rows, plain(index=index)) as h:
        for step in range(6):
            before = h.rules[-1]
            if step % 3 == 0:
                h.insert((rng.randrange(4), rng.choice("abc"), rng.randrange(6)))
            elif step % 3 == 1:
                h.delete(*rng.sample(sorted(h.table.rows), 3))
            else:
                h.update({rng.choice(sorted(h.table.rows)): (9, "z", 9)})
            h.reverse()
            assert h.rules[-1] == before
        h.check_past()


# ---------------------------------------------------------------- options


CHOICES = [
    {"nulls": "unknown"}, {"nulls": "value"}, {"single_tuple": True, "shared_values": Decimal(0)},
    {"order_text": True}, {"minimality": "subset"}, {"max_predicates": 1}, {"max_predicates": 2},
    {"minimality": "subset", "max_predicates": 2, "cross_columns": False}, {"comparable_means": Decimal(0)},
    {"counts": True}, {"error": Decimal("0.1")}, {"error": Decimal("0.02"), "nulls": "value"},
    {"error": Decimal("0.2"), "single_tuple": True, "shared_values": Decimal(0)},
    {"error": Decimal("0.1"), "max_predicates": 2}, {"error": Decimal("0.1"), "minimality": "subset"},
    {"counts": True, "single_tuple": True, "nulls": "value"},
]  # fmt: skip


@pytest.mark.parametrize("given", CHOICES, ids=lambda given: ", ".join(f"{k}={v}" for k, v in given.items()))
@pytest.mark.parametrize("seed", range(3))
def test_every_option(tmp_path: Path, given: dict[str, Any], seed: int, index: str) -> None:
    rng = random.Random(seed)
    kinds = [["integer", "integer", "text"], ["integer", "decimal"], ["text", "text", "double"]][seed]
    columns = [(f"c{i}", kind) for i, kind in enumerate(kinds)]
    pools = [[*rng.sample(list(POOLS[kind]), 3), None] for kind in kinds]

    def drawn(count: int) -> list[tuple[Any, ...]]:
        return [tuple(rng.choice(pool) for pool in pools) for _ in range(count)]

    with History(tmp_path / "s", columns, drawn(rng.choice([0, 1, 2, 6])), options_of(index=index, **given)) as h:
        for step in range(8):
            held = sorted(h.table.rows)
            some = rng.sample(held, rng.randint(1, min(3, len(held)))) if held else []
            if step % 4 in (0, 1) or not held:
                h.insert(*drawn(rng.randint(1, 4)), whole=rng.random() < 0.5)
            elif step % 4 == 2:
                h.delete(*some)
            else:
                h.update(dict(zip(some, drawn(len(some)), strict=True)), whole=rng.random() < 0.5)
        h.check_past()


def test_g1_is_exact(tmp_path: Path) -> None:
    """A rule holds up to floor(E n (n - 1)) violating ordered pairs, to the pair."""
    columns = [("a", "integer"), ("b", "text")]
    rows = [(i, "x") for i in range(9)]
    with History(tmp_path / "s", columns, rows, plain(error=Decimal("0.2"))) as h:
        constant = "not(t.b != u.b)"
        assert constant in h.rules[-1]
        h.insert((9, "y"))  # 18 of 90 pairs: exactly a fifth
        assert constant in h.rules[-1]
        violations = dict(zip(h.rules[-1], h.state.arrays().violations.tolist(), strict=True))
        assert violations[constant] == 18
        h.delete(0)  # 16 of 72: more than a fifth
        assert constant not in h.rules[-1]
        h.insert((10, "x"))
        assert constant in h.rules[-1]
        applied = h.insert((11, "y"))  # 36 of 110
        (lost,) = [one for one in applied.lost if str(one.rule) == constant]
        assert lost.broken_by is not None
        assert 11 in lost.broken_by
        h.check_past()


def test_counts_are_kept_without_an_error(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(counts=True)) as h:
        h.insert(*TAX_ROWS, (20, "c", 500))
        h.delete(0, 4)
        h.reopen()
        h.delete(8)
        h.delete(1, 2, 3)
        h.check_past()


# ---------------------------------------------------------------- the space, types and values


def test_types_and_space_are_those_of_the_beginning(tmp_path: Path) -> None:
    """Two columns that share their values later are not compared with each other."""
    columns = [("a", "integer"), ("b", "integer")]
    rows = [(1, 101), (2, 102), (3, 103)]
    with History(tmp_path / "s", columns, rows, options_of()) as h:
        groups = h.state.space.groups
        assert groups == 2
        assert h.state.differs_today() == []
        h.insert(*[(v, v) for v in range(101, 120)])
        assert h.state.space.groups == groups
        told = h.state.differs_today()
        assert told
        assert any("a" in line and "b" in line for line in told)
        relation = h.state.relation()
        assert discover(relation, h.options.discover).space.groups == 3
        h.delete(*range(3, 22))
        assert h.state.differs_today() == []


def test_new_values_in_the_middle_of_an_order(tmp_path: Path, index: str) -> None:
    columns = [("a", "integer"), ("b", "integer"), ("c", "text")]
    rows = [(10, 100, "m"), (20, 200, "n")]
    with History(tmp_path / "s", columns, rows, plain(order_text=True, index=index)) as h:
        h.insert((15, 150, "mm"))
        h.insert((12, 120, "ma"), (18, 180, "mz"), (5, 50, ""), (25, 250, "zz"))
        h.insert((13, 119, "mb"))
        h.update({0: (14, 140, "mc")})
        h.reopen()
        h.insert((11, 300, "é"))
        h.check_past()


@pytest.mark.parametrize("kind", ["integer", "double", "text", "decimal"])
def test_a_gap_is_exhausted(tmp_path: Path, kind: str, index: str) -> None:
    """Each new value lies between the last one and the same neighbour: half of what is left of a gap, every time."""
    values: dict[str, list[Any]] = {
        "integer": [2**62 - 2**k for k in range(60, 16, -1)],
        "double": [1 - 0.5**k for k in range(1, 45)],
        "text": ["a" * k for k in range(1, 45)],
        "decimal": [Decimal(k) / 100 for k in range(1, 45)],
    }
    ends: dict[str, tuple[Any, Any]] = {
        "integer": (0, 2**62), "double": (0.0, 1.0), "text": ("", "b"), "decimal": (Decimal(0), Decimal("0.45")),
    }  # fmt: skip
    columns = [("a", kind), ("b", "integer")]
    low, high = ends[kind]
    options = plain(index=index, order_text=True)
    with History(tmp_path / "s", columns, [(low, 0), (high, 1000)], options, by="discovery") as h:
        for k, value in enumerate(values[kind]):
            h.insert((value, k + 1 if k % 11 else 500 - k))
            if k % 20 == 19:
                h.reopen()
        h.delete(*range(10, 40))
        h.insert((values[kind][20], 3), (values[kind][30], 2))
        h.kill()


def test_many_values_between_two_neighbours_at_once(tmp_path: Path) -> None:
    columns = [("a", "integer"), ("b", "integer")]
    with History(tmp_path / "s", columns, [(0, 0), (10**9, 1)], plain(), by="discovery") as h:
        h.insert(*[(i + 1, -i) for i in range(2000)], whole=True)
        h.insert((10**8, 5))
        h.insert(*[(10**8 + 7 * i, i) for i in range(1, 500)], whole=True)
        h.delete(*range(2, 1500))


TYPES = [("i", "integer"), ("d", "decimal"), ("f", "double"), ("day", "date"), ("at", "timestamp"), ("b", "boolean"),
         ("t", "text")]  # fmt: skip


def test_values_of_every_type(tmp_path: Path, index: str) -> None:
    day, at = date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=UTC)
    rows = [
        (1, Decimal("1.50"), -0.0, day, at, True, "x"),
        (2, Decimal("1.00"), float("nan"), date(1969, 1, 1), at, False, ""),
        (None, None, None, None, None, None, None),
    ]
    options = plain(index=index, max_predicates=2)
    with History(tmp_path / "s", TYPES, rows, options, by="discovery") as h:
        h.insert((1, Decimal("1.50"), 0.0, day, at, True, "x"))  # the first one again: -0.0 is 0.0
        h.insert((2, Decimal("1.00"), float("nan"), date(1969, 1, 1), at, False, ""))
        early, late = at.replace(year=1800), date(9999, 12, 31)
        h.insert((2**63 - 1, Decimal("-3.25"), float("inf"), late, early, None, "naïve 名"))
        h.update({0: (-(2**63), Decimal("1.01"), float("-inf"), day, None, True, "x'x")}, whole=True)
        h.reopen()
        h.delete(1, 2)
        h.insert(rows[1], rows[2], whole=True)
        h.check_past()


def test_rows_are_matched_by_name(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        sources: list[Any] = [
            pd.DataFrame({"pay": [500], "city": ["c"], "zip": [20]}),
            pa.table({"city": ["c"], "zip": [20], "pay": [500]}),
            [{"pay": 500, "zip": 20, "city": "c"}],
            {"pay": 500, "zip": 20, "city": "c"},
            [[20, "c", 500]],
            [(20, "c", 500)],
        ]
        for source in sources:
            applied = h.state.insert(h.state.read(source))
            h.table.insert([(20, "c", 500)])
            h.done(applied)
        path = tmp_path / "new.csv"
        path.write_text("city,pay,zip\nd,600,20\n")
        applied = h.state.insert(h.state.read(path))
        h.table.insert([(20, "d", 600)])
        h.done(applied)
        for source, what in [
            (pd.DataFrame({"pay": [1], "zip": [2]}), "city"),
            (pd.DataFrame({"pay": [1], "zip": [2], "citty": ["x"], "city": ["x"]}), "citty"),
            ([{"pay": 1, "zip": 2, "citty": "x"}], "citty"),
            ([[1, 2]], "2"),
            (pd.DataFrame({"pay": [1], "zip": [2], "city": ["x"], "row_id": [0]}), "row_id"),
        ]:
            with pytest.raises(InputError, match=what):
                h.state.read(source)
        h.check()


def test_a_value_that_does_not_fit_is_named_and_nothing_is_applied(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        before = files(tmp_path / "s")
        bad = pd.DataFrame({"zip": ["1", "x", "3"], "city": ["a", "b", "c"], "pay": [1, 2, 3]})
        with pytest.raises(InputError, match=r"zip.*integer.*row 1.*'x'"):
            h.state.read(bad)
        with pytest.raises(InputError, match=r"pay.*integer.*row 1"):
            h.state.read([[1, "a", 2], [1, "a", "two"]])
        path = tmp_path / "bad.csv"
        path.write_text("zip,city,pay\n1,a,2\n3,b,4.5\n")
        with pytest.raises(InputError, match=r"pay.*integer.*line 3.*4\.5"):
            h.state.read(path)
        h.check()
        assert files(tmp_path / "s") == before
        batch = h.state.read(bad, leave_out=True)
        assert any("left out" in note for note in batch.notes)
        applied = h.state.insert(batch)
        h.table.insert([(1, "a", 1), (3, "c", 3)])
        h.done(applied)
        assert set(batch.notes) <= set(applied.notes)


# ---------------------------------------------------------------- rows that are not there, keys


def test_a_row_that_is_not_there_does_not_go(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        h.delete(1)
        before = files(tmp_path / "s")
        for ids in ([4], [-1], [1], [0, 1], [0, 10**12]):
            with pytest.raises(InputError, match=str(ids[-1])):
                h.state.delete(np.array(ids))
            h.check()
        with pytest.raises(InputError, match="0"):
            h.state.delete(np.array([0, 0]))
        changed = [{"zip": 1, "city": "x", "pay": 1, "row_id": i} for i in (0, 1)]
        with pytest.raises(InputError, match="1"):
            h.state.update(h.state.read(changed, with_row_id=True))
        with pytest.raises(InputError, match="0"):
            h.state.update(h.state.read([changed[0]] * 2, with_row_id=True))
        h.check()
        assert files(tmp_path / "s") == before
        h.delete(0)


KEYED = [("k", "integer"), ("r", "text"), ("v", "integer")]
KEYED_ROWS = [(1, "a", 5), (2, "a", 6), (3, "b", 7)]


def test_rows_are_named_by_their_key(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", KEYED, KEYED_ROWS, plain(key=("k",), index=index)) as h:
        rule = "not(t.v == u.v)"
        applied = h.insert((4, "c", 6))
        (lost,) = [one for one in applied.lost if str(one.rule) == rule]
        assert lost.broken_by is not None
        assert sorted(one["k"] for one in lost.broken_by) == [2, 4]
        h.update({1: (2, "z", 9)}, by_key=True)
        assert rule in h.rules[-1]
        h.update({0: (1, "q", 7), 3: (4, "q", 7)}, by_key=True, whole=True)
        h.delete(2, 0, by_key=True)
        h.insert((1, "again", 1))
        h.reopen()
        h.delete(4, by_key=True)
        h.update({1: (5, "z", 9)})  # by its id: the key may change
        h.delete(1, by_key=True)
        h.check_past()


def test_keys_are_unique_and_never_null(tmp_path: Path) -> None:
    refused: list[tuple[list[tuple[Any, ...]], str]] = [
        ([(1, "a", 1), (2, "a", 1), (1, "b", 2)], r"two rows have the same key 'k': 'row 0 and row 2'"),
        ([(1, "a", 1), (None, "b", 2)], r"a null in the key 'k': 'row 1'"),
    ]
    for rows, what in refused:
        with pytest.raises(InputError, match=what):
            build(tmp_path / "no", tw.load(arrow(KEYED, rows)), plain(key=("k",)), written_by="test")
    with pytest.raises(InputError, match="kk"):
        build(tmp_path / "no", tw.load(arrow(KEYED, [])), plain(key=("kk",)), written_by="test")
    assert not (tmp_path / "no").exists()
    with History(tmp_path / "s", KEYED, KEYED_ROWS, plain(key=("k",))) as h:
        before = files(tmp_path / "s")
        state = h.state
        for rows, what in [
            ([(3, "x", 1)], "'row 0 of those given and the row with id 2'"),
            ([(9, "x", 1), (9, "y", 1)], "'row 0 of those given and row 1 of those given'"),
            ([(None, "x", 1)], "a null in the key 'k': 'row 0 of those given'"),
            ([(4, "x", 1), (2, "x", 1)], "'row 1 of those given and the row with id 1'"),
        ]:
            with pytest.raises(InputError, match=what):
                state.insert(state.read(rows))
            h.check()
        with pytest.raises(InputError, match="k"):
            state.update(state.read([{"k": 2, "r": "x", "v": 1, "row_id": 0}], with_row_id=True))
        with pytest.raises(InputError, match="k"):
            state.update(state.read([{"k": None, "r": "x", "v": 1, "row_id": 0}], with_row_id=True))
        with pytest.raises(InputError, match=r"no row of the state has the key"):
            state.update(state.read([{"k": 7, "r": "x", "v": 1}]))  # no such row
        for key in (7, 10**9):
            with pytest.raises(InputError, match=r"no row of the state has the key"):
                state.row_ids_of([{"k": key}])
        h.check()
        assert files(tmp_path / "s") == before
        h.delete(0)
        h.insert((1, "x", 1))
        h.update({1: (3, "a", 6), 2: (2, "b", 7)})  # keys exchanged
        h.update({3: (77, "x", 1)})
        h.insert((1, "y", 1))


def test_a_key_of_two_columns(tmp_path: Path) -> None:
    columns = [("a", "text"), ("v", "integer"), ("b", "integer")]
    rows = [("x", 1, 1), ("x", 2, 2), ("y", 3, 1)]
    with History(tmp_path / "s", columns, rows, plain(key=("b", "a"))) as h:
        applied = h.insert(("y", 1, 2))
        broken = [one.broken_by for one in applied.lost if str(one.rule) == "not(t.v == u.v)"]
        assert broken[0] is not None
        assert sorted((one["a"], one["b"]) for one in broken[0]) == [("x", 1), ("y", 2)]
        with pytest.raises(InputError):
            h.state.insert(h.state.read([("y", 9, 2)]))
        h.delete(3, 0, by_key=True)
        h.update({2: ("y", 8, 1)}, by_key=True)


# ---------------------------------------------------------------- the past, the folder, readers


def test_revisions_and_what_changed_since(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        h.insert((20, "c", 500))
        h.update({0: (20, "d", 100)})
        h.delete(4)
        h.check_past()
        h.reopen()
        h.check_past()
        (lost,) = [one for one in h.state.changes(0).lost if str(one.rule) == FD]
        assert lost.broken_by is not None
        for revision in (-1, 4, 10**9):
            with pytest.raises(InputError, match=str(revision)):
                h.state.constraints(revision)
            with pytest.raises(InputError, match=str(revision)):
                h.state.changes(revision)
        kinds = [record["kind"] for record in h.state.history()]
        assert kinds[1:] == ["insert", "update", "delete"]
        assert len(set(kinds)) == 4


def test_a_rule_lost_to_a_stronger_one_has_no_pair(tmp_path: Path, index: str) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        applied = h.delete(2, 3)  # one zip and one city are left: shorter rules hold
        assert applied.lost
        assert all(one.broken_by is None for one in applied.lost)
        assert all(one.broken_by is None for one in h.state.changes(0).lost)


def test_a_reader_sees_the_last_revision(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        with DcState(tmp_path / "s", write=False) as reader:
            assert texts(reader.constraints()) == h.rules[0]
        h.insert((20, "c", 500))
        with DcState(tmp_path / "s", write=False) as reader:
            assert (reader.revision, reader.rows) == (1, 5)
            assert texts(reader.constraints()) == h.rules[1]
            assert texts(reader.constraints(0)) == h.rules[0]
            with pytest.raises(InputError):
                reader.insert(reader.read([(1, "x", 1)]))
            with pytest.raises(InputError):
                reader.delete(np.array([0]))
        with pytest.raises(InputError, match="s"):
            DcState(tmp_path / "s")  # there is one writer
        h.insert((20, "e", 500))


def test_a_closed_state_says_so(tmp_path: Path) -> None:
    h = History(tmp_path / "s", TAX, TAX_ROWS, plain())
    batch = h.state.read([(1, "x", 1)])
    h.close()
    h.close()  # once more is nothing
    with pytest.raises(InputError, match="closed"):
        h.state.insert(batch)
    with pytest.raises(InputError, match="closed"):
        h.state.delete(np.array([0]))


def test_a_state_is_not_written_over(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()):
        pass
    before = files(tmp_path / "s")
    with pytest.raises(InputError, match="s"):
        build(tmp_path / "s", tw.load(arrow(TAX, [])), plain(), written_by="test")
    assert files(tmp_path / "s") == before
    with pytest.raises(InputError, match="none"):
        DcState(tmp_path / "none")


def test_opened_after_each_step(tmp_path: Path, index: str) -> None:
    rng = random.Random(3)
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(index=index)) as h:
        for step in range(9):
            again = h.reopen if step % 2 else h.kill
            if step % 3 == 2:
                h.delete(rng.choice(sorted(h.table.rows)))
            elif step % 3:
                h.update({rng.choice(sorted(h.table.rows)): (rng.randrange(4), rng.choice("ab"), rng.randrange(9))})
            else:
                h.insert((rng.randrange(4), rng.choice("ab"), rng.randrange(9)), (rng.randrange(4), "b", 5))
            again()
        h.check_past()


def test_a_batch_of_a_stream_is_applied_once(tmp_path: Path) -> None:
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        assert h.state.applied_batch("one") == -1
        applied = h.state.insert(h.state.read([(20, "c", 500)]), batch_id=("one", 0))
        h.table.insert([(20, "c", 500)])
        h.done(applied)
        assert (h.state.applied_batch("one"), h.state.applied_batch("two")) == (0, -1)
        h.reopen()
        assert h.state.applied_batch("one") == 0
        again = h.state.insert(h.state.read([(20, "c", 500)]), batch_id=("one", 0))
        assert (again.revision, again.rows) == (1, 5)
        h.check()
        applied = h.state.insert(h.state.read([(21, "c", 500)]), batch_id=("two", 7))
        h.table.insert([(21, "c", 500)])
        h.done(applied)
        assert (h.state.applied_batch("one"), h.state.applied_batch("two")) == (0, 7)


# ---------------------------------------------------------------- broken off


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("where", ["hitting sets", "search", "listing", "writing"])
def test_what_is_broken_off_changes_nothing(
    tmp_path: Path, where: str, counts: bool, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, or a disk that is full, at some place of a revision."""
    place = {
        "hitting sets": (deciding, "extend_hitting_sets"),
        "search": (counting if counts else deciding, "without_edges"),
        "listing": (state_module, "listing_of"),
        "writing": (StateFolder, "append"),
    }[where]

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    stopped = 0
    with History(tmp_path / "s", TAX, TAX_ROWS, plain(counts=counts, index=index)) as h:
        steps: list[Callable[[], Any]] = [
            lambda: h.insert((10, "x", 1), (99, "y", 250)),
            lambda: h.delete(4, 0),
            lambda: h.update({3: (30, "z", 410), 1: (10, "z", 200)}),
            lambda: h.delete(1, 3),
        ]
        for step in steps:
            before = files(tmp_path / "s")
            try:
                with monkeypatch.context() as patched:
                    patched.setattr(*place, stop)
                    step()
            except KeyboardInterrupt:
                stopped += 1
                assert files(tmp_path / "s") == before
                h.check()
                step()
        h.reopen()
        h.check_past()
    assert stopped


def test_rows_are_read_before_others_are_applied(tmp_path: Path) -> None:
    """Batches whose values are all known may wait; new values got codes that others may have by then."""
    with History(tmp_path / "s", TAX, TAX_ROWS, plain()) as h:
        known, new, other = h.state.read([TAX_ROWS[0]]), h.state.read([(11, "b", 150)]), h.state.read([(12, "b", 160)])
        applied = h.state.insert(new)
        h.table.insert([(11, "b", 150)])
        h.done(applied)
        applied = h.state.insert(known)
        h.table.insert([TAX_ROWS[0]])
        h.done(applied)
        with pytest.raises(InputError, match=r"before others were applied, or by another state: 1\. Read them again"):
            h.state.insert(other)
        h.check()
        h.insert((12, "b", 160))


# ---------------------------------------------------------------- larger tables, against discovery


def drawn_table(rng: random.Random, columns: int, rows: int) -> tuple[list[tuple[str, str]], Iterator[tuple[Any, ...]]]:
    """Columns with rules between them, and rows without end; few rows break the rules."""
    kinds = [("zip", "integer"), ("city", "text"), ("pay", "integer"), ("tax", "integer"), ("day", "date"),
             ("rate", "double"), ("flag", "boolean"), ("note", "text")][:columns]  # fmt: skip
    days = [date(2026, 1 + m, d) for m, d in product(range(6), range(1, 20))]

    def row() -> tuple[Any, ...]:
        zip_, pay = rng.randrange(rows // 6 + 2), rng.randrange(rows * 2)
        odd = rng.random() < 0.01
        city = f"c{zip_ % 7 if not odd else rng.randrange(9)}"
        tax = pay // 10 + (rng.randrange(40) if odd else 0)
        values = [zip_, city, pay, tax, rng.choice(days), float(zip_ % 5), pay % 2 == 0, rng.choice(["", "n", None])]
        return tuple(None if rng.random() < 0.004 else value for value in values[:columns])

    return kinds, iter(row, object())


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", range(3))
def test_larger_tables_equal_discovery(tmp_path: Path, seed: int, nulls: Any, index: str) -> None:
    rng = random.Random(seed)
    kinds, rows = drawn_table(rng, columns=[5, 6, 7][seed], rows=400)
    options = options_of(nulls=nulls, cross_columns=seed != 2, max_predicates=None if seed == 0 else 4, index=index)
    with History(tmp_path / "s", kinds, [next(rows) for _ in range(400)], options, by="discovery") as h:
        for step in range(10):
            held = sorted(h.table.rows)
            if step % 3 == 0:
                h.insert(*[next(rows) for _ in range(rng.choice([1, 5, 40]))], whole=True)
            elif step % 3 == 1:
                h.delete(*rng.sample(held, rng.choice([1, 5, 60])))
            else:
                chosen = rng.sample(held, rng.choice([1, 12]))
                h.update({i: next(rows) for i in chosen}, whole=True)
            if step == 5:
                h.reopen()
        h.check_past()


def test_sorted_rows_of_many_blocks(tmp_path: Path, index: str) -> None:
    rng = random.Random(7)
    kinds, rows = drawn_table(rng, columns=5, rows=5000)
    options = plain(max_predicates=3, index=index)
    with History(tmp_path / "s", kinds, [next(rows) for _ in range(5000)], options, by="discovery") as h:
        h.insert(*[next(rows) for _ in range(300)], whole=True)
        h.delete(*rng.sample(sorted(h.table.rows), 200))
        h.checkpoint()
        h.insert(next(rows))
        h.update({i: next(rows) for i in rng.sample(sorted(h.table.rows), 20)}, whole=True)
        h.delete(rng.choice(sorted(h.table.rows)))
        h.reopen()
        h.insert(*[next(rows) for _ in range(900)], whole=True)


def test_counts_of_larger_tables_equal_discovery(tmp_path: Path) -> None:
    rng = random.Random(5)
    kinds, rows = drawn_table(rng, columns=5, rows=300)
    options = plain(error=Decimal("0.001"))
    with History(tmp_path / "s", kinds, [next(rows) for _ in range(300)], options, by="discovery") as h:
        for count in (1, 20, 60):
            h.insert(*[next(rows) for _ in range(count)], whole=True)
            h.delete(*rng.sample(sorted(h.table.rows), count))
            h.update({i: next(rows) for i in rng.sample(sorted(h.table.rows), 7)}, whole=True)
        h.check_past()


def test_nothing_but_new_rows(tmp_path: Path, index: str) -> None:
    """A table that grows row by row from nothing."""
    rng = random.Random(6)
    kinds, rows = drawn_table(rng, columns=4, rows=60)
    with History(tmp_path / "s", kinds, [], options_of(index=index), by="discovery") as h:
        for _ in range(60):
            h.insert(next(rows))
        h.check_past()
