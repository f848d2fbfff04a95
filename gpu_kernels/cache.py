"""Where compiled kernels are kept between runs: the user's cache folder, whatever folder the package lies in.

`gpu_kernels.cpu` calls `prepare` before its modules are imported, because Numba looks the folder up when a function is
decorated. Nothing here imports Numba before that is needed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = __name__.split(".")[0]


@dataclass(frozen=True)
class KernelCache:
    """The folder in use, whether it lasts beyond this process, and a note for the user where it doesn't."""

    folder: Path
    lasting: bool
    note: str | None = None


_prepared: KernelCache | None = None
_announce: Callable[[], None] | None = None
_listening = False
_lock = threading.Lock()


def wanted_folder() -> Path:
    """Folder where kernels should be kept.

    `$TUPLEWISE_CACHE_DIR`, else a `$NUMBA_CACHE_DIR` that the user set, else the platform's cache folder.
    """
    version = f"numba-{metadata.version('numba')}"
    if own := os.environ.get("TUPLEWISE_CACHE_DIR"):
        return Path(own).expanduser() / version
    if numba_own := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / PACKAGE / version
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / PACKAGE / version
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / PACKAGE / "Cache" / version
    return home / ".cache" / PACKAGE / version


def why_unwritable(folder: Path) -> str | None:
    """Why nothing can be kept in `folder`, or None where it can. Makes the folder where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def prepare() -> KernelCache:
    """Point Numba at the cache folder; once a process, and before kernels are imported.

    A folder that can't be written is replaced by one of this process (private, removed at exit), with a note.
    The choice is also put into the environment, so that Spark's Python workers on this machine share it.
    """
    global _prepared
    with _lock:
        if _prepared is None:
            _prepared = _choose(wanted_folder())
            os.environ["NUMBA_CACHE_DIR"] = str(_prepared.folder)
            for name in ("numba.core.config", "numba.cuda.core.config"):
                if name in sys.modules:  # imported earlier, with the environment as it was then
                    sys.modules[name].CACHE_DIR = str(_prepared.folder)  # type: ignore[attr-defined]
    _listen()
    return _prepared


def _choose(folder: Path) -> KernelCache:
    reason = why_unwritable(folder)
    if reason is None:
        return KernelCache(folder, lasting=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{PACKAGE}-kernels-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    note = (
        f"kernel cache folder {str(folder)!r} can't be written ({reason}): kernels are compiled anew in each run. "
        f"Set TUPLEWISE_CACHE_DIR to a folder that can be written"
    )
    return KernelCache(temporary, lasting=False, note=note)


def compiled_functions(folder: Path) -> int:
    """Number of compiled kernel functions kept in a cache folder."""
    return sum(1 for _ in folder.glob("*/*.nbi"))


def announce_compiling(callback: Callable[[], None]) -> None:
    """Call `callback` once, when the first kernel of ours is compiled because the cache lacks it."""
    global _announce
    _announce = callback
    if _prepared is not None:
        _listen()


def _listen() -> None:
    """Ask Numba to tell of compilations. Imports Numba; only where somebody wants to know."""
    global _listening
    if _announce is None or _listening:
        return
    _listening = True
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, started: Any) -> None:
            global _announce
            function = getattr(started.data.get("dispatcher"), "py_func", None)
            if _announce is not None and (getattr(function, "__module__", None) or "").startswith(PACKAGE + "."):
                callback, _announce = _announce, None
                callback()

        def on_end(self, ended: Any) -> None:
            """Only the beginning matters."""

    event.register("numba:compile", Listener())
