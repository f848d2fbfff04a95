"""What keeps Spark from starting in this process's surroundings is one line, the same from commands and `doctor`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuplewise.engine import doctor
from tuplewise.engine.errors import InputError
from tuplewise.engine.spark.surroundings import check_surroundings


def test_these_surroundings_are_good() -> None:
    check_surroundings()
    assert doctor.check_spark_surroundings()[0] is True


def test_a_spark_home_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"^Spark can't start: SPARK_HOME names .*: '.*'\. Unset SPARK_HOME"):
        check_surroundings()
    found = next(check for check in doctor.examine() if check.name == "spark surroundings")
    assert found.ok is False
    assert "SPARK_HOME" in found.found
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    check_surroundings()


def test_folders_for_intermediate_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bad, good = str(tmp_path / "file" / "x"), str(tmp_path / "new")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", bad)
    with pytest.raises(InputError, match=r"^Spark can't start: SPARK_LOCAL_DIRS names no folder that can be written"):
        check_surroundings()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{bad},{good}")
    check_surroundings()
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    with pytest.raises(InputError, match=r"^Spark can't start: spark\.local\.dir names no folder"):
        check_surroundings({"spark.local.dir": bad})


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)
    with pytest.raises(InputError, match=r"no entry in /etc/passwd.*: 4000000001\. Add one, .* spark:x:4000000001:"):
        check_surroundings()


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    gone = tmp_path / "gone"
    program = (
        f"import os, sys; from tuplewise.engine.cli.main import main; os.rmdir({str(gone)!r})\n"
        f"main(['fd', 'discover', {str(tmp_path / 't.csv')!r}, '--reader', sys.argv[1]])"
    )

    def run(reader: str) -> tuple[int, str]:
        gone.mkdir()
        done = subprocess.run([sys.executable, "-c", program, reader], cwd=gone, capture_output=True, text=True)
        return done.returncode, done.stderr

    told = "Spark can't start: the working directory is gone. Change to a folder that is there (cd), and start again"
    assert run("spark") == (2, f"tuplewise: error: {told}\n")
    assert run("arrow") == (0, "")
