"""A contract as an assertion, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import ContractCheckOptions, takes

if TYPE_CHECKING:
    from typing import Unpack

    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.options import ContractKeywords


@takes(ContractCheckOptions)
def assert_contract(tables: Any, contract: Any, **options: Unpack[ContractKeywords]) -> ContractResult:
    """Assert that tables keep a contract. The AssertionError says which rules are broken, and by which rows.

    Parameters
    ----------
    tables, contract : as for `check_contract`

    Returns
    -------
    ContractResult

    Raises
    ------
    AssertionError
        If a rule of severity "error" is broken beyond its tolerance, if columns are not as the contract says, or if a
        time or memory limit was reached before everything was checked.
    InputError
        Where the contract, a table or an option can't be used.

    Examples
    --------
    >>> from tuplewise.testing import assert_contract
    >>> def test_export(export):
    ...     assert_contract(export, "rules.yaml")
    """
    from tuplewise.contracts import check_contract

    __tracebackhide__ = True
    ContractCheckOptions.of("assert_contract", options)
    found = check_contract(tables, contract, **options)
    if found.failed or found.partial:
        raise AssertionError(found.failures())
    return found
