"""Which module may import which: the layers of the architecture, and what must not be loaded early."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gpu_kernels", "spark_conf")

# A module imports from layers below its own, and from its own package.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("engine.errors", "engine.options"),
    ("gpu_kernels", "spark_conf"),
    ("engine.spark", "engine.table"),
    ("engine.placement",),
    ("engine.run",),
    ("engine.column_sets", "engine.grouping", "engine.made_on_access", "engine.scanner", "engine.state_folders"),
    ("engine.loop",),
    ("engine.local_table",),
    ("engine.spark_table",),
    ("engine.dc", "engine.od", "engine.ind"),
    ("engine.published",),
    ("engine.profile", "engine.together"),
    ("engine.report", "engine.doctor"),
    ("engine.contract",),
    ("engine.tasks",),
    ("engine.cli", "contracts", "dependencies", "inclusions", "maintained", "maintained_dcs", "profiles"),
    ("stream", "testing"),
    ("__init__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
NEIGHBOURS = {("engine.table", "engine.spark"), ("engine.options", "engine.errors")}

# What is kept for comparison, and the only modules that import it: those that choose an algorithm, when it is chosen.
PUBLISHED = "engine.published"
CHOICES = {
    "engine.dc.local_discover": "engine.published.hydra",
    "engine.dc.incremental.revising": "engine.published.incdc.indexes",
}

# Packages from outside, and the only places that import them at run time.
OUTSIDE = {
    "pyspark": ("engine/spark/", "engine/table/"),
    "py4j": ("engine/spark/", "engine/table/"),
    "cupy": ("gpu_kernels/cuda/", "gpu_kernels/device.py"),
    "cudf": ("gpu_kernels/cuda/", "gpu_kernels/device.py"),
    "pylibcudf": ("gpu_kernels/cuda/",),
    "numba.cuda": ("gpu_kernels/cuda/", "gpu_kernels/device.py"),
    "click": ("engine/cli/",),
    "rich": ("engine/cli/", "engine/report/"),
    "jinja2": ("engine/report/",),
    "lmdb": ("engine/ind/store.py",),
    "ruamel": ("engine/contract/file.py", "engine/contract/exports/soda.py", "engine/contract/imports/dbt.py"),
    "sqlglot": ("engine/contract/imports/sql_ddl.py",),
    "jsonschema": ("engine/contract/file.py",),
    "pandera": ("engine/contract/imports/pandera.py",),
}
LATE = (
    "numpy", "numba", "pyspark", "pandas", "pyarrow", "cupy", "cudf", "pylibcudf", "polars", "click", "rich", "jinja2",
    "lmdb", "ruamel", "jsonschema", "pandera", "sqlglot",
)  # fmt: skip


class Import(NamedTuple):
    name: str
    line: int
    for_types_only: bool


def sources() -> list[Path]:
    found = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    return [*found, *sorted((ROOT / "src" / "tuplewise").glob("*.py"))]


def module_name(path: Path) -> str:
    """`engine.dc.predicate`; `__init__` and its like for modules of the public package itself."""
    relative = path.relative_to(ROOT).with_suffix("")
    if relative.parts[0] == "src":
        return ".".join(relative.parts[2:])
    return ".".join(relative.parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[Import]:
    """Every import of a module, inside functions too; `from a import b` as `a.b`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides the layer; write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, node.lineno, id(node) in guarded)


def place(name: str) -> str:
    """The package of LAYERS that a module of ours belongs to."""
    if "." not in name or name.split(".")[0] != "engine":
        top = name.split(".")[0]
        return top if top in RANK else "__init__"
    return ".".join(name.split(".")[:2])


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_imports_go_down(path: Path) -> None:
    here = place(module_name(path))
    if here == "engine":
        assert not list(imports(path)), "engine/__init__.py stays empty, or every module would load what it imports"
        return
    assert here in RANK, f"{here} has no layer: add it to LAYERS"
    for found in imports(path):
        if not within(found.name, "tuplewise"):
            continue
        there = place(found.name.removeprefix("tuplewise").removeprefix("."))
        assert there in RANK, f"{there} has no layer: add it to LAYERS"
        allowed = RANK[there] < RANK[here] or there in (here, PUBLISHED) or (here, there) in NEIGHBOURS
        assert allowed, f"{path.relative_to(ROOT)}:{found.line} imports {found.name}: {here} is not above {there}"


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_published_algorithms_are_imported_by_the_choice_alone(path: Path) -> None:
    name = module_name(path)
    if within(name, PUBLISHED):
        return
    for found in imports(path):
        if within(found.name, f"tuplewise.{PUBLISHED}"):
            allowed = CHOICES.get(name)
            where = f"{path.relative_to(ROOT)}:{found.line} imports {found.name}"
            assert allowed is not None, f"{where}: only {', '.join(CHOICES)} may"
            assert within(found.name, f"tuplewise.{allowed}"), f"{where}; allowed here: {allowed}"


def test_published_algorithms_load_when_they_are_chosen() -> None:
    program = (
        f"import sys; import {', '.join(f'tuplewise.{module}' for module in CHOICES)}; "
        f"print(*[m for m in sys.modules if m.startswith('tuplewise.{PUBLISHED}')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_outside_packages_stay_in_their_rooms(path: Path) -> None:
    relative = path.relative_to(ROOT).as_posix()
    for found in imports(path):
        for package, rooms in OUTSIDE.items():
            if within(found.name, package) and not found.for_types_only:
                assert relative.startswith(rooms), f"{relative}:{found.line} imports {found.name}; only {rooms} may"


def test_no_second_copy_of_a_module() -> None:
    everything = [*sources(), *(p for d in ("tests", "benchmarks", "tools") for p in sorted((ROOT / d).rglob("*.py")))]
    for path in everything:
        for found in imports(path):
            bare = found.name.split(".")[0] in PACKAGES
            assert not bare, f"{path.relative_to(ROOT)}:{found.line}: import tuplewise.{found.name} instead"


def test_the_walk_sees_what_it_must(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark\n"
        "def late():\n    from numba import cuda\n    import cupy as cp\n"
    )
    assert [(i.name, i.for_types_only) for i in imports(module)] == [
        ("typing.TYPE_CHECKING", False),
        ("pyspark", True),
        ("numba.cuda", False),
        ("cupy", False),
    ]
    assert place("engine.dc.predicate") == "engine.dc"
    assert place("gpu_kernels.cpu.evidence") == "gpu_kernels"
    assert place("load") == "__init__"
    assert place("profiles.profile") == "profiles"


def test_import_is_light_and_quick() -> None:
    program = (
        "import sys, time; started = time.perf_counter(); import tuplewise; "
        f"print(time.perf_counter() - started, *[m for m in {LATE!r} if m in sys.modules])"
    )
    seconds = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        taken, *loaded = done.stdout.split()
        seconds.append(float(taken))
        assert loaded == []
    assert min(seconds) < 0.3


TWINS = sorted(path for side in ("cpu", "cuda") for path in (ROOT / "gpu_kernels" / side).glob("*.py"))


# `hashing` calls no twin: it is the formula that NumPy's arrays and compiled loops share.
DOORS = {path.stem for path in TWINS} & {path.stem for path in (ROOT / "gpu_kernels").glob("*.py")} - {"hashing"}
CALLS_ANOTHER_DOOR = {("gpu_kernels.cuda.clues", "evidence")}


@pytest.mark.parametrize("path", TWINS, ids=module_name)
def test_no_twin_imports_a_front_door(path: Path) -> None:
    """Records that both need have files of their own."""
    imported = {found.name.removeprefix("tuplewise.gpu_kernels.").split(".")[0] for found in imports(path)}
    here = module_name(path)
    assert {door for door in imported & DOORS if (here, door) not in CALLS_ANOTHER_DOOR} == set()


@pytest.mark.parametrize("path", TWINS, ids=module_name)
def test_no_class_on_a_gpu_derives_from_one_of_the_cpu(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bases = [ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
    assert path.name in ("clues.py",) or not any(base.startswith("cpu.") for base in bases)


def _signatures(path: Path) -> dict[str, list[str]]:
    """Parameters of the functions of a module and of its classes' public methods."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    scopes = [("", tree.body), *((f"{node.name}.", node.body) for node in classes)]
    functions = [(name, f) for name, body in scopes for f in body if isinstance(f, ast.FunctionDef)]
    return {name + f.name: [a.arg for a in f.args.args] for name, f in functions if not f.name.startswith("_")}


WITH_TWINS = sorted(door for door in DOORS - {"__init__"} if [path.stem for path in TWINS].count(door) == 2)


@pytest.mark.parametrize("name", WITH_TWINS)
def test_twins_are_called_alike(name: str) -> None:
    """What a front door calls has one name and the same parameters on both sides."""
    cpu, cuda = (_signatures(ROOT / "gpu_kernels" / side / f"{name}.py") for side in ("cpu", "cuda"))
    nodes = list(ast.walk(ast.parse((ROOT / "gpu_kernels" / f"{name}.py").read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    called = {
        side: {a.name for node in imports if (node.module or "").endswith(f"{side}.{name}") for a in node.names}
        for side in ("cpu", "cuda")
    }
    assert called["cpu"] == called["cuda"]
    both = [key for key in cuda if key in cpu and (key in called["cuda"] or "." in key)]
    assert both
    assert {key: cuda[key] for key in both} == {key: cpu[key] for key in both}
