"""The CUDA twin of the evidence kernel on a real GPU: the definition's answer, and the CPU twin's byte for byte."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import pick_device
from tuplewise.gpu_kernels.evidence import collect_clues
from tuplewise.gpu_kernels.words import make_layout

pytestmark = pytest.mark.device
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator is no device", allow_module_level=True)
if pick_device("auto").kind != "cuda":
    pytest.skip(f"no GPU: {pick_device('auto').reason}", allow_module_level=True)

from evidence_cases import (  # noqa: E402
    COPIED,
    SMALL,
    TINY,
    Case,
    all_different,
    all_scopes,
    check,
    count,
    same_columns,
    sizes,
    table,
    wide,
)

from tuplewise.gpu_kernels.cuda import evidence as cuda_twin  # noqa: E402
from tuplewise.gpu_kernels.cuda.clue_table import GEOMETRIES  # noqa: E402


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("geometry", [TINY, SMALL, COPIED, *GEOMETRIES])
def test_definition(geometry: object, nullable: bool) -> None:
    case = Case(table(1, 4, 150), all_scopes(4), nullable=nullable)
    digits = -(-len(case.comparisons) // 15)
    if geometry.shared_bytes(digits) > 48 * 1024:
        pytest.skip("this geometry is for fewer comparisons")
    check(case, sizes(geometry, blocks=7))


@pytest.mark.parametrize("rows", [0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 257])
def test_rows_around_every_tile_edge(rows: int) -> None:
    check(Case(table(rows, 3, rows), same_columns(3, 2)))


@pytest.mark.parametrize("comparisons", [1, 15, 16, 31, 32, 33, 64, 65, 130])
def test_comparisons_around_every_digit_and_word(comparisons: int) -> None:
    check(Case(table(comparisons, 7, 70), wide(comparisons, 7)))


@pytest.mark.parametrize("slots", [2, 8, 64])
def test_nothing_is_lost_when_the_tables_overflow(slots: int) -> None:
    case = all_different(60)
    for geometry in (TINY, COPIED, SMALL):
        if geometry.shared_bytes(4) <= 48 * 1024:
            assert count(case, sizes(geometry, blocks=11, slots=slots, most=slots)) == case.expected()


@pytest.mark.parametrize("bands", [100, 333])
def test_bands_and_groups(bands: int) -> None:
    case = Case(table(3, 3, 400), same_columns(3, 2), [1, 130, 7, 2, 200, 60])
    check(case)
    check(case, sizes(SMALL, band=bands))


@pytest.mark.parametrize(("columns", "ordered", "values"), [(15, 6, 4), (15, 15, 1000), (3, 1, 2), (40, 20, 50)])
def test_cpu_twin_byte_for_byte(columns: int, ordered: int, values: int) -> None:
    rng = np.random.default_rng(columns + values)
    codes = rng.integers(-1, values, (columns, 3000)).astype(np.int32)
    layout = make_layout(same_columns(columns, ordered))
    for nulls in ("unknown", "value"):
        cuda, cpu = (collect_clues(codes, layout, nulls=nulls, device=name) for name in ("cuda", "cpu"))
        assert cuda.clues.tobytes() == cpu.clues.tobytes()
        assert cuda.counts is not None
        assert cpu.counts is not None
        assert cuda.counts.tobytes() == cpu.counts.tobytes()


def test_counts_beyond_32_bits() -> None:
    """One clue, 8e9 pairs and more."""
    rows = 130_000
    case = Case(np.zeros((1, rows), dtype=np.int32), [(0, 0, 0, True)])
    clues, counts, complete = cuda_twin.run(case.codes, case.layout(), case.offsets(), Control())
    assert complete
    assert (clues.tolist(), counts.tolist()) == ([[1]], [rows * (rows - 1) // 2])
    assert counts[0] > 2**32
