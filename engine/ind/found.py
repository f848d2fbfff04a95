"""What a discovery of inclusion dependencies found, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.table.relation import Column


@dataclass(frozen=True)
class TableFound:
    """A table that took part.

    Attributes
    ----------
    path : as it was given; None for tables in memory
    columns : with distinct values and nulls counted
    """

    name: str
    path: str | None
    rows: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Clustered:
    """Tables, clustered.

    Attributes
    ----------
    notes : what loading says, after the name of its table
    search : what was done, for results
    """

    tables: tuple[TableFound, ...]
    clustering: AttributeClustering
    notes: tuple[str, ...]
    timings_seconds: Mapping[str, float]
    spark: Mapping[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundInd:
    """An inclusion dependency that holds, or misses no more than was allowed.

    Attributes
    ----------
    dependent_distinct, referenced_distinct : distinct values (lists of values, of several columns) without nulls
    missing_values : distinct values of the dependent side that the referenced side lacks
    evidence : what speaks for a foreign key; None before it was looked for
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
    tables : in the order in which they were given
    attributes : all columns, tables in order
    inds : by size, then by dependent attributes, then by referenced ones, in the order of `attributes`
    trivial : pairs A <= B of different attributes where A has no values: it is included everywhere
    work : "driver": in this process; "spark": in tasks of Spark
    spark : "version" and "master" of the session that took part, or None
    partial : whether a limit ended the work; `notes` say what that means
    """

    tables: tuple[TableFound, ...]
    attributes: tuple[Attribute, ...]
    inds: tuple[FoundInd, ...]
    trivial: int
    options: Any
    work: Literal["driver", "spark"]
    work_reason: str
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: tuple[str, ...] = ()
    spark: Mapping[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)
