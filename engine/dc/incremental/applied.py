"""Changes of a state: constraints gained and lost, and the pair of rows that broke each lost one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint

Name = Any  # of a row: its id, or {column: value} of its key


@dataclass(frozen=True)
class LostRule:
    """A constraint that is no longer listed, and the names of a pair of rows (t, u) that broke it.

    u is None for a constraint about one row. There is no pair where another constraint implies it now."""

    rule: DenialConstraint
    broken_by: tuple[Name, Name] | None


@dataclass(frozen=True, eq=False)
class AppliedRevision:
    """The changes of one revision, constraints in result order. `row_ids`: int64, of the new rows, in their order."""

    revision: int
    rows: int
    gained: tuple[DenialConstraint, ...]
    lost: tuple[LostRule, ...] = ()
    row_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleChanges:
    """The net changes of several revisions: constraints that are listed now and were not before, and the reverse."""

    gained: tuple[DenialConstraint, ...]
    lost: tuple[LostRule, ...]
