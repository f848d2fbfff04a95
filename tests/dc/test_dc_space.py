"""The predicate space against its definition."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from dc_tables import encode, groups, random_table
from oracles import dc as oracle

from tuplewise.engine.dc.predicate import allowed_violations, build_space
from tuplewise.engine.options import DcDiscoverOptions

TYPES = ["integer", "decimal", "double", "date", "timestamp", "boolean", "text"]


@pytest.mark.parametrize("block", range(8))
def test_space_equals_definition(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        rng = random.Random(seed)
        mixed = [rng.choice(TYPES) for _ in range(rng.randint(1, 4))]
        types = rng.choice([mixed, ["integer", "decimal", "integer"], ["double", "double"], ["text"] * 3])
        table = random_table(seed, rows=rng.randint(0, 7), types=types, null_share=rng.choice([0, 0.2, 0.6]))
        asked = {
            "cross": rng.random() < 0.9,
            "single": rng.random() < 0.5,
            "order_text": rng.random() < 0.5,
            "shared": rng.choice([Decimal("0.3"), Decimal(0), Decimal("0.5"), Decimal(1)]),
            "means": rng.choice([Decimal("0.1"), Decimal(0), Decimal("0.5"), Decimal(1)]),
        }
        options = DcDiscoverOptions(
            cross_columns=asked["cross"],
            single_tuple=asked["single"],
            order_text=asked["order_text"],
            shared_values=asked["shared"],
            comparable_means=asked["means"],
        )
        space = build_space(encode(table), options)
        assert groups(space) == oracle.groups_of(table, **asked), (seed, table, asked)
        assert space.predicates == sum(len(oracle.predicates_of(g)) for g in groups(space))


def test_means_are_exact_at_the_threshold() -> None:
    """Sums beyond 2**63 and decimals: a mean one part in 10**19 over the threshold counts, one at it doesn't."""
    big = 2**62
    table = [("a", "integer", [big, big, big, 0]), ("b", "integer", [big, 0, 0, 0])]
    options = DcDiscoverOptions(shared_values=Decimal(0), comparable_means=1 / Decimal(3))
    assert groups(build_space(encode(table), options))[1][3], "1/3 as a 28-digit decimal is below a third"
    third = [("a", "integer", [big * 2 - 1, 2 * big - 1, 0, 0]), ("b", "integer", [big - 1, big, 0, 0])]
    options = DcDiscoverOptions(shared_values=Decimal(0), comparable_means=Decimal("0.5"))
    assert not groups(build_space(encode(third), options))[1][3], "exactly half is not over half"
    tenth = [("a", "decimal", [Decimal("1.0000000000000000001")]), ("b", "decimal", [Decimal("10")])]
    options = DcDiscoverOptions(shared_values=Decimal(0))
    assert groups(build_space(encode(tenth), options))[1][3]


def test_explain_tells_each_candidate_pair_and_why() -> None:
    table = [
        ("a", "integer", [1, 2, 3]),
        ("b", "integer", [1, 2, 4]),
        ("far", "integer", [1, 2, 4000]),
        ("other", "integer", [7, 8, 9]),
        ("s", "text", ["x", "y", None]),
        ("r", "text", ["x", "y", "y"]),
    ]
    space = build_space(encode(table), DcDiscoverOptions())
    rows = {(r.left, r.right): r for r in space.explain()}
    assert ("a", "s") not in rows, "different types are no candidates"
    assert rows["a", "b"].verdict == "six operators"
    assert rows["a", "b"].why == "66.67 % of the distinct values are shared; means 2 and 2.33333 are comparable"
    assert rows["a", "far"].verdict == "== and != only"
    assert "not of one sign with the smaller over 10 % of the larger" in rows["a", "far"].why
    assert rows["a", "other"].verdict == "left out"
    assert rows["a", "other"].why == "0 % of the distinct values are shared, fewer than 30 %"
    assert (rows["s", "r"].verdict, rows["s", "r"].left_mean) == ("== and != only", None)


def test_predicates_are_numbered_in_result_order() -> None:
    table = [("a", "integer", [1, 2]), ("b", "integer", [1, 2]), ("c", "text", ["x", "y"])]
    space = build_space(encode(table), DcDiscoverOptions(single_tuple=True))
    texts = [str(space.predicate(i)) for i in range(space.predicates)]
    assert texts[:7] == [
        "t.a == u.a", "t.a != u.a", "t.a < u.a", "t.a <= u.a", "t.a > u.a", "t.a >= u.a", "t.a == u.b",
    ]  # fmt: skip
    assert texts[12] == "t.a == t.b"
    assert texts[-2:] == ["t.c == u.c", "t.c != u.c"]


@pytest.mark.parametrize(
    ("error", "rows", "allowed"),
    [("0.95", 5, 19), ("0.1", 6, 3), ("0.01", 10, 0), ("0", 9, 0), ("0.000000000000000000000000000001", 10**9, 0)],
)
def test_allowed_violations_are_exact(error: str, rows: int, allowed: int) -> None:
    """Section 17: floating ceil((1 - E) N) is wrong already at n = 5, E = 0.95."""
    assert allowed_violations(Decimal(error), rows * (rows - 1)) == allowed
