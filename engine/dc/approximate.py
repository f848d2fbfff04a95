"""Approximate denial constraints of large tables, with exact g1: a sample proposes them, the table counts them.

A constraint holds at error E where at most B = floor(E n (n - 1)) of the n (n - 1) ordered pairs violate it. N pairs
are drawn at random. Candidates are the minimal sets that at most `most_in_sample` of their 2 N ordered pairs violate.
That bound is above E, so far that a constraint that holds is above it with a chance of at most FAILURE, for all
constraints of the space together. Every candidate is then counted on the whole table:

- where it names columns of few values only: rows that are equal on these columns are taken as one with a weight, and
  all pairs of the few that are left are compared once;
- where all pairs that agree on some columns were compared and counted: for all candidates with these equalities at once
  (a violating pair agrees on them), by one pass over their distinct clues;
- else alone, by the joins of rule checking.

A candidate with more than B violations is refuted, and so is each of its subsets: what holds has a vertex outside. So
the complement of a refuted set is a new edge, too heavy to stay unhit, and the search is repeated, until all minimal
sets are counted and hold. A constraint that holds contains one of them, and they are minimal, so they are the result.

Source: notes on large tables of this project. Comparing agreeing pairs and validating the rest is the loop of exact
discoveries (`engine.loop`); the weighted search is that of `gpu_kernels.cpu.hitting_weighted`. Bound: W. Hoeffding,
"Probability inequalities for sums of bounded random variables", JASA 58, 1963, theorem 1: a drawn pair adds 0, 1/2 or 1
to the share of its two orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.column_sets import best_set, list_subsets, unpacked
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.estimate import sampled_evidence
from tuplewise.engine.dc.evidence import EvidenceSet
from tuplewise.engine.dc.found import OTHERS_MISSING, FoundConstraints, implied_by_missing
from tuplewise.engine.dc.inversion import ConstraintArrays, constraints_of, invert
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.dc.violations.detect import check_rules
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing, collapse_weighted, start
from tuplewise.engine.local_table import ESTIMATE_ROWS, count_agreeing
from tuplewise.engine.loop import MOST_COLUMN_PAIRS
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.run import SEARCHING, TIME_LIMIT, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.evidence import collect_clues
from tuplewise.gpu_kernels.hitting import minimal_hitting_sets, mirrored, missed_weights

FAILURE = 1e-9
COMPLETE = f"the listed g1 are exact; the chance, over the seed, that a constraint is missing is below {FAILURE:g}"
# Drawn pairs: enough that EXPECTED of them violate a constraint at the error, within these bounds.
EXPECTED = 200
FEWEST_DRAWS, MOST_DRAWS = 2_000_000, 10_000_000
# Seconds of one core; they are constants, so that the same table is searched in the same way each time.
SECONDS_A_ROW = 2.5e-6  # to compare the agreeing pairs of a column set: for each row, and for each pair
SECONDS_A_PAIR = 5e-9
SECONDS_A_CHECKED_ROW = 3e-7  # to check one candidate of the cheapest kind
SECONDS_A_WEIGHTED_PAIR = 1.5e-8
MOST_COMBINATIONS = 12_000  # of values of the columns of few values, in the rows that estimates come from
CHECKED_AT_ONCE = 64


def find(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device,
    run: Run,
    lap: Callable[[str], None],
    draws: int | None = None,
) -> FoundConstraints:
    """Find the minimal constraints of a relation of two rows or more that hold at the error of the space's options.

    Parameters
    ----------
    run : at its limits, the constraints that are counted by then are returned
    lap : called with a stage's name when some of its work is over
    draws : drawn pairs; None: `draws_for` the error

    Returns
    -------
    FoundConstraints
        Its violations are exact. With a chance of at most FAILURE, over the seed, constraints are missing or not
        minimal.

    Notes
    -----
    Cost: the sample; for each round the weighted search on its distinct clues; the agreeing pairs of some column sets;
    about rows log rows for each candidate that is checked alone. Memory: the codes twice, and distinct clues.
    """
    options = space.options
    seen = None
    try:
        sample = sampled_evidence(
            relation, space, draws or draws_for(options.error), options.seed, device, run=run
        )
        if not sample.complete:
            raise LimitReached(TIME_LIMIT)
        lap("sample")
        if sample.ordered_pairs == relation.rows * (relation.rows - 1):  # a small table: all pairs were compared
            arrays = invert(sample, run)
            lap("inversion")
            reached = None if arrays.complete else f"{TIME_LIMIT} while constraints were searched: {OTHERS_MISSING}"
            return FoundConstraints(arrays, reached, len(sample), outcome_counts=sample.outcome_counts)
        seen = _Search(relation, sample, device, run, lap)
        seen.run()
    except LimitReached as limit:
        if seen is None:
            return FoundConstraints(ConstraintArrays.none(False), f"{limit} before any constraint was counted")
        reached = f"{limit} with {seen.open:,} candidates not counted: {OTHERS_MISSING}{implied_by_missing(space)}"
        return FoundConstraints(seen.constraints(complete=False), reached, search=seen.report())
    return FoundConstraints(seen.constraints(complete=True), search=seen.report(), notes=[COMPLETE])


def draws_for(error: Decimal) -> int:
    """Number of pairs to draw for an error above 0.

    Examples
    --------
    >>> draws_for(Decimal("0.00005")), draws_for(Decimal("1e-6")), draws_for(Decimal("0.01"))
    (4000000, 10000000, 2000000)
    """
    return int(min(max(EXPECTED / error, Decimal(FEWEST_DRAWS)), Decimal(MOST_DRAWS)))


def most_in_sample(error: Decimal, draws: int, log_constraints: float) -> int:
    """The most violating ordered pairs, of the 2 * draws of a sample, that a candidate has.

    Of exp(log_constraints) constraints that hold at the error, one or more have more of them with a chance of at most
    FAILURE: with p = error and a = share of violating pairs in the sample, that of each is at most
    exp(-draws * (a ln(a / p) + (1 - a) ln((1 - a) / (1 - p)))) (Hoeffding, theorem 1).

    Examples
    --------
    >>> most_in_sample(Decimal("0.01"), 100_000, 10.0)
    2513
    """
    p, wanted = float(error), log_constraints - math.log(FAILURE)
    low, high = p, 1.0
    for _ in range(60):
        a = (low + high) / 2
        divergence = a * math.log(a / p) + (1 - a) * math.log((1 - a) / (1 - p)) if a < 1 else -math.log(p)
        low, high = (low, a) if draws * divergence >= wanted else (a, high)
    return min(2 * draws, math.ceil(high * 2 * draws))


def _log_constraints(space: PredicateSpace) -> float:
    """Logarithm of a number that the space has no more constraints than: in each group no predicate or one of them, or
    as many patterns of excluded outcomes."""
    return float(np.log(np.diff(space.first_predicate) + 1.0).sum())


@dataclass(frozen=True, eq=False)
class Region:
    """All pairs that agree on some columns, counted.

    Attributes
    ----------
    equalities : uint64 (words,), vertices of the equalities, which its sets contain
    known : uint64 (words,), vertices that clues tell of; its sets contain no other
    edges, weights : uint64 (edges, words), int64 (edges,): the edge of each distinct clue, and its number of pairs
    """

    equalities: NDArray[np.uint64]
    known: NDArray[np.uint64]
    edges: Sets
    weights: NDArray[np.int64]

    def apart(self, sets: Sets) -> tuple[Sets, Sets]:
        """The sets whose violating pairs are all among the region's, and the others."""
        inside = np.all((sets & self.equalities == self.equalities) & (sets & ~self.known == 0), axis=1)
        return sets[inside], sets[~inside]

    def violations(self, sets: Sets) -> NDArray[np.int64]:
        """Number of pairs that violate each set of the region, int64 (sets,)."""
        return missed_weights(sets, self.edges, self.weights)


class _Search:
    """The search for sets that hold: rounds of proposing, counting and refuting."""

    def __init__(
        self,
        relation: Relation,
        sample: EvidenceSet,
        device: Device,
        run: Run,
        lap: Callable[[str], None],
    ) -> None:
        self._space, self._relation, self._run, self._lap = sample.space, relation, run, lap
        self._sample, self._mind = sample, run.minded(SEARCHING)
        self._vertices = Vertices(self._space)
        self._edges, self._weights = self._vertices.edges_of_evidence(sample.clues), sample.counts
        error, draws = self._space.options.error, sample.ordered_pairs // 2
        self._most = most_in_sample(error, draws, _log_constraints(self._space))
        self._budget = allowed_violations(error, relation.rows * (relation.rows - 1))
        self._counts = ViolationCounts(relation, self._vertices, device, run)
        self._known: dict[bytes, int] = {}
        self._refuted: list[NDArray[np.uint64]] = []
        self._sets: Sets = np.zeros((0, self._vertices.words), dtype=np.uint64)
        self._rounds = 0

    @property
    def open(self) -> int:
        """Number of candidates that are not counted."""
        return sum(one.tobytes() not in self._known for one in self._sets)

    def run(self) -> None:
        """Count and refute until every candidate holds. Raises LimitReached."""
        while True:
            self._rounds += 1
            self._sets = self._propose()
            self._lap("inversion")
            uncounted = np.array([one.tobytes() not in self._known for one in self._sets], dtype=np.bool_)
            if not uncounted.any():
                return
            self._mind(1.0 / (1.0 + np.count_nonzero(uncounted)))
            for sets, violations in self._counts.of(self._sets[uncounted], self._lap):
                self._known.update((one.tobytes(), n) for one, n in zip(sets, violations.tolist(), strict=True))
                self._refuted.extend(sets[violations > self._budget])

    def _propose(self) -> Sets:
        """The minimal sets that the sample allows and no refuted set contains."""
        edges, weights = self._edges, self._weights
        if self._refuted:
            refuted = np.array(self._refuted)
            if self._vertices.wanted.symmetric:
                refuted = np.concatenate([refuted, mirrored(refuted, self._vertices.wanted.mirror)])
            outside = np.unique(self._vertices.every & ~refuted, axis=0)
            edges = np.concatenate([edges, outside])
            weights = np.concatenate([weights, np.full(len(outside), self._most + 1, dtype=np.int64)])
        found = minimal_hitting_sets(
            edges, self._vertices.wanted, weights=weights, budget=self._most, deadline=self._run.deadline,
            progress=self._run.stage(SEARCHING),
        )  # fmt: skip
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        return found.sets

    def constraints(self, complete: bool) -> ConstraintArrays:
        """The candidates that are counted and hold."""
        violations = np.array([self._known.get(one.tobytes(), self._budget + 1) for one in self._sets], dtype=np.int64)
        holds = violations <= self._budget
        return constraints_of(self._sets[holds], violations[holds], complete, self._space, self._relation.rows)

    def report(self) -> dict[str, Any]:
        """What results say about the search (result.search in JSON)."""
        rows, counts, names = self._relation.rows, self._counts, self._relation.column_names
        compared = sum(pairs for _, pairs, _ in counts.column_sets)
        return {
            "sampled_pairs": self._sample.ordered_pairs // 2,
            "failure_chance": FAILURE,
            "compared_pairs": compared,
            "share_of_pairs": compared / (rows * (rows - 1) // 2),
            "rounds": self._rounds,
            "column_sets": [
                {"columns": [[names[c], names[c]] for c in columns], "pairs": pairs, "decided": decided}
                for columns, pairs, decided in counts.column_sets
            ],
            "few_values": {
                "columns": [names[c] for c in counts.few],
                "combinations": counts.combinations,
                "decided": counts.decided_by_few,
            },
            "validated": counts.checked,
            "violated": len(self._refuted),
            "undecided": self.open,
        }


class ViolationCounts:
    """Exact numbers of pairs that violate sets of vertices, on a table in this process.

    Attributes
    ----------
    column_sets : columns, compared unordered pairs and counted sets of each region, in order
    few, combinations : the columns of few values, and how many combinations of values they have
    decided_by_few : number of sets that were counted on these combinations
    checked : number of sets that were counted alone
    """

    def __init__(self, relation: Relation, vertices: Vertices, device: Device, run: Run) -> None:
        self._relation, self._vertices, self._device, self._run = relation, vertices, device, run
        self._options = vertices.space.options
        self._regions: list[Region] = []
        self._collapsed: Region | None = None  # of the columns of few values
        self.column_sets: list[tuple[tuple[int, ...], int, int]] = []
        self.checked = self.decided_by_few = 0
        # Equalities of two columns are left to checking: their groups are no sets of rows.
        same = [place for place, (a, b) in enumerate(vertices.column_pairs) if a == b]
        self._columns = {place: vertices.column_pairs[place][0] for place in same}
        self._with_itself = np.zeros(len(vertices.column_pairs), dtype=np.bool_)
        self._with_itself[same] = True
        chosen = np.random.default_rng(self._options.seed).permutation(relation.rows)[:ESTIMATE_ROWS]
        self._sample = np.ascontiguousarray(relation.codes[:, chosen].T)
        self._estimates: dict[int, float] = {}
        self.few = self._columns_of_few_values()
        self._classes = collapse_weighted(relation.codes, self.few, device)
        self.combinations = len(self._classes[0])

    def _columns_of_few_values(self) -> list[int]:
        """Columns with few combinations of values in sampled rows: one at a time, that which adds fewest."""
        few: list[int] = []
        left = self._vertices.space.columns.tolist()
        numbers = np.zeros(len(self._sample), dtype=np.int64)  # of each row's combination
        while left:
            counts = [len(np.unique(self._combined(numbers, column))) for column in left]
            if min(counts) > MOST_COMBINATIONS:
                break
            few.append(left.pop(int(np.argmin(counts))))
            numbers = np.unique(self._combined(numbers, few[-1]), return_inverse=True)[1]
        return few

    def _combined(self, numbers: NDArray[np.int64], column: int) -> NDArray[np.int64]:
        """Keys of the combinations with one more column, of sampled rows."""
        values = self._sample[:, column].astype(np.int64) + 1
        return numbers * (int(values.max(initial=0)) + 1) + values

    def of(self, sets: Sets, lap: Callable[[str], None]) -> Any:
        """Yield portions of the sets, uint64 (k, words), with their violations, int64 (k,). Raises LimitReached."""
        yield from self._everything(sets)
        sets = sets[sets.any(axis=1)]
        if self._collapsed is None and self._collapsing_pays(sets):
            self._collapsed = self._collapse()
            lap("exhaust")
        if self._collapsed is not None:
            inside, sets = self._collapsed.apart(sets)
            self.decided_by_few += len(inside)
            yield inside, self._collapsed.violations(inside)
        for region in self._regions:
            inside, sets = region.apart(sets)
            yield inside, region.violations(inside)
        while (chosen := self._choose(sets)) is not None:
            region = self._compare(chosen)
            self._regions.append(region)
            inside, sets = region.apart(sets)
            columns, pairs = tuple(self._columns[place] for place in chosen), int(region.weights.sum()) // 2
            self.column_sets.append((columns, pairs, len(inside)))
            yield inside, region.violations(inside)
            lap("exhaust")
        for first in range(0, len(sets), CHECKED_AT_ONCE):
            some = sets[first : first + CHECKED_AT_ONCE]
            yield some, self._check(self._vertices.rules(some))
            lap("validation")

    def _everything(self, sets: Sets) -> Any:
        """The set of no vertex, which all pairs violate."""
        empty = sets[~sets.any(axis=1)]
        yield empty, np.full(len(empty), self._relation.rows * (self._relation.rows - 1), dtype=np.int64)

    def _collapsing_pays(self, sets: Sets) -> bool:
        """Whether comparing the combinations of columns of few values costs less than checking the sets about them."""
        about = np.all(sets & ~self._vertices.about(self.few) == 0, axis=1)
        checks = float(self._vertices.effort(sets[about]).sum()) * SECONDS_A_CHECKED_ROW * self._relation.rows
        return checks > SECONDS_A_WEIGHTED_PAIR * self.combinations**2 / 2

    def _collapse(self) -> Region:
        """Count the clues of all pairs, on the columns of few values: of one row of each class of equal ones."""
        codes = np.zeros_like(self._relation.codes)  # other columns are equal in all rows, and not known
        codes[self.few] = self._relation.codes[self.few]
        rows, weights = self._classes
        order = np.lexsort(codes[:, rows][self.few[::-1]])  # neighbours then leave the same clues
        rows, weights = rows[order], weights[order]
        compared = lay_out(
            np.ascontiguousarray(codes[:, rows]), self._vertices.space.layout, nulls=self._options.nulls,
            device=self._device,
        )  # fmt: skip
        found = compared.of_weighted_rows(
            weights, deadline=self._run.deadline, progress=self._run.stage(SEARCHING)
        )
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        assert found.counts is not None
        edges, weights = self._vertices.weighted_edges_of(found.clues, found.counts)
        return Region(self._vertices.equalities([]), self._vertices.about(self.few), edges, weights)

    def _choose(self, sets: Sets) -> tuple[int, ...] | None:
        """Places of the equalities whose agreeing pairs save most checks for their price; None where none saves."""
        if not len(sets):
            return None
        has = self._vertices.agreements(sets) & self._with_itself
        codes, owners = list_subsets(np.ascontiguousarray(has), MOST_COLUMN_PAIRS)
        codes, place = np.unique(codes, return_inverse=True)
        saved = self._vertices.effort(sets) * (SECONDS_A_CHECKED_ROW * self._relation.rows)
        savings = np.bincount(place, weights=saved[owners]).astype(np.float64, copy=False)
        pairs = np.array([self._estimates.get(code, np.nan) for code in codes.tolist()], dtype=np.float64)
        best = best_set(codes, savings, pairs, self._price, self._estimate)
        return None if best is None else unpacked(int(codes[best]))

    def _price(self, pairs: Any) -> Any:
        """Seconds of comparing so many agreeing pairs."""
        return SECONDS_A_ROW * self._relation.rows + SECONDS_A_PAIR * pairs

    def _estimate(self, code: int) -> float:
        """About how many unordered pairs agree on a packed set."""
        if code not in self._estimates:
            columns = np.array([self._columns[place] for place in unpacked(code)], dtype=np.int64)
            rows, sampled = self._relation.rows, len(self._sample)
            agreeing_pairs = count_agreeing(self._sample, columns, self._options.nulls == "value")
            self._estimates[code] = agreeing_pairs * (rows * (rows - 1) / max(1, sampled * (sampled - 1)))
        return self._estimates[code]

    def _compare(self, chosen: Sequence[int]) -> Region:
        """Count the clues of all pairs that agree on some column pairs, given by place."""
        work = Work(self._relation.codes, self._device, deadline=self._run.deadline)
        equalities = [(self._columns[place], self._columns[place]) for place in chosen]
        alike = agreeing(work, start(work), equalities, self._options.nulls == "value")
        found = collect_clues(
            self._relation.codes, self._vertices.space.layout, nulls=self._options.nulls, members=alike.left,
            group_offsets=alike.left_offsets, device=self._device, deadline=self._run.deadline,
            progress=self._run.stage(SEARCHING),
        )  # fmt: skip
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        assert found.counts is not None
        edges, weights = self._vertices.weighted_edges_of(found.clues, found.counts)
        return Region(self._vertices.equalities(list(chosen)), self._vertices.every, edges, weights)

    def _check(self, rules: list[DenialConstraint]) -> NDArray[np.int64]:
        """Count each rule alone, by rule checking: violating ordered pairs."""
        options = DcCheckOptions(count_only=True, nulls=self._options.nulls, device=self._options.device)
        checked = check_rules(self._relation, rules, options, self._run)
        found = np.zeros(len(rules), dtype=np.int64)
        for i, rule in enumerate(checked.rules):
            if rule.violating_pairs is None:
                raise LimitReached(TIME_LIMIT if self._run.over() else "memory limit reached")
            found[i] = rule.violating_pairs * (self._relation.rows - 1 if rule.one_row else 1)
        self.checked += len(rules)
        return found
