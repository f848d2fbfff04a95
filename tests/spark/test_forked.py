"""Processes that are forked from one that works: they leave alone what is not theirs (D21)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

IN_SPARK = """
import os, sys
import tuplewise as tw
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.spark import session
from tuplewise.engine.table.table import load

path = sys.argv[1]
assert load(path, LoadOptions(reader="spark", master="local[1]")).rows == 3
frame = session._running().range(3)


def in_child():
    print("child:", tw.check(path, "a -> b", device="cpu").holds, flush=True)
    for table, options in ((path, LoadOptions(reader="spark")), (frame, LoadOptions())):
        try:
            load(table, options)
        except tw.InputError as refused:
            print("child:", refused, flush=True)


for ends in ("exit", "returns", "grandchild"):
    child = os.fork()
    if child == 0:
        if ends == "grandchild" and os.fork():
            os.wait()
            sys.exit()
        in_child()
        if ends == "returns":
            break
        sys.exit()
    code = os.waitpid(child, 0)[1]
    print("ended:", code, flush=True)
else:
    print("parent:", frame.count(), flush=True)
    assert session._started is not None
"""


@forks
@pytest.mark.spark
def test_a_forked_process_leaves_the_session_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n1,x\n2,y\n")
    command = [sys.executable, "-c", IN_SPARK, str(tmp_path / "t.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    refused = (
        "child: this process was forked from one that runs Spark, and can't use its session. Start it with spawn, as "
        "multiprocessing.get_context('spawn') does, or before Spark is opened"
    )
    of_one = ["child: True", refused, refused, "ended: 0"]
    assert done.stdout.splitlines() == [*of_one * 3, "parent: 3"]


WITHOUT_SPARK = """
import os, sys
from tuplewise.gpu_kernels.exits import at_exit

at_exit(print, "at the end of", sys.argv[1])
child = os.fork()
if child == 0:
    at_exit(print, "at the end of the child")
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
"""


@forks
def test_what_is_done_at_the_end_is_done_once() -> None:
    command = [sys.executable, "-c", WITHOUT_SPARK, "the parent"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["at the end of the child", "at the end of the parent"]


SESSION_LATER = """
import os, sys
from tuplewise.engine.spark import session

child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
opened = session.open_session(master="local[1]")
print(opened.spark.range(5).count(), opened.started)
"""


@forks
@pytest.mark.spark
def test_a_process_forked_before_spark_opens_its_own() -> None:
    command = [sys.executable, "-c", SESSION_LATER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, "5 True\n"), done.stderr


BUILDING = """
import os, sys
from tuplewise.gpu_kernels.building import Building

building = Building([])
building._processes = [__import__("subprocess").Popen(["sleep", "60"])]
if os.fork() == 0:
    building.stop()
    sys.exit()
assert os.wait()[1] == 0
print(building.running())
building.stop()
print(building.running())
"""


@forks
def test_processes_that_compile_are_the_parents() -> None:
    done = subprocess.run([sys.executable, "-c", BUILDING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\nFalse\n"), done.stderr
