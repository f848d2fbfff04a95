"""`tuplewise submit`: runs a command by spark-submit, in a cluster's own driver where the cluster can start one.

A driver on this machine needs none of this: every command takes --master, --profile and --conf itself.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from tuplewise.engine.cli import settings
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import SparkOptions
from tuplewise.spark_conf.configuration import configure, default_profile
from tuplewise.spark_conf.faults import master_kind
from tuplewise.spark_conf.profiles import profile_path, read_profile

APPLICATION = Path(__file__).resolve().parents[2] / "spark_conf" / "application.py"
APPLICATION_IN_IMAGE = "local:///opt/tuplewise/spark_conf/application.py"
STARTED_IN_CLUSTER = ("yarn", "k8s")
"""Kinds of masters that start drivers written in Python."""


@click.command(context_settings={"ignore_unknown_options": True})
@settings.options(SparkOptions)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    help="Where the driver runs: here, or in the cluster. [default: cluster on yarn and k8s, else client]",
)
@click.option(
    "--py-files",
    "wheel",
    type=click.Path(exists=True, dir_okay=False),
    metavar="WHEEL",
    help="Send tuplewise's wheel along, to nodes that have its dependencies only.",
)
@click.option("--dry-run", is_flag=True, help="Print the line of spark-submit instead of running it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(
    master: str | None,
    profile: str | None,
    conf: tuple[tuple[str, str], ...],
    deploy_mode: str | None,
    wheel: str | None,
    dry_run: bool,
    command: tuple[str, ...],
) -> int:
    """Run a COMMAND of tuplewise by spark-submit: tuplewise submit --profile k8s-gpu --master URL -- dc discover TABLE.

    For a driver here, spark-submit sends stdout and stderr to stdout: write results to a file (-o). A driver in the
    cluster writes both to its log. The exit code is the command's; for a driver in the cluster, 0 if it succeeded.
    """
    with tempfile.TemporaryDirectory(prefix="tuplewise-submit-") as folder:
        packed = None
        if wheel is not None:
            packed = Path(wheel).with_suffix(".zip").name if dry_run else str(_as_zip(Path(wheel), Path(folder)))
        line = submit_line(master, profile, dict(conf), deploy_mode, packed, command)
        if dry_run:
            click.echo(shlex.join(line))
            return 0
        code = subprocess.run(line, check=False).returncode
    return code if code >= 0 else 128 - code


def submit_line(
    master: str | None,
    profile: str | None,
    conf: dict[str, str],
    deploy_mode: str | None,
    py_files: str | None,
    command: tuple[str, ...],
) -> list[str]:
    """The arguments that run a command by spark-submit, the program first.

    Raises
    ------
    InputError
        With all faults of the configuration.
    """
    name = profile or default_profile(master or conf.get("spark.master"))
    of_profile = read_profile(name)
    wanted = master or conf.get("spark.master") or of_profile.get("spark.master", "local[*]")
    kind = master_kind(wanted)
    mode = deploy_mode or ("cluster" if kind in STARTED_IN_CLUSTER else "client")
    whole = configure(master, profile, conf, deploy_mode=mode)
    if mode == "client":
        whole.setdefault("spark.pyspark.driver.python", sys.executable)
        if kind == "local":
            whole.setdefault("spark.pyspark.python", sys.executable)
    in_image = kind == "k8s" and mode == "cluster"
    changed = {key: value for key, value in whole.items() if of_profile.get(key) != value and key != "spark.master"}
    return [
        _spark_submit(),
        *("--master", whole["spark.master"], "--deploy-mode", mode, "--name", "tuplewise"),
        *("--properties-file", str(profile_path(name))),
        *(part for key, value in changed.items() for part in ("--conf", f"{key}={value}")),
        *(("--py-files", py_files) if py_files else ()),
        APPLICATION_IN_IMAGE if in_image else str(APPLICATION),
        *command,
    ]


def _spark_submit() -> str:
    """The program that comes with pyspark, of the same version."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise InputError(message("pyspark is not installed", hint="pip install pyspark==4.1.3"))
    return str(Path(found.origin).parent / "bin" / "spark-submit")


def _as_zip(wheel: Path, folder: Path) -> Path:
    """A copy of a wheel with the ending .zip, which Python workers import from."""
    if not wheel.name.startswith("tuplewise-") or wheel.suffix != ".whl":
        hint = "Build it with: make wheel, or pip wheel --no-deps"
        raise InputError(message("--py-files", str(wheel), "a wheel of tuplewise", hint))
    return Path(shutil.copy2(wheel, folder / wheel.with_suffix(".zip").name))
