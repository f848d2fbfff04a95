"""Results of discoveries and checks of inclusion dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import Wording
from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.values import family_of
from tuplewise.engine.options import IndCheckOptions
from tuplewise.engine.table.relation import Column, TypeName

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 5
"""Maximum number of rows named for each missing value."""


@dataclass(frozen=True)
class TableFound:
    """A table that took part.

    Attributes
    ----------
    path : as given; None for tables in memory
    columns : with distinct values and nulls counted
    """

    name: str
    path: str | None
    rows: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Clustered:
    """Tables and their attribute clustering.

    Attributes
    ----------
    notes : notes from loading, each prefixed with the name of its table
    search : record of the work, for results
    """

    tables: tuple[TableFound, ...]
    clustering: AttributeClustering
    notes: tuple[str, ...]
    timings_seconds: Mapping[str, float]
    spark: Mapping[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundInd:
    """An inclusion dependency that holds, exactly or within the allowed error.

    Attributes
    ----------
    dependent_distinct, referenced_distinct : distinct values (tuples, for several columns) without nulls
    missing_values : distinct values of the dependent side that are missing from the referenced side
    evidence : evidence for a foreign key; None before it was computed
    """

    ind: InclusionDependency
    dependent_distinct: int
    referenced_distinct: int
    missing_values: int
    evidence: Any = None


@dataclass(frozen=True, eq=False)
class FoundInds:
    """Result of a discovery.

    Attributes
    ----------
    tables : in the order given
    attributes : all columns, tables in order
    inds : by size, then by dependent attributes, then by referenced ones, in the order of `attributes`
    trivial : number of pairs A <= B of different attributes where A has no values, so is included everywhere
    work : "driver": in this process; "spark": in tasks of Spark
    spark : "version" and "master" of the session used, or None
    partial : whether a limit ended the work; `notes` explain the effect
    """

    options: Any
    work: Literal["driver", "spark"]
    work_reason: str
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    tables: tuple[TableFound, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    inds: tuple[FoundInd, ...] = ()
    trivial: int = 0
    partial: bool = False
    notes: tuple[str, ...] = ()
    spark: Mapping[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Examples:
    """Some missing values of a dependency: those with the most rows first, ties in order of first appearance.

    Attributes
    ----------
    values : values of each dependent column, pyarrow arrays (examples,)
    counts : number of rows with each value, int64 (examples,)
    rows : positions of the first rows with each value, `SHOWN_ROWS` at most
    """

    values: tuple[pa.Array, ...]
    counts: NDArray[np.int64]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class IndCheck:
    """Whether one dependency holds. All counts are None if a limit was reached first.

    Attributes
    ----------
    holds : None if undecided
    dependent_distinct, referenced_distinct : distinct values (tuples, for several columns) without nulls
    missing_values : distinct values of the dependent side that are missing from the referenced side
    rows_missing : rows of the dependent table with a missing value
    rows_null : rows of the dependent table with a null in a dependent column; the dependency does not apply to them
    reason : why no values were compared, if the columns have values but of types that can't be compared
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
    tables : tables named in the dependencies, with their columns named there
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
        """Whether a limit left some dependencies undecided."""
        return any(check.holds is None for check in self.checks)


def not_compared(ind: InclusionDependency, types: Callable[[Attribute], TypeName], as_text: bool) -> str | None:
    """Why two sides can have no value in common, whatever they hold; None if they can."""
    for a, b in zip(ind.dependent, ind.referenced, strict=True):
        if family_of(types(a), as_text) != family_of(types(b), as_text):
            said = "{} is {} and {} is {}: values of these types are not compared. As text they are: {as_text}"
            return Wording(said, a, types(a), b, types(b))
    return None


def undecided_note(reached: str, checks: Sequence[IndCheck]) -> str:
    """A note for a check that reached a limit."""
    undecided = sum(check.holds is None for check in checks)
    return f"{reached}: {undecided:,} of {len(checks):,} dependencies are undecided"
