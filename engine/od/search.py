"""The hybrid search for keys, functional and order dependencies: the discovery loop over minimal contexts.

A violation of a dependency is a pair of rows that agree on its context. So comparing all pairs that agree on some
columns decides every dependency whose context includes them. Where validation on partitions is cheaper, it is used.

Source: notes on order dependencies of this project; what is found, and its minimality, as Li et al., "Efficient
Set-based Order Dependency Discovery with a Level-wise Hybrid Strategy", ICDE 2023. Departures: no levels, no lattice,
and a sample of pairs, not of rows (levelwise.py is the published search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.local_table import LocalTable
from tuplewise.engine.loop import Clues, Loop
from tuplewise.engine.od.candidates import CandidateBound, CheckingTable, ContextCandidates
from tuplewise.engine.od.dependency import ASCENDING, Dependencies, Mask, Targets
from tuplewise.engine.od.found import FoundDependencies
from tuplewise.engine.od.near_rows import pairs_of_near_rows
from tuplewise.engine.options import Nulls
from tuplewise.engine.run import SEARCHING, TIME_LIMIT, Run
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.order import lay_out_orders
from tuplewise.gpu_kernels.words import ACROSS, ClueLayout, make_layout

MANY_COLUMNS = 64  # of more, pairs of near rows are compared first
ALL_AT_ONCE = 1 << 20  # pairs of rows that are compared without choosing among them
# Of a sample: more brings many clues, nearly all of which no minimal context needs
PAIRS_A_ROW = 2
SAMPLED_ROWS = 1 << 13
ESTIMATE_ROWS = 1 << 12


def is_wide(targets: Targets, columns: int) -> bool:
    """Whether keys and functional dependencies only are searched, in so many columns that few pairs are alike."""
    return columns > MANY_COLUMNS and not np.any(targets.kind >= ASCENDING)


def find(
    codes: NDArray[np.int32],
    targets: Targets,
    names: Sequence[str],
    *,
    nulls: Nulls,
    device: Device,
    max_context: int | None = None,
    bound: CandidateBound | None = None,
    seed: int = 0,
    run: Run | None = None,
    lap: Callable[[str], None] = lambda stage: None,
    table: CheckingTable | None = None,
    rows: int | None = None,
) -> FoundDependencies:
    """The minimal contexts of each target, exactly.

    Parameters
    ----------
    codes : int32 (columns, rows), -1 is null
    names : of the columns, for the report on the search
    nulls : "unknown" (keys and functional dependencies only) or "value"
    max_context : contexts of at most so many attributes
    bound : on the number of candidates
    run : at its limits, what is decided is returned
    lap : called with a stage's name after a part of its work
    table : the table with the rows; None: `codes`
    rows : number of rows, if they are not in `codes`

    Notes
    -----
    Cost: rows for the sample; agreeing pairs of some column sets; rows for each context that is validated, and for
    each target of it; and the minimal contexts. Memory: the codes twice, the distinct clues, the candidates.
    """
    run, attributes = run or Run(), len(codes)
    rows = codes.shape[1] if rows is None else rows
    ordered = bool(np.any(targets.kind >= ASCENDING))
    layout = clue_layout(attributes, ordered=ordered)
    held = table or ContextTable(
        codes, range(attributes), layout, nulls=nulls, device=device, seed=seed, run=run,
        pairs_a_row=PAIRS_A_ROW, sampled_rows=SAMPLED_ROWS, estimate_rows=ESTIMATE_ROWS,
        telling=ordered,
    )  # fmt: skip
    wide = table is None and is_wide(targets, attributes)
    candidates = ContextCandidates(
        attributes, targets, max_context=max_context, deadline=run.deadline, bound=bound
    )
    loop = Loop(
        held,
        candidates,
        seed=seed,
        lap=lap,
        progress=run.minded(SEARCHING),
        outlier_rows=False,
        all_at_once=ALL_AT_ONCE if table is None else -1,
        all_in_the_end=table is None,
        near=partial(held.near_pairs, targets) if isinstance(held, ContextTable) and wide else None,
    )
    reached = loop.run()
    if reached is not None and loop.compared_all:
        candidates.decide(())
    search = loop.report(rows, names)
    complete = candidates.complete_context
    return FoundDependencies(candidates.dependencies(), search["undecided"], search, reached, complete_context=complete)


def clue_layout(attributes: int, *, ordered: bool) -> ClueLayout:
    """Each attribute compared with itself."""
    return make_layout([(a, a, ACROSS, ordered) for a in range(attributes)])


class ContextTable(LocalTable):
    """Rows in this process, partitioned by contexts."""

    def _take(self, codes: NDArray[np.int32], rows: NDArray[np.int32], doubled: NDArray[np.bool_]) -> None:
        super()._take(codes, rows, doubled)
        self._partitioned = lay_out_orders(self.codes, nulls=self._nulls, device=self._device)

    def near_pairs(self, targets: Targets) -> Clues:
        """The clues of pairs of rows that agree on nearly all columns. Raises LimitReached."""
        unknown = not self._keep_nulls
        pairs = pairs_of_near_rows(self.codes, targets, unknown=unknown, seed=self._seed, deadline=self._deadline)
        t, u = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
        return self._comparable.of_pairs(t, u).clues

    def violating_pairs(
        self, contexts: Mask, which: NDArray[np.int32], wanted: Dependencies, limit: int
    ) -> tuple[NDArray[np.bool_], Clues, NDArray[np.int32]]:
        checked = self._partitioned.check(
            contexts, which, wanted.kind, wanted.left, wanted.right, limit=limit, deadline=self._deadline
        )
        if not checked.complete:
            raise LimitReached(TIME_LIMIT)
        t, u = (np.ascontiguousarray(checked.pairs[:, side]) for side in (0, 1))
        first = checked.first[:-1][~checked.holds]
        return checked.holds, self._comparable.of_pairs(t, u).clues, checked.pairs[first]
