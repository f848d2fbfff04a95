"""The table type of all tasks, and a table whose rows stay in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.relation import Relation, TypeName

if TYPE_CHECKING:
    from tuplewise.engine.spark.session import OpenSession
    from tuplewise.engine.table.reader import Reader
    from tuplewise.engine.table.spark_source import RawFrame

IN_PROCESS_BYTES = 512 << 20
"""Sources up to this size come over as Arrow and are encoded in-process: that takes a few times their size in memory,
which any laptop has, and spares Spark's shuffles. Parquet and ORC count fourfold, for their compression."""


@dataclass(frozen=True)
class ColumnSelection:
    """The columns of a table to read, with their names and types."""

    kept: list[int]
    names: list[str]
    overrides: dict[str, TypeName]
    notes: list[str]


@dataclass(frozen=True)
class TableInSpark:
    """An open table whose rows stay in Spark. So far only its column names were read.

    `size_bytes`: the size of its files (four times that for packed formats), or Spark's estimate.
    """

    raw: RawFrame
    selection: ColumnSelection
    options: LoadOptions
    name: str
    path: str | None
    session: OpenSession
    size_bytes: int
    timings: dict[str, float]
    reader: Reader | None = None

    @property
    def column_names(self) -> list[str]:
        return [self.selection.names[i] for i in self.selection.kept]

    def ordered(self, names: Sequence[str]) -> TableInSpark:
        """The same table with these columns only, in this order."""
        kept = [self.selection.names.index(name) for name in names]
        return replace(self, selection=replace(self.selection, kept=kept))


Table = Relation | TableInSpark
"""What every task takes: a table whose codes are here, or one whose rows stay in Spark."""
