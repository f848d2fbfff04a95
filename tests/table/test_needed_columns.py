"""A column that can't be compared stops a check only where a rule or the user names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tuplewise as tw
from tuplewise.engine.cli.main import run

COLUMNS = {"a": [1, 1], "b": [1, 2], "l": [[1], [2]]}
LEFT_OUT = "which can't be compared value by value: left out"


def tables(folder: Path) -> list[Any]:
    path = folder / "t.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return [str(path), pa.table(COLUMNS), pd.DataFrame({**COLUMNS, "o": [object(), object()]})]


@pytest.mark.parametrize("number", range(3))
def test_checks_leave_it_out_with_a_note(number: int, tmp_path: Path) -> None:
    table = tables(tmp_path)[number]
    found = tw.check(table, "a -> b", device="cpu")
    assert found.violating_pairs == 2
    assert [c["name"] for c in found.to_dict()["tables"][0]["columns"]] == ["a", "b"]
    assert [n for n in found.to_dict()["notes"] if n.startswith("column 'l' is ") and n.endswith(LEFT_OUT)]
    assert tw.check_ods(table, "a -> b", device="cpu").holds is False
    assert tw.check_inds({"t": table}, "t.a <= t.b").holds is True
    for work in (lambda: tw.check(table, "a -> l"), lambda: tw.load(table), lambda: tw.discover_fds(table)):
        with pytest.raises(tw.InputError, match="column 'l' can't be compared"):
            work()


@pytest.mark.spark
def test_in_spark_too(tmp_path: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = tables(tmp_path)[0]
    for where in ("driver", "spark"):
        argv = ["dc", "check", path, "--rule", "a -> b", "--reader", "spark", "--run-on", where, "--device", "cpu"]
        assert run([*argv, "--format", "json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert document["result"]["rules"][0]["violating_pairs"] == 2
        assert [n for n in document["notes"] if n.startswith("column 'l' is array<") and n.endswith(LEFT_OUT)]
