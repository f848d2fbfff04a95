"""Build the wheel, fail where it lacks a file of the packages, and import every module from a new environment.

    python tools/check_wheel.py [--keep FOLDER]      FOLDER gets the wheel

Dependencies are taken from the environment that runs this; tuplewise itself comes from the wheel alone.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gpu_kernels", "spark_conf")
LEFT_OUT = ("__pycache__",)
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


def build_wheel(target: Path, repository: Path = REPOSITORY) -> Path:
    """Build the wheel from a clean copy of the sources (a stale build folder would hide a missing module)."""
    copy = target / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(repository / name, copy / name)
    for name in ("src", *PACKAGES):
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
        shutil.copytree(repository / name, copy / name, symlinks=True, ignore=ignore)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(target / "dist"), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the wheel can't be built:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    (wheel,) = (target / "dist").glob("*.whl")
    return wheel


def missing_files(wheel: Path, wanted: set[str]) -> list[str]:
    """What a wheel should hold and doesn't."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(wanted - set(archive.namelist()))


def import_everything(wheel: Path, modules: list[str], folder: Path) -> None:
    """Install the wheel without dependencies into a new environment, import each module, run the command."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    _run(
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", str(wheel)], folder
    )
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site_packages = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program = (
        "import importlib, sys, pathlib, tuplewise\n"
        f"home = pathlib.Path({str(site_packages)!r})\n"
        "assert home in pathlib.Path(tuplewise.__path__[0]).parents, tuplewise.__path__\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
    )
    _run([str(python), "-c", program, *modules], folder)
    _run([str(environment / "bin" / "tuplewise"), "--version"], folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(command[:4])} ...\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def main(arguments: list[str] | None = None) -> int:
    """Check the wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the wheel there")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="tuplewise-wheel-") as name:
        folder = Path(name)
        wheel = build_wheel(folder)
        wanted = expected_files()
        if missing := missing_files(wheel, wanted):
            log.error("%s lacks %d files:\n  %s", wheel.name, len(missing), "\n  ".join(missing))
            return 1
        modules = module_names(wanted)
        import_everything(wheel, modules, folder)
        log.info("%s: %d files, %d modules imported", wheel.name, len(wanted), len(modules))
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy2(wheel, given.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
