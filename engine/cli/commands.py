"""The commands: what each one reads, does and writes."""

from __future__ import annotations

import click

from tuplewise.engine.cli.contract_commands import check
from tuplewise.engine.cli.dc_state_commands import dc
from tuplewise.engine.cli.dependency_commands import fd, key, od
from tuplewise.engine.cli.diff_command import diff
from tuplewise.engine.cli.doctor_command import doctor
from tuplewise.engine.cli.export_command import export
from tuplewise.engine.cli.import_command import import_
from tuplewise.engine.cli.ind_state_commands import ind
from tuplewise.engine.cli.profile_command import profile
from tuplewise.engine.cli.review_command import review
from tuplewise.engine.cli.submit_command import submit


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from tuplewise.engine.report.version import version

        click.echo(f"tuplewise {version()}")
        ctx.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
def cli() -> None:
    """Finds the rules that hold in tables by looking at pairs of rows.

    Exit codes: 0 done; 1 rules are violated (check, and dc, od, ind check); 2 bad usage, rule, input or device; 3 a
    time or memory limit was reached (what was found is printed and marked partial); 130 interrupted.
    """


for _command in (profile, check, review, diff, export, import_, dc, fd, key, od, ind, doctor, submit):
    cli.add_command(_command)
