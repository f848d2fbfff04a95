"""Building a state: the rules of a table, the clues that prove them, and the index of its rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc import workload
from tuplewise.engine.dc.hybrid import DcCandidates, LocalDcTable
from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import (
    LEAST_ROWS,
    ColumnSetIndex,
    choose_index,
    serves,
    sort_orders,
)
from tuplewise.engine.dc.incremental.dictionaries import Dictionaries
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.folder import StateFolder
from tuplewise.engine.dc.incremental.listing import listing_of
from tuplewise.engine.dc.incremental.revision import Known, history_of
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations, build_space
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.loop import Loop
from tuplewise.engine.options import DcStateOptions
from tuplewise.engine.placement import available_bytes
from tuplewise.engine.run import Run
from tuplewise.engine.state_folders import DCS, check_new, real_folder
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.text_types import NO_VALUES, note_on_no_values
from tuplewise.gpu_kernels.clues import NewClues
from tuplewise.gpu_kernels.column_set_index import Comparing, Met, SortedRows, stored
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.evidence import collect_clues
from tuplewise.gpu_kernels.hitting import HittingSets, minimal_hitting_sets

Step = Callable[[str], None]


class WitnessedTable(LocalDcTable):
    """Rows in this process; takes note of a pair of rows for each clue."""

    _origin: NDArray[np.int32] | None = None

    def _take(self, codes: NDArray[np.int32], rows: NDArray[np.int32], doubled: NDArray[np.bool_]) -> None:
        first = self._origin is None
        self._origin = rows if self._origin is None else self._origin[rows]
        if first:
            self.noted: list[NDArray[np.int32]] = []
        super()._take(codes, rows, doubled)

    def _noted(self, found: NewClues) -> NewClues:
        assert self._origin is not None
        self.noted.append(self._origin[found.rows])
        return found


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise InputError where a state can't be built in this folder, before any work."""
    check_new(real_folder(folder), DCS)


def notes_on_first_rows(relation: Relation) -> list[str]:
    """Notes on the table that a state is built from: its own, and one on columns whose type no value shows."""
    empty = [c.name for c in relation.columns if not c.distinct and c.why == NO_VALUES]
    return [*relation.notes, *map(note_on_no_values, empty)]


def build(
    folder: str | os.PathLike[str],
    relation: Relation,
    options: DcStateOptions,
    *,
    written_by: str,
    null_tokens: tuple[str, ...] = (),
    progress: Step | None = None,
) -> None:
    """Build a state of a table's rows in a folder, whole or not at all.

    Parameters
    ----------
    folder : a new or an empty one
    written_by : version of tuplewise
    null_tokens : texts that stand for null, in the table and in later rows
    progress : told the name of each step as it begins

    Raises
    ------
    InputError
        Where the folder holds something, the table has no column, a column of the key is missing, holds a null or a
        value twice together with the others; where the discovery would not end.
    """
    step = progress or (lambda name: None)
    if not relation.columns:
        raise InputError(message("a state of a table without columns", relation.name, "one column or more"))
    key = [relation.index_of(name) for name in options.key]
    refuse_keys(relation.codes[key].T if key else None, options.key, lambda row: f"row {relation.position_of(row)}")
    workload.refuse_many_columns(relation, options.discover)
    step("space")
    space = build_space(relation, options.discover)
    fixed = Fixed(
        name=relation.name,
        path=relation.path,
        columns=tuple(KeptColumn(c.name, c.type, c.why) for c in relation.columns),
        null_tokens=null_tokens,
        options=options,
        space=space,
        counting=options.counting or (relation.rows < LEAST_ROWS and options.index == "auto"),
    )
    dictionaries, codes = Dictionaries.of_relation(relation)
    step("discovery")
    vertices = Vertices(space)
    known = None
    if not fixed.counting:
        clues, sets, promised, all_pairs = search(relation, space, vertices)
        step("indexes")
        index = choose_index(
            sets, vertices, codes, promised, keep_nulls=options.discover.nulls == "value", seed=options.discover.seed
        )
        if all_pairs and options.index == "auto" and not serves(index, relation.rows):
            fixed = replace(fixed, counting=True)
        else:
            known = Known(clues, sets, np.zeros(len(sets), dtype=np.int64), index)
    known = known or count(relation, space, vertices, pick_device(options.discover.device))
    distinct = [] if fixed.counting else [c.distinct for c in relation.columns]
    lists, whole = sort_orders(known.index, vertices, distinct, key)
    step("writing")
    listed = listing_of(known.sets, known.violations, space, relation.rows, lambda: relation)
    StateFolder.create(
        folder,
        fixed=fixed.record(),
        written_by=written_by,
        arrays=base_arrays(
            codes, np.arange(relation.rows, dtype=np.int64), relation.rows, known,
            SortedRows.build(codes, lists, whole), dictionaries, {}, counting=fixed.counting,
        ),
        history=history_of(0, "init", relation.rows, listed.numbers, [], None),
    )  # fmt: skip


def base_arrays(
    codes: NDArray[np.int32], ids: NDArray[np.int64], next_id: int, known: Known, sorted_rows: SortedRows,
    dictionaries: Dictionaries, streams: Mapping[str, int], *, counting: bool,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """All arrays of a checkpoint. `counting`: whether the revisions after it count pairs."""
    return {
        **packed_columns(codes),
        "ids": ids[:0] if len(ids) == next_id else ids,  # each id that was given is there: they are the row numbers
        "rows": np.array([len(ids)], dtype=np.int64),
        "next_id": np.array([next_id], dtype=np.int64),
        "counting": np.array([counting]),
        "clues": known.clues.clues,
        "witnesses": known.clues.witnesses,
        "counts": known.clues.counts,
        "sets": known.sets,
        "violations": known.violations,
        "probes": known.index.probes,
        "promised": known.index.promised,
        "own": known.index.own,
        "streams": np.frombuffer(json.dumps(dict(streams)).encode(), dtype=np.uint8),
        **stored(sorted_rows.arrays(), "sorted"),
        **dictionaries.arrays(),
    }


def packed_columns(codes: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """Codes, int32 (rows, columns), as few bytes: of each column its codes, and which of them each row has."""
    found: dict[str, NDArray[Any]] = {}
    for c in range(codes.shape[1]):
        distinct, places = np.unique(codes[:, c], return_inverse=True)
        kind = np.min_scalar_type(max(0, len(distinct) - 1))
        found[f"column/{c}/codes"], found[f"column/{c}/places"] = distinct, places.ravel().astype(kind)
    return found


def unpacked_columns(array: Callable[[str], NDArray[Any]], columns: int, rows: int) -> NDArray[np.int32]:
    """What `packed_columns` packed."""
    codes = np.empty((rows, columns), dtype=np.int32)
    for c in range(columns):
        codes[:, c] = array(f"column/{c}/codes")[array(f"column/{c}/places")]
    return codes


def refuse_keys(codes: NDArray[np.int32] | None, key: tuple[str, ...], where: Callable[[int], str]) -> None:
    """Raise InputError where two rows have one key, or a part of one is null. `codes`: int32 (rows, key columns)."""
    if codes is None or not len(codes):
        return
    without = np.flatnonzero(np.any(codes == NULL_CODE, axis=1))
    named = ", ".join(key)
    if len(without):
        hint = "Name columns without nulls, or leave the key out: rows are then named by ids"
        raise InputError(message(f"a null in the key {named!r}", where(int(without[0])), "a value in each row", hint))
    order = np.lexsort(codes.T[::-1])
    same = np.flatnonzero(np.all(codes[order][1:] == codes[order][:-1], axis=1))
    if len(same):
        first, second = sorted(order[same[0] : same[0] + 2].tolist())
        hint = "Name columns that tell rows apart, or leave the key out: rows are then named by ids"
        both = f"{where(first)} and {where(second)}"
        raise InputError(message(f"two rows have the same key {named!r}", both, "a key of its own for each row", hint))


def search(
    relation: Relation, space: PredicateSpace, vertices: Vertices
) -> tuple[WitnessedClues, Sets, Sets, bool]:
    """The clues of a table with a pair of rows for each, and all minimal hitting sets of their edges (one of each
    mirror pair); the sets of predicates whose pairs were all compared; and whether all pairs were.

    On the CPU: that tells which rows left a clue.
    """
    options, device = space.options, pick_device("cpu")
    nothing = np.zeros((1, vertices.words), dtype=np.uint64)
    if relation.rows < 2:
        return no_clues(space), nothing, nothing, True
    work = workload.estimate(relation, space, device.kind)
    algorithm, _ = workload.choose_algorithm(work, relation.rows, options, available_bytes())
    if algorithm == "evidence":
        workload.refuse_hopeless(work, relation, options, available_bytes())
        clues = every_clue(relation, space)
        return clues, minimal_hitting_sets(vertices.edges_of(clues.clues), vertices.wanted).sets, nothing, True
    table, candidates = WitnessedTable(relation, space, device, Run()), DcCandidates(space, None)
    Loop(table, candidates, seed=options.seed, lap=lambda stage: None, progress=None).run()
    return _noted_clues(table, relation, space), candidates.sets, candidates.exhausted, False


def every_clue(relation: Relation, space: PredicateSpace) -> WitnessedClues:
    """The clues of all pairs of rows, with a pair for each. Cost: a comparison of all pairs."""
    if relation.rows < 2:
        return no_clues(space)
    table = WitnessedTable(relation, space, pick_device("cpu"), Run())
    table.equal_rows()
    table.compare_agreeing(())
    return _noted_clues(table, relation, space)


def _noted_clues(table: WitnessedTable, relation: Relation, space: PredicateSpace) -> WitnessedClues:
    return _clues_of(relation, space, np.concatenate([np.zeros((0, 2), np.int32), *table.noted]))


def _clues_of(relation: Relation, space: PredicateSpace, pairs: NDArray[np.int32]) -> WitnessedClues:
    """The clues of noted pairs; of a row with itself, those of rows that are equal in all that counts."""
    codes = np.ascontiguousarray(relation.codes.T)
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    used = np.unique(np.concatenate([space.left, space.right]))
    for i in same.tolist():
        row = int(pairs[i, 0])
        equal = np.flatnonzero(np.all(codes[:, used] == codes[row, used], axis=1))
        pairs[i, 1] = int(equal[equal != row][0])
    comparing = Comparing(space.layout, space.options.nulls)
    t, u = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
    clues = no_clues(space)
    return clues.with_met(Met(comparing.of_pairs(codes, t, u), pairs, np.zeros(0, np.int64)), clues.lookup())


def no_clues(space: PredicateSpace) -> WitnessedClues:
    """No clue yet."""
    words = space.layout.words
    none = np.zeros((0, words), dtype=np.uint64)
    return WitnessedClues(space.layout, none, np.zeros((0, 2), dtype=np.int32), np.zeros(0, dtype=np.int64))


def count(relation: Relation, space: PredicateSpace, vertices: Vertices, device: Device) -> Known:
    """The knowledge of a table from exact counts of all its pairs; without probes."""
    clues = no_clues(space)
    if relation.rows > 1 and space.groups:
        work = workload.estimate(relation, space, device.kind)
        workload.refuse_hopeless(work, relation, space.options, available_bytes())
        found = collect_clues(relation.codes, space.layout, nulls=space.options.nulls, device=device)
        assert found.counts is not None
        none = np.full((len(found.clues), 2), -1, dtype=np.int32)
        clues = WitnessedClues(space.layout, found.clues, none, found.counts)
    sets = counted_sets(clues, vertices, relation.rows)
    no_probe = np.zeros(0, dtype=np.bool_)
    index = ColumnSetIndex(np.zeros((0, vertices.words), dtype=np.uint64), no_probe, no_probe)
    return Known(clues, sets.sets, sets.uncovered, index)


def counted_sets(clues: WitnessedClues, vertices: Vertices, rows: int) -> HittingSets:
    """The minimal sets that all clues' edges are hit by, but for those that the error allows."""
    budget = allowed_violations(vertices.space.options.error, max(0, rows * (rows - 1)))
    if not len(clues):
        return HittingSets(np.zeros((1, vertices.words), np.uint64), np.zeros(1, np.int64), True)
    if not budget:
        return minimal_hitting_sets(vertices.edges_of(clues.clues), vertices.wanted)
    edges, weights = vertices.weighted_edges_of(clues.clues, clues.counts)
    return minimal_hitting_sets(edges, vertices.wanted, weights=weights, budget=budget)
