"""What all tests share: one Spark session, and this folder on the import path (`from oracles import dc`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Every JVM of the tests, also those of programs that they start, lives for seconds or a few minutes: the optimizing
# compiler would take a good part of that and pay nothing back.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:CICompilerCount=1"


def pytest_configure(config: pytest.Config) -> None:
    os.environ["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {QUICK_JVM}".strip()
    # py4j leaves connections to the JVM to the garbage collector, in whichever test that runs
    leftover = "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
    config.addinivalue_line("filterwarnings", leftover)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `--dist loadgroup`, all that shares the Spark session runs in one process, and each other module in one.

    What takes longest comes first, so that the processes end together.
    """
    longest = {"spark": 0, "test_rapids": 1}
    order = []
    for item in items:
        group = "spark" if "spark" in getattr(item, "fixturenames", ()) else item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))
        order.append(longest.get(group, len(longest)))
    items[:] = [item for _, item in sorted(zip(order, items, strict=True), key=lambda pair: pair[0])]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from tuplewise.engine.spark.session import open_session, stop

    # Interpreted plans of few partitions: the same operators, without seconds of compiling for a handful of rows.
    quick = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    yield open_session(conf=quick).spark
    stop()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of outside data and known answers: TUPLEWISE_SHARED, else beside the checkout."""
    path = Path(os.environ.get("TUPLEWISE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (path / "data").is_dir():
        pytest.skip(f"no outside data at {path} (TUPLEWISE_SHARED names another folder)")
    return path
