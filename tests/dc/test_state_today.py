"""What a state says of types that today's rows would have."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw


@pytest.mark.parametrize("cross_columns", [True, False])
def test_a_column_that_would_no_longer_be_text(tmp_path: Path, cross_columns: bool) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\nodd,y\n3,z\n", encoding="utf-8")
    with tw.maintain_dcs(tmp_path / "state", tmp_path / "t.csv", cross_columns=cross_columns) as state:
        assert state.result().notes == []
        state.delete([1])
        told = "of today's rows 'a' would be of type integer, not text"
        assert state.result().notes == [told]
        state.delete([0, 2])
        assert told not in state.result().notes


def test_text_that_a_frame_stores_stays_text(tmp_path: Path) -> None:
    with tw.maintain_dcs(tmp_path / "state", pd.DataFrame({"a": ["1", "2"]})) as state:
        assert state.result().notes == []
