"""The CUDA twin of intersections of clusters and common values, in the simulator."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.cuda
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    pytest.skip("needs a process of its own with NUMBA_ENABLE_CUDASIM=1", allow_module_level=True)
pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from inclusion_cases import check_twin  # noqa: E402


@pytest.mark.parametrize(("clusters", "attributes"), [(0, 3), (1, 1), (5, 4), (130, 3), (12, 65)])
def test_cuda_is_the_definition(clusters: int, attributes: int) -> None:
    check_twin(clusters, attributes, "cuda")
