"""Discovery of denial constraints in this process: from a relation to its minimal constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tuplewise.engine.dc import estimate, hybrid, hydra, workload
from tuplewise.engine.dc.discovery import DcDiscovery, Searched, discovery_of
from tuplewise.engine.dc.evidence import ComparePairs, EvidenceSet, collect_evidence
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.predicate import PredicateSpace, given_space, space_to_search
from tuplewise.engine.errors import LimitReached, Wording, joined
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.watch import available_bytes
from tuplewise.gpu_kernels.device import Device, pick_device


def discover_here(
    relation: Relation,
    options: DcDiscoverOptions,
    *,
    space: PredicateSpace | None = None,
    run: Run,
    comparing: ComparePairs | None = None,
) -> DcDiscovery:
    """The minimal denial constraints of a relation; see `discover.discover`.

    Parameters
    ----------
    comparing : callable or None
        Compares all pairs elsewhere, where the algorithm is "evidence": no GPU of this process is used then.
    """
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
    if sampled:
        algorithm, reason = "evidence", "a sample of pairs was asked for"
        found = estimate.find(relation, space, device=device, run=run, lap=clock.lap)
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
        searched = ways[algorithm](relation, space, device, run, clock)
    if searched.reached is not None and searched.pairs_missing:
        searched = replace(searched, reached=joined((searched.reached, workload.what_would_do(work, options)), ". "))
    return discovery_of(relation, options, space, searched, algorithm, reason, device.described, device.reason, clock)


def _by_hybrid(relation: Relation, space: PredicateSpace, device: Device, run: Run, clock: Clock) -> Searched:
    """The loop of chosen pairs and validations."""
    found = hybrid.find(relation, space, device=device, run=run, lap=clock.lap)
    reached = None if found.reached is None else hybrid.what_a_limit_means(found, space)
    return Searched(found.arrays, reached, search=found.search)


def _by_hydra(relation: Relation, space: PredicateSpace, device: Device, run: Run, clock: Clock) -> Searched:
    """Hydra as published."""
    found = hydra.find(relation, space, device=device, run=run, clock=clock)
    return Searched(found.arrays, found.reached, search=found.search)


def _by_evidence(
    relation: Relation,
    space: PredicateSpace,
    device: Device,
    run: Run,
    clock: Clock,
    *,
    comparing: ComparePairs | None,
) -> Searched:
    """All pairs compared once, and their evidence inverted."""
    evidence, arrays, reached = _search(relation, space, device, run, clock, comparing)
    if evidence is None:
        return Searched(arrays, reached, pairs_missing=True)
    return Searched(arrays, reached, len(evidence), outcome_counts=evidence.outcome_counts)


def _search(
    relation: Relation,
    space: PredicateSpace,
    device: Device,
    run: Run,
    clock: Clock,
    comparing: ComparePairs | None,
) -> tuple[EvidenceSet | None, ConstraintArrays, str | None]:
    """Evidence (None where a limit ended it) and constraints, and what a limit that was reached means for them."""
    try:
        evidence = collect_evidence(relation, space, device=device, run=run, comparing=comparing)
    except LimitReached as limit:
        return None, ConstraintArrays.none(False), f"{limit} while pairs were compared: no constraint is proven"
    finally:
        clock.lap("evidence")
    if not evidence.complete:
        unproven = Wording(
            "time limit reached while pairs were compared: no constraint is proven. Allow more time, or look at fewer "
            "rows ({rows})"
        )
        return None, ConstraintArrays.none(False), unproven
    try:
        arrays = invert(evidence, run)
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
