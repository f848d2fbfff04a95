"""Measures of rules: evidence, strength, the chance of seeing as much without the rule, and one score.

The null model is the same for every kind of rule: columns are independent of each other, each with its own values.
*Evidence* is what would contradict the rule under that model, *strength* by how much less does.

Of the 30 FDs that experts wrote down for eight tables, so many are among the first 10 and 20 of a table when all left
sides of one and two columns are ranked (`python -m benchmarks.profile_measures`): by g3 14 and 17, g3' 15 and 15, tau
17 and 20, the fraction of information 16 and 17, its reliable form 12 and 17, mu+ 18 and 18; by the score 26 and 27.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANCE = 1e-3
"""The chance that a table without any rule shows one, at most, over all candidates."""
FD_STRENGTH = (0.0, 0.8, 0.9, 0.95)
"""The least strength of a shown FD, by columns on its left."""
RARELY_DIFFERING = 0.05
"""Of a target on which fewer pairs differ, a few rows decide: any column seems to determine it."""
FD_STRENGTH_OF_RARE = 0.95
FD_NEED = (0.0, 0.0, 0.1, 0.2)
"""What each column of a left side adds to the strength at least, by columns on the left."""
OD_STRENGTH = 0.985
ROW_STRENGTH = 0.9
KEY_STRENGTH = 0.9
LEAST_EVIDENCE = 5.0
LEAST_SCORE = 0.5
MOST_DOUBLES = 3e-3  # share of the rows of a key that repeat others
MOST_OUT_OF_ORDER = 0.05  # share of the rows to remove so that an order rule holds
MOST_OTHERS = 1e-3  # share of the rows that don't have a constant's value
MOST_ROW_EXCEPTIONS = 5e-3  # share of the rows that break a rule of one row
FULL_NEED = 0.5
"""What a column of a left side adds where it is needed without a doubt."""
FULL_GAIN = 0.1
"""What a context adds to the gamma of two columns where it is needed without a doubt."""


def differing_share(counts: NDArray[np.int64]) -> float:
    """The share of pairs of different rows that differ. `counts`: rows of each value, int64 (values,).

    It is (1 - pdep) * n / (n - 1), with pdep the sum of p_a^2.
    """
    return differing_by_squares(int(counts.sum()), float(np.square(counts.astype(np.float64)).sum()))


def differing_by_squares(rows: int, squares: float) -> float:
    """See `differing_share`; from the number of rows, and the sum over values of their rows squared."""
    return max(0.0, (rows * rows - squares) / (rows * (rows - 1.0))) if rows > 1 else 0.0


def fd_evidence(rows: int, classes: int, differing: float) -> float:
    """The rows expected to contradict an FD: those after the first of their class, times the chance to differ."""
    return (rows - classes) * differing


def mu_plus(contradictions: float, evidence: float) -> float:
    """The strength of an FD, from 0 (what chance gives) to 1 (holds).

    Parameters
    ----------
    contradictions : sum over classes of n - sum of n_a^2 / n; see `gpu_kernels.agreement`
    evidence : what that is by chance; see `fd_evidence`

    Notes
    -----
    Equal to mu+ = max(0, 1 - (1 - pdep(A|X)) / (1 - pdep(A)) * (N - 1) / (N - n_X)).

    Source: Parciak, Weytjens, Hens, Neven, Peeters, Vansummeren, "Measuring approximate functional dependencies: a
    comparative study", ICDE 2024; Piatetsky-Shapiro, Matheus, "Measuring data dependencies in large databases", 1993.
    """
    return max(0.0, 1.0 - contradictions / evidence) if evidence > 0 else 0.0


def log_chance(observed: float, expected: float) -> float:
    """The common logarithm of an upper bound on the chance of at most `observed` events if `expected` are expected.

    Source: Chernoff, "A measure of asymptotic efficiency for tests of a hypothesis based on the sum of observations",
    Annals of Mathematical Statistics 23(4), 1952, for sums of independent events.
    """
    if observed >= expected:
        return 0.0
    exponent = expected - observed
    if observed > 0:
        exponent += observed * math.log(observed / expected)
    return -exponent / math.log(10)


def is_beyond_chance(observed: float, expected: float, candidates: int) -> bool:
    """Whether so few are no accident, given the number of examined candidates (Bonferroni)."""
    return log_chance(observed, expected) < math.log10(CHANCE / max(candidates, 1))


def least_fd_strength(size: int, differing: float) -> float:
    """The least strength of a shown FD with so many columns on its left, by how often its target differs."""
    return max(FD_STRENGTH[size], FD_STRENGTH_OF_RARE if differing < RARELY_DIFFERING else 0.0)


def fd_score(strength: float, evidence: float, need: float, size: int, share: float) -> float:
    """How much an FD is worth showing. `share`: of the rows that it speaks of."""
    needed = 1.0 if size < 2 else min(1.0, need / FULL_NEED)
    return float(strength**4 * math.log10(1 + evidence) * 0.8 ** max(0, size - 1) * needed * share)


def od_score(strength: float, evidence: float, need: float, size: int, share: float) -> float:
    """How much an order rule is worth showing; a context of `size` columns has to be needed."""
    needed = 1.0 if size < 1 else 0.8 * min(1.0, need / FULL_GAIN)
    return float(strength**20 * math.log10(1 + evidence) * needed * share)


def row_score(strength: float, evidence: float, share: float) -> float:
    """How much a rule about one row is worth showing."""
    return float(strength**20 * math.log10(1 + evidence) * math.sqrt(share))


def equality_score(strength: float, evidence: float, share: float) -> float:
    """How much it is worth showing that two columns are equal: more than other rules, which are the same for both."""
    return 2 * row_score(strength, evidence, share)


def key_score(strength: float, evidence: float, size: int, share: float) -> float:
    """How much a key is worth showing: one column twice as much as several."""
    single = 2.0 if size == 1 else 0.8 ** (size - 2)
    return float(strength ** (20 if size == 1 else 4) * math.log10(1 + evidence) * single * share)


ACROSS_COLUMNS = 0.25
"""What a rule is worth that compares different columns of two rows: seldom do people mean one."""


def dc_score(
    strength: NDArray[np.float64], evidence: NDArray[np.float64], sizes: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """How much denial constraints of so many predicates are worth showing."""
    score: NDArray[np.float64] = np.maximum(strength, 0.0) ** 4 * np.log10(1 + evidence) * 0.8 ** (sizes - 2.0)
    return score


def constant_score(rows: int) -> float:
    """How much it is worth showing that a column has one value: it says little."""
    return 0.5 * math.log10(1 + rows)
