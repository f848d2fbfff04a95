"""The options of the commands of inclusion dependencies."""

from __future__ import annotations

from collections.abc import Callable

import click

from tuplewise.engine.cli.parameters import Assignment
from tuplewise.engine.cli.settings import F, error_option, limit_option, together


def ind_discover_options(command: F) -> F:
    """What `ind discover` looks for and lists."""
    arity = click.IntRange(min=1)
    return together(
        [
            *_ind_options(),
            click.option(
                "--max-arity", type=arity, default=1, metavar="K", show_default=True, help="At most K columns a side."
            ),
            limit_option("List the best N only, by their foreign-key score."),
        ]
    )(command)


def ind_check_options(command: F) -> F:
    """Which inclusion dependencies `ind check` checks, and what it lists."""
    option = click.option
    return together(
        [
            option("--ind", "inds", multiple=True, metavar="TEXT", help="A dependency (may be given again)."),
            option(
                "--inds",
                "ind_files",
                multiple=True,
                type=click.Path(),
                metavar="FILE",
                help="Dependencies, one a line, or the JSON of ind discover or ind check (may be given again).",
            ),
            option(
                "--examples",
                type=click.IntRange(min=0),
                default=10,
                metavar="N",
                show_default=True,
                help="List at most N missing values of each.",
            ),
            *_ind_options(),
        ]
    )(command)


def _ind_options() -> list[Callable[[F], F]]:
    option = click.option
    return [
        error_option("Share of the distinct values of the dependent side that may be missing."),
        option("--as-text", is_flag=True, help="Compare all values as the text that they are written as."),
        *_ind_sql_options(),
    ]


def ind_show_options(command: F) -> F:
    """What `ind show` lists."""
    return together([limit_option("List the best N only, by their foreign-key score."), *_ind_sql_options()])(command)


def _ind_sql_options() -> list[Callable[[F], F]]:
    option = click.option
    return [
        option(
            "--dialect",
            type=click.Choice(["spark", "duckdb", "ansi"]),
            default="spark",
            show_default=True,
            help="SQL: dialect.",
        ),
        option(
            "--sql-table",
            "sql_tables",
            type=Assignment("table=name", first=True),
            multiple=True,
            metavar="TABLE=NAME",
            help="SQL: a table's name in the database (may be given again). [default: the loaded ones']",
        ),
    ]
