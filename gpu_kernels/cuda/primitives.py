"""Memory, launches, sort and running sums on the current device: what the refinements take from outside.

Sorting and adding are CuPy's. Where CuPy can't be used (Numba's simulator, or a machine without it) numpy does them on
copies in host memory: the same answers, slower. Everything else is a Numba kernel. All arrays are Numba's device
arrays, C order; their memory is that of CuPy's pool where there is one, so that repeated steps don't wait for the
driver.
"""

from __future__ import annotations

import logging
import math
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numba import config, cuda
from numpy.typing import DTypeLike, NDArray

from tuplewise.engine.errors import DeviceError, message
from tuplewise.gpu_kernels.device import QUIET_BLOCKS

THREADS = 128  # of a block
MOST_BLOCKS = 1 << 16  # beyond them a thread takes more than one item
SIMULATED_GRID = 2, 2  # blocks, threads: the simulator starts a Python thread for each
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
SHARE_OF_FREE_MEMORY = 0.6
SIMULATED_ROOM_BYTES = 1 << 26

_log = logging.getLogger("tuplewise")


@cache
def _cupy() -> Any:
    """The module, or None where it can't be used."""
    if config.ENABLE_CUDASIM:
        return None
    if find_spec("cupy") is None:
        hint = "Install tuplewise[cuda12] or tuplewise[cuda13], whichever the driver supports."
        _log.warning("CuPy isn't installed: rows are sorted on the CPU. %s", hint)
        return None
    import cupy

    return cupy


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Device memory with nothing in particular in it; at least one entry a side, since some drivers refuse none.

    Raises
    ------
    DeviceError
        The device has no room.
    """
    shape = tuple(max(1, n) for n in (shape if isinstance(shape, tuple) else (shape,)))
    try:
        if (cupy := _cupy()) is not None:
            return cuda.as_cuda_array(cupy.empty(shape, dtype=dtype), sync=False)
        return cuda.device_array(shape, dtype=dtype)
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        wanted = math.prod(shape) * np.dtype(dtype).itemsize
        hint = "Free memory on the device, or use device 'cpu'."
        raise DeviceError(message("device memory", f"{wanted:,} bytes more", None, hint)) from error


def to_device(array: NDArray[Any]) -> Any:
    """A copy in device memory."""
    copy = empty(array.shape, array.dtype)
    if array.size:
        copy.copy_to_device(np.ascontiguousarray(array))
    return copy


def to_host(array: Any) -> NDArray[Any]:
    """A copy in host memory, of an array or a part of one."""
    copy: NDArray[Any] = array.copy_to_host()
    return copy


def zeros(length: int, dtype: DTypeLike) -> Any:
    """Device memory of zeros."""
    return filled(length, 0, dtype)


def filled(length: int, value: int, dtype: DTypeLike) -> Any:
    """Device memory with one value in it."""
    if (cupy := _cupy()) is not None:
        found = empty(length, dtype)
        cupy.asarray(found).fill(value)
        return found
    return to_device(np.full(max(1, length), value, dtype=dtype))


def sort(keys: Any) -> None:
    """Sort a device array in place, ascending."""
    if (cupy := _cupy()) is not None:
        cupy.asarray(keys).sort()
    else:
        keys.copy_to_device(np.sort(keys.copy_to_host()))


def running_sums(numbers: Any) -> Any:
    """int64 (n + 1,): place k holds the sum of the first k numbers."""
    n = numbers.shape[0]
    sums = empty(n + 1, np.int64)
    if (cupy := _cupy()) is not None:
        view = cupy.asarray(sums)
        view[0] = 0
        cupy.cumsum(cupy.asarray(numbers), dtype=np.int64, out=view[1:])
    else:
        host = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(numbers.copy_to_host(), dtype=np.int64, out=host[1:])
        sums.copy_to_device(host)
    return sums


def total(numbers: Any) -> int:
    """Sum of a device array of int64."""
    if (cupy := _cupy()) is not None:
        return int(cupy.asarray(numbers).sum())
    return int(numbers.copy_to_host().sum())


def device_index() -> int:
    """Number of the current device."""
    return 0 if config.ENABLE_CUDASIM else int(cuda.current_context().device.id)


def room_bytes() -> int:
    """Bytes that outputs of one step may take: a share of what is free on the current device."""
    if config.ENABLE_CUDASIM:
        return SIMULATED_ROOM_BYTES
    free = int(cuda.current_context().get_memory_info()[0])
    if (cupy := _cupy()) is not None:
        free += int(cupy.get_default_memory_pool().free_bytes())
    return int(SHARE_OF_FREE_MEMORY * free)


def launch(kernel: Any, items: int, *arguments: Any) -> None:
    """Run a kernel over so many items, one thread each while the grid may grow, else a thread takes several."""
    if config.ENABLE_CUDASIM:
        grid = SIMULATED_GRID
    else:
        grid = min(MOST_BLOCKS, max(QUIET_BLOCKS, -(-items // THREADS))), THREADS
    kernel[grid](*arguments)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation on the device failed for want of memory."""
    if isinstance(error, MemoryError) or getattr(error, "code", None) == OUT_OF_MEMORY:
        return True
    text = f"{type(error).__name__} {error}"
    return "OUT_OF_MEMORY" in text or "OutOfMemory" in text
