"""The repository's own facts agree with each other: links, versions, what the wheel must hold."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tools.check_wheel import expected_files, missing_files, module_names
from tuplewise.spark_conf.plugin import PLUGIN_VERSION

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = "help setup demo lint types test test-sim test-spark test-gpu wheel docs ci bench".split()


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


def test_one_version_of_the_plugin_is_named() -> None:
    """Everywhere the one that fits the pinned Spark; tests/test_docker_image.py compares the image's with it."""
    for name in ("engine", "gpu_kernels", "spark_conf", "benchmarks"):
        for path in (p for p in sorted((ROOT / name).rglob("*")) if p.suffix in {".py", ".conf", ".sh"}):
            for named in re.findall(r"rapids-4-spark_2\.13[:-](\d+\.\d+\.\d+)", path.read_text(encoding="utf-8")):
                assert named == PLUGIN_VERSION, f"{path.relative_to(ROOT)} names plugin {named}, not {PLUGIN_VERSION}"


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


def test_what_cites_the_version_cites_this_one() -> None:
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert (citation["version"], citation["license"]) == (PROJECT["project"]["version"], PROJECT["project"]["license"])
    assert str(citation["date-released"]) in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("## ")[1]


def test_workflows_and_issue_templates_can_be_read() -> None:
    """Whether they do what they should is seen on GitHub only."""
    release = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")
    assert set(release["jobs"]) == {"build", "release"}
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        template = YAML(typ="safe").load(path)
        assert template["name"]
        assert template["description"]
        assert all({"type", "attributes"} <= set(part) for part in template["body"])


def test_readme_is_a_page_and_its_picture_is_small() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert (ROOT / "docs" / "images" / "report.png").stat().st_size <= 150_000
