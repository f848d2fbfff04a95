"""Candidates of the discovery loop for keys, functional and order dependencies: the minimal contexts of each target.

A candidate is decided if all pairs that agree on a part of its context were compared, or if it was validated. An
order-compatible pair is also decided if a decided constancy makes one of its attributes constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.loop import Clues, LoopTable, ValidatedCandidates
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, Dependencies, Mask, Targets, any_inside, mask_of
from tuplewise.engine.run import TIME_LIMIT
from tuplewise.gpu_kernels.contexts import MinimalContexts
from tuplewise.gpu_kernels.words import as_flags, mask_words

WITNESSES = 16  # violating pairs that a violated candidate gives back
CONTEXT_EFFORT = 3.0  # cost of partitioning the rows by a context, in units of checking one target
LEAST_EFFORT = 0.05  # cost of validating a context whose classes hold few rows, if it is 1 for classes of all rows


class CheckingTable(LoopTable, Protocol):
    """A table that can also check dependencies."""

    def violating_pairs(
        self, contexts: Mask, which: NDArray[np.int32], wanted: Dependencies, limit: int
    ) -> tuple[NDArray[np.bool_], Clues, NDArray[np.int32]]:
        """Whether each holds; for violated ones the clues of at most `limit` violating pairs, and these pairs, int32
        (pairs, 2). `contexts` are distinct; `which` is the context of each dependency. Raises LimitReached."""


@dataclass(frozen=True)
class CandidateBound:
    """How many candidates there may be.

    Attributes
    ----------
    most : at about this many candidates the search ends
    tell : called with the number of candidates so far, and the share of the targets whose candidates they are
    """

    most: int
    tell: Callable[[int, float], None]


class ContextCandidates:
    """The minimal contexts that the known clues allow, and which of them are decided."""

    def __init__(
        self, attributes: int, targets: Targets, *, max_context: int | None = None, deadline: float | None = None,
        bound: CandidateBound | None = None,
    ) -> None:  # fmt: skip
        self._attributes, self._targets, self._deadline = attributes, targets, deadline
        self._column_pairs = [(a, a) for a in range(attributes)]
        self._weights: dict[bytes, float] = {}  # of contexts, as flags: estimates, whatever rows are set aside
        self._most = None if bound is None else bound.most
        self._tell = None if bound is None else bound.tell
        self._minimal = MinimalContexts(
            attributes, targets.kind, targets.left, targets.right, max_size=max_context, most=self._most
        )
        self._behind = np.zeros(len(targets), dtype=np.bool_)  # targets that know some clues only
        self._contexts = np.zeros((len(targets), mask_words(attributes)), dtype=np.uint64)
        self._target = np.arange(len(targets), dtype=np.int32)
        self._decided = np.zeros(len(targets), dtype=np.bool_)
        self._exhausted: list[Mask] = []  # all pairs that agree on these were compared
        self._least_dropped = attributes  # attributes of a context that was dropped: what takes its place has more

    @property
    def column_pairs(self) -> Sequence[tuple[int, int]]:
        return self._column_pairs

    def learn(self, clues: Clues) -> None:
        if not len(clues):
            return
        found = self._minimal.extend(clues, deadline=self._deadline, tell=self._tell)
        new = found.kept < 0
        decided = np.zeros(len(new), dtype=np.bool_)
        decided[~new] = self._decided[found.kept[~new]]
        self._contexts, self._target, self._decided = found.contexts, found.target, decided
        for context in self._exhausted:
            self._decided[new] |= np.all(found.contexts[new] & context == context, axis=1)
        self._decide_implied(self._decided)
        if not found.complete:
            self._behind = ~found.done
            full = self._most is not None and found.found > self._most
            raise LimitReached(f"limit of {self._most:,} candidates reached" if full else TIME_LIMIT)

    def undecided(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The undecided candidates with their effort: their own, and a share of that of their context."""
        contexts = self._contexts[~self._decided]
        _, which = _distinct(contexts)
        return as_flags(contexts, self._attributes), 1.0 + CONTEXT_EFFORT / np.bincount(which)[which]

    def weighed(
        self, table: CheckingTable, undecided: NDArray[np.bool_], effort: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The effort, weighted by the share of rows that agree with another one on the context."""
        weights = np.empty(len(undecided), dtype=np.float64)
        for i, flags in enumerate(undecided):
            key = flags.tobytes()
            if key not in self._weights:
                pairs = table.estimate_pairs(tuple((a, a) for a in np.flatnonzero(flags).tolist()))
                self._weights[key] = LEAST_EFFORT + min(1.0, 2.0 * pairs / max(1, table.rows))
            weights[i] = self._weights[key]
        return np.asarray(effort * weights)

    def decide(self, column_pairs: Sequence[int]) -> int:
        context = mask_of(column_pairs, self._contexts.shape[1])
        self._exhausted.append(context)
        now = ~self._decided & np.all(self._contexts & context == context, axis=1) & ~self._behind[self._target]
        self._decided |= now
        return int(np.count_nonzero(now)) + self._decide_implied(now)

    def validate(self, table: CheckingTable, most: int) -> ValidatedCandidates:
        open_ = np.flatnonzero(~self._decided)
        open_ = open_[~self._within_a_constancy(open_, ~self._decided)]  # others may be implied
        contexts, which = _distinct(self._contexts[open_])
        sizes = np.bitwise_count(contexts).sum(axis=1, dtype=np.int64)
        smallest = np.argsort(sizes, kind="stable")[: most * most]  # few at first, when nothing is known
        flags = as_flags(contexts[smallest], self._attributes)
        effort = self.weighed(table, flags, np.ones(len(flags)))
        cheapest = np.argsort(effort, kind="stable")
        within = max(1, int(np.searchsorted(np.cumsum(effort[cheapest]), most)))
        smallest, effort = smallest[cheapest[:within]], effort[cheapest[:within]]
        place = np.full(len(contexts), -1, dtype=np.int32)
        place[smallest] = np.arange(len(smallest), dtype=np.int32)
        of_open = place[which]
        chosen = open_[of_open >= 0]
        wanted = Dependencies.of(self._contexts[chosen], self._targets, self._target[chosen])
        holds, clues, rows = table.violating_pairs(contexts[smallest], of_open[of_open >= 0], wanted, WITNESSES)
        now = np.zeros(len(self._decided), dtype=np.bool_)
        now[chosen[holds]] = True
        self._decided |= now
        self._decide_implied(now)
        targets = np.bincount(of_open[of_open >= 0], minlength=len(effort))
        spent = float(np.dot(effort, CONTEXT_EFFORT + targets))
        return ValidatedCandidates(clues, rows, len(chosen), int(np.count_nonzero(~holds)), spent)

    def dependencies(self) -> Dependencies:
        """The decided dependencies in result order, without those that another one implies or may yet imply."""
        chosen = np.flatnonzero(self._decided)
        chosen = chosen[~self._within_a_constancy(chosen, ~self._decided)]
        decided = Dependencies.of(self._contexts[chosen], self._targets, self._target[chosen])
        return decided.without_implied().in_result_order()

    @property
    def complete_context(self) -> int:
        """The size up to which all minimal dependencies are decided, by attributes of the context; -1: none.

        If a target holds for a context, the context includes a candidate of that target. If that is decided, it holds.
        """
        undecided = self._sizes(~self._decided)
        return int(min(undecided.min(initial=self._attributes + 1) - 1, self._least_dropped))

    def drop_violated(self, clues: Clues) -> None:
        """Drop the candidates that these clues violate, without searching for replacements."""
        kept = ~self._minimal.violated(clues)
        self._least_dropped = int(self._sizes(~kept).min(initial=self._least_dropped))
        self._contexts, self._target, self._decided = self._contexts[kept], self._target[kept], self._decided[kept]

    def _sizes(self, which: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Attributes of some contexts."""
        return np.asarray(np.bitwise_count(self._contexts[which]).sum(axis=1, dtype=np.int64))

    def _decide_implied(self, by: NDArray[np.bool_]) -> int:
        """Decide the pairs whose context makes one of their attributes constant by a marked constancy. Returns their
        number."""
        open_ = np.flatnonzero(~self._decided)
        implied = open_[self._within_a_constancy(open_, by)]
        self._decided[implied] = True
        return len(implied)

    def _within_a_constancy(self, chosen: NDArray[np.int64], constancies: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which chosen candidates are pairs whose context includes that of a marked constancy of one of their
        attributes."""
        kind, left, right = self._targets.kind, self._targets.left, self._targets.right
        constant = np.flatnonzero(constancies & (kind[self._target] == CONSTANT))
        result = np.zeros(len(chosen), dtype=np.bool_)
        target = self._target[chosen]
        pairs = np.flatnonzero(kind[target] >= ASCENDING)
        if not len(constant) or not len(pairs):
            return result
        attribute = left[self._target[constant]]
        order = np.argsort(attribute, kind="stable")
        first = np.searchsorted(attribute[order], np.arange(self._attributes + 1))
        result[pairs] = any_inside(
            self._contexts[chosen[pairs]], left[target[pairs]], right[target[pairs]],
            self._contexts[constant[order]], first,
        )  # fmt: skip
        return result


def _distinct(contexts: Mask) -> tuple[Mask, NDArray[np.int64]]:
    """Distinct contexts, ascending, and which of them each one is: int64 (contexts,)."""
    if contexts.shape[1] > 1:
        rows, which = np.unique(contexts, axis=0, return_inverse=True)
        return rows, which.ravel()
    words, which = np.unique(contexts[:, 0], return_inverse=True)  # as whole numbers they are sorted ten times as fast
    return words[:, np.newaxis], which
