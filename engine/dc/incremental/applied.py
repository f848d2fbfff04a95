"""Changes of a state: constraints gained and lost, and the pair of rows that broke each lost one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.made_on_access import MadeOnAccess

Name = Any  # of a row: its id, or {column: value} of its key


@dataclass(frozen=True)
class LostRule:
    """A constraint that is no longer listed, and the names of a pair of rows (t, u) that broke it.

    u is None for a constraint about one row. There is no pair where another constraint implies it now."""

    rule: DenialConstraint
    broken_by: tuple[Name, Name] | None


class LostRules(MadeOnAccess[LostRule]):
    """Constraints that are no longer listed, made on access. `pairs`: names [t, u] for each, or None."""

    def __init__(self, rules: Sequence[DenialConstraint], pairs: Sequence[Any]) -> None:
        self._rules, self._pairs = rules, pairs

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, index: int) -> LostRule: ...

    @overload
    def __getitem__(self, index: slice) -> LostRules: ...

    def __getitem__(self, index: int | slice) -> LostRule | LostRules:
        if isinstance(index, slice):
            return LostRules(self._rules[index], self._pairs[index])
        pair = self._pairs[index]
        return LostRule(self._rules[index], None if pair is None else (pair[0], pair[1]))


@dataclass(frozen=True, eq=False)
class AppliedRevision:
    """The changes of one revision, constraints in result order. `row_ids`: int64, of the new rows, in their order."""

    revision: int
    rows: int
    gained: Sequence[DenialConstraint]
    lost: Sequence[LostRule] = ()
    row_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleChanges:
    """The net changes of several revisions: constraints that are listed now and were not before, and the reverse."""

    gained: tuple[DenialConstraint, ...]
    lost: tuple[LostRule, ...]
