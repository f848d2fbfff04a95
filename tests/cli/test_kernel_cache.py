"""Where compiled kernels are kept, what happens where nothing can be, and that a first run says that it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tuplewise.gpu_kernels import cache

NUMBA = f"numba-{metadata.version('numba')}"

# A small stand-in for a kernel module of the package: compiling the real ones takes half a minute.
KERNEL = "import numba\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n"
RUN = """
import sys
from tuplewise.gpu_kernels import cache
cache.PACKAGE = "kernels_of_a_test"
cache.announce_compiling(lambda: print("compiling"))
kept = cache.prepare()
from kernels_of_a_test.one import double
print(double(3), double(1.5), kept.lasting, kept.note, cache.compiled_functions(kept.folder), sep="|")
"""


def run(tmp_path: Path, **env: str) -> list[str]:
    package = tmp_path / "kernels_of_a_test"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "one.py").write_text(KERNEL)
    clean = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "TUPLEWISE_CACHE_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, timeout=120, check=True,
        env={**clean, **env, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    return done.stdout.splitlines()


def test_kernels_are_compiled_once_and_said_to_be(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run(tmp_path, TUPLEWISE_CACHE_DIR=str(folder)) == ["compiling", "6|3.0|True|None|1"]
    assert list((folder / NUMBA).glob("*/*.nbi"))
    assert run(tmp_path, TUPLEWISE_CACHE_DIR=str(folder)) == ["6|3.0|True|None|1"]


def test_a_folder_that_can_not_be_written_is_replaced_and_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first, second = run(tmp_path, TUPLEWISE_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert first == "compiling"
    assert second.startswith("6|3.0|False|kernel cache folder ")
    assert "can't be written (Not a directory): kernels are compiled anew in each run" in second
    assert list(tmp_path.glob("*-kernels-*")) == []  # the stand-in is gone with the process


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"TUPLEWISE_CACHE_DIR": "/a", "NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, f"/a/{NUMBA}"),
        ({"NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/b"),
        ({"XDG_CACHE_HOME": "/c"}, f"/c/tuplewise/{NUMBA}"),
        ({"HOME": "/home/ada"}, f"/home/ada/.cache/tuplewise/{NUMBA}"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other platforms keep caches elsewhere")
def test_which_folder(env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TUPLEWISE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert cache.wanted_folder() == Path(folder)
