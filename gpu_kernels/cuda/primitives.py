"""Memory, launches, sorts and running sums on the current device.

CuPy sorts and adds. Where CuPy can't be used (in Numba's simulator, or where it isn't installed), NumPy does the same
on copies in host memory, with the same results but slower. Everything else is a Numba kernel. All arrays are Numba's
device arrays, C order. Their memory comes from CuPy's pool where there is one, so repeated steps don't wait for the
driver.

`room_bytes` alone decides how much memory a step may take. When memory runs out, `with_less_room` repeats the work with
less room, since other processes may share the device.
"""

from __future__ import annotations

import gc
import logging
import math
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numba import config, cuda
from numpy.typing import DTypeLike, NDArray

from tuplewise.engine.errors import message
from tuplewise.gpu_kernels.device import QUIET_BLOCKS, OutOfDeviceMemory, memory_limit
from tuplewise.gpu_kernels.faults import INSTALL, explain, is_out_of_memory

THREADS = 128  # threads of a block
MOST_BLOCKS = 1 << 16  # blocks of a grid; beyond them a thread takes more than one item
SIMULATED_GRID = 2, 2  # blocks, threads: the simulator starts a Python thread for each
SHARE_OF_FREE_MEMORY = 0.6
SIMULATED_ROOM_BYTES = 1 << 26
LESS_ROOM = 1.0, 0.25, 0.0625, 0.015625  # shares of the room, tried one after the other
HINT = "Free memory on the device, or use device 'cpu'."

_log = logging.getLogger("tuplewise")
_Found = TypeVar("_Found")


class NoRoom(OutOfDeviceMemory):
    """Failed allocation; smaller pieces may fit."""


class _Room(threading.local):
    """Share of the room granted to a thread's work, and whether the work asked for room."""

    share = 1.0
    asked = False


_room = _Room()


@cache
def _cupy() -> Any:
    """CuPy's module, or None where it can't be used."""
    if config.ENABLE_CUDASIM:
        return None
    if find_spec("cupy") is None:
        _log.warning("CuPy isn't installed: rows are sorted on the CPU. %s", INSTALL)
        return None
    try:
        return _tried_cupy()
    except Exception as error:  # CuPy fails in as many ways as the driver does
        if is_out_of_memory(error):
            raise
        fault = explain(error)
        _log.warning("CuPy can't be used: rows are sorted on the CPU: %s. %s", fault.reason, fault.hint)
        return None


def _tried_cupy() -> Any:
    """Try every function of CuPy that is needed, and return the module: a mismatched wheel fails only when it
    compiles."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import cupy
    for warning in told:
        fault = explain(RuntimeError(str(warning.message)))
        if "CuPy packages" in fault.reason:
            _log.warning("%s. %s", fault.reason, fault.hint)
    numbers = cupy.empty(4, dtype=np.int64)
    numbers.fill(2)
    numbers.sort()
    sums = cupy.cumsum(numbers, dtype=np.int64)
    if (int(sums[-1]), int(sums.sum())) != (8, 20):
        raise RuntimeError("CuPy gave a wrong sum")
    return cupy


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Allocate uninitialised device memory, with at least one entry a dimension, since some drivers refuse empty
    arrays.

    Raises
    ------
    NoRoom
        The device has no room.
    """
    shape = tuple(max(1, n) for n in (shape if isinstance(shape, tuple) else (shape,)))
    try:
        return _allocated(shape, dtype)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    raise NoRoom(message("device memory", f"{wanted:,} bytes more", None, HINT))


def _allocated(shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    """Allocate from CuPy's pool, or from Numba."""
    if (cupy := _cupy()) is not None:
        return cuda.as_cuda_array(cupy.empty(shape, dtype=dtype), sync=False)
    return cuda.device_array(shape, dtype=dtype)


def to_device(array: NDArray[Any]) -> Any:
    """Copy to device memory."""
    copy = empty(array.shape, array.dtype)
    if array.size:
        copy.copy_to_device(np.ascontiguousarray(array))
    return copy


def to_host(array: Any) -> NDArray[Any]:
    """Copy an array, or part of one, to host memory."""
    copy: NDArray[Any] = array.copy_to_host()
    return copy


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Allocate zeros on the device."""
    return filled(shape, 0, dtype)


def filled(shape: int | tuple[int, ...], value: int, dtype: DTypeLike) -> Any:
    """Allocate device memory filled with one value."""
    found = empty(shape, dtype)
    if (cupy := _cupy()) is not None:
        cupy.asarray(found).fill(value)
    else:
        found.copy_to_device(np.full(found.shape, value, dtype=dtype))
    return found


def sort(keys: Any) -> None:
    """Sort a device array in place, ascending."""
    if (cupy := _cupy()) is not None:
        cupy.asarray(keys).sort()
    else:
        keys.copy_to_device(np.sort(keys.copy_to_host()))


def running_sums(numbers: Any) -> Any:
    """Running sums, int64 (n + 1,): entry k is the sum of the first k numbers."""
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
    """Bytes that one step may take on the current device: a share of the free memory, including unused memory in CuPy's
    pool.

    TUPLEWISE_DEVICE_MEMORY bounds all memory of this process, including its arrays in the pool.
    """
    _room.asked = True
    if config.ENABLE_CUDASIM:
        free = SIMULATED_ROOM_BYTES
        limit, used = memory_limit(SIMULATED_ROOM_BYTES), 0
    else:
        free, device_bytes = map(int, cuda.current_context().get_memory_info())
        limit, used = memory_limit(device_bytes), 0
        if (cupy := _cupy()) is not None:
            pool = cupy.get_default_memory_pool()
            free, used = free + int(pool.free_bytes()), int(pool.used_bytes())
    if limit is not None:
        free = max(0, min(free, limit - used))
    return int(SHARE_OF_FREE_MEMORY * _room.share * free)


def with_less_room(work: Callable[[], _Found]) -> _Found:
    """Do `work` and return its result. Where it runs out of device memory it is repeated with less room, if it asked
    for room.

    `work` must have no side effects where it raises. Raises OutOfDeviceMemory where no room is small enough.
    """
    outer = _room.share, _room.asked
    said = ""
    try:
        for attempt, share in enumerate(LESS_ROOM):
            _room.share, _room.asked = outer[0] * share, False
            try:
                return work()
            except Exception as error:
                if not is_out_of_memory(error) or (isinstance(error, OutOfDeviceMemory) and type(error) is not NoRoom):
                    raise
                said = str(error)
                traceback.clear_frames(error.__traceback__)
            release()
            if attempt and not _room.asked:
                break
    finally:
        _room.share, _room.asked = outer
    raise OutOfDeviceMemory(said if said.startswith("device memory") else message("device memory", said, None, HINT))


def release() -> None:
    """Return unused device memory to the driver; Numba and CuPy each keep their own."""
    gc.collect()
    if config.ENABLE_CUDASIM:
        return
    cuda.current_context().memory_manager.deallocations.clear()
    if (cupy := _cupy()) is not None:
        cupy.get_default_memory_pool().free_all_blocks()


def kernel(signature: str) -> Callable[[Callable[..., None]], Any]:
    """Declare a kernel with the types of its arguments. These are kept beside it, since with them `cuda.jit` needs a
    driver."""

    def declared(function: Callable[..., None]) -> Any:
        made = cuda.jit(cache=True)(function)
        made.signature = signature
        return made

    return declared


def launch(kernel: Any, items: int, *arguments: Any) -> None:
    """Run a kernel over so many items, one for each thread; in the largest grid a thread takes several."""
    if config.ENABLE_CUDASIM:
        grid = SIMULATED_GRID
    else:
        grid = min(MOST_BLOCKS, max(QUIET_BLOCKS, -(-items // THREADS))), THREADS
    kernel[grid](*arguments)


def output(kernel: Any, items: int, dtype: DTypeLike, *arguments: Any) -> Any:
    """Run a kernel and return its last argument, a new device array (items,)."""
    found = empty(items, dtype)
    launch(kernel, items, *arguments, found)
    return found
