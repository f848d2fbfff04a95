"""The version of the installed package."""

from __future__ import annotations


def version() -> str:
    """As its metadata says; "unknown" where the package runs from a tree that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("tuplewise")
    except metadata.PackageNotFoundError:
        return "unknown"
