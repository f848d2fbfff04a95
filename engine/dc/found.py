"""Result of a search for denial constraints, for any algorithm, and the consequences of a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.ranking import Ranking
from tuplewise.engine.errors import number_of

if TYPE_CHECKING:
    from tuplewise.engine.dc.estimate import Estimate

OTHERS_MISSING = "each one listed holds, others are missing"


@dataclass(frozen=True, eq=False)
class FoundConstraints:
    """Result of a search.

    Attributes
    ----------
    arrays : the decided constraints; all constraints if no limit was reached
    reached : the limit that ended the work, and its consequences; None: no limit was reached
    evidences : number of distinct evidences; None if not all pairs were compared
    search : statistics of the search (result.search in JSON); None if all pairs, or a sample of them, were compared
    outcome_counts : of all pairs, for the ranking; None: to be counted on the table
    ranking : None: to be made from these counts
    estimate : confidence of the figures if pairs were sampled
    notes : further notes
    pairs_missing : whether a limit was reached before all pairs were compared
    """

    arrays: ConstraintArrays
    reached: str | None = None
    evidences: int | None = None
    search: Mapping[str, Any] | None = None
    outcome_counts: NDArray[np.int64] | None = None
    ranking: Ranking | None = None
    estimate: Estimate | None = None
    notes: list[str] = field(default_factory=list)
    pairs_missing: bool = False


def listed_in_full(arrays: ConstraintArrays) -> str:
    """Text to add on the sizes of which no constraint is missing; empty if there is none."""
    return f" (all of at most {number_of(arrays.all_of, 'predicate')} are listed)" if arrays.all_of else ""


def implied_by_missing(space: PredicateSpace) -> str:
    """Text to add if missing constraints may imply listed ones; empty if none can."""
    if space.closed or space.options.minimality != "implication":
        return ""
    return "; one that is missing may imply one that is listed (columns are compared with each other)"
