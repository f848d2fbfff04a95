"""One declaration of an option is what the command line, the Python functions and the page of options have."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
from typing import Any, get_args, get_overloads, get_type_hints

import click
import pytest

import tuplewise as tw
import tuplewise.engine.options as declared_options
from tools import options_page
from tuplewise.engine.cli.settings import DeclaredOption
from tuplewise.engine.errors import InputError
from tuplewise.engine.options import DcDiscoverOptions, LoadOptions, Option, Options, declarations, option

OF_COMMANDS_ALONE = {
    "--format", "--output", "--quiet", "--verbose",  # what is written, and what is said meanwhile
    "--ids", "--keys", "--update", "--against",  # rows and results that a command is about
    "--cluster", "--wait", "--explain-gpu", "--warm", "--deploy-mode", "--py-files", "--dry-run",  # doctor and submit
    "--from",  # import: a keyword of Python
}  # fmt: skip
OPTIONS = [(name, param) for name, command in options_page.commands() for param in command.params]
FUNCTIONS = list(options_page.functions())


def kinds(base: type[Options] = Options) -> list[type[Options]]:
    """Every dataclass of options."""
    return [found for kind in base.__subclasses__() for found in (kind, *kinds(kind))]


@pytest.mark.parametrize(("command", "param"), OPTIONS, ids=lambda value: getattr(value, "name", value))
def test_an_option_of_a_command_is_declared(command: str, param: click.Parameter) -> None:
    if not isinstance(param, click.Option):
        return
    if not isinstance(param, DeclaredOption):
        assert param.opts[-1] in OF_COMMANDS_ALONE, command
        return
    declared = param.declared
    assert any(declared == declarations(kind).get(declared.name) for kind in kinds())
    assert (param.opts, param.name) == ([declared.spelled], declared.name)
    assert param.default is None  # the declaration's default is the only one
    assert param.help is not None
    assert "{" not in param.help


@pytest.mark.parametrize(("function", "options"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_keywords_for_editors_are_the_options_of_a_function(function: str, options: list[Option]) -> None:
    written: Any = inspect.unwrap(getattr(tw, function))
    written = next(iter(get_overloads(written)), written)
    keyword = written.__annotations__["options"].removeprefix("Unpack[").removesuffix("]")
    hints = get_type_hints(getattr(declared_options, keyword))
    assert set(hints) == {declared.name for declared in options}
    for declared in options:
        if declared.choices:
            assert get_args(hints[declared.name]) == declared.choices


@pytest.mark.parametrize(("function", "options"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_help_of_a_function_lists_each_option(function: str, options: list[Option]) -> None:
    told = pydoc.plain(pydoc.render_doc(getattr(tw, function)))
    parameters = inspect.signature(getattr(tw, function)).parameters
    for declared in options:
        assert f"    {declared.name} : " in told
        assert parameters[declared.name].default == declared.default
    assert "**options" not in told


def test_defaults_are_those_that_are_declared() -> None:
    for kind in kinds():
        made: Any = kind()
        for name, declared in declarations(kind).items():
            assert getattr(made, name) == declared.default, (kind, name)
            assert declared.help


def test_the_page_of_options_is_current() -> None:
    page = options_page.PAGE.read_text(encoding="utf-8")
    assert page == options_page.page(), "run: make pages"
    for kind in (DcDiscoverOptions, LoadOptions):
        for declared in declarations(kind).values():
            assert f"`{declared.spelled}" in page


def test_an_option_is_one_declaration() -> None:
    """A new field is checked, and spelled on both sides, without anything else."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Grown(Options):
        most_rows: int = option(3, "Rows, at most.", least=1, metavar="N")
        plain: bool = option(True, "Plainly.")

    declared = declarations(Grown)
    assert [one.spelled for one in declared.values()] == ["--most-rows", "--no-plain"]
    with pytest.raises(InputError, match="most_rows: 0; allowed: 1 or more; plain: 'x'; allowed: True or False"):
        Grown(most_rows=0, plain="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"grow\(\) has no option: 'most_row'. Did you mean 'most_rows'"):
        Grown.of("grow", {"most_row": 1})


def test_faults_between_options_come_with_those_of_each() -> None:
    with pytest.raises(InputError) as caught:
        DcDiscoverOptions(max_predicates=0, sample_pairs=5, error_measure="lift")
    assert str(caught.value) == (
        "max_predicates: 0; allowed: 1 or more; "
        "error_measure with sample_pairs: 'lift'; allowed: 'g1'. Leave one of the two out"
    )
