"""States that count pairs and have grown: they go on with indexes, with the same rules, whenever they are killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import History

from tuplewise.engine.dc.incremental import checkpointing, column_set_index, initial
from tuplewise.engine.dc.incremental.folder import StateFolder
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions

COLUMNS = [("a", "integer"), ("b", "integer"), ("c", "text"), ("d", "integer")]
FEW = 8

# A process that opens a copy of a state and has a child make a checkpoint and kill itself at the nth step (before and
# after each call that may put a checkpoint in the place of another, or remove one), for each n until the child gets to
# its end; it prints what the state is then.
WRITERS = """
import json, os, shutil, signal, sys
from pathlib import Path
from tuplewise.engine.dc.incremental import checkpointing, column_set_index
from tuplewise.engine.dc.incremental.state import DcState

os.fsync = lambda descriptor: None  # a kill is no loss of power
checkpointing.LEAST_ROWS = column_set_index.LEAST_ROWS = 8
column_set_index.SCANNED_PAIR_SECONDS = 1.0

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def stepping(name):
    real = getattr(os, name)
    def call(*given, **named):
        step()
        result = real(*given, **named)
        step()
        return result
    return call

template, place = Path(sys.argv[1]), Path(sys.argv[2])
for left in range(1, 1000):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place)
    child = os.fork()
    if not child:
        with DcState(place, device="cpu") as state:
            for name in ("mkdir", "replace", "rename", "rmdir"):
                setattr(os, name, stepping(name))
            state.checkpoint()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    with DcState(place, device="cpu") as state:
        print(json.dumps([status, state.counting, state.revision, [str(rule) for rule in state.constraints()]]))
    if status == 0:
        break
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows have grown, and looking rows up costs less than comparing all."""
    for module in (checkpointing, column_set_index, initial):
        monkeypatch.setattr(module, "LEAST_ROWS", FEW)
    monkeypatch.setattr(column_set_index, "SCANNED_PAIR_SECONDS", 1.0)


def rows(seed: int, count: int, nulls: bool = True) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (count, 4)).tolist()
    names = [None, "x", "y", "z"] if nulls else ["w", "x", "y", "z"]
    return [(a if a or not nulls else None, b, names[c], 5 * seed + d) for a, b, c, d in values]


def options(nulls: str = "unknown", **given: Any) -> DcStateOptions:
    discover = DcDiscoverOptions(nulls=nulls, cross_columns=True)  # type: ignore[arg-type]
    return DcStateOptions(discover=discover, **given)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize("seed", range(3))
def test_a_state_that_has_grown_goes_on_with_indexes(seed: int, nulls: str, tmp_path: Path) -> None:
    first = rows(seed, FEW // 2)
    with History(tmp_path / "s", COLUMNS, [*first, first[0]], options(nulls)) as h:
        assert h.state.counting
        h.insert(*rows(seed + 10, 1))
        counted = h.state._work.known.clues.clues
        assert h.state.counting
        h.insert(*rows(seed + 20, FEW))
        assert not h.state.counting
        clues, alive = h.state._work.known.clues, h.state._held.alive
        assert {tuple(clue) for clue in counted.tolist()} <= {tuple(clue) for clue in clues.clues.tolist()}
        assert alive[clues.witnesses].all()
        assert (clues.witnesses[:, 0] != clues.witnesses[:, 1]).all()
        h.delete(0, 4)
        h.insert(*rows(seed + 30, 3), whole=True)
        h.kill()
        assert not h.state.counting
        h.update({5: rows(seed + 40, 1)[0]})
        h.checkpoint()
        h.delete(*range(5, 12))  # fewer rows than indexes are begun with
        h.reopen()
        assert not h.state.counting
        h.insert(*rows(seed + 50, 2))


@pytest.mark.usefixtures("small")
def test_a_checkpoint_tells_the_same_clues_as_counting(tmp_path: Path) -> None:
    with History(tmp_path / "s", COLUMNS, rows(1, FEW - 1), options()) as h:
        h.insert(*rows(2, 5))
        assert h.state.counting  # not yet twice as many rows
        before = h.state._work.known
        rules = h.rules[-1]
        h.checkpoint()
        assert not h.state.counting
        assert h.rules[-1] == rules
        after = h.state._work.known
        assert sorted(map(tuple, before.clues.clues.tolist())) == sorted(map(tuple, after.clues.clues.tolist()))
        codes, space = h.state._held.codes, h.state.space
        t, u = (np.ascontiguousarray(after.clues.witnesses[:, side]) for side in (0, 1))
        comparing = column_set_comparing(space, h.state.options.discover.nulls)
        np.testing.assert_array_equal(comparing.of_pairs(codes, t, u), after.clues.clues)
        np.testing.assert_array_equal(np.sort(before.sets, axis=0), np.sort(after.sets, axis=0))
        assert not len(after.clues.counts)
        assert after.index.promised.all()


def column_set_comparing(space: Any, nulls: Any) -> Any:
    from tuplewise.gpu_kernels.column_set_index import Comparing

    return Comparing(space.layout, nulls)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("given", [{"counts": True}, {}])
def test_counts_that_were_asked_for_stay_and_so_do_those_that_cost_less(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not given:
        monkeypatch.setattr(column_set_index, "SCANNED_PAIR_SECONDS", 1e-12)
    with History(tmp_path / "s", COLUMNS, rows(1, 4), options(**given)) as h:
        h.insert(*rows(2, 2 * FEW))
        h.checkpoint()
        assert h.state.counting
        assert len(h.state._work.known.clues.counts)


@pytest.mark.usefixtures("small")
def test_a_reader_follows_a_state_that_goes_on_with_indexes(tmp_path: Path) -> None:
    with (
        History(tmp_path / "s", COLUMNS, rows(1, 4), options()) as h,
        DcState(tmp_path / "s", write=False, device="cpu") as reader,
    ):
        assert reader.counting
        h.insert(*rows(2, FEW))
        assert reader.refresh()
        assert not reader.counting
        assert [str(rule) for rule in reader.constraints()] == h.rules[-1]


def test_killed_at_any_moment_it_counts_still_or_has_indexes(tmp_path: Path) -> None:
    with History(tmp_path / "s", COLUMNS, rows(1, FEW), options()) as h:
        h.insert(*rows(2, 3 * FEW))
        assert h.state.counting
        rules, revision = h.rules[-1], h.state.revision
    command = [sys.executable, "-c", WRITERS, str(tmp_path / "s"), str(tmp_path / "place")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines, ended.stderr
    assert lines[-1][0] == 0, ended.stderr
    assert all(line[0] == 9 for line in lines[:-1])
    assert all(line[2:] == [revision, rules] for line in lines)
    counting = [line[1] for line in lines]
    switched = counting.index(False)
    assert 2 <= switched < len(lines) - 1
    assert counting == [True] * switched + [False] * (len(lines) - switched)


def test_an_exception_within_a_checkpoint_leaves_one_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C: once the folder has new numbers of rows, so has memory."""
    rows = [(i % 3, i % 5, "abc"[i % 3], i) for i in range(20)]
    with History(tmp_path / "s", COLUMNS, rows, DcStateOptions(discover=DcDiscoverOptions(device="cpu"))) as h:
        for row in range(6):
            h.delete(row)
        clear = StateFolder._clear

        def interrupted(self: StateFolder) -> None:
            clear(self)
            raise KeyboardInterrupt

        monkeypatch.setattr(StateFolder, "_clear", interrupted)
        with pytest.raises(KeyboardInterrupt):
            h.state.checkpoint()
        monkeypatch.undo()
        h.delete(8, 9)
        h.reopen()
        h.check_past()
