"""What there is to say of a discovery: what in the table makes results empty or idle, and what a limit means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tuplewise.engine.errors import Wording, number_of
from tuplewise.engine.grouping import collapse
from tuplewise.engine.od.dependency import mask_of
from tuplewise.engine.od.found import Discovery, FoundDependencies
from tuplewise.engine.options import KeyDiscoverOptions
from tuplewise.engine.run import Clock
from tuplewise.engine.table.relation import Relation, idle_columns, note_on_idle
from tuplewise.gpu_kernels.device import pick_device

NAMES_SHOWN = 5


def discovery_of(
    relation: Relation, options: Any, found: FoundDependencies, algorithm: str, reason: str, device: str,
    device_reason: str, clock: Clock,
) -> Discovery:  # fmt: skip
    """The discovery that a search makes, with its notes."""
    found = without_idle(relation, options, found)
    return Discovery(
        relation=relation,
        options=options,
        dependencies=found.dependencies,
        removals=found.removals,
        errors=found.errors,
        algorithm=algorithm,
        algorithm_reason=reason,
        device=device,
        device_reason=device_reason,
        timings_seconds=clock.seconds,
        partial=found.reached is not None,
        notes=notes_on(relation, options, found),
        search=found.search,
        complete_context=complete_context(options, found),
    )


def complete_context(options: Any, found: FoundDependencies) -> int | None:
    """See Discovery."""
    if found.reached is None:
        return None
    return found.complete_context if options.most_context is None else min(found.complete_context, options.most_context)


def without_idle(relation: Relation, options: Any, found: FoundDependencies) -> FoundDependencies:
    """Remove the dependencies of columns without values, if nulls are unknown. Such a column agrees with nothing and
    differs from nothing, so it is a key, and determines all columns and is determined by all. No other dependency
    implies these or follows from them."""
    idle = idle_columns(relation, options.nulls)
    if not idle.any():
        return found
    of = found.dependencies
    named = np.any(of.contexts & mask_of(np.flatnonzero(idle).tolist(), of.contexts.shape[1]), axis=1)
    for side in (of.left, of.right):
        named |= (side >= 0) & idle[side]
    removals, errors = (None if a is None else a[~named] for a in (found.removals, found.errors))
    return replace(found, dependencies=of.take(~named), removals=removals, errors=errors)


def notes_on(relation: Relation, options: Any, found: FoundDependencies) -> list[str]:
    """What in the table makes results empty or idle, and what a limit means for them."""
    notes = note_on_idle(relation, options.nulls)
    idle = idle_columns(relation, options.nulls)
    if not relation.columns:
        notes.append("the table has no columns: nothing to learn")
    elif relation.all_rows < 2:
        rows = number_of(relation.all_rows, "row")
        notes.append(f"{rows}, so there are no pairs of rows: everything holds with an empty context")
    with_nulls = [c.name for c, out in zip(relation.columns, idle.tolist(), strict=True) if c.nulls and not out]
    if options.nulls == "unknown" and with_nulls:
        more = " and others" if len(with_nulls) > NAMES_SHOWN else ""
        shown = ", ".join(map(repr, with_nulls[:NAMES_SHOWN])) + more
        said = "nulls are unknown: a row with a null agrees with no other on {} ({nulls}: it does)"
        notes.append(Wording(said, shown, nulls="value"))
    if isinstance(options, KeyDiscoverOptions) and not len(found.dependencies) and found.reached is None:
        notes += _why_no_key(relation, options, found)
    if options.max_context is not None:
        notes.append(f"only sets of at most {number_of(options.max_context, 'column')} were looked at")
    elif options.most_context is not None:
        said = (
            "only sets of at most {} were looked at ({max_context:K}: of K): relative to chance, more columns may be "
            "worse than fewer"
        )
        notes.append(Wording(said, number_of(options.most_context, "column")))
    if found.reached is not None:
        what = "candidates left to look at"
        if found.undecided:
            what = f"{number_of(found.undecided, 'candidate')} undecided"
        notes.append(f"{found.reached} with {what}: {_what_is_listed(complete_context(options, found))}")
    return notes


def _what_is_listed(complete: int | None) -> str:
    """What a limit means for the list. `complete`: see Discovery."""
    if complete is None or complete < 0:
        return "each one listed holds and is minimal, others are missing"
    size = "no column" if complete == 0 else f"at most {number_of(complete, 'column')}"
    levels = "level 0 is complete" if complete == 0 else f"levels 0 to {complete} are complete"
    return (
        f"all with sets of {size} are listed ({levels}); of those with more each one listed holds and is minimal, "
        "others are missing"
    )


def _why_no_key(relation: Relation, options: KeyDiscoverOptions, found: FoundDependencies) -> list[str]:
    """Equal rows, where they are the reason. Cost: some nanoseconds for each cell."""
    if not relation.columns:
        return []
    if relation.rows < relation.all_rows:  # the rows are in Spark; null rows collapse, too
        known = options.nulls == "value" or not any(column.nulls for column in relation.columns)
        equal = known and found.search.get("equal_rows", 0) > 0
        return ["some rows are equal in all columns: no key"] if equal else []
    rows = np.arange(relation.rows)
    codes = relation.codes[~idle_columns(relation, options.nulls)]
    if options.nulls == "unknown":
        rows = np.flatnonzero(np.all(codes >= 0, axis=0))
    codes = np.ascontiguousarray(codes[:, rows])
    kept, doubled = collapse(codes, range(len(codes)), pick_device("cpu"))
    again = kept[doubled]
    if not len(again):
        return []
    first, second = np.flatnonzero(np.all(codes == codes[:, again[:1]], axis=0))[:2]
    t, u = (relation.position_of(int(rows[place])) for place in (first, second))
    if options.error > 0 and options.error_measure != "g3":
        return []
    if options.error > 0:
        return [f"rows {t} and {u} are equal in all columns, and more so than rows may be removed: no key"]
    return [f"rows {t} and {u} are equal in all columns: no key"]
