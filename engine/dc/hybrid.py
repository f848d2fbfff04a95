"""Denial constraints of large tables: the loop common to all discoveries, over atoms, validated by rule checking.

A candidate is a minimal hitting set of the atoms of the clues seen so far (inversion.py). Its equalities are the groups
for which it excludes every outcome but "equal"; a violating pair agrees on them. The sample decides candidates about
one row, because it has every row in a pair.

Rows that are equal on all columns of the predicate space are collapsed into one; such a class leaves the clue of a
pair of its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.bounded_search import what_shortens
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.found import OTHERS_MISSING, FoundConstraints, implied_by_missing
from tuplewise.engine.dc.inversion import ConstraintArrays, constraints_of
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.dc.violations.cardinalities import Cardinalities, cardinalities
from tuplewise.engine.dc.violations.count import count_pairs
from tuplewise.engine.dc.violations.existence import find_pairs
from tuplewise.engine.dc.violations.listing import pairs_in_order
from tuplewise.engine.dc.violations.planner import plan
from tuplewise.engine.dc.violations.program import Program, bind, without_unfit
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work, agreeing, start, two_of_each
from tuplewise.engine.local_table import LocalTable
from tuplewise.engine.loop import Clues, Loop, LoopTable, ValidatedCandidates
from tuplewise.engine.run import SEARCHING, TIME_LIMIT, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.hitting import extend_hitting_sets, mirrored, misses_some
from tuplewise.gpu_kernels.words import ClueLayout

WITNESSES = 64  # violating pairs returned for a violated candidate
CACHED_GROUPINGS = 8
# Effort of a validation, in the unit of `Vertices.effort`.
EASY_EFFORT = 4.0  # above this, candidates are decided by listing the pairs that satisfy a part of the predicates
MOST_EFFORT = 8.0  # cost of that listing
ROWS_A_COMBINATION = 4  # rows per combination of a candidate's values above which collapsing pays
LISTED_PAIRS_A_ROW = 40  # most estimated pairs of a part to list, per row
LISTED_AT_ONCE = 1 << 20
SEARCH_SHARE = 0.9  # of the time that is left: the rest is for what follows the search


def find(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device,
    run: Run,
    lap: Callable[[str], None],
    table: ValidatingTable | None = None,
) -> FoundConstraints:
    """Find the minimal denial constraints of a relation of two rows or more, exactly.

    Parameters
    ----------
    run : at its limits, the constraints decided so far are returned
    lap : called with a stage's name when some of its work is over
    table : table that holds the rows; None: in this process

    Notes
    -----
    Cost: rows for the sample; agreeing pairs of some column sets; rows log rows for each candidate that is validated;
    and the inversion. Memory: the codes twice, the distinct clues, the candidates.
    """
    searching = run.part(SEARCH_SHARE)
    rows = table or LocalDcTable(relation, space, device, searching)
    candidates = DcCandidates(space, searching.deadline)
    minded, hint = searching.minded(SEARCHING), what_shortens(space)

    def progress(share: float) -> None:
        run.found(len(candidates.sets), hint)
        minded(share)

    loop = Loop(rows, candidates, seed=space.options.seed, lap=lap, progress=progress)
    reached = loop.run()
    search = loop.report(relation.all_rows, relation.column_names)
    arrays = candidates.constraints(relation.all_rows, reached is None, run)
    reached = reached or (None if arrays.complete else TIME_LIMIT)
    return found_constraints(arrays, search, search["undecided"], reached, space)


def found_constraints(
    arrays: ConstraintArrays, search: dict[str, Any] | None, undecided: int, reached: str | None, space: PredicateSpace
) -> FoundConstraints:
    """Result of a search that the limit `reached` may have ended, with the number of undecided candidates."""
    if reached is not None and not len(arrays):
        reached = f"{reached} before any constraint was decided"
    elif reached is not None:
        left = f" with {undecided:,} candidates undecided" if undecided else ""
        reached = f"{reached}{left}: {OTHERS_MISSING}{implied_by_missing(space)}"
    return FoundConstraints(arrays, reached, search=search)


class ValidatingTable(LoopTable, Protocol):
    """A table that can also validate constraints."""

    def violating_clues(self, rules: Sequence[DenialConstraint], limit: int) -> tuple[list[Clues], NDArray[np.int32]]:
        """Clues of at most `limit` violating pairs of each constraint, none if it holds; and some of these pairs,
        int32 (pairs, 2), possibly none. Raises LimitReached."""

    def estimate_violations(self, rule: DenialConstraint) -> float:
        """Estimated number of ordered pairs that violate a constraint of equalities and at most two inequalities."""

    def all_violating_clues(self, rules: Sequence[DenialConstraint], most: int) -> list[Clues | None]:
        """New clues of all pairs that violate each such constraint; None if there are more than `most` pairs."""


class LocalDcTable(LocalTable):
    """A table in this process, with rule checking. `layout`: clue layout; None: that of the space."""

    def __init__(
        self,
        relation: Relation,
        space: PredicateSpace,
        device: Device,
        run: Run,
        layout: ClueLayout | None = None,
    ) -> None:
        self._relation = relation
        columns = sorted({int(c) for c in (*space.left, *space.right)}, key=lambda c: -relation.columns[c].distinct)
        super().__init__(
            relation.codes, columns, layout or space.layout, nulls=space.options.nulls, device=device,
            seed=space.options.seed, run=run,
        )  # fmt: skip

    def _take(self, codes: NDArray[np.int32], rows: NDArray[np.int32], doubled: NDArray[np.bool_]) -> None:
        super()._take(codes, rows, doubled)
        self._relation = replace(self._relation, codes=self.codes, positions=None)
        self._sample_relation = replace(self._relation, codes=self._sample_codes)
        self._groupings: dict[Any, ClusterPairs] = {}

    def violating_clues(self, rules: Sequence[DenialConstraint], limit: int) -> tuple[list[Clues], NDArray[np.int32]]:
        programs = [bind(rule, self._relation, self._nulls) for rule in rules]
        work, threads = self._shared_by(rules)
        sizes = cardinalities(self._relation)
        try:
            with ThreadPoolExecutor(threads) as pool:
                witnesses = list(pool.map(lambda program: self._witnesses(work, program, sizes, limit), programs))
        except TimeoutError as error:
            raise LimitReached(TIME_LIMIT) from error
        finally:
            self._groupings.clear()
        clues = []
        for pairs in witnesses:
            t, u = (np.ascontiguousarray(pairs[:, side], dtype=np.int32) for side in (0, 1))
            found = self._comparable.of_pairs(t, u, counting=True)
            self._noted(self._comparable.of_pairs(t, u))  # these clues count as met now
            clues.append(found.clues)
        rows = np.concatenate([np.zeros((0, 2), dtype=np.int32), *(p[:1] for p in witnesses if len(p))])
        return clues, rows[np.all(rows >= 0, axis=1)].astype(np.int32)

    def estimate_violations(self, rule: DenialConstraint) -> float:
        work = replace(self._work, codes=self._sample_codes)
        program = bind(rule, self._sample_relation, self._nulls)
        made = plan(program, cardinalities(self._sample_relation), self._relation.column_names)
        pairs = agreeing(work, without_unfit(work, program, start(work)), made.equalities, program.keep_nulls)
        return float(self._scale * count_pairs(work, made, pairs, program.keep_nulls))

    def all_violating_clues(self, rules: Sequence[DenialConstraint], most: int) -> list[Clues | None]:
        work, threads = self._shared_by(rules)
        try:
            with ThreadPoolExecutor(threads) as pool:
                return list(pool.map(lambda rule: self._all_violating(work, rule, most), rules))
        except TimeoutError as error:
            raise LimitReached(TIME_LIMIT) from error

    def _shared_by(self, rules: Sequence[DenialConstraint]) -> tuple[Work, int]:
        """How each of some constraints is checked, and how many of them at once."""
        threads = max(1, min(len(rules), usable_cores())) if self._work.device.kind == "cpu" else 1
        return (self._work if threads < 2 else replace(self._work, threads=1)), threads

    def _all_violating(self, work: Work, rule: DenialConstraint, most: int) -> Clues | None:
        program = bind(rule, self._relation, self._nulls)
        made = plan(program, cardinalities(self._relation), self._relation.column_names)
        as_left = np.zeros(self.rows, dtype=np.int64)
        pairs = agreeing(work, without_unfit(work, program, start(work)), made.equalities, program.keep_nulls)
        if count_pairs(work, made, pairs, program.keep_nulls, as_left) > most:
            return None
        found = [np.zeros((0, self._layout.words), dtype=np.uint64)]
        for listed in pairs_in_order(work, made, pairs, as_left, False, LISTED_AT_ONCE, LISTED_AT_ONCE):
            t, u = (np.ascontiguousarray(listed[:, side], dtype=np.int32) for side in (0, 1))
            found.append(self._noted(self._comparable.of_pairs(t, u)).clues)
        return np.concatenate(found)

    def _witnesses(self, work: Work, program: Program, sizes: Cardinalities, limit: int) -> NDArray[np.int64]:
        made = plan(program, sizes, self._relation.column_names)
        columns = program.columns
        if ROWS_A_COMBINATION * sizes.of(columns) < work.rows and (made.compared or made.excluded):
            chosen = two_of_each(work, columns)
            few = replace(work, codes=np.take(work.codes, chosen, axis=1))
            alike = agreeing(few, without_unfit(few, program, start(few)), made.equalities, program.keep_nulls)
            return chosen[find_pairs(few, made, alike, program.keep_nulls, limit)].astype(np.int64)
        key = (made.equalities, program.left_needed, program.right_needed, program.left_tests, program.right_tests)
        pairs = self._groupings.get(key)
        if pairs is None:
            pairs = agreeing(work, without_unfit(work, program, start(work)), made.equalities, program.keep_nulls)
            if len(self._groupings) < CACHED_GROUPINGS:
                self._groupings[key] = pairs
        return find_pairs(work, made, pairs, program.keep_nulls, limit)


class DcCandidates:
    """Minimal hitting sets of the known clues, and which of them are decided."""

    def __init__(self, space: PredicateSpace, deadline: float | None) -> None:
        self._space, self._deadline = space, deadline
        self._vertices = Vertices(space)
        words = self._vertices.words
        self._estimates: dict[DenialConstraint, float] = {}
        self._edges = np.zeros((0, words), dtype=np.uint64)
        self._sets = np.zeros((1, words), dtype=np.uint64)
        self._decided = np.zeros(1, dtype=np.bool_)
        self._exhausted: list[NDArray[np.uint64]] = []  # all pairs that satisfy these sets were compared
        self._listed: list[NDArray[np.uint64]] = []  # likewise, but their clues are still to be learnt

    @property
    def column_pairs(self) -> Sequence[tuple[int, int]]:
        return self._vertices.column_pairs

    @property
    def sets(self) -> Sets:
        """Candidates: minimal hitting sets, one of each mirror pair."""
        return self._sets

    @property
    def exhausted(self) -> Sets:
        """Sets of predicates, as vertices, whose satisfying pairs were all compared and their clues learnt."""
        return np.array(self._exhausted, dtype=np.uint64).reshape(-1, self._vertices.words)

    def learn(self, clues: Clues) -> None:
        if not len(clues):
            self._settle()
            return
        edges = self._vertices.edges_of(clues)
        found = extend_hitting_sets(
            self._sets, self._edges, edges, self._vertices.wanted, deadline=self._deadline
        )
        if not found.complete:
            raise LimitReached(TIME_LIMIT)
        new = found.kept < 0
        decided = np.zeros(len(new), dtype=np.bool_)
        decided[~new] = self._decided[found.kept[~new]]
        decided[new] = self._decided_by_comparing(found.sets[new])
        self._sets, self._decided = found.sets, decided
        self._edges = np.concatenate([self._edges, edges])
        self._settle()

    def _settle(self) -> None:
        """Mark listed sets as decided, now that their clues are learnt."""
        for vertices in self._listed:
            self._decide(vertices)
            if self._vertices.wanted.symmetric:
                self._decide(mirrored(vertices[None, :], self._vertices.wanted.mirror)[0])
        self._listed.clear()

    def undecided(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        open_ = self._sets[~self._decided]
        return self._vertices.agreements(open_), self._effort(open_)

    def weighed(
        self, table: ValidatingTable, undecided: NDArray[np.bool_], effort: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return effort

    def decide(self, column_pairs: Sequence[int]) -> int:
        return self._decide(self._vertices.equalities(list(column_pairs)))

    def _decide(self, vertices: NDArray[np.uint64]) -> int:
        self._exhausted.append(vertices)
        now = ~self._decided & np.all(self._sets & vertices == vertices, axis=1)
        self._decided |= now
        return int(np.count_nonzero(now))

    def validate(self, table: ValidatingTable, most: int) -> ValidatedCandidates:
        open_ = np.flatnonzero(~self._decided)
        effort = self._effort(self._sets[open_])
        cheapest = np.argsort(effort, kind="stable")[:most]
        easy = cheapest[effort[cheapest] <= EASY_EFFORT]
        if len(easy):
            return self._check(table, open_[easy], effort[easy])
        clues, left = self._list_parts(table, open_[cheapest])
        if not left:
            rows = np.zeros((0, 2), dtype=np.int32)
            return ValidatedCandidates(np.concatenate(clues), rows, len(cheapest), 0, float(effort[cheapest].sum()))
        checked = self._check(table, np.array(left), np.full(len(left), MOST_EFFORT))
        return replace(checked, clues=np.concatenate([*clues, checked.clues]))

    def _check(
        self, table: ValidatingTable, chosen: NDArray[np.int64], effort: NDArray[np.float64]
    ) -> ValidatedCandidates:
        """Check whole candidates."""
        clues, rows = table.violating_clues(self._vertices.rules(self._sets[chosen]), WITNESSES)
        holds = np.array([not len(c) for c in clues], dtype=np.bool_)
        self._decided[chosen[holds]] = True
        violated = int(np.count_nonzero(~holds))
        return ValidatedCandidates(np.concatenate(clues), rows, len(chosen), violated, float(effort.sum()))

    def _list_parts(self, table: ValidatingTable, chosen: NDArray[np.int64]) -> tuple[list[Clues], list[int]]:
        """List, for each candidate, the pairs that satisfy its equalities and two of its inequalities.

        Their clues decide the candidate and every other candidate with these predicates. Returns the clues, and the
        candidates with too many such pairs."""
        wanted: list[tuple[int, DenialConstraint]] = []
        covered: list[NDArray[np.uint64]] = []
        left: list[int] = []
        most = LISTED_PAIRS_A_ROW * table.rows
        for candidate, rule in zip(chosen.tolist(), self._vertices.rules(self._sets[chosen]), strict=True):
            if any(np.all(self._sets[candidate] & part == part) for part in covered):
                continue
            equal = [p for p in rule.predicates if p.operator == "==" and p.left_role != p.right_role]
            ordering = [p for p in rule.predicates if p.operator not in ("==", "!=") and p.left_role != p.right_role]
            parts = [DenialConstraint((*equal, *two)) for two in combinations(ordering, min(2, len(ordering)))]
            parts = [part for part in parts if part.predicates]
            estimates = [self._estimate(table, part) for part in parts]
            if not parts or min(estimates) > most:
                left.append(candidate)
                continue
            wanted.append((candidate, parts[int(np.argmin(estimates))]))
            covered.append(self._vertices.of_predicates(wanted[-1][1].predicates))
        found = table.all_violating_clues([part for _, part in wanted], 4 * most)
        for (candidate, rule), part, clues in zip(wanted, covered, found, strict=True):
            if clues is None:
                self._estimates[rule] = np.inf
                left.append(candidate)
            else:
                self._listed.append(part)
        return [clues for clues in found if clues is not None], left

    def _estimate(self, table: ValidatingTable, part: DenialConstraint) -> float:
        if part not in self._estimates:
            self._estimates[part] = table.estimate_violations(part)
        return self._estimates[part]

    def drop_violated(self, clues: Clues) -> None:
        kept = ~misses_some(self._sets, self._vertices.edges_of(clues), atoms=self._vertices.count)
        self._sets, self._decided = self._sets[kept], self._decided[kept]

    def constraints(self, rows: int, complete: bool, run: Run | None = None) -> ConstraintArrays:
        """The decided constraints, for a table of `rows` rows; see `constraints_of`."""
        sets = self._sets[self._decided]
        return constraints_of(sets, np.zeros(len(sets), dtype=np.int64), complete, self._space, rows, run)

    def _effort(self, sets: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Cost of deciding each set, in checks of at most two inequalities: float64 (sets,), at most MOST_EFFORT."""
        return np.minimum(self._vertices.effort(sets), MOST_EFFORT)

    def _decided_by_comparing(self, sets: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each set contains the equalities of an exhausted set, or is about one row."""
        decided = self._vertices.about_one_row(sets)
        for vertices in self._exhausted:
            decided |= np.all(sets & vertices == vertices, axis=1)
        return decided
