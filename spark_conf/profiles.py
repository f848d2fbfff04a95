"""Profiles beside this module: named sets of Spark settings, one .conf file each."""

from __future__ import annotations

from pathlib import Path

from tuplewise.engine.errors import InputError, message, near_names

_FOLDER = Path(__file__).parent


def profile_names() -> list[str]:
    """The names of all profiles."""
    return sorted(p.stem for p in _FOLDER.glob("*.conf"))


def profile_path(name: str) -> Path:
    """The file of a profile; spark-submit takes it as `--properties-file`.

    Raises InputError where there is no profile of that name.
    """
    if name not in profile_names():
        allowed = ", ".join(profile_names())
        raise InputError(message("no Spark profile of that name", name, allowed, near_names(name, profile_names())))
    return _FOLDER / f"{name}.conf"


def read_profile(name: str) -> dict[str, str]:
    """The settings of a profile.

    Raises InputError where there is no profile of that name. A line is a setting's name, blanks, and its value (the
    rest of the line); lines that begin with `#` are comments.
    """
    settings = {}
    for line in profile_path(name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, value = line.strip().partition(" ")
            settings[key] = value.strip()
    return settings
