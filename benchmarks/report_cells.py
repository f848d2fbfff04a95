"""How cells of tables of figures are written, and which record of a peer stands beside ours."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import records
from benchmarks.records import Record


def seconds(value: float) -> str:
    """Two significant digits and more for long times.

    Examples
    --------
    >>> seconds(0.04567), seconds(3.21), seconds(222.3)
    ('0.046 s', '3.2 s', '222 s')
    """
    if value < 1:
        return f"{value:.2g} s"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def percent(share: float) -> str:
    """A share of one, two significant digits below 100 %.

    Examples
    --------
    >>> percent(0.01234), percent(0.9999)
    ('1.2 %', '100 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def milliseconds(value: float) -> str:
    """Seconds as milliseconds, two significant digits and more for long times.

    Examples
    --------
    >>> milliseconds(0.0004567), milliseconds(0.00321), milliseconds(0.0223)
    ('0.46 ms', '3.2 ms', '22 ms')
    """
    value *= 1000
    if value < 1:
        return f"{value:.2g} ms"
    return f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"


def megabytes(value: float) -> str:
    """Whole megabytes (10^6 bytes)."""
    return f"{value / 1e6:,.0f} MB"


def times_faster(ratio: float) -> str:
    """Two significant digits and more for large ratios.

    Examples
    --------
    >>> times_faster(2.04), times_faster(633.2)
    ('2.0 x', '633 x')
    """
    return f"{ratio:.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def peer_of(everything: Iterable[Record], ours: Record, name: str) -> Record | None:
    """The peer's record to set beside ours: of the same run, else the newest; never of another machine or table."""
    theirs = [r for r in everything if r["case"] == ours["case"] and r["implementation"] == name]
    theirs = [r for r in theirs if r["device"] == ours["device"]]
    theirs = [r for r in theirs if r["dataset"]["sha256"] == ours["dataset"]["sha256"]]
    same_run = [r for r in theirs if r["run"] == ours["run"]]
    found = same_run or theirs
    return found[-1] if found else None


def typical(record: Record) -> str:
    """Typical seconds of a record, as `seconds` writes them."""
    return seconds(records.typical_seconds(record))


def peer_seconds(ours: Record, theirs: Record | None) -> str:
    """The peer's time; marked where it is not of the same run as ours."""
    if theirs is None:
        return "not run"
    taken = seconds(records.typical_seconds(theirs))
    return taken if theirs["run"] == ours["run"] else f"{taken} (run of its own)"


def alignment(columns: int) -> str:
    """The line below a table's head: the first column to the left, the others to the right."""
    return "|---" + "|---:" * (columns - 1) + "|"
