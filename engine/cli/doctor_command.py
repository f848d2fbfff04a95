"""`tuplewise doctor`: what is installed here, or on a cluster, and what to do about what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import settings
from tuplewise.engine.cli.kernels import compile_all
from tuplewise.engine.cli.listing import Written, format_of, write_found
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import message
from tuplewise.engine.options import LoadOptions, SparkOptions, declarations

if TYPE_CHECKING:
    from tuplewise.engine.report.document import Document

EXIT_USAGE = 2
WAIT_SECONDS = 120.0


@click.command()
@click.option("--cluster", is_flag=True, help="Check a running cluster instead: each executor and its kernels.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --cluster: seconds allowed for its start, for its executors and for their tasks."
    f" [default: {WAIT_SECONDS:.0f}]",
)
@click.option(
    "--explain-gpu",
    metavar="TABLE",
    help="Load this table too, and show which work on it Spark would do on a GPU. No GPU is needed.",
)
@click.option("--warm", is_flag=True, help="Compile all kernels now, on all cores, so that no later run has to.")
@settings.options(LoadOptions)
@settings.output_options("text", "json")
def doctor(invocation: Invocation, /, **given: Any) -> int:
    """Check Java, Spark, its plugin, GPUs and kernels, and say what to do where something is missing."""
    _refuse_options_of_others(given)
    reading, written = settings.made(given, LoadOptions, Written)
    ready = True

    def find(progress: Progress) -> Document:
        from tuplewise.engine.cli import explain_gpu
        from tuplewise.engine.doctor import examine, works
        from tuplewise.engine.report import text
        from tuplewise.engine.report.document import Document

        nonlocal ready
        plans: dict[str, Any] = {}
        if given["warm"]:
            compile_all(progress)
        if given["explain_gpu"] is not None:
            plans = explain_gpu.explain(given["explain_gpu"], reading, progress.step)
        if given["cluster"]:
            from tuplewise.engine.spark.cluster_check import look_at_cluster

            progress.step("asking the cluster")
            spark = {name: getattr(reading, name) for name in declarations(SparkOptions)}
            checks = look_at_cluster(**spark, wait_seconds=given["wait"] or WAIT_SECONDS)
            ready = all(check.ok is not False for check in checks)
        else:
            progress.step("looking")
            checks = examine()
            ready = works(checks)
        document = {"checks": [check.to_dict() for check in checks], **plans}
        return Document(document, lambda _: text.doctor_parts(document["checks"]) + explain_gpu.text_parts(document))

    write_found(written, format_of(written), invocation, find)
    return 0 if ready else EXIT_USAGE


def _refuse_options_of_others(given: Mapping[str, Any]) -> None:
    """Raise UsageError for options that need --cluster or --explain-gpu where that is not given."""
    cluster, table = given["cluster"], given["explain_gpu"] is not None
    if cluster and given["warm"]:
        raise click.UsageError("--cluster asks a running cluster, --warm compiles on this machine: give one.")
    if cluster and table:
        raise click.UsageError("--cluster asks a running cluster, --explain-gpu plans on this machine: give one.")
    of_spark = declarations(SparkOptions)
    of_tables = declarations(LoadOptions).keys() - of_spark.keys()
    for found, needed, present in (
        (settings.given_of(given, LoadOptions, of_tables), "--explain-gpu", table),
        ([] if given["wait"] is None else ["--wait"], "--cluster", cluster),
        (settings.given_of(given, SparkOptions), "--cluster or --explain-gpu", cluster or table),
    ):
        if found and not present:
            raise click.UsageError(f"{message(f'options for {needed} only', ', '.join(found))}.")
