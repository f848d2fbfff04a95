"""The order by genuineness against the definition: shares of pairs, and the measures of a profile, in plain Python."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise import InputError
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.profile import genuine

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tax.csv"
COMPARE = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
Table = dict[str, list[int]]


def random_table(rng: random.Random) -> Table:
    rows, columns = rng.choice([2, 5, 9, 14]), rng.randint(2, 4)
    return {"abcd"[i]: rng.choices(range(rng.choice([2, 3, 6])), k=rows) for i in range(columns)}


@pytest.fixture
def estimated_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(genuine, "MOST_MEASURED", 0)


def never_rises(scores: Sequence[float]) -> bool:
    return all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(scores))


# ---------------------------------------------------------------- denial constraints


def estimate(table: Table, rule: DenialConstraint) -> float:
    rows = range(len(next(iter(table.values()))))
    pairs = [(t, u) for t in rows for u in rows if t != u]

    def satisfied(predicates: Any) -> float:
        count = 0
        for t, u in pairs:
            row = {"t": t, "u": u}
            count += all(
                COMPARE[p.operator](table[p.left][row[p.left_role]], table[p.right][row[p.right_role]])
                for p in predicates
            )
        return count / len(pairs)

    chance = math.prod(satisfied([p]) for p in rule.predicates)
    strength = 1 - satisfied(rule.predicates) / chance if chance else 0.0
    across = any(p.left != p.right for p in rule.predicates) and not rule.names_one_tuple
    worth = 0.8 ** (len(rule) - 2) * (0.25 if across else 1)
    return max(0.0, strength) ** 4 * math.log10(1 + min(chance * len(pairs), len(rows))) * worth


@pytest.mark.usefixtures("estimated_only")
@pytest.mark.parametrize("error", ["0", "0.1"])
def test_estimates_of_denial_constraints_equal_definition(error: str) -> None:
    rng = random.Random(error)
    for _ in range(12 if error == "0" else 2):  # where some pairs may violate a rule there are many more of them
        table = random_table(rng)
        found = tw.discover_dcs(pd.DataFrame(table), error=error, shared_values=0)
        ranked = found.ranked("genuineness")
        assert sorted(c.rule for c in ranked) == sorted(c.rule for c in found.constraints)
        assert never_rises([estimate(table, rule) for rule in ranked]), table


def test_only_the_best_by_the_estimate_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    table = tw.load(EXAMPLE, columns=["zip", "city", "state", "salary", "rate"])
    found = tw.discover_dcs(table)
    monkeypatch.setattr(genuine, "MOST_MEASURED", 0)
    estimated = [c.rule for c in found.ranked("genuineness")]
    monkeypatch.setattr(genuine, "MOST_MEASURED", 3)
    ranked = [c.rule for c in found.ranked("genuineness")]
    assert sorted(ranked[:3]) == sorted(estimated[:3])
    assert ranked[3:] == estimated[3:]


def test_text_shows_one_line_for_rules_that_differ_in_operators() -> None:
    rng = random.Random(5)
    for _ in range(10):
        table = random_table(rng)
        found = tw.discover_dcs(pd.DataFrame(table), shared_values=0)
        if not len(found):
            continue
        columns = Counter(tuple((p.left, p.right_role, p.right) for p in rule.predicates) for rule in found.constraints)
        text = found.to_text(limit=1000)
        shown = [line for line in text.splitlines() if " not(" in line]
        assert len(shown) == len(columns)
        variants = sum(int(line.rsplit(" and ", 1)[1].split()[0]) for line in shown if "variant" in line)
        assert len(shown) + variants == len(found)
        assert len([line for line in found.to_text(limit=2).splitlines() if " not(" in line]) == min(2, len(columns))
        assert shown[0].split(" not(")[1].split(")")[0] in found.ranked("genuineness")[0].rule


def test_what_people_would_sign_comes_first() -> None:
    found = tw.discover_dcs(tw.load(EXAMPLE))
    best = [line for line in found.to_text(limit=10).splitlines() if " not(" in line]
    assert any("not(t.city == u.city and t.state != u.state)" in line for line in best)
    assert any("not(t.area_code == u.area_code and t.state != u.state)" in line for line in best)
    assert "of 8,035 groups, by genuineness:" in found.to_text()
    assert "by genuineness" in found._repr_html_()


def test_rules_of_one_row_are_measured_by_rows() -> None:
    rng = np.random.default_rng(3)
    start = rng.integers(0, 1000, 500)
    table = pd.DataFrame({"start": start, "end": start + rng.integers(0, 300, 500), "noise": rng.integers(0, 9, 500)})
    found = tw.discover_dcs(table, single_tuple=True, shared_values=0.1)
    assert "not(t.start > t.end)" in [rule.rule for rule in found.ranked("genuineness", limit=3)]


# ---------------------------------------------------------------- keys, functional and order dependencies


def strength_and_evidence(table: Table, left: Sequence[str], right: str) -> tuple[float, float]:
    rows = len(table[right])
    groups = Counter(zip(*(table[name] for name in left), strict=True)) if left else Counter({(): rows})
    pdep = sum((n / rows) ** 2 for n in Counter(table[right]).values())
    both = Counter(zip(*(table[name] for name in (*left, right)), strict=True))
    given = sum(n * n / groups[values[:-1]] for values, n in both.items()) / rows
    evidence = (rows - len(groups)) * (1 - pdep) * rows / (rows - 1)
    if evidence <= 0:
        return 0.0, 0.0
    return max(0.0, 1 - (1 - given) / (1 - pdep) * (rows - 1) / (rows - len(groups))), evidence


def fd_score(table: Table, left: Sequence[str], right: str) -> float:
    strength, evidence = strength_and_evidence(table, left, right)
    if not left:
        counts = Counter(table[right])
        return 0.5 * math.log10(1 + len(table[right])) * (max(counts.values()) / len(table[right])) ** 20
    score = strength**4 * math.log10(1 + evidence)
    if len(left) == 1:
        return score
    parts = itertools.combinations(left, len(left) - 1)
    need = strength - max(strength_and_evidence(table, part, right)[0] for part in parts)
    return score * 0.8 ** (len(left) - 1) * min(1.0, need / 0.5)


def key_score(table: Table, columns: Sequence[str]) -> float:
    rows = len(table[columns[0]])
    pairs = rows * (rows - 1) / 2
    agreeing = [sum(n * (n - 1) / 2 for n in Counter(table[name]).values()) / pairs for name in columns]
    evidence = pairs * math.prod(agreeing)
    doubled = sum(n * (n - 1) / 2 for n in Counter(zip(*(table[name] for name in columns), strict=True)).values())
    strength = max(0.0, 1 - doubled / evidence) if evidence else 0.0
    return strength**4 * math.log10(1 + evidence) * 0.8 ** (len(columns) - 2)


@pytest.mark.parametrize("error", ["0", "0.2"])
def test_scores_of_dependencies_and_keys_equal_definition(error: str) -> None:
    rng = random.Random(error)
    for _ in range(12):
        table = random_table(rng)
        fds = tw.discover_fds(pd.DataFrame(table), error=error).to_dict(rank_by="genuineness")["result"]["fds"]
        assert never_rises([fd_score(table, fd["determinant"], fd["dependent"]) for fd in fds]), table
        keys = tw.discover_keys(pd.DataFrame(table), error=error).to_dict(rank_by="genuineness")["result"]["keys"]
        assert never_rises([key_score(table, key) for key in keys if len(key) > 1]), table


def gamma_and_evidence(table: Table, context: Sequence[str], a: str, b: str, sign: int) -> tuple[float, float]:
    rows = range(len(table[a]))
    classes = Counter(tuple(table[name][row] for name in context) for row in rows)
    concordant = discordant = pairs = 0
    for t, u in itertools.combinations(rows, 2):
        if all(table[name][t] == table[name][u] for name in context):
            pairs += 1
            product = (table[a][t] - table[a][u]) * (table[b][t] - table[b][u]) * sign
            concordant, discordant = concordant + (product > 0), discordant + (product < 0)
    strict = concordant + discordant
    repeated = len(rows) - len(classes)
    return (concordant - discordant) / strict if strict else 0.0, repeated * strict / pairs / 2 if pairs else 0.0


@pytest.mark.parametrize("error", ["0", "0.2"])
def test_scores_of_orders_equal_definition(error: str) -> None:
    rng = random.Random(error)
    for _ in range(12):
        table = random_table(rng)
        found = tw.discover_ods(pd.DataFrame(table), error=error).to_dict(rank_by="genuineness")["result"]
        scores = []
        for od in found["order_compatible"]:
            sign = 1 if od["direction"] == "ascending" else -1
            gamma, evidence = gamma_and_evidence(table, od["context"], od["left"], od["right"], sign)
            alone = max(0.0, gamma_and_evidence(table, (), od["left"], od["right"], sign)[0]) if od["context"] else 0.0
            needed = 0.8 * min(1.0, (gamma - alone) / 0.1) if od["context"] else 1.0
            scores.append(max(0.0, gamma) ** 20 * math.log10(1 + evidence * (1 - alone)) * needed)
        assert never_rises(scores), table


def test_json_keeps_its_order_unless_asked() -> None:
    table = tw.load(EXAMPLE, columns=["zip", "city", "state", "salary", "rate"])
    found = tw.discover_fds(table)
    by_size = [str(fd) for fd in found.fds]
    listed = found.to_dict()["result"]["fds"]
    assert [f"{', '.join(fd['determinant'])} -> {fd['dependent']}" for fd in listed] == by_size
    assert found.to_dict(rank_by="size")["result"] == found.to_dict()["result"]
    best = found.to_pandas(rank_by="genuineness", limit=3)
    assert list(best["dependent"]) == ["state", "city", "state"]
    assert "the best 2 of 6, by genuineness:" in found.to_text(limit=2)
    assert "the first 2 of 6:" in found.to_text(limit=2, rank_by="size")
    assert found.to_csv(rank_by="genuineness").splitlines()[1:] != found.to_csv().splitlines()[1:]
    dcs = tw.discover_dcs(table)
    assert [c["rule"] for c in dcs.to_dict()["result"]["constraints"]] == [c.rule for c in dcs.constraints]
    best_rules = [c["rule"] for c in dcs.to_dict(rank_by="genuineness")["result"]["constraints"]]
    assert best_rules == [c.rule for c in dcs.ranked("genuineness")]
    with pytest.raises(InputError, match="rank_by: 'best'; allowed: 'genuineness', 'size'"):
        found.to_json(rank_by="best")  # type: ignore[arg-type]
