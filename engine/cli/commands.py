"""The commands: what each one reads, does and writes."""

from __future__ import annotations

from typing import Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.dc_state_commands import dc
from tuplewise.engine.cli.dependency_commands import fd, key, od
from tuplewise.engine.cli.ind_state_commands import ind
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State

EXIT_USAGE = 2


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

    Exit codes: 0 done; 1 rules are violated (dc, od, ind check); 2 bad usage, rule, input or device; 3 a time or
    memory limit was reached (what was found is printed and marked partial); 130 interrupted.
    """


for _group in (dc, fd, key, od, ind):
    cli.add_command(_group)


@cli.command()
@settings.output_options("text", "json")
@click.pass_obj
def doctor(state: State, /, form: str | None, **given: Any) -> int:
    """What will be used here (Java, Spark, plugin, GPUs, kernels) and what to do where something is missing."""
    from tuplewise.engine.doctor import examine, works
    from tuplewise.engine.report import json, text

    target = given["output"]
    form = form or output.default_format(target)
    output.check_output(target)
    with Progress(state.quiet) as progress:
        progress.step("looking")
        checks = examine()
    records = [check.to_dict() for check in checks]
    if form == "json":
        output.write([json.dump({"checks": records})], target)
    else:
        output.write([text.render(text.doctor_parts(records), **output.terminal(target))], target)
    return 0 if works(checks) else EXIT_USAGE
