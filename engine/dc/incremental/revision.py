"""Revisions as the log keeps them: what each changed, so that opening a state works nothing out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import ColumnSetIndex
from tuplewise.engine.dc.incremental.listing import Numbers
from tuplewise.engine.dc.vertices import Sets


def history_of(
    number: int, kind: str, rows: int, gained: Sequence[Numbers], lost: Sequence[tuple[Numbers, Any]], batch: Any
) -> dict[str, Any]:
    """The permanent record of a revision; constraints by the numbers of their predicates."""
    record: dict[str, Any] = {
        "revision": number,
        "kind": kind,
        "rows": rows,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "gained": [list(numbers) for numbers in gained],
        "lost": [[list(numbers), pair] for numbers, pair in lost],
    }
    return record if batch is None else {**record, "batch": batch}


def listed_at(history: Iterable[Mapping[str, Any]], revision: int) -> list[Numbers]:
    """The constraints that were listed after a revision, from the records of all up to it."""
    listed: dict[Numbers, None] = {}
    for record in history:
        if record["revision"] > revision:
            break
        for numbers, _ in record["lost"]:
            listed.pop(tuple(numbers), None)
        listed |= dict.fromkeys(tuple(numbers) for numbers in record["gained"])
    return list(listed)


def net_changes(history: Iterable[Mapping[str, Any]], last: int) -> tuple[list[Numbers], dict[Numbers, Any]]:
    """Constraints that some revisions, up to the last, brought; and those that they took, each with the names of the
    pair that broke it last."""
    gained: dict[Numbers, None] = {}
    lost: dict[Numbers, Any] = {}
    for record in history:
        if record["revision"] > last:
            break
        for given, pair in record["lost"]:
            numbers = tuple(given)
            if numbers in gained:
                del gained[numbers]
            else:
                lost[numbers] = pair
        for given in record["gained"]:
            numbers = tuple(given)
            if numbers in lost:
                del lost[numbers]
            else:
                gained[numbers] = None
    return list(gained), lost


@dataclass(frozen=True, eq=False)
class Known:
    """The knowledge of a state: clues, minimal hitting sets of their edges (one of each mirror pair), how many pairs
    violate each, and the column-set index."""

    clues: WitnessedClues
    sets: Sets
    violations: NDArray[np.int64]
    index: ColumnSetIndex


def row_arrays(
    codes: NDArray[np.int32], ids: NDArray[np.int64], killed: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Arrays of the rows that come and of those that go; it lacks what is empty."""
    found: dict[str, NDArray[Any]] = {"codes": codes, "ids": ids} if len(ids) else {}
    return found | {"killed": killed} if len(killed) else found


def difference(before: Known, after: Known, gone: NDArray[np.bool_] | None) -> dict[str, NDArray[Any]]:
    """Arrays that turn `before` into `after`. `gone`: bool (clues before,), the clues that went; new ones are last."""
    found: dict[str, NDArray[Any]] = {}
    if after.clues is not before.clues:
        old = before.clues
        if gone is not None and gone.any():
            found["clues_gone"] = np.flatnonzero(gone)
            old = old.without(gone)
        stay = len(old)
        if len(after.clues) > stay:
            found["clues"] = after.clues.clues[stay:]
            found["witnesses"] = after.clues.witnesses[stay:]
        if len(after.clues.counts):
            counts = np.zeros(len(after.clues), dtype=np.int64)
            counts[:stay] = old.counts
            changed = np.flatnonzero(counts != after.clues.counts)
            if len(changed):
                found["recounted"], found["count"] = changed, after.clues.counts[changed]
    if after.sets is not before.sets:
        found["sets_gone"] = np.flatnonzero(~among(before.sets, after.sets))
        found["sets"] = after.sets[~among(after.sets, before.sets)]
    if after.violations.any() or before.violations.any():
        found["violations"] = after.violations
    if after.index is not before.index:
        found |= {"probes": after.index.probes, "promised": after.index.promised, "own": after.index.own}
    return found


def applied(known: Known, arrays: dict[str, NDArray[Any]]) -> Known:
    """`known` with the arrays of `difference` applied."""
    clues = known.clues
    if "clues_gone" in arrays:
        gone = np.zeros(len(clues), dtype=np.bool_)
        gone[arrays["clues_gone"]] = True
        clues = clues.without(gone)
    if "clues" in arrays:
        added = len(arrays["clues"])
        counts = clues.counts
        if "count" in arrays:
            counts = np.concatenate([counts, np.zeros(added, dtype=np.int64)])
        clues = replace(
            clues, clues=np.concatenate([clues.clues, arrays["clues"]]),
            witnesses=np.concatenate([clues.witnesses, arrays["witnesses"]]), counts=counts,
        )  # fmt: skip
    if "recounted" in arrays:
        counts = clues.counts.copy()
        counts[arrays["recounted"]] = arrays["count"]
        clues = replace(clues, counts=counts)
    sets = known.sets
    if "sets_gone" in arrays:
        stay = np.ones(len(sets), dtype=np.bool_)
        stay[arrays["sets_gone"]] = False
        sets = np.concatenate([sets[stay], arrays["sets"]])
        sets = sets[np.lexsort(sets.T[::-1])]
    violations = known.violations
    if "violations" in arrays:
        violations = arrays["violations"]
    elif len(violations) != len(sets):
        violations = np.zeros(len(sets), dtype=np.int64)
    index = known.index
    if "probes" in arrays:
        index = ColumnSetIndex(arrays["probes"], arrays["promised"], arrays["own"])
    return Known(clues, sets, violations, index)


def among(sets: Sets, others: Sets) -> NDArray[np.bool_]:
    """bool (sets,): which are among some others."""
    if not len(sets) or not len(others):
        return np.zeros(len(sets), dtype=np.bool_)
    whole = np.dtype((np.void, sets.dtype.itemsize * sets.shape[1]))
    mine, theirs = (np.ascontiguousarray(a).view(whole).ravel() for a in (sets, others))
    return np.isin(mine, theirs)
