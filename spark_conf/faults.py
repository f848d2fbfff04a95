"""Faults of a Spark configuration, reported before Spark is started.

Some would end in a long trace, some in a job that waits for ever. Only what is sure to fail is a fault.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from itertools import groupby
from typing import Literal

from tuplewise.engine.errors import Wording, message
from tuplewise.spark_conf.plugin import (
    PLUGIN_COORDINATES,
    PLUGIN_SPARK,
    PLUGIN_VERSION,
    driver_has_jar,
    has_plugin,
    names_jar,
    only_explains,
    rapids_jar,
)

Kind = Literal["local", "local-cluster", "standalone", "yarn", "k8s", "connect", "other"]
EXECUTOR_GPUS, TASK_GPUS = "spark.executor.resource.gpu.amount", "spark.task.resource.gpu.amount"
PLUGIN = f"the RAPIDS plugin {PLUGIN_VERSION}"
# What profiles with GPUs are made for: the kind of master, and how it is written.
MADE_FOR: Mapping[str, tuple[Kind, str]] = {
    "local-gpu": ("local", "local[*]"),
    "standalone-gpu": ("standalone", "spark://HOST:PORT"),
    "yarn-gpu": ("yarn", "yarn"),
    "k8s-gpu": ("k8s", "k8s://https://HOST:PORT"),
}
_KINDS: tuple[tuple[str, Kind], ...] = (
    (r"local(\[.*\])?", "local"),
    (r"local-cluster\[.*\]", "local-cluster"),
    (r"spark://.*", "standalone"),
    (r"yarn", "yarn"),
    (r"k8s://.*", "k8s"),
    (r"sc://.*", "connect"),
)


def master_kind(master: str) -> Kind:
    """Kind of a master.

    Examples
    --------
    >>> master_kind("local[2]"), master_kind("spark://host:7077")
    ('local', 'standalone')
    """
    return next((kind for pattern, kind in _KINDS if re.fullmatch(pattern, master)), "other")


def faults_of(
    settings: Mapping[str, str], *, profile: str | None = None, spark_version: str, deploy_mode: str = "client"
) -> list[str]:
    """Find all faults of a configuration, one message each.

    Parameters
    ----------
    settings : whole configuration, spark.master too
    profile : name of the profile that it was made from
    spark_version : release of the installed Spark
    deploy_mode : "client": the driver runs on this machine; "cluster": on one of the cluster's
    """
    if "spark.master" not in settings:
        fitting = MADE_FOR.get(profile or "", ("", "spark://HOST:PORT, yarn, k8s://https://HOST:PORT"))[1]
        hint = Wording("Name it with {master}: {}", fitting)
        return [message("no Spark master is given, and this profile names none", profile, hint=hint)]
    kind = master_kind(settings["spark.master"])
    found = _of_master(settings, kind, profile, deploy_mode) + ([] if kind == "local" else _of_gpus(settings))
    if has_plugin(settings):
        found += _of_plugin(settings, kind, spark_version, deploy_mode)
    return found


def waits_for_ever(settings: Mapping[str, str]) -> str | None:
    """Reason why no task of a local session would ever start; None where tasks do."""
    resources = [f"{k}={v}" for k, v in sorted(settings.items()) if re.match(r"spark\.task\.resource\.", k)]
    if master_kind(settings.get("spark.master", "")) != "local" or not resources:
        return None
    return _resources_in_local_mode(", ".join(resources))


def _resources_in_local_mode(settings: str) -> str:
    hint = "Leave these settings out (profile local-gpu has none), or name the master of a cluster"
    return message("GPUs can't be scheduled in local mode, Spark would wait for them for ever", settings, hint=hint)


def _of_master(settings: Mapping[str, str], kind: Kind, profile: str | None, deploy_mode: str) -> list[str]:
    found = []
    master = settings["spark.master"]
    made_for, written = MADE_FOR.get(profile or "", (kind, ""))
    resources = [f"{k}={v}" for k, v in sorted(settings.items()) if re.match(r"spark\.\w+\.resource\.", k)]
    if kind == "connect" or "spark.remote" in settings or settings.get("spark.api.mode") == "connect":
        hint = "Leave spark.remote and spark.api.mode out, and name a master"
        found.append(message("Spark Connect can't be used: row positions and plans need the driver's JVM", hint=hint))
    elif made_for != kind and not (made_for == "standalone" and kind == "local-cluster"):
        others = [name for name, (fits, _) in MADE_FOR.items() if fits == kind]
        instead = f"For {master} there is the profile {others[0]}" if others else None
        found.append(message(f"Spark profile {profile} with the master", master, written, instead))
    elif kind == "local" and resources:
        found.append(_resources_in_local_mode(", ".join(resources)))
    if deploy_mode == "client":
        if settings.get("spark.submit.deployMode") == "cluster":
            hint = "Leave it out, or use tuplewise submit"
            found.append(message("spark.submit.deployMode of a session here", "cluster", "client", hint))
        if kind in ("standalone", "yarn", "k8s") and _only_loopback(settings, master):
            hint = "Name an address of this machine that they reach, or leave it out"
            found.append(
                message("executors can't reach a driver at spark.driver.host", settings["spark.driver.host"], hint=hint)
            )
    elif kind not in ("yarn", "k8s"):
        hint = "Leave the deploy mode out: the driver runs here"
        found.append(message("deploy mode 'cluster' with the master", master, "yarn, k8s://...", hint))
    if kind == "k8s" and not any(re.match(r"spark\.kubernetes\.(\w+\.)?container\.image$", k) for k in settings):
        text = "Build Dockerfile.cuda, push it, name it: {conf}"
        hint = Wording(text, conf={"spark.kubernetes.container.image": "IMAGE"})
        found.append(message("spark.kubernetes.container.image is not set", hint=hint))
    if kind == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        found.append(
            message("master yarn: neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set", hint="Set one to its folder")
        )
    return found


def _only_loopback(settings: Mapping[str, str], master: str) -> bool:
    """Tell whether the driver listens where executors on other machines can't reach it."""
    local = {"localhost", "::1", socket.gethostname()}

    def here(host: str) -> bool:
        return host in local or host.startswith("127.")

    hosts = re.findall(r"(?:spark://|,)(.*?):\d+(?=,|$)", master)
    away = not hosts or not all(here(host) for host in hosts)
    return away and here(settings.get("spark.driver.host", ""))


def _of_gpus(settings: Mapping[str, str]) -> list[str]:
    """Amounts of GPUs that no executor can offer."""
    amounts: dict[str, float] = {}
    found = []
    for key in (EXECUTOR_GPUS, TASK_GPUS):
        try:
            amounts[key] = float(settings.get(key, 0))
        except ValueError:
            return [message(key, settings[key], "a number")]
    if amounts[EXECUTOR_GPUS] % 1:
        found.append(message(EXECUTOR_GPUS, settings[EXECUTOR_GPUS], "a whole number"))
    if amounts[TASK_GPUS] > amounts[EXECUTOR_GPUS]:
        allowed = f"{EXECUTOR_GPUS} or less, here {settings.get(EXECUTOR_GPUS, 0)}"
        found.append(message(TASK_GPUS, settings[TASK_GPUS], allowed, "1 / spark.executor.cores shares one GPU"))
    if has_plugin(settings) and amounts[EXECUTOR_GPUS] > 1:
        hint = "Start more executors with one GPU each"
        found.append(message(f"{EXECUTOR_GPUS} with {PLUGIN}", settings[EXECUTOR_GPUS], "1", hint))
    return found


def _of_plugin(settings: Mapping[str, str], kind: Kind, spark_version: str, deploy_mode: str) -> list[str]:
    found = []
    if spark_version not in PLUGIN_SPARK and "spark.rapids.shims-provider-override" not in settings:
        hint = "pip install pyspark==4.1.3, or use a profile without it (laptop, cpu-cluster)"
        found.append(message(f"{PLUGIN} doesn't run with this Spark", spark_version, plugin_spark(), hint))
    shipped = names_jar(settings, "spark.jars", "spark.jars.packages")
    lacking = []
    if deploy_mode == "client" and not shipped and not driver_has_jar(settings):
        lacking.append("the driver")
    if kind != "local" and not shipped and not names_jar(settings, "spark.executor.extraClassPath"):
        lacking.append("executors")
    if lacking:
        named = os.environ.get("TUPLEWISE_RAPIDS_JAR")
        missing = f"TUPLEWISE_RAPIDS_JAR is {named!r}, which is no file. " if named and rapids_jar() is None else ""
        hint = f"{missing}Set TUPLEWISE_RAPIDS_JAR to it, or spark.jars.packages to {PLUGIN_COORDINATES}"
        found.append(message(f"{PLUGIN} has no jar for {' and '.join(lacking)}", hint=hint))
    named = settings.get("spark.shuffle.manager", "")
    manager = re.fullmatch(r"com\.nvidia\.spark\.rapids\.(\w+)\.RapidsShuffleManager", named)
    fitting = "spark" + spark_version.replace(".", "")
    if manager and manager[1] != fitting:
        hint = "Leave it out: the plugin sets it"
        found.append(message("spark.shuffle.manager is that of another Spark", manager[1], fitting, hint))
    if settings.get("spark.serializer", "").endswith("KryoSerializer") and "spark.kryo.registrator" not in settings:
        hint = "Set spark.kryo.registrator to com.nvidia.spark.rapids.GpuKryoRegistrator"
        found.append(message(f"spark.serializer with {PLUGIN}", settings["spark.serializer"], hint=hint))
    zones = [time_zone(settings.get(f"spark.{who}.extraJavaOptions", "")) for who in ("driver", "executor")]
    if kind != "local" and all(zones) and zones[0] != zones[1]:
        what = f"driver and executors differ in their time zone, which {PLUGIN} refuses"
        found.append(message(what, zones, hint="Give both -Duser.timezone=UTC"))
    return found + ([] if only_explains(settings) else _of_pool(settings))


def _of_pool(settings: Mapping[str, str]) -> list[str]:
    """Shares of device memory that the plugin refuses: its pool must lie between least and most."""
    names = [f"spark.rapids.memory.gpu.{name}" for name in ("allocFraction", "minAllocFraction", "maxAllocFraction")]
    try:
        share, least, most = (float(settings.get(n, d)) for n, d in zip(names, ("1", "0.25", "1"), strict=True))
    except ValueError:
        given = {name: settings[name] for name in names if name in settings}
        return [message("shares of the GPU's memory", given, "numbers from 0 to 1")]
    if least <= share <= most <= 1:
        return []
    return [message(names[0], str(share), f"{least:g} to {most:g}", f"Set {names[1]} to 0 for a small pool")]


def plugin_spark() -> str:
    """The releases of Spark that the plugin runs with: 4.1.1-4.1.3, 4.2.0."""
    releases = sorted(tuple(map(int, release.split("."))) for release in PLUGIN_SPARK)
    parts = []
    for _, group in groupby(releases, key=lambda release: release[:2]):
        ends = [".".join(map(str, release)) for release in group]
        parts.append(ends[0] if len(ends) == 1 else f"{ends[0]}-{ends[-1]}")
    return ", ".join(parts)


def time_zone(java_options: str) -> str:
    """Time zone passed to Java; "" where it takes the machine's."""
    zones = re.findall(r"-Duser\.timezone=(\S+)", java_options)
    return zones[-1] if zones else ""
