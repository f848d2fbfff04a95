"""The result of a search for dependencies, and of a discovery of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.od.dependency import Dependencies
from tuplewise.engine.table.relation import Relation


@dataclass(frozen=True, eq=False)
class FoundDependencies:
    """The result of a search.

    Attributes
    ----------
    dependencies : those that are decided and minimal, in result order; all of them where nothing is undecided
    undecided : candidates that a limit left undecided
    search : what was done, for results
    reached : the limit that was reached, or None
    removals : int64 (dependencies,), rows to remove so that each holds; None where all hold as they are
    errors : float64 (dependencies,), by the measure that was asked for; None where it is the share of these rows
    complete_context : where a limit was reached: all with contexts of at most so many attributes are among them; -1:
        there is no such size
    """

    dependencies: Dependencies
    undecided: int
    search: dict[str, Any]
    reached: str | None
    removals: NDArray[np.int64] | None = None
    errors: NDArray[np.float64] | None = None
    complete_context: int = -1


@dataclass(frozen=True, eq=False)
class Discovery:
    """The result of a discovery of keys, functional or order dependencies.

    Attributes
    ----------
    options : OdDiscoverOptions, FdDiscoverOptions or KeyDiscoverOptions
    dependencies : minimal ones, in result order
    removals : int64 (dependencies,), rows to remove so that each holds; None where `options.error` is 0
    errors : float64 (dependencies,), by `options.error_measure`; None where that is "g3" or no error may be
    partial : whether a limit ended the work; `notes` say what that means
    search : what was done (result.search in JSON)
    complete_context : where it is partial: all with contexts of at most so many attributes are among them; -1: there is
        no such size. None where it isn't
    """

    relation: Relation
    options: Any
    dependencies: Dependencies
    removals: NDArray[np.int64] | None
    algorithm: str
    algorithm_reason: str
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: list[str]
    search: Mapping[str, Any]
    complete_context: int | None = None
    errors: NDArray[np.float64] | None = None

    def take(self, index: NDArray[np.int64]) -> Discovery:
        """The same with these dependencies only, in this order."""
        return replace(
            self,
            dependencies=self.dependencies.take(index),
            removals=None if self.removals is None else self.removals[index],
            errors=None if self.errors is None else self.errors[index],
        )
