"""The arrays of a checkpoint: living rows under new numbers, sorted, and probes chosen anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.column_set_index import choose_index, sort_orders
from tuplewise.engine.dc.incremental.dictionaries import Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import base_arrays
from tuplewise.engine.dc.incremental.revision import Known
from tuplewise.engine.dc.vertices import Vertices

SAMPLED_ROWS = 1 << 15  # from which the distinct values of columns are estimated


def checkpoint_arrays(
    fixed: Fixed, vertices: Vertices, held: HeldRows, known: Known, dictionaries: Dictionaries, next_id: int,
    streams: Mapping[str, int],
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """All arrays of a state whose rows and knowledge are these. Cost: a merge or a sort of the rows for each order."""
    kept = held.living_rows
    number = np.full(held.used, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    codes, ids = np.ascontiguousarray(held.codes[kept]), held.ids[kept]
    witnesses = np.where(known.clues.witnesses < 0, -1, number[known.clues.witnesses]).astype(np.int32)
    clues = replace(known.clues, witnesses=witnesses)
    index, distinct, options = known.index, list[int](), fixed.options.discover
    if not fixed.counting:
        promised = np.concatenate([known.index.probes[known.index.promised], known.sets])
        index = choose_index(
            known.sets, vertices, codes, promised, keep_nulls=options.nulls == "value", seed=options.seed
        )
        sample = codes[:: max(1, len(codes) // SAMPLED_ROWS)]
        distinct = [len(np.unique(column)) for column in sample.T]
    lists, whole = sort_orders(index, vertices, distinct, held.key_columns.tolist())
    tail = np.arange(held.base, held.used, dtype=np.int32)
    sorted_rows = held.sorted_rows.renewed(held.codes, tail, number, codes, lists, whole)
    known = replace(known, clues=clues, index=index)
    return base_arrays(codes, ids, next_id, known, sorted_rows, dictionaries, streams)
