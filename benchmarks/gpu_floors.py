"""The least time that a GPU needs for some work, by what its kernels' docstrings count: operations or bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.gpu_records import simulated
from tuplewise.gpu_kernels.device import Device

INT32_LANES = 64  # a multiprocessor and clock, compute capability 8.0 to 10.0
USUAL_CLOCK_HZ = 1.7e9  # where the driver doesn't tell
BANDWIDTHS = {"H200": 4.8e12, "H100": 3.35e12, "A100": 2.0e12, "B200": 8.0e12}  # bytes a second, data sheets


@dataclass(frozen=True)
class Floor:
    """Seconds that a unit of work takes at least, and how that was counted."""

    seconds: float
    counted: str


def by_operations(device: Device, operations: float) -> Floor | None:
    """The floor of so many operations on 32-bit integers a unit of work; None without a real GPU."""
    if device.kind != "cuda" or simulated():
        return None
    gpu = _gpu()
    try:
        clock = float(gpu.CLOCK_RATE) * 1000.0
    except Exception:  # newer drivers no longer tell
        clock = 0.0
    clock = clock or USUAL_CLOCK_HZ
    multiprocessors = int(gpu.MULTIPROCESSOR_COUNT)
    counted = f"{operations:.4g} operations / ({multiprocessors} x {INT32_LANES} x {clock:.3g} Hz)"
    return Floor(operations / (multiprocessors * INT32_LANES * clock), counted)


def by_bytes(device: Device, moved: float) -> Floor | None:
    """The floor of so many bytes from and to device memory a unit of work; None where the bandwidth isn't known."""
    if device.kind != "cuda" or simulated():
        return None
    known = next((rate for name, rate in BANDWIDTHS.items() if name in device.name), None)
    return None if known is None else Floor(moved / known, f"{moved:.4g} bytes / {known:.3g} a second")


def _gpu() -> Any:
    from numba import cuda

    return cuda.get_current_device()
