"""Discovery against its definition, the laws it obeys, and what it says about tables with little to learn."""

from __future__ import annotations

import itertools
import random
import re
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dc_tables import Table, constraints, encode, groups, random_table
from oracles import dc as oracle

import tuplewise as tw
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.evidence import collect_evidence
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Run

TYPE_SETS: list[list[str]] = [
    ["integer"],
    ["integer", "integer"],
    ["text", "text"],
    ["text", "boolean"],
    ["integer", "text"],
    ["integer", "decimal"],
    ["text", "text", "text"],
    ["double", "double"],
    ["date", "timestamp"],
    ["date", "date"],
    ["boolean", "boolean", "integer"],
    ["text", "text", "integer"],
    ["integer", "integer", "text"],
    ["integer", "text", "double", "boolean"],
]
ERRORS = [Decimal(0), Decimal(0), Decimal("0.05"), Decimal("0.1"), Decimal("0.34")]


def asked(rng: random.Random, columns: int) -> DcDiscoverOptions:
    return DcDiscoverOptions(
        device="cpu",
        cross_columns=rng.random() < 0.8,
        single_tuple=rng.random() < 0.4 and columns < 3,
        shared_values=rng.choice([Decimal("0.3"), Decimal(0)]),
        nulls=rng.choice(["unknown", "value"]),
        error=rng.choice(ERRORS),
        max_predicates=rng.choice([None, None, 1, 2]),
        minimality=rng.choice(["implication", "implication", "subset"]),
    )


def expected(table: Table, options: DcDiscoverOptions) -> dict[Any, int]:
    space = oracle.groups_of(
        table,
        cross=options.cross_columns,
        single=options.single_tuple,
        shared=options.shared_values,
        means=options.comparable_means,
    )
    space = oracle.groups_to_search(table, space, options.nulls)
    minimal = oracle.minimal if options.minimality == "implication" else oracle.minimal_by_subset
    return minimal(table, space, options.nulls, options.error, options.max_predicates, options.error_measure)


def rich_table(rows: int) -> Table:
    """Columns of six values at least, few equal rows: dozens of constraints, and evidence in the hundreds."""
    types = ["integer", "text", "double", "integer"]
    return random_table(1, rows=rows, types=types, values=6, fewest=6, repeat_share=0.01)


def found(result: DcDiscovery) -> dict[Any, int]:
    return constraints(result.space, result.arrays)


@pytest.mark.parametrize("block", range(10))
def test_discovery_equals_definition(block: int) -> None:
    """Same constraints, in the same order, with the same violations and figures."""
    for seed in range(120 * block, 120 * block + 120):
        rng = random.Random(seed)
        types = rng.choice(TYPE_SETS)
        table = random_table(seed, rows=rng.randint(0, 7), types=types, null_share=rng.choice([0, 0, 0.2, 0.6]))
        options = asked(rng, len(types))
        result = discover(encode(table), options)
        assert list(found(result).items()) == list(expected(table, options).items()), (seed, options, table)
        for i, constraint in enumerate(itertools.islice(found(result), 10)):
            share = oracle.coverage(table, constraint, options.nulls)
            assert share is None or result.ranking.coverage[i] == pytest.approx(float(share))
            assert result.ranking.succinctness[i] == pytest.approx(float(oracle.succinctness(constraint)))


@pytest.mark.parametrize("block", range(5))
def test_with_an_error_relative_to_chance_equals_definition(block: int) -> None:
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        rng = random.Random(seed)
        types = rng.choice(TYPE_SETS)
        table = random_table(seed, rows=rng.randint(0, 8), types=types, null_share=rng.choice([0, 0, 0.2]))
        error = rng.choice([Decimal("0.1"), Decimal("0.3"), Decimal("0.5"), Decimal("0.85")])
        options = replace(asked(rng, len(types)), error=error, error_measure="lift")
        result = discover(encode(table), options)
        assert list(found(result).items()) == list(expected(table, options).items()), (seed, options, table)


@pytest.mark.parametrize("seed", [0, 3])
def test_three_comparable_columns_equal_definition(seed: int) -> None:
    """Six groups over six operands of one type: where implication across columns has most to do."""
    types = [["integer"] * 3, ["decimal", "integer", "integer"]][seed % 2]
    table = random_table(900 + seed, rows=3 + seed, types=types, null_share=0.1 * (seed % 2))
    options = DcDiscoverOptions(device="cpu", shared_values=Decimal(0), comparable_means=Decimal(0))
    assert found(discover(encode(table), options)) == expected(table, options)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_evidence_equals_definition(nulls: Any) -> None:
    for seed in range(80):
        rng = random.Random(seed)
        types = rng.choice(TYPE_SETS)
        table = random_table(seed, rows=rng.randint(2, 7), types=types, null_share=rng.choice([0, 0.3]))
        space = build_space(encode(table), DcDiscoverOptions(single_tuple=True, nulls=nulls))
        evidence = collect_evidence(encode(table), space, device="cpu")
        code = {0: -1, 1: 0, 2: 1, 3: None}
        seen = {}
        for clue, count in zip(evidence.clues.tolist(), evidence.counts.tolist(), strict=True):
            outcomes = tuple(code[clue[g // 32] >> 2 * (g % 32) & 3] for g in range(space.groups))
            seen[outcomes] = count
        assert seen == oracle.evidence(table, groups(space), nulls)


# ---------------------------------------------------------------- conditions of algorithms.md, section 17


def test_without_nulls_no_evidence_contains_another() -> None:
    table = random_table(5, rows=30, types=["integer", "text", "integer"])
    space = build_space(encode(table), DcDiscoverOptions())
    evidence = collect_evidence(encode(table), space, device="cpu")
    edges = [int(e[0]) for e in evidence.atom_edges()]
    assert len(edges) > 5
    assert all(e.bit_count() == space.groups for e in edges)
    assert not any(a & ~b == 0 for a, b in itertools.permutations(edges, 2))


def test_an_unknown_outcome_satisfies_no_predicate() -> None:
    table: Table = [("a", "integer", [1, None]), ("b", "text", ["x", "y"])]
    space = build_space(encode(table), DcDiscoverOptions())
    evidence = collect_evidence(encode(table), space, device="cpu")
    assert {int(e[0]) for e in evidence.atom_edges()} == {0b01_111}
    assert {int(e[0]) for e in evidence.predicate_edges()} == {0b01_111111}
    rules = [str(c) for c in discover(encode(table), DcDiscoverOptions(device="cpu")).constraints]
    assert rules == ["not(t.a != u.a)", "not(t.a <= u.a)", "not(t.b == u.b)"]


def test_of_constraints_that_imply_one_another_the_first_is_kept() -> None:
    """Equal columns: `t.a op u.a`, `t.a op u.b`, `t.b op u.b` say the same; dropping both ways would lose them all."""
    table: Table = [("a", "integer", [1, 2, 3]), ("b", "integer", [1, 2, 3])]
    result = discover(encode(table), DcDiscoverOptions(device="cpu"))
    assert found(result) == expected(table, DcDiscoverOptions())
    assert "not(t.a == u.a)" in [str(c) for c in result.constraints]


def test_a_same_column_constraint_appears_once_for_both_mirrors_beside_cross_columns() -> None:
    """The space is not closed under exchange here, so both mirrors are hitting sets; the one with `<` is listed."""
    table: Table = [("a", "integer", [1, 2, 3]), ("b", "integer", [2, 3, 1]), ("c", "text", ["x", "y", "x"])]
    rules = {str(c) for c in discover(encode(table), DcDiscoverOptions(device="cpu")).constraints}
    assert any("t.a < u.a" in r or "t.a <= u.a" in r for r in rules)
    one_way = [r for r in rules if r.count("t.a >") and "u.b" not in r.split("t.a >")[1][:8] and "t.a <" not in r]
    assert not [r for r in one_way if r.replace(">", "#").replace("<", ">").replace("#", "<") in rules]


def test_a_pair_of_equal_rows_counts_twice() -> None:
    """Three rows, two of them equal: 2 of 6 ordered pairs violate the key."""
    table: Table = [("a", "integer", [1, 1, 2])]
    result = discover(encode(table), DcDiscoverOptions(device="cpu", error=Decimal("0.34")))
    assert ("not(t.a == u.a)", 2) in zip(map(str, result.constraints), result.arrays.violations.tolist(), strict=True)
    assert result.ranking.g1.max() == pytest.approx(2 / 6)


def test_error_bound_is_exact_at_five_rows() -> None:
    """floor(0.95 * 20) = 19 violations are allowed; floating (1 - 0.95) * 20 rounds up to 2 pairs to be covered."""
    table: Table = [("a", "integer", [1, 1, 1, 1, 1]), ("b", "integer", [1, 2, 3, 4, 5])]
    options = DcDiscoverOptions(device="cpu", error=Decimal("0.95"), shared_values=Decimal(1))
    assert found(discover(encode(table), options)) == expected(table, options)


# ---------------------------------------------------------------- laws


def rules_of(table: Table, options: DcDiscoverOptions) -> list[tuple[str, int]]:
    result = discover(encode(table), options)
    return list(zip(map(str, result.constraints), result.arrays.violations.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_order_of_rows_and_names_of_columns_change_nothing(seed: int) -> None:
    choices = [["integer", "text", "integer", "text"], ["double", "double", "text"], ["date", "date", "integer"]]
    table = random_table(seed, rows=40, types=choices[seed % 3], null_share=0.05 * (seed % 2), values=6)
    options = DcDiscoverOptions(device="cpu", error=Decimal("0.01") * (seed % 2), single_tuple=seed % 2 == 0)
    rules = rules_of(table, options)
    assert rules
    order = list(range(40))
    random.Random(seed).shuffle(order)
    assert rules_of([(n, t, [v[i] for i in order]) for n, t, v in table], options) == rules
    renamed = [(f"x {n}", t, v) for n, t, v in table]
    again = [(r.replace("`x ", "").replace("`", ""), c) for r, c in rules_of(renamed, options)]
    assert again == rules


@pytest.mark.parametrize("seed", range(6))
def test_each_constraint_holds_and_no_weaker_one_does(seed: int) -> None:
    """Taking any outcome back from a constraint (a stronger one) leaves more violations than the error allows."""
    types = ["integer", "text", "double", "integer"]
    table = random_table(seed, rows=14, types=types, null_share=0.02 * (seed % 2), values=6, fewest=4, repeat_share=0)
    error = Decimal("0.02") * (seed % 3)
    result = discover(encode(table), DcDiscoverOptions(device="cpu", error=error, cross_columns=False))
    allowed = oracle.allowed_violations(14, ((0, 0, "across", "=="),), error)
    outcomes = {op: {o for o in (-1, 0, 1) if not oracle.satisfies(o, op)} for op in oracle.OPERATORS}
    assert len(result.constraints) >= 2
    for constraint, count in list(found(result).items())[:40]:
        assert oracle.violations(table, constraint, "unknown") == count <= allowed
        for k, p in enumerate(constraint):
            rest = constraint[:k] + constraint[k + 1 :]
            ordered = groups(result.space)[[g[0] for g in groups(result.space)].index(p[0])][3]
            weaker = [op for op in oracle.OPERATORS if ordered and outcomes[op] < outcomes[p[3]]]
            for stronger in [rest, *((*rest, (*p[:3], op)) for op in weaker)]:
                if stronger:
                    assert oracle.violations(table, stronger, "unknown") > allowed


# ---------------------------------------------------------------- little to learn, limits, guards


@pytest.mark.parametrize(
    ("table", "note"),
    [
        ([("a", "integer", []), ("b", "text", [])], "0 rows, so there are no pairs of rows: nothing to learn"),
        ([("a", "integer", [1]), ("b", "text", ["x"])], "1 row, so there are no pairs of rows: nothing to learn"),
        ([], "the table has no columns: nothing to learn"),
    ],
)
def test_nothing_to_learn(table: Table, note: str) -> None:
    result = discover(encode(table), DcDiscoverOptions(device="cpu"))
    assert len(result.constraints) == 0
    assert note in result.notes
    assert not result.partial
    assert list(result.ranking.g1) == []


def test_one_row_teaches_rules_about_one_row() -> None:
    table: Table = [("a", "integer", [1]), ("b", "integer", [2])]
    options = DcDiscoverOptions(device="cpu", single_tuple=True, shared_values=Decimal(0))
    result = discover(encode(table), options)
    assert found(result) == expected(table, options)
    assert [str(c) for c in result.constraints] == ["not(t.a >= t.b)"]
    assert result.arrays.one_row.all()
    assert result.notes == ["1 row, so there are no pairs of rows: only rules about one row are learnt, from that row"]


def test_constant_and_null_columns_are_named() -> None:
    table: Table = [("k", "integer", [7, 7, 7]), ("n", "text", [None] * 3), ("x", "integer", [1, 2, None])]
    result = discover(encode(table), DcDiscoverOptions(device="cpu"))
    assert "1 column with one value only: 'k'" in result.notes
    assert "column 'n' has no values: left out" in result.notes
    assert not any("n" in c.columns for c in result.constraints)
    assert result.notes[-1] == (
        "nulls (rule unknown): 1 of 3 rows have a null in a used column; 4 of 6 pairs compare a null somewhere, and "
        "satisfy no predicate there"
    )
    assert {c.kind for c in result.constraints if str(c) == "not(t.k != u.k)"} == {"constant"}
    alike = discover(encode([("k", "integer", [7, 7])]), DcDiscoverOptions(device="cpu"))
    assert alike.notes == ["1 column with one value only: 'k', that is all columns: all rows are equal"]
    assert [str(c) for c in alike.constraints] == ["not(t.k != u.k)"]


def test_error_that_allows_nothing_is_said() -> None:
    result = discover(encode([("a", "integer", [1, 2, 3])]), DcDiscoverOptions(device="cpu", error=Decimal("0.01")))
    assert result.notes == ["error 0.01 of 6 pairs allows no violating pair: the result is exact"]


def test_single_tuple_without_cross_columns_is_said() -> None:
    options = DcDiscoverOptions(device="cpu", single_tuple=True, cross_columns=False)
    result = discover(encode([("a", "integer", [1, 2, 3])]), options)
    assert "it has no effect" in result.notes[0]


def wide(columns: int, rows: int = 3) -> Table:
    return [(f"c{i}", "text", [f"{i}-{r % 2}" for r in range(rows)]) for i in range(columns)]


def test_thousands_of_columns_are_refused_at_once() -> None:
    relation = encode(wide(3000))
    start = time.perf_counter()
    with pytest.raises(InputError) as error:
        discover(relation, DcDiscoverOptions(device="cpu"))
    assert time.perf_counter() - start < 5
    assert str(error.value) == (
        "3,000 columns make 6,000 outcomes to combine, so the constraints would not end; allowed: 400 without a limit. "
        "Choose columns (columns, exclude), or set max_predicates or time_limit"
    )


def test_a_limit_lets_thousands_of_columns_start() -> None:
    result = discover(encode(wide(600)), DcDiscoverOptions(device="cpu", max_predicates=1))
    assert len(result.constraints) == 0
    assert not result.partial
    assert result.space.predicates == 1200


def test_memory_that_is_not_there_is_refused() -> None:
    rng = np.random.default_rng(1)
    table: Table = [(f"c{i}", "integer", rng.permutation(20_000).tolist()) for i in range(40)]
    options = DcDiscoverOptions(
        device="cpu", cross_columns=False, memory_limit=2**28, time_limit=60, algorithm="evidence"
    )
    with pytest.raises(InputError, match=r"399,980,000 pairs of 40 comparisons leave .*; allowed: 256\.0 MiB"):
        discover(encode(table), options)


def test_a_time_limit_that_is_over_proves_nothing() -> None:
    table = rich_table(300)
    result = discover(encode(table), DcDiscoverOptions(device="cpu"), run=Run(deadline=time.monotonic() - 1))
    assert result.partial
    assert len(result.constraints) == 0
    assert result.distinct_evidences is None
    assert "no constraint is proven" in result.notes[-1]


def test_a_time_limit_in_the_search_lists_what_holds() -> None:
    """Thirty columns of few values have more constraints than can be counted: those found by then are right."""
    rng = random.Random(4)
    table: Table = [(f"c{i}", "text", [rng.choice("abc") for _ in range(40)]) for i in range(30)]
    table += [("n", "integer", list(range(40))), ("m", "integer", [(7 * i) % 40 for i in range(40)])]
    for limit in (0.4, 1, 4, 16):  # a slow machine needs longer to find the first ones
        options = DcDiscoverOptions(device="cpu", shared_values=Decimal(1), time_limit=limit)
        start = time.monotonic()
        result = discover(encode(table), options)
        assert time.monotonic() - start < 1.1 * limit + 8  # the space itself takes seconds where the machine is busy
        assert result.partial
        if len(result.constraints) > 10:
            break
    assert result.notes[-1] == (
        "time limit reached while constraints were searched: each one listed holds, others are missing; one that is "
        "missing may imply one that is listed (columns are compared with each other)"
    )
    assert len(result.constraints) > 10
    sample = result.arrays.take(np.arange(0, len(result.constraints), len(result.constraints) // 10))
    for constraint in constraints(result.space, sample):
        assert oracle.violations(table, constraint, "unknown") == 0


def test_memory_limit_reached_on_the_way_is_partial() -> None:
    result = discover(encode(rich_table(300)), DcDiscoverOptions(device="cpu", memory_limit=20_000_000))
    assert result.partial
    assert "memory limit of 20,000,000 bytes reached while pairs were compared" in result.notes[-1]


def test_progress_and_timings() -> None:
    stages: list[tuple[str, float]] = []
    table = rich_table(300)
    result = discover(encode(table), DcDiscoverOptions(device="cpu"), run=Run(progress=lambda *at: stages.append(at)))
    assert {"evidence"} <= {name for name, _ in stages} <= {"evidence", "inversion"}
    assert all(0 <= share <= 1 for _, share in stages)
    assert {"evidence", "inversion"} <= set(result.timings_seconds)
    assert (result.algorithm, result.device) == ("evidence", "cpu")
    assert result.algorithm_reason.startswith("auto: ")


def test_constraints_are_a_sequence() -> None:
    table = rich_table(12)
    result = discover(encode(table), DcDiscoverOptions(device="cpu"))
    listed = list(result.constraints)
    assert len(listed) == len(result.constraints) > 5
    assert list(result.constraints[1:4]) == listed[1:4]
    assert result.constraints[-1] == listed[-1]
    with pytest.raises(IndexError):
        result.constraints[len(listed)]
    best = result.best("succinctness", 3)
    assert len(best) == 3
    assert result.ranking.succinctness[best[0]] == result.ranking.succinctness.max()
    assert result.ranking.coverage[result.best("coverage")[0]] == result.ranking.coverage.max()
    assert result.best("g1").tolist() == list(range(len(listed)))


def test_a_limit_too_short_for_all_pairs_says_what_would_do() -> None:
    relation = tw.load(pd.DataFrame({f"c{i}": np.arange(3000) * 7 % (i + 5) for i in range(3)}))
    found = discover(relation, DcDiscoverOptions(error=Decimal("0.01"), cross_columns=False, time_limit=1e-6))
    assert found.partial
    said = " ".join(found.notes)
    assert re.search(r"no constraint is proven.* All pairs take about [\d.]+ s here; or compare few pairs", said)
