"""The classes that Spark's JVMs load, parsed once and kept in a file that later ones map: a start takes half as long.

A program of its own, too: it starts Spark and does a little of all that tests do; its JVM writes the file when it ends.
A JVM that the file doesn't fit, by its Java or its jars, does without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

MAKING = "-XX:ArchiveClassesAtExit="
USING = "-XX:SharedArchiveFile="
MOST_SECONDS = 240.0


def archive() -> Path | None:
    """Where the file is kept, for the Java and the Spark in use: beside the kernels; None where there is no Java."""
    from tuplewise.gpu_kernels.cache import wanted_folder

    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        return None
    real = Path(java).resolve()
    used = f"{real} {real.stat().st_mtime_ns} {metadata.version('pyspark')} {sys.prefix}"
    return wanted_folder().parent / f"spark-classes-{hashlib.sha256(used.encode()).hexdigest()[:16]}.jsa"


@cache
def make(archive: Path, jvm: str) -> None:
    """Make the file, unless another process does so already. Tests don't need it: what fails is tried once."""
    claim = archive.with_suffix(".making")
    with suppress(OSError, subprocess.TimeoutExpired):
        archive.parent.mkdir(parents=True, exist_ok=True)
        if claim.exists() and time.time() - claim.stat().st_mtime > 2 * MOST_SECONDS:  # who made it was killed
            claim.unlink()
        claim.touch(exist_ok=False)
        try:
            with tempfile.TemporaryDirectory(prefix="tuplewise-") as folder:
                made = Path(folder) / archive.name
                environment = os.environ | {"SPARK_SUBMIT_OPTS": f"{jvm} {MAKING}{made}"}
                program = [sys.executable, __file__, folder]
                subprocess.run(program, env=environment, capture_output=True, timeout=MOST_SECONDS, check=False)
                if made.exists():
                    shutil.copy(made, claim)
                    claim.replace(archive)
        finally:
            claim.unlink(missing_ok=True)


def main(folder: str) -> None:
    import pyarrow as pa
    from pyspark import SparkContext

    import tuplewise as tw
    from tuplewise.engine.spark.session import open_session, stop

    path = Path(folder) / "t.csv"
    path.write_text("a,b\n1,x\n2,x\n2,y\n")
    tw.load(str(path))
    spark = open_session().spark
    jvm: Any = SparkContext._gateway

    def as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = spark.createDataFrame(pa.table({"a": [1, 2, 2], "b": [3, 4, 5]})).repartition(2, "a").persist()
    found = rows.mapInArrow(as_they_are, rows.schema).groupBy("a").sum("b").orderBy("a")
    found.join(rows, "a").write.parquet(f"{folder}/t.parquet")
    spark.read.parquet(f"{folder}/t.parquet").toArrow()
    found.limit(1).collect()
    stop()
    jvm.shutdown()
    jvm.proc.stdin.close()
    jvm.proc.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
