"""Build the wheel, fail where it lacks a file of the packages, and import every module from a new environment.

Then build one that brings machine code along, of a few kernels, and call one of these where nothing can be compiled.

    python tools/check_wheel.py [--keep FOLDER]      FOLDER gets the wheel

Dependencies are taken from the environment that runs this; tuplewise itself comes from the wheel alone.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.build_wheel import PACKAGES, REPOSITORY, add_machine_code, build_wheel, run
from tuplewise.gpu_kernels import cache

LEFT_OUT = ("__pycache__", cache.SHIPPED.name)
log = logging.getLogger("check_wheel")


def expected_files(repository: Path = REPOSITORY) -> set[str]:
    """Paths in the wheel of everything under the three packages, and of the package's own files."""
    sources = [(repository / "src" / "tuplewise", "tuplewise", False)]
    sources += [(repository / name, f"tuplewise/{name}", True) for name in PACKAGES]
    found = {"tuplewise/__init__.py", "tuplewise/py.typed"}
    for folder, prefix, deep in sources:
        for path in folder.rglob("*") if deep else folder.glob("*"):
            if path.is_file() and not set(LEFT_OUT) & set(path.parts) and path.suffix != ".pyc":
                found.add(f"{prefix}/{path.relative_to(folder).as_posix()}")
    return found


def module_names(files: set[str]) -> list[str]:
    """Dotted names of the modules among some wheel paths."""
    stems = (f.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for f in files if f.endswith(".py"))
    return sorted(stems)


def missing_files(wheel: Path, wanted: set[str]) -> list[str]:
    """What a wheel should hold and doesn't."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(wanted - set(archive.namelist()))


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel without dependencies into a new environment; returns its Python."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    quiet = ["--quiet", "--no-deps", "--disable-pip-version-check"]
    run([str(python), "-m", "pip", "install", *quiet, str(wheel)], environment)
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site_packages = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def import_everything(python: Path, modules: list[str]) -> None:
    """Import each module, and run the command, from the environment alone."""
    program = (
        "import importlib, sys, pathlib, tuplewise\n"
        "assert pathlib.Path(sys.prefix) in pathlib.Path(tuplewise.__path__[0]).parents, tuplewise.__path__\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
    )
    run([str(python), "-c", program, *modules], python.parent)
    run([str(python.parent / "tuplewise"), "--version"], python.parent)


KERNEL = "engine.ind.tuples.number_pairs"
CALL = f"""
import pathlib, sys
from tuplewise.gpu_kernels import building, cache
cache.announce_compiling(lambda: sys.exit("a kernel is compiled that was brought along"))
(kernel,) = building.kernels_named(["{KERNEL}"])
kernel.compile(kernel.signatures[0])
assert kernel.overloads, kernel
assert not list(cache.prepare().folder.glob("*.kernel"))
"""


def use_machine_code(wheel: Path, folder: Path) -> Path:
    """Add the machine code of one kernel, for the lowest level, and call it from a new environment; the wheel."""
    made = add_machine_code(wheel, cache.levels()[-1:], [KERNEL])
    if made.name.endswith("-none-any.whl"):
        raise SystemExit(f"a wheel with machine code has the name of one for every machine: {made.name}")
    python = install(made, folder / "with machine code")
    environment = {**os.environ, "TUPLEWISE_KERNELS": "", "TUPLEWISE_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([str(python), "-c", CALL], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"machine code that came with the wheel isn't used:\n{done.stderr[-3000:]}")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Check the wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the wheel there")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="tuplewise-wheel-") as name:
        folder = Path(name)
        wheel = build_wheel(folder / "plain")
        wanted = expected_files()
        if missing := missing_files(wheel, wanted):
            log.error("%s lacks %d files:\n  %s", wheel.name, len(missing), "\n  ".join(missing))
            return 1
        modules = module_names(wanted)
        import_everything(install(wheel, folder / "plain environment"), modules)
        log.info("%s: %d files, %d modules imported", wheel.name, len(wanted), len(modules))
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy2(wheel, given.keep)
        if cache.levels():
            log.info("%s: its machine code is used", use_machine_code(wheel, folder).name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
