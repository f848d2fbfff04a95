"""Runs the notebooks of examples/ and writes their outputs, and a page of docs/notebooks for each.

    python -m tools.notebooks

Code cells run one after the other in one namespace, without Jupyter. What a cell prints, and the value of its last
line, is its output.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = tuple(sorted((ROOT / "examples").glob("*.ipynb")))
PAGES = ROOT / "docs" / "notebooks"
_SEEN = "https://github.com/tuplewise/tuplewise/blob/main/examples/"


def read(path: Path) -> dict[str, Any]:
    """A notebook."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def written(notebook: dict[str, Any]) -> str:
    """The text of a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells give in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            printed = _run("".join(cell["source"]), names, f"<cell {number}>")
            outputs = [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}]
            cell = {**cell, "execution_count": None, "outputs": outputs if printed else []}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _run(source: str, names: dict[str, Any], name: str) -> str:
    tree = ast.parse(source, name)
    end = tree.body[-1] if tree.body else None
    last = end if isinstance(end, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                print(value if hasattr(value, "to_string") else repr(value))
    return printed.getvalue()


def page(path: Path) -> str:
    """The page of a notebook."""
    return "\n".join(_parts(path)).rstrip() + "\n"


def _parts(path: Path) -> Iterator[str]:
    for number, cell in enumerate(read(path)["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield f"{text}\n"
            if number == 0:
                yield f"*This page is the notebook [{path.name}]({_SEEN}{path.name}).*\n"
            continue
        yield f"```py\n{text}\n```\n"
        for output in cell["outputs"]:
            yield f"```text\n{''.join(output['text']).rstrip()}\n```\n"


if __name__ == "__main__":
    os.chdir(ROOT)
    PAGES.mkdir(exist_ok=True)
    for each in NOTEBOOKS:
        each.write_text(written(executed(read(each))), encoding="utf-8")
        (PAGES / each.with_suffix(".md").name).write_text(page(each), encoding="utf-8")
