"""Kernels: what they are declared for, the keys of their machine code, and where that is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuplewise.gpu_kernels import cache, compiled
from tuplewise.gpu_kernels.building import Building, kernel_modules, kernels_named
from tuplewise.gpu_kernels.compiled import Kernel, fingerprint, helper, inlined, kernel

# Kernels for more than one set of types, and why: ranks of 8, 16 and 32 bits, offsets of Arrow's of 32 and 64 bits
SEVERAL = {
    "gpu_kernels.cpu.wavelet.write_ranks": 3,
    "gpu_kernels.cpu.wavelet.build_levels": 3,
    "gpu_kernels.cpu.distinct.add_cells": 2,
    "engine.dc.incremental.keys._find_text": 2,
    "engine.dc.incremental.keys._find_texts": 2,
}


def test_each_kernel_is_declared_for_one_set_of_types() -> None:
    kernels = kernels_named(kernel_modules())
    assert len(kernels) > 100
    for one in kernels:
        arguments = one.py_func.__code__.co_argcount
        assert [len(types) for types in one.signatures] == [arguments] * len(one.signatures), one.full_name
    counts = {one.full_name: len(one.signatures) for one in kernels}
    assert {name: count for name, count in counts.items() if count != 1} == SEVERAL
    assert max(Counter(one.full_name for one in kernels).values()) == 1


def test_arrays_are_contiguous_and_named_tuples_are_known() -> None:
    for one in kernels_named(kernel_modules()):
        for types in one.signatures:
            text = str(types)
            assert "'A'" not in text, one.full_name
            assert "'F'" not in text, one.full_name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(LookupError, match=r"no kernel is named 'gpu_kernels\.cpu\.tiles\.count'"):
        kernels_named(["gpu_kernels.cpu.tiles.count"])
    with pytest.raises(LookupError, match=r"no kernel is named 'gpu_kernels\.cpu\.plan\.make_plan'"):
        kernels_named(["gpu_kernels.cpu.plan.make_plan"])


STEP = 3


@helper
def _stepped(value):  # type: ignore[no-untyped-def]
    """A helper."""
    return value + STEP


@inlined
def _twice(value):  # type: ignore[no-untyped-def]
    return 2 * value


@kernel("const int64[::1], int64, boolean")
def _sum(values, extra, stepped):  # type: ignore[no-untyped-def]
    """A kernel with a helper of each kind."""
    total = 0
    for i in range(len(values)):
        total += _stepped(values[i]) if stepped else _twice(values[i])
    return total + _stepped(extra) + _stepped(1)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; kernels of this module as if they had not been called."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(cache, "_prepared", cache.KernelCache(folder, lasting=True))
    _sum._reset_overloads()
    _sum.__dict__.pop("_fingerprint", None)
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel"))


def test_read_only_arrays_use_the_same_machine_code(own_folder: Path) -> None:
    values = np.arange(5)
    assert _sum(values, 10, True) == 10 + 15 + 13 + 4
    values.flags.writeable = False
    assert _sum(values, 10, False) == 20 + 13 + 4
    assert len(files(own_folder)) == 1
    assert len({id(ready) for ready in _sum.overloads.values()}) == 1


def test_constants_make_no_specialisation_of_a_helper() -> None:
    assert _sum(np.arange(3), 1, True) == 3 + 9 + 4 + 4
    assert len(_stepped.overloads) == 1


def test_helpers_are_not_called_from_python() -> None:
    _sum(np.arange(3), 1, True)  # so that it is compiled
    for one in (_stepped, _twice):
        with pytest.raises(TypeError, match=f"{one.py_func.__name__} is a helper: kernels call it"):
            one(3)
    assert _stepped.py_func(3) == 6


def test_types_that_are_not_declared(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.setattr(compiled, "STRICT", True)
    with pytest.raises(TypeError, match=r"test_compiled\._sum is not declared for .*int32"):
        _sum(np.arange(3, dtype=np.int32), 1, True)
    monkeypatch.setattr(compiled, "STRICT", False)
    assert _sum(np.arange(3, dtype=np.int32), 1, True) == 3 + 9 + 4 + 4
    assert len(files(own_folder)) == 1


def test_an_array_that_is_written_to_must_be_writable() -> None:
    @kernel("int64[::1]")
    def clear(values):  # type: ignore[no-untyped-def]
        values[0] = 0

    values = np.arange(3)
    values.flags.writeable = False
    with pytest.raises(Exception, match=r"readonly|not declared"):
        clear(values)
    assert values.tolist() == [0, 1, 2]


def made(source: str) -> Any:
    """The function `one` of some source."""
    names: dict[str, Any] = {"kernel": kernel, "helper": helper, "np": np}
    exec(textwrap.dedent(source), names)
    return names["one"]


SOURCE = '''
LIMIT = 7
TABLE = np.arange(4)
@helper
def least(a, b):
    return a if a < b else b
@kernel("int64")
def one(x):
    """What it does."""
    return least(x, LIMIT) + TABLE[1]
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("What it does.", "Said otherwise.", True),
        ("\n@kernel", "\n\n# moved\n\n@kernel", True),
        ("LIMIT = 7", "LIMIT = 8", False),
        ("LIMIT = 7", "LIMIT = 7.0", False),
        ("np.arange(4)", "np.arange(5)", False),
        ("a < b", "a <= b", False),
        ("least(x, LIMIT)", "least(LIMIT, x)", False),
        ("@helper", "@kernel('int64, int64')", False),
    ],
)
def test_a_key_tells_what_is_compiled(old: str, new: str, same: bool) -> None:
    assert SOURCE.count(old) == 1
    assert (fingerprint(made(SOURCE)) == fingerprint(made(SOURCE.replace(old, new)))) is same


FIELDS = '''
from typing import NamedTuple
class Pair(NamedTuple):
    first: int
    second: int
@kernel("Pair(int64, int64)")
def one(pair):
    return pair.first
'''


def test_a_key_tells_the_fields_of_named_tuples() -> None:
    one, other = made(FIELDS), made(FIELDS.replace("first: int\n    second: int", "second: int\n    first: int"))
    assert fingerprint(one) == fingerprint(other)
    assert one.file_name(one.signatures[0]) != other.file_name(other.signatures[0])


def test_names_without_a_fixed_value_are_refused() -> None:
    with pytest.raises(TypeError, match=r"reads 'LIMIT', list: no key can tell when it changes"):
        fingerprint(made(SOURCE.replace("LIMIT = 7", "LIMIT = [7]")))


def test_every_kernel_has_a_key() -> None:
    keys = [fingerprint(one) for one in kernels_named(kernel_modules())]
    assert len(set(keys)) == len(keys)


def again() -> int:
    """The kernel, called as by a new process."""
    _sum._reset_overloads()
    return int(_sum(np.arange(3), 1, True))


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "foreign", "other version", "other content"])
def test_damaged_files_are_compiled_anew(own_folder: Path, damage: str) -> None:
    told: list[str] = []
    assert again() == 20
    (file,) = files(own_folder)
    content = whole = file.read_bytes()
    cache.announce_compiling(lambda: told.append("compiling"))
    assert again() == 20
    assert told == []
    if damage == "cut":
        content = whole[: len(whole) // 2]
    elif damage == "empty":
        content = b""
    elif damage == "changed":
        content = whole[:-9] + b"x" + whole[-8:]
    elif damage == "foreign":
        content = b"something else"
    elif damage == "other version":
        content = whole.replace(b"code 1\n", b"code 0\n", 1)
    else:  # a whole file of something else
        cache.save(file.stem, ("some", "thing"))
        content = file.read_bytes()
    assert content != whole
    file.write_bytes(content)
    assert again() == 20
    assert told == ["compiling"]
    assert cache.is_kept([file.stem])
    assert again() == 20


def test_a_full_disk_costs_only_the_time(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert again() == 20
    assert [path.name for path in own_folder.iterdir() if path.name != "lock"] == []


def test_old_files_of_a_kernel_make_room(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_VERSIONS", 3)
    for turn in range(5):
        cache.save(f"module.name-{turn}", turn)
        os.utime(own_folder / f"module.name-{turn}.kernel", (turn, turn))
        cache.save(f"module.other-{turn}", turn)
    assert [cache.load([f"module.name-{turn}"]) for turn in range(5)] == [None, None, 2, 3, 4]
    assert cache.load(["module.other-2"]) == 2


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tuplewise.gpu_kernels import cache
cache.announce_compiling(lambda: print("compiling"))
import loops
print(loops.double(21))
"""
LOOPS = """
from tuplewise.gpu_kernels.compiled import kernel
@kernel("int64")
def double(x):
    return 2 * x
"""


def run(folder: Path, place: Path, **more: str) -> list[str]:
    """What a new process says that calls a kernel of a module at some place."""
    place.mkdir(exist_ok=True)
    (place / "loops.py").write_text(LOOPS)
    environment = {**os.environ, "TUPLEWISE_KERNELS": str(folder), **more}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place)], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.split()


def test_machine_code_is_found_from_another_path_and_at_another_time(own_folder: Path, tmp_path: Path) -> None:
    assert run(own_folder, tmp_path / "one") == ["compiling", "42"]
    assert run(own_folder, tmp_path / "two") == ["42"]
    assert len(files(own_folder)) == 1


def test_two_processes_compile_once(own_folder: Path, tmp_path: Path) -> None:
    """One holds the turn until the other waits for it; then it keeps the kernel, and the other takes that."""
    assert run(own_folder, tmp_path / "place") == ["compiling", "42"]
    (file,) = files(own_folder)
    content = file.read_bytes()
    file.unlink()
    environment = {**os.environ, "TUPLEWISE_KERNELS": str(own_folder)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "place")]
    with cache.turn(file.stem) as held:
        assert held
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=3)
        file.write_bytes(content)
    assert other.communicate(timeout=60)[0].split() == ["42"]


def test_code_for_a_level_is_found_where_it_was_brought_along(
    own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "SHIPPED", tmp_path)
    if not cache.levels_here():
        pytest.skip("no level of processors is known for this machine")
    level, _ = cache.levels_here()[-1]
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    assert run(shipped, tmp_path / "one", **cache.environment_of(level)) == ["compiling", "42"]
    program = f"from pathlib import Path\nimport tuplewise.gpu_kernels.cache as c\nc.SHIPPED = Path({str(shipped)!r})\n"
    environment = {**os.environ, "TUPLEWISE_KERNELS": str(own_folder)}
    done = subprocess.run(
        [sys.executable, "-c", program + PROGRAM, str(tmp_path / "one")],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert done.stdout.split() == ["42"]
    assert files(own_folder) == []


def test_processes_build_what_is_missing(own_folder: Path) -> None:
    names = ["gpu_kernels.cpu.grouping.mark_values", "gpu_kernels.cpu.wavelet.write_ranks"]
    building = Building(names)
    assert (building.asked, building.missing, building.left) == (4, 4, 4)
    building.start()
    building.wait()
    building.stop()
    assert building.left == 0
    assert len(files(own_folder)) == 4
    assert Building(names).missing == 0


def test_kernels_that_can_not_be_had_are_told(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    building = Building(["gpu_kernels.cpu.grouping.mark_values"])
    own_folder.rmdir()
    own_folder.touch()
    building.start()
    with pytest.raises(RuntimeError, match=rf"^1 of 1 kernels could not be compiled: nothing came to {own_folder}$"):
        building.wait()
    building.stop()
    own_folder.unlink()
    building = Building(["gpu_kernels.cpu.grouping.mark_values"])
    monkeypatch.setattr(building, "_names", ["gpu_kernels.cpu.grouping.no_such_kernel"])
    building.start()
    with pytest.raises(RuntimeError, match="could not be compiled: LookupError: no kernel is named"):
        building.wait()
    building.stop()


def test_a_kernel_knows_its_module() -> None:
    assert isinstance(_sum, Kernel)
    assert _sum.full_name == "test_compiled._sum"
