"""Facts about the RAPIDS Accelerator, Spark's plugin for GPUs: its version, what it runs with, where its jar is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PLUGIN_CLASS = "com.nvidia.spark.SQLPlugin"
PLUGIN_VERSION = "26.08.1"
PLUGIN_SPARK = frozenset(
    [f"3.5.{i}" for i in range(10)] + [f"4.0.{i}" for i in range(5)] + ["4.1.1", "4.1.2", "4.1.3", "4.2.0"]
)
PLUGIN_COORDINATES = f"com.nvidia:rapids-4-spark_2.13:{PLUGIN_VERSION}"
_IN_MAVEN_CACHE = (
    f".m2/repository/com/nvidia/rapids-4-spark_2.13/{PLUGIN_VERSION}/rapids-4-spark_2.13-{PLUGIN_VERSION}.jar"
)


def rapids_jar() -> Path | None:
    """The plugin's jar: TUPLEWISE_RAPIDS_JAR, else the local Maven cache; None where it is in neither."""
    named = os.environ.get("TUPLEWISE_RAPIDS_JAR")
    path = Path(named).expanduser() if named else Path.home() / _IN_MAVEN_CACHE
    return path if path.is_file() else None


def has_plugin(settings: Mapping[str, str]) -> bool:
    """Tell whether a configuration loads the plugin."""
    return PLUGIN_CLASS in (name.strip() for name in settings.get("spark.plugins", "").split(","))


def only_explains(settings: Mapping[str, str]) -> bool:
    """Tell whether the plugin only says what it would do, which needs no GPU."""
    return settings.get("spark.rapids.sql.mode", "").lower() == "explainonly"


def names_jar(settings: Mapping[str, str], *keys: str) -> bool:
    """Tell whether one of these settings names the plugin's jar or package."""
    return any("rapids" in settings.get(key, "").lower() for key in keys)


def add_jar(settings: dict[str, str], *, local: bool, driver_here: bool = True) -> None:
    """Add the place of the plugin's jar where the configuration doesn't name it.

    The driver takes the jar of this machine. Executors elsewhere take the file that the configuration names on their
    machines, else the driver hands them its own. In local mode without a jar Spark fetches the package.
    """
    if names_jar(settings, "spark.jars", "spark.jars.packages"):  # Spark hands these to all
        return
    jar = rapids_jar()
    if jar is not None and driver_here and not driver_has_jar(settings):
        settings["spark.driver.extraClassPath"] = str(jar)
    if local:
        if not driver_has_jar(settings):
            settings["spark.jars.packages"] = PLUGIN_COORDINATES
    elif jar is not None and not names_jar(settings, "spark.executor.extraClassPath"):
        settings["spark.jars"] = ",".join(filter(None, [settings.get("spark.jars"), str(jar)]))


def driver_has_jar(settings: Mapping[str, str]) -> bool:
    """Tell whether the class path of a driver on this machine holds the plugin's jar."""
    parts = settings.get("spark.driver.extraClassPath", "").split(os.pathsep)
    return any("rapids" in part.lower() and Path(part).exists() for part in parts)
