"""The Spark session for reading tables: the caller's, which is left unchanged, or one that is started here."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.spark.surroundings import check_surroundings
from tuplewise.engine.spark.traces import Traces, restore_variables
from tuplewise.gpu_kernels.exits import at_exit
from tuplewise.spark_conf.configuration import configure
from tuplewise.spark_conf.faults import master_kind, waits_for_ever

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
WITHOUT_JAVA = "Local CSV, Parquet, ORC and JSON-lines files that fit in memory, and frames, are read without it"
KNOCK_SECONDS = 10.0
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""What spark-submit sets for the program that it runs: the port of the JVM that waits for it."""

# What each load needs, whatever the session says: set on a clone of the session, so that the caller's keeps its own.
_OWN_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Files may be in any encoding that Java knows; Spark 4 allows eight of them unless told so.
    "spark.sql.legacy.javaCharsets": "true",
    # Folder names such as zip=01234 are text, and become numbers by our rules only.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Parquet timestamps without a zone are read as instants in UTC; the plain type for them would leave the GPU.
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    # Text by bytes is 32-bit lengths; the plugin's hand-over leaves the GPU with 64-bit ones.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # The number of splits must be the same in each job, or row keys would differ between two of them.
    "spark.sql.files.minPartitionNum": "64",
}

_lock = threading.Lock()
_started: SparkSession | None = None
_before: Traces | None = None
_of_parent: Any = None
"""Where this process was forked from one that runs Spark, the gateway to that one's JVM: nothing may be sent there."""


def _forget_session() -> None:
    """In a process that was just forked: the session is the other's, to use and to stop; a lock may be held there."""
    global _lock, _started, _before, _of_parent
    _lock = threading.Lock()
    before, _started, _before = _before, None, None
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    _of_parent = getattr(context, "_gateway", None)
    if before is not None:
        before.remove()  # Ctrl-C would end the other's jobs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_session)


def _refuse_inherited() -> None:
    from pyspark import SparkContext

    if _of_parent is not None and SparkContext._gateway is _of_parent:
        what = "this process was forked from one that runs Spark, and can't use its session"
        hint = "Start it with spawn, as multiprocessing.get_context('spawn') does, or before Spark is opened"
        raise InputError(message(what, hint=hint))


@dataclass(frozen=True)
class OpenSession:
    """A session to work with.

    Attributes
    ----------
    spark : a clone of the session with our own settings; the original session is unchanged
    started : whether the session was started here
    seconds : what opening it took
    """

    spark: SparkSession
    started: bool
    seconds: float
    version: str
    master: str


def open_session(
    spark: SparkSession | None = None,
    *,
    master: str | None = None,
    profile: str | None = None,
    conf: Mapping[str, str] | None = None,
    start_seconds: float | None = None,
) -> OpenSession:
    """Open the given session, else the active one, else the one started before, else a new one.

    Under spark-submit a new session gets the settings of spark-submit.

    Parameters
    ----------
    start_seconds : limit for starting Spark; None: Spark's own

    Raises
    ------
    InputError
        If Java is missing or too old; if the session is a Spark Connect one or one whose tasks would never start; if
        `conf` has static settings that an existing session can't change; if a new one can't work because its
        configuration is impossible, no master answers, or Spark doesn't start; or if this process was forked from one
        that runs Spark.
    """
    start = time.perf_counter()
    _refuse_connect(spark)
    _refuse_inherited()
    found = spark if spark is not None else _running()
    own = found is not None and found is _started
    if found is not None and master is not None and found.sparkContext.master != master:
        hint = "Stop that session first, or leave the master out"
        raise InputError(
            message("a Spark session is running with another master", master, found.sparkContext.master, hint)
        )
    if found is None:
        with _lock:
            found = _running() or _start(master, profile, conf or {}, start_seconds)
        own = True
        settings: Mapping[str, str] = {}
    else:
        settings = conf or {}
    if waits := waits_for_ever(dict(found.sparkContext.getConf().getAll())):
        raise InputError(waits)
    clone = _clone(found, {**_OWN_SETTINGS, **settings})
    return OpenSession(clone, own, time.perf_counter() - start, found.version, found.sparkContext.master)


def _running() -> SparkSession | None:
    """The session of this thread, else one that another thread of the process has opened."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    context = SparkContext._active_spark_context
    if active is not None or context is None:
        return active
    if _started is not None and _started.sparkContext is context:
        return _started
    return SparkSession._instantiatedSession or SparkSession(context)


def _refuse_connect(spark: Any) -> None:
    remote = type(spark).__module__.startswith("pyspark.sql.connect") if spark is not None else False
    if not remote and spark is None:
        remote = "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ
    if remote:
        raise InputError(
            message(
                "a Spark Connect session can't be used: row positions and plans need the driver's JVM, which it hides",
                hint="Use a classic session (unset SPARK_REMOTE), or hand over the table with .toArrow()",
            )
        )


def _clone(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with the same catalog, views and settings, plus ours."""
    clone = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
    fixed = []
    for key, value in settings.items():
        try:
            clone.conf.set(key, value)
        except Exception:
            fixed.append(key)
    if fixed:
        what, hint = "settings that can't be changed in a running Spark session", "Set them before the session starts"
        raise InputError(message(what, ", ".join(fixed), hint=hint))
    return clone


def _start(
    master: str | None, profile: str | None, conf: Mapping[str, str], start_seconds: float | None
) -> SparkSession:
    global _started, _before
    from pyspark.sql import SparkSession

    before = Traces.before()
    if SUBMITTED in os.environ and master is None and profile is None:
        session = SparkSession(_context(conf, start_seconds))
    else:
        settings = configure(master, profile, conf)
        kind = master_kind(settings["spark.master"])
        if kind == "local":
            settings.setdefault("spark.driver.memory", _half_of_memory())
        check_surroundings(settings)
        check_java()
        if kind == "standalone":
            _knock(settings["spark.master"])
        with _environment(kind == "local", settings.get("spark.pyspark.python")):
            session = SparkSession(_context(settings, start_seconds))
    if _started is None:
        at_exit(stop)
    _started, _before = session, before
    return session


def _knock(master: str) -> None:
    """Raise InputError if no address of a standalone master accepts connections; Spark itself tries for a minute."""
    addresses = re.findall(r"([^/,]+):(\d+)(?=,|$)", master.removeprefix("spark://"))
    reasons = []
    for host, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()
            return
        except (OSError, OverflowError) as problem:
            reasons.append(f"{host}:{port}: {getattr(problem, 'strerror', None) or problem}")
    if not addresses:
        raise InputError(message("Spark master", master, "spark://HOST:PORT"))
    hint = "Is the cluster running, and can this machine reach it?"
    raise InputError(message(f"no Spark master answers ({'; '.join(reasons)})", master, hint=hint))


def _context(settings: Mapping[str, str], start_seconds: float | None) -> SparkContext:
    """A Spark context. Start-up messages of its JVM are shown only if it doesn't start."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    conf.setAppName("tuplewise")
    if SparkContext._gateway is not None:  # the JVM of a session that was stopped
        return SparkContext(conf=conf)
    with tempfile.TemporaryFile() as messages, _ending_jvm(start_seconds) as given_up:
        try:
            gateway = launch_gateway(conf, {"stderr": messages})
            return SparkContext(conf=conf, gateway=gateway)
        except (PySparkRuntimeError, Py4JError, OSError) as problem:
            messages.seek(0)
            said = messages.read().decode(errors="replace").strip().splitlines()
            if given_up.is_set():
                SparkContext._gateway = SparkContext._jvm = None  # that JVM has gone
                what = f"Spark did not start within {start_seconds:g} seconds and was given up"
                hint = "Does the cluster answer, and has it room?"
                raise InputError(message(what, settings.get("spark.master"), hint=hint)) from problem
            last = next((line for line in reversed(said) if "Exception" in line or "Error" in line), str(problem))
            raise InputError(
                message("Spark did not start", last[:300], hint="tuplewise doctor says what is missing")
            ) from problem


@contextlib.contextmanager
def _ending_jvm(seconds: float | None) -> Iterator[threading.Event]:
    """End the JVM that is started in this block after so many seconds; the event tells whether that happened.

    py4j writes what it meets when a JVM ends into the root logger; that is left out once it was ended here.
    """
    import psutil

    before, given_up = set(psutil.Process().children()), threading.Event()

    def is_wanted(record: logging.LogRecord) -> bool:
        return not (given_up.is_set() and "py4j" in Path(record.pathname).parts)

    def end() -> None:
        given_up.set()
        for child in set(psutil.Process().children()) - before:
            with contextlib.suppress(psutil.Error):
                child.kill()

    timer = threading.Timer(seconds, end) if seconds is not None else None
    if timer is not None:
        timer.start()
    logging.getLogger().addFilter(is_wanted)
    try:
        yield given_up
    finally:
        logging.getLogger().removeFilter(is_wanted)
        if timer is not None:
            timer.cancel()


def stop() -> None:
    """Stop the session that was started here, if there is one. A caller's session is not touched."""
    global _started, _before
    session, _started = _started, None
    before, _before = _before, None
    if session is not None:
        with contextlib.suppress(Exception):  # the JVM may be gone already, after Ctrl-C
            session.stop()
    if before is not None:
        before.remove()


def _half_of_memory() -> str:
    import psutil

    return f"{max(1024, min(16384, psutil.virtual_memory().total // 2**21))}m"


@contextlib.contextmanager
def _environment(local: bool, workers_python: str | None) -> Iterator[None]:
    """Environment variables for Spark's start: the Python of its workers, loopback only. Restored afterwards.

    `workers_python` is the setting of that name, which counts for spark-submit alone unless it is handed on here. Local
    workers run in this Python unless it says another.
    """
    wanted = {}
    if local:
        wanted = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    if workers_python is not None:
        wanted["PYSPARK_PYTHON"] = workers_python
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        restore_variables(before)


def check_java() -> int:
    """The major version of the Java that Spark will use.

    Raises InputError if there is none, or if it is too old for Spark 4.
    """
    hint = f"Install Java {OLDEST_JAVA}, e.g. apt-get install openjdk-17-jre-headless, or set JAVA_HOME to one"
    java = find_java()
    if java is None:
        where = {"JAVA_HOME": os.environ["JAVA_HOME"]} if os.environ.get("JAVA_HOME") else None
        allowed = f"Java {OLDEST_JAVA} or 21"
        raise InputError(message("Spark needs Java, which is not found", where, allowed, f"{hint}. {WITHOUT_JAVA}"))
    version = _java_version(Path(java))
    if version is None or version < OLDEST_JAVA:
        raise InputError(message(f"this Java can't run Spark 4 ({java})", version, f"Java {OLDEST_JAVA} or 21", hint))
    return version


def _java_version(java: Path) -> int | None:
    """The version of a Java from its file `release`, which is fast, else from its own output."""
    release = java.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    found = re.search(r'JAVA_VERSION="([^"]+)"', text)
    if found is None:
        try:
            said = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
        except OSError:
            return None
        found = re.search(r'version "([^"]+)"', said.stderr)
    return None if found is None else java_major(found[1])


def find_java() -> str | None:
    """The path of the Java that Spark would start: that of JAVA_HOME, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def java_major(version: str) -> int | None:
    """The major version: 17 for "17.0.15", 8 for "1.8.0_402"; None if the text is no version.

    Examples
    --------
    >>> java_major("17.0.15"), java_major("1.8.0_402"), java_major("none")
    (17, 8, None)
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None
