"""Columns without any value, where a null is unknown: no rule is listed that holds for want of values only (D36)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli.main import run

NOTE = "column 'e' has no values: left out"
FULL = pd.DataFrame({"a": ["x", "x", "y", None], "b": [1, 1, 2, 2], "c": ["p", "q", "q", "p"]})


def with_idle(*names: str) -> pd.DataFrame:
    frame = FULL.copy()
    for place, name in enumerate(names):
        frame.insert(place, name, [None] * len(frame))
    return frame


def texts(result: Any) -> list[str]:
    return [str(one) for one in getattr(result, "keys" if isinstance(result, tw.KeyResult) else "fds")]


@pytest.mark.parametrize("find", [tw.discover_keys, tw.discover_fds])
@pytest.mark.parametrize("how", [{}, {"algorithm": "levelwise"}, {"error": 0.3}, {"max_context": 1}])
def test_keys_and_fds_are_those_without_the_column(find: Any, how: dict[str, Any]) -> None:
    found = find(with_idle("e"), nulls="unknown", device="cpu", **how)
    assert texts(found) == texts(find(FULL, nulls="unknown", device="cpu", **how))
    assert NOTE in found.notes
    assert not any("no other on 'e'" in note for note in found.notes)
    assert find(with_idle("e", "f"), nulls="unknown", device="cpu", **how).notes[0] == (
        "columns 'e', 'f' have no values: left out"
    )


@pytest.mark.parametrize(
    "how",
    [
        {"algorithm": "evidence"}, {"algorithm": "hybrid"}, {"algorithm": "hydra"}, {"error": 0.2},
        {"sample_pairs": 50}, {"shared_values": 0, "single_tuple": True}, {"minimality": "subset"},
    ],
)  # fmt: skip
def test_denial_constraints_are_those_without_the_column(how: dict[str, Any]) -> None:
    found, wanted = (tw.discover_dcs(frame, device="cpu", **how) for frame in (with_idle("e"), FULL))
    assert list(found.constraints) == list(wanted.constraints)
    assert [note for note in found.notes if note != NOTE] == wanted.notes
    assert NOTE in found.notes


def test_found_together_they_are_the_same() -> None:
    found = tw.discover_together(with_idle("e"), ["dc", "fd", "key"], nulls="unknown", device="cpu")
    wanted = tw.discover_together(FULL, ["dc", "fd", "key"], nulls="unknown", device="cpu")
    assert texts(found["fd"]) == texts(wanted["fd"])
    assert texts(found["key"]) == texts(wanted["key"])
    dcs: Any = found["dc"]
    assert list(dcs.constraints) == list(wanted["dc"].constraints)
    assert dcs.to_dict()["result"]["constraints"] == wanted["dc"].to_dict()["result"]["constraints"]
    for one in found.values():
        assert NOTE in one.notes


def test_where_nulls_are_values_it_is_a_constant() -> None:
    frame = with_idle("e")
    assert "[] -> e" in texts(tw.discover_fds(frame, nulls="value", device="cpu"))
    assert "not(t.e != u.e)" in map(str, tw.discover_dcs(frame, nulls="value", device="cpu").constraints)
    assert "[] -> e" in map(str, tw.discover_ods(frame, device="cpu").constants)


@pytest.mark.parametrize("nothing", [{"e": [None, None]}, {"e": [None, None], "f": [None, None]}, {"e": [None]}])
def test_nothing_but_such_columns(nothing: dict[str, list[None]]) -> None:
    frame = pd.DataFrame(nothing)
    assert texts(tw.discover_fds(frame, nulls="unknown", device="cpu")) == []
    assert len(tw.discover_keys(frame, nulls="unknown", device="cpu").keys) == (len(frame) == 1)  # of no column
    for algorithm in ("evidence", "hybrid", "hydra"):
        assert len(tw.discover_dcs(frame, device="cpu", algorithm=algorithm).constraints) == 0  # type: ignore[arg-type]
    together = tw.discover_together(frame, ["dc", "key"], nulls="unknown", device="cpu")
    assert len(together["dc"].to_pandas()) == 0


def test_the_space_that_is_explained_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,\n1,x,\n2,y,\n")
    assert run(["dc", "discover", str(path), "--explain-space", "--format", "json"]) == 0
    assert "column_3" not in json.dumps(json.loads(capsys.readouterr().out)["result"]["groups"])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_leaves_it_out_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = with_idle("e", "f")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for command in (["key"], ["fd"], ["dc"]):
        found = []
        for where in ("driver", "spark"):
            assert run([*command, "discover", str(tmp_path / "t.csv"), "--run-on", where, "--format", "json"]) == 0
            found.append(json.loads(capsys.readouterr().out))
        lists = [{k: v for k, v in one["result"].items() if k in ("keys", "fds")} for one in found]
        lists += [{"rules": [c["rule"] for c in one["result"].get("constraints", ())]} for one in found]
        assert lists[0] == lists[1]
        assert lists[2] == lists[3]
        for one in found:
            assert "columns 'e', 'f' have no values: left out" in one["notes"]
            assert "`e`" not in json.dumps(one["result"])
            assert "t.e " not in json.dumps(one["result"])
