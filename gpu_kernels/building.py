"""Compiling kernels ahead of their first call, in parallel processes: those that a command needs, or all.

Numba compiles on one core, whatever the number of threads. The processes coordinate through the cache alone: each goes
through the same list and compiles what is neither kept nor being compiled. Kernels of one module share helpers, so a
process compiles them together while other modules are left.

    python -m tuplewise.gpu_kernels.building                                  all kernels, for this processor
    python -m tuplewise.gpu_kernels.building --level x86-64-v3 --into FOLDER  for a level of processors, to hand on
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tuplewise.gpu_kernels import cache
from tuplewise.gpu_kernels.control import usable_cores

if TYPE_CHECKING:
    from tuplewise.gpu_kernels.compiled import Kernel

POLLED_SECONDS = 0.05
_DECLARATION = re.compile(r"^ *@kernel\(", re.MULTILINE)


def kernel_modules() -> list[str]:
    """Names of the modules that declare CPU kernels, without the package name; longest source first."""
    package = Path(importlib.import_module(cache.PACKAGE).__path__[0])
    found: list[tuple[int, str]] = []
    for folder in ("engine", "gpu_kernels/cpu"):  # links in a checkout, which a glob from above doesn't follow
        for path in (package / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if _DECLARATION.search(source):
                found.append((-len(source), ".".join(path.relative_to(package).with_suffix("").parts)))
    return [name for _, name in sorted(found)]


def kernels_named(names: Iterable[str]) -> list[Kernel]:
    """Kernels by full name (`gpu_kernels.cpu.tiles.rank_tile`), or all kernels of a module by the module's name.

    Raises LookupError where a name belongs to no kernel and no module of kernels. Reads no source files, since every
    command calls it.
    """
    from numba.core import config

    from tuplewise.gpu_kernels.compiled import KERNELS

    if config.DISABLE_JIT:  # loops run as plain Python
        return []
    found: list[Kernel] = []
    for name in names:
        try:
            importlib.import_module(f"{cache.PACKAGE}.{name.rpartition('.')[0]}")
            importlib.import_module(f"{cache.PACKAGE}.{name}")
        except ModuleNotFoundError:
            """The name is a kernel's, or nobody's."""
        here = [kernel for kernel in KERNELS if name in (kernel.module, kernel.full_name)]
        if not here:
            raise LookupError(f"no kernel is named {name!r}")
        found += here
    return found


class Building:
    """Compiling of some kernels by child processes.

    Parameters
    ----------
    names : kernels, or modules of kernels, the most urgent first
    level : level of processors, by LLVM's name; None: this processor itself

    Attributes
    ----------
    asked, missing : number of specialisations asked for, and of those not kept at the start
    """

    def __init__(self, names: Sequence[str], level: str | None = None) -> None:
        cache.prepare()
        self._names, self._level = list(names), level
        files = [kernel.file_names(types, level) for kernel in kernels_named(names) for types in kernel.signatures]
        self._missing = [names for names in files if not cache.is_kept(names)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._told: IO[bytes] | None = None
        self._process = os.getpid()
        self.asked = len(files)
        self.missing = len(self._missing)

    @property
    def left(self) -> int:
        """Number of specialisations still missing."""
        return sum(not cache.is_there(names) for names in self._missing)

    def start(self, niceness: int = 0) -> None:
        """Start one process for each core, at most one for each missing specialisation. `niceness`: that of the
        processes."""
        if not self.missing:
            return
        environment = {**os.environ, "TUPLEWISE_KERNELS": str(cache.prepare().folder)}
        if self._level is not None:
            environment.update(cache.environment_of(self._level))
        module = f"{cache.PACKAGE}.gpu_kernels.building"
        # -P: no module of the folder where the user works; the parent, by which a process knows when it is alone
        command = [sys.executable, "-P", "-m", module, "--share", str(niceness), str(os.getpid()), "--", *self._names]
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
        atexit.register(self.stop)
        for _ in range(min(usable_cores(), self.missing)):
            self._processes.append(
                subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._told
                )
            )

    def running(self) -> bool:
        """Tell whether a process is still running. May be called after `stop`."""
        return any(process.poll() is None for process in self._processes)

    def wait(self) -> None:
        """Wait for the processes.

        Raises RuntimeError where a kernel can't be compiled; the message ends with the last line that a process wrote.
        """
        while self.running():
            time.sleep(POLLED_SECONDS)
        if left := self.left:
            lines: list[str] = []
            if self._told is not None:
                self._told.seek(0)
                lines = self._told.read().decode("utf-8", "replace").strip().splitlines()
            reason = lines[-1] if lines else f"nothing came to {cache.prepare().folder}"
            raise RuntimeError(f"{left} of {self.asked} kernels could not be compiled: {reason}")

    def stop(self) -> None:
        """End the processes. Kernels already kept stay; unfinished ones are lost. May be called again.

        In a process forked from this one it does nothing: the children aren't its own.
        """
        atexit.unregister(self.stop)
        if os.getpid() != self._process:
            return
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
        if self._told is not None:
            self._told.close()


def load(names: Sequence[str]) -> None:
    """Load the kept specialisations of some kernels into this process."""
    for kernel in kernels_named(names):
        for types in kernel.signatures:
            if kernel.is_kept(types):
                kernel.compile(types)


def share(names: Sequence[str], parent: int) -> None:
    """Do one process's part of a `Building`: compile what no other process compiles, then wait for the others.

    Returns early when it is no longer a child of `parent`.
    """
    gc.disable()  # an eighth of the time, and the process ends soon
    work = [(kernel, types) for kernel in kernels_named(names) for types in kernel.signatures]
    for others_too, wait in ((False, False), (True, False), (True, True)):
        for module, together in groupby(work, key=lambda one: one[0].module):
            with cache.turn(module, wait=False) as mine:
                for kernel, types in together if mine or others_too else ():
                    if os.getppid() != parent:
                        return
                    kernel.compile_ahead(types, wait=wait)


def main(arguments: list[str] | None = None) -> int:
    """Compile kernels; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="kernels or modules of kernels; default: all")
    parser.add_argument("--level", choices=cache.levels(), help="level of processors, in place of this processor")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where they are kept, in place of the cache folder")
    parser.add_argument("--share", type=int, nargs=2, metavar=("NICENESS", "PARENT"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    names = given.names or kernel_modules()
    if given.share is not None:
        niceness, parent = given.share
        os.nice(niceness)
        share(names, parent)
        return 0
    if given.into is not None:
        os.environ["TUPLEWISE_KERNELS"] = str(given.into.absolute())
    started = time.monotonic()
    building = Building(names, given.level)
    building.start()
    try:
        building.wait()
    finally:
        building.stop()
    if building.missing:
        print(f"{building.missing} kernels compiled in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
