"""The CUDA twin of intersections of clusters and common values, on a real GPU."""

from __future__ import annotations

import os

import pytest

from tuplewise.gpu_kernels.device import pick_device

pytestmark = pytest.mark.device
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator is no device", allow_module_level=True)
if pick_device("auto").kind != "cuda":
    pytest.skip(f"no GPU: {pick_device('auto').reason}", allow_module_level=True)

from inclusion_cases import SIZES, check_twin  # noqa: E402


@pytest.mark.parametrize(("clusters", "attributes"), [*SIZES, (50_000, 61), (2_000, 1_000)])
def test_cuda_is_the_definition(clusters: int, attributes: int) -> None:
    check_twin(clusters, attributes, "cuda")
