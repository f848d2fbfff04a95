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
from tuplewise.gpu_kernels.device import Device, explain, pick_device

GIB = 1 << 30


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No answers kept from other tests, no variables of the outside."""
    for name in ("CUDA_VISIBLE_DEVICES", "NUMBA_ENABLE_CUDASIM"):
        monkeypatch.delenv(name, raising=False)
    module._cuda_device.cache_clear()
    module._warn_once.cache_clear()
    yield
    module._cuda_device.cache_clear()
    module._warn_once.cache_clear()


class FakeCuda:
    """As much of numba.cuda as a probe looks at."""

    def __init__(self, gpus: int = 1, capability: tuple[int, int] = (9, 0), fails: BaseException | None = None) -> None:
        self.capability = capability
        self.fails = fails
        self.gpus = [nullcontext() for _ in range(gpus)]

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
    pretend(monkeypatch, FakeCuda(gpus=2))
    found = pick_device("auto")
    assert str(found) == "cuda:0 NVIDIA H100 80GB HBM3"
    assert found.reason == "NVIDIA H100 80GB HBM3, compute capability 9.0"
    assert found.memory_bytes == 80 * GIB
    assert pick_device("cuda") == Device("cuda", 0, "NVIDIA H100 80GB HBM3", "asked for", 80 * GIB)
    assert str(pick_device("cuda:1")) == "cuda:1 NVIDIA H100 80GB HBM3"


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


def test_simulated_cuda_is_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert pick_device("auto").reason == "CUDA is simulated"
    assert str(pick_device("cuda")) == "cuda:0 simulator"


def test_import_touches_nothing() -> None:
    """Importing the module loads neither numba.cuda nor CuPy, nor anything heavy."""
    code = (
        "import sys; import tuplewise.gpu_kernels.device, tuplewise.gpu_kernels.evidence; "
        "heavy = {'numba.cuda', 'cupy', 'pyspark', 'pandas', 'pyarrow'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
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
