"""The result of a search for denial constraints, whatever its algorithm, and what a limit means for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import PredicateSpace
from tuplewise.engine.dc.ranking import Ranking

if TYPE_CHECKING:
    from tuplewise.engine.dc.estimate import Estimate

OTHERS_MISSING = "each one listed holds, others are missing"


@dataclass(frozen=True, eq=False)
class FoundConstraints:
    """What a search found.

    Attributes
    ----------
    arrays : the constraints that are decided; all of them where no limit was reached
    reached : which limit ended the work, and what that means; None: none did
    evidences : distinct evidences; None where they were not all compared
    search : what was done (result.search in JSON); None where all pairs were compared, or a sample of them
    outcome_counts : of all pairs, for the ranking; None: counted on the table
    ranking : None: made from these counts
    estimate : how sure the figures are, where pairs were sampled
    notes : what else there is to say
    pairs_missing : whether a limit came before all pairs were compared
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


def implied_by_missing(space: PredicateSpace) -> str:
    """Text to add where missing constraints may imply listed ones; empty where none can."""
    if space.closed or space.options.minimality != "implication":
        return ""
    return "; one that is missing may imply one that is listed (columns are compared with each other)"
