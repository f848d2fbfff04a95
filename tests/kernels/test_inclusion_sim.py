"""The CUDA twin of intersections of clusters and common values, in the simulator."""

from __future__ import annotations

import pytest

pytest.importorskip("numba_cuda", reason="the simulator comes with numba-cuda")

from inclusion_cases import check_twin

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(("clusters", "attributes"), [(0, 3), (1, 1), (5, 4), (130, 3), (12, 65)])
def test_cuda_is_the_definition(clusters: int, attributes: int) -> None:
    check_twin(clusters, attributes, "cuda")
