"""The hybrid search finds what all pairs say: random and adversarial tables, every option, any seed."""

from __future__ import annotations

import functools
import random
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tuplewise as tw
from tuplewise.engine import column_sets, grouping, local_table, loop
from tuplewise.engine.dc import hybrid
from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.evidence import collect_evidence
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.local_table import LocalTable
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.device import pick_device

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from dc_tables import constraints, encode, random_table
from oracles import dc as oracle

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
EVERY_WAY = {  # little is sampled, so that all other ways of deciding are needed
    "as it is": {},
    "outlier rows": {
        "LEAST_OUTLIER_GAIN": 0.0,
        "FEWEST_OUTLIER_ROWS": 1,
        "MOST_OUTLIER_SHARE": 0.3,
        "CLUES_OF_AN_OUTLIER_ROW": 1,
        "OUTLIER_ROWS": 2,
    },
    "listed parts": {"EASY_EFFORT": 0.0, "MOST_EFFORT": 1e-9, "FIRST_VALIDATED": 2, "VALIDATED_A_ROUND": 100},
    "validated": {"MOST_EFFORT": 1e-9, "EASY_EFFORT": 1.0, "VALIDATED_A_ROUND": 200},
    "exhausted": {"FIRST_VALIDATED": 1, "SETS_A_ROUND": 2, "MOST_EFFORT": 1e9},
}


def strain(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Small samples, and the bounds that make this way of deciding the usual one."""
    monkeypatch.setattr(LocalTable, "_group_rows", 2)
    monkeypatch.setattr(local_table, "COMMON_PART", 2)
    for name, value in EVERY_WAY[way].items():
        monkeypatch.setattr(hybrid if hasattr(hybrid, name) else loop, name, value)


def random_options(rng: random.Random) -> DcDiscoverOptions:
    cross = rng.random() < 0.6
    return DcDiscoverOptions(
        cross_columns=cross,
        single_tuple=cross and rng.random() < 0.4,
        nulls=rng.choice(["unknown", "value"]),
        minimality=rng.choice(["implication", "implication", "subset"]),
        max_predicates=rng.choice([None, None, 2, 3]),
        order_text=rng.random() < 0.3,
        shared_values=Decimal(rng.choice(["0.3", "0"])),
        comparable_means=Decimal(rng.choice(["0.1", "0"])),
        seed=rng.randrange(5),
        device="cpu",
    )


def relation_of(rng: random.Random) -> Relation:
    types = rng.choices(["integer", "decimal", "double", "date", "boolean", "text"], k=rng.randint(1, 4))
    return encode(
        random_table(
            rng.randrange(10**9), rows=rng.randint(2, 30), types=types, values=rng.randint(1, 5),
            null_share=rng.choice([0, 0, 0.2]), repeat_share=rng.choice([0, 0.3]),
        )
    )  # fmt: skip


def by(algorithm: Any, relation: Relation, options: DcDiscoverOptions) -> DcDiscovery:
    return discover(relation, replace(options, algorithm=algorithm))


def assert_same(found: DcDiscovery, expected: DcDiscovery) -> None:
    assert not found.partial
    for name in ("predicates", "sizes", "violations", "one_row"):
        assert np.array_equal(getattr(found.arrays, name), getattr(expected.arrays, name)), name
    for name in ("succinctness", "coverage", "g1"):
        assert np.array_equal(getattr(found.ranking, name), getattr(expected.ranking, name), equal_nan=True), name


@functools.cache
def what_all_pairs_say(block: int) -> list[tuple[Relation, DcDiscoverOptions, DcDiscovery]]:
    """Tables, options and what is right, once for every way."""
    found = []
    for case in range(25):
        rng = random.Random(f"{block}, {case}")
        relation, options = relation_of(rng), random_options(rng)
        found.append((relation, options, by("evidence", relation, options)))
    return found


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("block", range(8))
def test_the_search_finds_what_all_pairs_say(block: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = what_all_pairs_say(block)
    strain(monkeypatch, way)
    for relation, options, right in expected:
        found = by("hybrid", relation, options)
        assert found.algorithm == "hybrid"
        assert_same(found, right)


@pytest.mark.parametrize("seed", range(60))
def test_it_equals_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    strain(monkeypatch, list(EVERY_WAY)[seed % len(EVERY_WAY)])
    rng = random.Random(seed)
    types = rng.choice([["integer", "integer"], ["integer", "text"], ["date", "double"], ["integer", "text", "text"]])
    table = random_table(seed, rows=rng.randint(2, 7), types=types, null_share=rng.choice([0, 0, 0.3]))
    options = DcDiscoverOptions(
        device="cpu", nulls=rng.choice(["unknown", "value"]), single_tuple=len(types) < 3 and rng.random() < 0.5
    )
    found = by("hybrid", encode(table), options)
    space = oracle.groups_of(
        table, single=options.single_tuple, shared=options.shared_values, means=options.comparable_means
    )
    space = oracle.groups_to_search(table, space, options.nulls)
    assert constraints(found.space, found.arrays) == oracle.minimal(table, space, options.nulls)


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("seed", range(12))
def test_without_nulls_the_clues_seen_are_all_there_are(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 17 of the notes: every distinct clue is an edge that no other edge makes superfluous."""
    strain(monkeypatch, way)
    rng = random.Random(seed)
    table = random_table(seed, rows=rng.randint(2, 25), types=rng.choices(["integer", "text", "date"], k=3))
    relation, options = encode(table), DcDiscoverOptions(cross_columns=False, device="cpu", seed=seed)
    space, device = build_space(relation, options), pick_device("cpu")
    learnt: list[NDArray[np.uint64]] = []
    learn = hybrid.DcCandidates.learn

    def keep(self: hybrid.DcCandidates, clues: NDArray[np.uint64]) -> None:
        learnt.append(clues)
        learn(self, clues)

    monkeypatch.setattr(hybrid.DcCandidates, "learn", keep)
    hybrid.find(relation, space, device=device, run=Run(), lap=lambda stage: None)
    seen = np.unique(np.concatenate(learnt), axis=0)
    assert np.array_equal(seen, collect_evidence(relation, space, device=device).clues)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_equal_rows_leave_the_clue_of_their_own_pair(nulls: Any) -> None:
    """No key holds, and under "unknown" the pair of two rows with a null violates nothing that names that column."""
    relation = encode([("a", "integer", [1, 1, 2, None, None]), ("b", "integer", [5, 5, 6, 7, 7])])
    options = DcDiscoverOptions(nulls=nulls, device="cpu", cross_columns=False)
    found = by("hybrid", relation, options)
    assert found.search is not None
    assert found.search["equal_rows"] == 2
    assert_same(found, by("evidence", relation, options))
    assert not any(c.kind == "key" for c in found.constraints)


def test_a_hundred_thousand_equal_rows_are_one() -> None:
    relation = tw.load(pd.DataFrame({"a": [3] * 100_000 + [4], "b": ["x"] * 100_001}))
    found = by("hybrid", relation, DcDiscoverOptions())
    assert found.search is not None
    assert found.search["equal_rows"] == 99_999
    assert found.search["compared_pairs"] < 100
    assert [str(c) for c in found.constraints] == ["not(t.b != u.b)"]


def test_one_pair_of_a_million_rows_breaks_a_rule() -> None:
    rows = 1_000_000
    position = np.arange(rows)
    frame = pd.DataFrame({"number": position, "stamp": position * 7, "group": position % 5})
    whole = by("hybrid", tw.load(frame), DcDiscoverOptions(cross_columns=False))
    rule = "not(t.number <= u.number and t.stamp >= u.stamp)"
    assert rule in [str(c) for c in whole.constraints]
    frame.loc[654_321, "stamp"] = frame.loc[654_322, "stamp"] + 1
    broken = by("hybrid", tw.load(frame), DcDiscoverOptions(cross_columns=False))
    rules = [str(c) for c in broken.constraints]
    assert rule not in rules
    assert "not(t.number <= u.number and t.stamp >= u.stamp and t.group >= u.group)" in rules


def test_every_column_a_key() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.permutation(20_000) for name in "abcde"})
    relation, options = tw.load(frame), DcDiscoverOptions(cross_columns=False)
    found = by("hybrid", relation, options)
    assert_same(found, by("evidence", relation, options))
    assert [str(c) for c in found.constraints] == [f"not(t.{c} == u.{c})" for c in "abcde"]


def test_no_column_selects() -> None:
    rng = np.random.default_rng(1)
    base = rng.integers(0, 3, (6, 3000))
    base[5] = np.maximum(base[0], base[1])
    relation, options = tw.load(pd.DataFrame(base.T, columns=list("abcdef"))), DcDiscoverOptions(cross_columns=False)
    assert_same(by("hybrid", relation, options), by("evidence", relation, options))


def test_outlier_rows_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors in few rows of a table with rules: the rules of the others are proven first, and the answer is exact."""
    monkeypatch.setattr(loop, "FEWEST_OUTLIER_ROWS", 8)
    monkeypatch.setattr(loop, "MOST_OUTLIER_SHARE", 0.05)
    rng = np.random.default_rng(3)
    rows = 4000
    zone = rng.integers(0, 60, rows)
    frame = pd.DataFrame(
        {"zone": zone, "city": zone % 17, "pay": rng.integers(0, 900, rows), "flag": rng.integers(0, 2, rows)}
    )
    frame["rate"] = frame.pay // 100
    frame["base"] = frame.zone * 3 + frame.flag
    wrong = rng.choice(rows, 40, replace=False)
    frame.loc[wrong[:20], "city"] = 99 + np.arange(20)
    frame.loc[wrong[20:], "rate"] = rng.integers(10, 90, 20)
    relation, options = tw.load(frame), DcDiscoverOptions(cross_columns=False)
    found = by("hybrid", relation, options)
    assert found.search is not None
    assert found.search["outlier_rows"] >= 8
    assert_same(found, by("evidence", relation, options))


@pytest.mark.parametrize(("name", "rows"), [("airport_original.csv", 2000), ("adult.csv", 200)])
def test_real_tables(name: str, rows: int | None) -> None:
    path = next(DATA.rglob(name), None)
    if path is None:
        pytest.skip(f"{name} is not here")
    relation = tw.load(pd.read_csv(path, nrows=rows, skipinitialspace=True))
    options = DcDiscoverOptions()
    found = by("hybrid", relation, options)
    assert_same(found, by("evidence", relation, options))


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2, 0.5])
def test_a_time_limit_leaves_constraints_that_hold(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalTable, "_group_rows", 3)
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({c: rng.integers(0, 30, 1500) for c in "abcdefgh"})
    relation, options = tw.load(frame), DcDiscoverOptions(cross_columns=False, algorithm="hybrid")
    whole = {str(c) for c in by("evidence", relation, options).constraints}
    part = discover(relation, options, run=Run(deadline=time.monotonic() + seconds))
    rules = {str(c) for c in part.constraints}
    assert rules <= whole
    if part.partial:
        assert part.search is not None
        assert any("time limit reached" in note for note in part.notes)
        if rules and part.search["undecided"]:
            assert any(f"{part.search['undecided']:,} candidates undecided" in note for note in part.notes)
    else:
        assert rules == whole


def test_a_limit_across_columns_says_that_closure_may_drop_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise hybrid.LimitReached("time limit reached")

    monkeypatch.setattr(hybrid.DcCandidates, "validate", stop)
    monkeypatch.setattr(loop.Loop, "_choose", lambda *_: [()])
    monkeypatch.setattr(loop, "FIRST_VALIDATED", 1)
    calls = []

    def compare(self: hybrid.LocalDcTable, agreement: loop.Agreement) -> loop.ComparedPairs:
        calls.append(agreement)
        raise hybrid.LimitReached("time limit reached")

    monkeypatch.setattr(hybrid.LocalDcTable, "compare_agreeing", compare)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(1, 9, 50), "b": rng.integers(1, 9, 50)})
    found = by("hybrid", tw.load(frame), DcDiscoverOptions(single_tuple=True))
    assert found.partial
    text = " ".join(found.notes)
    assert "may imply one that is listed" in text or "before any constraint was decided" in text


def test_a_memory_limit_is_partial() -> None:
    frame = pd.DataFrame({"a": range(100), "b": range(100)})
    found = by("hybrid", tw.load(frame), DcDiscoverOptions(memory_limit=1))
    assert found.partial
    assert any("memory limit of 1 bytes reached" in note for note in found.notes)


def test_auto_says_why() -> None:
    few = by("auto", tw.load(pd.DataFrame({"a": [1, 2, 3]})), DcDiscoverOptions())
    assert (few.algorithm, few.algorithm_reason.split(":")[0]) == ("evidence", "auto")
    rng = np.random.default_rng(0)
    many = tw.load(pd.DataFrame({"a": rng.permutation(200_000), "b": rng.integers(0, 9, 200_000)}))
    chosen = by("auto", many, DcDiscoverOptions())
    assert chosen.algorithm == "hybrid"
    assert "all 39,999,800,000 pairs would take about" in chosen.algorithm_reason
    assert chosen.search is not None
    assert chosen.search["share_of_pairs"] < 0.01
    with_error = DcDiscoverOptions(error=Decimal("0.00001"))
    assert by("auto", tw.load(pd.DataFrame({"a": [1, 2, 3]})), with_error).algorithm == "evidence"
    chosen = by("auto", many, with_error)
    assert (chosen.algorithm, chosen.algorithm_reason.split(":")[0]) == ("hybrid", "auto")
    by_chance = by("auto", few.relation, DcDiscoverOptions(error=Decimal("0.1"), error_measure="lift"))
    assert "since the error needs their counts" in by_chance.algorithm_reason


def test_pieces_cut_each_group() -> None:
    rows = np.arange(10, dtype=np.int32)
    offsets = np.array([0, 7, 10], dtype=np.int64)
    cut = grouping.pieces(ClusterPairs(rows, offsets, rows, offsets), 3)
    assert cut.reflexive
    assert cut.left_offsets.tolist() == [0, 2, 4, 7, 10]
    two = grouping.pieces(ClusterPairs(rows, offsets, rows[::-1].copy(), np.array([0, 2, 10])), 3)
    assert two.left.tolist() == [0, 1, 7, 8, 9]
    assert two.right.tolist() == [9, 8, 7, 6, 5]
    assert two.left_offsets.tolist() == two.right_offsets.tolist() == [0, 2, 5]


def test_subsets_are_listed_with_their_owners() -> None:
    codes, owners = column_sets.list_subsets(np.array([[True, False, True], [False, False, False]]), 4)
    listed = [(column_sets.unpacked(int(c)), int(o)) for c, o in zip(codes, owners, strict=True)]
    assert sorted(listed) == [((), 0), ((), 1), ((0,), 0), ((0, 2), 0), ((2,), 0)]


def test_estimates_of_agreeing_pairs_are_exact_where_all_rows_are_judged() -> None:
    rng = random.Random(2)
    for _ in range(40):
        relation = relation_of(rng)
        nulls: Any = rng.choice(["unknown", "value"])
        space = build_space(relation, DcDiscoverOptions(nulls=nulls, shared_values=Decimal(0)))
        table = hybrid.LocalDcTable(relation, space, pick_device("cpu"), Run())
        for left, right in {(int(a), int(b)) for a, b in zip(space.left, space.right, strict=True)}:
            agreement = ((left, right),)
            codes = table._relation.codes
            pairs = {
                frozenset((t, u))
                for t in range(table.rows)
                for u in range(table.rows)
                if t != u and codes[left, t] == codes[right, u] and (nulls == "value" or codes[left, t] >= 0)
            }
            if left == right:
                assert table.estimate_pairs(agreement) == pytest.approx(len(pairs))
            compared = table.compare_agreeing(agreement)
            assert compared.pairs >= len(pairs)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_rules_over_few_combinations_are_validated_as_on_all_rows(nulls: Any) -> None:
    """Two rows of each combination stand for all, also where only rows that are equal violate."""
    rng = np.random.default_rng(6)
    values = {f"c{i}": rng.integers(0, 3, 300).astype(float) for i in range(3)}
    values["c2"][rng.random(300) < 0.1] = np.nan
    values["c0"][values["c1"] == 2] = 2
    values["sum"] = 3 * values["c0"] + values["c1"]
    relation = tw.load(pd.DataFrame({**values, "id": [f"r{i}" for i in range(300)]}))  # so no two rows are equal
    space = build_space(relation, DcDiscoverOptions(nulls=nulls, shared_values=Decimal(0), comparable_means=Decimal(0)))
    table = hybrid.LocalDcTable(relation, space, pick_device("cpu"), Run())
    group = space.predicate_group
    usable = np.flatnonzero((space.left[group] < 4) & (space.right[group] < 4))
    drawn = [rng.choice(usable, int(rng.integers(1, 5)), replace=False) for _ in range(500)]
    rules = [space.constraint(sorted(some.tolist())) for some in drawn if len(set(group[some])) == len(some)]
    own = [Predicate("t", name, operator, "u", name) for name, operator in (("c0", "=="), ("c1", "=="), ("sum", "<="))]
    rules.append(DenialConstraint(tuple(own)))  # c0, c1 -> sum: only equal rows violate it
    clues, _ = table.violating_clues(rules, 3)
    wanted = [len(found) > 0 for found in find_witnesses(relation, rules, nulls=nulls, device="cpu")]
    assert [len(found) > 0 for found in clues] == wanted
    assert 0.1 < np.mean(wanted) < 0.99
