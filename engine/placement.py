"""Where work is done: what fits the memory of this machine, and what is left of it."""

from __future__ import annotations

from typing import Protocol

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import RunOn

SHARE_HERE = 0.25
"""Share of this machine's memory that codes may take before work goes to Spark: kernels take a few times as much."""


class PlacementOptions(Protocol):
    """Options that say where work is done."""

    @property
    def run_on(self) -> RunOn: ...
    @property
    def memory_limit(self) -> int | None: ...


def refuse_spark(options: PlacementOptions, table: str) -> None:
    """Raise InputError where Spark is asked for and the table is held in this process."""
    if options.run_on == "spark":
        allowed = "a table that Spark reads: a path, spark:db.table, or a Spark DataFrame"
        raise InputError(message("run_on 'spark' for a table that is held here", table, allowed))


def most_bytes_unless(only_here: tuple[str, str, str] | None, options: PlacementOptions) -> int | None:
    """`most_bytes_here`; any number of bytes where an option works in this process only.

    `only_here`: that option's name, its value, and the values that Spark allows; None: there is no such option. Raises
    InputError where Spark is asked for with it.
    """
    if only_here is None:
        return most_bytes_here(options)
    if options.run_on == "spark":
        name, value, allowed = only_here
        raise InputError(message(f"run_on 'spark' with {name}", value, allowed, "Leave run_on out, or take 'driver'"))
    return None


def most_bytes_here(options: PlacementOptions) -> int | None:
    """Bytes that the codes of a table may take for work in this process; None: any. See `load`."""
    if options.run_on == "driver":
        return None
    return 0 if options.run_on == "spark" else bytes_for_codes(options.memory_limit)


def bytes_for_codes(memory_limit: int | None = None) -> int:
    """Bytes that the codes of a table may take here, of this machine's memory or of what work is limited to."""
    import psutil

    memory = int(psutil.virtual_memory().total)
    return int(SHARE_HERE * min(memory, memory_limit or memory))


def available_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().available * 0.9)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    import psutil

    return int(psutil.Process().memory_info().rss)
