"""Several kinds of rule from one comparison of pairs: the same as one by one, and no pair compared for each kind."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine import loop, together
from tuplewise.engine.dc import discover as dc
from tuplewise.engine.errors import InputError
from tuplewise.engine.od import search
from tuplewise.engine.od.discover import discover as discover_dependencies
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.options import DcDiscoverOptions, FdDiscoverOptions, KeyDiscoverOptions, OdDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels import clues


def random_relation(rng: random.Random, rows: int, nulls: bool) -> Relation:
    def column() -> list[Any]:
        values: list[Any] = [f"v{i}" for i in range(rng.choice([2, 3, 9]))] if rng.random() < 0.4 else list(range(9))
        drawn = rng.choices(values[: rng.choice([1, 3, 9])], k=rows)
        return [None if nulls and rng.random() < 0.15 else value for value in drawn]

    return tw.load(pd.DataFrame({f"c{i}": pd.Series(column(), dtype=object) for i in range(rng.randint(1, 5))}))


def same(found: Discovery | None, wanted: Discovery) -> bool:
    assert found is not None
    parts = ("contexts", "kind", "left", "right")
    return all(np.array_equal(getattr(found.dependencies, p), getattr(wanted.dependencies, p)) for p in parts)


def all_kinds(nulls: Any) -> dict[str, Any]:
    return {
        "dcs": DcDiscoverOptions(cross_columns=False, nulls=nulls),
        "ods": OdDiscoverOptions(),
        "fds": FdDiscoverOptions(nulls=nulls),
        "keys": KeyDiscoverOptions(nulls=nulls),
    }


@pytest.mark.parametrize("all_at_once", [-1, 1 << 20])
@pytest.mark.parametrize("seed", range(6))
def test_each_kind_is_what_it_is_alone(seed: int, all_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ALL_AT_ONCE", all_at_once)
    rng = random.Random(seed)
    for _ in range(8):
        with_nulls = rng.random() < 0.5
        relation = random_relation(rng, rng.choice([0, 1, 2, 5, 12, 30]), with_nulls)
        kinds = all_kinds("value" if with_nulls else rng.choice(["value", "unknown"]))
        found = together.discover(relation, **kinds, device="cpu")
        assert found.dcs is not None
        assert list(found.dcs.constraints) == list(dc.discover(relation, kinds["dcs"]).constraints)
        assert same(found.ods, discover_dependencies(relation, kinds["ods"]))
        assert same(found.fds, discover_dependencies(relation, kinds["fds"]))
        assert same(found.keys, discover_dependencies(relation, kinds["keys"]))


def test_nulls_may_be_unknown_where_no_order_is_asked_for() -> None:
    relation = random_relation(random.Random(3), 25, nulls=True)
    kinds = {name: options for name, options in all_kinds("unknown").items() if name != "ods"}
    found = together.discover(relation, **kinds, device="cpu")
    assert found.ods is None
    assert same(found.fds, discover_dependencies(relation, kinds["fds"]))
    assert same(found.keys, discover_dependencies(relation, kinds["keys"]))


def test_pairs_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds together compare as many pairs as the dearest of them alone does, where nulls are values and columns
    are compared with themselves (the conditions for one set of clues). Each column set is exhausted once. What a search
    counts was compared. Prices are fixed: what is compared and what validated doesn't hang on the machine."""
    for price, seconds in (("pair", 2e-8), ("row", 2e-8), ("validation", 1e-3)):
        monkeypatch.setattr(loop.Prices, price, seconds)
    compared = []
    within = clues.ComparableRows.within

    def counting(self: clues.ComparableRows, *given: Any, **named: Any) -> clues.NewClues:
        found = within(self, *given, **named)
        compared.append(found.ordered_pairs // 2)
        return found

    monkeypatch.setattr(clues.ComparableRows, "within", counting)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, v, 4000) for i, v in enumerate((3, 12, 60, 300, 2000))})
    frame["c5"] = frame.c4 // 7
    relation, kinds = tw.load(frame), all_kinds("value")
    found = together.discover(relation, **kinds, device="cpu")
    assert sum(compared) == found.search["compared_pairs"]
    sets = [tuple(map(tuple, one["columns"])) for one in found.search["column_sets"]]
    assert sets
    assert len(set(sets)) == len(sets)
    in_one_go = sum(compared)
    alone = []
    hybrid = DcDiscoverOptions(cross_columns=False, nulls="value", algorithm="hybrid")
    for find, options in (
        (dc.discover, hybrid),
        (discover_dependencies, kinds["ods"]),
        (discover_dependencies, kinds["fds"]),
        (discover_dependencies, kinds["keys"]),
    ):
        compared.clear()
        find(relation, options)  # type: ignore[operator]
        alone.append(sum(compared))
    assert 10 * min(alone) < max(alone)
    assert in_one_go <= 1.05 * max(alone)


def test_what_cannot_be_shared_is_refused() -> None:
    relation = random_relation(random.Random(5), 10, nulls=True)
    with pytest.raises(InputError, match=r"cross_columns, for several kinds .*: True"):
        together.discover(relation, dcs=DcDiscoverOptions(), ods=OdDiscoverOptions())
    with pytest.raises(InputError, match=r"nulls, for several kinds .*'unknown and value'"):
        together.discover(relation, fds=FdDiscoverOptions(nulls="unknown"), ods=OdDiscoverOptions())
    with pytest.raises(InputError, match=r"error, for several kinds .*'0.1'"):
        together.discover(relation, fds=FdDiscoverOptions(error=Decimal("0.1")))


def test_a_limit_leaves_partial_results_of_every_kind() -> None:
    rng = np.random.default_rng(2)
    relation = tw.load(pd.DataFrame({f"c{i}": rng.integers(0, 40, 30_000) for i in range(14)}))
    found = together.discover(relation, **all_kinds("value"), device="cpu", run=Run(OdDiscoverOptions(time_limit=1e-3)))
    for one in (found.dcs, found.ods, found.fds, found.keys):
        assert one is not None
        assert one.partial
        assert "time limit reached" in " ".join(one.notes)


def test_a_limit_counts_the_time_that_the_table_takes_to_be_read() -> None:
    found = tw.discover_together(pd.DataFrame({"a": [1, 2], "b": [1, 1]}), device="cpu", time_limit=1e-6)
    for one in found.values():
        assert one.partial
        assert "the time limit was over before the table was read" in one.notes[-1]


def test_the_public_function_returns_the_results_of_its_fellows() -> None:
    frame = pd.DataFrame({"tail": ["N1", "N2", "N3"], "type": ["A", "B", "B"], "seats": [90, 150, 150]})
    found = tw.discover_together(frame, device="cpu")
    assert list(found) == ["dc", "od", "fd", "key"]
    alone = {
        "dc": tw.discover_dcs(frame, cross_columns=False, nulls="value", device="cpu"),
        "od": tw.discover_ods(frame, device="cpu"),
        "fd": tw.discover_fds(frame, nulls="value", device="cpu"),
        "key": tw.discover_keys(frame, nulls="value", device="cpu"),
    }
    for kind, result in found.items():
        assert type(result) is type(alone[kind])
        assert result.to_pandas().equals(alone[kind].to_pandas())
    assert list(tw.discover_together(frame, "key")) == ["key"]
    with pytest.raises(InputError, match=r"kinds: \['fds'\]; allowed: some of 'dc', 'od', 'fd', 'key'"):
        tw.discover_together(frame, ["fds"])
