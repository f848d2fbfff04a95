"""Choice of the device that runs the kernels: "auto[:N]", "cpu" or "cuda[:N]" becomes a `Device`, with the reason.

This module touches CUDA only when a device is picked. It finds out whether a GPU works by compiling and running a very
small kernel on it, once a process: a mismatch of driver, toolkit and wheels shows only then.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

import numpy as np

from tuplewise.engine.errors import DeviceError, InputError, message, near_names
from tuplewise.gpu_kernels.faults import DRIVER, FORKED, INSTALL, SPAWN, Fault, explain

LEAST_COMPUTE_CAPABILITY = (7, 0)  # 64-bit atomics and independent threads
ALLOWED = "'auto', 'cpu', 'cuda', 'cuda:N'"
QUIET_BLOCKS = 128  # Numba warns about launches of fewer blocks
MEMORY = "TUPLEWISE_DEVICE_MEMORY"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_log = logging.getLogger("tuplewise")
_used_in: int | None = None  # the process that first used CUDA here; another number in a process forked from it
_Found = TypeVar("_Found")


class OutOfDeviceMemory(DeviceError):
    """Lack of device memory even for the smallest piece of the work."""


@dataclass(frozen=True)
class Device:
    """Device that kernels run on.

    Attributes
    ----------
    kind : "cpu" or "cuda"
    index : number of the GPU among the visible ones; 0 on the CPU
    name : the GPU's or processor's name
    chosen : why this device: as asked for, or what `auto` found
    memory_bytes : all memory of the device, in use or not; 0 where it isn't known
    more : tuple of int
        Further GPUs of this machine that may help, by number. Counting the clues of all pairs (`evidence`) spreads over
        them; what is sorted and joined stays on the GPU `index`, where its rows are.
    may_fall_back : whether the CPU may go on where the device's memory is too small (picked by `auto`)
    fallen : list of str
        Work that moved to the CPU for lack of device memory; `run` fills it in.

    Examples
    --------
    >>> str(pick_device("cpu"))
    'cpu'
    """

    kind: Literal["cpu", "cuda"]
    index: int
    name: str
    chosen: str
    memory_bytes: int
    more: tuple[int, ...] = ()
    may_fall_back: bool = False
    fallen: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def described(self) -> str:
        """Name in results: "cpu", or "cuda:0" ("cuda:0,1") and the GPU's name; ", then cpu" after a fallback."""
        return f"{self}, then cpu" if self.fallen else str(self)

    @property
    def reason(self) -> str:
        """Reason for this device, and the work that fell back to the CPU. Read it after the work."""
        if not self.fallen:
            return self.chosen
        return f"{self.chosen}; out of device memory while {' and '.join(self.fallen)}: went on on the CPU"

    def __str__(self) -> str:
        gpus = ",".join(map(str, (self.index, *self.more)))
        return "cpu" if self.kind == "cpu" else f"cuda:{gpus} {self.name}"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Context in which this is the thread's current CUDA device; does nothing for the CPU."""
        if self.kind == "cpu":
            yield
            return
        with on_gpu(self.index):
            yield

    def run(
        self,
        doing: str,
        on_gpu: Callable[[], _Found],
        on_cpu: Callable[[], _Found],
        forget: Callable[[], object] = lambda: None,
    ) -> _Found:
        """Run work with this device's twin, or with the CPU's where this device has no room.

        Parameters
        ----------
        doing : what it is, as in "out of device memory while comparing pairs". What fell back once stays on the CPU.
        on_gpu, on_cpu : callables
            The work with each twin. They give the same answers, and `on_gpu` leaves no mark where it raises.
        forget : lets go of what the failed work keeps on the device, before the CPU begins

        Raises
        ------
        OutOfDeviceMemory
            The device was asked for by name and has no room even for the smallest pieces.
        """
        if self.kind == "cpu" or doing in self.fallen:
            return on_cpu()
        from tuplewise.gpu_kernels.cuda.primitives import release, with_less_room

        with self.active():
            try:
                return with_less_room(on_gpu)
            except OutOfDeviceMemory as error:
                if not self.may_fall_back:
                    raise
                _log.warning("out of device memory while %s: going on on the CPU (%s)", doing, error)
            # the error is gone only here, and with it the device memory that its frames held
            forget()
            release()
        if doing not in self.fallen:
            self.fallen.append(doing)
        return on_cpu()


def pick_device(spec: str | Device = "auto") -> Device:
    """Pick the device of a specification.

    Parameters
    ----------
    spec : str or Device
        "auto": all GPUs of this machine if the first can be used, else the CPU. "auto:N": GPU N alone, else the CPU.
        "cpu". "cuda": as "auto", but never the CPU. "cuda:N": GPU N alone. A Device is returned as it is.

    Returns
    -------
    Device
        The device, with the reason. Where `auto` picks the CPU, the reason tells why no GPU is used, and a warning is
        logged (once) where a GPU seems to be broken.

    Raises
    ------
    InputError
        The specification is none of these, or TUPLEWISE_DEVICE_MEMORY is malformed.
    DeviceError
        A GPU was asked for by name and can't be used.

    Notes
    -----
    The first use of a GPU compiles a small kernel (about a second); the process remembers the result. Further GPUs are
    tried when there is work for them. A process forked from one that uses CUDA can't use CUDA.

    Examples
    --------
    >>> pick_device("cpu").reason
    'asked for'
    """
    if isinstance(spec, Device):
        return spec
    match = re.fullmatch(r"cpu|(auto|cuda)(?::(\d{1,4}))?", spec) if isinstance(spec, str) else None
    if match is None:
        hint = near_names(spec, ["auto", "cpu", "cuda"]) if isinstance(spec, str) else None
        raise InputError(message(f"device: {spec!r}", None, ALLOWED, hint))
    if spec == "cpu":
        return _cpu("asked for")
    memory_limit(0)
    family, number = match.groups()
    found = gpu(int(number or 0))
    if family == "auto":
        if _simulated():
            return _cpu("CUDA is simulated")
        if isinstance(found, Fault):
            if found.broken:
                _warn_once(found.reason, found.hint)
            return _cpu(found.reason)
    elif isinstance(found, Fault):
        hint = f"{_sentence(found.reason)} {found.hint}"
        raise DeviceError(message("device", spec, "a GPU that works, 'auto' or 'cpu'", hint))
    chosen = found.chosen if family == "auto" else "asked for"
    more = () if number else found.more
    if more:
        chosen += f"; {1 + len(more)} GPUs: all may compare pairs, the first does the rest"
    return replace(found, chosen=chosen, more=more, may_fall_back=family == "auto", fallen=[])


def memory_limit(device_bytes: int) -> int | None:
    """Bytes that kernels of this process may take on a device of so much memory; None where the user set no limit.

    TUPLEWISE_DEVICE_MEMORY sets it, as bytes ("4g") or a share of the device ("0.25": four tasks of Spark on one GPU).
    """
    text = os.environ.get(MEMORY, "").strip()
    return None if not text else _limit(text, device_bytes)


@lru_cache(maxsize=64)
def _limit(text: str, device_bytes: int) -> int:
    """Limit in bytes of a text, see `memory_limit`. Raises InputError where the text is malformed."""
    size = re.fullmatch(r"(\d{1,18})([kmgt]?)(?:i?b)?", text.lower())
    share = re.fullmatch(r"[01]?\.\d{1,9}", text)
    limit = int(size[1]) * _UNITS[size[2]] if size else int(float(text) * device_bytes) if share else 0
    if (size and not limit) or (not size and not (share and 0 < float(text) <= 1)):
        raise InputError(message(MEMORY, text, "bytes, as '4g', or a share of the device's memory, as '0.25'"))
    return limit


@contextmanager
def on_gpu(index: int) -> Iterator[None]:
    """Context in which GPU `index` is the thread's current one. Raises DeviceError in a forked process."""
    from numba import cuda

    if _forked():
        raise DeviceError(message(f"device 'cuda:{index}'", None, None, f"{_sentence(FORKED)} {SPAWN}"))
    with cuda.gpus[0 if _simulated() else index]:
        yield


def _cpu(reason: str) -> Device:
    """The CPU."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 0
    return Device("cpu", 0, platform.processor() or platform.machine() or "cpu", reason, memory)


def _simulated() -> bool:
    """Tell whether Numba's CUDA simulator stands in for GPUs."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def _forked() -> bool:
    """Tell whether this process was forked from one that had used CUDA."""
    return _used_in not in (None, os.getpid())


def gpu(index: int) -> Device | Fault:
    """GPU `index`, or the reason why it can't be used; determined once a process."""
    return _cuda_device(index, os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid())


@lru_cache(maxsize=64)
def _cuda_device(index: int, visible: str | None, process: int) -> Device | Fault:
    """Cached part of `gpu`. CUDA_VISIBLE_DEVICES and the process are parameters so that a change of either is
    noticed."""
    if _simulated():
        return Device("cuda", 0, "simulator", "CUDA is simulated", 0)
    if _forked():
        return Fault(FORKED, SPAWN)
    if visible is not None and visible.strip().split(",")[0] in ("", "-1", "NoDevFiles"):
        return Fault(f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides all GPUs", "Unset it, or name a GPU in it.")
    if find_spec("numba_cuda") is None:
        return Fault("numba-cuda isn't installed", INSTALL, broken=False)
    try:
        return _probe(_load_cuda(), index)
    except Exception as error:  # drivers, toolkits and wheels fail in many ways and types
        return explain(error)


_DRIVER_LIBRARY = "libcuda.so.1"


def _load_cuda() -> Any:
    """Import numba.cuda. It takes half a second, which a machine without the driver's library needn't spend."""
    if sys.platform == "linux" and not os.environ.get("NUMBA_CUDA_DRIVER"):
        ctypes.CDLL(_DRIVER_LIBRARY)
    from numba import cuda

    if "numba_cuda" not in str(cuda.__file__):  # numba still includes a target of its own, which nobody maintains
        raise ImportError("Cannot redirect numba.cuda to numba_cuda")
    return cuda


def _probe(cuda: Any, index: int) -> Device | Fault:
    """Check the driver and the GPU, then run a kernel on it."""
    global _used_in
    count = len(cuda.gpus)
    if _used_in is None:
        _used_in = os.getpid()
    if count == 0:
        return Fault("the driver sees no GPU", DRIVER, broken=False)
    if index >= count:
        return Fault(
            f"there is no GPU {index}",
            f"Visible GPUs: 0 to {count - 1}." if count > 1 else "The only visible GPU is 0.",
        )
    with cuda.gpus[index]:
        gpu = cuda.get_current_device()
        name = gpu.name.decode() if isinstance(gpu.name, bytes) else str(gpu.name)
        capability = tuple(gpu.compute_capability)
        if capability < LEAST_COMPUTE_CAPABILITY:
            least = ".".join(map(str, LEAST_COMPUTE_CAPABILITY))
            has = ".".join(map(str, capability))
            return Fault(f"{name} has compute capability {has}, less than {least}", "Choose another GPU.")
        if not _trial(cuda):
            return Fault(f"a trial kernel gave a wrong answer on {name}", DRIVER)
        memory_bytes = int(cuda.current_context().get_memory_info()[1])
    others = (other for other in range(count) if other != index)
    more = tuple(other for other in others if tuple(cuda.gpus[other].compute_capability) >= LEAST_COMPUTE_CAPABILITY)
    reason = f"{name}, compute capability {'.'.join(map(str, capability))}"
    return Device("cuda", index, name, reason, memory_bytes, more)


def _trial(cuda: Any) -> bool:
    """Compile, load and run a kernel, and check its result."""

    @cuda.jit  # type: ignore[untyped-decorator]
    def count_threads_kernel(total):  # type: ignore[no-untyped-def]
        """Each of the grid's threads adds one to total[0] (int32) atomically."""
        cuda.atomic.add(total, 0, 1)

    total = cuda.to_device(np.zeros(1, dtype=np.int32))
    count_threads_kernel[QUIET_BLOCKS, 32](total)
    return int(total.copy_to_host()[0]) == QUIET_BLOCKS * 32


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


@lru_cache(maxsize=64)
def _warn_once(reason: str, hint: str) -> None:
    _log.warning("no GPU is used: %s. %s", reason, hint)
