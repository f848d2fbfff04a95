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
    from collections.abc import Callable, Sequence
    from decimal import Decimal
    from os import PathLike
    from typing import Unpack

    from tuplewise.dependencies import check_ods, discover_fds, discover_keys, discover_ods
    from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
    from tuplewise.engine.errors import DeviceError, InputError, LimitReached, RuleError, TuplewiseError
    from tuplewise.engine.ind.dependency import InclusionDependency
    from tuplewise.engine.options import CheckKeywords, DcKeywords, LoadKeywords, Nulls
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

    __version__: str

_HOMES = {
    "CheckResult": "engine.report.check_result",
    "DcResult": "engine.report.dc_result",
    "DenialConstraint": "engine.dc.constraint",
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
    "check_inds": "inclusions",
    "check_ods": "dependencies",
    "discover_fds": "dependencies",
    "discover_inds": "inclusions",
    "discover_keys": "dependencies",
    "discover_ods": "dependencies",
    "discover_together": "dependencies",
    "maintain_dcs": "maintained_dcs",
    "maintain_inds": "maintained",
    "profile": "profiles",
}

__all__ = [
    "CheckResult",
    "DcResult",
    "DenialConstraint",
    "DeviceError",
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
    "check_inds",
    "check_ods",
    "discover_dcs",
    "discover_fds",
    "discover_inds",
    "discover_keys",
    "discover_ods",
    "discover_together",
    "load",
    "maintain_dcs",
    "maintain_inds",
    "profile",
]


def load(
    source: Any,
    *,
    name: str | None = None,
    spark: Any = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[LoadKeywords],
) -> Relation:
    """A table, ready for every discovery: its values as order-preserving integer codes.

    Parameters
    ----------
    source : path or data frame
        A CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
        `spark:db.table`, or a pandas, Polars, Arrow or Spark frame. Local files that fit in memory and frames other
        than Spark's need no Java.
    name : what results call the table; default: the file's name without its ending, or "table".
    spark : SparkSession to read with; default: the active one, else one that is started. It is left as it was found.
    progress : called with the name of each step.
    **options : how it is read
        columns, exclude (names); types (`{"zip": "text"}`, `{"*": "text"}`); null_tokens; rows (the first so many);
        for CSV sep, quote, escape, encoding, header, skip_rows, header_row, skip_footer, decimal, thousands, bad_rows
        ("fail" or "report"); reader ("auto", "arrow" or "spark": what reads a local file); for Spark master, profile,
        conf.

    Raises
    ------
    InputError
        Where the source or an option can't be used: one message with what is allowed.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> table = tw.load(pd.DataFrame({"id": [1, 2, 3], "day": ["2026-01-01", "2026-01-02", None]}), name="visits")
    >>> table.rows, [(c.name, c.type, c.nulls) for c in table.columns]
    (3, [('id', 'integer', 0), ('day', 'text', 1)])
    """
    from tuplewise.engine.options import load_options
    from tuplewise.engine.table.table import load as load_table

    return load_table(source, load_options(options), name=name, spark=spark, progress=progress)


def discover_dcs(
    table: Any,
    *,
    error: float | str | Decimal = 0.0,
    nulls: Nulls = "unknown",
    max_predicates: int | None = None,
    space_from: str | PathLike[str] | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[DcKeywords],
) -> DcResult:
    """The minimal denial constraints that hold in a table.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    error : share of ordered pairs of rows (g1) that may violate a constraint, 0 <= error < 1; with error_measure="lift"
        of those that would by chance, were the columns independent.
        A float is taken as the decimal that it is written as.
    nulls : "unknown" (a null satisfies no predicate) or "value" (equal to itself, lower than every other value)
    max_predicates : constraints of at most so many predicates
    space_from : folder of a state (`maintain_dcs`) that says which rules there are: its columns, types, nulls and
        predicates, and its options of these, which are not given then
    device : "auto", "cpu", "cuda" or "cuda:N". The result is the same on each.
    time_limit : seconds, with those that the table takes to be read (reading is not interrupted); the result is then
        marked `partial`
    progress : called with the stage ("evidence", "inversion" and the like) and the share of it that is done
    **options
        cross_columns (False: compare each column with itself only), single_tuple, order_text, shared_values,
        comparable_means, minimality ("implication" or "subset"), algorithm ("auto", "evidence", "hybrid", "hydra"),
        sample_pairs (estimate g1 from so many random pairs), run_on ("auto", "driver", "spark"),
        memory_limit (bytes), seed.

    Returns
    -------
    DcResult
        With `.constraints`, `.ranked()`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where the table or an option can't be used, or the work would not end.
    DeviceError
        Where a device that was asked for can't be had.

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
    from tuplewise.engine.options import dc_discover_options
    from tuplewise.engine.tasks import TaskRun

    named = {
        "error": error,
        "nulls": nulls,
        "max_predicates": max_predicates,
        "device": device,
        "time_limit": time_limit,
    }
    checked = dc_discover_options({**named, **options})
    run = TaskRun(checked, progress)
    if space_from is None:
        return tasks.discover_dcs(table, checked, run)
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace

    space = KeptSpace.of_state(space_from)
    checked = space.discover_options(checked, given=options)
    return tasks.discover_dcs(table, checked, run, reading=space.load_options(), space=space)


def check(
    table: Any,
    rules: Any,
    *,
    key: str | Sequence[str] | None = None,
    pairs: int = 100,
    nulls: Nulls = "unknown",
    device: str = "auto",
    time_limit: float | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[CheckKeywords],
) -> CheckResult:
    """Whether rules hold in a table, and which pairs of rows violate them.

    Parameters
    ----------
    table : what `load` returns, or anything that `load` reads
    rules : text of a rule (or of several, with `;` between them), a DenialConstraint, what `discover_dcs` returned, a
        `pathlib.Path` of a file of rules, or a list of these
    key : columns that name rows in what is listed, beside their positions
    pairs : violating pairs that are listed of each rule, at most. All are counted, and `.pairs()` lists all.
    nulls : "unknown" (a null satisfies no predicate) or "value" (equal to itself, lower than every other value)
    device : "auto", "cpu", "cuda" or "cuda:N". The result is the same on each.
    time_limit : seconds, with those that the table takes to be read (reading is not interrupted); the result is then
        marked `partial`
    progress : called with the stage ("checking") and the share of it that is done
    **options
        count_only (list no pairs, rank no rows), fail_on (a count, or text as "0.5%": what `.failed` allows),
        rules_syntax ("auto", "holoclean", "desbordante"), together ("auto", "cost", "frequency", "none"), run_on
        ("auto", "driver", "spark"), memory_limit (bytes), seed.

    Returns
    -------
    CheckResult
        With `.holds`, `.violating_pairs`, `.pairs()`, `.rows()`, `.rules`, `.write_pairs()`, `.to_pandas()`,
        `.to_json()`, `.to_csv()`, `.to_sql()`, `.to_dict()`.

    Raises
    ------
    RuleError
        Where a rule can't be read, names an unknown column, or compares what can't be compared.
    InputError
        Where the table or an option can't be used.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> planes = pd.DataFrame({"tail": ["N1", "N1", "N2"], "type": ["A", "B", "B"]})
    >>> found = tw.check(planes, "not(t.tail == u.tail and t.type != u.type)", device="cpu")
    >>> found.holds, found.violating_pairs, found.rows()["row"].tolist()
    (False, 2, [0, 1])
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.options import dc_check_options
    from tuplewise.engine.report.check_result import read_all
    from tuplewise.engine.tasks import TaskRun

    named = {"key": key, "pairs": pairs, "nulls": nulls, "device": device, "time_limit": time_limit}
    checked = dc_check_options({**named, **options})

    def read(columns: Sequence[str]) -> list[DenialConstraint]:
        return read_all(rules, columns, checked.rules_syntax)

    return tasks.check_dcs(table, read, checked, TaskRun(checked, progress))


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
