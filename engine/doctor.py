"""Checks of this machine: Java, Spark, the GPU plugin, GPUs and kernels, with advice.

No check leaves a JVM running or raises: a failed check is itself a finding.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from tuplewise.engine.errors import TuplewiseError, command_line_option
from tuplewise.engine.spark.checks import Check
from tuplewise.engine.spark.session import OLDEST_JAVA, find_java, java_major
from tuplewise.spark_conf.plugin import PLUGIN_COORDINATES, PLUGIN_SPARK, PLUGIN_VERSION

JAVA_TRIED = (17, 21)
INSTALL_JAVA = "install OpenJDK 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME to one"
GIB = 1 << 30


def examine() -> list[Check]:
    """Make all checks, in order of importance."""
    checks = [
        ("python", check_python, True),
        ("spark surroundings", check_spark_surroundings, False),
        ("java", check_java, False),
        ("pyspark", check_pyspark, True),
        ("spark workers", check_worker_python, True),
        ("rapids plugin", check_plugin, False),
        ("kernels", check_kernels, True),
        ("kernel cache", check_kernel_cache, False),
        ("gpu packages", check_gpu_packages, False),
        ("gpu", check_gpu, False),
        ("cores", check_cores, False),
        ("memory", check_memory, False),
    ]
    return [_checked(name, check, needed) for name, check, needed in checks]


def works(checks: list[Check]) -> bool:
    """Whether everything that `device="auto"` needs works."""
    return all(check.ok is not False for check in checks if check.needed)


def _checked(name: str, check: Callable[[], tuple[bool | None, str, str]], needed: bool) -> Check:
    try:
        ok, found, advice = check()
    except TuplewiseError as error:  # says what to do itself
        ok, found, advice = False, error.spelled(command_line_option), ""
    except Exception as error:  # a broken installation can raise anything, and saying so is this module's work
        ok, found, advice = False, f"{type(error).__name__}: {_first_line(error)}", "mend or reinstall it"
    return Check(name, ok, found, advice, needed)


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def check_python() -> tuple[bool | None, str, str]:
    """The interpreter that runs this."""
    found = f"{platform.python_version()} ({sys.executable})"
    good = sys.version_info >= (3, 11)
    return good, found, "" if good else "use Python 3.11 or newer"


def check_java() -> tuple[bool | None, str, str]:
    """Java, which Spark runs on. Local files that fit in memory, and frames, are read without it."""
    home = os.environ.get("JAVA_HOME")
    program = find_java()
    if program is None:
        missing = f"none in JAVA_HOME ({home})" if home else "none (JAVA_HOME is not set, no java on PATH)"
        return None, missing, f"only where Spark reads (URLs, catalogs, clusters, tables beyond memory): {INSTALL_JAVA}"
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    major = java_major(match.group(1)) if match else None
    if done.returncode != 0 or match is None or major is None:
        return False, f"{program} does not run: {_first_line(done.stderr) or 'no version'}", INSTALL_JAVA
    found = f"{match.group(1)} ({program})"
    if major < OLDEST_JAVA:
        return False, found, f"too old for Spark 4: {INSTALL_JAVA}"
    if major not in JAVA_TRIED:
        return None, found, "Spark 4.1 is made for Java 17 and 21; others are untried"
    return True, found, ""


def check_pyspark() -> tuple[bool | None, str, str]:
    """PySpark, and whether the GPU plugin supports that release."""
    version = _version("pyspark")
    if version is None:
        return False, "not installed", "pip install pyspark==4.1.3"
    if version not in PLUGIN_SPARK:
        return (
            None,
            version,
            f"works on CPUs; the RAPIDS plugin {PLUGIN_VERSION} refuses it: pip install pyspark==4.1.3",
        )
    return True, f"{version} (supported by the RAPIDS plugin {PLUGIN_VERSION})", ""


def check_spark_surroundings() -> tuple[bool | None, str, str]:
    """The working directory, the user, and the folders that Spark's variables name."""
    from tuplewise.engine.spark.surroundings import check_surroundings

    check_surroundings()
    return True, "working directory, user and SPARK_HOME are as Spark needs them", ""


def check_worker_python() -> tuple[bool | None, str, str]:
    """The Python that Spark's workers run, where the user has set one."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen:
        return True, f"{sys.executable} in local mode; on a cluster its profile says which", ""
    program = shutil.which(chosen)
    if program is None:
        return (
            False,
            f"PYSPARK_PYTHON={chosen} is not there",
            "unset PYSPARK_PYTHON, or set it to this environment's Python",
        )
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    ours = "{}.{}".format(*sys.version_info[:2])
    if done.stdout.strip() == ours:
        return True, f"PYSPARK_PYTHON={chosen} ({ours})", ""
    return (
        False,
        f"PYSPARK_PYTHON={chosen} is Python {done.stdout.strip() or '?'}, this is {ours}",
        "use one version for both",
    )


def plugin_jars() -> list[Path]:
    """Jars of the RAPIDS plugin: $TUPLEWISE_RAPIDS_JAR, else those in the Maven cache, newest name last."""
    if own := os.environ.get("TUPLEWISE_RAPIDS_JAR"):
        return [Path(own).expanduser()]
    cache = Path.home() / ".m2" / "repository" / "com" / "nvidia"
    return sorted(cache.glob("rapids-4-spark_2.1*/*/rapids-4-spark_2.1*.jar"))


def check_plugin() -> tuple[bool | None, str, str]:
    """The jar of the RAPIDS Accelerator, which only Spark on GPUs needs."""
    advice = f"only for Spark on GPUs: get {PLUGIN_COORDINATES} (Maven Central), set TUPLEWISE_RAPIDS_JAR to the jar"
    jars = plugin_jars()
    if not jars:
        return None, "no jar (TUPLEWISE_RAPIDS_JAR is not set, none in ~/.m2)", advice
    jar = jars[-1]
    if not jar.is_file():
        return False, f"TUPLEWISE_RAPIDS_JAR={jar} is not a file", advice
    if PLUGIN_VERSION not in jar.name:
        return None, str(jar), f"tried with {PLUGIN_VERSION} only"
    return True, str(jar), ""


def check_kernels() -> tuple[bool | None, str, str]:
    """Whether the CPU kernels can be loaded, and how many are compiled already."""
    import numba

    from tuplewise.gpu_kernels.building import Building, kernel_modules

    kernels = Building(kernel_modules())
    found = f"numba {numba.__version__}; {kernels.asked - kernels.missing} of {kernels.asked} kernels are compiled"
    later = "each command compiles what it calls, once; tuplewise doctor --warm compiles all of them now"
    return True, found, later if kernels.missing else ""


def check_kernel_cache() -> tuple[bool | None, str, str]:
    """Where compiled kernels are kept."""
    from tuplewise.gpu_kernels import cache

    folder = cache.wanted_folder()
    reason = cache.why_unwritable(folder)
    if reason is None:
        return True, str(folder), ""
    return False, f"{folder} can't be written ({reason})", "set TUPLEWISE_CACHE_DIR to a folder that can be written"


def check_gpu_packages() -> tuple[bool | None, str, str]:
    """The Python packages that GPU kernels need."""
    numba_cuda = _version("numba-cuda")
    cupy = next((f"{p} {v}" for p in ("cupy-cuda12x", "cupy-cuda13x", "cupy") if (v := _version(p))), None)
    found = f"numba-cuda {numba_cuda or 'not installed'}, {cupy or 'CuPy not installed'}"
    if numba_cuda and cupy:
        return True, found, ""
    return (
        None,
        found,
        "only for GPUs: pip install 'tuplewise[cuda12]' (driver 525 or newer) or 'tuplewise[cuda13]' (580 or newer)",
    )


def check_gpu() -> tuple[bool | None, str, str]:
    """The device that `auto` picks, and why."""
    from tuplewise.gpu_kernels.device import pick_device

    device = pick_device("auto")
    if device.kind == "cuda":
        return True, f"{device.name}, {device.memory_bytes / GIB:.1f} GiB; {device.reason}", ""
    return None, f"auto runs on the CPU: {device.reason}", "GPUs are optional: results are the same"


def check_cores() -> tuple[bool | None, str, str]:
    """Cores that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return True, f"{usable} of {os.cpu_count()} usable", ""


def check_memory() -> tuple[bool | None, str, str]:
    """Memory of the machine."""
    import psutil

    memory = psutil.virtual_memory()
    found = f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB"
    if memory.available < 2 * GIB:
        return None, found, "Spark alone takes about 1 GiB: close other programs"
    return True, found, ""
