"""Writes docs/reference/command-line.md: every command with its help, as it is declared.

    python -m tools.command_page
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

from tools.options_page import commands
from tuplewise.engine.cli.commands import cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line.md"
_FRONT = """# Command line

Made by `make pages` from the commands. `tuplewise COMMAND --help` prints the same; [Options](options.md) lists each
option once, with its default.

TABLE is a CSV, TSV, Parquet, ORC or JSON-lines path: a file, a folder or a glob; `-` for standard input; any URL that
Spark reads; or `spark:db.table`. `--format` is text on a terminal, and JSON elsewhere. `-o FILE` writes to a file,
whole or not at all. Progress and notes go to stderr.

"""


def page() -> str:
    """The whole page."""
    parts = [_FRONT, f"{_help(cli)}\n"]
    for name, command in commands():
        parts.append(f"\n## {name}\n\n```text\ntuplewise {name} {_usage(command)}\n```\n\n{_help(command)}\n\n")
        parts.append("| Option | What it does |\n|---|---|\n")
        parts += [_row(param) for param in command.params if isinstance(param, click.Option)]
    return "".join(parts)


def _usage(command: click.Command) -> str:
    return " ".join(command.collect_usage_pieces(click.Context(command)))


def _help(command: click.Command) -> str:
    """The help in paragraphs; lines that click leaves as they are become a block."""
    said = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "").partition("\f")[0]):
        kept = paragraph.removeprefix("\b\n")
        said.append(f"```text\n{kept}\n```" if kept != paragraph else " ".join(kept.split()))
    return "\n\n".join(said)


def _row(param: click.Option) -> str:
    value = "" if param.is_flag or param.count else f" {param.make_metavar(click.Context(cli))}"
    spelled = f"{', '.join(param.opts)}{value}".replace("|", "\\|")
    return f"| `{spelled}` | {(param.help or '').replace('|', chr(92) + '|')} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
