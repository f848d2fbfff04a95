"""The public functions of contracts; `tuplewise` hands them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import ContractCheckOptions, ContractExportOptions, ProfileOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from tuplewise.engine.contract.diff_result import DiffResult
    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.options import ContractExportKeywords, ContractKeywords, ProfileKeywords


@takes(ContractCheckOptions)
def check_contract(
    tables: Any,
    contract: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[ContractKeywords],
) -> ContractResult:
    """Check whether tables keep the accepted rules of a contract.

    Parameters
    ----------
    tables : a table, a list of tables, or tables by their names in the contract
        Each is a path, a frame, or what `load` returns. None: the contract's own tables, read from their paths in it.
    contract : path of its file
    progress : called with the stage and the share of it that is done

    Returns
    -------
    ContractResult
        With `.failed`, `.rules`, `.columns`, `.to_pandas()`, `.to_json()`, `.to_csv()`, `.to_junit()`, `.to_html()`,
        `.to_text()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where the contract, a table or an option can't be used.
    RuleError
        Where a rule can't be read, or can't be bound to the table.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pathlib, tempfile, pandas as pd, tuplewise as tw
    >>> text = "tuplewise_contract: 1\\ntables: {t: }\\nrules:\\n- {id: city, kind: fd, rule: zip -> city}"
    >>> file = pathlib.Path(tempfile.mkdtemp(), "rules.yaml")
    >>> count = file.write_text(text)
    >>> found = tw.check_contract(pd.DataFrame({"zip": [1, 1], "city": ["A", "B"]}), file)
    >>> found.failed, found.rules[0]["exceptions"]
    (True, 1)
    """
    from tuplewise.engine import tasks
    from tuplewise.engine.contract.file import read_contract

    checked = ContractCheckOptions.of("check_contract", options)
    return tasks.check_contract(tables, read_contract(contract), checked, tasks.TaskRun(checked, progress))


@takes(ProfileOptions)
def diff(
    a: Any,
    b: Any,
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Unpack[ProfileKeywords],
) -> DiffResult:
    """Compare two tables, two contracts or two results, or a contract with a table.

    Two tables are profiled. Rules that one of the profiles lists are then counted in both tables.

    Parameters
    ----------
    a, b : tables, contracts or results
        A table is a path, a frame, or what `load` returns. A contract is the path of its file. A result is what a
        function of `tuplewise` returned, or the path of its JSON.
    progress : called with the stage and the share of it that is done

    Returns
    -------
    DiffResult
        With `.lost`, `.gained`, `.weaker`, `.stronger`, `.changed`, `.columns`, `.differs`, `.regressed`, `.to_json()`,
        `.to_html()`, `.to_text()`, `.to_dict()`.

    Raises
    ------
    InputError
        Where `a` or `b` can't be used, or the two can't be compared.
    DeviceError
        Where a device that was asked for can't be had.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> old = tw.discover_fds(pd.DataFrame({"zip": [1, 1, 2], "city": ["A", "A", "B"]}))
    >>> new = tw.discover_fds(pd.DataFrame({"zip": [1, 1, 2], "city": ["A", "C", "B"]}))
    >>> [one["rule"] for one in tw.diff(old, new).lost]
    ['zip -> city']
    """
    from tuplewise.engine import tasks

    profiled = ProfileOptions.of("diff", options)
    return tasks.diff(a, b, profiled, tasks.TaskRun(profiled, progress))


@takes(ContractExportOptions)
def export_contract(contract: Any, to: str, **options: Unpack[ContractExportKeywords]) -> str:
    """Write the accepted rules of a contract for another tool.

    Parameters
    ----------
    contract : path of its file
    to : what it is written for
        "gx": an expectation suite of Great Expectations. "pandera", "pandera-polars": a Python module that defines a
        schema. "dbt": tests of models, with a line before each file that names it. "deequ", "pydeequ": checks.
        "soda": SodaCL. "sql": constraints, and queries for the rest. "spark": Python functions that give the rows that
        break a rule. "frictionless": a data package. "schema": the JSON Schema of contracts.

    Returns
    -------
    str
        The content of the file. A rule that the tool can't express exactly is left out; the text says which and why.

    Raises
    ------
    InputError
        Where the contract, the target, the table or the dialect can't be used.
    RuleError
        Where a rule can't be read, or compares a column with a constant of another type.

    Examples
    --------
    >>> import pathlib, tempfile, tuplewise as tw
    >>> text = "tuplewise_contract: 1\\ntables: {t: }\\nrules:\\n- {id: named, kind: not_null, rule: name is not null}"
    >>> file = pathlib.Path(tempfile.mkdtemp(), "rules.yaml")
    >>> count = file.write_text(text)
    >>> print(tw.export_contract(file, "pandera").splitlines()[-4].strip())
    'name': pa.Column(nullable=False),
    """
    from tuplewise.engine.contract.exports import export
    from tuplewise.engine.contract.file import read_contract

    chosen = ContractExportOptions.of("export_contract", options)
    return export(read_contract(contract), to, chosen.table, chosen.dialect).text


def import_contract(source: Any, source_format: str) -> str:
    """Make a new contract of another tool's rules. All of them are proposed.

    Parameters
    ----------
    source : path of a file, or an object of the other library
    source_format : what it is
        "pandera": a DataFrameSchema, or the YAML of one. "frictionless": a Table Schema or a data package. "dbt": the
        YAML of models and their tests. "sql": CREATE TABLE and its like.

    Returns
    -------
    str
        The content of the file. Comments at its end say what was not read.

    Raises
    ------
    InputError
        Where the source can't be read as this format.

    Examples
    --------
    >>> import tuplewise as tw
    >>> schema = {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0}}]}
    >>> [line.strip() for line in tw.import_contract(schema, "frictionless").splitlines() if "rule:" in line]
    ['rule: age >= 0']
    """
    from tuplewise.engine.contract.imports import read, text_of

    return text_of(read(source, source_format))
