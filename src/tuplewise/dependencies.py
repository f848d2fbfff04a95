"""The public functions about keys, functional and order dependencies; `tuplewise` hands them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal
    from typing import TypeVar, Unpack

    from tuplewise.engine.options import DependencyKeywords, DependencyOptions, Nulls, OdCheckKeywords, OdKeywords
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.od_result import OdResult

    R = TypeVar("R")


def discover_fds(
    table: Any,
    *,
    error: float | str | Decimal = 0.0,
    nulls: Nulls = "unknown",
    max_context: int | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DependencyKeywords],
) -> FdResult:
    """The minimal functional dependencies that hold in a table: X -> A, rows equal on X are equal on A.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    error : share of rows (g3) that may have to be removed so that a dependency holds, 0 <= error < 1; or the error by
        another measure, see `error_measure`. A float is taken as the decimal that it is written as.
    nulls : "unknown" (a null is equal to nothing and differs from nothing) or "value" (equal to itself)
    max_context : left sides of at most so many columns
    device : "auto", "cpu", "cuda" or "cuda:N". The result is the same on each.
    time_limit : seconds, with those that the table takes to be read (reading is not interrupted); the result is then
        marked `partial`
    progress : called with the stage and the share of it that is done
    **options
        error_measure ("g3"; "g1", the share of ordered pairs that violate it; "lift", violating pairs by those that
        chance would give; "mu", 1 - mu+, of functional dependencies only), algorithm ("auto", "hybrid", "levelwise"),
        run_on ("auto", "driver", "spark"), memory_limit (bytes), seed. By "lift" and "mu" a dependency may hold while
        one with more columns on the left doesn't: listed are those that hold while none with fewer of their columns
        does, of at most 3 columns on the left unless `max_context` says otherwise.

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
    from tuplewise.engine.options import FdDiscoverOptions, options_of

    named = {"error": error, "nulls": nulls, "max_context": max_context, "device": device, "time_limit": time_limit}
    checked = options_of("discover_fds", FdDiscoverOptions, {**named, **options})
    found: FdResult = _discover(table, checked, progress)
    return found


def discover_keys(
    table: Any,
    *,
    error: float | str | Decimal = 0.0,
    nulls: Nulls = "unknown",
    max_context: int | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DependencyKeywords],
) -> KeyResult:
    """The minimal keys (unique column combinations) of a table.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    error : share of rows (g3) that may have to be removed so that columns are a key, 0 <= error < 1
    nulls : "unknown" (rows with a null in the key are left out) or "value" (a null is equal to itself)
    max_context : keys of at most so many columns
    device, time_limit, progress, **options : as for `discover_fds`

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
    from tuplewise.engine.options import KeyDiscoverOptions, options_of

    named = {"error": error, "nulls": nulls, "max_context": max_context, "device": device, "time_limit": time_limit}
    checked = options_of("discover_keys", KeyDiscoverOptions, {**named, **options})
    found: KeyResult = _discover(table, checked, progress)
    return found


def discover_ods(
    table: Any,
    *,
    error: float | str | Decimal = 0.0,
    max_context: int | None = None,
    lexicographic: int | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[OdKeywords],
) -> OdResult:
    """The minimal set-based order dependencies that hold in a table.

    Within rows that are equal on a context X, a column is constant (`X: [] -> A`), or two columns are order compatible
    (`X: A ~ B`): rows can be sorted by both at once, in the same or in opposite directions. Nulls are equal to each
    other and before all other values; text is ordered by bytes, false before true.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    error : share of rows (g3) that may have to be removed so that a dependency holds, 0 <= error < 1
    max_context : contexts of at most so many columns
    lexicographic : also derive the dependencies between lists of at most so many columns
    device, time_limit, progress, **options : as for `discover_fds`

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
    from tuplewise.engine.options import OdDiscoverOptions, options_of

    named = {"error": error, "max_context": max_context, "device": device, "time_limit": time_limit}
    given = {**named, "lexicographic": lexicographic, **options}
    checked = options_of("discover_ods", OdDiscoverOptions, given)
    found: OdResult = _discover(table, checked, progress)
    return found


def discover_together(
    table: Any,
    kinds: Sequence[str] = ("dc", "od", "fd", "key"),
    *,
    nulls: Nulls = "value",
    max_predicates: int | None = None,
    max_context: int | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, DcResult | OdResult | FdResult | KeyResult]:
    """Rules of several kinds from one comparison of pairs: each result is what its own function returns.

    Denial constraints compare each column with itself only, as `discover_dcs(table, cross_columns=False)` does.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    kinds : which of "dc", "od", "fd", "key"
    nulls : one rule for all. Order dependencies know "value" only; on a table without nulls it makes no difference.
    max_predicates : constraints of at most so many predicates
    max_context : dependencies and keys of at most so many columns
    device, time_limit, memory_limit, seed, progress : as for `discover_dcs`; for all kinds together

    Returns
    -------
    dict
        By kind: DcResult, OdResult, FdResult, KeyResult.

    Raises
    ------
    InputError
        Where the table or an option can't be used, or one null rule can't serve all kinds.
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
    from tuplewise.engine.options import (
        DcDiscoverOptions,
        FdDiscoverOptions,
        KeyDiscoverOptions,
        OdDiscoverOptions,
    )
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult
    from tuplewise.engine.report.od_result import OdResult
    from tuplewise.engine.tasks import TaskRun

    known: dict[str, Any] = {"dc": DcResult, "od": OdResult, "fd": FdResult, "key": KeyResult}
    wanted = list(kinds) if isinstance(kinds, (list, tuple, set, frozenset)) else [kinds]
    if not wanted or any(kind not in known for kind in wanted):
        raise InputError(message("kinds", wanted, "some of 'dc', 'od', 'fd', 'key'"))
    limits: dict[str, Any] = {"device": device, "time_limit": time_limit, "memory_limit": memory_limit, "seed": seed}
    of_contexts = {"max_context": max_context, **limits}
    of_dcs = DcDiscoverOptions(cross_columns=False, nulls=nulls, max_predicates=max_predicates, **limits)
    options = {
        "dc": of_dcs,
        "od": OdDiscoverOptions(**of_contexts),
        "fd": FdDiscoverOptions(nulls=nulls, **of_contexts),
        "key": KeyDiscoverOptions(nulls=nulls, **of_contexts),
    }
    run = TaskRun(of_dcs, progress)
    relation = run.load(table, None, of_dcs.device)
    asked: Any = {f"{kind}s": options[kind] if kind in wanted else None for kind in known}
    found = together.discover(relation, **asked, device=device, seed=seed, run=run)
    how = run.handed_on(None)
    return {kind: known[kind](getattr(found, f"{kind}s"), **how) for kind in known if kind in wanted}


def _discover(table: Any, options: DependencyOptions, progress: Callable[[str, float], None] | None) -> Any:
    """What was found in a table."""
    from tuplewise.engine import tasks
    from tuplewise.engine.tasks import TaskRun

    return tasks.discover_dependencies(table, options, TaskRun(options, progress))


def check_ods(
    table: Any,
    ods: Any,
    *,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[OdCheckKeywords],
) -> OdCheckResult:
    """Whether order dependencies between lists hold: rows sorted by the left columns are sorted by the right ones.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads; or what `discover_ods` returned, which then decides
        without looking at rows (a partial one proves what follows from it, and leaves undecided what it may lack)
    ods : text such as "month, week desc -> quarter", a `pathlib.Path` of a file of such lines, or a list of these
    device : "auto", "cpu", "cuda" or "cuda:N". The result is the same on each.
    time_limit : seconds, with those that the table takes to be read (reading is not interrupted); the result is then
        marked `partial`
    progress : called with the stage ("checking") and the share of it that is done
    **options
        run_on ("auto", "driver", "spark"), memory_limit (bytes), seed.

    Returns
    -------
    OdCheckResult
        With `.holds`, `.ods` (of each the verdict and two rows that break it; where Spark checks, they may be other
        two), `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_dict()`.

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
    from tuplewise.engine.options import OdCheckOptions, options_of
    from tuplewise.engine.report.od_texts import read_all_ods
    from tuplewise.engine.tasks import TaskRun

    named = {"device": device, "time_limit": time_limit}
    checked = options_of("check_ods", OdCheckOptions, {**named, **options})
    run = TaskRun(checked, progress)
    return tasks.check_ods(table, lambda columns: read_all_ods(ods, columns), checked, run)
