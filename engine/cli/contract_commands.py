"""The commands of contracts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine import tasks
from tuplewise.engine.cli import settings
from tuplewise.engine.cli.ind_commands import named_tables
from tuplewise.engine.cli.listing import Written, format_of, write_found
from tuplewise.engine.cli.loading import CommandRun
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.options import ContractCheckOptions, LoadOptions, option
from tuplewise.engine.report import files

if TYPE_CHECKING:
    from tuplewise.engine.contract.result import ContractResult


@dataclass(frozen=True, kw_only=True)
class ContractListing(Written):
    """Which contract is checked."""

    contract: str | None = option(None, "The file of the contract.", metavar="FILE")
    repairs: str | None = option(
        None, "Write the fewest rows or cells to change so that broken rules hold: .parquet or .csv.", metavar="FILE"
    )


@click.command("check")
@click.argument("tables", nargs=-1, metavar="TABLE...")
@settings.options(ContractListing, ContractCheckOptions, LoadOptions)
@settings.output_options("text", "json", "csv", "html", "junit", "github")
def check(invocation: Invocation, /, tables: Sequence[str], **given: Any) -> int:
    """Whether TABLEs keep the accepted rules of a contract; exit code 1 where they don't.

    TABLEs are named as in the contract, or NAME=PATH; one table may have any name where the contract has one, too.
    Without TABLE the paths in the contract are read. A rule fails where more rows break it than its tolerance allows,
    and a table where a column of the contract is missing or of another type. --format junit and github are for
    continuous integration.

    tuplewise profile TABLE --contract FILE writes a contract, tuplewise review FILE goes through its proposals.
    """
    reading, options, listing = settings.made(given, LoadOptions, ContractCheckOptions, ContractListing)
    if listing.contract is None:
        raise click.UsageError("Missing option '--contract'.")
    form = format_of(listing, page=True)
    if listing.repairs is not None:
        from tuplewise.engine.contract.repairs import check_repairs_file

        check_repairs_file(listing.repairs)

    def find(progress: Progress) -> ContractResult:
        from tuplewise.engine.contract.file import read_contract
        from tuplewise.engine.contract.tables import tables_of_contract

        contract = read_contract(listing.contract)
        named = tables_of_contract(contract, named_tables(tables) if tables else None)
        files.check_apart((listing.output, listing.repairs), (str(listing.contract), *map(str, named.values())))
        run = CommandRun("check", progress, invocation, options)
        shown = {"contract": listing.contract, "repairs": listing.repairs}
        found = tasks.check_contract(named, contract, options, run, reading=reading, shown=shown)
        return found if listing.repairs is None else found.with_notes(found.write_repairs(listing.repairs))

    return write_found(listing, form, invocation, find)
