"""The table that a state is built of: whether there is room for it, and how it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.load import load
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.text_types import NO_VALUES
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
    device: str = "auto",
) -> Relation:
    """A table as `load` reads it, with a note on columns whose type no value tells.

    `most_bytes`, `device`: see `load`. Raises InputError where it can't be read.
    """
    options = options or LoadOptions()
    if isinstance(source, Relation):
        return source
    relation = load(source, options, progress=progress, most_bytes=most_bytes, device=device)
    hint = "its type is text from now on; --types COL=TYPE fixes another"
    empty = [c.name for c in relation.columns if not c.distinct and c.why == NO_VALUES]
    notes = (f"column {name!r} has no values: {hint}" for name in empty)
    return replace(relation, notes=(*relation.notes, *notes))
