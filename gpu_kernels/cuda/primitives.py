"""Memory, launches, sort and running sums on the current device: what the refinements take from outside.

Sorting and adding are CuPy's. Where CuPy can't be used (Numba's simulator, or a machine without it) numpy does them on
copies in host memory: the same answers, slower. Everything else is a Numba kernel. All arrays are Numba's device
arrays, C order; their memory is that of CuPy's pool where there is one, so that repeated steps don't wait for the
driver.

How much memory a step may take is said by `room_bytes`, and only there. Who cuts work to it is asked again with less
room after memory has run out (`with_less_room`): other processes may share the device.
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

THREADS = 128  # of a block
MOST_BLOCKS = 1 << 16  # beyond them a thread takes more than one item
SIMULATED_GRID = 2, 2  # blocks, threads: the simulator starts a Python thread for each
SHARE_OF_FREE_MEMORY = 0.6
SIMULATED_ROOM_BYTES = 1 << 26
LESS_ROOM = 1.0, 0.25, 0.0625, 0.015625  # shares of the room that are tried, one after the other
HINT = "Free memory on the device, or use device 'cpu'."

_log = logging.getLogger("tuplewise")
_Found = TypeVar("_Found")


class NoRoom(OutOfDeviceMemory):
    """An allocation that failed: less at a time may fit."""


class _Room(threading.local):
    """What is granted to the work of a thread, and whether it asked."""

    share = 1.0
    asked = False


_room = _Room()


@cache
def _cupy() -> Any:
    """The module, or None where it can't be used."""
    if config.ENABLE_CUDASIM:
        return None
    if find_spec("cupy") is None:
        _log.warning("CuPy isn't installed: rows are sorted on the CPU. %s", INSTALL)
        return None
    try:
        return _tried_cupy()
    except Exception as error:  # it fails in as many ways as the driver does
        if is_out_of_memory(error):
            raise
        fault = explain(error)
        _log.warning("CuPy can't be used: rows are sorted on the CPU: %s. %s", fault.reason, fault.hint)
        return None


def _tried_cupy() -> Any:
    """CuPy, after each thing that is asked of it: a wheel that doesn't fit shows when it compiles, not before."""
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
    """Device memory with nothing in particular in it; at least one entry a side, since some drivers refuse none.

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
    """Of CuPy's pool, or of Numba."""
    if (cupy := _cupy()) is not None:
        return cuda.as_cuda_array(cupy.empty(shape, dtype=dtype), sync=False)
    return cuda.device_array(shape, dtype=dtype)


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


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Device memory of zeros."""
    return filled(shape, 0, dtype)


def filled(shape: int | tuple[int, ...], value: int, dtype: DTypeLike) -> Any:
    """Device memory with one value in it."""
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
    """Bytes that one step may take on the current device: a share of what is free, what CuPy's pool keeps counted in.

    TUPLEWISE_DEVICE_MEMORY bounds what all of this process may have, of which its arrays in the pool are a part.
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
    """What `work` gives; where it runs out of device memory it is done anew, in less room, while it asks for any.

    `work` leaves no mark where it raises. Raises OutOfDeviceMemory where no room is small enough.
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
    """Give back to the driver what nothing uses any more: Numba and CuPy keep it, each for itself."""
    gc.collect()
    if config.ENABLE_CUDASIM:
        return
    cuda.current_context().memory_manager.deallocations.clear()
    if (cupy := _cupy()) is not None:
        cupy.get_default_memory_pool().free_all_blocks()


def kernel(signature: str) -> Callable[[Callable[..., None]], Any]:
    """Declare a kernel with the types of its arguments. They are kept beside it: `cuda.jit` would ask for a driver."""

    def declared(function: Callable[..., None]) -> Any:
        made = cuda.jit(cache=True)(function)
        made.signature = signature
        return made

    return declared


def launch(kernel: Any, items: int, *arguments: Any) -> None:
    """Run a kernel over so many items, one thread each while the grid may grow, else a thread takes several."""
    if config.ENABLE_CUDASIM:
        grid = SIMULATED_GRID
    else:
        grid = min(MOST_BLOCKS, max(QUIET_BLOCKS, -(-items // THREADS))), THREADS
    kernel[grid](*arguments)


def output(kernel: Any, items: int, dtype: DTypeLike, *arguments: Any) -> Any:
    """What a kernel writes to its last argument: a device array (items,)."""
    found = empty(items, dtype)
    launch(kernel, items, *arguments, found)
    return found
