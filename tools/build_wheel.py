"""Build the wheel, or one for this Python and kind of machine that brings compiled kernels along.

    python tools/build_wheel.py FOLDER                  the plain wheel, for every Python and machine
    python tools/build_wheel.py FOLDER --machine-code   with kernels for all levels of this machine's kind of processors
    python tools/build_wheel.py FOLDER --machine-code --levels x86-64-v2 --kernels NAME...     with some of them

Machine code is good for the version of Python and of Numba that it was made by; with any other, kernels are compiled
when they are called. Its wheel is tagged for the platform, so that pip takes the plain one elsewhere.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tuplewise.gpu_kernels import cache

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gpu_kernels", "spark_conf")
log = logging.getLogger("build_wheel")


def build_wheel(target: Path, repository: Path = REPOSITORY) -> Path:
    """Build the plain wheel from a clean copy of the sources (a stale build folder would hide a missing module)."""
    with tempfile.TemporaryDirectory(prefix="tuplewise-source-") as name:
        copy = Path(name)
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy2(repository / file, copy / file)
        for folder in ("src", *PACKAGES):
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc", cache.SHIPPED.name)
            shutil.copytree(repository / folder, copy / folder, symlinks=True, ignore=ignore)
        run([sys.executable, "-m", "build", "--wheel", "--outdir", str(target), str(copy)])
    (wheel,) = target.glob("*-py3-none-any.whl")
    return wheel


def add_machine_code(wheel: Path, levels: Sequence[str], kernels: Sequence[str]) -> Path:
    """Compile kernels for levels of processors and put them into the wheel, which gets this platform's name."""
    with tempfile.TemporaryDirectory(prefix="tuplewise-wheel-") as name:
        folder = Path(name)
        run([sys.executable, "-m", "wheel", "unpack", "--dest", str(folder / "unpacked"), str(wheel)])
        (unpacked,) = (folder / "unpacked").iterdir()
        code = unpacked / cache.PACKAGE / "gpu_kernels" / cache.SHIPPED.name
        build = [sys.executable, "-m", "tuplewise.gpu_kernels.building", "--into", str(code)]
        for level in levels:
            run([*build, "--level", level, "--", *kernels])
        (code / "lock").unlink()
        run([sys.executable, "-m", "wheel", "pack", "--dest-dir", str(folder), str(unpacked)])
        python = sys.implementation.cache_tag.replace("cpython-", "cp")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        platform = platform.replace("linux_", "manylinux_2_17_")  # it calls no library of the system's
        tags = ["--python-tag", python, "--abi-tag", python, "--platform-tag", platform, "--remove"]
        run([sys.executable, "-m", "wheel", "tags", *tags, str(folder / wheel.name)])
        (made,) = folder.glob("*.whl")
        wheel.unlink()
        return Path(shutil.move(made, wheel.parent / made.name))


def run(command: Sequence[str], folder: Path | None = None) -> None:
    """Run a program; SystemExit with the end of what it said where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stdout[-3000:] + done.stderr[-3000:]
        raise SystemExit(f"failed: {' '.join(command[:5])} ...\n{said}")


def main(arguments: list[str] | None = None) -> int:
    """Build a wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the wheel is written")
    parser.add_argument("--machine-code", action="store_true", help="bring compiled kernels along")
    parser.add_argument("--levels", nargs="+", choices=cache.levels(), default=cache.levels(), metavar="LEVEL")
    parser.add_argument("--kernels", nargs="+", default=(), metavar="NAME", help="kernels or modules of kernels")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    given.folder.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(given.folder)
    if given.machine_code and not given.levels:
        parser.error("no level of processors is known for this kind of machine")
    if given.machine_code:
        wheel = add_machine_code(wheel, given.levels, given.kernels)
    log.info("%s, %.1f MB", wheel, wheel.stat().st_size / 1e6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
