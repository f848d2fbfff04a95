"""Results of a discovery of inclusion dependencies."""

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
