"""What all tests share: one Spark session, and this folder on the import path (`from oracles import dc`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spark_classes

# Every JVM of the tests, also those of programs that they start, lives for seconds or a few minutes: the optimizing
# compiler would take a good part of that and pay nothing back. The quick one alone fills its room for compiled code in
# a minute, and then compiles nothing any more.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:CICompilerCount=1 -XX:ReservedCodeCacheSize=240m -Xlog:disable"
CLASSES = spark_classes.archive()


READER = os.environ.get("TUPLEWISE_TEST_READER")


def read_by_spark() -> None:
    """Let Spark read each local file that it can read, where a test asks for no reader: answers must be the same."""
    from tuplewise.engine.ind import unary
    from tuplewise.engine.table import reader, table

    real = reader.choose_reader

    def choose(source: Any, options: Any, *, session: bool = False) -> Any:
        if options.reader == "auto" and source.local and reader.why_not_spark(source, options) is None:
            return reader.Reader("spark", "the tests' reader")
        return real(source, options, session=session)

    for module in (reader, table, unary):
        module.choose_reader = choose  # type: ignore[attr-defined]
    unary.read_csv_cells = lambda *args, **kwargs: None  # type: ignore[assignment]


def pytest_configure(config: pytest.Config) -> None:
    os.environ["TUPLEWISE_STRICT_KERNELS"] = "1"  # before kernels are imported, here and in programs that tests start
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    if QUICK_JVM not in given:  # else this process is one of several, and has it from the first
        classes = f"{spark_classes.USING}{CLASSES}" if CLASSES else ""
        os.environ["SPARK_SUBMIT_OPTS"] = f"{given} {QUICK_JVM} {classes}".strip()
    # py4j leaves connections to the JVM to the garbage collector, in whichever test that runs
    leftover = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
    config.addinivalue_line("filterwarnings", leftover)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that the processes that share the modules end together."""
    if READER == "spark":
        read_by_spark()

    def rank(item: pytest.Item) -> int:
        if item.path.stem == "test_rapids":
            return 0
        return 1 if item.path.parent.name == "spark" else 2

    items.sort(key=rank)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Once on a machine: the classes of Spark are kept, by the process whose turn with Spark comes first."""
    if CLASSES and not CLASSES.exists() and item.get_closest_marker("spark"):
        spark_classes.make(CLASSES, QUICK_JVM)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from tuplewise.engine.spark.session import open_session, stop

    # Interpreted plans of few partitions: the same operators, without seconds of compiling for a handful of rows. Plans
    # are described in short, and calls don't look up where in a test they stand.
    quick = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.ui.explainMode": "simple",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    yield open_session(conf=quick).spark
    stop()


@pytest.fixture(scope="session", autouse=READER == "spark")
def the_tests_session(request: pytest.FixtureRequest) -> None:
    """Where Spark reads every file, the session of the tests is opened before any."""
    request.getfixturevalue("spark")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of outside data and known answers: TUPLEWISE_SHARED, else beside the checkout."""
    path = Path(os.environ.get("TUPLEWISE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (path / "data").is_dir():
        pytest.skip(f"no outside data at {path} (TUPLEWISE_SHARED names another folder)")
    return path
