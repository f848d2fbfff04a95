"""Keys and functional dependencies of wide tables, whose minimal contexts may be more than memory holds.

All of them are searched first. Where they are too many for memory, or time is too short, all contexts of no column are
searched, then those of one more, and so on: what is listed then are the shortest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tuplewise.engine.errors import Wording
from tuplewise.engine.od import search
from tuplewise.engine.od.candidates import CandidateBound
from tuplewise.engine.od.dependency import KEY, Dependencies, Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.words import mask_words

PARTS = ("contexts", "kind", "left", "right")  # of Dependencies

# Shares of the time that is left when each begins.
WHOLE_SHARE = 0.3
BY_SIZE_SHARE = 0.8  # what is found is put in order, and written, after that

MOST_BYTES = 1 << 26  # of the contexts of candidates
SHARE_OF_MEMORY_LIMIT = 1 / 16
MOST_LEVELWISE_COLUMNS = 256  # of more, two levels may be more than memory holds
MANY_DEPENDENCIES = 100_000
TELLING_SHARE = 0.01  # of the targets that are done tell how many all have


def find(
    relation: Relation, targets: Targets, *, max_context: int | None, run: Run, **how: Any
) -> FoundDependencies:
    """The minimal contexts of each target, or the shortest of them. `how`: see `search.find`."""
    columns = len(relation.columns)
    forecast = _Forecast(targets, max_context, run)
    how["bound"] = CandidateBound(most_candidates(columns, run), forecast)
    given = relation.codes, targets, relation.column_names
    whole = search.find(*given, max_context=max_context, run=run.part(WHOLE_SHARE), **how)
    levels_follow = whole.reached == TIME_LIMIT and columns <= MOST_LEVELWISE_COLUMNS
    if whole.reached is None or levels_follow or run.over() or run.full():
        return whole
    soon = run.part(BY_SIZE_SHARE)
    forecast.end()
    found = replace(whole, dependencies=whole.dependencies.take(np.zeros(0, dtype=np.int64)), complete_context=-1)
    for largest in range(columns if max_context is None else max_context):  # with all, it is the search that failed
        more = search.find(*given, max_context=largest, run=soon, **how)
        found = _continued(found, more, largest)
        if more.reached is not None:
            break
    # Where memory was short, the first search has found some targets' of all sizes
    return joined(whole, found) if whole.reached == TIME_LIMIT else found


def most_candidates(columns: int, run: Run) -> int:
    """At about this many candidates a search ends: as many as memory holds."""
    size = MOST_BYTES if run.memory_limit is None else int(run.memory_limit * SHARE_OF_MEMORY_LIMIT)
    return size // (8 * mask_words(columns))


def _continued(found: FoundDependencies, more: FoundDependencies, largest: int) -> FoundDependencies:
    """The result of a search of all smaller contexts, and of one of contexts up to the largest size."""
    new = np.bitwise_count(more.dependencies.contexts).sum(axis=1, dtype=np.int64) == largest
    both = found.dependencies, more.dependencies.take(new)
    parts = (np.concatenate([getattr(of, name) for of in both]) for name in PARTS)
    complete = found.complete_context if more.reached is not None else largest
    reached = more.reached or found.reached
    return FoundDependencies(Dependencies(*parts), more.undecided, more.search, reached, complete_context=complete)


def joined(first: FoundDependencies, second: FoundDependencies) -> FoundDependencies:
    """The results of two searches of one table. Each dependency holds and is minimal."""
    both = first.dependencies, second.dependencies
    contexts, kind, left, right = (np.concatenate([getattr(of, name) for of in both]) for name in PARTS)
    numbers = np.column_stack([contexts.view(np.int64), kind, left, right])
    _, distinct = np.unique(numbers, axis=0, return_index=True)
    dependencies = Dependencies(contexts, kind, left, right).take(distinct).in_result_order()
    complete = max(first.complete_context, second.complete_context)
    return replace(second, dependencies=dependencies, complete_context=complete)


class _Forecast:
    """Says how many candidates there are so far, and warns once where very many are to be expected.

    The targets that are done tell how many all will have; one target alone tells nothing beforehand."""

    def __init__(self, targets: Targets, max_context: int | None, run: Run) -> None:
        self._what = "keys" if targets.kind[0] == KEY else "functional dependencies"
        self._run, self._warned = run, len(targets) == 1
        self._hint = "" if max_context is not None else Wording("; {max_context:K} makes fewer")

    def end(self) -> None:
        """Warn no more: what follows are parts of the search."""
        self._warned = True

    def __call__(self, found: int, share: float) -> None:
        self._run.found(found, self._hint)
        if self._warned or share < TELLING_SHARE or found < share * MANY_DEPENDENCIES:
            return
        self._warned = True
        expected = int(found / share)
        rounded = round(expected, 1 - len(str(expected)))
        text = "about {} candidates for {} are to be expected{}"
        self._run.warn(Wording(text, f"{rounded:,}", self._what, self._hint))
