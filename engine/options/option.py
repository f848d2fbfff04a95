"""One declaration of an option, and the frozen dataclasses that are made of such declarations.

A field that is given `option(...)` is an option. Its annotation is the option's type; the call holds all else that the
command line, the Python functions and the page of reference say of it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from numbers import Real
from operator import index
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from tuplewise.engine.errors import InputError, joined, message, near_names

O = TypeVar("O", bound="Options")  # noqa: E741


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of an option.

    Attributes
    ----------
    help : what it does, the template of a `Wording`: an option in braces, `{error}`, is spelled by who shows it
    off : what it does where it is on by default, and the command line switches it off
    least, most, below : bounds of a number
    check : whether a text can be taken
    allowed : what an error says is allowed, where it is not told by type and bounds
    by_task : the task says itself which of the choices it takes
    unique : each name may stand once
    metavar : what stands for the value on the command line
    default_is : what the default comes to, where the value itself does not say so
    each : the name on the command line of an option that takes one of several texts and may be given again
    last_equals : of name=value, the name is what stands before the last `=`, not before the first
    fixed : it says which rules, columns or values there are, so that a state fixes it when it is built
    name, type, nullable, default : what the field itself says; `nullable`: None is a value
    """

    help: str
    off: str | None = None
    least: int | None = None
    most: int | None = None
    below: int | None = None
    check: Callable[[Any], bool] | None = None
    allowed: str | None = None
    by_task: bool = False
    unique: bool = False
    metavar: str | None = None
    default_is: str | None = None
    each: str | None = None
    last_equals: bool = False
    fixed: bool = False
    name: str = ""
    type: Any = None
    nullable: bool = False
    default: Any = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that can be taken, where these are counted."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def spelled(self) -> str:
        """The name on the command line."""
        no = "no-" if self.type is bool and self.default is True else ""
        return f"--{no}{self.each or self.name.replace('_', '-')}"

    def taken(self, value: Any) -> Any:
        """The value as it is kept. Raises InputError where it can't be taken."""
        if value is None and self.nullable:
            return None
        return _TAKEN[self._kind](self, value)

    @property
    def _kind(self) -> Any:
        kind = get_origin(self.type) or self.type
        return kind if kind in _TAKEN else object

    def refuse(self, value: Any, allowed: str) -> InputError:
        """The error for a value that can't be taken."""
        return InputError(message(self.name, "None" if value is None else value, self.allowed or allowed))

    @property
    def bounds(self) -> str:
        """The numbers that can be taken, in words."""
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"

    def within(self, number: Any) -> bool:
        """Whether a number is within the bounds."""
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )


def option(default: Any, help: str, **more: Any) -> Any:
    """A field of a dataclass of options. `more`: the other attributes of `Option`; a dict as default is made anew."""
    declared = {"option": Option(help=help, **more)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=declared)
    return field(default=default, metadata=declared)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of one kind: each is checked by its declaration, and all faults come in one error."""

    def __post_init__(self) -> None:
        faults = []
        for name, declared in declarations(type(self)).items():
            try:
                value = declared.taken(getattr(self, name))
            except InputError as fault:
                faults.append(fault.wording)
                value = declared.default  # so that the others can be looked at together
            object.__setattr__(self, name, value)
        raise_faults(faults + self.faults())

    def faults(self) -> list[str]:
        """What is wrong with options together, or with one in this task alone."""
        return []

    @classmethod
    def of(cls, function: str, given: Mapping[str, Any]) -> Self:
        """From the keyword arguments of a function. Raises TypeError for one that is no option, with near names."""
        refuse_unknown(function, declarations(cls), given)
        return cls(**given)

    def part(self, kind: type[O], **more: Any) -> O:
        """Options of another kind, with the values that they have here."""
        shared = declarations(kind).keys() & declarations(type(self)).keys()
        return kind(**{name: getattr(self, name) for name in shared}, **more)


def declarations(kind: type) -> Mapping[str, Option]:
    """The options that a dataclass declares, by name and in its order."""
    if kind not in _DECLARED:
        hints = get_type_hints(kind)
        declared = (_declared(one, hints[one.name]) for one in fields(kind) if "option" in one.metadata)
        _DECLARED[kind] = {found.name: found for found in declared}
    return _DECLARED[kind]


_DECLARED: dict[type, dict[str, Option]] = {}


def _declared(one: Field[Any], hint: Any) -> Option:
    """The declaration of a field, with what its name, its annotation and its default say."""
    nullable = get_origin(hint) in (Union, types.UnionType)
    if nullable:
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    default = one.default_factory() if callable(one.default_factory) else one.default
    declared: Option = one.metadata["option"]
    return replace(declared, name=one.name, type=hint, nullable=nullable, default=default)


def fixed_by_a_state(kind: type) -> tuple[str, ...]:
    """The names of the options that a state fixes when it is built."""
    return tuple(name for name, declared in declarations(kind).items() if declared.fixed)


def refuse_unknown(function: str, known: Iterable[str], given: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, but with near names."""
    from tuplewise.engine.options.loading import LoadOptions

    known = list(known)
    for name in given:
        if name not in known:
            reading = name in declarations(LoadOptions) and function != "load"
            hint = f"Read the table with it first: tw.load(table, {name}=...)" if reading else near_names(name, known)
            raise TypeError(message(f"{function}() has no option", name, hint=hint))


def raise_faults(faults: list[str]) -> None:
    """Raise one InputError for all faults, if there are any."""
    if faults:
        raise InputError(joined(faults, "; "))


def exact_decimal(name: str, value: Any) -> Decimal:
    """A number as the decimal that it is written as: 0.1 is one tenth. Raises InputError for what is no number.

    Examples
    --------
    >>> exact_decimal("error", 0.1), exact_decimal("error", "1e-3")
    (Decimal('0.1'), Decimal('0.001'))
    """
    try:
        number = value if isinstance(value, (Decimal, str)) else repr(float(value))
        number = Decimal(number)
    except (InvalidOperation, TypeError, ValueError):
        number = None
    if number is None or isinstance(value, bool) or not number.is_finite():
        raise InputError(message(name, value, "a decimal number"))
    return number


def _choice(declared: Option, value: Any) -> Any:
    if value not in declared.choices and not declared.by_task:
        raise declared.refuse(value, " or ".join(map(repr, declared.choices)))
    return value


def _flag(declared: Option, value: Any) -> bool:
    """True or False: text such as "no" would count as true."""
    if not isinstance(value, bool):
        raise declared.refuse(value, "True or False")
    return value


def _whole(declared: Option, value: Any) -> int:
    """A whole number of any type, NumPy's too."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise declared.refuse(value, f"a whole number, {declared.bounds}")
    if not declared.within(number):
        raise declared.refuse(value, declared.bounds)
    return number


def _seconds(declared: Option, value: Any) -> float:
    """A real number above 0."""
    real = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
    if not (real and value > 0):
        raise declared.refuse(value, "seconds above 0")
    return float(value)


def _decimal(declared: Option, value: Any) -> Decimal:
    number = exact_decimal(declared.name, value)
    if not declared.within(number):
        raise declared.refuse(str(number), declared.bounds)
    return number


def _names(declared: Option, value: Any) -> tuple[str, ...]:
    """Names; one alone may stand for a list of one, and None for none."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise declared.refuse(value, "text, or a list of texts")
    if declared.unique and len(set(names)) < len(names):
        raise declared.refuse(list(names), "each column once")
    return names


def _mapping(declared: Option, value: Any) -> Mapping[Any, Any]:
    try:
        return dict(value)
    except (TypeError, ValueError):
        raise declared.refuse(value, "a mapping of names to texts") from None


def _other(declared: Option, value: Any) -> Any:
    """A text, or what the type of the option reads."""
    if declared.check is not None and not declared.check(value):
        raise declared.refuse(value, "another text")
    read = getattr(declared.type, "read", None)
    return value if read is None else read(value)


_TAKEN: dict[Any, Callable[[Option, Any], Any]] = {
    Literal: _choice, bool: _flag, int: _whole, float: _seconds, Decimal: _decimal, tuple: _names,
    Mapping: _mapping, object: _other,
}  # fmt: skip
