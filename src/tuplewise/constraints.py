"""Public functions for finding and checking denial constraints, re-exported by `tuplewise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tuplewise.engine.options import DcCheckOptions, DcDiscoverOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Unpack

    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.options import CheckKeywords, ContractKeywords, DcKeywords
    from tuplewise.engine.report.check_result import CheckResult
    from tuplewise.engine.report.dc_result import DcResult


@takes(DcDiscoverOptions)
def discover_dcs(
    table: Any,
    *,
    space_from: str | PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DcKeywords],
) -> DcResult:
    """Find the minimal denial constraints that hold in a table.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    space_from : folder of a state
        `maintain_dcs` builds it. Its columns, types, nulls, predicates and related options define the rules; do not
        give these options then.
    progress : called with the stage ("evidence", "inversion" and the like) and the finished share of that stage

    Returns
    -------
    DcResult
        With `.constraints`, `.ranked()`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    InputError
        If the table or an option can't be used, or the work would not end.
    DeviceError
        If a requested device is not available.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> pay = pd.DataFrame({"rank": [1, 2, 3, 4], "pay": [10, 20, 20, 40]})
    >>> for constraint in tw.discover_dcs(pay, cross_columns=False).constraints:
    ...     print(constraint.kind, constraint)
    key not(t.rank == u.rank)
    od not(t.rank <= u.rank and t.pay > u.pay)
    """
    from tuplewise.engine import tasks

    checked = DcDiscoverOptions.of("discover_dcs", options)
    run = tasks.TaskRun(checked, progress)
    if space_from is None:
        return tasks.discover_dcs(table, checked, run)
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace

    space = KeptSpace.of_state(space_from)
    checked = space.discover_options(checked, given=options)
    return tasks.discover_dcs(table, checked, run, reading=space.load_options(), space=space)


@overload
def check(
    table: Any,
    rules: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[CheckKeywords],
) -> CheckResult: ...
@overload
def check(
    table: Any,
    *,
    contract: Any,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[ContractKeywords],
) -> ContractResult: ...
@takes(DcCheckOptions)
def check(
    table: Any,
    rules: Any = None,
    *,
    contract: Any = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> CheckResult | ContractResult:
    """Check whether rules hold in a table, and which pairs of rows violate them.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    rules : text, or a list
        Text of one rule, or of several separated by `;`; a DenialConstraint; a result of `discover_dcs`; a
        `pathlib.Path` to a file of rules; or a list of these.
    contract : in place of rules, a contract or the path of its file: see `check_contract`, whose options it then takes
    progress : called with the stage ("checking") and the finished share of that stage

    Returns
    -------
    CheckResult
        With `.holds`, `.violating_pairs`, `.pairs()`, `.rows()`, `.rules`, `.write_pairs()`, `.to_pandas()`,
        `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    RuleError
        If a rule can't be read, names an unknown column, or compares types that can't be compared.
    InputError
        If the table or an option can't be used.
    DeviceError
        If a requested device is not available.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> planes = pd.DataFrame({"tail": ["N1", "N1", "N2"], "type": ["A", "B", "B"]})
    >>> found = tw.check(planes, "not(t.tail == u.tail and t.type != u.type)", device="cpu")
    >>> found.holds, found.violating_pairs, found.rows()["row"].tolist()
    (False, 2, [0, 1])
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.report.rule_texts import read_all_rules

    if contract is not None:
        from tuplewise.contracts import check_contract

        if rules is not None:
            raise TypeError("check() takes rules or a contract, not both")
        return check_contract(table, contract, progress=progress, **options)
    if rules is None:
        raise TypeError("check() needs rules, or a contract")
    checked = DcCheckOptions.of("check", options)
    run = tasks.TaskRun(checked, progress)
    return tasks.check_dcs(table, lambda names: read_all_rules(rules, names, checked.rules_syntax), checked, run)
