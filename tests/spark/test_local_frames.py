"""Frames of rows that are here leave the active session alone."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tuplewise.engine.spark.local_frames as module
from tuplewise.engine.spark.local_frames import frame_of
from tuplewise.engine.spark.session import open_session

ROOT = Path(module.__file__).parents[2]


def active(spark: Any) -> tuple[Any, Any]:
    """For Python, and in the JVM for this thread."""
    from pyspark.sql import SparkSession

    there = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()
    return SparkSession._activeSession, there.get() if there.isDefined() else None


@pytest.mark.spark
def test_the_active_session_stays(spark: Any) -> None:
    before = active(spark)
    clones = [open_session(spark).spark for _ in range(2)]
    table = pa.table({"a": [1, 2]})

    def made(clone: Any) -> list[int]:
        frame = frame_of(clone, table)
        assert frame.sparkSession is clone
        return [row["a"] for row in frame.collect()]

    assert made(clones[0]) == [1, 2]
    assert active(spark) == before
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(made, clones * 8)) == [[1, 2]] * 16
    assert active(spark) == before
    assert frame_of(clones[1], [], "a bigint").count() == 0
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    sessions.clearActiveSession()
    try:
        assert made(clones[0]) == [1, 2]
        assert not sessions.getActiveSession().isDefined()
    finally:
        sessions.setActiveSession(before[1])


def test_no_other_module_makes_frames() -> None:
    """A bare `createDataFrame` makes its session the active one."""
    found = {
        path.name
        for path in (ROOT / "engine").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "createDataFrame"
    }
    assert found == {"local_frames.py"}
