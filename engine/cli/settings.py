"""The options that commands share, and the option dataclasses that are made from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from tuplewise.engine.cli.parameters import Assignment, Bound, Bytes, ExactDecimal, Names
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DcCheckOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.cli.listing import CheckListing

KERNELS_THREAD = "kernels"

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")
B = TypeVar("B")


@dataclass
class State:
    """How much to say, and whether the process is ours to arrange and end as we like."""

    verbose: int = 0
    quiet: bool = False
    own_process: bool = False


def _set(state_field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that also keeps an option's value in the State, for whoever reports an error."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        setattr(ctx.ensure_object(State), state_field, value)
        return value

    return keep


def together(decorators: list[Callable[[F], F]]) -> Callable[[F], F]:
    return lambda f: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), f)


def input_options(command: F) -> F:
    """How the table is read."""
    option = click.option
    return together(
        [
            option("--columns", type=Names(), metavar="A,B", help="Use these columns only."),
            option("--exclude", type=Names(), metavar="A,B", help="Leave these columns out."),
            option(
                "--types",
                type=Assignment("col=type"),
                multiple=True,
                metavar="COL=TYPE",
                help="Type of a column (`*=TYPE`: of all): integer, decimal, double, date, timestamp, boolean, text.",
            ),
            option(
                "--null-token",
                "null_tokens",
                multiple=True,
                metavar="TEXT",
                help="This text is a null (may be given again).",
            ),
            option("--sep", metavar="CHAR", help="CSV: what separates fields. [default: comma; tab for .tsv]"),
            option("--quote", default='"', metavar="CHAR", show_default=True, help="CSV: quote; empty for none."),
            option("--escape", metavar="CHAR", help="CSV: escape character. [default: none, quotes are doubled]"),
            option("--encoding", default="utf-8", metavar="NAME", show_default=True, help="CSV: character encoding."),
            option(
                "--no-header",
                "header",
                is_flag=True,
                flag_value=False,
                default=True,
                help="CSV: the first line is data.",
            ),
            option(
                "--bad-rows",
                type=click.Choice(["fail", "report"]),
                default="fail",
                show_default=True,
                help="CSV: what rows with too few or too many fields do.",
            ),
            option("--rows", type=int, metavar="N", help="Use the first N rows only."),
            option("--master", metavar="URL", help="Spark master. [default: local, all cores]"),
            option("--profile", metavar="NAME", help="Spark profile."),
            option(
                "--conf",
                type=Assignment("key=value", first=True),
                multiple=True,
                metavar="K=V",
                help="Spark setting (may be given again).",
            ),
        ]
    )(command)


def run_options(nulls: str, help_on_nulls: str) -> Callable[[F], F]:
    """What nulls are by default, and where and how long it runs."""
    option = click.option
    return together(
        [
            option(
                "--nulls",
                type=click.Choice(["unknown", "value"]),
                default=nulls,
                show_default=True,
                help=help_on_nulls,
            ),
            option(
                "--device",
                default="auto",
                metavar="auto|cpu|cuda[:N]",
                show_default=True,
                help="What the kernels run on.",
            ),
            option(
                "--run-on",
                type=click.Choice(["auto", "driver", "spark"]),
                default="auto",
                show_default=True,
                help="Work in this process, or in Spark's tasks.",
            ),
            option("--seed", type=int, default=0, show_default=True, help="Seed of whatever is drawn at random."),
            option(
                "--time-limit",
                type=float,
                metavar="SECONDS",
                help="Stop then, and print what was found (exit 3). Spark's start and reading the table count, but are"
                " not interrupted.",
            ),
            option(
                "--memory-limit", type=Bytes(), metavar="BYTES", help="Stop when this process holds more (512M, 4G)."
            ),
        ]
    )


def output_options(*formats: str) -> Callable[[F], F]:
    """What is written, where, and what is said meanwhile."""
    option = click.option
    return together(
        [
            option("--format", "form", type=click.Choice(formats), help="[default: text on a terminal, else json]"),
            option(
                "-o", "--output", type=click.Path(), metavar="FILE", help="Write to this file, whole or not at all."
            ),
            option("--quiet", is_flag=True, callback=_set("quiet"), help="No progress and no notes on stderr."),
            option("-v", "--verbose", count=True, callback=_set("verbose"), help="Say more; tracebacks with errors."),
        ]
    )


def _sql_options() -> list[Callable[[F], F]]:
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
            "--sql-table", metavar="NAME", help="SQL: the table's name in the database. [default: the loaded one's]"
        ),
    ]


def limit_option(says: str) -> Callable[[F], F]:
    limit = click.IntRange(min=1)
    return click.option("--limit", type=limit, metavar="N", help=f"{says} [default: all; text: 20]")


def error_option(says: str) -> Callable[[F], F]:
    return click.option("--error", type=ExactDecimal(), default="0", metavar="E", show_default=True, help=says)


def dependency_options(context: str, limit: str = "List the first N only.") -> Callable[[F], F]:
    """What discoveries of keys, functional and order dependencies look for and list. `context`: what it is there."""
    option = click.option
    return together(
        [
            error_option("Share of rows that may have to be removed so that a dependency holds (g3)."),
            option("--max-context", type=int, metavar="K", help=f"{context} of at most K columns."),
            option(
                "--algorithm",
                type=click.Choice(["auto", "hybrid", "levelwise"]),
                default="auto",
                show_default=True,
                help="How they are found: by comparing few pairs of rows and checking the rest, or level by level as"
                " HyOD does.",
            ),
            limit_option(limit),
            *_sql_options(),
        ]
    )


def order_check_options(command: F) -> F:
    """Which order dependencies `od check` checks, and against what."""
    option = click.option
    return together(
        [
            option("--od", "ods", multiple=True, metavar="TEXT", help="An order dependency (may be given again)."),
            option(
                "--ods",
                "od_files",
                multiple=True,
                type=click.Path(),
                metavar="FILE",
                help="Order dependencies, one a line, or the JSON of od check (may be given again).",
            ),
            against_option("Instead of TABLE: the JSON that od discover wrote for it, which decides without rows."),
        ]
    )(command)


def against_option(says: str, *, required: bool = False) -> Callable[[F], F]:
    return click.option("--against", type=click.Path(), required=required, metavar="RESULT", help=says)


def refuse_reading_options(why: str, hint: str) -> None:
    """Raise UsageError for options of reading a table that the command line has, where no table is read."""
    context = click.get_current_context()
    given = [
        param.opts[-1]
        for param in context.command.params
        if param.name in LoadOptions.__dataclass_fields__
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{message(f'options of reading a table {why}', ', '.join(given), hint=hint)}.")


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


def discover_options(command: F) -> F:
    """What `dc discover` looks for and lists."""
    option = click.option
    return together(
        [
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
            option(
                "--rank-by",
                type=click.Choice(["succinctness", "coverage", "g1"]),
                help="List best first. [default: order of size; text and --limit: succinctness]",
            ),
            limit_option("List the best N only."),
            *_sql_options(),
        ]
    )(command)


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
            *_sql_options(),
        ]
    )(command)


def load_options_and(kind: type[A], given: Mapping[str, Any]) -> tuple[LoadOptions, A]:
    """How the table is read, and the options of one kind. All faults of both come in one error."""
    fields: Any = kind
    values = {name: given[name] for name in fields.__dataclass_fields__}
    return _both(LoadOptions, _load_values(given), kind, values)


def load_and_check_options(given: Mapping[str, Any], listing: CheckListing) -> tuple[LoadOptions, DcCheckOptions]:
    """Both option sets. All faults of both come in one error. Key columns are loaded where columns are chosen."""
    load = _load_values(given)
    if load["columns"] is not None:
        load["columns"] = (*load["columns"], *(name for name in given["key"] if name not in load["columns"]))
    check = {name: given[name] for name in DcCheckOptions.__dataclass_fields__ if name != "pairs"}
    if listing.explain:
        check["pairs"] = 0
    elif listing.pairs is not None:
        check["pairs"] = listing.pairs
    return _both(LoadOptions, load, DcCheckOptions, check)


def _load_values(given: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: given[name] for name in LoadOptions.__dataclass_fields__}
    values["exclude"] = given["exclude"] or ()
    values["types"] = dict(given["types"])
    values["conf"] = dict(given["conf"])
    return values


def _both(first: type[A], first_values: dict[str, Any], second: type[B], second_values: dict[str, Any]) -> tuple[A, B]:
    made: list[Any] = []
    faults: list[str] = []
    for kind, values in ((first, first_values), (second, second_values)):
        try:
            made.append(kind(**values))
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError("; ".join(faults))
    return made[0], made[1]
