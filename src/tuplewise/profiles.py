"""The public function that profiles tables; `tuplewise` hands it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import ProfileOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Unpack

    from tuplewise.engine.options import ProfileKeywords
    from tuplewise.engine.report.profile_result import ProfileResult


@takes(ProfileOptions)
def profile(
    tables: Any,
    *,
    contract: str | PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[ProfileKeywords],
) -> ProfileResult:
    """Find the few rules of tables that a person would keep, best first, with the rows that break each.

    These are keys, functional dependencies, order rules, rules between two columns of a row, constants, and with
    several tables likely foreign keys. They need not hold in every row. A rule is listed if far fewer rows contradict
    it than would by chance; one that follows from better ones is folded beneath them.

    Parameters
    ----------
    tables : a table, a list of tables, or tables by name
        Each is a path, a frame, or what `load` returns.
    contract : path of a contract's file, which may be new
        Rules that it does not have yet are added to it as proposals.
    progress : called with the stage and the share of it that is done

    Returns
    -------
    ProfileResult
        With `.rules` (each with `.english` and `.broken_by()`), `.columns`, `.warnings`, `.to_html()`, `.to_pandas()`,
        `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_text()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where a table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> rows = [(i, f"Z{i % 40}", f"City {i % 40 // 2}") for i in range(400)]
    >>> found = tw.profile(pd.DataFrame(rows, columns=["no", "zip", "city"]))
    >>> [rule.english for rule in found.rules]
    ['`no` identifies a row', 'each `zip` has one `city`']
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.ind.tables import name_tables

    checked = ProfileOptions.of("profile", options)
    return tasks.profile(name_tables(tables), checked, tasks.TaskRun(checked, progress), contract=contract)
