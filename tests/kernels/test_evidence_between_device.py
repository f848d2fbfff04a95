"""Evidence between two sets of rows on a real GPU: the definition's answer, and the CPU twin's byte for byte."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.evidence import collect_clues_between

pytestmark = pytest.mark.device
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator is no device", allow_module_level=True)
if pick_device("auto").kind != "cuda":
    pytest.skip(f"no GPU: {pick_device('auto').reason}", allow_module_level=True)

from evidence_between_cases import check, gapped_table, layout_of  # noqa: E402


@pytest.mark.parametrize("seed", range(20))
def test_equals_definition(seed: int) -> None:
    check(seed, "cuda", 60)


@pytest.mark.parametrize(("many", "few"), [(20_000, 1), (20_000, 100), (3_000, 2_999)])
def test_cpu_twin_byte_for_byte(many: int, few: int) -> None:
    rng = np.random.default_rng(few)
    codes, layout = gapped_table(rng, 15, many + few), layout_of(rng, 15)
    order = rng.permutation(many + few)
    for nulls in ("unknown", "value"):
        there, here = (
            collect_clues_between(codes, layout, order[:many], order[many:], nulls=nulls, device=device)
            for device in ("cuda", "cpu")
        )
        assert there.clues.tobytes() == here.clues.tobytes()
        assert there.counts is not None
        assert here.counts is not None
        assert there.counts.tobytes() == here.counts.tobytes()
