"""The arrays of a checkpoint: living rows under new numbers, sorted, and probes chosen anew.

A state that counts pairs checks at each checkpoint whether indexes would now cost less, as when a state is built. If
so, it switches to indexes for good: a table that shrinks again is small for these too. Rules don't change by that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.column_set_index import LEAST_ROWS, choose_index, serves, sort_orders
from tuplewise.engine.dc.incremental.dictionaries import Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import base_arrays, every_clue
from tuplewise.engine.dc.incremental.revision import Known
from tuplewise.engine.dc.vertices import Vertices
from tuplewise.engine.table.relation import Relation

SAMPLED_ROWS = 1 << 15  # from which the distinct values of columns are estimated
GROWN = 2  # times the rows of the last checkpoint: worth a look whether to go on counting


def checkpoint_arrays(
    fixed: Fixed, vertices: Vertices, held: HeldRows, known: Known, dictionaries: Dictionaries, next_id: int,
    streams: Mapping[str, int], relation: Callable[[], Relation],
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """All arrays of a state whose rows and knowledge are these. `relation` returns the living rows, in order of ids.

    Cost: a merge or a sort of the rows for each order; where counting ends, a comparison of all pairs.
    """
    kept = held.living_rows
    number = np.full(held.used, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    codes, ids = np.ascontiguousarray(held.codes[kept]), held.ids[kept]
    witnesses = np.where(known.clues.witnesses < 0, -1, number[known.clues.witnesses]).astype(np.int32)
    clues = replace(known.clues, witnesses=witnesses)
    index, distinct, options = known.index, list[int](), fixed.options.discover
    counting = fixed.counting
    if not counting or may_serve(fixed, len(kept)):
        promised = np.concatenate([known.index.probes[known.index.promised], known.sets])
        if counting:  # all pairs are known
            promised = np.zeros((1, vertices.words), dtype=np.uint64)
        index = choose_index(
            known.sets, vertices, codes, promised, keep_nulls=options.nulls == "value", seed=options.seed
        )
        if counting and serves(index, len(kept)):
            clues, counting = every_clue(relation(), fixed.space), False
    if counting:
        index = known.index
    else:
        sample = codes[:: max(1, len(codes) // SAMPLED_ROWS)]
        distinct = [len(np.unique(column)) for column in sample.T]
    lists, whole = sort_orders(index, vertices, distinct, held.key_columns.tolist())
    tail = np.arange(held.base, held.used, dtype=np.int32)
    sorted_rows = held.sorted_rows.renewed(held.codes, tail, number, codes, lists, whole)
    known = replace(known, clues=clues, index=index)
    return base_arrays(codes, ids, next_id, known, sorted_rows, dictionaries, streams, counting=counting)


def may_serve(fixed: Fixed, rows: int) -> bool:
    """Whether indexes may take the place of counts, in a state of so many rows."""
    return not fixed.options.counting and fixed.options.index == "auto" and rows >= LEAST_ROWS


def outgrown(fixed: Fixed, held: HeldRows) -> bool:
    """Whether a state that counts has grown so much that indexes may be better now."""
    return fixed.counting and held.living >= GROWN * held.base and may_serve(fixed, held.living)
