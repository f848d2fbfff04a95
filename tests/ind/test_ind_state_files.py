"""The folder of a state: killed at every step, two writers, readers meanwhile, damage, a full disk."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.ind import store
from tuplewise.engine.ind.kept_clusters import KeptClusters
from tuplewise.engine.ind.state import IndState

TABLE = pd.DataFrame({"a": ["x", "y"], "b": ["x", "z"]})

# A process that lets a child of its own write and kill itself at the nth step of the store (the calls of a transaction,
# before and after each), for each n until the child gets to its end; and prints what the state then is.
WRITERS = """
import os, signal, sys
from tuplewise.engine.ind import store
from tuplewise.engine.ind.state import Change, IndState, update_of

class Stepping:
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name):
        found = getattr(self.inner, name)
        def call(*given, **named):
            step()
            result = found(*given, **named)
            step()
            return Stepping(result) if name == "cursor" else result
        return call

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def write():
    real = store.Store.begin
    store.Store.begin = lambda self: Stepping(real(self))
    with IndState(sys.argv[1]) as state:
        state.apply(update_of(state.read_rows([("x", "x")]), state.read_rows([("z", "w" * 600)])))

for steps in range(1, 1000):
    left = steps
    child = os.fork()
    if not child:
        write()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    with IndState(sys.argv[1], write=False) as state:
        inside = state._store.read(lambda t: [(k.hex(), v.hex()) for k, v in t.cursor()])
        print(steps, status == 0, state.revision, hash(tuple(inside)), len(inside), sep=",", flush=True)
    if state.revision:
        break
"""


def run(program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_killed_at_every_step_it_is_before_or_after(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    tw.maintain_inds(folder, {"t": TABLE}, track_rows=True).close()
    before = contents(folder)
    ended = run(WRITERS, str(folder))
    lines = [line.split(",") for line in ended.stdout.splitlines()]
    assert len(lines) > 20, ended.stderr
    assert {tuple(line[1:]) for line in lines[:-1]} == {("False", "0", *lines[0][3:])}  # killed, and all as it was
    assert lines[-1][1:3] == ["False", "1"]  # killed after it was done
    after = contents(folder)
    assert (after["revision"], after["rows"], after["distinct"]) == (1, {"t": 2}, [2, 2])
    with tw.maintain_inds(folder) as state:  # nothing is held, and it goes on
        state.update([("z", "w" * 600)], [("x", "x")])
    assert contents(folder) | {"revision": 0} == before


def contents(folder: Path) -> dict[str, Any]:
    """All that a state says, and the records of its rows and values but for numbers of clusters."""
    with IndState(folder, write=False) as state:
        found = state.found()
        held = state._store.read(lambda t: [(k, v[4:]) for k, v in t.cursor() if k[:1] > store.CLUSTER])
        return {
            "revision": state.revision,
            "rows": state.rows,
            "inds": [str(one.ind) for one in found.inds],
            "distinct": [c.distinct for c in found.tables[0].columns],
            "held": held,
        }


def test_a_build_that_is_killed_leaves_nothing_in_place(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pandas as pd, tuplewise as tw\n"
        "from tuplewise.engine.ind import manifest\n"
        "manifest.Manifest.write = lambda self, folder: os.kill(os.getpid(), signal.SIGKILL)\n"
        "tw.maintain_inds(sys.argv[1], {'t': pd.DataFrame({'a': ['x']})})\n"
    )
    folder = tmp_path / "s"
    assert run(program, str(folder)).returncode == -signal.SIGKILL
    assert not folder.exists()
    assert [p.name for p in tmp_path.iterdir()] == [".s.building"]
    with tw.maintain_inds(folder, {"t": TABLE}) as state:
        assert state.rows == {"t": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(tw.InputError, match=r"no such file"):
        tw.maintain_inds(tmp_path / "s", {"t": TABLE, "u": tmp_path / "none.csv"})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(tw.InputError, match=r"the folder of the state is not empty: .*; allowed: a new or an empty"):
        tw.maintain_inds(tmp_path / "full", {"t": TABLE})
    (tmp_path / "empty").mkdir()
    tw.maintain_inds(tmp_path / "empty", {"t": TABLE}).close()


def test_the_second_writer_gets_an_error_and_readers_the_last_revision(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with tw.maintain_inds(folder, {"t": TABLE}) as state:
        with pytest.raises(tw.InputError, match=r"the state is being written by this process"):
            tw.maintain_inds(folder)
        second = run("import sys, tuplewise as tw; tw.maintain_inds(sys.argv[1])", str(folder))
        assert f"the state is being written by process {os.getpid()}" in second.stderr
        state.insert({"a": "z", "b": "y"})
        reading = (
            "import sys; from tuplewise.engine.ind.state import IndState\n"
            "with IndState(sys.argv[1], write=False) as s: print(s.revision, *(str(i.ind) for i in s.found().inds))"
        )
        seen: list[str] = []

        def in_the_middle(transaction: Any) -> None:
            transaction.put(store.META, b"half of a revision")
            seen.append(run(reading, str(folder)).stdout.strip())
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            state._state._store.write(in_the_middle)
        assert seen == ["1 t.a <= t.b t.b <= t.a"]
        assert state.insert({"a": "w", "b": "w"}).revision == 2
    with pytest.raises(tw.InputError, match=r"the state is closed"):
        state.insert({"a": "z", "b": "y"})


def test_ctrl_c_after_a_revision_is_written_leaves_the_state_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: KeptClusters, moved: Any) -> Any:
        raise KeyboardInterrupt

    with tw.maintain_inds(tmp_path / "s", {"t": TABLE}) as state:
        with monkeypatch.context() as patch:
            patch.setattr(KeptClusters, "change", interrupted)
            with pytest.raises(KeyboardInterrupt):
                state.insert({"a": "z", "b": "y"})
        assert (state.revision, state.rows) == (1, {"t": 3})
        assert [str(ind) for ind in state.inds] == ["t.a <= t.b", "t.b <= t.a"]
        assert [str(ind) for ind in state.delete({"a": "z", "b": "y"}).lost] == ["t.a <= t.b", "t.b <= t.a"]
    assert contents(tmp_path / "s")["distinct"] == [2, 2]


def test_what_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(tw.InputError, match=r"no such state: .*none"):
        tw.maintain_inds(tmp_path / "none")
    with pytest.raises(tw.InputError, match=r"this folder is not a state: it has no state.json"):
        tw.maintain_inds(tmp_path)
    (tmp_path / "state.json").write_text('{"kind": "another"}')
    with pytest.raises(tw.InputError, match=r"not a state of inclusion dependencies"):
        tw.maintain_inds(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: {**record, "format": 99}, "another version: .*format 99.*Use the version that wrote it"),
        (lambda record: {**record, "tables": [{"name": "t"}]}, "damaged: state.json can't be read"),
        (lambda record: {**record, "tables": []}, "damaged: state.json names no tables"),
        (lambda record: {**record, "options": {"x": 1}}, "damaged: state.json can't be read"),
    ],
)
def test_manifests_of_others(tmp_path: Path, change: Any, says: str) -> None:
    tw.maintain_inds(tmp_path / "s", {"t": TABLE}).close()
    path = tmp_path / "s" / "state.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(tw.InputError, match=says):
        tw.maintain_inds(tmp_path / "s")


def test_damaged_files(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    tw.maintain_inds(folder, {"t": TABLE}).close()
    manifest, data = folder / "state.json", folder / "data.mdb"
    whole = manifest.read_text()
    manifest.write_text(whole[: len(whole) // 2])
    with pytest.raises(tw.InputError, match=r"the state is damaged: state.json can't be read"):
        IndState(folder)
    manifest.write_text(whole)
    content = data.read_bytes()
    for damaged in (b"", b"no database at all" * 1000, content[: 3 * 4096]):
        data.write_bytes(damaged)
        for write in (True, False):
            with pytest.raises(tw.InputError, match=r"the state is damaged: .* Build it again from the tables"):
                IndState(folder, write=write)
            data.write_bytes(damaged)
    data.write_bytes(content)
    IndState(folder).close()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LEAST_ROOM", 256 << 10)
    with tw.maintain_inds(tmp_path / "s", {"t": TABLE}) as state:
        rows = pd.DataFrame({"a": [f"{i:060}" for i in range(20_000)], "b": "x"})

        def full(descriptor: int, size: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(store, "allocate", full)
            with pytest.raises(tw.InputError, match=r"no space is left on the disk .* make room and apply it again"):
                state.insert(rows)
        assert (state.revision, state.rows) == (0, {"t": 2})
        assert state.insert(rows).rows == {"t": 20_002}
    with monkeypatch.context() as patch:
        patch.setattr(store, "allocate", full)
        with pytest.raises(tw.InputError, match=r"no space is left on the disk"):
            tw.maintain_inds(tmp_path / "u", {"t": TABLE})
    assert not (tmp_path / "u").exists()


def test_synced_states_say_so(tmp_path: Path) -> None:
    with tw.maintain_inds(tmp_path / "s", {"t": TABLE}, sync=True) as state:
        assert state.insert({"a": "z", "b": "y"}).revision == 1
    with tw.maintain_inds(tmp_path / "s") as state:
        assert state.result().to_dict()["options"]["sync"] is True
    with pytest.raises(tw.InputError, match=r"a state that was built before keeps its options"):
        tw.maintain_inds(tmp_path / "s", track_rows=True)
