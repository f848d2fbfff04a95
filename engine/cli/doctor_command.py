"""`tuplewise doctor`: what is here, or on a cluster, and what to do where it isn't."""

from __future__ import annotations

from typing import Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State

EXIT_USAGE = 2


@click.command()
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
