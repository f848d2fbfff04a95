"""The folder of a state: killed at every call that writes, two writers, readers meanwhile, damage, a full disk."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuplewise as tw
from tuplewise.engine.dc.incremental import base_files, folder, revision_log
from tuplewise.engine.dc.incremental.folder import StateFolder
from tuplewise.engine.dc.incremental.revision_log import LogRecord
from tuplewise.engine.state_folders import NEW_STATE_FILE, NOTHING_APPLIED

FIXED = {"columns": ["a", "b"], "options": {"error": 0.0}, "path": "table\udcff.csv"}
CODES = np.arange(8, dtype=np.int32).reshape(4, 2)
BASE: dict[str, np.ndarray[Any, Any]] = {"codes": CODES, "new/number/values": np.arange(100, dtype=np.int64)}


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is handed to the disk: no test here takes the power away."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


# Functions of `os` by which anything is written, made, cut or removed.
CALLS = ("open", "pwrite", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir", "ftruncate", "truncate")

# A process that lets a child of its own do something and kill itself at the nth step (before and after each call that
# writes, and in the middle of it), for each n until the child gets to its end; and prints what the state then is: as it
# lies, as the next writer finds it, which files are left then, and what it is after one more revision.
WRITERS = """
import json, os, shutil, signal, sys
from pathlib import Path
from tests.dc import test_state_folder as test
from tuplewise.engine.dc.incremental.folder import StateFolder

os.fsync = lambda descriptor: None  # a kill is no loss of power

def step(first=lambda: None):
    global left
    left -= 1
    if left == 0:
        first()
        os.kill(os.getpid(), signal.SIGKILL)

def stepping(name):
    real = getattr(os, name)
    def call(*given, **named):
        step()
        if name == "pwrite":
            step(lambda: real(given[0], bytes(given[1])[: len(given[1]) // 2], given[2]))
        result = real(*given, **named)
        step()
        return result
    return call

template, place, what = Path(sys.argv[1]), Path(sys.argv[2]), getattr(test, sys.argv[3])
for left in range(1, 10_000):
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if template.exists():
        shutil.copytree(template, place / "s")
    child = os.fork()
    if not child:
        for name in test.CALLS:
            setattr(os, name, stepping(name))
        what(place / "s")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(json.dumps([status, *test.afterwards(place)]), flush=True)
    if status == 0:
        break
"""


def record(revision: int) -> LogRecord:
    """A revision, its arrays told by its number."""
    history = {"revision": revision, "kind": "insert", "gained": ["¬(t.a = t'.a)"] * revision}
    header = {"revision": revision, "history": history, "rows": 4 + revision}
    row = np.full((1, 2), revision, np.int32)
    clue, none = np.array([1, 255, 7], np.uint8), np.zeros((0, 3), np.int64)
    return LogRecord(header, {"codes": row, "clue": clue, "none": none})


def build(place: Path) -> None:
    StateFolder.create(place, fixed=FIXED, written_by="0.1.0", arrays=BASE, history={"revision": 0, "kind": "init"})


def append(place: Path) -> None:
    with StateFolder(place, write=True, sync=True) as state:
        state.append(record(state.revision + 1))


def rows_of(state: StateFolder) -> np.ndarray[Any, Any]:
    """The rows that a state holds: those of the base and of each revision since."""
    return np.vstack([state.array("codes"), *(one.arrays["codes"] for one in state.records())])


def checkpoint(place: Path) -> None:
    with StateFolder(place, write=True) as state:
        state.checkpoint({**BASE, "codes": rows_of(state), "extra": np.array([2.5])})


def only_open(place: Path) -> None:
    StateFolder(place, write=True).close()


def contents(place: Path, write: bool = False) -> dict[str, Any]:
    """All that a state says."""
    with StateFolder(place, write=write) as state:
        state.verify()
        return {
            "fixed": state.manifest.fixed,
            "revision": state.revision,
            "rows": rows_of(state).tolist(),
            "kept": state.array("new/number/values").tolist(),
            "history": list(state.history()),
        }


def names(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*"))


def afterwards(place: Path) -> Iterator[Any]:
    """What a killed process left, see WRITERS."""
    if (place / "s").exists():
        yield contents(place / "s")
    else:
        yield None
        build(place / "s")
    yield contents(place / "s", write=True)
    yield names(place)
    append(place / "s")
    yield contents(place / "s")["revision"]


def run(program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def killed(tmp_path: Path, template: Path, what: Callable[[Path], None]) -> list[list[Any]]:
    """What `what` leaves of a copy of the template, killed at each step; the last one ran to its end."""
    ended = run(WRITERS, str(template), str(tmp_path / "place"), what.__name__)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines, ended.stderr
    assert lines[-1][0] == 0, ended.stderr
    assert all(line[0] == 9 for line in lines[:-1])
    return lines


def files_of(checkpoint: int, *arrays: str) -> list[str]:
    """What lies in a folder, and nothing else."""
    bases = sorted({name.split("/")[0] for name in arrays})
    return sorted(["s", *(f"s/{n}" for n in (*bases, *arrays, f"log-{checkpoint}", *ALWAYS))])


ALWAYS = ("history.jsonl", "state.json", "writer.lock")
BUILT = files_of(0, "base-0/codes.npy", "base-0/new%2Fnumber%2Fvalues.npy")
NEXT = files_of(1, "base-1/codes.npy", "base-1/extra.npy", "base-1/new%2Fnumber%2Fvalues.npy")


def with_revisions(place: Path, count: int) -> dict[str, Any]:
    build(place)
    for _ in range(count):
        append(place)
    return contents(place)


def test_an_append_killed_at_every_step_is_there_or_not(tmp_path: Path) -> None:
    before = with_revisions(tmp_path / "s", 2)
    lines = killed(tmp_path, tmp_path / "s", append)
    after = contents(with_one_more(tmp_path / "s"))
    assert after["revision"] == 3
    assert after["rows"] == [*before["rows"], [3, 3]]
    found = [line[1] for line in lines]
    first = found.index(after)
    assert found[:first] == [before] * first
    assert found[first:] == [after] * (len(found) - first)
    assert 5 < first < len(found) - 1
    for _, lies, again, left, revision in lines:
        assert again == lies
        assert left == BUILT
        assert revision == lies["revision"] + 1


def with_one_more(place: Path) -> Path:
    append(place)
    return place


def test_a_checkpoint_killed_at_every_step_loses_nothing(tmp_path: Path) -> None:
    before = with_revisions(tmp_path / "s", 3)
    lines = killed(tmp_path, tmp_path / "s", checkpoint)
    assert len(lines) > 60
    for _, lies, again, left, revision in lines:
        assert lies == again == before
        assert left in (BUILT, NEXT)
        assert revision == 4
    renamed = [line[3] for line in lines].index(NEXT)
    assert all((line[3] == NEXT) == (number >= renamed) for number, line in enumerate(lines))
    assert 40 < renamed < len(lines) - 6


def test_a_build_killed_at_every_step_is_there_or_not(tmp_path: Path) -> None:
    lines = killed(tmp_path, tmp_path / "none", build)
    assert len(lines) > 40
    for _, lies, again, left, revision in lines:
        assert lies in (None, again)
        assert left == BUILT
        assert revision == 1
        assert again["history"] == [{"revision": 0, "kind": "init"}]


def test_opening_what_a_killed_process_left_may_be_killed_too(tmp_path: Path) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 2)
    leave_over(place)
    lines = killed(tmp_path, place, only_open)
    assert len(lines) > 20
    assert {json.dumps(line[1:]) for line in lines} == {json.dumps([before, before, BUILT, 3])}


def leave_over(place: Path) -> None:
    """What killed processes may leave: a torn record, half of a checkpoint, files of the one before."""
    with (place / "log-0").open("ab") as stream:
        stream.write(revision_log.packed(record(3), 3)[:-9])
    (place / "base-1").mkdir()
    (place / "base-1" / "codes.npy").write_bytes(b"half")
    (place / "base-2").mkdir()
    (place / "log-1").write_bytes(b"")
    (place / NEW_STATE_FILE).write_bytes(b"{")
    with (place / "history.jsonl").open("ab") as stream:
        stream.write(b'{"revision": 1, "ki')


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = {
        "empty": np.zeros((0, 5), np.int32),
        "one": np.array(3.5),
        "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "true": np.array([True, False]),
        "days": np.array(["2020-01-01"], "datetime64[D]"),
        "every second": np.arange(10, dtype=np.uint64)[::2],
        "large": np.arange(3_000_000, dtype=np.int64),
    }
    StateFolder.create(tmp_path / "s", fixed={}, written_by="x", arrays=arrays, history={})
    with StateFolder(tmp_path / "s", write=True) as state:
        state.append(LogRecord({"revision": 1, "history": {}}, arrays))
        assert state.arrays() == list(arrays)
        (written,) = state.records()
        for name, array in arrays.items():
            for found in (state.array(name), written.arrays[name]):
                assert (found.dtype, found.shape) == (array.dtype, array.shape)
                assert np.array_equal(found, array)
                assert not found.flags.writeable
                assert found.flags.c_contiguous
                assert found.flags.aligned
        state.verify()
        for wrong in (np.array([{}]), np.zeros(2, "i4,f8")):
            with pytest.raises(TypeError, match=r"array 'x' is of type .*: objects and structures can't be written"):
                state.append(LogRecord({"revision": 2, "history": {}}, {"x": wrong}))
        with pytest.raises(ValueError, match="revision 3 with its history comes after 1"):
            state.append(LogRecord({"revision": 3, "history": {}}))
        with pytest.raises(TypeError, match="not JSON serializable"):
            state.append(LogRecord({"revision": 2, "history": {"x": object()}}))
        assert state.revision == 1


def test_what_is_fixed_must_be_json(tmp_path: Path) -> None:
    for wrong in ({"x": object()}, {"x": float("nan")}):
        with pytest.raises((TypeError, ValueError), match="JSON"):
            StateFolder.create(tmp_path / "s", fixed=wrong, written_by="x", arrays={}, history={})
    assert names(tmp_path) == []


def test_history_goes_on_over_checkpoints(tmp_path: Path) -> None:
    place = tmp_path / "s"
    build(place)
    for _ in range(3):
        append(place)
        append(place)
        checkpoint(place)
    append(place)
    with StateFolder(place, write=False) as state:
        history = list(state.history())
        assert [one["revision"] for one in history] == list(range(8))
        assert history[5] == record(5).header["history"]
        for since in range(9):
            assert list(state.history(since)) == history[since:]
        assert (state.manifest.checkpoint, state.manifest.revision, state.revision) == (3, 6, 7)
        assert state.log_bytes == (place / "log-3").stat().st_size > 0
        assert rows_of(state)[4:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert [path.name for path in place.glob("base-*")] == ["base-3"]
    with StateFolder(place, write=True) as state:
        state.checkpoint({})
        assert state.arrays() == []
    assert names(place) == ["base-4", "history.jsonl", "log-4", "state.json", "writer.lock"]


def test_a_reader_stays_at_its_revision_until_it_looks_again(tmp_path: Path) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 1)
    with StateFolder(place, write=False) as reader, StateFolder(place, write=True) as writer:
        assert not reader.refresh()
        half = reader.records()
        writer.append(record(2))
        writer.append(record(3))
        assert (reader.revision, len(list(reader.records())), len(list(reader.history()))) == (1, 1, 2)
        codes = reader.array("codes")
        writer.checkpoint({"codes": rows_of(writer)})
        writer.append(record(4))
        assert reader.revision == 1
        assert rows_of(reader).tolist() == before["rows"]
        assert reader.array("new/number/values").tolist() == before["kept"]  # its file is gone
        assert list(reader.history()) == before["history"]
        going = reader.history()
        next(going)
        assert reader.refresh()
        assert (reader.revision, reader.manifest.checkpoint, reader.arrays()) == (4, 1, ["codes"])
        assert rows_of(reader)[4:, 0].tolist() == [1, 2, 3, 4]
        assert [one["revision"] for one in reader.history()] == [0, 1, 2, 3, 4]
        assert codes.tolist() == CODES.tolist()
        assert not reader.refresh()
        writer.append(record(5))
        assert reader.refresh()
        assert reader.revision == 5
        assert [one.header["revision"] for one in half] == [1]
    assert codes.tolist() == CODES.tolist()


def test_a_reader_that_opens_while_a_checkpoint_is_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "s"
    with_revisions(place, 1)
    real = base_files.mapped
    meanwhile = [append, checkpoint, append]

    def late(*given: Any) -> Any:
        works = meanwhile[:]
        meanwhile.clear()  # they open the folder too
        for work in works:
            work(place)
        return real(*given)

    monkeypatch.setattr(folder, "mapped", late)
    with StateFolder(place, write=False) as reader:
        assert (reader.revision, reader.manifest.checkpoint) == (3, 1)


def test_a_reader_that_meets_a_record_being_written_over_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "s"
    with_revisions(place, 1)
    whole = (place / "log-0").read_bytes()
    mixed = bytearray(revision_log.packed(record(2), 2))
    mixed[-1] ^= 1
    (place / "log-0").write_bytes(whole + mixed)

    def wait(seconds: float) -> None:
        (place / "log-0").write_bytes(whole + revision_log.packed(record(2), 2))

    monkeypatch.setattr(time, "sleep", wait)
    with StateFolder(place, write=False) as reader:
        assert reader.revision == 2


def test_a_state_that_was_built_anew_is_told(tmp_path: Path) -> None:
    place = tmp_path / "s"
    build(place)
    with StateFolder(place, write=False) as reader:
        shutil.rmtree(place)
        with pytest.raises(tw.InputError, match=r"no such state: .*; allowed: a folder that dc init made"):
            reader.refresh()
        StateFolder.create(place, fixed={"columns": ["c"]}, written_by="x", arrays={}, history={})
        with pytest.raises(tw.InputError, match=r"the state was built anew meanwhile: .*Open it again"):
            reader.refresh()
        assert rows_of(reader).tolist() == CODES.tolist()


def test_the_second_writer_gets_an_error(tmp_path: Path) -> None:
    place = tmp_path / "s"
    build(place)
    with StateFolder(place, write=True) as state:
        with pytest.raises(tw.InputError, match=r"being written by this process.*; dc show reads meanwhile"):
            StateFolder(place, write=True)
        opening = "import sys; from tests.dc.test_state_folder import only_open, Path; only_open(Path(sys.argv[1]))"
        assert f"the state is being written by process {os.getpid()}" in run(opening, str(place)).stderr
        state.append(record(1))
        assert state.writes
    state.close()
    assert not state.writes
    for call in (state.records, state.refresh, lambda: state.append(record(2)), lambda: state.checkpoint({})):
        with pytest.raises(tw.InputError, match=r"the state is closed: .*Open it again"):
            call()
    with StateFolder(place, write=False) as reader:
        with pytest.raises(tw.InputError, match=r"the state was opened to be read only"):
            reader.append(record(2))
        assert not reader.writes
        assert reader.revision == 1
    append(place)


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 2)
    leave_over(place)
    as_it_lies = {path: path.is_file() and path.read_bytes() for path in place.rglob("*")}
    assert contents(place) == before
    assert {path: path.is_file() and path.read_bytes() for path in place.rglob("*")} == as_it_lies


def test_what_is_no_state(tmp_path: Path) -> None:
    for write in (True, False):
        with pytest.raises(tw.InputError, match=r"no such state: .*none"):
            StateFolder(tmp_path / "none", write=write)
        with pytest.raises(tw.InputError, match=r"this folder is not a state: it has no state.json"):
            StateFolder(tmp_path, write=write)
    assert names(tmp_path) == []
    for other in ('{"kind": "tuplewise inclusion dependencies", "format": 1}', "[]", "3"):
        (tmp_path / "state.json").write_text(other)
        with pytest.raises(tw.InputError, match=r"not a state of denial constraints: .*the folder that dc init made"):
            StateFolder(tmp_path, write=True)
    assert names(tmp_path) == ["state.json"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    build(tmp_path / "s")
    with pytest.raises(tw.InputError, match=r"is not empty: .*; allowed: a new or an empty folder.*by dc insert"):
        build(tmp_path / "s")
    (tmp_path / "file").write_text("x")
    with pytest.raises(tw.InputError, match=r"the folder of the state is not empty"):
        build(tmp_path / "file")
    with pytest.raises(tw.InputError, match=r"the folder of the state can't be made: .*file"):
        build(tmp_path / "file" / "s")
    assert contents(tmp_path / "s")["revision"] == 0
    build(tmp_path / "new" / "deeper" / "s")


def test_the_state_of_another_version(tmp_path: Path) -> None:
    build(tmp_path / "s")
    path = tmp_path / "s" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    says = r"is of another version: .*format 99, written by tuplewise 0.1.0.*format 1.*dc init"
    for write in (True, False):
        with pytest.raises(tw.InputError, match=says):
            StateFolder(tmp_path / "s", write=write)


def test_a_manifest_with_a_changed_byte_is_not_believed(tmp_path: Path) -> None:
    before = with_revisions(tmp_path / "s", 1)
    path = tmp_path / "s" / "state.json"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(tw.InputError):
            StateFolder(tmp_path / "s", write=True)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(tw.InputError, match=r"is damaged: state.json can't be read.*from the table: tuplewise dc init"):
        StateFolder(tmp_path / "s", write=True)
    path.write_bytes(whole.replace(b'"error"', b'"terror"'))
    with pytest.raises(tw.InputError, match=r"damaged: state.json can't be read: it is not what was written"):
        StateFolder(tmp_path / "s", write=True)
    path.write_bytes(whole)
    assert contents(tmp_path / "s") == before


def test_files_that_are_missing_or_cut(tmp_path: Path) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 3)
    checkpoint(place)
    append(place)
    for name in ("base-1/codes.npy", "base-1/new%2Fnumber%2Fvalues.npy", "log-1", "history.jsonl"):
        whole = (place / name).read_bytes()
        (place / name).unlink()
        for write in (True, False):
            with pytest.raises(tw.InputError, match=rf"the state is damaged: {name} is missing.*tuplewise dc init"):
                StateFolder(place, write=write)
        if name != "log-1":
            (place / name).write_bytes(whole[:-1])
            with pytest.raises(tw.InputError, match=rf"{name} has {len(whole) - 1} bytes, not {len(whole)}"):
                StateFolder(place, write=False)
        (place / name).write_bytes(whole)
    assert contents(place)["history"][:4] == before["history"]
    with StateFolder(place, write=False) as state, pytest.raises(tw.InputError, match=r"damaged: it has no array 'x'"):
        state.array("x")


def test_changed_bytes_of_the_base_and_the_history_are_found_when_they_are_read(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with_revisions(place, 1)
    for name, at in (("base-0/codes.npy", -1), ("base-0/codes.npy", 0), ("history.jsonl", 3)):
        whole = bytearray((place / name).read_bytes())
        whole[at] ^= 1
        (place / name).write_bytes(whole)
        with StateFolder(place, write=False) as state:
            if name == "history.jsonl":
                with pytest.raises(tw.InputError, match=r"damaged: history.jsonl is not what was written"):
                    list(state.history())
                assert [one["revision"] for one in state.history(1)] == [1]
            else:
                with pytest.raises(tw.InputError, match=r"damaged: base-0/codes.npy is not what was written"):
                    state.verify()
            if name.startswith("base") and at == 0:
                with pytest.raises(tw.InputError, match=r"damaged: base-0/codes.npy can't be read"):
                    state.array("codes")
        whole[at] ^= 1
        (place / name).write_bytes(whole)
    contents(place)


def test_a_log_that_was_cut_anywhere_ends_with_the_last_complete_revision(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with_revisions(place, 3)
    whole = (place / "log-0").read_bytes()
    ends = [0]
    for number in (1, 2, 3):
        ends.append(ends[-1] + len(revision_log.packed(record(number), number)))
    assert ends[-1] == len(whole)
    sizes = {*range(0, len(whole), 7), *(end + more for end in ends for more in (-1, 0, 1, 31, 32, 33))}
    for size in sorted(size for size in sizes if 0 <= size < len(whole)):
        complete = sum(end <= size for end in ends) - 1
        for filling in (b"", bytes(5000)):  # zeros: a file that was made longer before a loss of power
            if filling and size not in ends:
                continue
            (place / "log-0").write_bytes(whole[:size] + filling)
            with StateFolder(place, write=False) as state:
                assert (state.revision, state.log_bytes) == (complete, ends[complete])
                assert len(list(state.history())) == complete + 1
            append(place)
            assert (place / "log-0").read_bytes() == whole[: ends[complete + 1]]


def test_a_changed_byte_of_the_log_is_an_error_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revision_log, "_WAIT_SECONDS", 0)
    place = tmp_path / "s"
    before = with_revisions(place, 2)
    whole = (place / "log-0").read_bytes()
    first = len(revision_log.packed(record(1), 1))
    for at in (*range(40), *range(40, len(whole), 3)):
        (place / "log-0").write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        start, number = (0, 1) if at < first else (first, 2)
        says = rf"the state is damaged: the record at byte {start} of log-0 of revision {number} .*tuplewise dc init"
        with pytest.raises(tw.InputError, match=says):
            StateFolder(place, write=at % 2 == 0)
    (place / "log-0").write_bytes(whole[first:])
    with pytest.raises(tw.InputError, match=r"record at byte 0 of log-0 is of revision 2, and 1 was to come"):
        StateFolder(place, write=True)
    (place / "log-0").write_bytes(whole)
    assert contents(place) == before
    with StateFolder(place, write=False) as state:
        os.truncate(place / "log-0", first)
        with pytest.raises(tw.InputError, match=rf"the record at byte {first} of log-0 ends early"):
            list(state.records())


class Failing:
    """Lets the nth call that takes space fail as on a full disk; a write puts a part of it down first."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int) -> None:
        self.left = number
        for name in ("pwrite", "fsync", "mkdir", "open"):
            patch.setattr(os, name, self.failing(name, getattr(os, name)))

    def failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if name != "open" or given[1] & os.O_CREAT:
                self.left -= 1
                if self.left == 0:
                    if name == "pwrite":
                        real(given[0], bytes(given[1])[:5], given[2])
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some file")
            return real(*given, **named)

        return call


def full_at_every_call(monkeypatch: pytest.MonkeyPatch, work: Callable[[], None], says: str) -> Iterator[int]:
    """Do something with a disk that is full at the nth call, for each n until it is done; yields after each failure."""
    for number in range(1, 1000):
        with monkeypatch.context() as patch:
            failing = Failing(patch, number)
            fault: str | None = None
            try:
                work()
            except tw.InputError as error:
                fault = str(error)
        if fault is None and failing.left > 0:
            return  # there were no n calls
        assert fault is None or (says in fault and re.search("[Nn]o space (is )?left on", fault))
        yield number
    raise AssertionError("it was never done")


def test_a_full_disk_in_an_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 1)
    with StateFolder(place, write=True, sync=True) as state:
        work = lambda: state.append(record(2))  # noqa: E731
        failures = 0
        for _ in full_at_every_call(monkeypatch, work, f"the state: '{place}'. {NOTHING_APPLIED}"):
            failures += 1
            assert (state.revision, state.log_bytes) == (1, (place / "log-0").stat().st_size)
            assert contents(place) == before
        assert failures == 2  # the write, and handing it to the disk
        assert state.revision == 2

        def stuck(*given: Any) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patch:  # what was written can't be cut off now
            patch.setattr(os, "ftruncate", stuck)
            Failing(patch, 1)
            with pytest.raises(tw.InputError, match=r"no space is left"):
                state.append(record(3))
            with pytest.raises(tw.InputError, match=r"the state can't be written or read: Input/output error"):
                state.append(record(3))
        state.append(record(3))
    assert contents(place)["revision"] == 3


def test_a_full_disk_in_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 2)
    with StateFolder(place, write=True) as state:
        work = lambda: state.checkpoint({**BASE, "codes": rows_of(state)})  # noqa: E731
        failures = 0
        for _ in full_at_every_call(monkeypatch, work, "No revision is lost; make room"):
            failures += 1
            assert contents(place) == before
            if state.manifest.checkpoint == 0:
                assert sorted(["s", *(f"s/{name}" for name in names(place))]) == BUILT
        assert failures > 10
        state.append(record(3))
    assert contents(place)["revision"] == 3


def test_a_full_disk_in_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s"
    for _ in full_at_every_call(monkeypatch, lambda: build(place), ""):
        assert names(tmp_path) in ([], BUILT)
        shutil.rmtree(place, ignore_errors=True)
    assert contents(place)["revision"] == 0


def test_ctrl_c_in_an_append_takes_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 1)
    real = os.pwrite

    def interrupted(*given: Any) -> int:
        real(*given)
        raise KeyboardInterrupt

    with StateFolder(place, write=True) as state:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", interrupted)
            with pytest.raises(KeyboardInterrupt):
                state.append(record(2))
        assert state.revision == 1
        assert contents(place) == before
        state.append(record(2))


def test_ctrl_c_in_a_checkpoint_leaves_the_one_that_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "s"
    before = with_revisions(place, 2)
    real = os.replace

    def interrupted(*given: Any) -> None:
        real(*given)
        raise KeyboardInterrupt

    with StateFolder(place, write=True) as state:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", interrupted)
            with pytest.raises(KeyboardInterrupt):
                state.checkpoint({**BASE, "codes": rows_of(state)})
        assert state.manifest.checkpoint == 1
        assert contents(place) == before
        state.append(record(3))
    assert contents(place)["revision"] == 3


@pytest.mark.parametrize("sync", [False, True])
def test_what_is_handed_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool) -> None:
    build(tmp_path / "s")
    calls: list[str] = []

    def told(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*given: Any, **named: Any) -> Any:
            calls.append(name)
            return real(*given, **named)

        return call

    with StateFolder(tmp_path / "s", write=True) as state:
        state.sync = sync
        for name in CALLS:
            monkeypatch.setattr(os, name, told(name))
        state.append(record(1))
        assert calls == ["pwrite", *["fsync"] * sync]
        calls.clear()
        state.checkpoint({**BASE, "codes": rows_of(state)})
    before = calls[: calls.index("replace")]
    files = 5  # two arrays, the history, the log and the manifest
    assert before.count("fsync") == files + 2  # and two folders
    assert before[-1] == "fsync"
    assert calls[len(before) : len(before) + 3] == ["replace", "open", "fsync"]
