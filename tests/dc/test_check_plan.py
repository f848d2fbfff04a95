"""Planning: estimates near the truth, the published order of equalities, the algorithm of each form, what is shared."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.dc.rule_text import read_rule
from tuplewise.engine.dc.violations import trie
from tuplewise.engine.dc.violations.cardinalities import Cardinalities, cardinalities
from tuplewise.engine.dc.violations.count import count_program
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.dc.violations.planner import CheckPlan, greedy_hll, plan
from tuplewise.engine.dc.violations.program import bind
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.table.relation import Relation

ROWS = 200_000


@pytest.fixture(scope="module")
def table() -> Relation:
    rng = np.random.default_rng(11)
    few, some, many = rng.integers(0, 7, ROWS), rng.integers(0, 3_000, ROWS), rng.integers(0, ROWS, ROWS)
    skewed = rng.zipf(1.5, ROWS) % 10_000
    frame = pd.DataFrame({"few": few, "some": some, "many": many, "skewed": skewed, "follows": some // 3})
    return tw.load(frame, name="sizes")


def planned(relation: Relation, text: str) -> CheckPlan:
    return plan(bind(read_rule(text), relation, "unknown"), cardinalities(relation), relation.column_names)


def test_pairs_of_columns_are_estimated_within_a_factor_of_two(table: Relation) -> None:
    sizes = cardinalities(table)
    for a, b in combinations(range(len(table.columns)), 2):
        pairs = np.unique(table.codes[a].astype(np.int64) << 32 | table.codes[b])
        assert 0.5 <= sizes.of([a, b]) / len(pairs) <= 2, table.column_names[a] + table.column_names[b]


def test_rows_alone_are_estimated_where_values_are_even(table: Relation) -> None:
    sizes = cardinalities(table)
    for columns in ([2], [1], [1, 2]):
        key = np.zeros(ROWS, dtype=np.int64)
        for column in columns:
            key = key << 24 | table.codes[column]
        alone = int(np.count_nonzero(np.unique(key, return_counts=True)[1] == 1))
        assert abs(sizes.alone(columns) - alone) < 0.1 * ROWS


def test_cardinalities_of_codes_alone_are_near_those_of_dictionaries(table: Relation) -> None:
    known, guessed = cardinalities(table), Cardinalities.of_codes(table.codes)
    for column in range(len(table.columns)):
        assert 0.3 <= guessed.of([column]) / known.of([column]) <= 3


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tables_of_hardly_any_rows_are_planned(rows: int) -> None:
    relation = tw.load(pd.DataFrame({"a": range(rows), "b": [1] * rows}))
    assert cardinalities(relation).of([0, 1]) >= 1
    made = planned(relation, "not(t.a == u.a and t.b < u.b)")
    assert [step["step"] for step in made.steps] == ["equality", "inequality"]


def test_greedy_hll_takes_the_pair_that_leaves_least_for_its_cost() -> None:
    """By hand: ranks are (n - |A,B|) / n times the tenth root of |A| + |A,B|; c and d leave hardly anything."""
    sample = np.zeros((4, 0), dtype=np.int32)
    sizes = Cardinalities(1000, [2, 3, 90, 100], sample)
    together = {(0, 1): 6.0, (0, 2): 180.0, (0, 3): 200.0, (1, 2): 270.0, (1, 3): 300.0, (2, 3): 990.0}
    sizes._known.update(together)
    order = greedy_hll([(0, 0), (1, 1), (2, 2), (3, 3)], sizes)
    ranks = {
        pair: (1000 - size) / 1000 * (min(sizes.distinct[pair[0]], sizes.distinct[pair[1]]) + size) ** 0.1
        for pair, size in together.items()
    }
    expected: list[int] = []
    for pair in sorted(ranks, key=lambda p: ranks[p]):
        expected += [c for c in pair if c not in expected]
    assert expected[:2] == [2, 3]
    assert order == [(c, c) for c in expected]


def test_equalities_come_first_then_inequalities_then_non_equalities(table: Relation) -> None:
    made = planned(table, "not(t.skewed != u.skewed and t.many < u.many and t.some == u.some and t.few == u.few)")
    assert [step["step"] for step in made.steps] == ["equality", "equality", "inequality", "non-equality"]
    assert made.equalities == ((0, 0), (1, 1))  # fewest distinct values first
    assert all(step["why"] for step in made.steps)


@pytest.mark.parametrize(
    ("rule", "algorithm"),
    [
        ("not(t.few == u.few)", "hsm"),
        ("not(t.many < u.many)", "hsm"),
        ("not(t.few == u.few and t.some != u.some)", "hsm"),
        ("not(t.many < u.many and t.some > u.some)", "iejoin"),
        ("not(t.many < u.many and t.some > u.some and t.skewed < u.skewed)", "rangetree"),
        ("not(t.many == u.many and t.few < u.few and t.some > u.some and t.skewed < u.skewed)", "bhsm"),
    ],
)
def test_each_form_gets_its_algorithm(table: Relation, rule: str, algorithm: str) -> None:
    assert planned(table, rule).algorithm == algorithm


def test_many_non_equalities_are_compared_by_bitmaps() -> None:
    relation = tw.load(pd.DataFrame({f"c{i}": [1, 2, 3] for i in range(8)}))
    rule = "not(" + " and ".join(f"t.c{i} != u.c{i}" for i in range(7)) + ")"
    assert planned(relation, rule).algorithm == "bhsm"


def test_a_range_tree_gives_way_to_a_kd_tree_where_few_pairs_are_near(table: Relation) -> None:
    rising = np.arange(ROWS)
    relation = tw.load(pd.DataFrame({"a": rising, "b": rising // 2, "c": -rising}))
    rule = read_rule("not(t.a > u.a and t.b < u.b and t.c > u.c)")
    check = check_rules(relation, [rule], DcCheckOptions(device="cpu", count_only=True)).rules[0]
    assert check.violating_pairs == 0
    assert check.plan[-1]["algorithm"] == "kdtree"


def shares_equalities() -> tuple[Relation, list[str]]:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {name: rng.integers(0, size, 3_000) for name, size in zip("abcdef", (3, 9, 40, 200, 900, 5), strict=True)}
    )
    rules = [
        f"not({' and '.join(f't.{c} == u.{c}' for c in columns)})"
        for size in (1, 2, 3)
        for columns in combinations("abcde", size)
    ]
    return tw.load(frame), [*rules, "not(t.a == u.a and t.b != u.b)", "not(t.a == u.a and t.d < u.d and t.f == 3)"]


def test_tries_change_no_answer() -> None:
    relation, texts = shares_equalities()
    rules = [read_rule(text) for text in texts]
    answers = set()
    for together in ("none", "cost", "frequency", "auto"):
        options = DcCheckOptions(device="cpu", together=together, pairs=5)  # type: ignore[arg-type]
        found = check_rules(relation, rules, options).rules
        answers.add(str([(r.violating_pairs, r.violating_rows, r.pairs.tolist()) for r in found]))
    assert len(answers) == 1


@pytest.mark.parametrize("order", ["cost", "frequency", "saving"])
def test_each_trie_refines_every_rule_by_its_own_equalities(order: trie.Order) -> None:
    relation, texts = shares_equalities()
    sizes = cardinalities(relation)
    programs = [bind(read_rule(text), relation, "unknown") for text in texts]
    plans = [plan(program, sizes, relation.column_names) for program in programs]
    found: dict[int, set[tuple[int, int]]] = {}

    def walk(node: trie.TrieNode, path: tuple[tuple[int, int], ...]) -> None:
        path += node.equalities
        assert len(set(path)) == len(path)
        for rule in node.rules:
            assert rule not in found
            found[rule] = set(path)
        for child in node.children:
            walk(child, path)

    roots = trie.build(programs, plans, order, sizes, range(len(texts)))
    for root in roots:
        before = set(found)
        walk(root, ())
        assert len({(programs[n].left_tests, programs[n].right_tests) for n in found.keys() - before}) == 1
    assert found == {n: set(made.equalities) for n, made in enumerate(plans)}


def test_sharing_by_saving_sorts_fewer_rows() -> None:
    relation, texts = shares_equalities()
    sizes = cardinalities(relation)
    programs = [bind(read_rule(text), relation, "unknown") for text in texts]
    plans = [plan(program, sizes, relation.column_names) for program in programs]
    shared = trie.build(programs, plans, "saving", sizes, range(len(texts)))
    alone = [root for n in range(len(texts)) for root in trie.build(programs, plans, "cost", sizes, [n])]
    assert trie.work_of(shared, sizes) < 0.8 * trie.work_of(alone, sizes)


def test_a_program_counts_by_itself_and_adds_up_over_tiles(table: Relation) -> None:
    part = np.ascontiguousarray(table.codes[:, :500])
    program = bind(read_rule("not(t.some > u.some and t.many < u.many and t.few != u.few)"), table, "unknown")
    blocks = np.array_split(np.arange(500, dtype=np.int32), 3)
    tiles = [count_program(part, program, left=a, right=b, device="cpu") for a in blocks for b in blocks]
    assert sum(tiles) == count_program(part, program, device="cpu") > 0


def test_discovered_rules_keep_their_names_when_they_are_checked() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"zeta": rng.integers(0, 4, 12), "alpha": rng.integers(0, 4, 12), "m": rng.integers(0, 3, 12)})
    found = tw.discover_dcs(frame, single_tuple=True, device="cpu").constraints
    relation = tw.load(frame)
    checked = check_rules(relation, list(found), DcCheckOptions(device="cpu")).rules
    assert [c.id for c in found] == [c.rule.id for c in checked]
    assert all(c.holds for c in checked)
    again = [read_rule(c.rule) for c in found]
    assert [c.rule.id for c in check_rules(relation, again, DcCheckOptions(device="cpu")).rules] == [
        c.id for c in found
    ]
