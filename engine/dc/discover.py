"""Discovery of denial constraints: one call from a relation to its minimal constraints, with what there is to say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc import estimate, hybrid, hydra, workload
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.estimate import Estimate
from tuplewise.engine.dc.evidence import ComparePairs, EvidenceSet, collect_evidence
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.outcome_counts import table_outcome_counts, undecided_pairs
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations, given_space, space_to_search
from tuplewise.engine.dc.ranking import Ranking, order_by, rank_counted
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.options import DcDiscoverOptions, RankBy
from tuplewise.engine.table.relation import NULL_CODE, Relation, idle_columns, note_on_idle
from tuplewise.engine.table.table import Table
from tuplewise.engine.watch import (
    Clock,
    Progress,
    Step,
    Watch,
    available_bytes,
    most_bytes_unless,
    refuse_spark,
    silent,
)
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import ACROSS

NAMES_SHOWN = 10


class ConstraintList(Sequence[DenialConstraint]):
    """Constraints as objects, made from the arrays when they are asked for."""

    def __init__(self, space: PredicateSpace, arrays: ConstraintArrays) -> None:
        self._space, self._arrays = space, arrays

    def __len__(self) -> int:
        return len(self._arrays)

    @overload
    def __getitem__(self, index: int) -> DenialConstraint: ...

    @overload
    def __getitem__(self, index: slice) -> ConstraintList: ...

    def __getitem__(self, index: int | slice) -> DenialConstraint | ConstraintList:
        if isinstance(index, slice):
            return ConstraintList(self._space, self._arrays.take(np.arange(len(self))[index]))
        row = range(len(self))[index]
        return self._space.constraint(self._arrays.predicates[row, : self._arrays.sizes[row]].tolist())

    def __iter__(self) -> Iterator[DenialConstraint]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, eq=False)
class DcDiscovery:
    """What a discovery found, and how.

    Attributes
    ----------
    arrays : ConstraintArrays
        Predicate numbers, sizes, violations and whether a constraint is about one row; in result order.
    ranking : Ranking
        Succinctness, coverage and g1, in the same order.
    distinct_evidences : int or None
        None where the evidence was not completed.
    partial : bool
        Whether a limit ended the work; `notes` say what that means.
    search : mapping or None
        What a search that doesn't compare all pairs did (result.search in JSON); None for evidence.
    estimate : Estimate or None
        How sure the figures are, where pairs were sampled; None where all are exact.
    """

    relation: Relation
    options: DcDiscoverOptions
    space: PredicateSpace
    arrays: ConstraintArrays
    ranking: Ranking
    distinct_evidences: int | None
    ordered_pairs: int
    algorithm: str
    algorithm_reason: str
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: list[str]
    search: Mapping[str, Any] | None = None
    estimate: Estimate | None = None

    @cached_property
    def constraints(self) -> ConstraintList:
        """The constraints as objects, in result order."""
        return ConstraintList(self.space, self.arrays)

    def best(self, rank_by: RankBy, limit: int | None = None) -> NDArray[np.int64]:
        """Indexes of the constraints from best to worst by one figure; ties stay in result order."""
        return order_by(self.ranking, rank_by)[:limit]


def most_bytes_to_search(options: DcDiscoverOptions) -> int | None:
    """Bytes that the codes of a table may take for a discovery in this process; None: any. See `load`.

    Raises InputError where Spark is asked for what only this process does.
    """
    only_here: tuple[str, str, str] | None = None
    if options.algorithm == "hydra" or (options.algorithm == "hybrid" and options.error > 0):
        only_here = ("algorithm", options.algorithm, "'auto', 'evidence' or 'hybrid'")
    elif options.sample_pairs is not None:
        only_here = ("sample_pairs", str(options.sample_pairs), "none: samples are drawn in one process")
    if only_here is None and by_all_pairs(options) and options.run_on == "auto":
        return None  # these codes come to this process in any case
    return most_bytes_unless(only_here, options)


def by_all_pairs(options: DcDiscoverOptions) -> bool:
    """Whether a discovery in Spark compares all pairs: asked for, or approximate (which needs their counts)."""
    return options.algorithm == "evidence" or (options.algorithm == "auto" and options.error > 0)


def discover(
    table: Table,
    options: DcDiscoverOptions | None = None,
    *,
    space: PredicateSpace | None = None,
    step: Step = silent,
    progress: Progress | None = None,
    deadline: float | None = None,
    comparing: ComparePairs | None = None,
) -> DcDiscovery:
    """The minimal denial constraints of a table (semantics.md, "Reported DCs").

    Parameters
    ----------
    table : Relation or TableInSpark
        Of the latter the rows stay where they are, unless all pairs are compared.
    options : DcDiscoverOptions or None
    space : PredicateSpace or None
        Of another table with these columns, of these types; None: the table's own.
    step : callable
        Called with the name of each step in Spark.
    progress : callable or None
        Called with the stage (of evidence: "evidence", "inversion") and the share of it that is done.
    deadline : float or None
        On the clock of time.monotonic; None: now and options.time_limit.
    comparing : callable or None
        Compares all pairs elsewhere, where the algorithm is "evidence": no GPU of this process is used then.

    Raises
    ------
    InputError
        For work that would not end or not fit, with what to do.
    DeviceError
        For a device that was asked for and can't be had.

    Notes
    -----
    Cost: that of the algorithm (workload.choose_algorithm takes one): rows squared times comparisons for the evidence
    of all pairs, or what hybrid.py or hydra say; and the minimal hitting sets of distinct evidences, whose number no
    bound in the size of the table limits.
    """
    options = options or DcDiscoverOptions()
    if deadline is None and options.time_limit is not None:
        deadline = time.monotonic() + options.time_limit
    if not isinstance(table, Relation):
        from tuplewise.engine.dc.distributed_discover import discover_in_spark

        return discover_in_spark(table, options, space=space, step=step, progress=progress, deadline=deadline)
    relation = table
    refuse_spark(options, relation.name)
    device = pick_device(options.device if comparing is None else "cpu")
    clock = Clock()
    workload.refuse_many_columns(relation, options)
    space = space_to_search(relation, options) if space is None else given_space(space, relation, options)
    clock.lap("space")
    work = workload.estimate(relation, space, device.kind, None if comparing is None else comparing.slots)
    available = available_bytes()
    algorithm, reason = workload.choose_algorithm(work, relation.rows, options, available)
    sampled = options.sample_pairs is not None and relation.rows > 1
    if relation.rows > 1 and algorithm == "evidence" and not sampled:
        workload.refuse_hopeless(work, relation, options, available)
    else:
        workload.refuse_many_atoms(relation, space.atoms, options)
    clock.lap("estimate")
    watch = Watch(progress, options.memory_limit)
    if sampled:
        algorithm, reason = "evidence", "a sample of pairs was asked for"
        found = estimate.find(relation, space, device=device, deadline=deadline, stage=watch.stage, lap=clock.lap)
        searched = Searched(
            found.arrays, found.reached, found.evidences, ranking=found.ranking, estimate=found.estimate,
            notes=found.notes,
        )  # fmt: skip
    else:
        ways: dict[str, Callable[..., Searched]] = {
            "evidence": partial(_by_evidence, comparing=comparing),
            "hybrid": _by_hybrid,
            "hydra": _by_hydra,
        }
        searched = ways[algorithm](relation, space, device, deadline, watch, clock)
    if searched.reached is not None and searched.pairs_missing:
        searched = replace(searched, reached=f"{searched.reached}. {workload.what_would_do(work, options)}")
    return discovery_of(relation, options, space, searched, algorithm, reason, device, clock)


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search found: `reached` says what a limit means for it, `evidences` how many distinct ones there were.

    Without a ranking it is made from `outcome_counts`, or from counts of the table.
    """

    arrays: ConstraintArrays = field(default_factory=ConstraintArrays.none)
    reached: str | None = None
    evidences: int | None = None
    search: Mapping[str, Any] | None = None
    outcome_counts: NDArray[np.int64] | None = None
    ranking: Ranking | None = None
    estimate: Estimate | None = None
    notes: list[str] = field(default_factory=list)
    pairs_missing: bool = False


def discovery_of(
    relation: Relation,
    options: DcDiscoverOptions,
    space: PredicateSpace,
    searched: Searched,
    algorithm: str,
    reason: str,
    device: Device,
    clock: Clock,
) -> DcDiscovery:
    """What a search found, ranked, with what there is to say."""
    ranking = searched.ranking
    if ranking is None:
        counts = searched.outcome_counts
        if counts is None and len(searched.arrays):
            counts = table_outcome_counts(relation, space)
        ranking = Ranking.none() if counts is None else rank_counted(searched.arrays, space, counts, relation.rows)
    notes = notes_on_table(relation, options, space) + ([] if searched.reached is None else [searched.reached])
    clock.lap("ranking")
    return DcDiscovery(
        relation=relation,
        options=options,
        space=space,
        arrays=searched.arrays,
        ranking=ranking,
        distinct_evidences=searched.evidences,
        ordered_pairs=relation.rows * (relation.rows - 1),
        algorithm=algorithm,
        algorithm_reason=reason,
        device=device.described,
        device_reason=device.reason,
        timings_seconds=clock.seconds,
        partial=searched.reached is not None,
        notes=[*notes, *_notes_on_nulls(relation, options, space), *searched.notes],
        search=searched.search,
        estimate=searched.estimate,
    )


def _by_hybrid(
    relation: Relation, space: PredicateSpace, device: Device, deadline: float | None, watch: Watch, clock: Clock
) -> Searched:
    """The loop of chosen pairs and validations."""
    progress = watch.stage(hybrid.STAGE)
    found = hybrid.find(relation, space, device=device, deadline=deadline, progress=progress, lap=clock.lap)
    reached = None if found.reached is None else hybrid.what_a_limit_means(found, space)
    return Searched(found.arrays, reached, search=found.search)


def _by_hydra(
    relation: Relation, space: PredicateSpace, device: Device, deadline: float | None, watch: Watch, clock: Clock
) -> Searched:
    """Hydra as published."""
    found = hydra.find(relation, space, device=device, deadline=deadline, stage=watch.stage, clock=clock)
    return Searched(found.arrays, found.reached, search=found.search)


def _by_evidence(
    relation: Relation,
    space: PredicateSpace,
    device: Device,
    deadline: float | None,
    watch: Watch,
    clock: Clock,
    *,
    comparing: ComparePairs | None,
) -> Searched:
    """All pairs compared once, and their evidence inverted."""
    evidence, arrays, reached = _search(relation, space, device, deadline, watch, clock, comparing)
    if evidence is None:
        return Searched(arrays, reached, pairs_missing=True)
    return Searched(arrays, reached, len(evidence), outcome_counts=evidence.outcome_counts)


def _search(
    relation: Relation,
    space: PredicateSpace,
    device: Device,
    deadline: float | None,
    watch: Watch,
    clock: Clock,
    comparing: ComparePairs | None,
) -> tuple[EvidenceSet | None, ConstraintArrays, str | None]:
    """Evidence (None where a limit ended it) and constraints, and what a limit that was reached means for them."""
    try:
        told = watch.stage("evidence")
        evidence = collect_evidence(
            relation, space, device=device, deadline=deadline, progress=told, comparing=comparing
        )
    except LimitReached as limit:
        return None, ConstraintArrays.none(False), f"{limit} while pairs were compared: no constraint is proven"
    finally:
        clock.lap("evidence")
    if not evidence.complete:
        unproven = "time limit reached while pairs were compared: no constraint is proven"
        return None, ConstraintArrays.none(False), f"{unproven}. Allow more time, or look at fewer rows (--rows)"
    try:
        arrays = invert(evidence, deadline=deadline, progress=watch.stage("inversion"))
    except LimitReached as limit:
        return evidence, ConstraintArrays.none(False), f"{limit} while constraints were searched: none is listed"
    finally:
        clock.lap("inversion")
    if arrays.complete:
        return evidence, arrays, None
    reached = "time limit reached while constraints were searched: each one listed holds, others are missing"
    if not space.closed and space.options.minimality == "implication":
        reached += "; one that is missing may imply one that is listed (columns are compared with each other)"
    return evidence, arrays, reached


def _names(relation: Relation, columns: NDArray[np.int64] | list[int]) -> str:
    shown = ", ".join(repr(relation.columns[int(i)].name) for i in columns[:NAMES_SHOWN])
    return shown if len(columns) <= NAMES_SHOWN else f"{shown} and {len(columns) - NAMES_SHOWN} more"


def notes_on_table(relation: Relation, options: DcDiscoverOptions, space: PredicateSpace) -> list[str]:
    """What in the table makes results empty or idle."""
    notes = []
    if options.single_tuple and not options.cross_columns:
        notes.append("single_tuple compares the column pairs that cross_columns=False leaves out: it has no effect")
    if not relation.columns:
        notes.append("the table has no columns: nothing to learn")
    if relation.all_rows < 2:
        about = "nothing to learn"
        if relation.all_rows == 1 and (space.scope != ACROSS).any():
            about = "only rules about one row are learnt, from that row"
        notes.append(f"{_count(relation.all_rows, 'row')}, so there are no pairs of rows: {about}")
        return notes
    empty = [i for i, c in enumerate(relation.columns) if c.distinct == 0]
    constant = [i for i, c in enumerate(relation.columns) if c.distinct == 1 and c.nulls == 0]
    idle = idle_columns(relation, options.nulls)
    if idle.any() and not idle[space.left].any():
        notes += note_on_idle(relation, options.nulls)
    elif empty:
        notes.append(f"{_count(len(empty), 'column')} with nulls only: {_names(relation, empty)}")
    if constant:
        whole = ", that is all columns: all rows are equal" if len(constant) == len(relation.columns) else ""
        notes.append(f"{_count(len(constant), 'column')} with one value only: {_names(relation, constant)}{whole}")
    pairs = relation.all_rows * (relation.all_rows - 1)
    if options.error > 0 and allowed_violations(options.error, pairs) == 0:
        notes.append(f"error {options.error} of {pairs:,} pairs allows no violating pair: the result is exact")
    return notes


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _notes_on_nulls(relation: Relation, options: DcDiscoverOptions, space: PredicateSpace) -> list[str]:
    """How much the rule "unknown" leaves out."""
    if options.nulls != "unknown" or relation.rows < 2:
        return []
    with_null = int(np.count_nonzero(np.any(relation.codes[space.columns] == NULL_CODE, axis=0)))
    return notes_on_nulls(with_null, relation.rows, undecided_pairs(relation, space)) if with_null else []


def notes_on_nulls(with_null: int, rows: int, undecided_pairs: int) -> list[str]:
    """How much the rule "unknown" leaves out of a table: rows with a null, and ordered pairs that compare one."""
    return [
        f"nulls (rule unknown): {with_null:,} of {rows:,} rows have a null in a used column; {undecided_pairs:,} of "
        f"{rows * (rows - 1):,} pairs compare a null somewhere, and satisfy no predicate there"
    ]
