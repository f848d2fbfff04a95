"""What all results have, whatever their kind: the same methods, the same faults, pages of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_page import Parsed

import tuplewise as tw
from tuplewise.engine.cli.main import run

DAYS = pd.DataFrame({"month": [1, 1, 2], "week": [1, 5, 5], "no": ["<b>", "x", "y"]})
TABLES = {"child": pd.DataFrame({"a": ["x", None, "<b>"]}), "parent": pd.DataFrame({"b": ["x", None, "y"]})}


def test_checks_have_pages_and_say_which_rules_are_violated() -> None:
    ods = tw.check_ods(DAYS, ["no -> no", "week -> month"], device="cpu")
    inds = tw.check_inds(TABLES, ["parent.b <= parent.b", "child.a <= parent.b"], device="cpu")
    for check in (ods, inds):
        parsed = Parsed(check.to_html())
        assert parsed.of("td", class_="mark") == ["Violated", "Holds"]
        assert "Settings" in parsed.of("h2")
        assert check._repr_html_().count("<table>") == 1
    assert "&lt;b&gt;" in inds.to_html()
    assert "<b>" not in Parsed(inds.to_html()).of("h1")[0]


def test_a_check_that_looked_at_no_table_has_no_device() -> None:
    against = tw.check_ods(tw.discover_ods(DAYS, device="cpu"), ["week -> month"])
    facts = Parsed(against.to_html()).of("dt")
    assert facts[: facts.index("version")] == ["checking", "total"]


def test_a_change_of_a_state_has_a_page(tmp_path: Path) -> None:
    from tuplewise.engine.dc.incremental.state import DcState
    from tuplewise.engine.report.dc_state import DcChange, state_options

    with tw.maintain_dcs(tmp_path / "state", DAYS) as state:
        applied = state.insert({"month": 1, "week": 1, "no": "x"})
    with DcState(tmp_path / "state", write=False, device="cpu") as opened:
        options = state_options(opened.options)
        change = DcChange("dc insert", opened, applied, options=options, timings_seconds={"total": 0.0})
    listed = Parsed(change.to_html()).of("code")
    assert listed == [*(rule.rule for rule in applied.gained), *(lost.rule.rule for lost in applied.lost)]
    assert len(applied.lost) > 0
    assert change.to_json() == "".join(change.pieces())
    with pytest.raises(tw.InputError, match=r"format: 'csv'; allowed: 'json'$"):
        change.pieces("csv")
    with pytest.raises(tw.InputError, match=r"DcChange has no lines for a table: see .to_json\(\)"):
        change.to_pandas()


@pytest.mark.parametrize("form", ["to_json", "to_csv", "to_pandas", "to_dict", "to_html"])
def test_checks_list_all_of_their_rules(form: str) -> None:
    check = tw.check(DAYS, "week -> month", device="cpu")
    with pytest.raises(TypeError, match="CheckResult does not take 'limit' here"):
        getattr(check, form)(limit=1)
    assert check.to_text(limit=0) != check.to_text(limit=1)


def test_what_is_listed_is_checked_alike() -> None:
    results: list[Any] = [
        tw.discover_dcs(DAYS, device="cpu"), tw.discover_fds(DAYS, device="cpu"), tw.profile(DAYS, device="cpu"),
        tw.discover_inds(TABLES, device="cpu"),
    ]  # fmt: skip
    for result in results:
        for method in (result.to_json, result.to_text, result.to_pandas, result.to_csv, result.to_html, result.to_sql):
            with pytest.raises(tw.InputError, match="limit: 0; allowed: 1 or more"):
                method(limit=0)
        with pytest.raises(tw.InputError, match="format: 'xml'; allowed: 'json', 'csv', 'sql' or 'html'"):
            result.pieces("xml")
    for result in (*results[:2], results[3]):
        with pytest.raises(tw.InputError, match="dialect: 'oracle'"):
            result.pieces("sql", dialect="oracle")
    for result in results[:2]:
        with pytest.raises(tw.InputError, match="rank_by: 'beauty'; allowed: 'genuineness', "):
            result.to_text(rank_by="beauty")
    for result in results[2:]:
        with pytest.raises(TypeError, match="does not take 'rank_by' here"):
            result.to_json(rank_by="size")


def test_notes_on_a_limit_stand_in_dictionaries_too() -> None:
    found = tw.discover_dcs(DAYS, device="cpu")
    assert found.to_dict(limit=1)["notes"][-1] == f"1 of {len(found)} constraints are listed (limit)"
    assert not any("listed" in note for note in found.to_dict()["notes"])


def test_text_of_a_check_that_was_cut_short_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "days.csv"
    DAYS.to_csv(path, index=False)
    saved = str(tmp_path / "ods.json")
    assert run(["od", "discover", str(path), "--device", "cpu", "--max-context", "0", "-o", saved, "--quiet"]) == 0
    command = ["od", "check", "--against", saved, "--od", "month, week -> no", "--format", "text", "--quiet"]
    assert run(command) == 3
    assert "PARTIAL: a limit was reached; what is not known is said with each rule.\n" in capsys.readouterr().out
