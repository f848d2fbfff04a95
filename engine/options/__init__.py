"""What each task can be told. Frozen, checked once; the command line and the Python functions share them.

A module for each task; import from here.
"""

from tuplewise.engine.options.checking import (
    CheckKeywords,
    DcCheckOptions,
    FailOn,
    RulesSyntax,
    Together,
    dc_check_options,
)
from tuplewise.engine.options.choices import ErrorMeasure, Nulls, RunOn
from tuplewise.engine.options.dc_state import (
    READING_OF_A_STATE,
    RULES_OF_A_STATE,
    DcStateKeywords,
    DcStateOptions,
    StateIndex,
    dc_state_options,
)
from tuplewise.engine.options.dependencies import (
    DependencyAlgorithm,
    DependencyKeywords,
    DependencyOptions,
    DependencyRankBy,
    FdDiscoverOptions,
    KeyDiscoverOptions,
    OdCheckKeywords,
    OdCheckOptions,
    OdDiscoverOptions,
    OdKeywords,
)
from tuplewise.engine.options.discovery import (
    Algorithm,
    DcDiscoverOptions,
    DcKeywords,
    Minimality,
    RankBy,
    dc_discover_options,
)
from tuplewise.engine.options.ind import (
    IndCheckOptions,
    IndDiscoverOptions,
    IndKeywords,
    IndOptions,
    IndStateOptions,
)
from tuplewise.engine.options.keywords import exact_decimal, options_of
from tuplewise.engine.options.loading import LoadKeywords, LoadOptions, load_options
from tuplewise.engine.options.profile import ProfileKeywords, ProfileOptions

__all__ = [
    "READING_OF_A_STATE",
    "RULES_OF_A_STATE",
    "Algorithm",
    "CheckKeywords",
    "DcCheckOptions",
    "DcDiscoverOptions",
    "DcKeywords",
    "DcStateKeywords",
    "DcStateOptions",
    "DependencyAlgorithm",
    "DependencyKeywords",
    "DependencyOptions",
    "DependencyRankBy",
    "ErrorMeasure",
    "FailOn",
    "FdDiscoverOptions",
    "IndCheckOptions",
    "IndDiscoverOptions",
    "IndKeywords",
    "IndOptions",
    "IndStateOptions",
    "KeyDiscoverOptions",
    "LoadKeywords",
    "LoadOptions",
    "Minimality",
    "Nulls",
    "OdCheckKeywords",
    "OdCheckOptions",
    "OdDiscoverOptions",
    "OdKeywords",
    "ProfileKeywords",
    "ProfileOptions",
    "RankBy",
    "RulesSyntax",
    "RunOn",
    "StateIndex",
    "Together",
    "dc_check_options",
    "dc_discover_options",
    "dc_state_options",
    "exact_decimal",
    "load_options",
    "options_of",
]
