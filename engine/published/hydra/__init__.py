"""Hydra: exact denial constraints from a sample of pairs and the pairs that violate what the sample suggests.

1. Random and focused sampling of pairs (sampling.py) gives preliminary evidence.
2. Its inversion gives preliminary constraints.
3. Every pair that violates one of these is found through a tree of refiners (refiners.py, completion.py); their
   evidence is the delta evidence.
4. The inversion of preliminary and delta evidence together gives the constraints of the table.

Source: T. Bleifuss, S. Kruse, F. Naumann, "Efficient Denial Constraint Discovery with Hydra", PVLDB 11(3), 2017. That
nothing is missed is its Theorem 2: a constraint X that the full evidence precludes, by the pair p, but the preliminary
one does not, contains a preliminary constraint; p violates that one too, so p was found. This holds as well when only
constraints of at most K predicates are looked for, in both steps: X has at most K, and so has the preliminary one that
it contains. A preliminary constraint that another implies is not checked: what violates it violates the other one, or
does with t and u exchanged, and the evidence of both orders of a violating pair is kept.

Departures from the paper, beside those that the modules name:

- Inversion enumerates minimal hitting sets over excluded outcomes (inversion.py) instead of reconciling constraints
  evidence by evidence. Outcomes make the removal of implied and symmetric preliminary constraints part of the
  inversion where columns are compared with themselves; across columns implication.py removes what is implied.
- Preliminary constraints are always minimal under implication, also where subset minimality is asked for: each
  constraint without violation in the sample is implied by one of them that has no more predicates.
- Predicates follow the project's predicate space, and nulls its two rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuplewise.engine.dc.evidence import EvidenceSet, collect_evidence
from tuplewise.engine.dc.found import OTHERS_MISSING, FoundConstraints, implied_by_missing
from tuplewise.engine.dc.inversion import ConstraintArrays, invert
from tuplewise.engine.dc.predicate import PredicateSpace, allowed_violations
from tuplewise.engine.errors import LimitReached
from tuplewise.engine.grouping import Work
from tuplewise.engine.published.hydra.completion import Completion, Delta
from tuplewise.engine.published.hydra.refiners import PredicateWeights, RefinerOrder, build_tree
from tuplewise.engine.published.hydra.sampling import Evidences, Sample, focused_sample, random_sample
from tuplewise.engine.run import TIME_LIMIT, Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.device import Device


def find(
    relation: Relation,
    space: PredicateSpace,
    *,
    device: Device,
    run: Run,
    lap: Callable[[str], None],
) -> FoundConstraints:
    """The minimal constraints of a relation without violations.

    Parameters
    ----------
    space : its options say nulls, max_predicates, minimality and seed
    run : told of the phases "sample", "focused_sample", "inversion" and "refinement"; its limits end the work
    lap : called with a phase's name when its work is over

    Raises
    ------
    ValueError
        Where the error allows violating pairs.

    Notes
    -----
    Cost: (PARTNERS + foci) comparisons of rows a row at least; an inversion of what they show; a sort or a join for
    each node of the tree, and the pairs that joins list on the way. Memory: the codes twice, and cluster pairs along
    the paths that are walked.
    """
    if allowed_violations(space.options.error, relation.rows * (relation.rows - 1)):
        raise ValueError(f"error: {space.options.error}; allowed: 0. Hydra finds exact constraints only")
    done = _HydraRecord()
    try:
        arrays = _find(relation, space, device, run, lap, done)
    except LimitReached as limit:
        unproven = f"{limit} before all violating pairs were found: no constraint is proven"
        return FoundConstraints(ConstraintArrays.none(False), unproven, search=done.record(relation))
    reached = None
    if not arrays.complete:
        reached = f"time limit reached while constraints were searched: {OTHERS_MISSING}{implied_by_missing(space)}"
    return FoundConstraints(arrays, reached, search=done.record(relation))


@dataclass
class _HydraRecord:
    """What is done so far, for results."""

    sample: Sample | None = None
    preliminary_evidences: int = 0
    preliminary_constraints: int = 0
    completion: Completion | None = None
    delta: Delta | None = None

    def record(self, relation: Relation) -> dict[str, Any]:
        """`result.search` in JSON. A pair that is met again is compared again, so `share_of_pairs` may be above 1."""
        sample, delta = self.sample, self.delta
        by_random = sample.random_pairs if sample else 0
        by_focus = sample.focused_pairs if sample else 0
        compared = by_random + by_focus + (delta.compared_pairs if delta else 0)
        all_pairs = relation.rows * (relation.rows - 1) // 2
        return {
            "sampled_pairs": by_random + by_focus,
            "random_pairs": by_random,
            "focused_pairs": by_focus,
            "foci": [f.record(tuple(relation.column_names)) for f in sample.foci] if sample else [],
            "preliminary_evidences": self.preliminary_evidences,
            "preliminary_constraints": self.preliminary_constraints,
            "refiners_applied": dict(self.completion.applied) if self.completion else {},
            "violating_pairs": delta.violating_pairs if delta else 0,
            "delta_evidences": delta.new if delta else 0,
            "compared_pairs": compared,
            "share_of_pairs": compared / all_pairs if all_pairs else 0.0,
        }


def _find(
    relation: Relation, space: PredicateSpace, device: Device, run: Run, lap: Callable[[str], None], done: _HydraRecord
) -> ConstraintArrays:
    """The constraints. Raises LimitReached."""
    if relation.rows < 2 or space.groups == 0:
        return invert(collect_evidence(relation, space, device=device), run)
    rows = lay_out(relation.codes, space.layout, nulls=space.options.nulls, device=device)
    rng = np.random.default_rng(space.options.seed)
    sample = done.sample = random_sample(rows, relation.rows, space, rng, run)
    lap("sample")
    focused_sample(sample, rows, relation, space, rng, run)
    done.preliminary_evidences = len(sample.evidences)
    lap("focused_sample")

    implied = replace(space, options=replace(space.options, minimality="implication"))
    preliminary = invert(_evidence(relation, implied, sample.evidences), run)
    lap("inversion")
    if not preliminary.complete:
        raise LimitReached(TIME_LIMIT)
    done.preliminary_constraints = len(preliminary)

    assert sample.random.counts is not None
    drawn = EvidenceSet(implied, sample.random.clues, sample.random.counts, 0, relation.rows, True)
    order = RefinerOrder(space, PredicateWeights(drawn, preliminary))
    listed = zip(preliminary.predicates.tolist(), preliminary.sizes.tolist(), strict=True)
    tree = build_tree(order.path(numbers[:size]) for numbers, size in listed)
    work = Work(relation.codes, device, threads=1, deadline=run.deadline)
    delta = done.delta = Delta(rows, sample.evidences, run.deadline)
    done.completion = Completion(work, space.options.nulls == "value", delta, run.stage("refinement"))
    done.completion.run(tree)
    lap("refinement")

    found = invert(_evidence(relation, space, sample.evidences), run)
    lap("inversion")
    return found


def _evidence(relation: Relation, space: PredicateSpace, evidences: Evidences) -> EvidenceSet:
    """As inversion takes it; how many pairs left each evidence is not known, and counts for nothing without error."""
    clues = evidences.clues
    ones = np.ones(len(clues), dtype=np.int64)
    return EvidenceSet(space, clues, ones, relation.rows * (relation.rows - 1), relation.rows, True)
