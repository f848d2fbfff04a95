"""The repository's own facts agree with each other: links, versions, what the wheel must hold."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tools.check_wheel import expected_files, missing_files, module_names

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile.cuda").read_text(encoding="utf-8")
TARGETS = "help setup demo lint types test test-sim test-spark test-gpu wheel ci bench".split()


def docker_argument(name: str) -> str:
    match = re.search(rf"^ARG {name}=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert match, f"Dockerfile.cuda has no ARG {name}"
    return match[1]


@pytest.mark.parametrize("name", ["engine", "gpu_kernels", "spark_conf"])
def test_links_are_relative(name: str) -> None:
    link = ROOT / "src" / "tuplewise" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../../{name}"
    assert (link / "__init__.py").samefile(ROOT / name / "__init__.py")


def test_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
    assert f'org.opencontainers.image.version="{version}"' in DOCKERFILE


def test_image_has_the_cuda_of_the_extra_it_installs() -> None:
    major = docker_argument("CUDA_VERSION").split(".")[0]
    assert f"[cuda{major}]" in DOCKERFILE
    extra = PROJECT["project"]["optional-dependencies"][f"cuda{major}"]
    assert any(f"numba-cuda[cu{major}]" in requirement for requirement in extra)
    assert any(requirement.startswith(f"cupy-cuda{major}x") for requirement in extra)


def test_image_has_the_plugin_that_fits_pyspark() -> None:
    version = docker_argument("RAPIDS_VERSION")
    assert docker_argument("RAPIDS_SHA256") == "d5224e1c07bc881e93829ea341b33a9a7896d1ced7783262b62d027a1e48b1f9"
    assert "ADD --checksum=sha256:${RAPIDS_SHA256}" in DOCKERFILE
    assert "pyspark==4.1.3" in PROJECT["project"]["dependencies"]
    for name in ("engine", "spark_conf", "tests"):
        for path in (p for p in sorted((ROOT / name).rglob("*")) if p.suffix in {".py", ".conf", ".sh"}):
            for named in re.findall(r"rapids-4-spark_2\.13[:-](\d+\.\d+\.\d+)", path.read_text(encoding="utf-8")):
                assert named == version, f"{path.relative_to(ROOT)} names plugin {named}, the image has {version}"


def test_image_runs_as_a_user_and_checks_itself() -> None:
    instructions = [line for line in DOCKERFILE.splitlines() if line and not line.startswith((" ", "#"))]
    assert instructions[-1].startswith("CMD")
    users = [line for line in instructions if line.startswith("USER ")]
    assert users == ["USER 10001"]
    assert instructions.index("USER 10001") > max(i for i, s in enumerate(instructions) if s.startswith("RUN"))
    assert re.search(r'HEALTHCHECK .*CMD \["tuplewise", "doctor"', DOCKERFILE)
    assert "openjdk-17" in DOCKERFILE


def test_image_copies_only_what_the_context_holds() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"
    }
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert source in allowed, f"Dockerfile.cuda copies {source}, which .dockerignore leaves out"
            assert (ROOT / source).exists()


def test_make_help_names_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(TARGETS) <= {line.split()[0] for line in done.stdout.splitlines() if line}


def test_wheel_check_sees_a_missing_module(tmp_path: Path) -> None:
    import zipfile

    wanted = expected_files()
    assert {"tuplewise/__init__.py", "tuplewise/engine/errors.py", "tuplewise/gpu_kernels/words.py"} <= wanted
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in wanted - {"tuplewise/engine/errors.py"}:
            archive.writestr(name, "")
    assert missing_files(wheel, wanted) == ["tuplewise/engine/errors.py"]
    names = module_names({"tuplewise/engine/__init__.py", "tuplewise/engine/errors.py", "tuplewise/py.typed"})
    assert names == ["tuplewise.engine", "tuplewise.engine.errors"]


def test_scripts_can_be_started() -> None:
    for name in (".ci/run", ".ci/clean_demo"):
        path = ROOT / name
        assert os.access(path, os.X_OK), f"{name} is not executable"
        subprocess.run(["bash", "-n", str(path)], check=True)
