"""What each task can be told. Frozen, checked once; the command line and the Python functions share them.

`option.py` says what an option is; a module for each task declares its own. Import from here.
"""

from tuplewise.engine.options.checking import CheckKeywords, DcCheckOptions, FailOn, RulesSyntax
from tuplewise.engine.options.common import ErrorMeasure, LimitOptions, Nulls, RunOn, RunOptions, SparkOptions
from tuplewise.engine.options.contract import (
    ContractCheckOptions,
    ContractExportKeywords,
    ContractExportOptions,
    ContractKeywords,
    SqlDialect,
)
from tuplewise.engine.options.dc_state import OF_A_STATE, DcStateKeywords, DcStateOptions
from tuplewise.engine.options.dependencies import (
    DependencyKeywords,
    DependencyOptions,
    DependencyRankBy,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    OdCheckKeywords,
    OdCheckOptions,
    OdDiscoverOptions,
    OdKeywords,
    TogetherKeywords,
    TogetherOptions,
)
from tuplewise.engine.options.discovery import DcDiscoverOptions, DcKeywords, RankBy
from tuplewise.engine.options.functions import takes
from tuplewise.engine.options.ind import (
    IndCheckKeywords,
    IndCheckOptions,
    IndDiscoverKeywords,
    IndDiscoverOptions,
    IndInitOptions,
    IndOptions,
    IndStateKeywords,
    IndStateOptions,
)
from tuplewise.engine.options.loading import LoadKeywords, LoadOptions
from tuplewise.engine.options.option import (
    Option,
    Options,
    declarations,
    exact_decimal,
    fixed_by_a_state,
    option,
    raise_faults,
)
from tuplewise.engine.options.profile import ProfileKeywords, ProfileOptions

__all__ = [
    "OF_A_STATE",
    "CheckKeywords",
    "ContractCheckOptions",
    "ContractExportKeywords",
    "ContractExportOptions",
    "ContractKeywords",
    "DcCheckOptions",
    "DcDiscoverOptions",
    "DcKeywords",
    "DcStateKeywords",
    "DcStateOptions",
    "DependencyKeywords",
    "DependencyOptions",
    "DependencyRankBy",
    "ErrorMeasure",
    "FailOn",
    "FdDiscoverOptions",
    "IndCheckKeywords",
    "IndCheckOptions",
    "IndDiscoverKeywords",
    "IndDiscoverOptions",
    "IndInitOptions",
    "IndOptions",
    "IndStateKeywords",
    "IndStateOptions",
    "KeyDiscoverOptions",
    "LimitOptions",
    "LoadKeywords",
    "LoadOptions",
    "Nulls",
    "OdCheckKeywords",
    "OdCheckOptions",
    "OdDiscoverOptions",
    "OdKeywords",
    "Option",
    "Options",
    "ProfileKeywords",
    "ProfileOptions",
    "RankBy",
    "RulesSyntax",
    "RunOn",
    "RunOptions",
    "SparkOptions",
    "SqlDialect",
    "TogetherKeywords",
    "TogetherOptions",
    "declarations",
    "exact_decimal",
    "fixed_by_a_state",
    "option",
    "raise_faults",
    "takes",
]
