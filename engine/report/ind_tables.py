"""What all results of inclusion dependencies have: several tables, of which columns are known but no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tuplewise.engine.ind.found import TableFound
from tuplewise.engine.report import model
from tuplewise.engine.report.ind_sql import IndWriter

MEASURE = "share of distinct values missing"


class IndTables:
    """The part of a result that is about its tables."""

    _found: Any

    @property
    def tables(self) -> tuple[TableFound, ...]:
        tables: tuple[TableFound, ...] = self._found.tables
        return tables

    @property
    def _relations(self) -> list[Any]:
        return []

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return table_records(self.tables)

    @property
    def _spark(self) -> Mapping[str, str] | None:
        spark: Mapping[str, str] | None = self._found.spark
        return spark

    def _sql_writer(self, dialect: str, tables: Mapping[str, str]) -> IndWriter:
        return IndWriter(self.tables, dialect, tables, self._found.options.as_text)


def table_records(tables: Iterable[TableFound]) -> list[dict[str, Any]]:
    """The entries of "tables"."""
    return [
        {"name": t.name, "path": t.path, "rows": t.rows, "columns": model.columns_record(t.columns)} for t in tables
    ]
