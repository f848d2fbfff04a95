"""The cases of inclusion dependencies: the eight tables of TPC-H as CSV files, all as text, from files to answer.

The tables are made by the package tpchgen-cli. Each of ours and of the peers gets the paths and reads the files itself.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.case import Case, Measurement, Peer
from benchmarks.discoveries import timed_phases
from benchmarks.ind_peers import GROUP_BY, SPIDER, measure_with, run_group_by, run_spider, table_paths
from benchmarks.outside import package_program

if TYPE_CHECKING:
    from tuplewise.engine.ind.found import FoundInds
    from tuplewise.engine.table.relation import Relation

TABLES = 8


@dataclass(frozen=True)
class TpchFiles:
    """A folder of the tables of TPC-H as CSV files.

    Attributes
    ----------
    name : name in the records, and of the folder
    scale : TPC-H's scale factor
    """

    name: str
    scale: str

    def write(self, folder: Path) -> Path:
        """Make the tables; a folder that holds all is left as it is. Raises MissingData without tpchgen-cli."""
        target = folder / self.name
        if not target.is_dir() or len(table_paths(target)) < TABLES:
            program = package_program("tpchgen-cli")
            subprocess.run([program, "csv", "-s", self.scale, "-o", str(target)], check=True, capture_output=True)
        return target

    def describe(self, path: Path) -> dict[str, Any]:
        """What a record says of the tables: name, sha256 of all bytes by the files' names, rows and columns in all."""
        whole = hashlib.sha256()
        rows = columns = 0
        for file in table_paths(path).values():
            with file.open("rb") as lines:
                header = lines.readline()
                whole.update(header)
                columns += header.count(b",") + 1
                while block := lines.read(1 << 24):
                    whole.update(block)
                    rows += block.count(b"\n")  # no value of these tables holds one
        return {"name": self.name, "sha256": whole.hexdigest(), "rows": rows, "columns": columns}

    def load(self, path: Path, columns: Sequence[str] | None = None) -> Relation:
        """Not one table: each of the peers reads the files in its own way."""
        raise TypeError(f"{self.name} is several tables, which are given as paths")


def measure_inclusions(case: Case, path: Path, warm_runs: int) -> Measurement:
    """From files to all unary inclusion dependencies, in this process."""
    from benchmarks.answers import digest_inclusions
    from tuplewise.engine.ind.discover import discover
    from tuplewise.engine.options import IndDiscoverOptions

    tables = {name: str(file) for name, file in table_paths(path).items()}
    options = IndDiscoverOptions(as_text=case.parameters["as_text"], device="cpu", run_on="driver")

    def work() -> FoundInds:
        return discover(tables, options)

    measured, found = timed_phases(work, warm_runs)
    count, digest = digest_inclusions((str(f.ind.dependent[0]), str(f.ind.referenced[0])) for f in found.inds)
    figures = {name: value for name, value in found.search.items() if name != "read_by"}
    return measured | {"answer": {"count": count, "digest": digest}, "figures": figures}


def _case(scale: str, warm_runs: int, peer_warm_runs: int) -> Case:
    peers = {
        SPIDER: Peer(partial(measure_with, run_spider), peer_warm_runs),
        GROUP_BY: Peer(partial(measure_with, run_group_by), peer_warm_runs),
    }
    files = TpchFiles(f"tpch-csv-{scale}", scale)
    return Case(f"ind/tpch-{scale}", files, measure_inclusions, {"as_text": True}, peers, warm_runs)


IND_CASES = (_case("0.1", 3, 2), _case("1", 2, 0))
