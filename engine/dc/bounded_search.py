"""The search for minimal hitting sets that may not end: what it says meanwhile, and what it leaves at a time limit.

Where a time limit is sure to come first, all sets of few groups (constraints of few predicates) are searched, then
those of one more, and so on: what is found by then is the shortest. The time that is left is for what comes after.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.workload import duration
from tuplewise.engine.errors import Wording, joined
from tuplewise.engine.run import Run
from tuplewise.gpu_kernels.hitting import HittingSets, minimal_hitting_sets
from tuplewise.gpu_kernels.hitting_types import Wanted

# Shares of the time that is left when the search begins.
SEARCH_SHARE = 0.55  # the search ends then: each set that it finds costs more in what comes after
WHOLE_SHARE = 0.2  # by then, a search that is not LIKELY_SHARE done gives way to one by size
LIKELY_SHARE = 0.35
FEWEST_FOUND = 100  # nor does it before it has found so many: those of few groups may be none
FEWEST_GROUPS = 3  # sets of so few are searched together

FORECAST_AFTER_SECONDS = 3.0
LATER = 4  # times as long until another forecast, where the first is of few sets
FORECAST_SHARE = 0.3  # of the time so far goes into inverting samples of clues
FIRST_SAMPLE = 32  # clues
MANY_SETS = 100_000
LONG_SECONDS = 60.0
FEWEST_TIMED = 1000  # sets found in FORECAST_AFTER_SECONDS that tell how long others take


@dataclass(frozen=True, eq=False)
class Searched:
    """The result of a search.

    Attributes
    ----------
    sets, uncovered, complete : see HittingSets; a set or its mirror may be there twice unless the search is complete
    all_of : number of groups up to which all sets were found
    """

    sets: NDArray[np.uint64]
    uncovered: NDArray[np.int64]
    complete: bool
    all_of: int = 0


def search(
    edges: NDArray[np.uint64],
    wanted: Wanted,
    run: Run,
    *,
    hint: str,
    weights: NDArray[np.int64] | None,
    find: Callable[..., HittingSets],
) -> Searched:
    """Find the minimal hitting sets; where the run has a deadline, those of few groups first.

    Parameters
    ----------
    hint : what would shorten the search, from `what_shortens`
    weights : of the edges, if sets may leave some of them unhit
    find : `minimal_hitting_sets` with what it takes besides edges, wanted, deadline and watch
    """
    ends = run.part(SEARCH_SHARE).deadline
    decides = None if wanted.max_groups <= FEWEST_GROUPS else run.part(WHOLE_SHARE).deadline
    watch = _Watch(edges, wanted, run, decides, hint=hint, forecasts=weights is None and ends is None)
    found = find(edges, wanted, deadline=ends, watch=watch)
    if found.complete or ends is None:
        return Searched(found.sets, found.uncovered, found.complete, wanted.max_groups if found.complete else 0)
    parts, all_of = [found], 0
    for groups in range(min(FEWEST_GROUPS, wanted.max_groups), wanted.max_groups + 1):
        if time.monotonic() >= ends:
            break
        smaller = find(edges, wanted._replace(max_groups=groups), deadline=ends, watch=watch)
        if smaller.complete:
            parts[1:] = []  # what was found of fewer groups is found again
            all_of = groups
        parts.append(smaller)
    sets, uncovered = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sets", "uncovered"))
    return Searched(sets, uncovered, all_of == wanted.max_groups, all_of)


class _Watch:
    """Follows a search: says how far it is, and ends it where it would not be done in time."""

    def __init__(
        self,
        edges: NDArray[np.uint64],
        wanted: Wanted,
        run: Run,
        decides_at: float | None,
        *,
        hint: str,
        forecasts: bool,
    ) -> None:
        self._edges, self._wanted, self._run = edges, wanted, run
        self._decides_at, self._hint, self._forecasts = decides_at, hint, forecasts
        self._began, self._most, self._forecast_after = time.monotonic(), 0, FORECAST_AFTER_SECONDS

    def __call__(self, found: int, share: float) -> bool:
        self._most = max(self._most, found)
        self._run.found(self._most, self._hint)
        now = time.monotonic()
        if self._forecasts and now - self._began > self._forecast_after:
            self._forecast_after *= LATER
            self._forecasts = not self._forecast(found, now - self._began)
        if self._decides_at is not None and now >= self._decides_at and found >= FEWEST_FOUND:
            self._decides_at = None
            return share < LIKELY_SHARE
        return False

    def _forecast(self, found: int, seconds: float) -> bool:
        """Warn where very many sets are to be expected, and tell whether. `found` in `seconds`: so far."""
        clues, expected = sampled_inversion(self._edges, self._wanted, FORECAST_SHARE * seconds)
        expected = max(expected, found)
        longer = expected * seconds / max(1, found)
        if expected < MANY_SETS and (found < FEWEST_TIMED or longer < LONG_SECONDS):
            return False
        how_long = f", which takes at least some {duration(longer)}" if found >= FEWEST_TIMED else ""
        parts = f"{expected:,}", how_long, f"{clues:,} of {len(self._edges):,} clues alone have so many"
        text = "at least some {} constraints are to be expected{} ({}){}"
        self._run.warn(Wording(text, *parts, self._hint))
        return True


def sampled_inversion(edges: NDArray[np.uint64], wanted: Wanted, seconds: float) -> tuple[int, int]:
    """Clues of the largest sample that is inverted in so many seconds, and how many minimal hitting sets it has.

    Each sample has twice the clues of the one before, and begins with these. More clues nearly always have more sets.
    """
    deadline = time.monotonic() + seconds
    order = np.random.default_rng(0).permutation(len(edges))
    clues, sets, size = 0, 0, FIRST_SAMPLE
    while size <= len(edges):
        sample = np.ascontiguousarray(edges[order[:size]])
        found = minimal_hitting_sets(sample, wanted._replace(symmetric=False), deadline=deadline, threads=1)
        number = len(found.sets) // (2 if wanted.symmetric else 1)
        if number > sets:
            clues, sets = size, number
        if not found.complete:
            break
        size *= 2
    return clues, sets


def what_shortens(space: PredicateSpace) -> str:
    """Which options make fewer constraints, of those that are not given; begins with a semicolon, or empty."""
    options, ways = space.options, []
    if options.max_predicates is None:
        ways.append(Wording("{max_predicates:N}"))
    if options.cross_columns and not space.closed:
        ways.append(Wording("{cross_columns}", cross_columns=False))
    if not ways:
        return ""
    return Wording("; {} make{} fewer", joined(ways, " and "), "s" if len(ways) == 1 else "")
