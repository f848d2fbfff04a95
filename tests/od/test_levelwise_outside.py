"""Dependencies found level by level against published sets and counts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, Dependencies, Targets
from tuplewise.engine.od.levelwise import find
from tuplewise.gpu_kernels.words import members

pytestmark = pytest.mark.outside


def read_ranks(path: Path) -> tuple[list[str], NDArray[np.int32]]:
    """A table of whole numbers: names, and dense ranks."""
    with path.open(encoding="utf-8", newline="") as lines:
        names, *rows = csv.reader(lines)
    table = np.array(rows, dtype=np.int64).T
    return names, np.stack([np.unique(column, return_inverse=True)[1] for column in table]).astype(np.int32)


def listed(dependencies: Dependencies, names: list[str]) -> set[tuple[Any, ...]]:
    found: set[tuple[Any, ...]] = set()
    for index in range(len(dependencies)):
        context = frozenset(names[a] for a in members(dependencies.contexts[index]))
        kind, left, right = (int(a[index]) for a in (dependencies.kind, dependencies.left, dependencies.right))
        if kind == CONSTANT:
            found.add((context, names[left]))
        else:
            direction = "ascending" if kind == ASCENDING else "descending"
            found.add((context, frozenset((names[left], names[right])), direction))
    assert len(found) == len(dependencies)
    return found


@pytest.mark.parametrize(("table", "constants", "pairs"), [("world_population", 24, 18), ("fuel", 2, 5)])
def test_equals_published_set(shared: Path, table: str, constants: int, pairs: int) -> None:
    names, codes = read_ranks(shared / "data" / "ranked" / f"{table}.csv")
    expected = json.loads((shared / "data" / "expected" / f"od_{table}.json").read_text(encoding="utf-8"))
    assert (len(expected["constant"]), len(expected["order_compatible"])) == (constants, pairs)
    wanted: set[tuple[Any, ...]] = {(frozenset(d["context"]), d["attribute"]) for d in expected["constant"]}
    for d in expected["order_compatible"]:
        wanted.add((frozenset(d["context"]), frozenset((d["left"], d["right"])), d["direction"]))
    found = find(codes, Targets.of_orders(len(codes)), device="cpu")
    assert listed(found.dependencies, names) == wanted


@pytest.mark.parametrize(
    ("table", "constants", "pairs"),
    [("adult", 78, 1_405), pytest.param("plista", 5_235, 72_861, marks=pytest.mark.slow)],
)
def test_has_published_counts(shared: Path, table: str, constants: int, pairs: int) -> None:
    _, codes = read_ranks(shared / "data" / "ranked" / f"{table}.csv")
    kind = find(codes, Targets.of_orders(len(codes)), device="cpu").dependencies.kind
    assert ((kind == CONSTANT).sum(), (kind >= ASCENDING).sum()) == (constants, pairs)
