"""Tables that grow: the rows that a state is built of, and rows that come later."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.datasets import ParquetTable
from benchmarks.generators import tax
from benchmarks.outside import MissingData, shared_folder

if TYPE_CHECKING:
    from tuplewise.engine.table.relation import Relation


@dataclass(frozen=True)
class GrowingFile:
    """The first rows of a file of outside data, and rows that come after them: two CSV files in UTF-8.

    Attributes
    ----------
    name : name in the records
    file : file name in the folder of outside data
    rows : number of rows from the top that are there first
    more : number of rows that come
    more_file : whose first rows come; None: those of `file` after the others
    encoding : of both
    """

    name: str
    file: str
    rows: int
    more: int
    more_file: str | None = None
    encoding: str = "utf-8"

    def write(self, folder: Path) -> Path:
        """Write the rows to two files in `folder`, if they aren't there; the path of the first ones.

        Each line of these files is one row.
        """
        target = folder / f"{self.name}.csv"
        if not target.exists():
            header, *lines = self._lines(self.file, self.rows + (0 if self.more_file else self.more))
            later = self._lines(self.more_file, self.more)[1:] if self.more_file else lines[self.rows :]
            self.more_path(target).write_text(header + "".join(later), encoding="utf-8", newline="")
            target.write_text(header + "".join(lines[: self.rows]), encoding="utf-8", newline="")
        return target

    def _lines(self, file: str, rows: int) -> list[str]:
        source = shared_folder() / "data" / file
        if not source.exists():
            raise MissingData(f"{file} is not in the folder of outside data; set TUPLEWISE_SHARED to its parent")
        with source.open(encoding=self.encoding, newline="") as lines:
            found = list(islice(lines, rows + 1))
        if len(found) <= rows:
            raise MissingData(f"{file} has {len(found) - 1} rows, not {rows}")
        return found

    def more_path(self, path: Path) -> Path:
        """The file of the rows that come."""
        return path.with_name(f"{self.name}-more.csv")

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the table: its SHA-256 is that of both files, its rows are all of them."""
        content, more = path.read_bytes(), self.more_path(path).read_bytes()
        return {
            "name": self.name,
            "sha256": hashlib.sha256(content + more).hexdigest(),
            "rows": content.count(b"\n") + more.count(b"\n") - 2,
            "columns": content.split(b"\n", 1)[0].count(b",") + 1,
        }

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """The first rows, as a state reads a file."""
        from tuplewise.engine.options import LoadOptions
        from tuplewise.engine.table.table import load

        return load(str(path), LoadOptions(columns=None if columns is None else tuple(columns)))


def growing_tax(rows: int, more: int) -> ParquetTable:
    """Tax without errors; the last `more` of its rows come after the first `rows`."""
    return ParquetTable(f"tax-{rows}-and-{more}", partial(tax, seed=1), rows + more)


def parquet_bytes(table: Any) -> int:
    """Bytes of the Parquet file of a table, as pyarrow writes it by default."""
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.tell()
