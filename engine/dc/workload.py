"""Cost of a discovery, estimated before it starts, and refusal of hopeless work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.outcome_counts import pair_outcomes
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.words import WITHIN_T, WITHIN_U, merge_clues

# Without a user limit: with more atoms, minimal hitting sets take endless time; longer estimates are refused.
MOST_ATOMS = 400
MOST_SECONDS = 4 * 3600.0
# Bytes below which no estimate is needed; copies of each distinct clue in memory (table, both orders, sort, edges).
SMALL_BYTES = 1 << 30
COPIES = 6
SAMPLED_PAIRS = 1 << 15
_HYBRID = "compares pairs that agree on chosen column sets, validates the rest"
# Seconds per row that all pairs must take before choosing among them surely pays (benchmarks, group `dc_hybrid`: the
# search takes far less on large tables, but up to this on tables of some 80,000 rows with many constraints).
_WORTH_SECONDS_A_ROW = 5e-5
# The same with an error, where the search counts what it compares.
_WORTH_SECONDS_A_COUNTED_ROW = 1e-4
_SECONDS_PER_PAIR = {"cpu": 2.5e-9, "cuda": 2e-11}  # for 16 comparisons, on one core or one device


@dataclass(frozen=True)
class Workload:
    """Cost of comparing all pairs. `evidence_bytes` is a low estimate, from a sample if it may be large."""

    ordered_pairs: int
    comparisons: int
    atoms: int
    evidence_seconds: float
    evidence_bytes: int


def refuse_many_columns(relation: Relation, options: DcDiscoverOptions) -> None:
    """Refuse a table with too many atoms from single columns, before column pairs are examined."""
    refuse_many_atoms(relation, 2 * len(relation.columns) + sum(c.ordered for c in relation.columns), options)


def refuse_many_atoms(relation: Relation, atoms: int, options: DcDiscoverOptions) -> None:
    """Refuse a predicate space with so many atoms that the search for minimal hitting sets would not end."""
    if not _limited(options) and atoms > MOST_ATOMS:
        what = f"{len(relation.columns):,} columns make {atoms:,} outcomes to combine, so the constraints would not end"
        hint = Wording("Choose columns ({columns}, {exclude}), or set {max_predicates} or {time_limit}")
        raise InputError(message(what, allowed=f"{MOST_ATOMS} without a limit", hint=hint))


def estimate(relation: Relation, space: PredicateSpace, device_kind: str, slots: int | None = None) -> Workload:
    """Estimate pairs, comparisons, seconds and bytes of the evidence. `slots`: cores elsewhere that compare."""
    pairs = relation.rows * (relation.rows - 1)
    layout = space.layout
    cores = slots or (usable_cores() if device_kind == "cpu" else 1)
    seconds = pairs / 2 * max(1.0, layout.comparisons / 16) * _SECONDS_PER_PAIR[device_kind] / cores
    clue_bytes = 8 * layout.words * COPIES
    distinct = pairs
    if pairs * clue_bytes > SMALL_BYTES:
        distinct = min(pairs, _distinct_clues(relation, space))
    return Workload(pairs, layout.comparisons, space.atoms, seconds, distinct * clue_bytes)


def choose_algorithm(
    work: Workload, rows: int, options: DcDiscoverOptions, available_bytes: int, elsewhere: bool = False
) -> tuple[Literal["evidence", "hybrid", "hydra"], str]:
    """Choose the algorithm, with the reason. `elsewhere`: whether pairs are compared in other processes."""
    if rows < 2:
        return "evidence", "there are no pairs of rows to choose from"
    if options.algorithm == "hydra":
        return "hydra", "asked for: Hydra as published"
    if options.algorithm == "evidence":
        return "evidence", "asked for: compares all pairs of rows once"
    if options.algorithm == "hybrid":
        return "hybrid", f"asked for: {_HYBRID}"
    if options.error > 0 and (elsewhere or options.error_measure == "lift"):
        return "evidence", "auto: compares all pairs of rows once, since the error needs their counts"
    a_row = _WORTH_SECONDS_A_COUNTED_ROW if options.error > 0 else _WORTH_SECONDS_A_ROW
    worth = rows * max(1.0, work.comparisons / 16) * a_row
    about = f"all {work.ordered_pairs:,} pairs would take about {duration(work.evidence_seconds)}"
    if work.evidence_bytes > (available_bytes if options.memory_limit is None else options.memory_limit):
        return "hybrid", f"auto: {_HYBRID}; the evidence of all pairs would not fit into memory"
    if work.evidence_seconds > worth:
        return "hybrid", f"auto: {_HYBRID}; {about}"
    return "evidence", f"auto: compares all pairs of rows once; {about}, so choosing among them does not pay"


def duration(seconds: float) -> str:
    """An estimated duration, in the unit that suits it."""
    if seconds < 120:
        return f"{max(0.1, seconds):.1f} s"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def refuse_hopeless(work: Workload, relation: Relation, options: DcDiscoverOptions, available_bytes: int) -> None:
    """Raise InputError for work that would not end or not fit; the message says what to do.

    Long work may start if the user gives a limit (time, or predicates of a constraint). Work that doesn't fit in
    memory may not.
    """
    refuse_many_atoms(relation, work.atoms, options)
    if work.evidence_seconds > MOST_SECONDS and not _limited(options):
        what = (
            f"{relation.rows:,} rows make {work.ordered_pairs:,} pairs of {work.comparisons:,} comparisons, about "
            f"{work.evidence_seconds / 3600:,.0f} hours here"
        )
        text = "Look at fewer rows ({rows}), say how long it may take ({time_limit}), or {}"
        hint = Wording(text, _another_way(options))
        raise InputError(message(what, allowed=f"{MOST_SECONDS / 3600:.0f} hours without a limit", hint=hint))
    limit = available_bytes if options.memory_limit is None else min(options.memory_limit, available_bytes)
    if work.evidence_bytes > limit:
        what = (
            f"{work.ordered_pairs:,} pairs of {work.comparisons:,} comparisons leave distinct evidence of at least "
            f"{_gib(work.evidence_bytes)}"
        )
        text = "Choose columns ({columns}, {exclude}) or fewer rows ({rows}), or {}"
        hint = Wording(text, _another_way(options))
        raise InputError(message(what, allowed=f"{_gib(limit)} of memory", hint=hint))


def what_would_do(work: Workload, options: DcDiscoverOptions) -> str:
    """Text with the time for comparing all pairs, and another way to find constraints."""
    text = "All pairs take about {} here; or {}"
    return Wording(text, duration(work.evidence_seconds), _another_way(options))


def _another_way(options: DcDiscoverOptions) -> str:
    """Text on finding constraints without comparing all pairs."""
    if options.error > 0 and options.error_measure == "lift":
        return Wording("bound the share of violating pairs ({error_measure})", error_measure="g1")
    return Wording("compare few pairs ({algorithm})", algorithm="hybrid")


def _limited(options: DcDiscoverOptions) -> bool:
    return options.time_limit is not None or options.max_predicates is not None


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"


def _distinct_clues(relation: Relation, space: PredicateSpace) -> int:
    """Lower estimate of the number of distinct clues: the inverse of the chance that two random pairs leave the same.

    (Simpson's index, without bias; skewed evidence has many more distinct clues than this. Only work that is sure to be
    too large is refused.)
    """
    sample = _sampled_clues(relation, space)
    _, counts = merge_clues(sample, np.ones(len(sample), dtype=np.int64))
    alike = int(np.sum(counts * (counts - 1)))
    total = len(sample) * (len(sample) - 1)
    return total if alike == 0 else total // alike


def _sampled_clues(relation: Relation, space: PredicateSpace) -> NDArray[np.uint64]:
    """Clues of random ordered pairs; uint64 (SAMPLED_PAIRS, words)."""
    rng = np.random.default_rng(space.options.seed)
    t = rng.integers(0, relation.rows, SAMPLED_PAIRS)
    u = (t + rng.integers(1, relation.rows, SAMPLED_PAIRS)) % relation.rows
    layout, codes = space.layout, relation.codes
    clues = np.zeros((SAMPLED_PAIRS, layout.words), dtype=np.uint64)
    for g in range(layout.comparisons):
        x = codes[layout.left[g], u if layout.scope[g] == WITHIN_U else t]
        y = codes[layout.right[g], t if layout.scope[g] == WITHIN_T else u]
        outcome = pair_outcomes(x, y, bool(layout.ordered[g]), space.options.nulls == "unknown")
        clues[:, g // 32] |= outcome.astype(np.uint64) << np.uint64(2 * (g % 32))
    return clues
