"""The command line as a process: Spark, Ctrl-C, pipes that close, terminals, and what an import costs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from cli_runs import TABLE, inside, process

INTERRUPTED = 130
START = [sys.executable, "-m", "tuplewise.engine.cli.main"]

# Runs the command line with a reader that needs no JVM, and a search that takes as long as the test likes.
STAND_IN = """
import sys, time
import pyarrow as pa
from tuplewise.engine.table import table as module
real = module.open_table
def load(source, options=None, **more):
    if not isinstance(source, str):
        return real(source, options, **more)
    if source == "slow":
        more["progress"]("reading")
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(60)
    columns = {f"c{k}": [i * (k + 3) * 7919 % (11 + k) for i in range(500)] for k in range(8)}
    return real(pa.table({"row": list(range(500)), **columns}), options, name="t")
module.open_table = load
from tuplewise.engine.cli.main import main
main()
"""


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.spark
def test_csv_through_spark(people: str, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "dc", "discover", people, "--device", "cpu", "--reader", "spark")
    document = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert document["tables"][0]["path"] == people
    assert [c["type"] for c in document["tables"][0]["columns"]] == ["integer", "text", "text", "integer"]
    assert document["spark"]["version"] == "4.1.3"
    rules = [c["rule"] for c in document["result"]["constraints"]]
    assert "not(t.id == u.id)" in rules
    assert "not(t.zip == u.zip and t.city != u.city)" in rules
    assert document["timings_seconds"]["total"] >= document["timings_seconds"]["load"] > 0


@pytest.mark.spark
def test_faults_in_files_are_one_message(tmp_path: Path, spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("a,b\n1,x\n2\n")
    for argv, word in (
        (["dc", "discover", str(tmp_path / "nosuch.csv")], "nosuch.csv"),
        (["dc", "discover", str(path)], "line"),
        (["dc", "discover", str(path), "--bad-rows", "report", "--columns", "c"], "c"),
    ):
        ran = inside(capsys, *argv)
        assert ran.code == 2
        assert ran.err.startswith("tuplewise: error: ")
        assert word in ran.err
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err


def is_java(process: psutil.Process) -> bool:
    try:
        return "java" in process.name()
    except psutil.NoSuchProcess:  # the shell that finds Java is there for a moment
        return False


@pytest.mark.spark
def test_ctrl_c_while_spark_starts_ends_the_jvm(people: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    running = subprocess.Popen(
        [*START, "dc", "discover", people, "--reader", "spark", "-o", str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children: list[psutil.Process] = []
    until = time.monotonic() + 60
    while not any(is_java(c) for c in children) and time.monotonic() < until:
        time.sleep(0.05)
        children = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == INTERRUPTED
    # The kernels of an empty cache may be announced before the JVM is seen: whichever comes first on this machine.
    assert out == ""
    assert re.fullmatch(r"(compiling \d+ kernels, once on this machine\n)?tuplewise: interrupted\n", err)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert children
    assert [c for c in alive if c.status() != psutil.STATUS_ZOMBIE] == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.csv"]


def stand_in(*argv: str, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STAND_IN, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def test_ctrl_c_during_the_work() -> None:
    running = stand_in("dc", "discover", "slow", "--device", "cpu")
    assert running.stderr is not None
    assert running.stderr.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == INTERRUPTED
    assert out == ""
    assert err.endswith("tuplewise: interrupted\n")
    assert "Traceback" not in err


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    running = stand_in("dc", "discover", "t", "--no-cross-columns", "--device", "cpu", "--format", "sql")
    assert running.stdout is not None
    read = running.stdout.read(100_000)  # more than a pipe holds, and not all there is
    running.stdout.close()
    assert len(read) == 100_000
    assert running.wait(timeout=60) == 0
    assert running.stderr is not None
    assert running.stderr.read() == ""
    running.stderr.close()


def test_text_and_progress_on_a_terminal_only() -> None:
    pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX")
    master, slave = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, "dc", "discover", "t", "--no-cross-columns", "--device", "cpu"],
        stdout=slave, stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed: all has been read
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert running.wait(timeout=60) == 0
    assert b"t: 500 rows, 9 columns" in shown
    assert b"by genuineness:" in shown
    assert b'"schema"' not in shown
    assert b"searching constraints" in shown or b"loading kernels" in shown or b"comparing pairs" in shown


def test_a_broken_pipe_behind_help_is_quiet() -> None:
    command = f"{sys.executable} -m tuplewise.engine.cli.main dc discover --help | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "U"
    assert done.stderr == ""


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys; from tuplewise.engine.cli.main import run; run(['dc', 'discover', '--help']); run(['--version'])\n"
        "print([m for m in ('numpy', 'numba', 'pyspark', 'pandas', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_public_names_are_all_there_and_importing_them_loads_nothing_heavy() -> None:
    code = (
        "import sys, tuplewise as tw\n"
        "heavy = [m for m in ('numpy', 'numba', 'pyspark', 'pandas', 'pyarrow', 'click', 'rich') if m in sys.modules]\n"
        "missing = [n for n in tw.__all__ if getattr(tw, n) is None or n not in dir(tw)]\n"
        "print(heavy, len(tw.__all__), missing)\n"
        "try: tw.nosuch\nexcept AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[] 40 []\nmodule 'tuplewise' has no attribute 'nosuch'\n"


def test_the_process_exits_with_the_code() -> None:
    ran = process("dc", "nosuch")
    assert ran.code == 2
    assert "No such command 'nosuch'" in ran.err
