"""The attribute clustering of tables, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.ind.clusters import AttributeClustering
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.ind.values import Family, canonical_array, family_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.relation.load import load
from tuplewise.engine.relation.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.inclusion import BITS, mask_words

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, eq=False)
class Clustered:
    """Tables, clustered.

    Attributes
    ----------
    reached : the limit that ended the work, or None; the clustering then lacks values
    notes : what loading says, after the name of its table
    """

    tables: tuple[TableFound, ...]
    clustering: AttributeClustering
    notes: tuple[str, ...]
    timings_seconds: Mapping[str, float]
    reached: str | None = None
    spark: Mapping[str, str] | None = None
    search: Mapping[str, Any] = field(default_factory=dict)


def cluster_tables(
    tables: Mapping[str, Any],
    load_options: LoadOptions | None = None,
    *,
    as_text: bool = False,
    spark: SparkSession | None = None,
    progress: Callable[[str, float], None] | None = None,
    deadline: float | None = None,
    memory_limit: int | None = None,
) -> Clustered:
    """The attribute clustering of tables.

    Parameters
    ----------
    tables : paths, frames or Relations, by name
    as_text : compare all values as text
    """
    options = load_options or LoadOptions()
    if as_text:
        options = LoadOptions(**{**vars(options), "types": {"*": "text"}})
    masks: dict[tuple[Family, bytes], int] = {}
    attributes: list[Attribute] = []
    families: list[Family] = []
    described = []
    notes: list[str] = []
    for name, table in tables.items():
        relation = table if isinstance(table, Relation) else load(table, options, name=name, spark=spark)
        described.append(TableFound(name, relation.path, relation.rows, relation.columns))
        notes.extend(f"{name}: {note}" for note in relation.notes)
        for c, column in enumerate(relation.columns):
            family = family_of(column.type, as_text)
            bit = 1 << len(attributes)
            attributes.append(Attribute(name, column.name))
            families.append(family)
            for value in canonical_array(family, distinct_values(relation, c)).to_pylist():
                masks[family, value] = masks.get((family, value), 0) | bit
    words = mask_words(len(attributes))
    rows = [[mask >> (BITS * w) & (1 << BITS) - 1 for w in range(words)] for mask in masks.values()]
    clustering = AttributeClustering.of(
        attributes, families, np.array(rows, dtype=np.uint64).reshape(-1, words), np.ones(len(rows), dtype=np.int64)
    )
    return Clustered(tuple(described), clustering, tuple(notes), {})


def distinct_values(relation: Relation, column: int) -> pa.Array:
    """The distinct values of a column, without null, as its domain's type, ascending."""
    codes = np.unique(relation.codes[column])
    domain = relation.columns[column].domain
    return relation.dictionaries[domain].take(codes[codes != NULL_CODE])
