"""Discovery of the minimal denial constraints of a relation in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tuplewise.engine.dc import approximate, estimate, hybrid, workload
from tuplewise.engine.dc.discovery import DcDiscovery, discovery_of
from tuplewise.engine.dc.evidence import ComparePairs, collect_evidence
from tuplewise.engine.dc.found import OTHERS_MISSING, FoundConstraints, implied_by_missing, listed_in_full
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations, given_space, space_to_search
from tuplewise.engine.errors import LimitReached, Wording, joined
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.placement import available_bytes
from tuplewise.engine.run import Clock, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import Device, pick_device


def discover_here(
    relation: Relation,
    options: DcDiscoverOptions,
    *,
    space: PredicateSpace | None = None,
    run: Run,
    comparing: ComparePairs | None = None,
) -> DcDiscovery:
    """Find the minimal denial constraints of a relation; see `discover.discover`.

    Parameters
    ----------
    comparing : compares all pairs elsewhere if the algorithm is "evidence"; no GPU of this process is used then
    """
    device = pick_device(options.device if comparing is None else "cpu")
    clock = Clock()
    workload.refuse_many_columns(relation, options)
    space = space_to_search(relation, options) if space is None else given_space(space, relation, options)
    clock.lap("space")
    work = workload.estimate(relation, space, device.kind, None if comparing is None else comparing.slots)
    available = available_bytes()
    algorithm, reason = workload.choose_algorithm(work, relation.rows, options, available, comparing is not None)
    sampled = options.sample_pairs is not None and relation.rows > 1
    if relation.rows > 1 and algorithm == "evidence" and not sampled:
        workload.refuse_hopeless(work, relation, options, available)
    else:
        workload.refuse_many_atoms(relation, space.atoms, options)
    clock.lap("estimate")
    if sampled:
        algorithm, reason = "evidence", "a sample of pairs was asked for"
    find = estimate.find if sampled else _search_of(algorithm, options, relation.rows, comparing)
    found = find(relation, space, device=device, run=run, lap=clock.lap)
    if found.reached is not None and found.pairs_missing:
        found = replace(found, reached=joined((found.reached, workload.what_would_do(work, options)), ". "))
    return discovery_of(relation, options, space, found, algorithm, reason, device.described, device.reason, clock)


def _search_of(
    algorithm: str, options: DcDiscoverOptions, rows: int, comparing: ComparePairs | None
) -> Callable[..., FoundConstraints]:
    """The search function of an algorithm, which finds the constraints of a relation in a space."""
    if algorithm == "hybrid":
        exact = allowed_violations(options.error, rows * (rows - 1)) == 0
        return hybrid.find if exact else approximate.find
    if algorithm == "evidence":
        return partial(_find_by_evidence, comparing=comparing)
    from tuplewise.engine.published import hydra

    return hydra.find


def _find_by_evidence(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device,
    run: Run,
    lap: Callable[[str], None],
    comparing: ComparePairs | None,
) -> FoundConstraints:
    """Compare all pairs once, and invert their evidence."""
    nothing = ConstraintArrays.none(False)
    try:
        evidence = collect_evidence(relation, space, device=device, run=run, comparing=comparing)
    except LimitReached as limit:
        reached = f"{limit} while pairs were compared: no constraint is proven"
        return FoundConstraints(nothing, reached, pairs_missing=True)
    finally:
        lap("evidence")
    if not evidence.complete:
        reached = Wording(
            "time limit reached while pairs were compared: no constraint is proven. Allow more time, or look at fewer "
            "rows ({rows})"
        )
        return FoundConstraints(nothing, reached, pairs_missing=True)
    found = FoundConstraints(nothing, None, len(evidence), outcome_counts=evidence.outcome_counts)
    try:
        arrays = invert(evidence, run)
    except LimitReached as limit:
        return replace(found, reached=f"{limit} while constraints were searched: none is listed")
    finally:
        lap("inversion")
    if arrays.complete:
        return replace(found, arrays=arrays)
    missing = f"{OTHERS_MISSING}{listed_in_full(arrays)}{implied_by_missing(space)}"
    reached = f"time limit reached while constraints were searched: {missing}"
    return replace(found, arrays=arrays, reached=reached)
