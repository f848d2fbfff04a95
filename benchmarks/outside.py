"""Outside data of benchmarks: files in the folder of outside data, data and programs that packages ship."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


class MissingData(Exception):
    """A file of outside data, or a package that ships or makes it, is not there."""


def shared_folder() -> Path:
    """Folder of outside data: `$TUPLEWISE_SHARED`, else `shared` beside the repository."""
    return Path(os.environ.get("TUPLEWISE_SHARED") or REPOSITORY.parent / "shared")


def package_folder(package: str) -> Path:
    """Folder of an installed package, found without importing it. Raises MissingData where it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise MissingData(f"the package {package} is not installed: pip install -e '.[peers]'")
    return Path(found.origin).parent


def package_program(program: str) -> str:
    """Path of a program that a package installed beside Python. Raises MissingData where there is none."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    found = shutil.which(program, path=places)
    if found is None:
        raise MissingData(f"the program {program} is not installed: pip install -e '.[peers]'")
    return found
