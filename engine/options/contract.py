"""What the check of a contract can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from tuplewise.engine.options.common import RunKeywords, RunOptions
from tuplewise.engine.options.option import Options, option

SqlDialect = Literal["spark", "duckdb", "postgres", "ansi"]


@dataclass(frozen=True, kw_only=True)
class ContractCheckOptions(RunOptions):
    """How the accepted rules of a contract are checked, and what fails beside them."""

    sample: int | None = option(
        None, "Check so many random rows of each table. A rule that holds in them may be broken in others.",
        least=1, metavar="N", default_is="all rows",
    )
    fail_on_new_columns: bool = option(False, "The check fails where a table has columns that the contract lacks.")
    examples: int = option(5, "Most rows or pairs that are listed of each violated rule.", least=0, metavar="N")


class ContractKeywords(RunKeywords, total=False):
    """ContractCheckOptions, for editors."""

    sample: int | None
    fail_on_new_columns: bool
    examples: int


@dataclass(frozen=True, kw_only=True)
class ContractExportOptions(Options):
    """What of a contract is exported, and how."""

    table: str | None = option(None, "The rules of this table alone.", metavar="NAME", default_is="all tables")
    dialect: SqlDialect = option("spark", "sql, dbt, soda: the dialect of SQL.")


class ContractExportKeywords(TypedDict, total=False):
    """ContractExportOptions, for editors."""

    table: str | None
    dialect: SqlDialect
