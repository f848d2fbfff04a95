"""`tuplewise doctor`: what is here, or on a cluster, and what to do where it isn't."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.errors import message

EXIT_USAGE = 2
OF_CLUSTERS = ("master", "profile", "conf", "wait")


@click.command()
@click.option("--cluster", is_flag=True, help="Check a running cluster instead: each executor and its kernels.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="With --cluster: how long its start, its executors and their tasks may take each.",
)
@settings.spark_options
@settings.output_options("text", "json")
@click.pass_obj
def doctor(state: State, /, form: str | None, **given: Any) -> int:
    """What will be used here (Java, Spark, plugin, GPUs, kernels) and what to do where something is missing."""
    from tuplewise.engine.doctor import examine, examine_cluster, works
    from tuplewise.engine.report import json, text

    target = given["output"]
    form = form or output.default_format(target)
    output.check_output(target)
    if not given["cluster"]:
        _refuse_options_of_clusters()
    with Progress(state.quiet) as progress:
        if given["cluster"]:
            progress.step("asking the cluster")
            spark = {"master": given["master"], "profile": given["profile"], "conf": dict(given["conf"])}
            checks = examine_cluster(**spark, wait_seconds=given["wait"])
        else:
            progress.step("looking")
            checks = examine()
    records = [check.to_dict() for check in checks]
    if form == "json":
        output.write([json.dump({"checks": records})], target)
    else:
        output.write([text.render(text.doctor_parts(records), **output.terminal(target))], target)
    return 0 if works(checks) else EXIT_USAGE


def _refuse_options_of_clusters() -> None:
    context = click.get_current_context()
    asked = [f"--{n}" for n in OF_CLUSTERS if context.get_parameter_source(n) is ParameterSource.COMMANDLINE]
    if asked:
        raise click.UsageError(f"{message('options for --cluster only', ', '.join(asked))}.")
