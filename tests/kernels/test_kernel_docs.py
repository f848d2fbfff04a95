"""What each CUDA kernel says of itself, and that none is left out of the table. No GPU, nothing is compiled."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator's kernels hide their functions", allow_module_level=True)
if find_spec("numba_cuda") is None:
    pytest.skip("needs numba-cuda", allow_module_level=True)

import tuplewise.gpu_kernels.cuda as package
from tuplewise.gpu_kernels.cuda import clue_table

FOLDER = Path(str(package.__file__)).parent
PARTS = ("One thread ", "Grid: ", "Races: ", "Shared memory: ", "Assumes unchecked: ")
NO_RACE = {"own item": r"Races: own ", "one source": r"Races: one source", "atomic": r"Races: (one )?atomic",
           "launches": r"an earlier launch"}  # fmt: skip


def kernels() -> Iterator[tuple[str, Any, str]]:
    """Name, function and docstring of each kernel; that of a kernel that is made is its maker's."""
    for path in sorted(FOLDER.glob("*.py")):
        module = import_module(f"tuplewise.gpu_kernels.cuda.{path.stem}")
        for name, kernel in vars(module).items():
            function = getattr(kernel, "py_func", None)
            if name.endswith("_kernel") and function is not None and function.__module__ == module.__name__:
                yield name, function, said(function)
    maker = clue_table.make_count_kernel
    yield "count_clues_kernel", maker(1, clue_table.GEOMETRIES[0]), said(maker)


def said(function: Any) -> str:
    """Its docstring in one line."""
    return " ".join((inspect.getdoc(function) or "").split())


KERNELS = {name: (function, text) for name, function, text in kernels()}


def rows_of_the_table() -> list[list[str]]:
    lines = str(package.__doc__).splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines if re.match(r"\w+_kernel ", line)]


@pytest.mark.parametrize("name", KERNELS)
def test_the_docstring_has_its_parts(name: str) -> None:
    function, text = KERNELS[name]
    missing = [part for part in PARTS if part not in text]
    assert not missing, text
    assert text.index("Grid: ") < text.index("Races: ") < text.index("Shared memory: ") < text.index("Assumes ")
    assert re.match(r"[a-z]+_[a-z_]+_kernel$", name)
    assert function.__code__.co_argcount <= 12
    uses_shared = "shared.array" in inspect.getsource(function)
    assert ("Shared memory: 0 bytes" in text) != uses_shared


def test_every_kernel_is_in_the_table_once() -> None:
    rows = rows_of_the_table()
    assert sorted(row[0] for row in rows) == sorted(KERNELS)
    assert {len(row) for row in rows} == {5}


@pytest.mark.parametrize("row", rows_of_the_table(), ids=lambda row: row[0])
def test_the_table_says_what_the_kernel_says(row: list[str]) -> None:
    """How races are excluded, and whether there are atomics."""
    name, _, moved, bound, no_race = row
    function, text = KERNELS[name]
    assert re.search(NO_RACE[no_race], text) or name == "carry_strips_kernel"
    assert bound in ("memory", "integer", "latency")
    assert re.search(r"\d", moved)
    assert ("atomic." in inspect.getsource(function)) == (no_race == "atomic") or name == "find_swaps_kernel"


def test_the_bound_is_checked_before_anything_is_read() -> None:
    """A kernel over items begins with a loop that ends at the last of them."""
    for name, (function, _) in KERNELS.items():
        if name == "count_clues_kernel":
            continue
        source = inspect.getsource(function)
        loop = re.search(r"for \w+ in range\((first \+ )?cuda\.(grid\(1\)|blockIdx\.x \* span), .*cuda\.grid", source)
        assert loop or "if first < codes.shape[0]:" in source, name
        before = source[source.index('"""', source.index('"""') + 3) + 3 : loop.start() if loop else None]
        if loop:
            assert not re.search(r"\w\[cuda\.|\w\[\w+\]", before.replace(".shape[0]", "").replace("offsets[", "")), name


def statements(function: Any) -> str:
    """Its source without docstrings."""
    return re.sub(r'"""(.|\n)*?"""', "", inspect.getsource(function))


def test_what_is_touched_atomically_is_touched_in_no_other_way() -> None:
    """In one launch a cell that threads share is for atomics alone: a plain look at it would be a race."""
    found = {(name, shared): statements(function) for name, (function, _) in KERNELS.items()
             for shared in re.findall(r"cuda\.atomic\.\w+\((\w+),", statements(function))}  # fmt: skip
    assert len(found) >= 6
    for (name, shared), source in found.items():
        assert not re.search(rf"\b{shared}\[", source), f"{name}: {shared}"


def test_tables_of_clues_are_filled_by_atomics_alone() -> None:
    """The table of all blocks everywhere, that of a block while clues are added; `flush` stands between barriers."""
    assert not re.search(r"\b(table_keys|table_counts|state)\[", statements(clue_table))
    for adds in (clue_table._make_probe, clue_table._make_batch_adder):
        assert not re.search(r"\b(keys|counts|meta)\[", statements(adds))
    lines = [line.strip() for line in statements(clue_table.make_count_kernel).splitlines() if line.strip()]
    flushes = [number for number, line in enumerate(lines) if line.startswith("flush(")]
    assert len(flushes) == 2
    for number in flushes:
        assert "cuda.syncthreads()" in lines[number + 1 : number + 5]
        assert lines[number - 1] in ("if full:", "cuda.syncthreads()")  # full: of the whole block, after a barrier
