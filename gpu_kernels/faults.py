"""Failures of drivers, toolkits and wheels: their texts, what they mean, and remedies.

Failures have many types, so only their text is examined. This module never touches CUDA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INSTALL = "Install tuplewise[cuda12] or tuplewise[cuda13], whichever the driver supports."
DRIVER = "Install or update the NVIDIA driver, and see that nvidia-smi works."
SPAWN = "Start processes by multiprocessing's 'spawn', or use device 'cpu' in them."
FORKED = "this process was forked from one that uses CUDA"

_MIXED = "Update the driver, or install the extra for its CUDA version: tuplewise[cuda12] or tuplewise[cuda13]."
_ONE_CUPY = "Uninstall cupy and every cupy-cuda wheel, then install tuplewise[cuda12] or tuplewise[cuda13]."
_NONE_THERE = ("no NVIDIA driver", "the driver sees no GPU")  # as on most laptops: nothing is broken

# the first that matches counts
_FAULTS = (
    (r"initialized before forking|CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError", FORKED, SPAWN),
    (r"NUMBA_DISABLE_CUDA", "NUMBA_DISABLE_CUDA is set", "Unset it."),
    (r"multiple CuPy packages", "several CuPy packages are installed", _ONE_CUPY),
    (r"UNSUPPORTED_PTX_VERSION|unsupported toolchain|Unsupported \.version|PTX version .* not support",
     "the CUDA toolkit is newer than the driver", _MIXED),
    (r"INSUFFICIENT_DRIVER|driver version is insufficient|Driver missing function|undefined symbol: cu(?-i:[A-Z])",
     "the driver is older than the CUDA toolkit needs", _MIXED),
    (r"SYSTEM_DRIVER_MISMATCH|version mismatch", "the driver's library and kernel module differ in version",
     "Restart the machine (or container) after the driver update."),
    (r"NO_BINARY_FOR_GPU|no kernel image|COMPAT_NOT_SUPPORTED|Unsupported GPU|invalid value for.*arch"
     r"|compute capability \S+ is (?:less than|not supported)|INVALID_SOURCE|NVVM_ERROR_INVALID_OPTION",
     "the CUDA toolkit doesn't support this GPU", _MIXED),
    (r"libraries are found but error occurred", "the driver's library can't be loaded",
     "Install the driver for this machine's processor and system, and see that nvidia-smi works."),
    (r"driver library cannot be found|libcuda\.so|nvcuda\.dll", "no NVIDIA driver", DRIVER),
    (r"NO_DEVICE|no CUDA-capable device", "the driver sees no GPU", DRIVER),
    (r"STUB_LIBRARY", "the driver's library is a stub, for compiling only",
     "Take the folder of stubs out of LD_LIBRARY_PATH."),
    (r"SYSTEM_NOT_READY|system not yet initialized", "the driver isn't ready",
     "Start nvidia-fabricmanager (GPUs joined by NVSwitch need it), or restart the machine."),
    (r"ECC_UNCORRECTABLE|DEVICE_NOT_LICENSED|HARDWARE_STACK_ERROR|CUDA_ERROR_UNKNOWN|GPU is lost|unknown error",
     "the GPU doesn't answer", "See what nvidia-smi says of it; a restart of the machine may help."),
    (r"ILLEGAL_ADDRESS|LAUNCH_FAILED|illegal memory access|unspecified launch failure", "a kernel failed on the GPU",
     "Use device 'cpu', and please report it."),
    (r"LAUNCH_TIMEOUT|launch timed out", "the system ended a kernel that took long on a GPU with a display",
     "Choose another GPU, or device 'cpu'."),
    (r"DEVICES?_UNAVAILABLE|busy or unavailable", "another process has the GPU for itself",
     "Turn off exclusive compute mode, or choose another GPU."),
    (r"INVALID_DEVICE|invalid device ordinal", "CUDA_VISIBLE_DEVICES names a GPU that isn't there",
     "See nvidia-smi -L for those that are."),
    (r"OPERATION_NOT_PERMITTED|OPERATING_SYSTEM|operation not permitted", "the system keeps this process from the GPU",
     "Start the container with --gpus all, and see who may open /dev/nvidia*."),
    (r"OUT_OF_MEMORY|OutOfMemory|out of memory", "no free memory on the GPU",
     "End other processes on it, or choose another GPU."),
    (r"module 'numpy' has no attribute", "numba-cuda doesn't know this version of numpy",
     "Install the numpy that numba asks for: pip install --upgrade numba numba-cuda."),
    (r"No module named 'numba_cuda", "numba-cuda isn't installed", INSTALL),
    (r"Cannot redirect numba\.cuda", "numba's own old CUDA target is in use, not numba-cuda",
     "Install it anew, which puts it in that place: pip install --force-reinstall --no-deps numba-cuda."),
    (r"headers?\b|cannot open source file|could not open|cuda_runtime\.h", "the CUDA headers aren't found", INSTALL),
    (r"Failed to import CuPy|CuPy failed to load|CuPy is not correctly installed|cupy_backends",
     "CuPy doesn't fit the CUDA libraries", _ONE_CUPY),
    (r"nvvm|nvrtc|nvJitLink|libdevice|cuda[._-](?:bindings|core|pathfinder)|cudart|No module named 'cuda'",
     "the CUDA compiler libraries aren't found or don't fit", INSTALL),
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """Reason why a GPU can't be used, and the remedy. `broken`: something is installed that doesn't work."""

    reason: str
    hint: str
    broken: bool = True


def explain(error: BaseException) -> Fault:
    """Explain a failure of driver, toolkit or wheels in one line.

    Examples
    --------
    >>> explain(RuntimeError("Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)")).reason
    'the driver sees no GPU'
    """
    text = f"{type(error).__name__}: {error}"
    for pattern, reason, hint in _FAULTS:
        if re.search(pattern, text, re.IGNORECASE):
            return Fault(reason, hint, broken=reason not in _NONE_THERE)
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =-\t")]
    return Fault(f"CUDA failed: {(lines[0] if lines else type(error).__name__)[:200]}", DRIVER)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that device memory ran out. A MemoryError of numpy doesn't: it is about the host."""
    types = " ".join(kind.__name__ for kind in type(error).__mro__)
    return "OutOfMemory" in types or "OutOfDeviceMemory" in types or "OUT_OF_MEMORY" in str(error)
