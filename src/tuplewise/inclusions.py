"""The public functions about inclusion dependencies; `tuplewise` hands them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from typing import Unpack

    from tuplewise.engine.options import IndKeywords
    from tuplewise.engine.report.ind_check_result import IndCheckResult
    from tuplewise.engine.report.ind_result import IndResult


def discover_inds(
    tables: Any,
    *,
    error: float | str | Decimal = 0.0,
    max_arity: int = 1,
    as_text: bool = False,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[IndKeywords],
) -> IndResult:
    """The inclusion dependencies between the columns of tables: A <= B, every value of A occurs in B.

    Nulls are no values, on either side. Values are compared by type: whole numbers and decimals with each other,
    doubles with doubles, dates and timestamps with each other, text with text.

    Parameters
    ----------
    tables : list of tables, or tables by name
        Each a path, a frame, or what `load` returns. Paths are called by their file's name, frames need a name:
        `{"orders": frame}`.
    error : share of the distinct values of A that B may lack, 0 <= error < 1.
        A float is taken as the decimal that it is written as.
    max_arity : most columns of each side
    as_text : compare all values as the text that they are written as
    device : "auto", "cpu", "cuda" or "cuda:N". The result is the same on each.
    time_limit : seconds; the result is then marked `partial`
    progress : called with the stage and the share of it that is done
    **options
        run_on ("auto", "driver", "spark"), memory_limit (bytes), seed.

    Returns
    -------
    IndResult
        With `.inds`, `.ranked()`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`; of each
        dependency with what speaks for a foreign key.

    Raises
    ------
    InputError
        Where a table or an option can't be used, or two tables have one name.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> orders = pd.DataFrame({"no": [7, 8, 9], "customer": ["Ann", "Bob", "Ann"]})
    >>> customers = pd.DataFrame({"name": ["Ann", "Bob", "Eve"]})
    >>> print(*(one.ind for one in tw.discover_inds({"orders": orders, "customers": customers}).inds), sep="; ")
    orders.customer <= customers.name
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.ind.tables import name_tables
    from tuplewise.engine.options import IndDiscoverOptions, options_of
    from tuplewise.engine.tasks import TaskRun

    named = {"error": error, "max_arity": max_arity, "as_text": as_text, "device": device, "time_limit": time_limit}
    checked = options_of("discover_inds", IndDiscoverOptions, {**named, **options})
    run = TaskRun(checked, progress)
    return tasks.discover_inds(name_tables(tables), checked, run)


def check_inds(
    tables: Any,
    inds: Any,
    *,
    error: float | str | Decimal = 0.0,
    as_text: bool = False,
    examples: int = 10,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[IndKeywords],
) -> IndCheckResult:
    """Whether inclusion dependencies hold, and which values and rows break those that don't.

    A null in the dependent column is not applicable and counted apart; one in the referenced column hides nothing.

    Parameters
    ----------
    tables : as for `discover_inds`
    inds : text such as "child.a <= parent.b" or "child[a, b] <= parent[x, y]", an InclusionDependency, what
        `discover_inds` returned, a `pathlib.Path` of a file of such lines, or a list of these
    error : share of the distinct values of the dependent side that may be missing, 0 <= error < 1
    as_text : compare all values as the text that they are written as
    examples : missing values that are listed of each, at most; all are counted
    device, time_limit, progress, **options : as for `discover_inds`

    Returns
    -------
    IndCheckResult
        With `.holds`, `.inds` (of each the verdict, counts and some missing values), `.to_pandas()`, `.to_json()`,
        `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    RuleError
        Where a dependency can't be read, or names an unknown table or column.
    InputError
        Where a table or an option can't be used.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> child, parent = pd.DataFrame({"a": [1, None, 9]}), pd.DataFrame({"b": [1, None]})
    >>> found = tw.check_inds({"child": child, "parent": parent}, "child.a <= parent.b")
    >>> found.holds, found.inds[0].missing_values, found.inds[0].rows_null
    (False, 1, 1)
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.ind.tables import name_tables
    from tuplewise.engine.options import IndCheckOptions, options_of
    from tuplewise.engine.tasks import TaskRun

    named = {"error": error, "as_text": as_text, "examples": examples, "device": device, "time_limit": time_limit}
    checked = options_of("check_inds", IndCheckOptions, {**named, **options})
    run = TaskRun(checked, progress)
    return tasks.check_inds(name_tables(tables), inds, checked, run)
