"""Public functions for inclusion dependencies, exported by `tuplewise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import IndCheckOptions, IndDiscoverOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from tuplewise.engine.options import IndCheckKeywords, IndDiscoverKeywords
    from tuplewise.engine.report.ind_check_result import IndCheckResult
    from tuplewise.engine.report.ind_result import IndResult


@takes(IndDiscoverOptions)
def discover_inds(
    tables: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[IndDiscoverKeywords],
) -> IndResult:
    """Discover the inclusion dependencies between table columns. A <= B: every value of A occurs in B.

    Nulls do not count as values on either side. Values are compared by type: whole numbers and decimals with each
    other, doubles with doubles, dates and timestamps with each other, text with text.

    Parameters
    ----------
    tables : list of tables, or tables by name
        Each is a path, a frame, or what `load` returns. A path takes its name from the file; a frame needs a name:
        `{"orders": frame}`.
    progress : called with the stage and the fraction of it that is done

    Returns
    -------
    IndResult
        With `.inds`, `.ranked()`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`. Each
        dependency comes with the evidence that it is a foreign key.

    Raises
    ------
    InputError
        If a table or an option can't be used, or two tables have the same name.
    DeviceError
        If the requested device is not available.

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

    checked = IndDiscoverOptions.of("discover_inds", options)
    return tasks.discover_inds(name_tables(tables), checked, tasks.TaskRun(checked, progress))


@takes(IndCheckOptions)
def check_inds(
    tables: Any,
    inds: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[IndCheckKeywords],
) -> IndCheckResult:
    """Check whether inclusion dependencies hold, and find the values and rows that violate them.

    Nulls in a dependent column are not violations, but counted apart. Nulls in a referenced column are ignored.

    Parameters
    ----------
    tables : as for `discover_inds`
    inds : text, or a list
        Text such as "child.a <= parent.b" or "child[a, b] <= parent[x, y]"; an InclusionDependency; a result of
        `discover_inds`; a `pathlib.Path` to a file with one dependency a line; or a list of these.

    Returns
    -------
    IndCheckResult
        With `.holds`, `.inds` (each with verdict, counts and some missing values), `.to_pandas()`, `.to_json()`,
        `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    RuleError
        If a dependency can't be parsed, or names an unknown table or column.
    InputError
        If a table or an option can't be used.

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

    checked = IndCheckOptions.of("check_inds", options)
    return tasks.check_inds(name_tables(tables), inds, checked, tasks.TaskRun(checked, progress))
