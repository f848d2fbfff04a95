"""What Python functions say of the options that they take, made of the declarations: signature and docstring."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, TypeVar, get_origin

from tuplewise.engine.errors import Wording
from tuplewise.engine.options.option import Option, Options, declarations

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: dict[Any, str] = {
    bool: "bool", int: "int", float: "seconds", Decimal: "number", str: "str", tuple: "names", Mapping: "mapping",
}  # fmt: skip


def takes(*kinds: type[Options], only: Collection[str] | None = None) -> Callable[[F], F]:
    """Say what the `**options` of a function are: those that dataclasses declare. `only`: these of them."""

    def telling(function: F) -> F:
        found = {name: declared for kind in kinds for name, declared in declarations(kind).items()}
        taken = [declared for name, declared in found.items() if only is None or name in only]
        doc = inspect.cleandoc(function.__doc__ or "")
        section = "\n".join(["Other Parameters", "----------------", *map(_described, taken)])
        function.__doc__ = doc.replace("Returns\n-------", f"{section}\n\nReturns\n-------", 1)
        more: Any = function
        more.__signature__, more.options = _signature(function, taken), taken
        return function

    return telling


def type_of(declared: Option) -> str:
    """The type of an option in words."""
    if declared.choices:
        return " or ".join(map(repr, declared.choices))
    return _TYPES.get(get_origin(declared.type) or declared.type, "int or str")


def help_of(declared: Option) -> str:
    """What an option does, as Python spells the options that it names."""
    return Wording(declared.help).spelled(lambda name, value: f"`{name}`")


def default_of(declared: Option) -> str:
    """What an option is by default, in words; the value where it says so itself."""
    value = declared.default
    if value is None or value in ((), {}):
        return declared.default_is or ("None" if value is None else "none")
    return str(value) if isinstance(value, Decimal) else repr(value)


def _described(declared: Option) -> str:
    text = textwrap.fill(help_of(declared), 114, initial_indent="    ", subsequent_indent="    ")
    return f"{declared.name} : {type_of(declared)}, default {default_of(declared)}\n{text}"


def _signature(function: Callable[..., Any], taken: list[Option]) -> inspect.Signature:
    """The signature with each option by its name, for editors that ask a running Python."""
    kept = inspect.signature(function)
    parameters = [p for p in kept.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(d.name, keyword, default=d.default) for d in taken]
    return kept.replace(parameters=parameters)
