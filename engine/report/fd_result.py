"""What `discover_fds` and `discover_keys` return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tuplewise.engine.od.dependency import CONSTANT, KEY
from tuplewise.engine.report.dependencies import FunctionalDependency, Key
from tuplewise.engine.report.dependency_result import DependencyResult, Group
from tuplewise.engine.report.result import Chosen


class FdResult(DependencyResult):
    """The minimal functional dependencies that hold in a table.

    Attributes
    ----------
    fds : sequence of FunctionalDependency, by size of the determinant, then column positions
    relation, partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> found = tw.discover_fds(pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "A"], "id": [1, 2, 3]}))
    >>> print(*found.fds, sep="; ")
    [] -> city; id -> zip
    """

    COMMAND = "fd discover"
    THINGS = ("functional dependency", "functional dependencies")
    SMALLER = "more functional dependencies"
    GROUPS = (
        Group("fds", (CONSTANT,), FunctionalDependency, "", "rows that are equal on the left are equal on the right"),
    )
    ALL = ".fds, .to_pandas()"

    @property
    def fds(self) -> Sequence[FunctionalDependency]:
        return self._groups[0]


class KeyResult(DependencyResult):
    """The minimal keys of a table.

    Attributes
    ----------
    keys : sequence of Key, by number of columns, then their positions
    relation, partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> found = tw.discover_keys(pd.DataFrame({"zip": ["01", "01", "02"], "no": [1, 2, 1], "id": [1, 2, 3]}))
    >>> [key.columns for key in found.keys]
    [('id',), ('zip', 'no')]
    """

    COMMAND = "key discover"
    THINGS = ("key", "keys")
    SMALLER = "more keys"
    GROUPS = (Group("keys", (KEY,), Key, "", "no two rows are equal on all of these columns"),)
    ALL = ".keys, .to_pandas()"

    @property
    def keys(self) -> Sequence[Key]:
        return self._groups[0]

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        """A key is a list of names in JSON: the rows to remove are a list of their own, in the same order."""
        keys = self._ranked(chosen).keys[: chosen.limit]
        costs = {"removals": map(self._cost, keys)} if self._approximate else {}
        return {**costs, **super()._lists(chosen)}
