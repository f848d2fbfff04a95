"""Checks of a process's environment before Spark starts: folders, variables and the user, with one-line errors."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tuplewise.engine.errors import InputError, message


def check_surroundings(settings: Mapping[str, str] | None = None) -> None:
    """Raise InputError if Spark can't start in this environment. `settings`: those of the session."""
    try:
        os.getcwd()
    except FileNotFoundError:
        hint = "Change to a folder that is there (cd), and start again"
        raise InputError(message("Spark can't start: the working directory is gone", hint=hint)) from None
    _check_home()
    _check_local_folders(settings or {})
    _check_user()


def _check_home() -> None:
    home = os.environ.get("SPARK_HOME")
    if home is not None and not os.path.isfile(os.path.join(home, "bin", "spark-submit")):
        what = "Spark can't start: SPARK_HOME names a folder without bin/spark-submit"
        hint = "Unset SPARK_HOME: PySpark brings its own Spark; or name the folder of another one"
        raise InputError(message(what, home, hint=hint))


def _check_local_folders(settings: Mapping[str, str]) -> None:
    """Raise InputError if none of several folders is usable. Spark needs only one, and creates missing ones."""
    name = "SPARK_LOCAL_DIRS" if os.environ.get("SPARK_LOCAL_DIRS") else "spark.local.dir"
    given = os.environ.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir")
    if given and not any(_can_be_written(folder.strip()) for folder in given.split(",")):
        what = f"Spark can't start: {name} names no folder that can be written"
        raise InputError(message(what, given, hint="Name one that can be, with room for intermediate results"))


def _can_be_written(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _check_user() -> None:
    try:
        import pwd
    except ImportError:  # not on Windows
        return
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        what = "Spark can't start: the user has no entry in /etc/passwd, and so no name"
        hint = f"Add one, such as spark:x:{os.getuid()}:0:spark:/tmp:/bin/sh, or run as a user who has one"
        raise InputError(message(what, os.getuid(), hint=hint)) from None
