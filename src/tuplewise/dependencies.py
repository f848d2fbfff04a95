"""The public functions about keys, functional and order dependencies; `tuplewise` hands them on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import (
    DcDiscoverOptions,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    OdCheckOptions,
    OdDiscoverOptions,
    TogetherOptions,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar, Unpack

    from tuplewise.engine.options import (
        DependencyKeywords,
        DependencyOptions,
        OdCheckKeywords,
        OdKeywords,
        TogetherKeywords,
    )
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.od_result import OdResult

    R = TypeVar("R")


@takes(FdDiscoverOptions)
def discover_fds(
    table: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DependencyKeywords],
) -> FdResult:
    """Find the minimal functional dependencies that hold in a table. X -> A: rows that are equal on X are equal on A.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    progress : called with the stage and the share of it that is done

    Returns
    -------
    FdResult
        With `.fds`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> places = pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "A"], "street": ["S", "T", "S"]})
    >>> print(*tw.discover_fds(places).fds, sep="; ")
    [] -> city
    """

    checked = FdDiscoverOptions.of("discover_fds", options)
    found: FdResult = _discover(table, checked, progress)
    return found


@takes(KeyDiscoverOptions)
def discover_keys(
    table: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DependencyKeywords],
) -> KeyResult:
    """Find the minimal keys (unique column combinations) of a table.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads

    Returns
    -------
    KeyResult
        With `.keys`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> flights = pd.DataFrame({"carrier": ["AA", "AA", "BB"], "flight": [1, 2, 1], "gate": ["x", "x", "x"]})
    >>> print(*tw.discover_keys(flights).keys)
    [carrier, flight]
    """

    checked = KeyDiscoverOptions.of("discover_keys", options)
    found: KeyResult = _discover(table, checked, progress)
    return found


@takes(OdDiscoverOptions)
def discover_ods(
    table: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[OdKeywords],
) -> OdResult:
    """Find the minimal set-based order dependencies that hold in a table.

    There are two kinds. Among rows that are equal on a context X, a column is constant (`X: [] -> A`), or two columns
    are order compatible (`X: A ~ B`): the rows can be sorted by both at once, in the same or in opposite directions.
    Nulls are equal to each other and come before all other values; text is ordered by bytes, false before true.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads

    Returns
    -------
    OdResult
        With `.constants`, `.order_compatible`, `.lexicographic`, `.shortest_order_by()`, `.to_pandas()`, `.to_json()`,
        `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> days = pd.DataFrame({"month": [1, 1, 2], "week": [1, 5, 5], "left": [3, 2, 1]})
    >>> found = tw.discover_ods(days)
    >>> print(*found.constants, sep="; ")
    left -> month; left -> week; month, week -> left
    >>> print(*found.order_compatible, sep="; ")
    []: month ~ week; []: month ~ left desc; []: week ~ left desc
    """

    checked = OdDiscoverOptions.of("discover_ods", options)
    found: OdResult = _discover(table, checked, progress)
    return found


@takes(TogetherOptions)
def discover_together(
    table: Any,
    kinds: Sequence[str] = ("dc", "od", "fd", "key"),
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[TogetherKeywords],
) -> dict[str, DcResult | OdResult | FdResult | KeyResult]:
    """Find rules of several kinds, and compare the pairs of rows only once.

    Each result is what `discover_dcs`, `discover_ods`, `discover_fds` or `discover_keys` returns. Denial constraints
    compare each column with itself only, as `discover_dcs(table, cross_columns=False)` does.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    kinds : which of "dc", "od", "fd", "key"

    Returns
    -------
    dict
        By kind: DcResult, OdResult, FdResult, KeyResult.

    Raises
    ------
    InputError
        Where the table or an option can't be used, or the kinds can't all take nulls in the same way.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> planes = pd.DataFrame({"tail": ["N1", "N2", "N3"], "type": ["A", "B", "B"], "seats": [90, 150, 150]})
    >>> found = tw.discover_together(planes, ["fd", "key"])
    >>> print(*found["key"].keys, *found["fd"].fds, sep="; ")
    [tail]; tail -> type; tail -> seats; type -> seats; seats -> type
    """

    from tuplewise.engine import together
    from tuplewise.engine.errors import InputError, message
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult
    from tuplewise.engine.report.od_result import OdResult
    from tuplewise.engine.tasks import TaskRun

    known: dict[str, Any] = {"dc": DcResult, "od": OdResult, "fd": FdResult, "key": KeyResult}
    wanted = list(kinds) if isinstance(kinds, (list, tuple, set, frozenset)) else [kinds]
    if not wanted or any(kind not in known for kind in wanted):
        raise InputError(message("kinds", wanted, "some of 'dc', 'od', 'fd', 'key'"))
    asked = TogetherOptions.of("discover_together", options)
    of_dcs = asked.part(DcDiscoverOptions, cross_columns=False)
    ods = replace(asked, nulls="value").part(OdDiscoverOptions)
    of_kind = {"dc": of_dcs, "od": ods, "fd": asked.part(FdDiscoverOptions), "key": asked.part(KeyDiscoverOptions)}
    run = TaskRun(of_dcs, progress)
    relation = run.load(table, None, of_dcs.device)
    each: Any = {f"{kind}s": of_kind[kind] if kind in wanted else None for kind in known}
    found = together.discover(relation, **each, device=asked.device, seed=asked.seed, run=run)
    how = run.handed_on(None)
    return {kind: known[kind](getattr(found, f"{kind}s"), **how) for kind in known if kind in wanted}


def _discover(table: Any, options: DependencyOptions, progress: Callable[[str, float], None] | None) -> Any:
    """What was found in a table."""
    from tuplewise.engine import tasks

    return tasks.discover_dependencies(table, options, tasks.TaskRun(options, progress))


@takes(OdCheckOptions)
def check_ods(
    table: Any,
    ods: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[OdCheckKeywords],
) -> OdCheckResult:
    """Check order dependencies between lists of columns: rows sorted by the left list are sorted by the right one.

    Parameters
    ----------
    table : a table, or a result of discover_ods
        A table is what `load` returns, or anything that `load` reads. A result decides without looking at rows. If it
        is partial, some dependencies may be left undecided.
    ods : text such as "month, week desc -> quarter", a `pathlib.Path` of a file of such lines, or a list of these
    progress : called with the stage ("checking") and the share of it that is done

    Returns
    -------
    OdCheckResult
        With `.holds`, `.ods` (for each, whether it holds, and two rows that break it), `.to_pandas()`, `.to_json()`,
        `.to_csv()`, `.to_dict()`. Spark may show other two rows than one process does.

    Raises
    ------
    RuleError
        Where a dependency can't be read, or names an unknown column.
    InputError
        Where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> days = pd.DataFrame({"month": [1, 1, 2], "week": [1, 5, 5]})
    >>> tw.check_ods(days, "month, week -> week, month").holds
    True
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.report.od_texts import read_all_ods

    checked = OdCheckOptions.of("check_ods", options)
    run = tasks.TaskRun(checked, progress)
    return tasks.check_ods(table, lambda columns: read_all_ods(ods, columns), checked, run)
