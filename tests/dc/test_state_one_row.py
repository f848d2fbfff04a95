"""A constraint about one row that a new row violates: what replaces it is decided by pairs that no probe asks for."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.incremental.initial import build
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions
from tuplewise.engine.table.table import load

OPTIONS = DcDiscoverOptions(single_tuple=True, shared_values=Decimal(0), comparable_means=Decimal(0))


def frame(rows: list[tuple[int, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["a", "b", "c"])


@pytest.mark.parametrize("index", ["zones", "published"])
def test_rules_are_those_of_discovery(tmp_path: Path, index: str) -> None:
    rng = np.random.default_rng(5)
    drawn = [(int(a), int(b), "xyz"[int(c)]) for a, b, c in rng.integers(0, (4, 4, 3), (6000, 3)) if a >= b]
    rows = drawn[:3000]
    options = DcStateOptions(discover=OPTIONS, index=index)  # type: ignore[arg-type]
    build(tmp_path / "state", load(frame(rows)), options, written_by="test")
    with DcState(tmp_path / "state", device="cpu") as state:
        assert any(all(p.left_role == p.right_role for p in c.predicates) for c in state.constraints())
        for new in ([(0, 3, "w")], [(1, 2, "x")], [(2, 3, "v"), *drawn[3000:3600]]):
            state.insert(state.read([list(row) for row in new]))
            rows += new
            found = discover(load(frame(rows)), OPTIONS, space=state.space)
            assert list(state.constraints()) == list(found.constraints)


def test_rows_that_another_state_read_are_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        build(tmp_path / name, load(frame([(1, 2, "x"), (2, 3, "y")])), DcStateOptions(), written_by="test")
    with DcState(tmp_path / "one") as one, DcState(tmp_path / "other") as other:
        batch = one.read([[3, 4, "z"]])
        with pytest.raises(InputError, match="read before others were applied, or by another state"):
            other.insert(batch)
        assert one.insert(batch).revision == 1
