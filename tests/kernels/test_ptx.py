"""Every CUDA kernel compiles to PTX and on to machine code: compute capability 8.0, 9.0, and 10.0 where it is known."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    pytest.skip("the simulator compiles nothing", allow_module_level=True)
if find_spec("numba_cuda") is None:
    pytest.skip("needs numba-cuda", allow_module_level=True)

from numba import cuda, types
from numba.cuda.cudadrv import nvrtc

from tuplewise.gpu_kernels.cuda import clue_table


def known(capability: tuple[int, int]) -> bool:
    """Whether the compiler here knows the capability."""
    return capability in nvrtc.get_supported_ccs()


def capability_mark(capability: tuple[int, int]) -> pytest.MarkDecorator:
    reason = f"the CUDA compiler here doesn't know compute capability {capability[0]}.{capability[1]}"
    return pytest.mark.skipif(not known(capability), reason=reason)


CAPABILITIES = ((8, 0), (9, 0), (10, 0))
EACH_CAPABILITY = [pytest.param(c, id=f"sm{c[0]}{c[1]}", marks=capability_mark(c)) for c in CAPABILITIES]
# digits of 1 to 8 words: all geometries; the narrow ones, where the work is, in the default run
CASES = [
    pytest.param(
        digits,
        capability,
        id=f"{digits}-sm{capability[0]}{capability[1]}",
        marks=[capability_mark(capability), *([] if digits == 1 else [pytest.mark.slow])],
    )
    for digits in (1, 2, 3, 9, 17)
    for capability in CAPABILITIES
]


def signature_types(signature: str) -> tuple[Any, ...]:
    """Numba argument types of a signature."""
    names = {name: getattr(types, name) for name in ("int8", "int32", "uint32", "int64", "uint64", "void")}
    return tuple(eval(f"void({signature})", {"__builtins__": {}}, names).args)


def ptx_of(digits: int, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> str:
    """PTX of the kernel. Device functions are compiled for the current device: it is said to be this one."""
    from numba.cuda import dispatcher

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability))
    geometry = clue_table.geometry_for(digits)
    assert geometry is not None
    clue_table.make_count_kernel.cache_clear()
    try:
        kernel = clue_table.make_count_kernel(digits, geometry)
        text, _ = cuda.compile_ptx(kernel, signature_types(clue_table.SIGNATURE), cc=capability)
    finally:
        clue_table.make_count_kernel.cache_clear()
    return str(text)


REFINEMENTS = (
    "grouping", "sorted_join", "wavelet", "extremes", "joins", "kd_tree", "bitmaps", "partitions", "violations",
    "inclusion",
)  # fmt: skip
# Registers of a thread at most: where the time of joins and checks goes, since they decide how many threads fit; all
# others have to leave room for two thirds of a multiprocessor's.
HOT = {"locate_slices_kernel": 40, "count_join_kernel": 64, "emit_join_kernel": 64, "flag_partners_kernel": 64,
       "count_boxes_kernel": 80, "count_bitmaps_kernel": 168, "emit_bitmaps_kernel": 168, "find_swaps_kernel": 64,
       "find_different_kernel": 64}  # fmt: skip
MOST_REGISTERS = 48


def refinement_kernels(module: str) -> dict[str, tuple[Any, str]]:
    """Kernels that a module defines, as plain functions, with their signatures."""
    there = vars(import_module(f"tuplewise.gpu_kernels.cuda.{module}"))
    found = {}
    for name, kernel in there.items():
        function = getattr(kernel, "py_func", None)
        if name.endswith("_kernel") and function is not None and function.__module__ == there["__name__"]:
            found[name] = function, kernel.signature
    return found


@pytest.mark.parametrize("capability", EACH_CAPABILITY)
@pytest.mark.parametrize("module", REFINEMENTS)
def test_refinement_kernels_compile(
    module: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from numba.cuda import dispatcher

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability))
    kernels = refinement_kernels(module)
    assert kernels
    for name, (function, signature) in kernels.items():
        arguments = signature_types(signature)
        assert len(arguments) == function.__code__.co_argcount <= 12, name
        text = str(cuda.compile_ptx(function, arguments, cc=capability)[0])
        assert f".target sm_{capability[0]}{capability[1]}" in text
        assert re.search(r"(mul|mad)\.wide\.[su]32", text), f"{name}: threads of the grid are counted in 32 bits"
        assert ".shared" not in text
        assert len(re.findall(r"\.visible \.entry", text)) == 1
        assert not re.search(r"\.f(32|64)\b", text), f"{name}: signed and unsigned integers were mixed: floats"
        assert not re.search(r"\bcall\b", text), f"{name}: a function is not inlined"
        if find_ptxas() is not None and (name in HOT or capability == CAPABILITIES[-1]):
            assert registers_of(text, capability, tmp_path / name) <= HOT.get(name, MOST_REGISTERS), name


def test_every_module_of_the_refinements_is_compiled() -> None:
    import tuplewise.gpu_kernels.cuda as package

    folder = Path(str(package.__file__)).parent
    with_kernels = {path.stem for path in folder.glob("*.py") if "_kernel(" in path.read_text(encoding="utf-8")}
    assert {"clue_table"} < with_kernels
    assert {name for name in with_kernels if refinement_kernels(name)} == set(REFINEMENTS)


def registers_of(text: str, capability: tuple[int, int], name: Path) -> int:
    """Registers of a thread, by the assembler, which must need no room to spill to."""
    source = name.with_suffix(".ptx")
    source.write_text(text)
    target = f"-arch=sm_{capability[0]}{capability[1]}"
    command = [str(find_ptxas()), "-v", target, str(source), "-o", str(name.with_suffix(".cubin"))]
    assembled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert assembled.returncode == 0, assembled.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in assembled.stderr
    used = re.search(r"Used (\d+) registers", assembled.stderr)
    assert used, assembled.stderr
    return int(used[1])


def find_ptxas() -> str | None:
    """The assembler: on the path, or in the wheel of nvcc."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in sorted(Path(folder).glob("*/bin/ptxas")):
            return str(path)
    return shutil.which("ptxas")


@pytest.mark.parametrize(("digits", "capability"), CASES)
def test_count_kernel_compiles(
    digits: int, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = ptx_of(digits, capability, monkeypatch)
    assert f".target sm_{capability[0]}{capability[1]}" in text
    assert ".visible .entry" in text
    assert "atom.shared.cas.b32" in text  # the compiler knows that the block's table is in shared memory
    assert "atom.shared.add.u32" in text or "red.shared.add.u32" in text
    assert re.search(r"(atom|red)\.global\.add\.u64", text)  # 64-bit counts
    assert not re.search(r"\.f(32|64)\b", text)
    assert not re.search(r"\bcall\b.*locate|\bcall\b.*compare", text)  # the hot loop is inlined

    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("PTX is checked, machine code isn't: no ptxas on this machine")
    source = tmp_path / "kernel.ptx"
    source.write_text(text)
    target = f"-arch=sm_{capability[0]}{capability[1]}"
    assembled = subprocess.run(
        [ptxas, "-v", target, str(source), "-o", str(tmp_path / "kernel.cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert assembled.returncode == 0, assembled.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in assembled.stderr
    geometry = clue_table.geometry_for(digits)
    assert geometry is not None
    found = re.search(r"Used (\d+) registers.* (\d+) bytes smem", assembled.stderr)
    assert found, assembled.stderr
    registers, shared = map(int, found.groups())
    assert registers <= 128
    assert shared == geometry.shared_bytes(digits)
    assert shared <= clue_table.SHARED_LIMIT_BYTES
    by_registers = REGISTERS // (-(-registers // 8) * 8 * geometry.threads)
    by_memory = SHARED_BYTES[capability] // (shared + 1024)  # the system takes a kilobyte of each block
    resident = min(by_registers, by_memory) * geometry.threads
    assert resident >= {1: 512 if capability < (9, 0) else 1024, 2: 512, 3: 512}.get(digits, 128)


REGISTERS = 65536  # of a multiprocessor
SHARED_BYTES = {(8, 0): 164 << 10, (9, 0): 228 << 10, (10, 0): 228 << 10}


def test_256_predicates_have_a_geometry() -> None:
    """128 unordered comparisons of two predicates each is the most comparisons that 256 predicates can need."""
    assert clue_table.geometry_for(-(-128 // clue_table.PER_DIGIT)) is not None
    assert clue_table.geometry_for(100) is None
    log = [g.log_entries_per_block() for g in clue_table.GEOMETRIES]
    assert log == sorted(log, reverse=True)
