"""`tuplewise import`: the rules of another tool's file, proposed in a contract."""

from __future__ import annotations

from typing import Any

import click

from tuplewise.engine.cli import settings
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.contract.formats import FORMATS
from tuplewise.engine.report import files


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--from", "format_", metavar="FORMAT", help=f"What wrote the file: {', '.join(sorted(FORMATS))}.")
@settings.output_options()
def import_(invocation: Invocation, /, file: str, **given: Any) -> int:
    """The rules of a FILE that another tool wrote, as proposals of the contract -o.

    dbt: the YAML of models and their tests. sql: CREATE TABLE and its like. pandera: the YAML of a schema.
    frictionless: the JSON of a Table Schema or of a data package.

    Where the contract is there already, new rules are added to it. What can't be read is noted.
    """
    from tuplewise.engine.contract.imports import import_to, read

    for name, value in (("--from", given["format_"]), ("-o", given["output"])):
        if value is None:
            raise click.UsageError(f"Missing option '{name}'.")
    files.check_target("output file", given["output"])
    files.check_apart([given["output"]], [file])
    imported = read(file, given["format_"])
    said = import_to(imported, given["output"])
    if not invocation.quiet:
        for note in imported.notes:
            click.echo(f"tuplewise: note: not read: {note}", err=True)
        click.echo(f"tuplewise: {said}", err=True)
    return 0
