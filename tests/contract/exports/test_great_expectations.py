"""Exports to Great Expectations: the suite finds the rows that our check lists, and leaves out what it can't say."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from exported_tables import broken, clean, contract, listed

import tuplewise as tw
from tuplewise.engine.contract.exports import export
from tuplewise.engine.contract.file import read_contract

pytestmark = pytest.mark.filterwarnings("ignore")  # of the library's own
SAID = {"id", "filled", "order-line", "dates", "kinds", "sizes", "days", "above"}
UNSAID = {"city", "tax", "tax-in-zip", "plain", "pairs", "chief"}


@pytest.fixture(scope="module")
def gx() -> Iterator[Any]:
    """The library, in memory, without messages and reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GX_ANALYTICS_ENABLED", "false")
        library = pytest.importorskip("great_expectations", reason="great_expectations is not installed")
        logging.getLogger("great_expectations").setLevel(logging.ERROR)
        yield library


@pytest.fixture(scope="module")
def batches(gx: Any) -> Any:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("t")
    return asset.add_batch_definition_whole_dataframe("all")


def failures(gx: Any, batches: Any, text: str, frame: pd.DataFrame) -> dict[str, set[int]]:
    """The failing rows of each expectation, by the id of its rule, or by its type."""
    suite = gx.ExpectationSuite(**json.loads(text))
    dates = {name: frame[name].dt.date for name in ("begin", "end") if name in frame}  # as columns of dates are there
    frame = frame.assign(**dates)
    batch = batches.get_batch(batch_parameters={"dataframe": frame})
    done = batch.validate(suite, result_format="COMPLETE")
    found = {}
    for result in done.results:
        config = result.expectation_config
        assert not result.exception_info.get("raised_exception"), result.exception_info
        if not result.success:
            found[config.meta.get("tuplewise_id", config.type)] = set(result.result.get("unexpected_index_list") or [])
    assert done.success is not bool(found)
    return found


def test_the_clean_table_passes(gx: Any, batches: Any, tmp_path: Path) -> None:
    exported = export(read_contract(contract(tmp_path)), "gx")
    assert set(exported.left_out) == UNSAID
    assert failures(gx, batches, exported.text, clean()) == {}
    document = json.loads(exported.text)
    assert {one["meta"].get("tuplewise_id") for one in document["expectations"]} - {None} == SAID
    assert len(document["notes"]) == len(UNSAID)
    assert all(note.startswith("Left out: ") for note in document["notes"])


@pytest.mark.parametrize("rule_id", sorted(SAID))
def test_each_planted_violation_is_found(gx: Any, batches: Any, rule_id: str, tmp_path: Path) -> None:
    path, frame = contract(tmp_path), broken(rule_id)
    found = failures(gx, batches, tw.export_contract(path, "gx"), frame)
    expected = {one: rows for one, rows in listed(frame, path).items() if one in SAID}
    assert set(found) == set(expected)
    assert rule_id in found
    for one, rows in found.items():
        if one in ("id", "order-line"):  # the first row of a kind is listed, too
            assert rows > expected[one]
        else:
            assert rows == expected[one]


def test_shares_are_said_exactly_and_numbers_are_not(gx: Any, batches: Any, tmp_path: Path) -> None:
    frame = broken("sizes")
    frame.loc[34, "größe (m)"] = -0.01
    for share, passes in ((0.0106, True), (0.0105, False)):  # two of 189 rows with a size are 0.010582
        path = contract(tmp_path, ["sizes"], sizes={"tolerance": {"share": share}})
        assert failures(gx, batches, tw.export_contract(path, "gx"), frame) == ({} if passes else {"sizes": {33, 34}})
    tolerances = {"sizes": {"tolerance": {"max_violations": 2}}, "id": {"tolerance": {"share": 0.1}}}
    path = contract(tmp_path, ["sizes", "id"], **tolerances)
    assert export(read_contract(path), "gx").left_out == ("sizes", "id")


def test_a_warning_is_one(gx: Any, tmp_path: Path) -> None:
    path = contract(tmp_path, ["sizes", "days"], sizes={"severity": "warning"})
    suite = gx.ExpectationSuite(**json.loads(tw.export_contract(path, "gx")))
    severities = {one.meta["tuplewise_id"]: one.severity for one in suite.expectations if one.meta}
    assert severities == {"sizes": "warning", "days": "critical"}


def test_a_missing_column_fails(gx: Any, batches: Any, tmp_path: Path) -> None:
    text = tw.export_contract(contract(tmp_path, []), "gx")
    assert set(failures(gx, batches, text, clean().drop(columns="zip"))) == {"expect_column_to_exist"}


OTHERS = {
    "same": ("row", "a == b", {"a": [1, 2, None], "b": [1, 3, 4]}, {1}),
    "differ": ("row", "a != b", {"a": [1, 2, None], "b": [1, 3, 4]}, {0}),
    "less": ("row", "a < b", {"a": [1, 3, None], "b": [1, 4, 4]}, {0}),
    "at least": ("row", "a >= b", {"a": [1, 3, None], "b": [2, 3, 4]}, {0}),
    "refused": ("dc", "not(t.a == 3)", {"a": [1, 3, None]}, {1}),
    "one value": ("dc", "not(t.a != 1)", {"a": [1, 3, None]}, {1}),
    "below": ("dc", "not(t.a >= 3)", {"a": [1, 3, None]}, {1}),
    "empty": ("dc", "not(t.a is null)", {"a": [1, 3, None]}, {2}),
    "repeated": ("dc", "not(t.a == u.a and t.b == u.b)", {"a": [1, 1, None, None], "b": [2, 2, 3, 3]}, {0, 1}),
    "constant": ("fd", "-> a", {"a": [1, 1, None, 2]}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_mean_the_same(gx: Any, batches: Any, name: str, tmp_path: Path) -> None:
    kind, rule, cells, rows = OTHERS[name]
    path = tmp_path / "rules.yaml"
    columns = {column: {"type": "integer"} for column in cells}
    rules = [{"id": "it", "kind": kind, "rule": rule}]
    path.write_text(json.dumps({"tuplewise_contract": 1, "tables": {"t": {"columns": columns}}, "rules": rules}))
    frame = pd.DataFrame(cells)
    assert failures(gx, batches, tw.export_contract(path, "gx"), frame) == {"it": rows}
    assert [rule["failed"] for rule in tw.check_contract(frame, path).rules] == [True]
    kept = frame.drop(index=sorted(rows)) if rows else frame.iloc[:3]
    assert failures(gx, batches, tw.export_contract(path, "gx"), kept.reset_index(drop=True)) == {}
    assert [rule["failed"] for rule in tw.check_contract(kept, path).rules] == [False]


def test_nulls_that_are_values_are_left_out(tmp_path: Path) -> None:
    path = contract(tmp_path, ["id", "sizes", "dates", "order-line"], nulls="value")
    assert export(read_contract(path), "gx").left_out == ("id", "sizes", "dates")
    path = contract(tmp_path, ["id", "filled", "above"], nulls="value")
    assert export(read_contract(path), "gx").left_out == ("above",)


def test_several_tables_need_a_choice(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("tuplewise_contract: 1\ntables: {a: , b: }\nrules: []\n")
    with pytest.raises(tw.InputError, match=r"table of an expectation suite; allowed: a, b. An .*choose it with table"):
        tw.export_contract(path, "gx")
    assert json.loads(tw.export_contract(path, "gx", table="b"))["name"] == "b"
