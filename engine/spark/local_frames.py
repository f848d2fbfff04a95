"""Spark frames of rows in this process."""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_lock = threading.Lock()  # one active session for all threads of Python


def frame_of(spark: SparkSession, rows: Any, schema: str | None = None) -> DataFrame:
    """Call `createDataFrame` on an Arrow table or a list, and keep the active session.

    Spark makes the session of the call the active one. Ours are clones with our own settings, in which the caller would
    then continue.
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
