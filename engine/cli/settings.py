"""Options of commands, made of their declarations, and the declared options made of what a command was given."""

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
class State:
    """How much to say, and whether the process is ours to arrange and end as we like."""

    verbose: int = 0
    quiet: bool = False
    own_process: bool = False


def options(*kinds: type[Options], only: Collection[str] | None = None) -> Callable[[F], F]:
    """What dataclasses declare, as options of a command: the task's, then how it runs, then how tables are read.

    `only`: these of them.
    """
    found = {name: declared for kind in kinds for name, declared in declarations(kind).items()}
    places = declarations(RunOptions)
    names = [name for name in found if only is None or name in only]
    names.sort(key=lambda name: [name in READING, name in places, name in ("dialect", "sql_table")])
    return _together([_click_option(found[name]) for name in names])


def _together(decorators: list[Callable[[F], F]]) -> Callable[[F], F]:
    return lambda command: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


class DeclaredOption(click.Option):
    """An option of a command that is made of its declaration."""

    def __init__(self, *names: Any, declared: Option, **more: Any) -> None:
        super().__init__(*names, **more)
        self.declared = declared


def _click_option(declared: Option) -> Callable[[F], F]:
    """One option. Its value is None, or empty, where it isn't given: its default is told by the declaration."""
    more: dict[str, Any] = {"type": _type(declared), "metavar": declared.metavar}
    if declared.type is bool:
        more = {"is_flag": True, "flag_value": not declared.default}
    elif declared.each or isinstance(more["type"], Assignment):
        more["multiple"] = True
    more |= {"default": None, "help": _help(declared, again="multiple" in more)}
    return click.option(declared.spelled, declared.name, cls=DeclaredOption, declared=declared, **more)


def _help(declared: Option, again: bool) -> str:
    """What it does, with names of options as the command line spells them, and its default where there is one."""
    text = Wording(declared.off or declared.help).spelled(command_line_option)
    plain = isinstance(declared.default, (str, int, Decimal)) and declared.type is not bool
    default = declared.default_is or (str(declared.default) if plain else "")
    return text + " May be given again." * again + f" [default: {default}]" * bool(default)


def _type(declared: Option) -> Any:
    """How the text of the command line is read. What is left a text is read by the declaration."""
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
    """The options of a kind that the command line has, as it spells them. `among`: of these."""
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
    """Options of several kinds of what a command was given. All their faults come in one error."""
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
    """Where columns are chosen, those of a key are read too."""
    if reading.columns is None:
        return reading
    return replace(reading, columns=(*reading.columns, *(name for name in key if name not in reading.columns)))


def _set(state_field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that also keeps an option's value in the State, for whoever reports an error."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        setattr(ctx.ensure_object(State), state_field, value)
        return value

    return keep


def output_options(*formats: str) -> Callable[[F], F]:
    """What is written, where, and what is said meanwhile."""
    option = click.option
    page = "html for FILE.html, " if "html" in formats else ""
    default = f"[default: text on a terminal, {page}else json]"
    return _together(
        [
            option("--format", "form", type=click.Choice(formats), help=default),
            option("-o", "--output", metavar="FILE", help="Write to this file, whole or not at all."),
            option("--quiet", is_flag=True, callback=_set("quiet"), help="No progress and no notes on stderr."),
            option("-v", "--verbose", count=True, callback=_set("verbose"), help="Say more; tracebacks with errors."),
        ]
    )
