"""What a change of a state brought: constraints gained and lost, and the pair of rows that broke each lost one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint

Name = Any  # of a row: its id, or {column: value} of its key


@dataclass(frozen=True)
class LostRule:
    """A constraint that is no longer listed, and the names of a pair of rows (t, u) that broke it: u is None for a
    constraint about one row; no pair where another constraint, which implies it, has taken its place."""

    rule: DenialConstraint
    broken_by: tuple[Name, Name] | None


@dataclass(frozen=True, eq=False)
class AppliedRevision:
    """What a revision brought: constraints in result order. `row_ids`: int64, of rows that came, in their order."""

    revision: int
    rows: int
    gained: tuple[DenialConstraint, ...]
    lost: tuple[LostRule, ...] = ()
    row_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleChanges:
    """What revisions brought together: what is listed now and was not before, and the other way round."""

    gained: tuple[DenialConstraint, ...]
    lost: tuple[LostRule, ...]
