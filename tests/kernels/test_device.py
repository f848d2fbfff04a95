"""Picking a device, with and without a (pretended) GPU. No GPU needed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tuplewise.engine.errors import DeviceError, InputError
from tuplewise.gpu_kernels import device as module
from tuplewise.gpu_kernels.device import Device, OutOfDeviceMemory, memory_limit, pick_device
from tuplewise.gpu_kernels.faults import explain, is_out_of_memory

GIB = 1 << 30


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No answers kept from other tests, no variables of the outside."""
    for name in ("CUDA_VISIBLE_DEVICES", "NUMBA_ENABLE_CUDASIM", "TUPLEWISE_DEVICE_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_used_in", None)
    module._cuda_device.cache_clear()
    module._warn_once.cache_clear()
    yield
    module._cuda_device.cache_clear()
    module._warn_once.cache_clear()


class FakeGpu:
    """One of numba.cuda.gpus."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.compute_capability = capability

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class FakeCuda:
    """As much of numba.cuda as a probe looks at."""

    def __init__(self, gpus: int = 1, capability: tuple[int, int] = (9, 0), fails: BaseException | None = None) -> None:
        self.capability = capability
        self.fails = fails
        self.gpus = [FakeGpu(capability) for _ in range(gpus)]

    def get_current_device(self) -> Any:
        return SimpleNamespace(name=b"NVIDIA H100 80GB HBM3", compute_capability=self.capability)

    def current_context(self) -> Any:
        return SimpleNamespace(get_memory_info=lambda: (70 * GIB, 80 * GIB))


def pretend(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda, trial: bool = True) -> None:
    """Let probes see this instead of numba.cuda."""

    def try_it(_: Any) -> bool:
        if cuda.fails is not None:
            raise cuda.fails
        return trial

    monkeypatch.setattr(module, "find_spec", lambda name: object())
    monkeypatch.setattr(module, "_load_cuda", lambda: cuda)
    monkeypatch.setattr(module, "_trial", try_it)


def test_a_gpu_is_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeCuda())
    found = pick_device("auto")
    assert str(found) == found.described == "cuda:0 NVIDIA H100 80GB HBM3"
    assert found.reason == "NVIDIA H100 80GB HBM3, compute capability 9.0"
    assert found.memory_bytes == 80 * GIB
    assert pick_device("cuda") == Device("cuda", 0, "NVIDIA H100 80GB HBM3", "asked for", 80 * GIB)
    assert pick_device(found) is found


def test_all_gpus_of_a_machine_are_picked_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda(gpus=4)
    cuda.gpus[2].compute_capability = (6, 1)  # too old to help
    pretend(monkeypatch, cuda)
    found = pick_device("auto")
    assert (found.index, found.more, found.may_fall_back) == (0, (1, 3), True)
    assert str(found) == "cuda:0,1,3 NVIDIA H100 80GB HBM3"
    assert found.reason == (
        "NVIDIA H100 80GB HBM3, compute capability 9.0; 3 GPUs: all may compare pairs, the first does the rest"
    )
    found = pick_device("cuda")
    assert (found.index, found.more, found.may_fall_back) == (0, (1, 3), False)
    assert found.reason == "asked for; 3 GPUs: all may compare pairs, the first does the rest"
    found = pick_device("cuda:1")
    assert (str(found), found.more, found.may_fall_back) == ("cuda:1 NVIDIA H100 80GB HBM3", (), False)
    found = pick_device("auto:3")
    assert (str(found), found.more, found.may_fall_back) == ("cuda:3 NVIDIA H100 80GB HBM3", (), True)
    found = pick_device("auto:7")
    assert (str(found), found.reason) == ("cpu", "there is no GPU 7")


def pretend_room(monkeypatch: pytest.MonkeyPatch, released: list[str]) -> None:
    """No CUDA behind `Device.run`: memory runs out where the work says so."""
    monkeypatch.setattr(module, "on_gpu", lambda index: nullcontext())
    primitives = SimpleNamespace(release=lambda: released.append("released"), with_less_room=lambda work: work())
    monkeypatch.setitem(sys.modules, "tuplewise.gpu_kernels.cuda.primitives", primitives)


def test_what_finds_no_room_goes_on_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []
    pretend(monkeypatch, FakeCuda())
    pretend_room(monkeypatch, done)

    def on_gpu() -> str:
        done.append("gpu")
        raise OutOfDeviceMemory("device memory: '8 bytes more'")

    def on_cpu() -> str:
        done.append("cpu")
        return "answer"

    device = pick_device("auto")
    with caplog.at_level(logging.WARNING, "tuplewise"):
        assert device.run("comparing pairs", on_gpu, on_cpu, lambda: done.append("forgot")) == "answer"
        assert done == ["gpu", "forgot", "released", "cpu"]
        assert device.run("comparing pairs", on_gpu, on_cpu) == "answer"  # stays there
    assert done[4:] == ["cpu"]
    assert [record.getMessage() for record in caplog.records] == [
        "out of device memory while comparing pairs: going on on the CPU (device memory: '8 bytes more')"
    ]
    assert device.run("joining clusters", lambda: "there", on_cpu) == "there"  # other work is not touched
    assert device.described == "cuda:0 NVIDIA H100 80GB HBM3, then cpu"
    assert device.reason.endswith(
        "compute capability 9.0; out of device memory while comparing pairs: went on on the CPU"
    )
    assert pick_device("auto").described == "cuda:0 NVIDIA H100 80GB HBM3"  # the next one begins anew
    with pytest.raises(OutOfDeviceMemory, match="8 bytes more"):
        pick_device("cuda").run("comparing pairs", on_gpu, on_cpu)
    with pytest.raises(ZeroDivisionError):  # other faults are no reason to fall back
        device.run("joining clusters", lambda: str(1 // 0), on_cpu)


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("1000", 1000), ("4g", 4 * GIB), ("512M", 1 << 29), ("2GiB", 2 * GIB), ("3kb", 3072), ("0.25", 20 * GIB),
     ("1.0", 80 * GIB), (".5", 40 * GIB), (" 4g ", 4 * GIB), ("", None)],
)  # fmt: skip
def test_the_memory_that_kernels_may_take(monkeypatch: pytest.MonkeyPatch, text: str, bytes_: int | None) -> None:
    monkeypatch.setenv("TUPLEWISE_DEVICE_MEMORY", text)
    assert memory_limit(80 * GIB) == bytes_


@pytest.mark.parametrize("text", ["lots", "0", "-1", "1.5", "0.0", "4 g", "25%", "4g4", "1e9"])
def test_a_bad_bound_of_memory_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TUPLEWISE_DEVICE_MEMORY", text)
    for spec in ("auto", "cuda"):
        with pytest.raises(InputError) as caught:
            pick_device(spec)
        assert str(caught.value) == (
            f"TUPLEWISE_DEVICE_MEMORY: {text!r}; allowed: bytes, as '4g', or a share of the device's memory, as '0.25'"
        )
    assert pick_device("cpu").kind == "cpu"


FORKING = """
import os, sys
from types import SimpleNamespace
from tuplewise.gpu_kernels import device as module

class Gpu:
    compute_capability = 9, 0
    def __enter__(self): pass
    def __exit__(self, *_): pass

context = SimpleNamespace(get_memory_info=lambda: (1, 2))
fake = SimpleNamespace(gpus=[Gpu()], current_context=lambda: context,
                       get_current_device=lambda: SimpleNamespace(name="FAKE", compute_capability=(9, 0)))
module.find_spec, module._load_cuda, module._trial = (lambda name: True), (lambda: fake), (lambda cuda: True)
if sys.argv[1] == "used":
    inherited = module.pick_device("cuda")
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
found = module.pick_device("auto")
print(found, "|", found.reason)
if sys.argv[1] == "used":
    for use in (lambda: module.pick_device("cuda"), lambda: inherited.active().__enter__()):
        try:
            use()
        except module.DeviceError as error:
            print(error)
"""


def forked(how: str) -> list[str]:
    source = str(Path(__file__).resolve().parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", FORKING, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_process_forked_from_one_that_uses_cuda_says_so() -> None:
    forked_from = "this process was forked from one that uses CUDA"
    hint = f"{forked_from.capitalize().replace('cuda', 'CUDA')}. Start processes by multiprocessing's 'spawn', or use"
    auto, asked, inherited = forked("used")
    assert auto == f"cpu | {forked_from}"
    assert asked.startswith(f"device: 'cuda'; allowed: a GPU that works, 'auto' or 'cpu'. {hint}")
    assert inherited.startswith(f"device 'cuda:0'. {hint}")


def test_a_process_forked_before_cuda_was_used_may_use_it() -> None:
    assert forked("not used") == ["cuda:0 FAKE | FAKE, compute capability 9.0"]


def test_the_cpu_is_picked_without_looking_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*_: object) -> None:
        raise AssertionError("CUDA was touched")

    monkeypatch.setattr(module, "_load_cuda", touched)
    found = pick_device("cpu")
    assert (found.kind, found.index, str(found), found.reason) == ("cpu", 0, "cpu", "asked for")
    assert found.memory_bytes > 0
    with found.active():
        pass


@pytest.mark.parametrize("spec", ["gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1.5", "", "cuda:99999", " cpu", None, 0])
def test_a_bad_specification(spec: Any) -> None:
    with pytest.raises(InputError) as caught:
        pick_device(spec)
    assert str(caught.value).startswith(f"device: {spec!r}; allowed: 'auto', 'cpu', 'cuda', 'cuda:N'")


@pytest.mark.parametrize("value", ["", " ", "-1", "-1,0"])
def test_hidden_gpus(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str) -> None:
    pretend(monkeypatch, FakeCuda())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    with caplog.at_level(logging.WARNING, "tuplewise"):
        assert pick_device("auto").reason == f"CUDA_VISIBLE_DEVICES is {value!r}, which hides all GPUs"
        pick_device("auto")
    assert len(caplog.records) == 1
    with pytest.raises(DeviceError) as caught:
        pick_device("cuda")
    assert str(caught.value) == (
        "device: 'cuda'; allowed: a GPU that works, 'auto' or 'cpu'. "
        f"CUDA_VISIBLE_DEVICES is {value!r}, which hides all GPUs. Unset it, or name a GPU in it."
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # a change in the running process counts
    assert pick_device("cuda").kind == "cuda"


def test_no_numba_cuda(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING, "tuplewise"):
        assert pick_device("auto").reason == "numba-cuda isn't installed"
    assert not caplog.records  # the usual laptop
    with pytest.raises(
        DeviceError, match=r"Numba-cuda isn't installed\. Install tuplewise\[cuda12\] or tuplewise\[cuda13\]"
    ):
        pick_device("cuda")


def test_no_gpu_of_that_number(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeCuda(gpus=2))
    with pytest.raises(DeviceError, match=r"device: 'cuda:2'.*There is no GPU 2\. Visible GPUs: 0 to 1\."):
        pick_device("cuda:2")
    module._cuda_device.cache_clear()
    pretend(monkeypatch, FakeCuda(gpus=0))
    assert pick_device("auto").reason == "the driver sees no GPU"


def test_an_old_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeCuda(capability=(6, 1)))
    assert pick_device("auto").reason == "NVIDIA H100 80GB HBM3 has compute capability 6.1, less than 7.0"
    with pytest.raises(DeviceError, match=r"less than 7\.0"):
        pick_device("cuda")


def test_a_wrong_answer_of_the_trial_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeCuda(), trial=False)
    assert pick_device("auto").reason == "a trial kernel gave a wrong answer on NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("text", "reason", "broken"),
    [
        ("module 'numpy' has no attribute 'row_stack'", "numba-cuda doesn't know this version of numpy", True),
        ("[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
         "toolkit is newer than the driver", True),
        ("ptxas application ptx input, line 9; fatal : Unsupported .version 8.8; current version is '8.4'",
         "toolkit is newer than the driver", True),
        ("the provided PTX was compiled with an unsupported toolchain.", "toolkit is newer than the driver", True),
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
         "driver is older than the CUDA toolkit needs", True),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "differ in version", True),
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", "doesn't support this GPU", True),
        ("Error at driver init: \n\nCUDA driver library cannot be found.\nEnsure that a driver is installed.",
         "no NVIDIA driver", False),
        ("Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)", "the driver sees no GPU", False),
        ("CUDA_ERROR_DEVICES_UNAVAILABLE", "another process has the GPU for itself", True),
        ("CUDA_ERROR_OUT_OF_MEMORY", "no free memory on the GPU", True),
        ("cannot open source file \"cuda_fp16.h\"", "CUDA headers aren't found", True),
        ("libNVVM cannot be found. Do `conda install cuda-nvcc`", "compiler libraries", True),
        ("No module named 'cuda.bindings'", "compiler libraries", True),
        ("CUDA initialized before forking", "this process was forked from one that uses CUDA", True),
        ("cudaErrorInitializationError: initialization error", "this process was forked from one that uses CUDA", True),
        ("CUDA is disabled due to setting NUMBA_DISABLE_CUDA=1 in the environment", "NUMBA_DISABLE_CUDA is set", True),
        ("Cannot redirect numba.cuda to numba_cuda", "numba's own old CUDA target is in use, not numba-cuda", True),
        ("\nPossible CUDA driver libraries are found but error occurred during load:\nlibcuda.so.1: wrong ELF class",
         "the driver's library can't be loaded", True),
        ("libcuda.so.1: cannot open shared object file: No such file or directory", "no NVIDIA driver", False),
        ("Driver missing function: cuMemAddressReserve", "driver is older than the CUDA toolkit needs", True),
        ("/lib/libnvrtc.so: undefined symbol: cuKernelGetName", "driver is older than the CUDA toolkit needs", True),
        ("Device compute capability 7.0 is less than the minimum supported by NVRTC 13.0.",
         "the CUDA toolkit doesn't support this GPU", True),
        ("GPU compute capability 6.1 is not supported(requires >=7.5)", "toolkit doesn't support this GPU", True),
        ("CUDA_ERROR_STUB_LIBRARY (34)", "the driver's library is a stub", True),
        ("CUDA_ERROR_SYSTEM_NOT_READY (802)", "the driver isn't ready", True),
        ("Call to cuInit results in CUDA_ERROR_UNKNOWN (999)", "the GPU doesn't answer", True),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU doesn't answer", True),
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel failed on the GPU", True),
        ("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable",
         "another process has the GPU for itself", True),
        ("cudaErrorInvalidDevice: invalid device ordinal", "CUDA_VISIBLE_DEVICES names a GPU that isn't there", True),
        ("CUDA_ERROR_OPERATING_SYSTEM (304)", "the system keeps this process from the GPU", True),
        ("catastrophic error: cannot open source file \"vector_types.h\"", "CUDA headers aren't found", True),
        ("\nCuPy may not function correctly because multiple CuPy packages are installed\n  in your environment:",
         "several CuPy packages are installed", True),
        ("Failed to import CuPy.\nOriginal error:\n  ImportError: libcudart.so.12: cannot open shared object file",
         "CuPy doesn't fit the CUDA libraries", True),
        ("CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12", "CuPy doesn't fit the CUDA libraries", True),
        ("undefined symbol: cusparseDenseToSparse_analysis, version libcusparse.so.11 cupy_backends/cuda/libs",
         "CuPy doesn't fit the CUDA libraries", True),
        ("nvrtc: error: failed to open libnvrtc-builtins.so.12.9", "the CUDA compiler libraries aren't found", True),
        ("libNVVM is not available", "the CUDA compiler libraries aren't found", True),
        ("Missing libdevice file.", "the CUDA compiler libraries aren't found", True),
    ],
)  # fmt: skip
def test_faults_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, reason: str, broken: bool
) -> None:
    pretend(monkeypatch, FakeCuda(fails=RuntimeError(text)))
    with caplog.at_level(logging.WARNING, "tuplewise"):
        found = pick_device("auto")
    assert found.kind == "cpu"
    assert reason in found.reason
    assert len(caplog.records) == int(broken)
    with pytest.raises(DeviceError) as caught:
        pick_device("cuda:0")
    assert "\n" not in str(caught.value)
    assert reason[1:] in str(caught.value)


def test_an_unknown_fault_is_one_line() -> None:
    fault = explain(ValueError("something odd\n  at line 1\n" + "x" * 5000))
    assert fault.reason == "CUDA failed: something odd"


def test_want_of_device_memory_is_told_from_that_of_the_host() -> None:
    class OutOfMemoryError(MemoryError):
        """CuPy's, by name."""

    assert is_out_of_memory(OutOfMemoryError("Out of memory allocating 1,024 bytes"))
    assert is_out_of_memory(RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"))
    assert is_out_of_memory(OutOfDeviceMemory("device memory"))
    assert not is_out_of_memory(MemoryError("Unable to allocate 8 GiB for an array"))
    assert not is_out_of_memory(ValueError("odd"))


def test_simulated_cuda_is_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert pick_device("auto").reason == "CUDA is simulated"
    assert str(pick_device("cuda")) == "cuda:0 simulator"


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("tuplewise.gpu_kernels.device, tuplewise.gpu_kernels.evidence", ("pyspark", "pandas", "pyarrow")),
        # what Spark's Python daemon, which forks, and its workers load before a task runs a kernel
        ("pyspark.daemon, pyspark.worker, tuplewise.engine.spark.tasks, tuplewise.engine.spark.run, "
         "tuplewise.engine.spark.resources, tuplewise.engine.dc.distributed, tuplewise.engine.od.distributed, "
         "tuplewise.engine.dc.violations.distributed, tuplewise.engine.ind.distributed, tuplewise", ()),
    ],
)  # fmt: skip
def test_import_touches_nothing(modules: str, heavy: tuple[str, ...]) -> None:
    """Importing loads neither numba.cuda nor CuPy nor cuDF, and no driver."""
    heavy = ("numba.cuda", "numba_cuda", "cupy", "cudf", "cuda.bindings", *heavy)
    code = (
        f"import sys; import {modules}; "
        f"heavy = set({heavy!r}) & set(sys.modules); "
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else ''; "
        "sys.exit(f'loaded: {heavy}' if heavy or 'libcuda.so' in maps else 0)"
    )
    source = str(Path(__file__).resolve().parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_this_machine_as_it_is() -> None:
    """`auto` and `cuda` agree on whether there is a GPU."""
    found = pick_device("auto")
    assert found.reason
    if found.kind == "cuda":
        assert pick_device("cuda").name == found.name
    else:
        with pytest.raises(DeviceError):
            pick_device("cuda")
