"""Denial constraints, order dependencies, FDs and keys of one table, found together: its pairs are compared once.

Their searches are one loop (loop.py) that learns from one set of clues. A column set that is exhausted decides rules of
every kind; what is left is validated, each kind its own way, and the clues of violating pairs go to all of them.

Source: notes on this project, conditions for one set of clues. They hold where all kinds see nulls alike (as values, or
where there are none) and no column is compared with another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc import hybrid, workload
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.discovery import discovery_of as dc_discovery_of
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace, build_space
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.loop import Clues, Loop, LoopCandidates, ValidatedCandidates
from tuplewise.engine.od import search
from tuplewise.engine.od.candidates import ContextCandidates
from tuplewise.engine.od.discover import targets_of
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.od.remarks import discovery_of as od_discovery_of
from tuplewise.engine.options import (
    DcDiscoverOptions,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    OdDiscoverOptions,
)
from tuplewise.engine.run import SEARCHING, Clock, Run
from tuplewise.engine.table.relation import Relation, idle_columns
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import COMPARISONS_PER_WORD, ClueLayout

REASON = "several kinds of rule were asked for together: their pairs are compared once"


@dataclass(frozen=True, eq=False)
class Together:
    """The discoveries of each kind, None where not asked for. `search`: figures of their common search."""

    dcs: DcDiscovery | None
    ods: Discovery | None
    fds: Discovery | None
    keys: Discovery | None
    search: dict[str, Any]


def discover(
    relation: Relation,
    *,
    dcs: DcDiscoverOptions | None = None,
    ods: OdDiscoverOptions | None = None,
    fds: FdDiscoverOptions | None = None,
    keys: KeyDiscoverOptions | None = None,
    device: str = "auto",
    seed: int = 0,
    run: Run | None = None,
) -> Together:
    """What `dc.discover` and `od.discover` find, from one comparison of pairs.

    Parameters
    ----------
    dcs, ods, fds, keys : options of each kind, None where it isn't wanted. Only those that say which rules are wanted
        count; the parameters here say how they are searched.

    Raises
    ------
    InputError
        Where one set of clues can't serve them all: predicates across columns, errors above 0, or null rules that
        differ on a table with nulls.
    """
    kinds: list[Any] = [kind for kind in (dcs, ods, fds, keys) if kind is not None]
    _refuse_unlike(relation, dcs, kinds)
    run = run or Run()
    picked = pick_device(device)
    clock = Clock()
    space = build_space(relation, dcs or DcDiscoverOptions(cross_columns=False, nulls="value"))
    if dcs is not None:
        workload.refuse_many_atoms(relation, space.atoms, dcs)
    candidates = _AllCandidates(relation, space, dcs, (ods, fds, keys), run.deadline)
    shared = search.clue_layout(len(relation.columns), ordered=dcs is not None or ods is not None)
    table = SharedTable(relation, space, picked, run, shared)
    # Where text is ordered, too, nearly every pair leaves a clue of its own: no row is an outlier for that
    loop = Loop(
        table, candidates, seed=seed, lap=clock.lap, progress=run.minded(SEARCHING), outlier_rows=ods is None,
        all_at_once=search.ALL_AT_ONCE,
    )  # fmt: skip
    reached = loop.run()
    return candidates.results(reached, loop.report(relation.rows, relation.column_names), picked, clock)


def _refuse_unlike(relation: Relation, dcs: DcDiscoverOptions | None, kinds: Sequence[Any]) -> None:
    """Raise InputError where kinds of rule can't share clues."""
    hint = "Ask for that kind by itself"
    for kind in kinds:
        if kind.error > 0:
            raise InputError(message("error, for several kinds of rule together", str(kind.error), "0", hint))
    if dcs is not None and dcs.cross_columns:
        raise InputError(message("cross_columns, for several kinds of rule together", True, "False", hint))
    rules = sorted({kind.nulls for kind in kinds})
    if len(rules) > 1 and any(column.nulls for column in relation.columns):
        allowed = "one rule for all (order dependencies know 'value' only), or a table without nulls"
        raise InputError(message("nulls, for several kinds of rule together", " and ".join(rules), allowed, hint))


class SharedTable(hybrid.LocalDcTable, search.ContextTable):
    """Rows in this process, with rule checking and with partitions by contexts."""


class _AllCandidates:
    """The candidates of all kinds as one."""

    def __init__(
        self,
        relation: Relation,
        space: PredicateSpace,
        dcs: DcDiscoverOptions | None,
        of_contexts: tuple[OdDiscoverOptions | None, FdDiscoverOptions | None, KeyDiscoverOptions | None],
        deadline: float | None,
    ) -> None:
        self._relation, self._space, self._dcs, self._of_contexts = relation, space, dcs, of_contexts
        attributes = len(relation.columns)
        self.column_pairs = [(a, a) for a in range(attributes)]
        self._constraints = None if dcs is None else hybrid.DcCandidates(space, deadline)
        self._contexts = [
            None if o is None
            else ContextCandidates(attributes, targets_of(o, attributes), max_context=o.max_context, deadline=deadline)
            for o in of_contexts
        ]
        parts: list[LoopCandidates | None] = [self._constraints, *self._contexts]
        self._parts = [part for part in parts if part is not None]

    def learn(self, clues: Clues) -> None:
        for part in self._parts:
            part.learn(self._of_part(part, clues))

    def undecided(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        flags, efforts = zip(*(part.undecided() for part in self._parts), strict=True)
        return np.concatenate(flags), np.concatenate(efforts)

    def weighed(self, table: Any, undecided: NDArray[np.bool_], effort: NDArray[np.float64]) -> NDArray[np.float64]:
        return effort if self._constraints is not None else self._parts[0].weighed(table, undecided, effort)

    def decide(self, column_pairs: Sequence[int]) -> int:
        return sum(part.decide(column_pairs) for part in self._parts)

    def validate(self, table: Any, most: int) -> ValidatedCandidates:
        """Candidates of the first kind that has undecided ones, those over contexts first: they cost less."""
        part = next(part for part in reversed(self._parts) if len(part.undecided()[0]))
        return part.validate(table, most)

    def drop_violated(self, clues: Clues) -> None:
        for part in self._parts:
            part.drop_violated(self._of_part(part, clues))

    def _of_part(self, part: LoopCandidates, clues: Clues) -> Clues:
        """Constraints see columns without an order as equal or different."""
        return without_order(clues, self._space.layout) if part is self._constraints else clues

    def results(self, reached: str | None, search_figures: dict[str, Any], device: Device, clock: Clock) -> Together:
        found_dcs, where = None, (device.described, device.reason)
        if self._dcs is not None and self._constraints is not None:
            undecided = len(self._constraints.undecided()[0])
            arrays = ConstraintArrays.none()
            if self._relation.rows > 1:
                arrays = self._constraints.constraints(self._relation.rows, reached is None)
            arrays, space = without_columns(arrays, self._space, idle_columns(self._relation, self._dcs.nulls))
            own_dcs = hybrid.found_constraints(arrays, search_figures, undecided, reached, space)
            found_dcs = dc_discovery_of(self._relation, self._dcs, space, own_dcs, "hybrid", REASON, *where, clock)
        found: list[Discovery | None] = []
        for options, contexts in zip(self._of_contexts, self._contexts, strict=True):
            if options is None or contexts is None:
                found.append(None)
                continue
            undecided, complete = len(contexts.undecided()[0]), contexts.complete_context
            own = FoundDependencies(
                contexts.dependencies(), undecided, search_figures, reached, complete_context=complete
            )
            found.append(od_discovery_of(self._relation, options, own, "hybrid", REASON, *where, clock))
        ods, fds, keys = found
        return Together(found_dcs, ods, fds, keys, search_figures)


def without_columns(
    arrays: ConstraintArrays, space: PredicateSpace, columns: NDArray[np.bool_]
) -> tuple[ConstraintArrays, PredicateSpace]:
    """Without constraints that name these columns, bool (columns,), and the space without them."""
    dropped = (columns[space.left] | columns[space.right])[space.predicate_group]
    arrays = arrays.take(~np.any((arrays.predicates >= 0) & dropped[arrays.predicates], axis=1))
    number = (np.cumsum(~dropped) - 1).astype(np.int32)
    predicates = np.where(arrays.predicates < 0, arrays.predicates, number[arrays.predicates])
    return replace(arrays, predicates=predicates), space.without(columns)


def without_order(clues: Clues, layout: ClueLayout) -> Clues:
    """Clues over the same comparisons as a layout's, with LESS and GREATER made DIFFERENT where it has no order.

    uint64 (clues, words), distinct.
    """
    high = np.zeros(clues.shape[1], dtype=np.uint64)
    for g in np.flatnonzero(~layout.ordered).tolist():
        high[g // COMPARISONS_PER_WORD] |= np.uint64(2 << (2 * (g % COMPARISONS_PER_WORD)))
    # GREATER is 10, DIFFERENT 00, EQUAL 01, UNKNOWN 11: the high bit stays where the low one is set
    return np.unique(clues & (~high | (clues << np.uint64(1))), axis=0)
