"""Dependencies level by level: HyOD as published, and those that hold but for some rows.

At level l are constancies and keys with contexts of l attributes, and pairs with contexts of l - 1: whether a pair is
minimal depends on the constancies of its own context. What is a candidate is settled by bits over all targets for each
context (gpu_kernels/lattice.py), so no work is done for a candidate in Python.

Source: Li, Li, Tan, Yang, "Efficient Set-based Order Dependency Discovery with a Level-wise Hybrid Strategy", ICDE
2023, algorithms 1 to 4: discovery on a sample, validation on the table of what holds there, and a sample that grows by
the tuples of the pairs that violate it. All its pruning rules are here: no context of a candidate contains one where
the target holds; none, for a pair, one where a side of it is constant; and none contains an attribute that the others
determine (TANE's rule, for pairs as well). Departures: a candidate is checked on the sample by trying first the pairs
of its rows that violated others (gpu_kernels/witnesses.py), which refute nearly all that can be refuted; C+ is kept for
contexts, not for unions of context and target, which prunes the same; keys are found alike, unless equal rows rule them
out, and dependencies that hold but for some rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.od.chance import Errors
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, KEY, Dependencies, Mask, Targets, mask_of
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.od.growing_sample import NULL_CODE, GrowingSample
from tuplewise.engine.run import SEARCHING, TIME_LIMIT, Run
from tuplewise.gpu_kernels.lattice import Lattice
from tuplewise.gpu_kernels.order import PartitionedRows
from tuplewise.gpu_kernels.witnesses import Witnesses
from tuplewise.gpu_kernels.words import as_masks, mask_words

SAMPLED_ROWS = 100  # of the first sample: the paper's
PAIRS_OF_A_VIOLATION = 10  # whose tuples join the sample: the paper's
CHECKED_AT_ONCE = 1 << 20  # candidates, on the sample
STEPS_AT_ONCE = 1 << 28  # rows times candidates, on the table: what a limit may waste
COUNTED_STEPS_AT_ONCE = 1 << 22  # the same where violating pairs are counted
ROWS_OF_PARTS = 1 << 17  # tables with as many rows have removals counted on parts of them first
PARTS = (1 / 32, 1 / 8, 1 / 3)  # shares of the rows


_Kept = tuple[Mask, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def find(
    codes: NDArray[np.int32],
    targets: Targets,
    *,
    nulls: Literal["unknown", "value"] = "value",
    device: Any = "auto",
    max_context: int | None = None,
    allowed_removals: int | None = None,
    errors: Errors | None = None,
    seed: int = 0,
    run: Run | None = None,
    lap: Callable[[str], None] | None = None,
) -> FoundDependencies:
    """The minimal contexts of each target, level by level.

    Parameters
    ----------
    codes : int32 (columns, rows), C order
        Order-preserving dense ranks, -1 is null.
    targets : any of them. Constancies that are among them prune pairs, as the paper's minimality wants.
    nulls : "value" (nulls are equal to each other, and first) or "unknown" (of keys and constancies only)
    device : "auto", "cpu", "cuda" or a Device
    max_context : contexts of more attributes are not looked at
    allowed_removals : a dependency holds where so many rows, or fewer, can be removed so that no pair violates it: all
        candidates are checked on the table, and `removals` says how many. None: none may be, found by way of a sample.
    errors : decides what holds instead, over all of the table; `removals` is said of what does. A dependency may hold
        while one with a larger context doesn't: found are those that hold while none with a part of their context does.
    seed : of the first sample; it changes how the result is found, not the result
    run : told of a share that is done, a guess. What is decided at its limits is returned: all of the levels that are
        done and, of the one that is not, what was validated.
    lap : called with "candidates", "sample" or "validation" when some of that work is over

    Raises
    ------
    ValueError
        Where pairs are looked for under "unknown", or arrays don't fit.

    Notes
    -----
    `search` of the result: for each level its candidates, how many were validated on the table, how many of these hold,
    and the rows of the sample they were checked on (the paper's figures 3a and 3b); and the sums of it.
    Cost: at worst 2^columns contexts for each target, each with a pass over the sample; rows for each that holds on it.
    Memory: a bit for each target of each context of two levels, and the codes twice.

    Examples
    --------
    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 2, 3], [1, 1, 0, 0]], dtype=np.int32)
    >>> found = find(codes, Targets.of_functional(3)).dependencies
    >>> found.contexts[:, 0].tolist(), found.left.tolist()  # {0} -> 2, {1} -> 0, {1} -> 2, {2} -> 0
    ([1, 2, 2, 4], [2, 0, 2, 0])
    """
    if nulls == "unknown" and np.any(targets.kind >= ASCENDING):
        raise ValueError("nulls: 'unknown' is for keys and constancies; allowed for pairs: 'value'")

    run = run or Run()
    exact = allowed_removals is None and errors is None
    sample = GrowingSample(codes, nulls, device, SAMPLED_ROWS if exact else 0, seed)
    most = len(codes) if max_context is None else max_context
    limits = _LevelwiseLimits(most, allowed_removals, errors, run.deadline, run.minded(SEARCHING))
    search = _LevelwiseSearch(sample, targets, limits, lap or (lambda stage: None))
    reached = None
    try:
        search.run()
    except LimitReached as limit:
        reached = str(limit)
    return search.found(reached)


@dataclass(frozen=True)
class _LevelwiseLimits:
    """As `find` takes them; `watch` is called with a share that is done."""

    max_context: int
    allowed_removals: int | None
    errors: Errors | None
    deadline: float | None
    watch: Callable[[float], None]

    @property
    def exact(self) -> bool:
        """Whether a dependency holds only where no pair of rows violates it."""
        return self.allowed_removals is None and self.errors is None


@dataclass(frozen=True, eq=False)
class _TargetSide:
    """Targets whose contexts have one size at a level. `lag`: what they have less than the level's number."""

    lag: int
    targets: Targets
    numbers: NDArray[np.int64]  # of these targets among all
    involved: Mask  # (attributes + 1, target words): the targets with an attribute, and, last, all of them
    lattice: Lattice
    witnesses: Witnesses

    @staticmethod
    def of(targets: Targets, numbers: NDArray[np.int64], sample: GrowingSample, lag: int) -> _TargetSide:
        attributes = len(sample.codes)
        flags = np.zeros((attributes + 1, len(numbers)), dtype=np.bool_)
        place = np.arange(len(numbers))
        for side in (targets.left, targets.right):
            has = side[numbers] >= 0
            flags[side[numbers][has], place[has]] = True
        flags[attributes] = True
        involved = as_masks(flags)
        lattice = Lattice(involved[:attributes], len(numbers))
        kind, left, right = targets.kind[numbers], targets.left[numbers], targets.right[numbers]
        return _TargetSide(
            lag, targets, numbers, involved, lattice, Witnesses(sample.codes, kind, left, right, nulls=sample.nulls)
        )

    def checks(
        self, rows: NDArray[np.int32], places: NDArray[np.int32]
    ) -> tuple[Mask, NDArray[np.int32], NDArray[np.int8], NDArray[np.int32], NDArray[np.int32]]:
        """What a check is told of candidates, rows ascending: contexts, which of them, kind, left and right."""
        first = np.diff(rows, prepend=np.int32(-1)) > 0
        which = (np.cumsum(first) - 1).astype(np.int32)
        number = self.numbers[places]
        of = self.targets
        return self.lattice.contexts[rows[first]], which, of.kind[number], of.left[number], of.right[number]


@dataclass(frozen=True, eq=False)
class _Constancies:
    """Those that were found with contexts of one size. `exact`: whether a context is no finer with the attribute."""

    contexts: Mask
    attributes: NDArray[np.int32]
    exact: NDArray[np.bool_]


class _LevelwiseSearch:
    """One search: the levels, what was found, and what is open at the level at hand."""

    def __init__(
        self, sample: GrowingSample, targets: Targets, limits: _LevelwiseLimits, lap: Callable[[str], None]
    ) -> None:
        attributes = len(sample.codes)
        self._rows, self._targets, self._limits, self._lap = sample, targets, limits, lap
        removing = limits.allowed_removals is not None and sample.rows >= ROWS_OF_PARTS
        self._parts = sample.parts(PARTS) if removing else []
        pairs = targets.kind >= ASCENDING
        self._functional = _TargetSide.of(targets, np.flatnonzero(~pairs), sample, 0)
        self._pairs = _TargetSide.of(targets, np.flatnonzero(pairs), sample, 1)
        # Under "unknown" a null in an attribute takes its row out of every class, whatever determines it.
        self._pruning = np.full(attributes, sample.nulls == "value") | ~np.any(sample.codes == NULL_CODE, axis=1)
        none = np.zeros(0, dtype=np.int64)
        # Contexts, numbers of targets, removals, errors
        self._kept: list[_Kept] = [
            (np.zeros((0, mask_words(attributes)), dtype=np.uint64), none, none, none.astype(np.float64))
        ]
        self._levels: list[dict[str, int]] = []
        self._undecided, self._violated = int(self._functional.lattice.counts().sum()), 0
        self._complete = -1  # all with contexts of at most so many attributes are decided
        self._done = 0.0

    def run(self) -> None:
        """All levels. Raises LimitReached; what was found by then holds and is minimal."""
        self._give_up_keys()
        level = 0
        before = self._constancies(0)  # with contexts of the size that those of pairs had
        while len(self._pairs.lattice) or len(self._functional.lattice):
            sides = [side for side in (self._pairs, self._functional) if level >= side.lag and len(side.lattice)]
            kept = len(self._kept)
            self._decide_level(level, sides)
            self._done += (1 - self._done) / 2
            now = self._constancies(kept)
            self._undecided = sum(int(side.lattice.counts().sum()) for side in sides)
            self._grow(self._functional, level + 1, now)
            if level:
                self._grow(self._pairs, level, before)
            self._pairs.lattice.strike(now.contexts, self._pairs.involved[now.attributes])
            self._lap("candidates")
            before, level = now, level + 1

    def _give_up_keys(self) -> None:
        """Where all columns together are no key, none is: no level need be looked at."""
        side, attributes = self._functional, len(self._rows.codes)
        keys = np.flatnonzero(self._targets.kind[side.numbers] == KEY)
        if not len(keys) or self._limits.errors is not None:  # relative to chance, a part of them may be one
            return
        every = mask_of(range(attributes), mask_words(attributes))[None, :]
        nothing = np.full(1, -1, dtype=np.int32)
        allowed = self._limits.allowed_removals or 0
        counted = self._rows.table.removals(
            every, np.zeros(1, dtype=np.int32), np.full(1, KEY, dtype=np.int8), nothing, nothing,
            most=allowed, deadline=self._limits.deadline,
        )  # fmt: skip
        if not counted.complete:
            raise LimitReached(TIME_LIMIT)
        if counted.rows[0] > allowed:
            side.lattice.strike(np.zeros_like(every), mask_of(keys.tolist(), side.involved.shape[1])[None, :])

    def found(self, reached: str | None) -> FoundDependencies:
        """What was found."""
        contexts, numbers, counted, error_values = self._since(0)
        found = Dependencies.of(contexts, self._targets, numbers)
        result = found.in_result_order()
        removals, errors = np.empty_like(counted), np.empty_like(error_values)
        listed, came = _any_order(result), _any_order(found)
        removals[listed], errors[listed] = counted[came], error_values[came]
        search = {
            "levels": self._levels,
            "sample_rows": self._rows.sampled,
            "checked_on_sample": self._sum("candidates") if self._limits.exact else 0,
            "validated": self._sum("validated"),
            "violated": self._violated,
        }
        return FoundDependencies(
            result,
            self._undecided if reached else 0,
            search,
            reached,
            removals=None if self._limits.exact else removals,
            errors=None if self._limits.errors is None else errors,
            complete_context=self._complete,
        )

    def _sum(self, figure: str) -> int:
        return sum(level[figure] for level in self._levels)

    def _watch(self, share: float) -> None:
        self._limits.watch(self._done + share * (1 - self._done) / 2)

    def _grow(self, side: _TargetSide, size: int, constancies: _Constancies) -> None:
        """To contexts of one more attribute, without those in which one is determined by the others."""
        if size > self._limits.max_context:
            side.lattice.end()
            return
        if not side.lattice.grow(deadline=self._limits.deadline, progress=self._watch):
            raise LimitReached(TIME_LIMIT)
        contexts, attributes = constancies.contexts[constancies.exact], constancies.attributes[constancies.exact]
        whole = contexts.copy()
        whole[np.arange(len(whole)), attributes // 64] |= np.uint64(1) << (attributes % 64).astype(np.uint64)
        side.lattice.strike(whole, np.repeat(side.involved[-1:], len(whole), axis=0))

    def _constancies(self, first: int) -> _Constancies:
        """Those among what was kept from some place on."""
        contexts, numbers, removals, _ = self._since(first)
        wanted = self._targets.kind[numbers] == CONSTANT
        attributes = self._targets.left[numbers[wanted]]
        return _Constancies(contexts[wanted], attributes, (removals[wanted] == 0) & self._pruning[attributes])

    def _since(self, first: int) -> _Kept:
        """What was kept from some place on."""
        contexts, numbers, removals, errors = zip(self._kept[0], *self._kept[first:], strict=True)
        return np.concatenate(contexts), np.concatenate(numbers), np.concatenate(removals), np.concatenate(errors)

    def _decide_level(self, level: int, sides: list[_TargetSide]) -> None:
        candidates = sum(int(side.lattice.counts().sum()) for side in sides)
        self._undecided = candidates
        figures = {"level": level, "candidates": candidates, "validated": 0, "valid": 0}
        figures["sample_rows"] = self._rows.sampled
        self._levels.append(figures)
        if self._limits.exact:
            held = [self._discover(side) for side in sides]
            self._lap("sample")
            for side, (rows, places) in zip(sides, held, strict=True):
                self._validate(side, rows, places, figures)
                self._is_decided(side, level)
        else:
            for side in sides:
                for block in side.lattice.blocks(self._at_once):
                    self._count(side, *side.lattice.candidates(*block), figures)
                self._is_decided(side, level)
        self._lap("validation")

    def _is_decided(self, side: _TargetSide, level: int) -> None:
        """A side has no candidates left at this level. Pairs, as long as there are any, are the last of a size."""
        if side is self._pairs or not len(self._pairs.lattice):
            self._complete = level - side.lag

    @property
    def _at_once(self) -> int:
        """Candidates that are checked on the table at once."""
        steps = STEPS_AT_ONCE if self._limits.errors is None else COUNTED_STEPS_AT_ONCE
        return max(64, steps // max(1, self._rows.rows))

    def _discover(self, side: _TargetSide) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The candidates that hold on the sample (algorithm 2)."""
        held = [(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))]
        for first, last in side.lattice.blocks(CHECKED_AT_ONCE):
            self._watch(first / len(side.lattice))
            open_ = side.lattice.open[first:last]
            unrefuted = side.witnesses.unrefuted(side.lattice.contexts[first:last], open_)
            rows, places = side.lattice.candidates(first, last, unrefuted)
            checked = self._rows.sample.check(
                *side.checks(rows, places), limit=1, deadline=self._limits.deadline, progress=self._watch
            )
            if not checked.complete:
                raise LimitReached(TIME_LIMIT)
            held.append((rows[checked.holds], places[checked.holds]))
            self._undecided -= int(np.bitwise_count(open_).sum()) - len(held[-1][0])
            self._learn(self._rows.numbers[checked.pairs])
        return np.concatenate([rows for rows, _ in held]), np.concatenate([places for _, places in held])

    def _learn(self, pairs: NDArray[np.int32]) -> None:
        """Pairs of rows that violate something."""
        for side in (self._functional, self._pairs):
            side.witnesses.add(pairs)

    def _validate(
        self, side: _TargetSide, rows: NDArray[np.int32], places: NDArray[np.int32], figures: dict[str, int]
    ) -> None:
        """Check them on the table; tuples of pairs that violate one join the sample (algorithm 4)."""
        for first in range(0, len(rows), self._at_once):
            part = slice(first, first + self._at_once)
            checked = self._rows.table.check(
                *side.checks(rows[part], places[part]),
                limit=PAIRS_OF_A_VIOLATION, deadline=self._limits.deadline, progress=self._watch,
            )  # fmt: skip
            if not checked.complete:
                raise LimitReached(TIME_LIMIT)
            self._rows.add(checked.pairs.ravel())
            self._learn(checked.pairs)
            self._keep(side, rows[part], places[part], checked.holds, figures)

    def _count(
        self, side: _TargetSide, rows: NDArray[np.int32], places: NDArray[np.int32], figures: dict[str, int]
    ) -> None:
        """Count on the table what is in their way.

        A part of the table needs no more removals than the table, and most candidates need too many on a small part.
        """
        table = self._rows.table
        if self._limits.errors is None:
            allowed = self._limits.allowed_removals or 0
            for part in self._parts:
                many = self._removals(part, side, rows, places, allowed) > allowed
                self._keep(side, rows[many], places[many], ~many[many], figures)
                rows, places = rows[~many], places[~many]
            removals = self._removals(table, side, rows, places, allowed)
            self._keep(side, rows, places, removals <= allowed, figures, removals)
            return
        self._watch(0.0)
        holds, errors = self._limits.errors.judge(*side.checks(rows, places))
        removals = np.zeros(len(rows), dtype=np.int64)
        removals[holds] = self._removals(table, side, rows[holds], places[holds], None)
        self._keep(side, rows, places, holds, figures, removals, errors)

    def _removals(
        self,
        table: PartitionedRows,
        side: _TargetSide,
        rows: NDArray[np.int32],
        places: NDArray[np.int32],
        most: int | None,
    ) -> NDArray[np.int64]:
        """How many rows of a table are in their way. Raises LimitReached."""
        checks = side.checks(rows, places)
        counted = table.removals(*checks, most=most, deadline=self._limits.deadline, progress=self._watch)
        if not counted.complete:
            raise LimitReached(TIME_LIMIT)
        return counted.rows

    def _keep(
        self,
        side: _TargetSide,
        rows: NDArray[np.int32],
        places: NDArray[np.int32],
        holds: NDArray[np.bool_],
        figures: dict[str, int],
        removals: NDArray[np.int64] | None = None,
        errors: NDArray[np.float64] | None = None,
    ) -> None:
        """Take note of what was decided on the table."""
        none = np.zeros(len(holds), dtype=np.int64)
        removals = none if removals is None else removals
        errors = none.astype(np.float64) if errors is None else errors
        contexts, numbers = side.lattice.contexts[rows[holds]], side.numbers[places[holds]]
        self._kept.append((contexts, numbers, removals[holds], errors[holds]))
        side.lattice.close(rows[holds], places[holds])
        valid = int(np.count_nonzero(holds))
        figures["validated"] += len(rows)
        figures["valid"] += valid
        self._violated += len(rows) - valid
        self._undecided -= len(rows)


def _any_order(dependencies: Dependencies) -> NDArray[np.int64]:
    """An order that is the same for the same dependencies, whatever order they come in."""
    return np.lexsort((dependencies.kind, dependencies.left, dependencies.right, *dependencies.contexts.T))
