"""Cache of compiled kernels: the user's cache folder, and the package's own folder where the wheel brings machine code.

A file holds the machine code of one specialisation of one kernel. Its name is the key (`gpu_kernels.compiled`). Code
compiled here is for this processor; code from the wheel is for a level that many processors reach. A truncated, damaged
or foreign file counts as missing. Files are written whole or not at all. Where several processes need the same kernel,
one compiles it and the others wait.

`prepare` must be called before CUDA kernels are imported, because Numba looks up its cache folder when it decorates
them. This module imports Numba only where it needs it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import pickle
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tuplewise.gpu_kernels.exits import at_exit

PACKAGE = __name__.split(".")[0]
SHIPPED = Path(__file__).parent / "machine_code"
SUFFIX = ".kernel"
MOST_VERSIONS = 16  # files of one kernel: sources, types and processors; the oldest make room
_MAGIC = b"tuplewise machine code 1\n"

# Levels of processors that wheels bring machine code for, best first, by LLVM's names, with the features that a
# processor of the level must have. AVX-512 (x86-64-v4) made no kernel faster.
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
        "x86-64-v2": ("cx16", "popcnt", "sse4.2", "ssse3"),
    },
    "aarch64": {"generic": ()},
}


@dataclass(frozen=True)
class KernelCache:
    """Folder in use, whether it outlives this process, and a note for the user where it doesn't."""

    folder: Path
    lasting: bool
    note: str | None = None


_prepared: KernelCache | None = None
_announce: Callable[[], None] | None = None
_lock = threading.Lock()


def wanted_folder() -> Path:
    """Folder where kernels should be kept.

    The first of: `$TUPLEWISE_KERNELS`; a folder in `$TUPLEWISE_CACHE_DIR`; `$NUMBA_CACHE_DIR`; a folder in the
    platform's cache folder.
    """
    if kernels := os.environ.get("TUPLEWISE_KERNELS"):
        return Path(kernels)
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
    """Reason why `folder` can't be written, or None where it can. Makes the folder where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def prepare() -> KernelCache:
    """Point Numba at the cache folder. Works once a process, and must run before kernels are imported.

    Where the folder can't be written, a temporary one takes its place (private, removed at exit), with a note. The
    choice is also put into the environment, so that Spark's Python workers on this machine share it.
    """
    global _prepared
    with _lock:
        if _prepared is None:
            _prepared = _choose(wanted_folder())
            os.environ["NUMBA_CACHE_DIR"] = str(_prepared.folder)
            for name in ("numba.core.config", "numba.cuda.core.config"):
                if name in sys.modules:  # imported earlier, with the environment as it was then
                    sys.modules[name].CACHE_DIR = str(_prepared.folder)  # type: ignore[attr-defined]
    return _prepared


def _choose(folder: Path) -> KernelCache:
    reason = why_unwritable(folder)
    if reason is None:
        return KernelCache(folder, lasting=True)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f"{PACKAGE}-kernels-"))
    except OSError:  # nothing can be written anywhere: nothing is kept
        temporary = folder
    os.environ["TUPLEWISE_KERNELS"] = str(temporary)  # Spark's Python workers share it
    at_exit(shutil.rmtree, temporary, ignore_errors=True)
    note = (
        f"kernel cache folder {str(folder)!r} can't be written ({reason}): kernels are compiled anew in each run. "
        f"Set TUPLEWISE_CACHE_DIR to a folder that can be written"
    )
    return KernelCache(temporary, lasting=False, note=note)


def levels() -> tuple[str, ...]:
    """Levels of this machine's kind of processors, best first."""
    return tuple(LEVELS.get(platform.machine(), {}))


def environment_of(level: str) -> dict[str, str]:
    """Environment of a process in which Numba compiles for a level."""
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}


def levels_here() -> list[tuple[str, str]]:
    """Levels that this processor reaches, as LLVM's names and features; none where the package brings no machine
    code."""
    return _levels_reached() if SHIPPED.is_dir() else []


@functools.cache
def _levels_reached() -> list[tuple[str, str]]:
    from llvmlite import binding

    has = binding.get_host_cpu_features()
    levels = LEVELS.get(platform.machine(), {})
    return [(name, "") for name, needed in levels.items() if all(has.get(feature, False) for feature in needed)]


def is_there(names: Sequence[str]) -> bool:
    """Tell whether a file of one of these names exists, whole or not."""
    return any((folder / f"{name}{SUFFIX}").is_file() for name in names for folder in _folders())


def is_kept(names: Sequence[str]) -> bool:
    """Tell whether a whole file of one of these names exists. Removes damaged files."""
    return _content(names) is not None


def load(names: Sequence[str]) -> Any:
    """Value saved under the first of these names with a whole file, or None. Removes damaged files."""
    content = _content(names)
    return None if content is None else pickle.loads(content)


def _content(names: Sequence[str]) -> bytes | None:
    start = len(_MAGIC) + hashlib.sha256().digest_size
    for name in names:
        for folder in _folders():
            path = folder / f"{name}{SUFFIX}"
            try:
                content = path.read_bytes()
            except OSError:
                continue
            kept = content[start:]
            if content[:start] == _MAGIC + hashlib.sha256(kept).digest():
                return kept
            with contextlib.suppress(OSError):
                path.unlink()
    return None


def save(name: str, value: Any) -> None:
    """Keep a value under a name. Where it can't be written (a full disk), the kernel is compiled anew next time."""
    from numba.core.serialize import dumps

    folder = prepare().folder
    kept = dumps(value)
    with contextlib.suppress(OSError):
        temporary = folder / f"{name}.{os.getpid()}.{threading.get_ident()}.new"
        try:
            temporary.write_bytes(_MAGIC + hashlib.sha256(kept).digest() + kept)
            os.replace(temporary, folder / f"{name}{SUFFIX}")
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        of_kernel = sorted(folder.glob(f"{name.rpartition('-')[0]}-*{SUFFIX}"), key=lambda file: file.stat().st_mtime)
        for old in of_kernel[:-MOST_VERSIONS]:
            old.unlink()
        for left in folder.glob("*.new"):  # by a process that was killed
            if time.time() - left.stat().st_mtime > 3600:
                left.unlink()


def _folders() -> tuple[Path, ...]:
    return (prepare().folder, SHIPPED)


@contextlib.contextmanager
def turn(name: str, *, wait: bool = True) -> Iterator[bool]:
    """Lock a name against all processes that use the folder, and yield whether this process holds the lock.

    With `wait` it always does, after the process that held it before. The lock covers one byte of one file, chosen by
    the name. The operating system releases it when a process ends, however it ends. On systems without such locks
    several processes may compile the same kernel.
    """
    try:
        import fcntl

        file = _lock_file(prepare().folder)
    except (ImportError, OSError):
        yield True
        return
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
        held = True
    except OSError as error:
        held = error.errno not in (errno.EACCES, errno.EAGAIN)
    try:
        yield held
    finally:
        if held:
            with contextlib.suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@functools.cache
def _lock_file(folder: Path) -> int:
    """Descriptor of the lock file, open while the process lives: closing it would release every lock in it."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)


def announce_compiling(callback: Callable[[], None] | None) -> None:
    """Have `callback` called once, when this process first compiles a kernel that isn't kept; None: no callback."""
    global _announce
    _announce = callback


def compiling() -> None:
    """Make the announcement, if one is wanted: this process is about to compile a kernel."""
    global _announce
    callback, _announce = _announce, None
    if callback is not None:
        callback()
