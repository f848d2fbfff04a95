"""The tables that cases run on: outside files cut to their first rows, and tables made by the generators."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent


class MissingData(Exception):
    """A file of outside data is not there."""


@dataclass(frozen=True)
class Dataset:
    """A table in a CSV file.

    Attributes
    ----------
    name : name in the records
    file : file name in the folder of outside data; None for a generated Tax table
    rows : number of data rows to take from the top; None for all
    encoding : encoding of the file
    """

    name: str
    file: str | None
    rows: int | None = None
    encoding: str = "utf-8"

    def write(self, folder: Path) -> Path:
        """Write the rows to `folder`, bytes unchanged, and return the path. Each line of these files is one row."""
        target = folder / f"{self.name}.csv"
        if target.exists():
            return target
        if self.file is None:
            from benchmarks.generators import tax, write_csv

            write_csv(tax(self.rows or 1000, seed=1), target)
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


def shared_folder() -> Path:
    """Folder of outside data: `$TUPLEWISE_SHARED`, else `shared` beside the repository."""
    return Path(os.environ.get("TUPLEWISE_SHARED") or REPOSITORY.parent / "shared")


AIRPORT = Dataset("airport-30000", "airport_original.csv", encoding="latin-1")
ADULT = Dataset("adult", "adult.csv")
ADULT_2000 = Dataset("adult-2000", "adult.csv", 2_000)
ADULT_24000 = Dataset("adult-24000", "adult.csv", 24_000)
UCE = Dataset("uce", "uce.csv")
TAX_1000 = Dataset("tax-1000", None, 1_000)
