"""tuplewise finds the rules that hold in tables by looking at pairs of rows.

    >>> import pandas as pd, tuplewise as tw
    >>> found = tw.discover_dcs(pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "B"], "id": [1, 2, 3]}))
    >>> [str(c) for c in found.constraints if c.kind == "fd"]
    ['not(t.zip == u.zip and t.city != u.city)', 'not(t.zip != u.zip and t.city == u.city)']

Importing this is quick: what a function needs is imported when it is called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuplewise.constraints import check, discover_dcs
    from tuplewise.contracts import check_contract, diff, export_contract, import_contract
    from tuplewise.dependencies import check_ods, discover_fds, discover_keys, discover_ods
    from tuplewise.engine.contract.diff_result import DiffResult
    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
    from tuplewise.engine.errors import DeviceError, InputError, LimitReached, RuleError, TuplewiseError
    from tuplewise.engine.ind.dependency import InclusionDependency
    from tuplewise.engine.report.check_result import CheckResult
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.fd_result import FdResult, KeyResult
    from tuplewise.engine.report.ind_check_result import IndCheckResult
    from tuplewise.engine.report.ind_result import IndResult
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.od_result import OdResult
    from tuplewise.engine.report.profile_result import ProfileResult
    from tuplewise.engine.table.relation import Relation
    from tuplewise.inclusions import check_inds, discover_inds
    from tuplewise.maintained import MaintainedInds, maintain_inds
    from tuplewise.maintained_dcs import MaintainedDcs, maintain_dcs
    from tuplewise.profiles import profile
    from tuplewise.tables import load

    __version__: str

_HOMES = {
    "CheckResult": "engine.report.check_result",
    "ContractResult": "engine.contract.result",
    "DcResult": "engine.report.dc_result",
    "DenialConstraint": "engine.dc.constraint",
    "DiffResult": "engine.contract.diff_result",
    "FdResult": "engine.report.fd_result",
    "InclusionDependency": "engine.ind.dependency",
    "IndCheckResult": "engine.report.ind_check_result",
    "IndResult": "engine.report.ind_result",
    "KeyResult": "engine.report.fd_result",
    "MaintainedDcs": "maintained_dcs",
    "MaintainedInds": "maintained",
    "OdCheckResult": "engine.report.od_check_result",
    "OdResult": "engine.report.od_result",
    "Predicate": "engine.dc.constraint",
    "ProfileResult": "engine.report.profile_result",
    "Relation": "engine.table.relation",
    "DeviceError": "engine.errors",
    "InputError": "engine.errors",
    "LimitReached": "engine.errors",
    "RuleError": "engine.errors",
    "TuplewiseError": "engine.errors",
    "check": "constraints",
    "check_contract": "contracts",
    "check_inds": "inclusions",
    "check_ods": "dependencies",
    "diff": "contracts",
    "discover_dcs": "constraints",
    "discover_fds": "dependencies",
    "discover_inds": "inclusions",
    "discover_keys": "dependencies",
    "discover_ods": "dependencies",
    "discover_together": "dependencies",
    "export_contract": "contracts",
    "import_contract": "contracts",
    "load": "tables",
    "maintain_dcs": "maintained_dcs",
    "maintain_inds": "maintained",
    "profile": "profiles",
}

__all__ = [
    "CheckResult",
    "ContractResult",
    "DcResult",
    "DenialConstraint",
    "DeviceError",
    "DiffResult",
    "FdResult",
    "InclusionDependency",
    "IndCheckResult",
    "IndResult",
    "InputError",
    "KeyResult",
    "LimitReached",
    "MaintainedDcs",
    "MaintainedInds",
    "OdCheckResult",
    "OdResult",
    "Predicate",
    "ProfileResult",
    "Relation",
    "RuleError",
    "TuplewiseError",
    "__version__",
    "check",
    "check_contract",
    "check_inds",
    "check_ods",
    "diff",
    "discover_dcs",
    "discover_fds",
    "discover_inds",
    "discover_keys",
    "discover_ods",
    "discover_together",
    "export_contract",
    "import_contract",
    "load",
    "maintain_dcs",
    "maintain_inds",
    "profile",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = importlib.import_module("tuplewise.engine.report.version").version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"tuplewise.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'tuplewise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
