"""Any history of a state leaves the rules that discovery and the definition find on the rows that are there."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tuplewise.engine.dc.incremental import checkpointing, deciding, initial, revising, state
from tuplewise.engine.dc.incremental import column_set_index as choosing
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions
from tuplewise.gpu_kernels import column_set_index

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from histories import History, Row

INTEGERS = [None, 1, 2, 3, -(2**62)]
Pools = dict[str, tuple[str, list[Any]]]
TWO: Pools = {"a": ("integer", INTEGERS), "b": ("integer", [1, 2, 3])}
THREE: Pools = {**TWO, "c": ("text", ["", "x", None])}
MIXED: Pools = {
    "a": ("decimal", [Decimal(1), Decimal("1.5"), Decimal("-2.25"), None]),
    "b": ("integer", [1, 2]),
    "c": ("double", [float("nan"), 0.0, -0.0, None]),
    "d": ("boolean", [True, False]),
}


BOUNDED = (deciding, revising, state, checkpointing, choosing, initial, column_set_index)


class Kept(RuleBasedStateMachine):
    """Rows come, go and change; the state is opened again, killed and written anew; changes are taken back."""

    pools: Pools = TWO
    options = DcStateOptions(discover=DcDiscoverOptions(device="cpu"))
    bounds: Mapping[str, float] = {}

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.h: History | None = None
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda descriptor: None)  # nothing here outlives the machine's power
        for name, value in self.bounds.items():
            for module in (m for m in BOUNDED if hasattr(m, name)):
                self.patch.setattr(module, name, value)

    def teardown(self) -> None:
        try:
            if self.h is not None:
                self.h.check_past()
                self.h.close()
        finally:
            self.patch.undo()
            self.folder.cleanup()

    @property
    def history(self) -> History:
        assert self.h is not None
        return self.h

    @initialize(data=st.data())
    def built(self, data: st.DataObject) -> None:
        columns = [(name, type_) for name, (type_, _) in self.pools.items()]
        rows = data.draw(st.lists(self.row(), max_size=5))
        self.h = History(Path(self.folder.name) / "state", columns, rows, self.options, seldom=3)

    @rule(data=st.data(), whole=st.booleans())
    def insert(self, data: st.DataObject, whole: bool) -> None:
        self.history.insert(*data.draw(st.lists(self.row(), min_size=1, max_size=3)), whole=whole)

    @precondition(lambda self: self.history.table.rows)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.history.delete(*self.some(data))

    @precondition(lambda self: self.history.table.rows)
    @rule(data=st.data(), whole=st.booleans())
    def update(self, data: st.DataObject, whole: bool) -> None:
        self.history.update({i: data.draw(self.row()) for i in self.some(data)}, whole=whole)

    @precondition(lambda self: self.history.table.revision)
    @rule()
    def reverse(self) -> None:
        before = self.history.rules[-2]
        if self.history.reverse() is not None:
            assert self.history.rules[-1] == before

    @rule(how=st.sampled_from(["reopen", "kill", "checkpoint"]))
    def again(self, how: str) -> None:
        getattr(self.history, how)()

    def row(self) -> st.SearchStrategy[Row]:
        return st.tuples(*(st.sampled_from(values) for _, values in self.pools.values()))

    def some(self, data: st.DataObject) -> list[int]:
        held = sorted(self.history.table.rows)
        return sorted(data.draw(st.sets(st.sampled_from(held), min_size=1, max_size=3)))


def machine(
    name: str, pools: Pools, index: Any = "zones", counts: bool = False, bounds: Mapping[str, float] | None = None,
    **given: Any,
) -> type:  # fmt: skip
    options = DcStateOptions(discover=DcDiscoverOptions(device="cpu", **given), index=index, counts=counts)
    made = {"pools": pools, "options": options, "bounds": bounds or {}, "__module__": __name__}
    return type(name, (Kept,), made)


QUICK = settings(
    max_examples=5, stateful_step_count=10, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
IN_VAIN = {"SEEK_COMPARISONS": 0, "SMALL_ROWS": 0, "MOST_TAIL": 0, "WITNESSES": 1}  # lost clues are not found again
LITTLE = {"SEEK_COMPARISONS": 6, "SMALL_ROWS": 0, "MOST_TAIL": 3, "LEAST_TAIL": 2, "TAIL_SHARE": 1 << 30,
          "FEW_ROWS": 1, "FEW_PROBING": 0}  # fmt: skip
GROWING = {"LEAST_ROWS": 5, "SCANNED_PAIR_SECONDS": 1.0}  # a state of five rows goes on with indexes
EVERY: dict[str, Any] = {"shared_values": Decimal(0), "comparable_means": Decimal(0)}
MACHINES = {
    "CrossColumns": machine("CrossColumns", THREE, **EVERY),
    "NullsAreValues": machine("NullsAreValues", THREE, nulls="value", **EVERY),
    "SingleTuple": machine("SingleTuple", TWO, single_tuple=True, **EVERY),
    "SameColumns": machine("SameColumns", MIXED, cross_columns=False),
    "OrderedText": machine("OrderedText", THREE, order_text=True, cross_columns=False, nulls="value"),
    "Subsets": machine("Subsets", TWO, minimality="subset", single_tuple=True, **EVERY),
    "AtMostTwo": machine("AtMostTwo", THREE, max_predicates=2, **EVERY),
    "Published": machine("Published", THREE, "published", **EVERY),
    "PublishedSingle": machine("PublishedSingle", TWO, "published", single_tuple=True, nulls="value", **EVERY),
    "PublishedSame": machine("PublishedSame", MIXED, "published", cross_columns=False, nulls="value"),
    "InVain": machine("InVain", THREE, bounds=IN_VAIN, **EVERY),
    "InVainSingle": machine("InVainSingle", TWO, bounds=IN_VAIN, single_tuple=True, nulls="value", **EVERY),
    "Undecided": machine("Undecided", THREE, bounds={**IN_VAIN, "MOST_DECIDED": 1}, cross_columns=False),
    "LittleSought": machine("LittleSought", THREE, bounds=LITTLE, nulls="value", **EVERY),
    "LittleSubsets": machine("LittleSubsets", MIXED, bounds=LITTLE, minimality="subset", cross_columns=False),
    "FoundAnew": machine("FoundAnew", THREE, bounds={"MOST_SOUGHT": 0, "LEAST_TAIL": 2}, **EVERY),
    "Growing": machine("Growing", THREE, "auto", bounds=GROWING, **EVERY),
    "GrowingNulls": machine("GrowingNulls", THREE, "auto", bounds=GROWING, nulls="value", cross_columns=False),
    "Counts": machine("Counts", THREE, counts=True, cross_columns=False),
    "Errors": machine("Errors", THREE, error=Decimal("0.1"), **EVERY),
    "ErrorsSingle": machine("ErrorsSingle", TWO, error=Decimal("0.3"), single_tuple=True, nulls="value", **EVERY),
}
for _name, _machine in MACHINES.items():
    _case = _machine.TestCase  # type: ignore[attr-defined]
    _case.settings = QUICK
    globals()[f"Test{_name}"] = _case
del _case, _machine
