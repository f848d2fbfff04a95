"""The options that commands share, and the option dataclasses that are made from them."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import click

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions, LoadOptions, RankBy

KERNELS_THREAD = "kernels"

F = TypeVar("F", bound=Callable[..., Any])
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass
class State:
    """How much to say, and whether the process is ours to arrange and end as we like."""

    verbose: int = 0
    quiet: bool = False
    own_process: bool = False


class ExactDecimal(click.ParamType):  # type: ignore[type-arg]
    """A decimal number, kept exactly as it is written."""

    name = "decimal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            number = Decimal(value)
        except (InvalidOperation, TypeError, ValueError):
            self.fail(f"{value!r} is not a decimal number such as 0.01", param, ctx)
        if not number.is_finite():
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Bytes(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 500000000, 512M, 4G (binary units)."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", str(value), re.IGNORECASE | re.ASCII)
        if match is None:
            self.fail(f"{value!r} is not a size such as 500000000, 512M or 4G", param, ctx)
        return int(Decimal(match[1]) * _UNITS[match[2].lower()])


class Names(click.ParamType):  # type: ignore[type-arg]
    """Column names with commas between them; a name that holds a comma stands in double quotes."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        try:
            rows = list(csv.reader([value], strict=True, skipinitialspace=True))
        except csv.Error as error:
            self.fail(f"{value!r} is not a list of names: {error}", param, ctx)
        names = tuple(rows[0]) if rows else ()
        if not names:
            self.fail("no name is given", param, ctx)
        return names


class Assignment(click.ParamType):  # type: ignore[type-arg]
    """`name=value`; what is before the last `=` (the first, where `first` is set) is the name."""

    name = "name=value"

    def __init__(self, example: str, first: bool = False) -> None:
        self._example, self._first = example, first

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, given = value.partition("=") if self._first else value.rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not of the form {self._example}", param, ctx)
        return name, given


def _set(state_field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that also keeps an option's value in the State, for whoever reports an error."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        setattr(ctx.ensure_object(State), state_field, value)
        return value

    return keep


def _together(decorators: list[Callable[[F], F]]) -> Callable[[F], F]:
    return lambda f: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), f)


def input_options(command: F) -> F:
    """How the table is read."""
    option = click.option
    return _together(
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


def run_options(command: F) -> F:
    """Where and how long it runs."""
    option = click.option
    return _together(
        [
            option(
                "--nulls",
                type=click.Choice(["unknown", "value"]),
                default="unknown",
                show_default=True,
                help="A null satisfies no predicate, or is a value equal to itself and lower than all others.",
            ),
            option(
                "--device",
                default="auto",
                metavar="auto|cpu|cuda[:N]",
                show_default=True,
                help="What the kernels run on.",
            ),
            option("--seed", type=int, default=0, show_default=True, help="Seed of whatever is drawn at random."),
            option("--time-limit", type=float, metavar="SECONDS", help="Stop then, and print what was found (exit 3)."),
            option(
                "--memory-limit", type=Bytes(), metavar="BYTES", help="Stop when this process holds more (512M, 4G)."
            ),
        ]
    )(command)


def output_options(*formats: str) -> Callable[[F], F]:
    """What is written, where, and what is said meanwhile."""
    option = click.option
    return _together(
        [
            option("--format", "form", type=click.Choice(formats), help="[default: text on a terminal, else json]"),
            option(
                "-o", "--output", type=click.Path(), metavar="FILE", help="Write to this file, whole or not at all."
            ),
            option("--quiet", is_flag=True, callback=_set("quiet"), help="No progress and no notes on stderr."),
            option("-v", "--verbose", count=True, callback=_set("verbose"), help="Say more; tracebacks with errors."),
        ]
    )


def discover_options(command: F) -> F:
    """What `dc discover` looks for and lists."""
    option = click.option
    return _together(
        [
            option(
                "--error",
                type=ExactDecimal(),
                default="0",
                metavar="E",
                show_default=True,
                help="Share of ordered pairs (g1) that may violate a constraint.",
            ),
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
                type=click.Choice(["auto", "evidence"]),
                default="auto",
                show_default=True,
                help="How constraints are found.",
            ),
            option("--explain-space", is_flag=True, help="Print the predicate space and stop."),
            option(
                "--rank-by",
                type=click.Choice(["succinctness", "coverage", "g1"]),
                help="List best first. [default: order of size; text and --limit: succinctness]",
            ),
            option(
                "--limit",
                type=click.IntRange(min=1),
                metavar="N",
                help="List the best N only. [default: all; text: 20]",
            ),
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
    )(command)


@dataclass(frozen=True)
class Listing:
    """What is written, and where to."""

    form: str | None
    output: str | None
    rank_by: RankBy | None = None
    limit: int | None = None
    dialect: str = "spark"
    sql_table: str | None = None


def load_and_discover_options(given: Mapping[str, Any]) -> tuple[LoadOptions, DcDiscoverOptions]:
    """Both option sets. All faults of both come in one error."""
    load = {
        name: given[name]
        for name in (
            "columns",
            "null_tokens",
            "sep",
            "quote",
            "escape",
            "encoding",
            "header",
            "bad_rows",
            "rows",
            "master",
            "profile",
        )
    }
    load["exclude"] = given["exclude"] or ()
    load["types"] = dict(given["types"])
    load["conf"] = dict(given["conf"])
    discover = {name: given[name] for name in DcDiscoverOptions.__dataclass_fields__}
    made: list[Any] = []
    faults: list[str] = []
    for kind, values in ((LoadOptions, load), (DcDiscoverOptions, discover)):
        try:
            made.append(kind(**values))
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError("; ".join(faults))
    return made[0], made[1]
