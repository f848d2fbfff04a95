"""Which reader takes a table, and why; and tables that come through pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tuplewise.engine.errors import InputError
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table import reader as module
from tuplewise.engine.table.reader import choose_reader
from tuplewise.engine.table.source import find_source
from tuplewise.engine.table.table import load

pytestmark = pytest.mark.arrow
TABLE = "a,b\n1,x\n2,y\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "t.csv").write_text(TABLE)
    return str(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("options", "reader", "reason"),
    [
        ({}, "arrow", "local CSV that fits in memory"),
        ({"reader": "arrow"}, "arrow", "asked for with reader=arrow"),
        ({"reader": "spark"}, "spark", "asked for with reader=spark"),
        ({"master": "local[1]"}, "spark", "Spark was asked for with master"),
        ({"conf": {"a": "b"}}, "spark", "Spark was asked for with conf"),
        ({"master": "local[1]", "reader": "arrow"}, "arrow", "asked for with reader=arrow"),
    ],
)
def test_small_files(path: str, options: dict[str, object], reader: str, reason: str) -> None:
    found = choose_reader(find_source(path), LoadOptions(**options))  # type: ignore[arg-type]
    assert (found.name, found.reason) == (reader, reason)


def test_files_that_need_more_memory_than_they_may_take(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_room", lambda: 10)
    found = choose_reader(find_source(path), LoadOptions())
    assert found.name == "spark"
    assert "would be needed here" in found.reason
    assert choose_reader(find_source(path), LoadOptions(reader="arrow")).name == "arrow"


def test_sessions_and_submitted_programs_read_by_spark(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_reader(find_source(path), LoadOptions(), session=True).name == "spark"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert choose_reader(find_source(path), LoadOptions()).reason == "the command runs under spark-submit"


def test_what_only_one_of_them_reads(tmp_path: Path) -> None:
    for given in ("s3://bucket/t.parquet", "spark:db.t"):
        assert choose_reader(find_source(given), LoadOptions()).name == "spark"
        with pytest.raises(InputError, match="reader 'arrow' for a table that only Spark reads"):
            choose_reader(find_source(given), LoadOptions(reader="arrow"))
    (tmp_path / "_t.csv").write_text(TABLE)
    hidden = find_source(str(tmp_path / "_t.csv"))
    assert choose_reader(hidden, LoadOptions(master="local[1]")).name == "arrow"
    with pytest.raises(InputError, match=r"Spark can't read .*passes over names.*Leave the reader out"):
        choose_reader(hidden, LoadOptions(reader="spark"))
    with pytest.raises(InputError, match="reader: 'duckdb'; allowed: 'auto' or 'arrow' or 'spark'"):
        LoadOptions(reader="duckdb")  # type: ignore[arg-type]


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TABLE,))
    writer.start()
    relation = load(str(pipe))
    writer.join()
    assert (relation.name, relation.rows) == ("pipe", 2)


def test_tables_and_rules_from_pipes(tmp_path: Path, path: str) -> None:
    command = f"{sys.executable} -m tuplewise.engine.cli.main"
    checked = f"{command} dc check - --rules <(echo 'a -> b') --format text --quiet < {path}"
    done = subprocess.run(["bash", "-c", checked], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stdin: 2 rows, 2 columns")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("*.csv", "sales"),
        ("north*.csv", "north"),
        ("*_2024.csv.gz", "2024"),
        ("north_*_[0-9].csv", "north"),
        ("*/part-?.csv", "part"),
        ("*/*.csv", "sales"),
        ("north [1].csv", "north [1]"),
    ],
)
def test_tables_are_called_by_what_is_written_out_in_a_pattern(
    given: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sales"
    (folder / "in").mkdir(parents=True)
    for file in ("north.csv", "north_a_1.csv", "x_2024.csv.gz", "in/part-1.csv", "north [1].csv"):
        (folder / file).write_text(TABLE)
    monkeypatch.chdir(folder)
    assert find_source(given).name == name
    assert find_source(str(folder / given)).name == name


def test_a_pipe_that_a_shell_has_made_is_called_a_pipe() -> None:
    command = f"{sys.executable} -m tuplewise.engine.cli.main"
    piped = f"{command} ind discover <(echo 'a') <(echo 'b') --format text --quiet"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.partition(":")[0] for line in done.stdout.splitlines()[:2]]
    assert [name.rstrip("0123456789") for name in names] == ["pipe", "pipe"]
    assert names[0] != names[1]


UNREADABLE = """
import os, sys
from tuplewise.engine.errors import InputError
from tuplewise.engine.table.source import find_source
if os.getuid() == 0:  # may read all
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    try:
        print(find_source(path).files)
    except InputError as error:
        print(error)
"""


def test_what_may_not_be_read_is_told() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as given:
        folder = Path(given)
        for path in (folder / "closed", folder / "open" / "closed"):
            path.mkdir(parents=True)
            (path / "t.csv").write_text(TABLE)
        (folder / "t.csv").write_text(TABLE)
        tried = [folder / "t.csv", folder / "closed", folder / "closed" / "t.csv", folder / "open"]
        for path in (folder / "closed", folder / "open" / "closed", folder / "t.csv"):
            path.chmod(0)
        folder.chmod(0o755)
        command = [sys.executable, "-c", UNREADABLE, *map(str, tried)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for path in (folder / "closed", folder / "open" / "closed"):
            path.chmod(0o755)
    hint = "Ask its owner, or run as a user who may read it"
    assert said == [
        f"no permission to read: '{folder}/t.csv'. {hint}",
        f"no permission to read: '{folder}/closed'. {hint}",
        f"no permission to look into the folder: '{folder}/closed'. {hint}",
        f"no permission to read: '{folder}/open/closed'. {hint}",
    ]


def test_a_file_that_is_said_to_be_readable_and_is_not(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(InputError, match=r"^no permission to read: '.*t\.csv'"):
        find_source(path)
