"""Messages and notes that name options: as Python calls them for its callers, as the command line does there."""

from __future__ import annotations

import ast
import inspect
import json
import pickle
import re
import string
from collections.abc import Callable
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import pytest
from cli_runs import inside

import tuplewise as tw
from tuplewise.engine import options as option_types
from tuplewise.engine.cli.commands import cli
from tuplewise.engine.errors import (
    Fault,
    Wording,
    command_line_option,
    describe,
    joined,
    message,
    placed,
    python_option,
    spelled,
)

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("wording", "python", "command_line"),
    [
        (Wording("Leave it out: {exclude}", exclude="my column"), "exclude='my column'", "--exclude 'my column'"),
        (Wording("{types}", types={"a b": "text"}), "types={'a b': 'text'}", "--types 'a b=text'"),
        (
            Wording("{types}", types={"a": "text", "c": "double"}),
            "types={'a': 'text', 'c': 'double'}",
            "--types a=text --types c=double",
        ),
        (Wording("{encoding}", encoding="utf-16-le"), "encoding='utf-16-le'", "--encoding utf-16-le"),
        (Wording("null: {null_tokens}"), "null: null_tokens", "null: --null-token"),
        (Wording("{header}, {rows}", header=False), "header=False, rows", "--no-header, --rows"),
        (Wording("{as_text}", as_text=True), "as_text=True", "--as-text"),
        (Wording("{skip_rows}", skip_rows=3), "skip_rows=3", "--skip-rows 3"),
        (Wording("{rows:N} of {}", 5), "rows=N of 5", "--rows N of 5"),
        (
            Wording("{decimal} with {thousands}", decimal=",", thousands="."),
            "decimal=',' with thousands='.'",
            "--decimal , with --thousands .",
        ),
    ],
)
def test_options_are_spelled_as_each_face_takes_them(wording: Wording, python: str, command_line: str) -> None:
    assert wording.endswith(python)
    assert wording.spelled(python_option) == wording
    assert wording.spelled(command_line_option).endswith(command_line)


def test_what_users_wrote_is_never_taken_for_an_option() -> None:
    told = Wording("{} and {}: {rows}", "--rows {exclude} {}", message("column", "--exclude"))
    assert told.spelled(command_line_option) == "--rows {exclude} {} and column: '--exclude': --rows"
    assert spelled("--rows {rows}", command_line_option) == "--rows {rows}"


def test_parts_are_spelled_with_the_text_round_them() -> None:
    hint = Wording("Set {time_limit}")
    text = joined(["a", *placed("t", [message("rows", 3, "2", hint), hint])], "; ")
    assert text == "a; t: rows: 3; allowed: 2. Set time_limit; t: Set time_limit"
    assert spelled(text, command_line_option) == "a; t: rows: 3; allowed: 2. Set --time-limit; t: Set --time-limit"
    pointed = describe("a b", [Fault("x", 2, hint), Fault("y", 0)])
    assert spelled(pointed, command_line_option) == (
        "rule, position 3: x. Set --time-limit\n    a b\n      ^\nrule, position 1: y\n    a b\n    ^"
    )


# ---------------------------------------------------------------- errors


def raised(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("kind", [tw.TuplewiseError, tw.InputError, tw.RuleError, tw.DeviceError, tw.LimitReached])
def test_errors_keep_their_options_through_pickling(kind: type[tw.TuplewiseError]) -> None:
    told = message("rows", 3, hint=Wording("Take {rows} or {run_on}", run_on="driver"))
    for error in (kind(told), pickle.loads(pickle.dumps(kind(told)))):
        assert type(error) is kind
        assert (str(error), error.args) == ("rows: 3. Take rows or run_on='driver'", (str(error),))
        assert error.spelled(command_line_option) == "rows: 3. Take --rows or --run-on driver"
        assert repr(error) == f"{kind.__name__}({str(error)!r})"


def test_errors_of_other_processes_keep_their_options() -> None:
    with get_context("spawn").Pool(1) as pool, pytest.raises(tw.InputError, match="Take rows") as error:
        pool.apply(raised, (tw.InputError(Wording("Take {rows}")),))
    assert error.value.spelled(command_line_option) == "Take --rows"


def test_an_error_of_rules_keeps_what_is_wrong_apart_from_what_is_accepted() -> None:
    error = tw.RuleError(message("rule", hint=Wording("Set {rows}")), "Accepted: a -> b")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == "rule. Set rows\nAccepted: a -> b"
        assert one.spelled(command_line_option) == "rule. Set --rows\nAccepted: a -> b"
        assert (one.said, one.accepted) == ("rule. Set rows", "Accepted: a -> b")


def test_errors_without_options_and_with_causes() -> None:
    assert tw.TuplewiseError().spelled(command_line_option) == ""
    with pytest.raises(tw.InputError, match=r"^rows$") as error:
        raise tw.InputError(Wording("{rows}")) from ValueError("x")
    assert error.value.spelled(command_line_option) == "--rows"
    assert isinstance(error.value.__cause__, ValueError)


WIDE = ",".join(f"c{i}" for i in range(300)) + "\n" + "\n".join(",".join([v] * 300) for v in ("x", "y")) + "\n"
ROWS = "a,b\n1,x\n2,x\n2,y\n"
Failure = tuple[str, list[str], Callable[[str], Any], str, str]
FAILURES: dict[str, Failure] = {
    "columns and limits": (
        WIDE, ["dc", "discover", "T"], tw.discover_dcs,
        "Choose columns (columns, exclude), or set max_predicates or time_limit",
        "Choose columns (--columns, --exclude), or set --max-predicates or --time-limit",
    ),
    "numbers of an option": (
        WIDE, ["od", "discover", "T"], tw.discover_ods,
        "Bound the search, max_context=2 or time_limit=600, or look at fewer columns: columns, exclude",
        "Bound the search, --max-context 2 or --time-limit 600, or look at fewer columns: --columns, --exclude",
    ),
    "types": (
        ROWS, ["dc", "check", "T", "--rule", "not(t.a == u.b)"], lambda path: tw.check(path, "not(t.a == u.b)"),
        "Read both as text: types={'a': 'text'}",
        "Read both as text: --types a=text",
    ),
    "types of a constant": (
        ROWS, ["dc", "check", "T", "--rule", "not(t.b == 5.5)"], lambda path: tw.check(path, "not(t.b == 5.5)"),
        "read the column as numbers: types={'b': 'decimal'}",
        "read the column as numbers: --types b=decimal",
    ),
    "a choice": (
        ROWS, ["dc", "check", "T", "--rule", "not(t.a == x y)"], lambda path: tw.check(path, "not(t.a == x y)"),
        "Text stands in single quotes; rules_syntax='desbordante' takes bare text of several words",
        "Text stands in single quotes; --rules-syntax desbordante takes bare text of several words",
    ),
    "null tokens": (
        ROWS, ["fd", "discover", "T", "--types", "b=integer"], lambda path: tw.load(path, types={"b": "integer"}),
        "Leave the type out, or name the text that means null: null_tokens",
        "Leave the type out, or name the text that means null: --null-token",
    ),
    "two faults of options": (
        ROWS, ["dc", "discover", "T", "--algorithm", "hydra", "--error", "0.1", "--header-row", "2", "--no-header"],
        lambda path: tw.load(path, header_row=2, header=False),
        "Take skip_rows",
        "header_row without a header: 2. Take --skip-rows; algorithm with error above 0: 'hydra'; allowed: 'auto', "
        "'evidence' or 'hybrid'. Hydra finds exact constraints",
    ),
    "rows that can't be taken apart": (
        "a,b\n1\n2,x\n", ["fd", "discover", "T"], tw.discover_fds,
        "Mend them, or leave them out with bad_rows='report'",
        "Mend them, or leave them out with --bad-rows report",
    ),
    "a title": (
        "My report\na,b\n1,x\n", ["fd", "discover", "T"], tw.load,
        "Line 2 looks like the header: skip_rows=1",
        "Line 2 looks like the header: --skip-rows 1",
    ),
    "what is passed over": (
        ROWS, ["fd", "discover", "T", "--skip-rows", "9"], lambda path: tw.load(path, skip_rows=9),
        "Leave out fewer lines: skip_rows, skip_footer",
        "Leave out fewer lines: --skip-rows, --skip-footer",
    ),
    "a quote": (
        'a,b\n1,"x\n', ["fd", "discover", "T"], tw.load,
        "or name its quote character: quote",
        "or name its quote character: --quote",
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_one_error_in_both_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str], failure: Failure) -> None:
    text, argv, call, python, command_line = failure
    path, other = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text(text)
    other.write_text("c\n1\n")
    with pytest.raises(tw.TuplewiseError) as error:
        call(str(path))
    assert str(error.value).split("\n")[0].endswith(python) or str(error.value).endswith(python)
    assert "--" not in str(error.value)
    ran = inside(capsys, *({"T": str(path), "U": str(other)}.get(one, one) for one in argv))
    assert ran.code == 2
    assert command_line in ran.err


def test_faults_of_several_rules_name_options_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, rules = tmp_path / "t.csv", tmp_path / "rules.txt"
    table.write_text(ROWS)
    rules.write_text("not(t.a == x y)\nnot(t.b = Q)\n")
    ran = inside(capsys, "dc", "check", str(table), "--rules", str(rules), "--rule", "not(t.a == z w)")
    assert ran.code == 2
    assert ran.err.count("--rules-syntax desbordante takes bare text") == 3
    assert ran.err.count("Accepted: ") == 1
    with pytest.raises(tw.RuleError) as error:
        tw.check(str(table), rules)
    assert str(error.value).count("rules_syntax='desbordante' takes bare text") == 2


# ---------------------------------------------------------------- notes

NUMBERS = "5,6\n1,2\n"
Note = tuple[str, list[str], Callable[[str], Any], str, str]
NOTES: dict[str, Note] = {
    "a flag": (
        NUMBERS, ["fd", "discover", "T"], tw.discover_fds, "is it a row? (header=False)", "is it a row? (--no-header)",
    ),
    "of a check": (
        NUMBERS, ["dc", "check", "T", "--rule", "not(t.5 == u.5)"], lambda path: tw.check(path, "not(t.`5` == u.`5`)"),
        "is it a row? (header=False)", "is it a row? (--no-header)",
    ),
    "of a space": (
        NUMBERS, ["dc", "discover", "T", "--explain-space"], tw.discover_dcs, "(header=False)", "(--no-header)",
    ),
    "of a check of orders": (
        NUMBERS, ["od", "check", "T", "--od", "`5` -> `6`"], lambda path: tw.check_ods(path, "`5` -> `6`"),
        "(header=False)", "(--no-header)",
    ),
    "of a profile": (NUMBERS, ["profile", "T"], tw.profile, "(header=False)", "(--no-header)"),
    "a choice": (
        "a,b\n1,\n2,x\n", ["fd", "discover", "T", "--nulls", "unknown"],
        lambda path: tw.discover_fds(path, nulls="unknown"), "'b' (nulls='value': it does)", "(--nulls value: it does)",
    ),
    "of one of two tables": (
        "a;b\n1,5;1,5\n2,5;1,5\n", ["ind", "discover", "T", "T2"],
        lambda path: tw.discover_inds({"t": path, "u": path}), "t: column 'a' holds numbers with commas (e.g. '1,5'), "
        "read as text: decimal=',' reads them", "read as text: --decimal , reads them",
    ),
    "types that aren't compared": (
        "a,b\n1,x\n", ["ind", "check", "T", "T2", "--ind", "t.a <= t2.b"],
        lambda path: tw.check_inds({"t": path, "u": path}, "t.a <= u.b"),
        "As text they are: as_text", "As text they are: --as-text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("note", NOTES.values(), ids=NOTES)
def test_one_note_in_both_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str], note: Note) -> None:
    text, argv, call, python, command_line = note
    path, other = tmp_path / "t.csv", tmp_path / "t2.csv"
    path.write_text(text)
    other.write_text(text)
    found = call(str(path))
    assert any(python in one for one in found.notes), found.notes
    assert all(type(one) is str for one in found.notes)
    assert not any("--" in one for one in found.notes)
    assert found.to_dict()["notes"] == found.notes
    argv = [{"T": str(path), "T2": str(other)}.get(one, one) for one in argv]
    for form in ("json", "text"):
        ran = inside(capsys, *argv, "--format", form)
        told = json.loads(ran.out)["notes"] if form == "json" else ran.out.split("\n")
        assert any(command_line in one for one in told), (told, ran.err)
        assert not any(python in one for one in told)


def test_notes_of_states_in_both_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,\n2,\n")
    for command, built in (
        ("dc", tw.maintain_dcs(tmp_path / "dc python", str(path))),
        ("ind", tw.maintain_inds(tmp_path / "ind python", {"t": str(path)})),
    ):
        with built:
            assert [n for n in built.notes if n.endswith("from now on; types={'COL': 'TYPE'} fixes another")]
        ran = inside(capsys, command, "init", str(tmp_path / command), str(path), "--format", "json")
        assert [n for n in json.loads(ran.out)["notes"] if n.endswith("from now on; --types COL=TYPE fixes another")]


# ---------------------------------------------------------------- how messages are written


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """The product but the command line, by path."""
    found = []
    for folder in ("engine", "gpu_kernels", "spark_conf", "src/tuplewise"):
        for path in sorted((ROOT / folder).glob("*.py" if folder.startswith("src") else "**/*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("engine/cli/"):
                found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return found


def options_of_commands(command: click.Command) -> set[str]:
    own = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    if isinstance(command, click.Group):
        return own.union(*map(options_of_commands, command.commands.values()))
    return own


OF_THE_COMMAND_LINE = {
    "engine/doctor.py": "tuplewise doctor --warm",  # a command to call
    "engine/report/check_result.py": "--pairs-out FILE",  # what results add for the command line, in place of methods
    "engine/report/dc_state.py": "--format json",
    "engine/report/ind_check_result.py": "--examples N",
    "engine/report/page.py": "in Python .to_json()",
    "engine/report/profile_page.py": "--",  # commands to copy
    "engine/report/result.py": "more here: --limit N",
    "gpu_kernels/building.py": "--",  # a program of its own
}


def test_no_message_names_an_option_of_the_command_line() -> None:
    options, seen = options_of_commands(cli), set()
    assert {"--rows", "--run-on", "--null-token"} <= options
    for name, tree in modules():
        said_elsewhere = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in said_elsewhere:
                continue
            named = options.intersection(re.findall(r"(?<![\w-])--[a-z][a-z-]*", node.value))
            if named and OF_THE_COMMAND_LINE.get(name, "no") in node.value:
                seen.add(name)
            else:
                assert not named, f"{name}:{node.lineno} spells {', '.join(named)}: write a Wording"
    assert seen | {"gpu_kernels/building.py"} == set(OF_THE_COMMAND_LINE)


def keywords() -> set[str]:
    """The names of all options that Python's functions take."""
    kinds = [kind for name, kind in vars(option_types).items() if name.endswith("Keywords")]
    found = {name for kind in kinds for name in kind.__annotations__}
    public = [getattr(tw, name) for name in tw.__all__]
    methods = [one for kind in public if isinstance(kind, type) for one in vars(kind).values()]
    functions = filter(inspect.isfunction, [*public, *methods])
    return found.union(*(inspect.signature(one).parameters for one in functions))


def test_every_option_that_a_message_names_is_one_of_both_faces() -> None:
    known, options, told = keywords(), options_of_commands(cli), set()
    for name, tree in modules():
        if name == "engine/errors.py":
            continue
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Wording":
                template = node.args[0]
                if isinstance(template, ast.Name):  # what the name was given last
                    given = [one for one in texts if ast.unparse(one.targets[0]) == template.id]
                    template = max((one.lineno, one) for one in given if one.lineno < node.lineno)[1].value
                made_up = [one for one in ast.walk(template) if isinstance(one, (ast.JoinedStr, ast.BinOp))]
                assert not made_up, f"{name}:{node.lineno}: what goes into the text of a Wording is one of its parts"
                for text in (one.value for one in ast.walk(template) if isinstance(one, ast.Constant)):
                    if isinstance(text, str):
                        told |= {(field, name) for _, field, _, _ in string.Formatter().parse(text) if field}
    assert {"rows", "columns", "time_limit", "run_on", "types"} <= {field for field, _ in told}
    for field, name in told:
        assert field in known, f"{name}: no function takes {field}"
        spellings = {command_line_option(field, None), command_line_option(field, False)}
        assert spellings & options, f"{name}: no command takes {field}"
