"""Options of commands, made from their declarations, and option objects made from a command's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar, get_origin, overload

import click

from tuplewise.engine.cli.parameters import Assignment, Bytes, Names
from tuplewise.engine.errors import InputError, Wording, command_line_option
from tuplewise.engine.options import (
    LoadOptions,
    Option,
    Options,
    RunOptions,
    declarations,
    raise_faults,
)

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=Options)
B = TypeVar("B", bound=Options)
C = TypeVar("C", bound=Options)
READING = frozenset(declarations(LoadOptions))
OF_THE_ROWS = READING - {"columns", "exclude", "types", "null_tokens", "rows"}
"""The options of reading that a file of rows for a state may need: columns, types and nulls are the state's."""


@dataclass
class Invocation:
    """Invocation of a command: its level of output, and whether the process is ours alone (`own_process`)."""

    verbose: int = 0
    quiet: bool = False
    own_process: bool = False


def options(*kinds: type[Options], only: Collection[str] | None = None) -> Callable[[F], F]:
    """The options that dataclasses declare, for a command: the task's, then how it runs, then how tables are read.

    `only`: the names of the options to take.
    """
    found = {name: declared for kind in kinds for name, declared in declarations(kind).items()}
    places = declarations(RunOptions)
    names = [name for name in found if only is None or name in only]
    names.sort(key=lambda name: [name in READING, name in places, name in ("dialect", "sql_table")])
    return _together([_click_option(found[name]) for name in names])


def _together(decorators: list[Any]) -> Callable[[F], F]:
    return lambda command: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


class DeclaredOption(click.Option):
    """An option of a command, made from its declaration."""

    def __init__(self, *names: Any, declared: Option, **more: Any) -> None:
        super().__init__(*names, **more)
        self.declared = declared


def _click_option(declared: Option) -> Callable[[F], F]:
    """One option. Its value is None or empty unless given: the declaration has the default."""
    more: dict[str, Any] = {"type": _type(declared), "metavar": declared.metavar}
    if declared.type is bool:
        more = {"is_flag": True, "flag_value": not declared.default}
    elif declared.each or isinstance(more["type"], Assignment):
        more["multiple"] = True
    more |= {"default": None, "help": _help(declared, again="multiple" in more)}
    return click.option(declared.spelled, declared.name, cls=DeclaredOption, declared=declared, **more)


def _help(declared: Option, again: bool) -> str:
    """The help of an option, with the spelling of the command line, and its default if it has one."""
    text = Wording(declared.off or declared.help).spelled(command_line_option)
    plain = isinstance(declared.default, (str, int, Decimal)) and declared.type is not bool
    default = declared.default_is or (str(declared.default) if plain else "")
    return text + " May be given again." * again + f" [default: {default}]" * bool(default)


def _type(declared: Option) -> Any:
    """The type that reads the text of the command line. The declaration reads what stays text."""
    if declared.choices:
        return click.Choice(declared.choices)
    kind = get_origin(declared.type) or declared.type
    if kind is Mapping:
        return Assignment(str(declared.metavar).lower(), first=not declared.last_equals)
    if kind is tuple:
        return str if declared.each else Names()
    if declared.metavar == "BYTES":
        return Bytes()
    return kind if kind in (int, float) else str


def given_of(given: Mapping[str, Any], kind: type[Options], among: Collection[str] | None = None) -> list[str]:
    """The options of a kind that are on the command line, spelled as there. `among`: the ones to look for."""
    found = declarations(kind)
    return [found[n].spelled for n in found if (among is None or n in among) and _is_given(given.get(n))]


def _is_given(value: Any) -> bool:
    return value is not None and value != ()


@overload
def made(given: Mapping[str, Any], first: type[A], /) -> tuple[A]: ...
@overload
def made(given: Mapping[str, Any], first: type[A], second: type[B], /) -> tuple[A, B]: ...
@overload
def made(given: Mapping[str, Any], first: type[A], second: type[B], third: type[C], /) -> tuple[A, B, C]: ...
def made(given: Mapping[str, Any], *kinds: type[Any]) -> tuple[Any, ...]:
    """Option objects of several kinds from a command's arguments. One error lists all faults."""
    found, faults = [], []
    for kind in kinds:
        values = {name: given[name] for name in kind.__dataclass_fields__ if _is_given(given.get(name))}
        try:
            found.append(kind(**values))
        except InputError as error:
            faults.append(error.wording)
    raise_faults(faults)
    return tuple(found)


def with_key(reading: LoadOptions, key: Collection[str]) -> LoadOptions:
    """Reading options that read the columns of a key as well, where columns are chosen."""
    if reading.columns is None:
        return reading
    return replace(reading, columns=(*reading.columns, *(name for name in key if name not in reading.columns)))


def _set(field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that stores an option's value in the Invocation, for the report of errors."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        setattr(ctx.ensure_object(Invocation), field, value)
        return value

    return keep


def output_options(*formats: str) -> Callable[[F], F]:
    """Options of output: format, where there are several, file, and messages. A command gets the Invocation first."""
    option = click.option
    chosen = []
    page = "html for FILE.html, " if "html" in formats else ""
    if formats:
        default = f"[default: text on a terminal, {page}else json]"
        chosen = [option("--format", "form", type=click.Choice(formats), help=default)]
    return _together(
        [
            *chosen,
            option("-o", "--output", metavar="FILE", help="Write to this file, whole or not at all."),
            option("--quiet", is_flag=True, callback=_set("quiet"), help="No progress and no notes on stderr."),
            option("-v", "--verbose", count=True, callback=_set("verbose"), help="Say more; tracebacks with errors."),
            click.pass_obj,
        ]
    )
