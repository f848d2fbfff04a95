"""Hydra: the bytes of algorithm "evidence", and each of its steps by its definition in the paper."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dc_tables import Table, constraints, encode, random_table, read_table

from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.evidence import EvidenceSet, collect_evidence
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.inversion import invert
from tuplewise.engine.dc.predicate import build_space, space_to_search
from tuplewise.engine.dc.violations.program import satisfied
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.published.hydra import completion, find, sampling
from tuplewise.engine.published.hydra.completion import Completion, Delta
from tuplewise.engine.published.hydra.levels import refine_by_order
from tuplewise.engine.published.hydra.refiners import PredicateWeights, RefinerOrder, build_tree, make_refiner, pairings
from tuplewise.engine.published.hydra.sampling import (
    Clustering,
    Evidences,
    Focus,
    foci_of,
    focused_sample,
    random_sample,
)
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.clusters import ClusterPairs, all_rows
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison

SHARED = Path(os.environ.get("TUPLEWISE_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
TYPE_SETS: list[list[str]] = [
    ["integer"],
    ["integer", "integer"],
    ["text", "text"],
    ["text", "boolean"],
    ["integer", "decimal"],
    ["double", "double"],
    ["date", "timestamp"],
    ["date", "date"],
    ["text", "text", "text"],
    ["boolean", "boolean", "integer"],
    ["integer", "integer", "text"],
    ["integer", "text", "double", "boolean"],
]


def no_lap(stage: str) -> None:
    """Hears no phase."""


def hydra(relation: Relation, options: DcDiscoverOptions) -> FoundConstraints:
    space = space_to_search(relation, options)
    return find(relation, space, device=pick_device("cpu"), run=Run(), lap=no_lap)


def same_as_evidence(table: Table, options: DcDiscoverOptions) -> FoundConstraints:
    relation = encode(table)
    expected = discover(relation, options).arrays
    result = hydra(relation, options)
    found = result.arrays
    for name in ("predicates", "sizes", "violations", "one_row"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.dtype == theirs.dtype, name
        assert mine.tolist() == theirs.tolist(), (name, options, table)
    assert result.reached is None
    return result


# ---------------------------------------------------------------- the same bytes


def blind(patch: pytest.MonkeyPatch) -> None:
    """A sample that sees little: one partner a row and no foci, so that the delta evidence has work to do."""
    patch.setattr(sampling, "PARTNERS", 1)
    patch.setattr(sampling, "foci_of", lambda space: [])


def never_whole(patch: pytest.MonkeyPatch) -> None:
    """No cluster pair is compared whole before a leaf."""
    patch.setattr(completion, "COMPARED_PAIR_SECONDS", float("inf"))


def as_published(patch: pytest.MonkeyPatch) -> None:
    blind(patch)
    never_whole(patch)


def listing(patch: pytest.MonkeyPatch) -> None:
    as_published(patch)
    patch.setattr(completion, "LISTED_PAIRS_PER_ROW", float("inf"))
    patch.setattr(completion, "CHUNK_PAIRS", 7)


def by_levels(patch: pytest.MonkeyPatch) -> None:
    as_published(patch)
    patch.setattr(completion, "LISTED_PAIRS_PER_ROW", 0)
    patch.setattr(completion, "LEAVES_OF_TASK", 1)


@pytest.mark.parametrize("how", [None, blind, never_whole, as_published, listing, by_levels])
def test_hydra_equals_evidence(how: Callable[[pytest.MonkeyPatch], None] | None, monkeypatch: Any) -> None:
    if how is not None:
        how(monkeypatch)
    found_later = 0
    for seed in range(60):
        rng = random.Random(f"{how} {seed}")
        types = rng.choice(TYPE_SETS)
        rows = rng.choice([0, 1, 2, 3, 8, 20, 60] if len(types) < 3 else [2, 3, 8, 20])
        shares = {"null_share": rng.choice([0, 0, 0.02, 0.3]), "repeat_share": rng.choice([0, 0.2])}
        table = random_table(seed, rows=rows, types=types, values=rng.choice([3, 6]), **shares)
        options = DcDiscoverOptions(
            device="cpu",
            algorithm="evidence",
            cross_columns=rng.random() < 0.7,
            single_tuple=rng.random() < 0.4 and len(types) < 3,
            shared_values=rng.choice([Decimal("0.3"), Decimal(0)]),
            nulls=rng.choice(["unknown", "value"]),
            max_predicates=rng.choice([None, None, 1, 2, 3]),
            minimality=rng.choice(["implication", "implication", "subset"]),
            seed=rng.randrange(1000),
        )
        found_later += int(same_as_evidence(table, options).search["delta_evidences"])
    assert found_later > 15 or how in (None, never_whole)


def wide_table(rows: int, seed: int = 7) -> Table:
    """Three and more inequalities and several non-equalities in one constraint."""
    rng = random.Random(seed)
    pools: list[Any] = [range(4), range(6), range(9), range(12), range(3), "pqrs", "pqrs", "pq"]
    table: Table = []
    for name, pool in zip("abcdexyz", pools, strict=True):
        column = [None if rng.random() < 0.02 else rng.choice(pool) for _ in range(rows)]
        table.append((name, "text" if isinstance(pool, str) else "integer", column))
    return table


WIDE = DcDiscoverOptions(device="cpu", algorithm="evidence", cross_columns=False)


@pytest.mark.parametrize("how", [None, as_published, listing, by_levels])
def test_constraints_of_many_predicates(how: Callable[[pytest.MonkeyPatch], None] | None, monkeypatch: Any) -> None:
    if how is not None:
        how(monkeypatch)
    result = same_as_evidence(wide_table(24), WIDE)
    assert len(result.arrays) > 200
    if how is not None:
        assert result.search["delta_evidences"] > 100
        assert result.search["refiners_applied"]["joins"] > 100
        assert "compared_whole" in result.search["refiners_applied"]


def test_any_seed_gives_the_same_constraints() -> None:
    table = wide_table(60, seed=3)
    results = [hydra(encode(table), replace(WIDE, seed=seed)) for seed in range(5)]
    assert all(r.arrays.predicates.tobytes() == results[0].arrays.predicates.tobytes() for r in results)
    assert len({r.search["focused_pairs"] for r in results}) > 1


@pytest.mark.outside
@pytest.mark.parametrize(
    ("name", "rows"), [("airport_original.csv", 10_000), pytest.param("adult.csv", 2_000, marks=pytest.mark.slow)]
)
def test_known_tables_equal_evidence(name: str, rows: int) -> None:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"outside data {path} is not here (TUPLEWISE_SHARED names its folder)")
    table = read_table(path, rows=rows, encoding="latin-1")
    options = DcDiscoverOptions(device="cpu", algorithm="evidence", nulls="value", cross_columns=name != "adult.csv")
    result = same_as_evidence(table, options)
    assert len(result.arrays) > 20


# ---------------------------------------------------------------- sampling


def test_foci_are_columns_with_the_strategies_that_their_order_allows() -> None:
    table: Table = [("a", "integer", [1, 2, 3]), ("b", "text", ["x", "y", "x"]), ("c", "integer", [2, 3, 4])]
    foci = foci_of(build_space(encode(table), DcDiscoverOptions(single_tuple=True)))
    assert [(f.column, f.strategy) for f in foci] == [
        *((0, s) for s in ("within", "other", "back", "forth")),
        *((1, s) for s in ("within", "other")),
        *((2, s) for s in ("within", "other", "back", "forth")),
    ]


@pytest.mark.parametrize("keep_nulls", [False, True])
@pytest.mark.parametrize("codes", [[2, 0, 0, 1, 2, -1, 2, -1], [1, 1, 1], [3, 1, 2], [-1, -1]])
def test_partners_are_drawn_from_the_clusters_of_the_strategy(codes: list[int], keep_nulls: bool) -> None:
    """Each row that has a partner gets one, and over many draws each of its possible partners."""
    column = np.array(codes, dtype=np.int32)
    clustering, rng = Clustering(column, keep_nulls), np.random.default_rng(1)
    rows = [i for i, code in enumerate(codes) if keep_nulls or code != -1]
    good: dict[Any, Callable[[int, int], bool]] = {
        "within": lambda a, b: a == b,
        "other": lambda a, b: a != b,
        "back": lambda a, b: a > b,
        "forth": lambda a, b: a < b,
    }
    for strategy, satisfies in good.items():
        possible = {(t, u) for t in rows for u in rows if t != u and satisfies(codes[t], codes[u])}
        seen = set()
        for _ in range(60):
            drawn: list[tuple[int, int]] = []
            for t, u in clustering.partners(strategy, rng):
                drawn += zip(t.tolist(), u.tolist(), strict=True)
            assert sorted(t for t, _ in drawn) == sorted({t for t, _ in possible})
            seen |= set(drawn)
        assert seen == possible


def test_efficiency_is_new_evidences_over_calculated_ones_and_the_best_focus_goes_first(monkeypatch: Any) -> None:
    """Scripted applications of four foci: all once in order, then by efficiency, until each is below 0.005."""
    script = {
        (0, "within"): [(100, 10), (100, 1), (100, 0)],  # (pairs, new): 10 / 200 = 0.05, then 0.005, then 0
        (0, "other"): [(100, 20), (100, 0)],  # 0.1, then 0
        (1, "within"): [(1000, 9)],  # 0.0045: never again
        (1, "other"): [(0, 0)],  # nobody has a partner
    }
    applied = []

    class Scripted:
        def __init__(self, codes: Any, keep_nulls: bool) -> None:
            self.column = 0 if codes[0] == 0 else 1

        def partners(self, strategy: Any, rng: Any) -> Any:
            applied.append((self.column, strategy))
            pairs, new = script[self.column, strategy].pop(0)
            yield np.full(pairs, new, dtype=np.int32), np.zeros(pairs, dtype=np.int32)

    class Counting:
        def add(self, new: int) -> int:
            return new

    monkeypatch.setattr(sampling, "Clustering", Scripted)
    monkeypatch.setattr(sampling, "compare", lambda rows, t, u: (int(t[0]) if len(t) else 0, None))
    table: Table = [("a", "text", ["x", "y"]), ("b", "text", ["z", "y"])]
    relation = encode(table)
    assert relation.codes[:, 0].tolist() == [0, 2]
    sample = sampling.Sample(None, 0, Counting())  # type: ignore[arg-type]
    space = build_space(relation, DcDiscoverOptions(cross_columns=False))
    focused_sample(sample, None, relation, space, np.random.default_rng(0), Run())  # type: ignore[arg-type]
    assert applied == [
        *((0, "within"), (0, "other"), (1, "within"), (1, "other")),
        *((0, "other"), (0, "within"), (0, "within")),
    ]
    assert sample.foci == [
        Focus(0, "within", 300, 11, 3), Focus(0, "other", 200, 20, 2), Focus(1, "within", 1000, 9, 1),
        Focus(1, "other", 0, 0, 1),
    ]  # fmt: skip
    assert sample.focused_pairs == 1500


def test_random_sample_counts_evidences_of_k_partners_a_row() -> None:
    relation = encode(wide_table(50))
    space = build_space(relation, WIDE)
    rows = lay_out(relation.codes, space.layout, device="cpu")
    sample = random_sample(rows, 50, space, np.random.default_rng(2), Run())
    assert (sample.random_pairs, sampling.PARTNERS) == (1000, 20)
    assert sample.random.counts is not None
    assert sample.random.counts.sum() == 2000
    full = {tuple(c) for c in collect_evidence(relation, space, device="cpu").clues.tolist()}
    assert {tuple(c) for c in sample.random.clues.tolist()} <= full
    assert len(sample.evidences) == len(sample.random.clues)


# ---------------------------------------------------------------- order of refiners and tree

TABLE_1: Table = [
    ("ID", "integer", [103, 197, 338, 631, 664]),
    ("Name", "text", ["J. Miller", "J. Miller", "P. Smith", "S. Blake", "P. Dean"]),
    ("Department", "text", ["Sales", "Accounting", "Sales", "Accounting", "Sales"]),
    ("D-Code", "text", ["SAL", "ACT", "SAL", "ACT", "SAL"]),
    ("Hired", "integer", [2008, 2012, 2012, 2016, 2016]),
    ("Salary", "integer", [3200, 3500, 2900, 3200, 2700]),
]


def predicates(space: Any, *texts: str) -> list[int]:
    """Numbers of same-column predicates written like "Hired ==", ascending."""
    numbers = {}
    for p in range(space.predicates):
        predicate = space.predicate(p)
        if predicate.left == predicate.right:
            numbers[f"{predicate.left} {predicate.operator}"] = p
    return sorted(numbers[t] for t in texts)


class Given(PredicateWeights):
    """Weights by hand: frequency and selectivity of predicates and pairs, else 1 and 1."""

    def __init__(self, frequency: dict[Any, float], selectivity: dict[Any, float]) -> None:
        self.frequencies, self.selectivities = frequency, selectivity

    def frequency(self, *predicates: int) -> float:
        return self.frequencies.get(predicates, 1.0)

    def selectivity(self, *predicates: int) -> float:
        return self.selectivities.get(predicates, 1.0)


def test_the_tree_of_figure_4() -> None:
    """Three constraints; two share `Hired ==`, the more frequent one, as their first refiner."""
    space = build_space(encode(TABLE_1), DcDiscoverOptions(cross_columns=False))
    rules = [
        predicates(space, "Hired ==", "Salary <"),
        predicates(space, "Hired ==", "D-Code =="),
        predicates(space, "Name =="),
    ]
    texts = "Hired ==", "D-Code ==", "Name ==", "Salary <"
    hired, code, name, salary = (predicates(space, text)[0] for text in texts)
    weights = Given({(hired,): 2}, {(code,): 0.5, (hired,): 0.3, (name,): 0.1, (salary,): 0.01})
    tree = build_tree(map(RefinerOrder(space, weights).path, rules))
    shape = [(n.refiner.predicates, n.leaves, [m.refiner.predicates for m in n.children]) for n in tree.children]  # type: ignore[union-attr]
    assert shape == [((hired,), 2, [(salary,), (code,)]), ((name,), 1, [])]
    rare = Given({(hired,): 2}, {(code,): 0.1, (hired,): 0.3})
    assert RefinerOrder(space, rare).path(rules[1])[0].predicates == (code,)


def test_weights_count_pairs_of_the_sample_and_constraints() -> None:
    relation = encode(TABLE_1)
    space = build_space(relation, DcDiscoverOptions(cross_columns=False))
    evidence = collect_evidence(relation, space, device="cpu")
    arrays = invert(evidence)
    weights = PredicateWeights(evidence, arrays)
    up, raised = predicates(space, "Hired <"), predicates(space, "Salary <")
    values = list(zip(TABLE_1[4][2], TABLE_1[5][2], strict=True))
    pairs = [(t, u) for i, t in enumerate(values) for j, u in enumerate(values) if i != j]
    first, both = sum(t[0] < u[0] for t, u in pairs), sum(t[0] < u[0] and t[1] < u[1] for t, u in pairs)
    assert weights.selectivity(*up) == pytest.approx((first + 1) / 21)
    assert weights.selectivity(*up, *raised) == pytest.approx((both + 1) / 21)
    listed = [{p for p in row if p >= 0} for row in arrays.predicates.tolist()]
    assert weights.frequency(*up) == sum(set(up) <= rule for rule in listed)
    assert weights.frequency(*up, *raised) == sum({*up, *raised} <= rule for rule in listed)


def test_pairs_of_inequalities_have_the_greatest_frequency_over_selectivity() -> None:
    assert len(pairings(tuple(range(8)))) == 105
    assert sorted(pairings((1, 2, 3))) == [((1, 2),), ((1, 3),), ((2, 3),)]
    assert pairings((1, 2)) == [((1, 2),)]
    space = build_space(encode(TABLE_1), DcDiscoverOptions())
    selective = Given({}, {(0, 3): 0.01, (1, 2): 0.9, (0, 1): 0.1, (2, 3): 0.1})
    assert RefinerOrder(space, selective).pair_up((0, 1, 2, 3)) == [(0, 1), (2, 3)]  # 2 / 0.2 beats 2 / 0.91
    assert RefinerOrder(space, selective).pair_up((0, 1, 3)) == [(0, 3), (1,)]
    assert RefinerOrder(space, selective).pair_up((4,)) == [(4,)]
    many = RefinerOrder(space, Given({}, {(3, 9): 0.001})).pair_up(tuple(range(11)))
    assert many[0] == (3, 9)
    assert sorted(p for pair in many for p in pair) == list(range(11))
    assert sorted(map(len, many)) == [1, 2, 2, 2, 2, 2]


def test_filters_and_equalities_come_first_and_non_equalities_last() -> None:
    table: Table = [("a", "integer", [1, 2, 3]), ("b", "integer", [1, 2, 4]), ("c", "text", ["x", "y", "x"])]
    space = build_space(encode(table), DcDiscoverOptions(single_tuple=True))
    number = {str(space.predicate(p)): p for p in range(space.predicates)}
    listed = sorted(number[t] for t in ("t.a <= t.b", "t.a < u.a", "t.b >= u.b", "t.a != u.b", "t.c == u.c"))
    made = RefinerOrder(space, Given({}, {})).path(listed)
    assert [r.kind for r in made[:2]].count("filter") == 1
    assert [r.kind for r in made] in (
        ["filter", "equality", "inequality", "non-equality"], ["equality", "filter", "inequality", "non-equality"],
    )  # fmt: skip
    assert made[2].comparisons == (Comparison(0, 0, LESS), Comparison(1, 1, GREATER | EQUAL))
    assert make_refiner(space, (number["t.a != u.b"],)).comparisons == (Comparison(0, 1, LESS | GREATER),)


# ---------------------------------------------------------------- completion


def completed(relation: Relation, seen: list[tuple[int, int]]) -> tuple[Any, Evidences, Delta, set[str], Any]:
    """Completion from the evidence of some pairs: the space, all evidences, the delta, the preliminary rules."""
    space = build_space(relation, DcDiscoverOptions(cross_columns=False))
    rows = lay_out(relation.codes, space.layout, device="cpu")
    evidences = Evidences(space)
    t, u = (np.array(side, dtype=np.int32) for side in zip(*seen, strict=True))
    evidences.add(rows.of_pairs(t, u).clues)
    known = EvidenceSet(space, evidences.clues, np.ones(len(evidences), np.int64), 20, relation.rows, True)
    arrays = invert(known)
    listed = [row[:size] for row, size in zip(arrays.predicates.tolist(), arrays.sizes.tolist(), strict=True)]
    rules = {str(space.constraint(numbers)) for numbers in listed}
    tree = build_tree(map(RefinerOrder(space, PredicateWeights(known, arrays)).path, listed))
    delta = Delta(rows, evidences, None)
    shares: list[float] = []
    Completion(Work(relation.codes, pick_device("cpu")), False, delta, shares.append).run(tree)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    return space, evidences, delta, rules, arrays


def test_theorem_2_on_table_1(monkeypatch: Any) -> None:
    """Example 1: unless t1 and t2 are compared, no two have the same name; checking that rule gives their evidence."""
    never_whole(monkeypatch)
    relation = encode(TABLE_1)
    seen = [(i, j) for i in range(5) for j in range(i) if (i, j) != (1, 0)]
    space, evidences, delta, rules, _ = completed(relation, seen)
    assert "not(t.Name == u.Name)" in rules
    assert delta.new == 2
    full = collect_evidence(relation, space, device="cpu")
    assert evidences.clues.tolist() == full.clues.tolist()
    final = constraints(space, invert(full))
    assert ((1, 1, "across", "=="),) not in final
    assert ((1, 1, "across", "=="), (4, 4, "across", "==")) in final  # psi 1: name and hired are a key
    assert ((2, 2, "across", "=="), (3, 3, "across", "!=")) in final  # psi 2: department determines its code


def test_every_violating_pair_is_compared(monkeypatch: Any) -> None:
    """The delta has the evidence of every pair that violates a preliminary rule, and without `whole` no other's."""
    by_levels(monkeypatch)
    for seed in range(6):
        table = random_table(seed, rows=25, types=["integer", "text", "integer"], values=5, null_share=0.05)
        relation = encode(table)
        space, evidences, _, _, arrays = completed(relation, [(0, 1), (2, 3), (4, 5)])
        rows = lay_out(relation.codes, space.layout, device="cpu")
        first = rows.of_pairs(np.array([0, 2, 4], np.int32), np.array([1, 3, 5], np.int32)).clues
        expected = {tuple(c) for c in first.tolist()}
        for t in range(25):
            for u in range(25):
                if t != u and any(violated(relation, space, rule, t, u) for rule in arrays.predicates.tolist()):
                    pair = np.array([t], np.int32), np.array([u], np.int32)
                    expected |= {tuple(c) for c in rows.of_pairs(*pair, counting=True).clues.tolist()}
        assert {tuple(c) for c in evidences.clues.tolist()} == expected


def violated(relation: Relation, space: Any, rule: list[int], t: int, u: int) -> bool:
    for p in rule:
        if p >= 0:
            (c,) = make_refiner(space, (p,)).comparisons
            x, y = relation.codes[c.left, t], relation.codes[c.right, u]
            if min(x, y) < 0 or not satisfied(np.array([x]), np.array([y]), c.outcomes)[0]:
                return False
    return True


@pytest.mark.parametrize("outcomes", [LESS, LESS | EQUAL, GREATER, GREATER | EQUAL, LESS | GREATER])
def test_levels_hold_exactly_the_pairs_in_order(outcomes: int) -> None:
    rng = np.random.default_rng(outcomes)
    for case in range(40):
        rows = int(rng.integers(1, 30))
        codes = rng.integers(-1, int(rng.integers(1, 12)), (2, rows)).astype(np.int32)
        everyone = np.arange(rows, dtype=np.int32)
        pairs = all_rows(everyone)
        if case % 3 == 1:
            cuts = np.sort(rng.integers(0, rows + 1, 3))
            offsets = np.concatenate([[0], cuts, [rows]]).astype(np.int64)
            pairs = ClusterPairs(everyone, offsets, rng.permutation(rows).astype(np.int32), offsets)
        elif case % 3 == 2:
            pairs = all_rows(everyone[::2].copy(), everyone[rows // 3 :])
        c = Comparison(0, case % 2, outcomes)
        expected = sorted(p for p in inside(pairs) if satisfied(codes[0, [p[0]]], codes[case % 2, [p[1]]], outcomes)[0])
        levels = list(refine_by_order(pairs, codes, c))
        assert sorted(p for level in levels for p in inside(level)) == expected
        assert len(levels) <= 2 * 4 + 1
        for level in levels:
            assert len(set(level.left.tolist())) == len(level.left)
            assert len(set(level.right.tolist())) == len(level.right)


def inside(pairs: ClusterPairs) -> list[tuple[int, int]]:
    """Pairs of different rows inside cluster pairs."""
    found = []
    for k in range(pairs.clusters):
        left = pairs.left[pairs.left_offsets[k] : pairs.left_offsets[k + 1]].tolist()
        right = pairs.right[pairs.right_offsets[k] : pairs.right_offsets[k + 1]].tolist()
        found += [(t, u) for t in left for u in right if t != u]
    return found


# ---------------------------------------------------------------- limits and record


def test_what_was_done_is_recorded() -> None:
    relation = encode(wide_table(40))
    laps: list[str] = []
    stages: list[tuple[str, float]] = []
    space = build_space(relation, replace(WIDE, seed=5))
    run = Run(progress=lambda *at: stages.append(at))
    result = find(relation, space, device=pick_device("cpu"), run=run, lap=laps.append)
    assert laps == ["sample", "focused_sample", "inversion", "refinement", "inversion"]
    assert {name for name, _ in stages} >= {"sample", "focused_sample", "refinement"}
    assert all(0 <= share <= 1 for _, share in stages)
    search = result.search
    assert search["random_pairs"] == 40 * 20
    assert search["sampled_pairs"] == search["random_pairs"] + search["focused_pairs"]
    assert search["focused_pairs"] == sum(f["pairs"] for f in search["foci"])
    assert {f["strategy"] for f in search["foci"]} == {"within", "other", "back", "forth"}
    assert search["preliminary_constraints"] > 100
    assert search["compared_pairs"] >= search["sampled_pairs"]
    assert search["share_of_pairs"] == search["compared_pairs"] / (40 * 39 / 2)


def test_a_limit_proves_nothing() -> None:
    relation = encode(wide_table(40))
    space = build_space(relation, WIDE)
    late = Run(deadline=time.monotonic() - 1)
    over = find(relation, space, device=pick_device("cpu"), run=late, lap=no_lap)
    assert len(over.arrays) == 0
    assert over.reached == "time limit reached before all violating pairs were found: no constraint is proven"

    for phase in ("sample", "focused_sample", "refinement"):

        def refuse(stage: str, share: float, phase: str = phase) -> None:
            if stage == phase:
                raise LimitReached("memory limit of 5 bytes reached")

        result = find(relation, space, device=pick_device("cpu"), run=Run(progress=refuse), lap=no_lap)
        assert result.reached == (
            "memory limit of 5 bytes reached before all violating pairs were found: no constraint is proven"
        )
        assert len(result.arrays) == 0
        assert not result.arrays.complete


def test_an_error_is_refused() -> None:
    table: Table = [("a", "integer", list(range(20)))]
    assert len(hydra(encode(table), DcDiscoverOptions(error=Decimal("0.001"))).arrays) > 0  # of 380 pairs: none
    with pytest.raises(ValueError, match=r"error: 0\.01; allowed: 0\. Hydra finds exact constraints only"):
        hydra(encode(table), DcDiscoverOptions(error=Decimal("0.01")))


@pytest.mark.cuda
@pytest.mark.skipif(
    os.environ.get("NUMBA_ENABLE_CUDASIM") != "1", reason="needs a process of its own with NUMBA_ENABLE_CUDASIM=1"
)
def test_refinements_on_a_device_equal_evidence(monkeypatch: Any) -> None:
    as_published(monkeypatch)
    table = random_table(5, rows=10, types=["integer", "text", "integer"], values=5, null_share=0.05)
    relation, options = encode(table), DcDiscoverOptions(device="cpu", algorithm="evidence", cross_columns=False)
    space = build_space(relation, options)
    found = find(relation, space, device=pick_device("cuda"), run=Run(), lap=no_lap)
    assert found.arrays.predicates.tolist() == discover(relation, options).arrays.predicates.tolist()
    assert found.search["delta_evidences"] > 0
    assert found.search["refiners_applied"]["joins"] > 0
