"""The tables that cases run on: outside files cut to their first rows, and tables made by the generators."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.flights import flights
from benchmarks.generators import constant_left, tax, write_csv, write_parquet
from benchmarks.outside import REPOSITORY, MissingData, shared_folder
from benchmarks.titles import castings, titles
from benchmarks.tpch import LINES_AT_SCALE_1, lineitem_with_orders

if TYPE_CHECKING:
    import pyarrow as pa

    from tuplewise.engine.table.relation import Relation

__all__ = ["REPOSITORY", "Dataset", "MissingData", "ParquetTable", "Source", "content_sha256", "shared_folder"]


class Source(Protocol):
    """What a case runs on."""

    @property
    def name(self) -> str: ...

    def write(self, folder: Path) -> Path:
        """Write the table to a file in `folder`, if it isn't there, and return the path."""

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table: name, sha256, rows, columns."""

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The table, or some of its columns, by the public way."""


@dataclass(frozen=True)
class Dataset:
    """A table in a CSV file.

    Attributes
    ----------
    name : name in the records
    file : file name in the folder of outside data; None for a generated Tax table
    rows : number of data rows to take from the top; None for all
    encoding : encoding of the file
    error_share : of a generated table: share of rows with a wrong cell
    """

    name: str
    file: str | None
    rows: int | None = None
    encoding: str = "utf-8"
    error_share: float = 0.0

    def write(self, folder: Path) -> Path:
        """Write the rows to `folder`, bytes unchanged, and return the path. Each line of these files is one row."""
        target = folder / f"{self.name}.csv"
        if target.exists():
            return target
        if self.file is None:
            write_csv(tax(self.rows or 1000, seed=1, error_share=self.error_share), target)
            return target
        source = shared_folder() / "data" / self.file
        if not source.exists():
            raise MissingData(f"{self.file} is not in the folder of outside data; set TUPLEWISE_SHARED to its parent")
        with source.open("rb") as lines:
            target.write_bytes(b"".join(lines if self.rows is None else islice(lines, self.rows + 1)))
        return target

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table: name, sha256 of the bytes, rows, columns."""
        content = path.read_bytes()
        lines = content.splitlines()
        return {
            "name": self.name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "rows": len(lines) - 1,
            "columns": lines[0].count(b",") + 1,
        }

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The file, read by Spark."""
        import tuplewise

        relation: Relation = tuplewise.load(str(path), encoding=self.encoding, columns=columns)
        return relation


@dataclass(frozen=True)
class ParquetTable:
    """A generated table in a Parquet file, for what is too large to go through CSV and a JVM.

    Attributes
    ----------
    name : name in the records
    make : makes a table of so many rows; the same one each time
    rows : number of rows
    """

    name: str
    make: Callable[[int], pa.Table]
    rows: int

    def write(self, folder: Path) -> Path:
        """Make the table and write it to `folder`; a file that is there is left as it is."""
        target = folder / f"{self.name}.parquet"
        if not target.exists():
            write_parquet(self.make(self.rows), target)
        return target

    def read(self, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or some of its columns, in memory."""
        from pyarrow import parquet

        return parquet.read_table(path, columns=None if columns is None else list(columns))

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table; the sha256 is that of its content (see `content_sha256`)."""
        table = self.read(path)
        return {
            "name": self.name,
            "sha256": content_sha256(table),
            "rows": table.num_rows,
            "columns": table.num_columns,
        }

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The table from memory, without a JVM."""
        import tuplewise

        relation: Relation = tuplewise.load(self.read(path, columns), name=self.name)
        return relation


def content_sha256(table: pa.Table) -> str:
    """SHA-256 of a table's column names, types and values, whatever version of a file format held them.

    Text counts by its bytes and lengths, anything else by its numbers; of nulls it counts where they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = hashlib.sha256()
    for name in table.column_names:
        column = pa.chunked_array(table.column(name).combine_chunks())
        whole.update(f"{name}: {column.type}, {len(column)}\n".encode())
        if column.null_count:
            whole.update(f"nulls: {column.null_count}\n".encode())
            whole.update(column.is_null().to_numpy().tobytes())
            filler = pa.scalar("" if pa.types.is_string(column.type) else 0).cast(column.type)
            column = column.fill_null(filler)
        for chunk in column.chunks:
            if pa.types.is_string(chunk.type):
                chunk = chunk.cast(pa.binary())
                whole.update(pc.binary_length(chunk).to_numpy(zero_copy_only=False).tobytes())
                whole.update(b"".join(chunk.to_pylist()))
            else:
                width = chunk.type.bit_width // 8
                values = memoryview(chunk.buffers()[1])
                whole.update(values[chunk.offset * width : (chunk.offset + len(chunk)) * width])
    return whole.hexdigest()


AIRPORT = Dataset("airport-30000", "airport_original.csv", encoding="latin-1")
ADULT = Dataset("adult", "adult.csv")
ADULT_2000 = Dataset("adult-2000", "adult.csv", 2_000)
ADULT_24000 = Dataset("adult-24000", "adult.csv", 24_000)
UCE = Dataset("uce", "uce.csv")
TAX_1000 = Dataset("tax-1000", None, 1_000)
TAX_30000 = Dataset("tax-30000-errors", None, 30_000, error_share=0.01)
MILLION = 1_000_000
TAX_1M = ParquetTable("tax-1m-errors", partial(tax, seed=1, error_share=0.01), MILLION)
TAX_1M_CLEAN = ParquetTable("tax-1m", partial(tax, seed=1), MILLION)
CONSTANT_LEFT = ParquetTable("constant-left-100k", constant_left, 100_000)
FLIGHTS_1M = ParquetTable("flights-1m", partial(flights, seed=1), MILLION)
TITLES_1M = ParquetTable("titles-1m", partial(titles, seed=1), MILLION)
CASTINGS_1M = ParquetTable("castings-1m", partial(castings, seed=1), MILLION)
LINEITEM = ParquetTable("tpch-sf1", partial(lineitem_with_orders, scale=1), LINES_AT_SCALE_1)
LINEITEM_1M = ParquetTable("tpch-1m", lineitem_with_orders, MILLION)
LINEITEM_100K = ParquetTable("tpch-100k", lineitem_with_orders, 100_000)
