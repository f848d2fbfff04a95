"""A state of either kind: kept by one process, or in partitions by Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.ind import initial
from tuplewise.engine.ind.initial import Built, Progress
from tuplewise.engine.ind.partitions import FILE
from tuplewise.engine.ind.state import IndState
from tuplewise.engine.options import IndStateOptions, LoadOptions, RunOn

if TYPE_CHECKING:
    from tuplewise.engine.ind.partitioned import PartitionedIndState

    AnyState = IndState | PartitionedIndState


def build_state(
    folder: str | os.PathLike[str],
    tables: Mapping[str, Any],
    options: IndStateOptions,
    load_options: LoadOptions | None = None,
    *,
    run_on: str = "auto",
    written_by: str,
    progress: Progress | None = None,
) -> Built:
    """Build a state of some tables; see `initial.build` and `partitioned_build.build`.

    `run_on`: "driver" or "auto": kept by one process; "spark": in partitions, for tables too large for one machine.
    """
    if run_on not in get_args(RunOn):
        raise InputError(message("run_on", run_on, ", ".join(map(repr, get_args(RunOn)))))
    if run_on == "spark":
        from tuplewise.engine.ind import partitioned_build

        return partitioned_build.build(folder, tables, options, load_options, written_by=written_by, progress=progress)
    return initial.build(folder, tables, options, load_options, written_by=written_by, progress=progress)


def open_state(folder: str | os.PathLike[str], *, write: bool = True) -> AnyState:
    """Open a state of either kind; see `IndState` and `PartitionedIndState`."""
    if not (Path(folder).expanduser() / FILE).is_file():
        return IndState(folder, write=write)
    from tuplewise.engine.ind.partitioned import PartitionedIndState

    return PartitionedIndState(folder, write=write)
