"""Frames of rows that are in this process."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_lock = threading.Lock()  # one active session for all threads of Python


def frame_of(spark: SparkSession, rows: Any, schema: str | None = None) -> DataFrame:
    """What `createDataFrame` makes of an Arrow table or a list; the active session stays what it was.

    Spark makes the session that is asked the active one, and ours are clones with settings of our own: the caller would
    go on in one of them.
    """
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    with _lock:
        here, there = SparkSession._activeSession, sessions.getActiveSession()
        try:
            return spark.createDataFrame(rows, schema)
        finally:
            SparkSession._activeSession = here
            if there.isDefined():
                sessions.setActiveSession(there.get())
            else:
                sessions.clearActiveSession()
