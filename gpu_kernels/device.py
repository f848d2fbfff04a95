"""Which device runs the kernels: "auto", "cpu" or "cuda[:N]" to a `Device`, with the reason.

Nothing here touches CUDA before a device is picked. Whether a GPU can be used is found out by compiling and running a
very small kernel on it, once a process: driver, toolkit and wheels that don't fit each other show only there.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from tuplewise.engine.errors import DeviceError, InputError, message, near_names

LEAST_COMPUTE_CAPABILITY = (7, 0)  # 64-bit atomics and independent threads
ALLOWED = "'auto', 'cpu', 'cuda', 'cuda:N'"
QUIET_BLOCKS = 128  # Numba warns about launches of fewer blocks

_INSTALL = "Install tuplewise[cuda12] or tuplewise[cuda13], whichever the driver supports."
_DRIVER = "Install or update the NVIDIA driver, and see that nvidia-smi works."
_MIXED = "Update the driver, or install the extra for its CUDA version: tuplewise[cuda12] or tuplewise[cuda13]."

# what drivers and toolkits say, what it means, what helps; the first that matches counts
_FAULTS = (
    (r"UNSUPPORTED_PTX_VERSION|unsupported toolchain|Unsupported \.version",
     "the CUDA toolkit is newer than the driver", _MIXED),
    (r"INSUFFICIENT_DRIVER|driver version is insufficient", "the driver is older than the CUDA toolkit needs", _MIXED),
    (r"SYSTEM_DRIVER_MISMATCH|version mismatch", "the driver's library and kernel module differ in version",
     "Restart the machine (or container) after the driver update."),
    (r"NO_BINARY_FOR_GPU|no kernel image|COMPAT_NOT_SUPPORTED|Unsupported GPU|invalid value for.*arch",
     "the CUDA toolkit doesn't support this GPU", _MIXED),
    (r"driver library cannot be found|libcuda\.so|nvcuda\.dll", "no NVIDIA driver", _DRIVER),
    (r"NO_DEVICE|no CUDA-capable device", "the driver sees no GPU", _DRIVER),
    (r"DEVICES_UNAVAILABLE|busy or unavailable", "another process has the GPU for itself",
     "Turn off exclusive compute mode, or choose another GPU."),
    (r"OUT_OF_MEMORY|out of memory", "no free memory on the GPU", "End other processes on it, or choose another GPU."),
    (r"module 'numpy' has no attribute", "numba-cuda doesn't know this version of numpy",
     "Install the numpy that numba asks for: pip install --upgrade numba numba-cuda."),
    (r"headers?\b|cannot open source file|could not open", "the CUDA headers aren't found", _INSTALL),
    (r"nvvm|nvrtc|nvJitLink|libdevice|cuda[._-]bindings|cudart",
     "the CUDA compiler libraries aren't found or don't fit", _INSTALL),
)  # fmt: skip

_log = logging.getLogger("tuplewise")


@dataclass(frozen=True)
class Device:
    """Where kernels run.

    Attributes
    ----------
    kind : "cpu" or "cuda"
    index : int
        Number of the GPU among the visible ones; 0 on the CPU.
    name : str
        The GPU's or processor's name.
    reason : str
        Why this device: as asked for, or what `auto` found.
    memory_bytes : int
        All memory of the device, in use or not; 0 where it isn't known.

    Examples
    --------
    >>> str(pick_device("cpu"))
    'cpu'
    """

    kind: Literal["cpu", "cuda"]
    index: int
    name: str
    reason: str
    memory_bytes: int

    @property
    def described(self) -> str:
        """As results name it: "cpu", or "cuda:0" and the GPU's name."""
        return "cpu" if self.kind == "cpu" else f"cuda:{self.index} {self.name}"

    def __str__(self) -> str:
        return "cpu" if self.kind == "cpu" else f"cuda:{self.index} {self.name}"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this the current CUDA device of the thread for a while; nothing on the CPU."""
        if self.kind == "cpu":
            yield
            return
        from numba import cuda

        with cuda.gpus[self.index]:
            yield


@dataclass(frozen=True)
class _Fault:
    """Why a GPU can't be used, and what helps. `broken`: something is there that doesn't work."""

    reason: str
    hint: str
    broken: bool = True


def pick_device(spec: str = "auto") -> Device:
    """The device that a specification means.

    Parameters
    ----------
    spec : str
        "auto": the first GPU if it can be used, else the CPU. "cpu". "cuda" or "cuda:N": that GPU and no other.

    Returns
    -------
    Device
        With the reason; `auto` on the CPU says why no GPU is used, and logs a warning (once) where one seems to be
        broken.

    Raises
    ------
    InputError
        The specification is none of these.
    DeviceError
        A GPU was asked for by name and can't be used.

    Notes
    -----
    The first use of a GPU compiles a small kernel (about a second); the answer is kept for the process.

    Examples
    --------
    >>> pick_device("cpu").reason
    'asked for'
    """
    match = re.fullmatch(r"auto|cpu|cuda(?::(\d{1,4}))?", spec) if isinstance(spec, str) else None
    if match is None:
        hint = near_names(spec, ["auto", "cpu", "cuda"]) if isinstance(spec, str) else None
        raise InputError(message(f"device: {spec!r}", None, ALLOWED, hint))
    if spec == "cpu":
        return _cpu("asked for")
    found = _cuda_device(int(match.group(1) or 0), os.environ.get("CUDA_VISIBLE_DEVICES"))
    if spec == "auto":
        if _simulated():
            return _cpu("CUDA is simulated")
        if isinstance(found, _Fault):
            if found.broken:
                _warn_once(found.reason, found.hint)
            return _cpu(found.reason)
        return found
    if isinstance(found, _Fault):
        raise DeviceError(
            message("device", spec, "a GPU that works, 'auto' or 'cpu'", f"{_sentence(found.reason)} {found.hint}")
        )
    return Device(found.kind, found.index, found.name, "asked for", found.memory_bytes)


def _cpu(reason: str) -> Device:
    """The CPU."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 0
    return Device("cpu", 0, platform.processor() or platform.machine() or "cpu", reason, memory)


def _simulated() -> bool:
    """Whether Numba's CUDA simulator stands in for GPUs."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@lru_cache(maxsize=64)
def _cuda_device(index: int, visible: str | None) -> Device | _Fault:
    """GPU `index`, or why not. `visible` is CUDA_VISIBLE_DEVICES, so that a change isn't answered from memory."""
    if _simulated():
        return Device("cuda", 0, "simulator", "CUDA is simulated", 0)
    if visible is not None and visible.strip().split(",")[0] in ("", "-1", "NoDevFiles"):
        return _Fault(f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides all GPUs", "Unset it, or name a GPU in it.")
    if find_spec("numba_cuda") is None:
        return _Fault("numba-cuda isn't installed", _INSTALL, broken=False)
    try:
        return _probe(_load_cuda(), index)
    except Exception as error:  # drivers, toolkits and wheels fail in many ways and types
        return explain(error)


def _load_cuda() -> Any:
    """numba.cuda, which is not imported before a device is asked for."""
    from numba import cuda

    return cuda


def _probe(cuda: Any, index: int) -> Device | _Fault:
    """Look at the driver and the GPU, then try the GPU."""
    count = len(cuda.gpus)
    if count == 0:
        return _Fault("the driver sees no GPU", _DRIVER, broken=False)
    if index >= count:
        return _Fault(
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
            return _Fault(f"{name} has compute capability {has}, less than {least}", "Choose another GPU.")
        if not _trial(cuda):
            return _Fault(f"a trial kernel gave a wrong answer on {name}", _DRIVER)
        memory_bytes = int(cuda.current_context().get_memory_info()[1])
    return Device("cuda", index, name, f"{name}, compute capability {'.'.join(map(str, capability))}", memory_bytes)


def _trial(cuda: Any) -> bool:
    """Compile, load and run a kernel, and check what it wrote."""

    @cuda.jit  # type: ignore[untyped-decorator]
    def count_threads_kernel(total):  # type: ignore[no-untyped-def]
        """Each of the grid's threads adds one to total[0] (int32) atomically."""
        cuda.atomic.add(total, 0, 1)

    total = cuda.to_device(np.zeros(1, dtype=np.int32))
    count_threads_kernel[QUIET_BLOCKS, 32](total)
    return int(total.copy_to_host()[0]) == QUIET_BLOCKS * 32


def explain(error: BaseException) -> _Fault:
    """What a failure of driver, toolkit or wheels means, in one line."""
    text = f"{type(error).__name__}: {error}"
    for pattern, reason, hint in _FAULTS:
        if re.search(pattern, text, re.IGNORECASE):
            return _Fault(reason, hint, broken=reason not in ("no NVIDIA driver", "the driver sees no GPU"))
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _Fault(f"CUDA failed: {(lines[0] if lines else type(error).__name__)[:200]}", _DRIVER)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


@lru_cache(maxsize=64)
def _warn_once(reason: str, hint: str) -> None:
    _log.warning("no GPU is used: %s. %s", reason, hint)
