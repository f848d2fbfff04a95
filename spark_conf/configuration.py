"""Configuration of a session: a profile, the user's settings, and defaults for the rest."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from tuplewise.engine.errors import message
from tuplewise.engine.options import raise_faults
from tuplewise.spark_conf.faults import TASK_GPUS, faults_of, master_kind, time_zone
from tuplewise.spark_conf.plugin import add_jar, has_plugin, only_explains
from tuplewise.spark_conf.profiles import read_profile

LOCAL_PROFILE, CLUSTER_PROFILE = "laptop", "cpu-cluster"
DISCOVERY_SCRIPT = Path(__file__).with_name("gpu_discovery.sh")


def configure(
    master: str | None = None,
    profile: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    deploy_mode: str = "client",
) -> dict[str, str]:
    """Make the settings to start Spark with.

    Parameters
    ----------
    master : None: the one of `conf` or of the profile
    profile : None: that of `default_profile`
    conf : the user's settings, which override the profile
    deploy_mode : "client": the driver runs on this machine; "cluster": on one of the cluster's

    Raises
    ------
    InputError
        With all faults of this configuration.
    """
    given = dict(conf or {})
    if master is not None:
        given["spark.master"] = master
    name = profile or default_profile(given.get("spark.master"))
    of_profile = read_profile(name)
    settings = {**of_profile, **given}
    for key, value in given.items():
        if key.endswith(".extraJavaOptions") and not time_zone(value) and time_zone(of_profile.get(key, "")):
            settings[key] = f"{value} -Duser.timezone={time_zone(of_profile[key])}"
    if "spark.executor.cores" in given and TASK_GPUS in of_profile and TASK_GPUS not in given:
        settings[TASK_GPUS] = share_of_gpu(given["spark.executor.cores"])
    if settings.get("spark.executor.resource.gpu.discoveryScript") == f"./{DISCOVERY_SCRIPT.name}":
        settings["spark.files"] = ",".join(filter(None, [settings.get("spark.files"), str(DISCOVERY_SCRIPT)]))
    kind = master_kind(settings.get("spark.master", "local"))
    if has_plugin(settings):
        add_jar(settings, local=kind == "local", driver_here=deploy_mode == "client")
    faults = faults_of(
        settings, profile=name, spark_version=metadata.version("pyspark"), deploy_mode=deploy_mode
    )
    if not faults and kind == "local" and has_plugin(settings) and not only_explains(settings):
        faults = _without_gpu()
    raise_faults(faults)
    return settings


def default_profile(master: str | None) -> str:
    """Default profile."""
    return LOCAL_PROFILE if master is None or master_kind(master) == "local" else CLUSTER_PROFILE


def share_of_gpu(cores: str) -> str:
    """Share of a GPU for each of so many concurrent tasks, rounded down; all of it where that isn't a number.

    Examples
    --------
    >>> share_of_gpu("8"), share_of_gpu("3")
    ('0.125', '0.3333')
    """
    count = int(cores) if cores.isdecimal() and int(cores) > 0 else 1
    return f"{10000 // count / 10000:g}"


def discovered_gpus() -> tuple[list[str], str]:
    """Addresses of GPUs from the discovery script on this machine, and the reason where there are none (else "")."""
    try:
        done = subprocess.run([str(DISCOVERY_SCRIPT)], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return [], "nvidia-smi doesn't answer"
    except OSError as problem:
        return [], f"{DISCOVERY_SCRIPT.name} can't be run: {problem.strerror}"
    if done.returncode:
        return [], done.stderr.strip().removeprefix(f"{DISCOVERY_SCRIPT.name}: ")
    return re.findall(r'"(\d+)"', done.stdout), ""


def _without_gpu() -> list[str]:
    """Reason why the plugin can't run on this machine."""
    reason = discovered_gpus()[1]
    if not reason:
        return []
    hint = "Leave the profile out (laptop), or set spark.rapids.sql.mode=explainOnly to see plans only"
    return [message(f"the RAPIDS plugin needs a GPU: {reason}", os.environ.get("CUDA_VISIBLE_DEVICES"), hint=hint)]
