"""Counting by the kernel of evidence tells what the loop for a few rows tells."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuplewise.engine.dc.incremental import counting
from tuplewise.engine.dc.incremental.initial import build
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions
from tuplewise.engine.table.table import load


def rows(seed: int, count: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, 4, count) for name in "ab"}).astype("Int64")
    frame["c"] = rng.choice(["x", "y", None], count)  # type: ignore[arg-type]
    return frame


@pytest.mark.parametrize("error", ["0", "0.05"])
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_both_count_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nulls: str, error: str) -> None:
    discover = DcDiscoverOptions(nulls=nulls, error=Decimal(error), cross_columns=True)  # type: ignore[arg-type]
    known = []
    for few in (64, 0):
        monkeypatch.setitem(counting.FEW_ROWS, "cpu", few)
        folder = tmp_path / f"state{few}"
        build(folder, load(rows(0, 20)), DcStateOptions(discover=discover, counts=True), written_by="test")
        with DcState(folder, device="cpu") as state:
            changes = [state.insert(state.read(rows(1, 6))), state.delete([1, 4, 22])]
            changes.append(state.insert(state.read(rows(2, 3))))
            told = [(list(c.gained), [(lost.rule, lost.broken_by is None) for lost in c.lost]) for c in changes]
            clues = state._work.known.clues
            order = np.lexsort(clues.clues.T)
            known.append((list(state.constraints()), told, clues.clues[order].tolist(), clues.counts[order].tolist()))
        with DcState(folder, write=False, device="cpu") as again:
            assert list(again.constraints()) == known[-1][0]
    assert known[0] == known[1]
    assert sum(known[0][3]) == 26 * 25  # every ordered pair is counted once
