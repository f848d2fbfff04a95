"""`tuplewise doctor`: what it says of a good installation and of broken ones, and that it never raises."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from cli_runs import inside, process

from tuplewise.engine import doctor

NEEDED = {"python", "pyspark", "spark workers", "kernels"}


def find(name: str) -> doctor.Check:
    return next(check for check in doctor.examine() if check.name == name)


def fake_java(folder: Path, version: str, code: int = 0) -> str:
    """A program that says it is this Java. Returns a JAVA_HOME."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def test_json_has_the_promised_shape(capsys: pytest.CaptureFixture[str]) -> None:
    ran = inside(capsys, "doctor")
    document = json.loads(ran.out)
    assert list(document) == ["checks"]
    assert all(list(check) == ["name", "ok", "found", "advice"] for check in document["checks"])
    assert {type(check["ok"]) for check in document["checks"]} <= {bool, type(None)}
    assert {check["name"] for check in document["checks"]} > NEEDED
    good = all(check["ok"] is not False for check in document["checks"] if check["name"] in NEEDED)
    assert ran.code == (0 if good else 2)


def test_text_lists_every_check_and_its_advice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nosuch")
    ran = inside(capsys, "doctor", "--format", "text")
    assert ran.code == 0  # local files are read without it
    assert "none in JAVA_HOME (/nosuch)" in ran.out
    assert "apt-get install openjdk-17-jre-headless" in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_no_java_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    java = find("java")
    assert java.ok is None
    assert not java.needed
    assert "JAVA_HOME is not set, no java on PATH" in java.found
    assert "only where Spark reads" in java.advice
    assert "install OpenJDK 17" in java.advice


@pytest.mark.parametrize(
    ("version", "code", "ok", "word"),
    [
        ("17.0.15", 0, True, "17.0.15"),
        ("21.0.2", 0, True, "21.0.2"),
        ("1.8.0_402", 0, False, "too old"),
        ("25.0.1", 0, None, "untried"),
        ("17.0.15", 1, False, "does not run"),
        ("nonsense", 0, False, "does not run"),
    ],
)
def test_javas(
    version: str, code: int, ok: bool | None, word: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "jdk", version, code))
    java = find("java")
    assert java.ok is ok
    assert word in java.found + java.advice


def test_versions_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(version: str | None) -> doctor.Check:
        monkeypatch.setattr(doctor, "_version", lambda package: version)
        return find("pyspark")

    assert installed("4.1.3").ok is True
    assert installed("4.3.0").ok is None
    assert "pip install pyspark==4.1.3" in installed("4.3.0").advice
    assert installed(None).ok is False


def test_a_worker_python_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/nosuch/python")
    assert find("spark workers").ok is False
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert find("spark workers").ok is True


def test_the_plugin_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TUPLEWISE_RAPIDS_JAR", raising=False)
    assert find("rapids plugin").ok is None
    monkeypatch.setenv("TUPLEWISE_RAPIDS_JAR", str(tmp_path / "no.jar"))
    assert find("rapids plugin").ok is False
    jar = tmp_path / f"rapids-4-spark_2.13-{doctor.PLUGIN_VERSION}.jar"
    jar.touch()
    monkeypatch.setenv("TUPLEWISE_RAPIDS_JAR", str(jar))
    assert find("rapids plugin").ok is True


def test_a_cache_folder_that_can_not_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TUPLEWISE_CACHE_DIR", str(tmp_path / "file"))
    cache = find("kernel cache")
    assert cache.ok is False
    assert "TUPLEWISE_CACHE_DIR" in cache.advice


def test_a_check_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[bool | None, str, str]:
        raise OSError("disk on fire\nat line 3")

    monkeypatch.setattr(doctor, "check_memory", broken)
    memory = find("memory")
    assert memory.ok is False
    assert memory.found == "OSError: disk on fire"


def test_what_auto_needs_decides() -> None:
    good = doctor.Check("java", True, "17", needed=True)
    assert doctor.works([good, doctor.Check("gpu", None, "none"), doctor.Check("gpu packages", False, "broken")])
    assert not doctor.works([good, doctor.Check("kernels", False, "broken", needed=True)])


def test_without_java_the_process_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a\n1\n")
    without = {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    assert process("dc", "discover", str(path), env=without).code == 0
    ran = process("dc", "discover", str(path), "--reader", "spark", env=without)
    assert ran.code == 2
    assert ran.err.startswith("tuplewise: error: ")
    assert ran.err.count("\n") == 1
    assert "apt-get install openjdk-17-jre-headless" in ran.err
    assert ran.out == ""
