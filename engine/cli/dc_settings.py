"""The options of the commands of denial constraints."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import get_args

import click
from click.core import ParameterSource

from tuplewise.engine.cli.parameters import Bound, ExactDecimal, Names
from tuplewise.engine.cli.settings import (
    F,
    device_option,
    error_measure_option,
    error_option,
    limit_option,
    nulls_option,
    sql_options,
    together,
)
from tuplewise.engine.errors import message
from tuplewise.engine.options import RankBy, StateIndex

NULLS = "A null satisfies no predicate, or is a value equal to itself and lower than all others."


def _rule_options() -> list[Callable[[F], F]]:
    """Which rules there are, and how they are found."""
    option = click.option
    return [
        error_option("Share of ordered pairs (g1) that may violate a constraint."),
        option("--max-predicates", type=int, metavar="K", help="Constraints of at most K predicates."),
        option(
            "--no-cross-columns",
            "cross_columns",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Compare each column with itself only.",
        ),
        option("--single-tuple", is_flag=True, help="Also compare columns within one row."),
        option("--order-text", is_flag=True, help="Give text columns < and > too (by bytes)."),
        option(
            "--shared-values",
            type=ExactDecimal(),
            default="0.3",
            metavar="S",
            show_default=True,
            help="Share of distinct values that columns must have in common to be compared with each other.",
        ),
        option(
            "--comparable-means",
            type=ExactDecimal(),
            default="0.1",
            metavar="S",
            show_default=True,
            help="Ratio of means above which they are compared by order, too.",
        ),
        option(
            "--minimality",
            type=click.Choice(["implication", "subset"]),
            default="implication",
            show_default=True,
            help="Leave out constraints that another one implies, or only supersets.",
        ),
        option(
            "--algorithm",
            type=click.Choice(["auto", "evidence", "hybrid", "hydra"]),
            default="auto",
            show_default=True,
            help="How constraints are found: by comparing all pairs, by comparing few and checking the rest (for"
            " large tables), or as Hydra does.",
        ),
    ]


def discover_options(command: F) -> F:
    """What `dc discover` looks for and lists."""
    option = click.option
    return together(
        [
            *_rule_options(),
            error_measure_option(
                "g1",
                "What --error bounds. g1: share of ordered pairs that violate a constraint (0.001: one pair in 1,000:"
                " then a column with 1,000 values is a key, and hides the rules that it would be a part of). lift:"
                " violating pairs divided by those expected of unrelated columns (0.001: one in 1,000 of them).",
            ),
            option(
                "--sample-pairs",
                type=click.IntRange(min=1),
                metavar="N",
                help="Estimate g1 from N random pairs, with confidence intervals.",
            ),
            option(
                "--space-from",
                type=click.Path(),
                metavar="STATE",
                help="Find the rules that this state (dc init) is about: its columns, types, nulls and predicates.",
            ),
            option("--explain-space", is_flag=True, help="Print the predicate space and stop."),
            *_listing_options(
                "List best first. genuineness: how much more there is to a rule than chance. [default: genuineness in"
                " text, where rules that differ only in operators share a line; elsewhere the order of size, or"
                " succinctness with --limit]"
            ),
        ]
    )(command)


def state_options(command: F) -> F:
    """Which rules a state keeps, and how."""
    option = click.option
    return together(
        [
            option(
                "--key",
                type=Names(),
                default=(),
                metavar="COLS",
                help="Name rows by these columns: no two rows have the same values in them, and none a null."
                " [default: by the ids that the state gives them]",
            ),
            *_rule_options(),
            nulls_option("unknown", NULLS),
            option(
                "--counts",
                is_flag=True,
                help="Keep how many pairs of rows leave each clue; always with --error above 0.",
            ),
            option(
                "--sync",
                is_flag=True,
                help="Hand each revision to the disk before it is done: it survives a loss of power, not a kill alone.",
            ),
            option(
                "--index",
                type=click.Choice(get_args(StateIndex)),
                default="auto",
                show_default=True,
                help="How pairs with a new row are found where rules compare by order: in zones of sorted rows, or by"
                " the published index.",
            ),
            device_option,
        ]
    )(command)


def show_options(command: F) -> F:
    """Which rules `dc show` lists."""
    option = click.option
    number = click.IntRange(min=0)
    return together(
        [
            option("--revision", type=number, metavar="N", help="The rules of revision N. [default: the last one]"),
            option(
                "--since",
                type=number,
                metavar="N",
                help="The rules gained and lost since revision N, and the pair of rows that broke each lost one.",
            ),
            *_listing_options("List best first. [default: order of size; text and --limit: succinctness]"),
        ]
    )(command)


def _listing_options(says: str) -> list[Callable[[F], F]]:
    """Which of the rules that hold are listed, and how."""
    return [
        click.option(
            "--rank-by",
            type=click.Choice(get_args(RankBy)),
            help=says,
        ),
        limit_option("List the best N only."),
        *sql_options(),
    ]


def check_options(command: F) -> F:
    """Which rules `dc check` checks, and what it lists and writes."""
    option = click.option
    return together(
        [
            option("--rule", "rules", multiple=True, metavar="TEXT", help="A rule (may be given again)."),
            option(
                "--rules",
                "rule_files",
                multiple=True,
                type=click.Path(),
                metavar="FILE",
                help="Rules, one a line, or the JSON of dc discover or dc check (may be given again).",
            ),
            option(
                "--rules-syntax",
                type=click.Choice(["auto", "holoclean", "desbordante"]),
                default="auto",
                show_default=True,
                help="How rules are written, where it can't be told from them.",
            ),
            option(
                "--pairs",
                type=click.IntRange(min=0),
                metavar="N",
                help="List at most N violating pairs of each rule. [default: 100; text: 10]",
            ),
            option(
                "--pairs-out",
                type=click.Path(),
                metavar="FILE",
                help="Write all violating pairs: .parquet (a folder, when Spark checks) or .csv.",
            ),
            option(
                "--key", type=Names(), default=(), metavar="A,B", help="Name rows by these columns, not by position."
            ),
            option("--count-only", is_flag=True, help="Count pairs; list none, and rank no rows."),
            option(
                "--fail-on",
                type=Bound(),
                metavar="COUNT|PERCENT%",
                help="Exit with 1 only where more ordered pairs than this violate a rule. [default: 0]",
            ),
            option(
                "--split",
                type=click.Path(),
                metavar="FOLDER",
                help="Write the rows that violate no rule, and the others, to two files in this folder.",
            ),
            option("--explain", is_flag=True, help="Print how each rule is checked instead of its pairs."),
            option(
                "--together",
                type=click.Choice(["auto", "cost", "frequency", "none"]),
                default="auto",
                show_default=True,
                help="How rules that share predicates are checked together.",
            ),
            *sql_options(),
        ]
    )(command)


def refuse_what_a_state_fixes(names: Collection[str]) -> None:
    """Raise UsageError for options with these names that the command line has beside --space-from."""
    context = click.get_current_context()
    given = [
        param.opts[-1]
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        fixed = message("options that the state of --space-from fixes", ", ".join(given), hint="Leave them out")
        raise click.UsageError(f"{fixed}.")


