"""Profiles: each setting says why, GPUs are shared with the kernels, and what can't work is refused before Spark."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tuplewise.engine.errors import InputError
from tuplewise.spark_conf import configuration, plugin
from tuplewise.spark_conf.configuration import DISCOVERY_SCRIPT, configure, share_of_gpu
from tuplewise.spark_conf.faults import faults_of, master_kind, plugin_spark
from tuplewise.spark_conf.profiles import profile_names, read_profile

NAMES = ["cpu-cluster", "k8s-gpu", "laptop", "local-gpu", "standalone-gpu", "yarn-gpu"]
GPU = [name for name in NAMES if name.endswith("-gpu")]
FOLDER = DISCOVERY_SCRIPT.parent
MASTERS = {"standalone-gpu": "spark://host:7077", "k8s-gpu": "k8s://https://host:6443", "yarn-gpu": "yarn"}


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A jar of the plugin, and the rest of what profiles ask of a machine."""
    path = tmp_path / f"rapids-4-spark_2.13-{plugin.PLUGIN_VERSION}.jar"
    path.touch()
    monkeypatch.setenv("TUPLEWISE_RAPIDS_JAR", str(path))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return str(path)


def no_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TUPLEWISE_RAPIDS_JAR")
    monkeypatch.setenv("HOME", str(tmp_path))


def whole(name: str, **more: str) -> dict[str, str]:
    """What a user has to name for a profile to work."""
    image = {"spark.kubernetes.container.image": "tuplewise:cuda"} if name == "k8s-gpu" else {}
    return configure(MASTERS[name], name, {**image, **{key.replace("_", "."): value for key, value in more.items()}})


def test_names() -> None:
    assert profile_names() == NAMES
    with pytest.raises(InputError, match="Did you mean 'laptop'"):
        read_profile("labtop")


@pytest.mark.parametrize("name", NAMES)
def test_each_setting_says_why(name: str) -> None:
    lines = (FOLDER / f"{name}.conf").read_text(encoding="utf-8").splitlines()
    assert all(len(line) <= 120 for line in lines)
    settings = [i for i, line in enumerate(lines) if line and not line.startswith("#")]
    assert len(settings) == len(read_profile(name)) > 8
    comments = [lines[i - 1] for i in settings]
    assert all(comment.startswith("# ") for comment in comments)
    assert len(set(comments)) == len(comments)


@pytest.mark.parametrize("name", GPU)
def test_kernels_have_room_beside_the_plugin(name: str) -> None:
    settings = read_profile(name)
    assert settings["spark.plugins"] == "com.nvidia.spark.SQLPlugin"
    assert 0 < float(settings["spark.rapids.memory.gpu.allocFraction"]) <= 0.5
    assert float(settings["spark.rapids.memory.gpu.minAllocFraction"]) == 0
    assert int(settings["spark.sql.execution.arrow.maxRecordsPerBatch"]) >= 1_000_000
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert "spark.shuffle.manager" not in settings


@pytest.mark.parametrize("name", list(MASTERS))
def test_executors_with_gpus(name: str) -> None:
    settings = read_profile(name)
    assert settings["spark.executor.resource.gpu.amount"] == "1"
    assert float(settings["spark.task.resource.gpu.amount"]) * int(settings["spark.executor.cores"]) == 1
    pinned, overhead = (
        int(settings[key].removesuffix("g"))
        for key in ("spark.rapids.memory.pinnedPool.size", "spark.executor.memoryOverhead")
    )
    assert overhead - pinned >= int(settings["spark.executor.cores"])  # a gigabyte and more for each Python worker
    for who in ("driver", "executor"):
        assert "-Duser.timezone=UTC" in settings[f"spark.{who}.extraJavaOptions"]


def test_local_profiles_ask_for_no_resources() -> None:
    for name in ("laptop", "local-gpu"):
        assert not [key for key in read_profile(name) if ".resource." in key]
        assert read_profile(name)["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize("name", list(MASTERS))
def test_profiles_that_work(name: str, jar: str) -> None:
    settings = whole(name)
    assert settings["spark.master"] == MASTERS[name]
    assert settings["spark.driver.extraClassPath"] == jar
    if name == "k8s-gpu":  # the image's
        assert settings["spark.executor.extraClassPath"] == "/opt/rapids/rapids-4-spark_2.13.jar"
        assert "spark.jars" not in settings
    else:
        assert settings["spark.jars"] == jar
    if name == "yarn-gpu":
        assert settings["spark.files"] == str(DISCOVERY_SCRIPT)


def test_what_the_user_sets_is_completed() -> None:
    settings = whole("standalone-gpu", spark_executor_cores="3", spark_executor_extraJavaOptions="-Xss2m")
    assert settings["spark.task.resource.gpu.amount"] == "0.3333"
    assert settings["spark.executor.extraJavaOptions"] == "-Xss2m -Duser.timezone=UTC"
    assert whole("standalone-gpu", spark_executor_cores="3", spark_task_resource_gpu_amount="1")[
        "spark.task.resource.gpu.amount"
    ] == "1"
    assert share_of_gpu("0") == "1"
    given = {"spark.jars.packages": "com.nvidia:rapids-4-spark_2.13:9.9.9"}
    assert "spark.jars" not in configure("spark://h:1", "standalone-gpu", given)
    assert configure("spark://h:1")["spark.sql.shuffle.partitions"] == "400"
    assert configure(conf={"spark.master": "spark://h:1"})["spark.sql.shuffle.partitions"] == "400"
    assert configure()["spark.master"] == "local[*]"


def test_only_explaining_needs_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jar: str) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    settings = configure(profile="local-gpu", conf={"spark.rapids.sql.mode": "explainOnly"})
    assert settings["spark.driver.extraClassPath"] == jar
    no_jar(monkeypatch, tmp_path)
    settings = configure(profile="local-gpu", conf={"spark.rapids.sql.mode": "explainOnly"})
    assert settings["spark.jars.packages"] == plugin.PLUGIN_COORDINATES


IN_LOCAL = "GPUs can't be scheduled in local mode, Spark would wait for them for ever: 'spark.{}.resource.gpu.amount=1'"


@pytest.mark.parametrize(
    ("master", "profile", "conf", "faults"),
    [
        ("local[2]", None, {"spark.task.resource.gpu.amount": "1"}, [IN_LOCAL.format("task")]),
        (None, None, {"spark.executor.resource.gpu.amount": "1"}, [IN_LOCAL.format("executor")]),
        (None, "local-gpu", {"spark.driver.resource.gpu.amount": "1"}, [IN_LOCAL.format("driver")]),
        (None, "standalone-gpu", {}, ["no Spark master is given, and this profile names none: 'standalone-gpu'"]),
        ("local[*]", "yarn-gpu", {}, ["Spark profile yarn-gpu with the master: 'local[*]'; allowed: yarn. For local"]),
        (
            "spark://host:7077",
            "local-gpu",
            {},
            [
                "allowed: local[*]. For spark://host:7077 there is the profile standalone-gpu",
                "executors can't reach a driver at spark.driver.host: '127.0.0.1'",
            ],
        ),
        ("spark://host:7077", None, {"spark.submit.deployMode": "cluster"}, ["'cluster'; allowed: client"]),
        ("sc://host", None, {}, ["Spark Connect can't be used"]),
        (None, None, {"spark.remote": "sc://host"}, ["Spark Connect can't be used"]),
        ("k8s://https://h:1", "cpu-cluster", {}, ["spark.kubernetes.container.image is not set"]),
        (
            "spark://h:1",
            "standalone-gpu",
            {
                "spark.task.resource.gpu.amount": "2",
                "spark.rapids.memory.gpu.minAllocFraction": "0.5",
                "spark.shuffle.manager": "com.nvidia.spark.rapids.spark356.RapidsShuffleManager",
                "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
                "spark.executor.extraJavaOptions": "-Duser.timezone=Asia/Tokyo",
            },
            [
                "spark.task.resource.gpu.amount: '2'; allowed: spark.executor.resource.gpu.amount or less, here 1",
                "spark.rapids.memory.gpu.allocFraction: '0.4'; allowed: 0.5 to 1",
                "spark.shuffle.manager is that of another Spark: 'spark356'; allowed: spark413",
                "Set spark.kryo.registrator to com.nvidia.spark.rapids.GpuKryoRegistrator",
                "differ in their time zone, which the RAPIDS plugin 26.08.1 refuses: ['UTC', 'Asia/Tokyo']",
            ],
        ),
        (
            "spark://h:1",
            "standalone-gpu",
            {"spark.executor.resource.gpu.amount": "2"},
            ["spark.executor.resource.gpu.amount with the RAPIDS plugin 26.08.1: '2'; allowed: 1"],
        ),
        ("spark://h:1", None, {"spark.executor.resource.gpu.amount": "0.5"}, ["'0.5'; allowed: a whole number"]),
        ("spark://h:1", None, {"spark.task.resource.gpu.amount": "x"}, ["'x'; allowed: a number"]),
        (
            "spark://h:1",
            "standalone-gpu",
            {"spark.rapids.memory.gpu.allocFraction": "half"},
            ["shares of the GPU's memory: {'spark.rapids.memory.gpu.allocFraction': 'half', "],
        ),
    ],
)
def test_what_can_not_work_is_refused(
    master: str | None, profile: str | None, conf: dict[str, str], faults: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        configure(master, profile, conf)
    assert "\n" not in str(caught.value)
    for fault in faults:
        assert fault in str(caught.value)


def test_a_spark_that_the_plugin_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration.metadata, "version", lambda package: "4.3.0")
    with pytest.raises(InputError, match=r"doesn't run with this Spark: '4.3.0'; allowed: 3.5.0-3.5.9, 4.0.0-4.0.4"):
        whole("standalone-gpu")
    assert "4.1.3" in plugin.PLUGIN_SPARK
    whole("standalone-gpu", **{"spark_rapids_shims-provider-override": "com.nvidia.Some"})
    assert configure("spark://h:1", "cpu-cluster")["spark.master"] == "spark://h:1"
    assert plugin_spark().endswith("4.1.1-4.1.3, 4.2.0")


@pytest.mark.parametrize(
    ("name", "lacking"), [("standalone-gpu", "the driver and executors"), ("k8s-gpu", "the driver")]
)
def test_a_plugin_without_a_jar(name: str, lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_jar(monkeypatch, tmp_path)
    with pytest.raises(InputError, match=rf"the RAPIDS plugin 26.08.1 has no jar for {lacking}\. Set TUPLEWISE_RAPIDS"):
        whole(name)
    whole(name, spark_jars="hdfs:///rapids-4-spark.jar")


def test_yarn_needs_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(InputError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        whole("yarn-gpu")


def test_the_driver_runs_elsewhere() -> None:
    image = {"spark.kubernetes.driver.container.image": "tuplewise:cuda"}
    settings = {"spark.master": "k8s://https://h:1", "spark.driver.host": "::1", **image}
    assert faults_of(settings, spark_version="4.1.3", deploy_mode="cluster") == []
    assert len(faults_of(settings, spark_version="4.1.3")) == 1
    (fault,) = faults_of({"spark.master": "spark://h:1"}, spark_version="4.1.3", deploy_mode="cluster")
    assert fault.startswith("deploy mode 'cluster' with the master: 'spark://h:1'; allowed: yarn, k8s://...")
    here = {"spark.master": "spark://127.0.0.1:7077,localhost:7078", "spark.driver.host": "127.0.0.1"}
    assert faults_of(here, spark_version="4.1.3") == []


def test_masters() -> None:
    kinds = ["local", "local[*]", "local[2,3]", "local-cluster[2,1,512]", "yarn", "k8s://x", "mesos://x"]
    assert [master_kind(master) for master in kinds] == ["local"] * 3 + ["local-cluster", "yarn", "k8s", "other"]


LISTED = (
    "GPU 0: NVIDIA A100 (UUID: GPU-aa1)\n"
    "  MIG 1g.5gb     Device  0: (UUID: MIG-cc3)\n"
    "GPU 1: NVIDIA A100 (UUID: GPU-bb2)"
)


def discover(folder: Path, listed: str | None, visible: str | None = None, code: int = 0) -> Any:
    """What the discovery script says where `nvidia-smi -L` lists this; None: there is none."""
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("sh", "sed", "grep", "head", "wc", "tr"):
        (tools / tool).symlink_to(next(p for d in ("/bin", "/usr/bin") if (p := Path(d, tool)).exists()))
    if listed is not None:
        (tools / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{listed}\nEND\nexit {code}\n")
        (tools / "nvidia-smi").chmod(0o755)
        (tools / "cat").symlink_to("/bin/cat")
    environment = {"PATH": str(tools)} | ({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    done = subprocess.run([str(DISCOVERY_SCRIPT)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        return done.stderr.strip()
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("visible", "addresses"),
    [
        (None, ["0", "1"]),
        ("1", ["0"]),  # CUDA numbers what it shows from 0
        ("1, 0", ["0", "1"]),
        ("GPU-bb2", ["0"]),
        ("MIG-cc3,GPU-aa", ["0", "1"]),
        ("0,7,1", ["0"]),  # what follows a GPU that isn't there is hidden
        ("0,-1,1", ["0"]),
    ],
)
def test_discovery(visible: str | None, addresses: list[str], tmp_path: Path) -> None:
    assert discover(tmp_path, LISTED, visible) == {"name": "gpu", "addresses": addresses}


@pytest.mark.parametrize(
    ("listed", "visible", "code", "reason"),
    [
        (None, None, 0, "no nvidia-smi on PATH: no NVIDIA driver is installed here"),
        ("", None, 0, "the driver sees no GPU"),
        ("NVIDIA-SMI has failed\nmore", None, 9, "nvidia-smi failed: NVIDIA-SMI has failed"),
        (LISTED, "", 0, "CUDA_VISIBLE_DEVICES='' hides all GPUs"),
        (LISTED, "-1", 0, "CUDA_VISIBLE_DEVICES='-1' hides all GPUs"),
        (LISTED, "*", 0, "CUDA_VISIBLE_DEVICES='*' hides all GPUs"),
    ],
)
def test_no_gpu_to_discover(listed: str | None, visible: str | None, code: int, reason: str, tmp_path: Path) -> None:
    assert discover(tmp_path, listed, visible, code) == f"gpu_discovery.sh: {reason}"


def test_a_local_gpu_profile_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.access(DISCOVERY_SCRIPT, os.X_OK)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(InputError, match=r"the RAPIDS plugin needs a GPU: .*explainOnly to see plans only"):
        configure(profile="local-gpu")
