"""What a check of inclusion dependencies found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import Wording
from tuplewise.engine.ind.dependency import InclusionDependency
from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.options import IndCheckOptions

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 5
"""Rows that are named of each missing value, at most."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Some missing values of a dependency, those of most rows first; of as many rows, the one that comes first.

    Attributes
    ----------
    values : for each dependent column its values, pyarrow arrays (examples,)
    counts : rows with each value, int64 (examples,)
    rows : positions of the first rows with each, `SHOWN_ROWS` at most
    """

    values: tuple[pa.Array, ...]
    counts: NDArray[np.int64]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class IndCheck:
    """Whether one dependency holds. All counts are None where a limit came before.

    Attributes
    ----------
    holds : None where it is not known
    dependent_distinct, referenced_distinct : distinct values (lists of values, of several columns) without nulls
    missing_values : distinct values of the dependent side that the referenced side lacks
    rows_missing : rows of the dependent table that have them
    rows_null : rows of the dependent table with a null in a dependent column: the dependency says nothing of them
    reason : why no value was compared, where the types of columns that have values forbid it
    """

    ind: InclusionDependency
    holds: bool | None
    dependent_distinct: int | None = None
    referenced_distinct: int | None = None
    missing_values: int | None = None
    rows_missing: int | None = None
    rows_null: int | None = None
    reason: str | None = None
    examples: Examples | None = None
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class CheckedInds:
    """Result of a check.

    Attributes
    ----------
    tables : those that the dependencies name, with the columns that they name
    work : "driver": in this process; "spark": in tasks of Spark
    """

    tables: tuple[TableFound, ...]
    checks: tuple[IndCheck, ...]
    options: IndCheckOptions
    work: Literal["driver", "spark"]
    work_reason: str
    timings_seconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    spark: Mapping[str, str] | None = None
    device: str = "cpu"
    device_reason: str = "rows are compared on the CPU"

    @property
    def partial(self) -> bool:
        """Whether a limit left some undecided."""
        return any(check.holds is None for check in self.checks)


def not_compared(left: str, right: str) -> str:
    """What is said of two columns whose types forbid to compare them."""
    return Wording("{} and {}: values of these types are not compared. As text they are: {as_text}", left, right)


def undecided_note(reached: str, checks: Sequence[IndCheck]) -> str:
    """What is said where a limit was reached."""
    undecided = sum(check.holds is None for check in checks)
    return f"{reached}: {undecided:,} of {len(checks):,} dependencies are undecided"
