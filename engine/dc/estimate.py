"""Constraints of a table too large to compare all its pairs: g1 estimated from random pairs, with confidence intervals.

N pairs of different rows are drawn independently with equal chances, and both orders of each are counted. If v of the
2 N ordered pairs violate a rule, its estimate is v / (2 N). Both orders belong together (a rule and its mirror have one
g1, and inversion takes evidence that is closed under exchange), so v is not binomial: a drawn pair adds 0, 1 or 2. The
interval is that of C. Clopper and E. Pearson (The use of confidence or fiducial limits illustrated in the case of the
binomial, Biometrika 26, 1934) for v / 2 successes in N draws. For a rule that is its own mirror, it is exactly their
interval. For other rules a draw varies less than a binomial one of the same mean (W. Hoeffding, Probability
inequalities for sums of bounded random variables, JASA 58, 1963, section 5), so the interval is too wide rather than
too narrow. The tests enumerate both tails over all shares of pairs that add 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.evidence import EvidenceSet, collect_evidence, cut_clues
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.outcome_counts import row_outcomes, table_outcome_counts
from tuplewise.engine.dc.predicate import EXCLUDED_ORDERED, EXCLUDED_UNORDERED, PredicateSpace, allowed_violations
from tuplewise.engine.dc.ranking import Ranking, rank_counted
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.words import merge_clues

CONFIDENCE = 0.95
DRAWS_AT_ONCE = 1 << 20
# A drawn pair costs as much as hundreds of pairs compared in order. But more pairs leave more distinct evidence for
# inversion to read, so a small sample is not replaced by all pairs.
SHARE_TO_COMPARE_ALL = 8


@dataclass(frozen=True, eq=False)
class Estimate:
    """Confidence of the figures of constraints found on a sample of pairs.

    Attributes
    ----------
    sampled_pairs : number of drawn pairs; both orders of each were counted
    confidence : chance, before the draw, that the interval of a given rule contains its g1
    low, high : float64 (constraints,), ends of that interval; both equal g1 if it is known
    estimated : bool (constraints,), False for rules about one row, whose rows were all counted
    """

    sampled_pairs: int
    confidence: float
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    estimated: NDArray[np.bool_]


def compares_all(rows: int, pairs: int) -> bool:
    """Whether comparing all pairs takes no longer than a sample of `pairs` pairs, and is preferable because exact.

    Examples
    --------
    >>> compares_all(1_000, 1_000_000), compares_all(1_000_000, 1_000_000)
    (True, False)
    """
    return pairs * SHARE_TO_COMPARE_ALL >= rows * (rows - 1)


def find(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device,
    run: Run,
    lap: Callable[[str], None],
) -> FoundConstraints:
    """Find the minimal constraints of a sample of pairs; the options of the space set the sample size.

    Parameters are those of `hybrid.find`. The run reports "sample" and "inversion".
    """
    options = space.options
    assert options.sample_pairs is not None
    nothing = FoundConstraints(ConstraintArrays.none(False))
    try:
        evidence = sampled_evidence(relation, space, options.sample_pairs, options.seed, device, run=run)
        if not evidence.complete:
            raise LimitReached(TIME_LIMIT)
    except LimitReached as limit:
        return replace(nothing, reached=f"{limit} while pairs were compared: nothing is known of constraints")
    finally:
        lap("sample")
    try:
        arrays = invert(evidence, run)
    except LimitReached as limit:
        reached = f"{limit} while constraints were searched: none is listed"
        return replace(nothing, evidences=len(evidence), reached=reached)
    finally:
        lap("inversion")
    missing = None if arrays.complete else "time limit reached while constraints were searched: others are missing"
    if compares_all(relation.rows, options.sample_pairs):
        pairs = relation.rows * (relation.rows - 1)
        note = f"all {pairs:,} ordered pairs were compared instead of a sample: that takes no longer, and is exact"
        return FoundConstraints(
            arrays, missing, len(evidence), outcome_counts=evidence.outcome_counts, notes=[note]
        )
    arrays, ranking, estimate, notes = estimate_figures(relation, evidence, arrays)
    lap("ranking")
    return FoundConstraints(arrays, missing, len(evidence), ranking=ranking, estimate=estimate, notes=notes)


def sampled_evidence(
    relation: Relation,
    space: PredicateSpace,
    pairs: int,
    seed: int,
    device: Device | str = "auto",
    *,
    run: Run | None = None,
) -> EvidenceSet:
    """Collect evidences of `pairs` random pairs of rows, with both orders of each counted.

    `ordered_pairs` of the result is 2 * pairs, so that inversion allows floor(error * 2 * pairs) violations. If
    `compares_all` is true, the result is the evidence of all pairs, with their number: nothing is estimated then.

    Notes
    -----
    Cost: pairs times comparisons, with random access to rows; then a sort of the distinct clues of each million draws.
    """
    run, rows = run or Run(), relation.rows
    if compares_all(rows, pairs) or space.groups == 0:
        return collect_evidence(relation, space, device=device, run=run, stage="sample")
    report = run.stage("sample")
    compared = lay_out(relation.codes, space.layout, nulls=space.options.nulls, device=device)
    rng = np.random.default_rng(seed)
    clues, counts = np.zeros((0, space.layout.words), np.uint64), np.zeros(0, np.int64)
    for start in range(0, pairs, DRAWS_AT_ONCE):
        if run.over():
            return EvidenceSet(space, clues, counts, 2 * pairs, rows, False)
        some = min(DRAWS_AT_ONCE, pairs - start)
        t = rng.integers(0, rows, some, dtype=np.int32)
        u = rng.integers(0, rows - 1, some, dtype=np.int32)
        u += u >= t
        found = compared.of_pairs(t, u, counting=True)
        assert found.counts is not None
        clues, counts = merge_clues(np.concatenate([clues, found.clues]), np.concatenate([counts, found.counts]))
        if report is not None:
            report((start + some) / pairs)
    if not space.closed:
        clues, counts = merge_clues(cut_clues(clues, space.groups), counts)
    return EvidenceSet(space, clues, counts, 2 * pairs, rows, True)


def estimate_figures(
    relation: Relation, evidence: EvidenceSet, arrays: ConstraintArrays
) -> tuple[ConstraintArrays, Ranking, Estimate, list[str]]:
    """Figures of the constraints that `invert` found on sampled evidence, with notes.

    Rules about one row are counted on the whole table; those that exceed the error are dropped.

    Returns
    -------
    arrays : with counted violations (rules about one row) or, for estimated rules, those among the drawn ordered pairs
    ranking : g1 estimated; coverage from exact counts of each predicate and the estimated violations
    estimate, notes
    """
    space, rows, draws = evidence.space, relation.rows, evidence.ordered_pairs // 2
    arrays, dropped = _count_rules_about_rows(relation, space, arrays)
    estimated = ~arrays.one_row
    g1 = arrays.violations / np.where(estimated, evidence.ordered_pairs, rows)
    low, high = g1.copy(), g1.copy()
    violations, which = np.unique(arrays.violations[estimated], return_inverse=True)
    ends = np.array([interval(v / 2, draws) for v in violations.tolist()]).reshape(-1, 2)
    low[estimated], high[estimated] = ends[which].T
    ranking = rank_counted(arrays, space, table_outcome_counts(relation, space), rows, g1)
    notes = [
        f"g1 is estimated from {draws:,} random pairs of {rows * (rows - 1) // 2:,}: in the whole table a listed rule "
        "may break the error or not be minimal, and rules may be missing; each interval is meant for one rule by itself"
    ]
    if dropped:
        what = f"{dropped:,} rule{'' if dropped == 1 else 's'} about one row"
        notes.append(f"{what} held in the sample but not in the table, and {'is' if dropped == 1 else 'are'} left out")
    return arrays, ranking, Estimate(draws, CONFIDENCE, low, high, estimated), notes


def _count_rules_about_rows(
    relation: Relation, space: PredicateSpace, arrays: ConstraintArrays
) -> tuple[ConstraintArrays, int]:
    """Constraints with exact violations for those about one row, without those that exceed the error; and how many."""
    violations, kept = arrays.violations.copy(), np.ones(len(arrays), dtype=np.bool_)
    allowed = allowed_violations(space.options.error, relation.rows)
    for i in np.flatnonzero(arrays.one_row).tolist():
        violating = np.ones(relation.rows, dtype=np.bool_)
        for p in arrays.predicates[i, : arrays.sizes[i]].tolist():
            group = int(space.predicate_group[p])
            table = EXCLUDED_ORDERED if space.ordered[group] else EXCLUDED_UNORDERED
            excluded = np.array([table[space.predicate_operator[p]] >> o & 1 for o in range(3)] + [1], dtype=np.bool_)
            violating &= ~excluded[row_outcomes(relation, space, group)]
        violations[i] = np.count_nonzero(violating)
        kept[i] = violations[i] <= allowed
    return replace(arrays, violations=violations).take(kept), int(np.count_nonzero(~kept))


def interval(successes: float, draws: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share, given the number of successes in `draws` independent draws.

    At the lower end, the chance of that many or more successes is (1 - confidence) / 2; at the upper end, that is the
    chance of that many or fewer. Half successes are allowed (see above).

    Examples
    --------
    >>> [round(end, 4) for end in interval(5, 100)]
    [0.0164, 0.1128]
    """
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else _beta_quantile(tail, float(successes), float(draws - successes + 1))
    high = 1.0 if successes == draws else _beta_quantile(1 - tail, float(successes + 1), float(draws - successes))
    return low, high


@kernel("float64, float64, float64")
def _beta_quantile(share: float, a: float, b: float) -> float:
    """Quantile of the beta distribution with `share` of its mass below it, by bisection to twelve digits."""
    low, high = 0.0, 1.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _beta_below(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@helper
def _beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), 0 < x < 1.

    Evaluates the continued fraction (Abramowitz and Stegun, 26.5.8) by Lentz's method, on the side where it converges
    fast: in about sqrt(max(a, b)) steps.
    """
    if x > (a + 1) / (a + b + 2):
        above: float = _beta_below(1 - x, b, a)
        return 1 - above
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    value, c, d = 1.0, 1.0, 0.0
    for step in range(100_000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return scale * (value - 1)
