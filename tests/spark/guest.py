"""A caller's program on a cluster: it has a Spark session of its own and hands frames of it to the public functions."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from typing import Any

import on_cluster

import tuplewise as tw

RULES = "not(t.zip == u.zip and t.city != u.city); not(t.pay > u.pay and t.tax < u.tax)"
PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.scheduler.pool")


def process_state() -> dict[str, Any]:
    """What a library should leave alone in the process that calls it."""
    return {
        "environment": dict(os.environ),
        "working folder": os.getcwd(),
        "import path": list(sys.path),
        "loggers": (logging.root.level, [str(handler) for handler in logging.root.handlers], logging.raiseExceptions),
        "warnings": len(warnings.filters),
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        "threads that keep it alive": sorted(thread.name for thread in threading.enumerate() if not thread.daemon),
    }


def session_state(mine: Any) -> dict[str, Any]:
    """What is set, cached, named and running in a session."""
    from pyspark.sql import SparkSession

    context = mine.sparkContext
    active = mine._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()
    return {
        "settings": {row.key: row.value for row in mine.sql("SET").collect()},
        "context": sorted(context.getConf().getAll()),
        "active": SparkSession.getActiveSession() is mine,
        "active in the JVM": active.isDefined() and active.get().equals(mine._jsparkSession),
        "first": SparkSession._instantiatedSession is mine,  # type: ignore[attr-defined]
        "tables": [(row.tableName, mine.catalog.isCached(row.tableName)) for row in mine.sql("SHOW TABLES").collect()],
        "functions": mine.sql("SHOW USER FUNCTIONS").count(),
        "persisted": sorted(str(number) for number in context._jsc.getPersistentRDDs().keySet()),
        "log level": context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString(),
        "properties": [context.getLocalProperty(name) for name in PROPERTIES],
        "tags": sorted(context.getJobTags()),
        "files": sorted([*context.listFiles, *context.listArchives]),
        "checkpoints": context.getCheckpointDir(),
        "streams": len(mine.streams.active),
        "port for callbacks": context._gateway._callback_server is not None,
    }


def call_with_own_session(places: str, days: str) -> dict[str, Any]:
    """States of the session and the process before and after the calls, and some of what was found."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark reads the setting of that meaning from spark-submit only
    builder = SparkSession.builder.master(os.environ["LOOPBACK_MASTER"])
    for name, value in on_cluster.settings().items():
        builder = builder.config(name, value)
    mine = builder.getOrCreate()
    mine.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    mine.conf.set("spark.sql.shuffle.partitions", "2")
    mine.sparkContext.setLogLevel("FATAL")
    mine.sparkContext.setJobGroup("mine", "what I do", interruptOnCancel=True)
    mine.sparkContext.addJobTag("my-tag")
    frame = mine.read.parquet(places).cache()
    frame.count()
    frame.createOrReplaceTempView("places")
    mine.read.parquet(days).createOrReplaceTempView("days")
    before = session_state(mine), process_state()
    with on_cluster.small_sizes():
        found = {
            "violating_pairs": [rule.violating_pairs for rule in tw.check(frame, RULES, run_on="spark").rules],
            "constraints": len(tw.discover_dcs(frame, run_on="spark", algorithm="evidence", error="0.01")),
            "few pairs": tw.discover_dcs(mine.table("places"), run_on="spark", time_limit=2).partial,
            "orders": tw.check_ods(mine.table("days"), ["week -> month"], run_on="spark").holds,
            "inds": len(tw.discover_inds({"places": frame, "days": mine.table("days")}, run_on="spark").inds),
        }
    after = session_state(mine), process_state()
    usable = mine.sql("select count(*) from places").collect()[0][0]
    mine.stop()
    return {"before": before, "after": after, "found": found, "rows": usable}
