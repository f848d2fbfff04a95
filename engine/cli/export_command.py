"""`tuplewise export`: the accepted rules of a contract as another tool takes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.contract.formats import TARGETS, WITH_DIALECT
from tuplewise.engine.options import ContractExportOptions, Options, option
from tuplewise.engine.report import files


@dataclass(frozen=True, kw_only=True)
class ExportTarget(Options):
    """What a contract is exported to."""

    to: str | None = option(None, f"What it is written for: {', '.join(sorted(TARGETS))}.", metavar="TARGET")


def _is_folder(path: str) -> bool:
    """Whether a path is a folder, or is written as one."""
    return path.endswith(("/", "\\")) or Path(path).is_dir()


@click.command("export")
@click.argument("contract", metavar="CONTRACT")
@settings.options(ExportTarget, ContractExportOptions)
@settings.output_options()
def export(invocation: Invocation, /, contract: str, **given: Any) -> int:
    """The accepted rules of a CONTRACT, written for another tool.

    dbt: tests of models, written into the folder of a project where -o names one (FOLDER/). gx: an expectation suite of
    Great Expectations. pandera, pandera-polars: a Python module that defines a schema. deequ, pydeequ: checks in Scala
    and in Python. soda: SodaCL. sql: constraints, and queries for the rest. spark: Python functions that give the rows
    that break a rule. frictionless: a data package with a Table Schema for each table. schema: the JSON Schema of
    contracts.

    A rule that the target can't say exactly is left out; the text says which and why, and a note counts them.
    """
    from tuplewise.engine.contract.exports import export as write
    from tuplewise.engine.contract.file import read_contract

    chosen, options = settings.made(given, ExportTarget, ContractExportOptions)
    if chosen.to is None:
        raise click.UsageError("Missing option '--to'.")
    if settings.given_of(given, ContractExportOptions, ["dialect"]) and chosen.to not in WITH_DIALECT:
        raise click.UsageError(f"--dialect is for --to {', '.join(WITH_DIALECT)}, not {chosen.to}.")
    to_folder = chosen.to == "dbt" and given["output"] is not None and _is_folder(given["output"])
    if given["output"] is not None and not to_folder:
        files.check_target("output file", given["output"])
        files.check_apart([given["output"]], [contract])
    read = read_contract(contract)
    exported = write(read, chosen.to, options.table, options.dialect)
    if to_folder:
        from tuplewise.engine.contract.exports.dbt import write_files

        others = write_files(exported.text, Path(given["output"]))
        if others and not invocation.quiet:
            said = "tests of no rule in this export are there; remove them if they are of an earlier one"
            click.echo(f"tuplewise: note: {said}: {', '.join(others)}", err=True)
    else:
        output.write([exported.text], given["output"])
    if exported.left_out and not invocation.quiet:
        rules, left_out = len(read.accepted(options.table)), exported.left_out
        verb = "was" if len(left_out) == 1 else "were"
        said = f"{len(left_out):,} of {rules:,} accepted rules can't be said in {chosen.to} and {verb} left out"
        click.echo(f"tuplewise: note: {said}: {', '.join(left_out)}", err=True)
    return 0
