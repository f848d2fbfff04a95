"""Discovery in the predicate space of a state, of a file whose columns stand in another order: here and in Spark."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("run_on", ["driver", "spark"])
def test_columns_are_those_of_the_state(run_on: str, spark: object, tmp_path: Path) -> None:
    first = pd.DataFrame({"zip": ["01", "01", "02", "02"], "pay": [10, 20, 20, 40], "rank": [1, 2, 2, 3]})
    more = pd.DataFrame({"zip": ["03", "03"], "pay": [500, 30], "rank": [3, 4]})
    path = tmp_path / "all.csv"
    pd.concat([first, more])[["rank", "zip", "pay"]].to_csv(path, index=False)
    with tw.maintain_dcs(tmp_path / "state", first, shared_values="0.2") as state:
        state.insert(more)
        kept = [rule.rule for rule in state.constraints]
    found = tw.discover_dcs(path, space_from=tmp_path / "state", run_on=run_on)  # type: ignore[arg-type]
    assert [rule.rule for rule in found.constraints] == kept
    assert found.relation.column_names == ["zip", "pay", "rank"]
    assert [c.type for c in found.relation.columns] == ["text", "integer", "integer"]
