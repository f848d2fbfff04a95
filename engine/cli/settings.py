"""The options that commands share, and the option dataclasses that are made from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from tuplewise.engine.cli.parameters import Assignment, Bytes, ExactDecimal, Names
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DcCheckOptions, DependencyRankBy, ErrorMeasure, LoadOptions
from tuplewise.engine.options.faults import raise_faults
from tuplewise.engine.options.loading import READERS

if TYPE_CHECKING:
    from tuplewise.engine.cli.listing import CheckListing

_OF_ROWS = frozenset(
    (
        "--sep", "--quote", "--escape", "--encoding", "--no-header", "--skip-rows", "--header-row", "--skip-footer",
        "--decimal", "--thousands", "--bad-rows", "--reader", "--master", "--profile", "--conf",
    )
)  # fmt: skip

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
            option("--skip-rows", type=int, default=0, metavar="N", help="CSV: pass over the first N lines."),
            option("--header-row", type=int, metavar="N", help="CSV: the header is on line N (from 1)."),
            option("--skip-footer", type=int, default=0, metavar="N", help="CSV: the last N records are no rows."),
            option(
                "--decimal", default=".", metavar="CHAR", show_default=True, help="CSV: decimal character of numbers."
            ),
            option("--thousands", metavar="CHAR", help="CSV: what groups the digits of numbers. [default: nothing]"),
            option(
                "--bad-rows",
                type=click.Choice(["fail", "report"]),
                default="fail",
                show_default=True,
                help="CSV: what rows with too few or too many fields do.",
            ),
            option("--rows", type=int, metavar="N", help="Use the first N rows only."),
            option(
                "--reader",
                type=click.Choice(READERS),
                default="auto",
                show_default=True,
                help="What reads the table: Arrow in this process, or Spark (auto: Arrow where it fits in memory).",
            ),
            spark_options,
        ]
    )(command)


def spark_options(command: F) -> F:
    """Which Spark is used, and how it is set."""
    option = click.option
    return together(
        [
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


def reading_options(command: F) -> F:
    """The options of reading that a file of rows for a state may need: columns, types and nulls are the state's."""

    @input_options
    def all_of_them() -> None:
        """Carries the options."""

    kept = [p for p in all_of_them.__click_params__ if _OF_ROWS & set(p.opts)]  # type: ignore[attr-defined]
    params = command.__dict__.setdefault("__click_params__", [])
    params.extend(kept)
    return command


def device_option(command: F) -> F:
    """What kernels run on."""
    says = "What the kernels run on."
    return click.option("--device", default="auto", metavar="auto|cpu|cuda[:N]", show_default=True, help=says)(command)


def nulls_option(nulls: str, says: str) -> Callable[[F], F]:
    """What nulls are by default."""
    kinds = click.Choice(["unknown", "value"])
    return click.option("--nulls", type=kinds, default=nulls, show_default=True, help=says)


def run_options(nulls: str, help_on_nulls: str) -> Callable[[F], F]:
    """What nulls are by default, and where and how long it runs."""
    option = click.option
    return together(
        [
            nulls_option(nulls, help_on_nulls),
            device_option,
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
    page = "html for FILE.html, " if "html" in formats else ""
    default = f"[default: text on a terminal, {page}else json]"
    return together(
        [
            option("--format", "form", type=click.Choice(formats), help=default),
            option(
                "-o", "--output", type=click.Path(), metavar="FILE", help="Write to this file, whole or not at all."
            ),
            option("--quiet", is_flag=True, callback=_set("quiet"), help="No progress and no notes on stderr."),
            option("-v", "--verbose", count=True, callback=_set("verbose"), help="Say more; tracebacks with errors."),
        ]
    )


def sql_options() -> list[Callable[[F], F]]:
    """How queries are written."""
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


def error_measure_option(default: str, says: str) -> Callable[[F], F]:
    return click.option(
        "--error-measure", type=click.Choice(get_args(ErrorMeasure)), default=default, show_default=True, help=says
    )


def dependency_options(context: str, limit: str = "List the first N only.") -> Callable[[F], F]:
    """What discoveries of keys, functional and order dependencies look for and list. `context`: what it is there."""
    option = click.option
    return together(
        [
            error_option("Error that a dependency may have, by --error-measure."),
            error_measure_option(
                "g3",
                "What --error bounds. g3: share of rows to remove so that it holds (0.01: one row in 100 may be wrong,"
                " and a column that repeats one value in 100 is a key, and hides the rules that it would be a part of)."
                " g1: share of ordered pairs that violate it. lift: violating pairs divided by those expected of"
                " unrelated columns (0.01: one in 100 of them). mu: 1 - mu+, which counts rows instead of pairs;"
                " results show mu+ (fd discover only).",
            ),
            option("--max-context", type=int, metavar="K", help=f"{context} of at most K columns."),
            option(
                "--algorithm",
                type=click.Choice(["auto", "hybrid", "levelwise"]),
                default="auto",
                show_default=True,
                help="How they are found: by comparing few pairs of rows and checking the rest, or level by level as"
                " HyOD does.",
            ),
            click.option(
                "--rank-by",
                type=click.Choice(get_args(DependencyRankBy)),
                help="genuineness: how much more there is to it than chance, best first. size: by columns and their"
                " positions. [default: size; text: genuineness]",
            ),
            limit_option(limit),
            *sql_options(),
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


def reading_of(given: Mapping[str, Any]) -> LoadOptions:
    """How a file of rows is read, from what `reading_options` has."""
    reading = {name: value for name, value in given.items() if name in LoadOptions.__dataclass_fields__}
    return LoadOptions(**{**reading, "conf": dict(given["conf"])})


def load_options_of(given: Mapping[str, Any]) -> LoadOptions:
    """How a table is read, where nothing else is asked for with it."""
    return LoadOptions(**_load_values(given))


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
            faults.append(error.wording)
    raise_faults(faults)
    return made[0], made[1]
