"""Plans of a rule: the order in which its predicates are refined, and the algorithm.

Source: Pena, de Almeida, Naumann (PVLDB 15(4), 2022), section 6.2: equalities before inequalities before
non-equalities, each class ordered by column cardinalities, GreedyHLL for three or more equalities, the algorithm of
inequalities chosen by cardinality and by what the equalities leave. Departures: adjacent equalities are one step of our
kernel, so their order matters only for sharing between rules. Two inequalities are one join for any cardinalities,
since a wavelet matrix costs one step a bit of the smaller column and has no bad case. Non-equalities are counted by
inclusion and exclusion, not by differences of sets. The thresholds are measured on these kernels (benchmarks, group
`check_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tuplewise.engine.dc.violations.cardinalities import Cardinalities
from tuplewise.engine.dc.violations.program import Program
from tuplewise.engine.grouping import Equality
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Algorithm, Comparison

# Seconds per left row on one core, measured (benchmarks, group `check_choice`): a wavelet join; a node of a k-d tree;
# one comparison with a block of bitmaps, or row by row with a cluster too small for bitmaps.
WAVELET_SECONDS = 4.4e-7
NODE_SECONDS = 8e-8
BLOCK_SECONDS = 2.4e-7
BLOCK_ROWS, SMALL_ROWS = 2048, 64
SMALL_SECONDS, SMALL_SECONDS_PER_ROW = 7e-8, 4e-9
MOST_EXCLUDED = 6  # most non-equalities for inclusion and exclusion: 2^6 terms

_SIGNS = {LESS: "<", LESS | EQUAL: "<=", EQUAL: "==", LESS | GREATER: "!=", GREATER: ">", GREATER | EQUAL: ">="}


@dataclass(frozen=True)
class CheckPlan:
    """Plan for checking a rule.

    Attributes
    ----------
    equalities : (left column, right column) in order of refinement
    compared : comparisons of the join after the equalities, in its order
    algorithm : algorithm of the join
    tree_row_seconds : expected seconds per left row of a range tree, for three or more inequalities
    excluded : non-equalities counted by inclusion and exclusion, or filtered when pairs are listed
    steps : the plan in readable form; entries of "plan" in results
    """

    equalities: tuple[Equality, ...]
    compared: tuple[Comparison, ...]
    algorithm: Algorithm
    excluded: tuple[Comparison, ...]
    tree_row_seconds: float
    steps: tuple[dict[str, Any], ...]


def plan(program: Program, sizes: Cardinalities, names: Sequence[str]) -> CheckPlan:
    """Plan one rule. `names`: names of the columns, for the steps.

    A rule about one row has one step: its tests.
    """
    if program.never:
        step = _step("filter", [], "none", 0, "no values satisfy all of its predicates")
        return CheckPlan((), (), "hsm", (), 0.0, (step,))
    if program.one_row:
        return CheckPlan((), (), "hsm", (), 0.0, tuple(_filter_steps(program)))
    equalities = order_equalities([(c.left, c.right) for c in program.equalities], sizes)
    groups = min(sizes.of(a for a, _ in equalities), sizes.of(b for _, b in equalities))
    cluster_rows = sizes.rows / max(1.0, groups)
    inequalities = sorted(program.inequalities, key=lambda c: (-_smaller(c, sizes), c))
    unequals = sorted(program.unequals, key=lambda c: (-_smaller(c, sizes), c))
    tree_row_seconds = range_tree_seconds(inequalities, sizes)
    compared, algorithm, excluded, why = _join(inequalities, unequals, cluster_rows, tree_row_seconds)
    steps = _filter_steps(program)
    for place, (a, b) in enumerate(equalities):
        left_rows = sizes.rows - sizes.alone(c for e in equalities[: place + 1] for c in e)
        how = "hash" if a == b else "hash, both sides marked"
        distinct = f"{_smaller(Comparison(a, b, EQUAL), sizes):,.0f} distinct values"
        steps.append(
            _step("equality", [f"t.{names[a]} == u.{names[b]}"], how, round(max(0.0, left_rows)), distinct)
        )
    if compared or not equalities:
        kind = "inequality" if inequalities else "non-equality" if compared else "emit"
        steps.append(_step(kind, [_text(c, names) for c in compared], algorithm, sizes.rows, why))
    if excluded:
        why = f"counts over equalities, at most {2 ** len(excluded)} terms; filtered when pairs are listed"
        predicates = [_text(c, names) for c in excluded]
        steps.append(_step("non-equality", predicates, "inclusion-exclusion", sizes.rows, why))
    return CheckPlan(tuple(equalities), tuple(compared), algorithm, tuple(excluded), tree_row_seconds, tuple(steps))


def _join(
    inequalities: list[Comparison], unequals: list[Comparison], cluster_rows: float, tree_row_seconds: float
) -> tuple[list[Comparison], Algorithm, list[Comparison], str]:
    """Choose the comparisons and algorithm of the join, and those left to inclusion and exclusion; with reasons."""
    both = inequalities + unequals
    if len(both) <= 1:
        return both, "hsm", [], "slices of one sorted side"
    if len(unequals) > MOST_EXCLUDED:
        return both, "bhsm", [], f"{len(unequals)} non-equalities are too many to count by inclusion and exclusion"
    if not inequalities:
        return [], "hsm", unequals, "whole groups"
    if len(inequalities) == 1:
        return inequalities, "hsm", unequals, "slices of one sorted side"
    if len(inequalities) == 2:
        return inequalities, "iejoin", unequals, "sorted by one column, counted by bits of the other"
    by_bitmaps = bitmap_seconds(len(both), cluster_rows)
    if by_bitmaps < tree_row_seconds * 2 ** len(unequals):
        return both, "bhsm", [], f"about {cluster_rows:,.0f} rows agree: bitmaps of all of them cost less than a tree"
    return inequalities, "rangetree", unequals, "level by level of one column's bits"


def range_tree_seconds(inequalities: Sequence[Comparison], sizes: Cardinalities) -> float:
    """Seconds per left row of a range tree: half of the rows take part in each level; one level for each bit."""
    seconds = WAVELET_SECONDS
    for distinct in sorted(_smaller(c, sizes) for c in inequalities)[: max(0, len(inequalities) - 2)]:
        seconds *= max(1.0, math.log2(max(2.0, distinct)) / 2)
    return seconds


def bitmap_seconds(comparisons: int, cluster_rows: float) -> float:
    """Seconds per left row of bitmaps, from the blocks of its cluster, or the rows of a small cluster."""
    if cluster_rows <= SMALL_ROWS:
        return comparisons * (SMALL_SECONDS + SMALL_SECONDS_PER_ROW * cluster_rows)
    return comparisons * BLOCK_SECONDS * max(1.0, cluster_rows / BLOCK_ROWS)


def order_equalities(equalities: list[Equality], sizes: Cardinalities) -> list[Equality]:
    """Equalities of a column with itself first, by ascending distinct values; three or more of them by GreedyHLL."""
    same = sorted((e for e in equalities if e[0] == e[1]), key=lambda e: (sizes.of([e[0]]), e))
    across = sorted(
        (e for e in equalities if e[0] != e[1]), key=lambda e: (_smaller(Comparison(e[0], e[1], EQUAL), sizes), e)
    )
    return (greedy_hll(same, sizes) if len(same) >= 3 else same) + across


def greedy_hll(equalities: list[Equality], sizes: Cardinalities) -> list[Equality]:
    """Order pairs of equalities by remaining rows and cost, best first; in a pair, fewest distinct values first."""
    ranked = []
    for first, second in combinations(sorted(equalities, key=lambda e: (sizes.of([e[0]]), e)), 2):
        together = sizes.of([first[0], second[0]])
        intermediates = (sizes.rows - together) / max(1, sizes.rows)
        cost = (sizes.of([first[0]]) + together) ** 0.1
        ranked.append((intermediates * cost, first, second))
    order: list[Equality] = []
    for _, first, second in sorted(ranked):
        order += [e for e in (first, second) if e not in order]
    return order


def _smaller(c: Comparison, sizes: Cardinalities) -> float:
    return min(sizes.of([c.left]), sizes.of([c.right]))


def _text(c: Comparison, names: Sequence[str]) -> str:
    return f"t.{names[c.left]} {_SIGNS[c.outcomes]} u.{names[c.right]}"


def _filter_steps(program: Program) -> list[dict[str, Any]]:
    """Steps for the single-row tests of t and u."""
    texts = [test.text for test in (*program.left_tests, *program.right_tests)]
    if not texts:
        return []
    return [_step("filter", texts, "scan", None, "one row each")]


def _step(kind: str, predicates: list[str], algorithm: str, rows: int | None, why: str) -> dict[str, Any]:
    return {"step": kind, "predicates": predicates, "algorithm": algorithm, "estimated_rows": rows, "why": why}
