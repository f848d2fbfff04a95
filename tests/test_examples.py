"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples() -> list[str]:
    found = []
    for folder, prefix in (("engine", "tuplewise."), ("gpu_kernels", "tuplewise."), ("spark_conf", "tuplewise.")):
        found += [(path, prefix) for path in sorted((ROOT / folder).rglob("*.py"))]
    found += [(path, "") for folder in ("benchmarks", "tools") for path in sorted((ROOT / folder).glob("*.py"))]
    names = [
        prefix + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path, prefix in found
        if ">>> " in path.read_text(encoding="utf-8")
    ]
    own = sorted((ROOT / "src/tuplewise").glob("*.py"))
    public = [path for path in own if ">>> " in path.read_text(encoding="utf-8")]
    return [*(f"tuplewise.{path.stem}".removesuffix(".__init__") for path in public), *names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert results.attempted > 0
    assert results.failed == 0
