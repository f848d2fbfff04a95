"""What changes of a state and a look into it hand on: JSON, text; on stand-ins, and from Python."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.incremental.applied import AppliedRevision, LostRule
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions
from tuplewise.engine.report.dc_state import DcChange, state_options

ZIP, CITY = Predicate("t", "zip", "==", "u", "zip"), Predicate("t", "city", "!=", "u", "city")
KEY, SAME_ZIP = DenialConstraint((ZIP,)), DenialConstraint((ZIP, CITY))
WITHIN = DenialConstraint((Predicate("t", "low", ">", "t", "high"),))
PAY = pd.DataFrame({"name": ["Ada", "Ben", "Cem"], "rank": [1, 2, 3], "pay": [10, 20, 30]})


def change(
    changed: AppliedRevision, error: str = "0", notes: tuple[str, ...] = (), since: int | None = None
) -> DcChange:
    columns = [SimpleNamespace(name=n, type="text", why=f"text, e.g. {n}") for n in ("zip", "city")]
    options = DcStateOptions(discover=DcDiscoverOptions(error=Decimal(error)), key=("zip",))
    state: Any = SimpleNamespace(name="people", path="people.csv", columns=columns, options=options)
    return DcChange(
        "dc insert", state, changed, options=state_options(options), notes=notes, timings_seconds={"total": 0.25},
        since=since,
    )


def changed(gained: list[DenialConstraint], lost: list[LostRule], ids: list[int]) -> AppliedRevision:
    return AppliedRevision(7, 1234, tuple(gained), tuple(lost), np.array(ids, dtype=np.int64))


def test_json_of_a_change() -> None:
    lost = [LostRule(KEY, (3, 5)), LostRule(WITHIN, (8, None)), LostRule(SAME_ZIP, None)]
    lost.append(LostRule(KEY, ({"zip": "01"}, {"zip": float("nan")})))
    one = change(changed([SAME_ZIP], lost, [5, 6]), notes=("a note",))
    document = json.loads(one.to_json())
    assert document == json.loads(json.dumps(one.to_dict()))
    assert (document["command"], document["notes"], document["timings_seconds"]) == (
        "dc insert", ["a note"], {"total": 0.25},
    )  # fmt: skip
    assert document["tables"] == [
        {
            "name": "people", "path": "people.csv", "rows": 1234,
            "columns": [
                {"name": n, "type": "text", "why": f"text, e.g. {n}", "distinct": None, "nulls": None}
                for n in ("zip", "city")
            ],
        }
    ]  # fmt: skip
    assert document["options"]["key"] == ["zip"]
    assert document["result"] == {
        "revision": 7,
        "rows": 1234,
        "gained": ["not(t.zip == u.zip and t.city != u.city)"],
        "lost": [
            {"rule": "not(t.zip == u.zip)", "broken_by": {"t": 3, "u": 5}},
            {"rule": "not(t.low > t.high)", "broken_by": {"t": 8, "u": None}},
            {"rule": "not(t.zip == u.zip and t.city != u.city)", "broken_by": None},
            {"rule": "not(t.zip == u.zip)", "broken_by": {"t": {"zip": "01"}, "u": {"zip": "NaN"}}},
        ],
        "row_ids": [5, 6],
    }
    assert '\n"not(t.zip == u.zip and t.city != u.city)"]' in one.to_json()  # a rule a line


def test_text_of_a_change() -> None:
    lost = [
        LostRule(KEY, (3, 5)), LostRule(WITHIN, (8, None)), LostRule(SAME_ZIP, None),
        LostRule(KEY, ({"zip": "01"}, {"zip": "\n"})),
    ]  # fmt: skip
    text = change(changed([SAME_ZIP], lost, [5, 6]), notes=("a note",)).to_text()
    assert text == (
        "people: 1,234 rows, 2 columns (2 text)\n"
        "revision 7: 1 denial constraint gained, 4 lost\n"
        "note: a note\n"
        "row ids given: 5 to 6\n"
        "+ not(t.zip == u.zip and t.city != u.city)\n"
        "- not(t.zip == u.zip)\n"
        "    broken by rows t: 3, u: 5\n"
        "- not(t.low > t.high)\n"
        "    broken by row 8\n"
        "- not(t.zip == u.zip and t.city != u.city)\n"
        "    holds still: a rule that is listed implies it\n"
        "- not(t.zip == u.zip)\n"
        "    broken by rows t: (zip = 01), u: (zip = \\n)\n"
    )
    single = change(changed([], [], [5]), error="0.1").to_text(verbose=True)
    assert "row id given: 5\n" in single
    assert "zip     text         -      -  text, e.g. zip\n" in single
    with_error = change(changed([], [LostRule(SAME_ZIP, None)], []), error="0.1").to_text()
    assert with_error.endswith("0 denial constraints gained, 1 lost\n- not(t.zip == u.zip and t.city != u.city)\n")


def test_long_lists_are_cut_in_text_only() -> None:
    long = change(changed([SAME_ZIP] * 23, [LostRule(KEY, (1, 2))] * 21, []), since=2)
    text = long.to_text()
    assert "revision 7, since revision 2: 23 denial constraints gained, 21 lost\n" in text
    assert text.count("\n+ ") == text.count("\n- ") == 20
    assert "  ... and 3 more gained: --format json\n" in text
    assert text.endswith("  ... and 1 more lost: --format json\n")
    assert long.to_text(limit=23).count("\n+ ") == 23
    result = json.loads(long.to_json())["result"]
    assert (result["since"], len(result["gained"]), len(result["lost"])) == (2, 23, 21)
    assert repr(long) == "<DcChange: revision 7, 23 gained, 21 lost>"


def rules(found: Any) -> list[str]:
    return [rule.rule for rule in found]


def test_from_python(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with tw.maintain_dcs(folder, PAY, key="name", cross_columns=False, max_predicates=2) as state:
        assert rules(state.constraints) == rules(tw.discover_dcs(PAY, cross_columns=False, max_predicates=2))
        assert (state.revision, state.rows, state.notes) == (0, 3, [])
        come = state.insert({"name": "Dil", "rank": 2, "pay": 25})
        assert (come.revision, come.rows, come.row_ids.tolist()) == (1, 4, [3])
        broken = {one.rule.rule: one.broken_by for one in come.lost}["not(t.rank == u.rank)"]
        assert sorted(name["name"] for name in broken) == ["Ben", "Dil"]
        assert rules(one.rule for one in state.changes(0).lost) == rules(one.rule for one in come.lost)
        assert "not(t.rank == u.rank)" in rules(state.update(None, [("Dil", 4, 40)]).gained)
        assert "not(t.rank == u.rank)" in rules(one.rule for one in state.update([3], [("Dil", 3, 40)]).lost)
        assert (state.delete(3).rows, state.revision) == (3, 4)
        state.insert([("Eva", 9, 90)])
        assert state.delete(keys=pd.DataFrame({"name": ["Eva"]})).rows == 3
        assert rules(state.constraints) == rules(tw.discover_dcs(PAY, space_from=folder))
        assert repr(state).startswith("<MaintainedDcs: revision 6 of table (3 rows), ")
    with tw.maintain_dcs(folder) as again:
        assert (again.revision, again.rows) == (6, 3)


def test_result_is_what_a_discovery_returns(tmp_path: Path) -> None:
    with tw.maintain_dcs(tmp_path / "state", PAY) as state:
        state.insert([("Dil", 2, 25)])
        now, then = state.result(), state.result(0)
    assert rules(then) == rules(tw.discover_dcs(PAY))
    whole = pd.concat([PAY, pd.DataFrame({"name": ["Dil"], "rank": [2], "pay": [25]})], ignore_index=True)
    found = tw.discover_dcs(whole, space_from=tmp_path / "state")
    assert rules(now) == rules(found)
    figures = ["rule", "kind", "violating_pairs", "g1", "succinctness", "coverage"]
    pd.testing.assert_frame_equal(now.to_pandas()[figures], found.to_pandas()[figures])
    assert (now.revision, now.rows, then.revision, then.rows) == (1, 4, 0, 3)
    assert repr(now).startswith(f"<DcStateResult: revision 1: {len(now)} minimal denial constraint")
    assert then.to_pandas()["coverage"].isna().all()
    assert "revision 0: " in then.to_text()
    assert then.to_sql("duckdb").count("FROM") >= len(then)


def test_batches_of_a_stream_are_applied_once(tmp_path: Path) -> None:
    more = pd.DataFrame({"name": ["Eva"], "rank": [9], "pay": [90]})
    with tw.maintain_dcs(tmp_path / "state", PAY) as state:
        apply = state.foreach_batch("pay")
        for number in (0, 1, 1, 2):
            apply(more, number)
        assert (state.revision, state.rows) == (3, 6)
        older = "stream 'pay' was applied up to batch 2, and an older one comes: 0; allowed: 2 or a later one. Go on"
        with pytest.raises(tw.InputError, match=older):
            apply(more, 0)
        with pytest.raises(tw.InputError, match=r"doesn't fit type integer at row 0: 'x'.* bad_rows='report' leaves"):
            apply(more.assign(rank="x"), 3)
        with pytest.raises(tw.InputError, match="bad_rows: 'skip'; allowed: 'fail' or 'report'"):
            state.foreach_batch(bad_rows="skip")
        assert (state.revision, state.rows) == (3, 6)


def test_faults_are_told_as_python_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    tw.maintain_dcs(folder, PAY).close()
    with pytest.raises(tw.InputError, match="a state that was built before keeps its options"):
        tw.maintain_dcs(folder, error="0.1")
    with pytest.raises(tw.InputError, match="the folder of the state is not empty"):
        tw.maintain_dcs(folder, PAY)
    with pytest.raises(TypeError, match=r"maintain_dcs\(\) has no option: 'count'. Did you mean 'counts'"):
        tw.maintain_dcs(tmp_path / "other", PAY, count=True)  # type: ignore[call-arg]
    with pytest.raises(tw.InputError, match="options that a state of space_from fixes: 'error, cross_columns'"):
        tw.discover_dcs(PAY, space_from=folder, error=0.1, cross_columns=True)
    typed = tw.load(PAY.assign(rank=["a", "b", "c"]))
    with pytest.raises(tw.InputError, match="type of column 'rank' of table 'table': 'text'; allowed: 'integer', the"):
        tw.discover_dcs(typed, space_from=folder)
    with tw.maintain_dcs(folder) as state:
        with pytest.raises(tw.InputError, match="Rows to delete are named by ids, or by keys="):
            state.delete()
        with pytest.raises(tw.InputError, match="not as many ids as rows: '2 ids, 1 rows'"):
            state.update([0, 1], [("Ada", 1, 10)])
        with pytest.raises(tw.InputError, match=r"row ids: .*; allowed: whole numbers"):
            state.delete(["a"])
        with pytest.raises(tw.InputError, match="bad_rows: 'skip'; allowed: 'fail' or 'report'"):
            state.insert([], bad_rows="skip")
        with pytest.raises(tw.InputError, match=r"rank.*integer.*row 0"):
            state.insert({"name": "Eva", "rank": "first", "pay": 1})
        assert state.revision == 0


def test_faults_of_options_come_in_one_error() -> None:
    with pytest.raises(tw.InputError) as error:
        DcStateOptions(
            discover=DcDiscoverOptions(algorithm="hydra", run_on="spark", time_limit=3), key=("a", "a"), index="all",  # type: ignore[arg-type]
        )  # fmt: skip
    said = str(error.value)
    assert "index: 'all'; allowed: 'auto' or 'zones' or 'published'" in said
    assert "key: ['a', 'a']; allowed: each column once" in said
    assert "algorithm of a state: 'hydra'; allowed: 'auto', 'evidence' or 'hybrid'" in said
    assert "run_on of a state of denial constraints: 'spark'; allowed: 'auto' or 'driver'" in said
    assert "time_limit of a state: 3.0; allowed: None" in said
    with pytest.raises(tw.InputError, match="sample_pairs of a state: 3; allowed: None"):
        DcStateOptions(discover=DcDiscoverOptions(sample_pairs=3))


def test_rows_of_a_keyed_state_are_told_apart_by_the_key_in_sql(tmp_path: Path) -> None:
    table = pd.DataFrame({"name": ["a", "b", "c"], "rank": [1, 2, 2], "pay": [1, 2, 3]})
    with tw.maintain_dcs(tmp_path / "state", table, key="name") as state:
        written = state.result().to_sql()
    assert "row_number" not in written
    assert "name" in written
