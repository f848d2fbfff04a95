"""The CUDA twin that ranks texts, with cuDF on a real GPU: the definition, and the CPU twin's answer byte for byte."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

from tuplewise.gpu_kernels.device import pick_device

pytestmark = pytest.mark.device
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator is no device", allow_module_level=True)
if pick_device("auto").kind != "cuda":
    pytest.skip(f"no GPU: {pick_device('auto').reason}", allow_module_level=True)
pytest.importorskip("pylibcudf", reason="cuDF is not installed (tuplewise[cudf12] or tuplewise[cudf13])")

from texts_cases import AWKWARD, arrays, check  # noqa: E402

from tuplewise.gpu_kernels import texts  # noqa: E402
from tuplewise.gpu_kernels.texts import rank_texts  # noqa: E402


@pytest.mark.parametrize("seed", range(20))
def test_cuda_is_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LEAST_VALUES", 1)
    rng = np.random.default_rng(seed)
    parts = [["".join(rng.choice(AWKWARD, rng.integers(0, 4))) for _ in range(size)] for size in (300, 0, 1, 40)]
    check(rank_texts(arrays(parts), device="cuda"), parts)


def test_many_texts_are_ranked_as_on_the_cpu() -> None:
    rng = np.random.default_rng(7)
    parts = [
        pa.array([f"Customer#{number:09d}" for number in rng.integers(0, 10**9, size)], pa.large_string())
        for size in (900_000, texts.LEAST_VALUES)
    ]
    here, there = rank_texts(parts, device="cpu"), rank_texts(parts, device="cuda")
    assert there[0].equals(here[0])
    for mine, theirs in zip(here[1], there[1], strict=True):
        np.testing.assert_array_equal(theirs, mine)
