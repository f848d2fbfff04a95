"""The table that a state is built of: whether there is room for it, how it is read, and kernels made ready for it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuplewise.engine.dc.incremental import initial
from tuplewise.engine.options import DcStateOptions, LoadOptions
from tuplewise.engine.relation.load import load
from tuplewise.engine.relation.relation import Relation
from tuplewise.engine.writer_lock import check_new


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise InputError where a state can't be built in this folder, before any work."""
    check_new(Path(os.path.realpath(os.path.expanduser(os.fspath(folder)))), "dc", "insert")


def read_first(
    source: Any,
    options: LoadOptions | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    most_bytes: int | None = None,
) -> Relation:
    """A table as `load` reads it."""
    return load(source, options, progress=progress, most_bytes=most_bytes)


def warm_up(few: Relation, options: DcStateOptions) -> None:
    """Build a state of a few rows, which loads the kernels, or compiles them."""
    plain = DcStateOptions(discover=options.discover, counts=options.counts, index=options.index)
    with tempfile.TemporaryDirectory(prefix="tuplewise-") as folder:
        initial.build(Path(folder) / "state", few, plain, written_by="warm-up")
