"""A folder of change files as a stream of batches. A function is called with each batch and its number."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import TuplewiseError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Handle = Callable[["DataFrame", int], Any]


class ChangeStream:
    """A query that passes the files of a folder to a function in batches. Each file is in exactly one batch.

    Parameters
    ----------
    spark : the session of the query
    paths : the folder, as Spark reads it
    format : "csv", "json" or "parquet"
    schema : of the files, as DDL text or a StructType
    options : of Spark's reader for the format
    handle : called with a batch's frame and its number. An exception ends the query. The next query of the same
        checkpoint then passes the batch again, with the same number.
    checkpoint : Spark's folder for the assignment of files to batches
    available_now : end after the files that exist now; else wait for more
    files_a_batch : limit of files in a batch; None: all that exist

    Attributes
    ----------
    query : the running query
    failure : the exception of `handle`, or None
    """

    def __init__(
        self, spark: SparkSession, paths: str, format: str, schema: Any, options: Mapping[str, str],
        handle: Handle, checkpoint: Path, *, available_now: bool, files_a_batch: int | None = None,
    ) -> None:  # fmt: skip
        self.failure: BaseException | None = None

        def hand_over(frame: DataFrame, batch: int) -> None:
            try:
                handle(frame, batch)
            except BaseException as problem:
                self.failure = problem
                raise

        reader = spark.readStream.format(format).schema(schema).options(**options)
        if files_a_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_a_batch)
        writer = reader.load(paths).writeStream.foreachBatch(hand_over)
        writer = writer.option("checkpointLocation", f"file://{checkpoint.absolute()}")
        self.query: StreamingQuery = (writer.trigger(availableNow=True) if available_now else writer).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the query. Returns whether it has ended; raises the exception of `handle`."""
        from pyspark.errors import StreamingQueryException

        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        except StreamingQueryException:
            if isinstance(self.failure, TuplewiseError):
                raise self.failure from None
            raise
        return ended is None or bool(ended)


def query_of(checkpoint: Path) -> str | None:
    """The identity of the query of a checkpoint; None if it has none yet."""
    try:
        found = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(found["id"]) if isinstance(found, dict) and "id" in found else None


@contextlib.contextmanager
def callbacks_closed(spark: SparkSession) -> Iterator[None]:
    """Close the port for calls from the JVM after the block, if the block opened it."""
    gateway: Any = spark.sparkContext._gateway
    before = gateway.__dict__.get("_callback_server")
    try:
        yield
    finally:
        server = gateway.__dict__.get("_callback_server")
        if before is None and server is not None:
            for connection in list(server.connections):  # threads that wait for the JVM's next call hold them open
                with contextlib.suppress(OSError, AttributeError):
                    connection.socket.shutdown(socket.SHUT_RDWR)
            gateway.shutdown_callback_server()
            gateway._callback_server = None
