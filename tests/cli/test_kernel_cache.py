"""Where compiled kernels are kept, what is said where nothing can be, and that a first run says what it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tuplewise.gpu_kernels import cache

NUMBA = f"numba-{metadata.version('numba')}"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tax.csv"
COMPILING = "compiling 10 kernels, once on this machine"


def discover_inclusions(**env: str) -> list[str]:
    """What a command says on stderr that starts no JVM and calls few kernels."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith(("_CACHE_DIR", "_KERNELS")) or "STRICT" in k}
    done = subprocess.run(
        [sys.executable, "-m", "tuplewise.engine.cli.main", "ind", "discover", str(EXAMPLE)],
        capture_output=True, text=True, timeout=300, check=True, env={**clean, **env},
    )  # fmt: skip
    assert '"command": "ind discover"' in done.stdout
    return done.stderr.splitlines()


def test_kernels_are_compiled_once_and_said_to_be(tmp_path: Path) -> None:
    assert discover_inclusions(TUPLEWISE_CACHE_DIR=str(tmp_path)) == [COMPILING]
    assert len(list((tmp_path / NUMBA).glob("*.kernel"))) == 10
    assert discover_inclusions(TUPLEWISE_CACHE_DIR=str(tmp_path)) == []


def test_a_folder_that_can_not_be_written_is_replaced_and_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first, *more = discover_inclusions(TUPLEWISE_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert first.startswith("note: kernel cache folder ")
    assert "can't be written (Not a directory): kernels are compiled anew in each run" in first
    assert more == [COMPILING.removesuffix(", once on this machine")]
    assert list(tmp_path.glob("*-kernels-*")) == []  # the stand-in is gone with the process


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"TUPLEWISE_KERNELS": "/k", "TUPLEWISE_CACHE_DIR": "/a"}, "/k"),
        ({"TUPLEWISE_CACHE_DIR": "/a", "NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, f"/a/{NUMBA}"),
        ({"NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}, "/b"),
        ({"XDG_CACHE_HOME": "/c"}, f"/c/tuplewise/{NUMBA}"),
        ({"HOME": "/home/ada"}, f"/home/ada/.cache/tuplewise/{NUMBA}"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other platforms keep caches elsewhere")
def test_which_folder(env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TUPLEWISE_KERNELS", "TUPLEWISE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert cache.wanted_folder() == Path(folder)
