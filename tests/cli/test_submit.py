"""`tuplewise submit`: the line of spark-submit for each kind of cluster, and a command that really runs by it."""

from __future__ import annotations

import json
import shlex
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import pyspark
import pytest
from cli_runs import inside, process

from tuplewise.spark_conf import plugin
from tuplewise.spark_conf.profiles import profile_path

K8S = ("--profile", "k8s-gpu", "--master", "k8s://https://host:6443", "--conf", "spark.kubernetes.container.image=img")


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    path = tmp_path / f"rapids-4-spark_2.13-{plugin.PLUGIN_VERSION}.jar"
    path.touch()
    monkeypatch.setenv("TUPLEWISE_RAPIDS_JAR", str(path))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return str(path)


def line(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    command = ["dc", "discover", "t.csv", "--error", "0.1", "-o", "o.json"]
    ran = inside(capsys, "submit", "--dry-run", *options, "--", *command)
    assert ran.code == 0, ran.err
    words = shlex.split(ran.out)
    assert words[0] == str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    assert words[-7:] == command
    return words[1:-7]


def values(words: list[str], option: str) -> list[str]:
    return [after for word, after in pairwise(words) if word == option]


def test_kubernetes_starts_the_driver_from_the_image(capsys: pytest.CaptureFixture[str]) -> None:
    words = line(capsys, *K8S)
    assert values(words, "--deploy-mode") == ["cluster"]
    assert values(words, "--master") == ["k8s://https://host:6443"]
    assert values(words, "--properties-file") == [str(profile_path("k8s-gpu"))]
    assert values(words, "--conf") == ["spark.kubernetes.container.image=img"]  # the image has the jar and the script
    assert words[-1] == "local:///opt/tuplewise/spark_conf/application.py"


def test_yarn_is_sent_what_its_nodes_lack(capsys: pytest.CaptureFixture[str], jar: str) -> None:
    words = line(capsys, "--profile", "yarn-gpu", "--conf", "spark.executor.cores=4")
    assert (values(words, "--master"), values(words, "--deploy-mode")) == (["yarn"], ["cluster"])
    assert set(values(words, "--conf")) == {
        "spark.executor.cores=4",
        "spark.task.resource.gpu.amount=0.25",
        f"spark.jars={jar}",
        f"spark.files={profile_path('yarn-gpu').with_name('gpu_discovery.sh')}",
    }
    assert Path(words[-1]).name == "application.py"
    assert Path(words[-1]).is_file()


def test_a_driver_here(capsys: pytest.CaptureFixture[str], jar: str) -> None:
    words = line(capsys, "--profile", "standalone-gpu", "--master", "spark://host:7077")
    assert values(words, "--deploy-mode") == ["client"]
    assert set(values(words, "--conf")) == {
        f"spark.driver.extraClassPath={jar}",
        f"spark.jars={jar}",
        f"spark.pyspark.driver.python={sys.executable}",
    }
    assert f"spark.pyspark.python={sys.executable}" in values(line(capsys), "--conf")
    assert values(line(capsys, *K8S, "--deploy-mode", "client"), "--deploy-mode") == ["client"]


def test_what_can_not_work_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for options, reason in [
        (("--master", "spark://host:7077", "--deploy-mode", "cluster"), "deploy mode 'cluster' with the master"),
        (("--profile", "k8s-gpu", "--master", "k8s://https://h:1"), "container.image is not set"),
        (("--profile", "nosuch"), "no Spark profile of that name: 'nosuch'"),
    ]:
        ran = inside(capsys, "submit", *options, "--", "doctor")
        assert (ran.code, ran.out) == (2, "")
        assert reason in ran.err
    assert inside(capsys, "submit", "--dry-run").code == 2


def test_only_a_wheel_of_ours_is_sent(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wheel = tmp_path / "tuplewise-0.1.0-py3-none-any.whl"
    wheel.touch()
    words = line(capsys, "--master", "spark://h:1", "--py-files", str(wheel))
    assert values(words, "--py-files") == ["tuplewise-0.1.0-py3-none-any.zip"]
    other = tmp_path / "tuplewise.zip"
    with zipfile.ZipFile(other, "w"):
        ran = inside(capsys, "submit", "--py-files", str(other), "--", "doctor")
    assert ran.code == 2
    assert "tuplewise.zip'; allowed: a wheel of tuplewise" in ran.err


@pytest.mark.spark
def test_a_command_runs_by_spark_submit(tmp_path: Path) -> None:
    """The session is the one that spark-submit was told of, and the exit code the command's: a rule is violated."""
    table, found = tmp_path / "t.csv", tmp_path / "found.json"
    table.write_text("a,b\n1,2\n1,3\n")
    local = ("--master", "local[1]", "--conf", "spark.app.name=mine")
    ran = process("submit", *local, "--", "dc", "check", str(table), "--rule", "a -> b", "-o", str(found))
    assert ran.code == 1, ran.err
    assert "Traceback" not in ran.out + ran.err
    assert "\tat " not in ran.err
    document = json.loads(found.read_text())
    assert document["spark"]["master"] == "local[1]"
    assert document["result"]["rules"][0]["violating_pairs"] == 2
