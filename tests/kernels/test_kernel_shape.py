"""The shape of kernels and of the engine: few parameters, and names in place of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_PARAMETERS = 12
MOST_NUMBER = 3  # of a column or of a field of a tuple; what has more of them gets names
LONGER = {
    # The device function is handed arrays one by one: how CUDA compiles it was measured on a GPU, and stays
    "gpu_kernels/cuda/clue_table.py: add_batch",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("gpu_kernels", "engine"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def long_functions(module: ast.AST) -> set[str]:
    """Functions with more than MOST_PARAMETERS parameters."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            if len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) > MOST_PARAMETERS:
                found.add(node.name)
    return found


def numbered(module: ast.AST) -> set[str]:
    """Subscripts by numbers above MOST_NUMBER, as written; not the grids of kernels, `kernel[...](...)`."""
    calls = {node.func for node in ast.walk(module) if isinstance(node, ast.Call)}
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Subscript) and node not in calls:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(p, ast.Constant) and type(p.value) is int and p.value > MOST_NUMBER for p in parts):
                found.add(ast.unparse(node))
    return found


def test_no_function_has_more_than_twelve_parameters() -> None:
    found = {f"{path}: {name}" for path, module in modules() for name in long_functions(module)}
    assert found == LONGER


def test_columns_and_fields_have_names() -> None:
    found = {path: names for path, module in modules() if (names := numbered(module))}
    assert found == {}


@pytest.mark.parametrize(
    ("source", "long", "numbers"),
    [
        ("def f(" + ", ".join(f"a{i}" for i in range(13)) + "): pass", {"f"}, set()),
        ("def f(" + ", ".join(f"a{i}" for i in range(11)) + ", *, b): pass", set(), set()),
        ("x = data[12] + table[k, 5] + data[3]", set(), {"data[12]", "table[k, 5]"}),
        ("kernel[16, 32](x)", set(), set()),
    ],
)
def test_what_is_counted(source: str, long: set[str], numbers: set[str]) -> None:
    module = ast.parse(source)
    assert (long_functions(module), numbered(module)) == (long, numbers)
