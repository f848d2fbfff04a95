"""Searches that would not end: the shortest constraints first, within the time, and what is said meanwhile."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tuplewise as tw
from tuplewise.engine.cli.main import run as run_command
from tuplewise.engine.dc import bounded_search, implication, inversion
from tuplewise.engine.dc.bounded_search import Searched, sampled_inversion, search, what_shortens
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.evidence import collect_evidence
from tuplewise.engine.dc.implication import keep_strongest
from tuplewise.engine.dc.inversion import invert
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.errors import command_line_option, spelled
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.report import dc_result
from tuplewise.engine.run import Run
from tuplewise.gpu_kernels.hitting import HittingSets, minimal_hitting_sets
from tuplewise.gpu_kernels.hitting_types import wanted_sets

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from oracles import hitting as oracle


def random_edges(seed: int) -> tuple[dict[int, int], list[int]]:
    """Edges by weight, and the group of each atom."""
    rng = np.random.default_rng(seed)
    group = [g for g in range(4) for _ in range(3)]
    edges = {}
    for _ in range(int(rng.integers(4, 20))):
        edge = sum(1 << (3 * g + int(rng.integers(0, 3))) for g in range(4))
        edges[edge] = int(rng.integers(1, 5))
    return edges, group


def ended(find: Callable[..., HittingSets], cut: Callable[[int], bool]) -> Callable[..., HittingSets]:
    """`find` that a deadline ends half-way for some numbers of groups, the whole search being called 0 at first."""
    calls: list[int] = []

    def finds(edges: Any, wanted: Any, **how: Any) -> HittingSets:
        found = find(edges, wanted, **how)
        groups = wanted.max_groups if calls else 0
        calls.append(groups)
        if not cut(groups):
            return found
        half = len(found.sets) // 2
        return HittingSets(found.sets[:half], found.uncovered[:half], False)

    return finds


@pytest.mark.parametrize("longest", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_by_size_is_minimal_and_all_of_that_size(
    seed: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_search, "FEWEST_GROUPS", 2)
    edges, group = random_edges(seed)
    budget = sum(edges.values()) // 6 if seed % 2 else 0
    weights = np.array(list(edges.values()), dtype=np.int64)
    find = partial(minimal_hitting_sets, weights=weights, budget=budget)
    found = search(
        np.array(list(edges), dtype=np.uint64)[:, None],
        wanted_sets(np.array(group, dtype=np.int32)),
        Run(deadline=time.monotonic() + 600),
        hint="",
        weights=weights if budget else None,
        find=ended(find, lambda groups: groups == 0 or groups > longest),
    )
    expected = oracle.minimal_sets(list(edges), list(edges.values()), budget, group)

    def size(mask: int) -> int:
        return len({g for atom, g in enumerate(group) if mask >> atom & 1})

    assert (found.complete, found.all_of) == (longest == 4, longest)
    mine = dict(zip(found.sets[:, 0].tolist(), found.uncovered.tolist(), strict=True))
    assert mine.items() <= expected.items()
    assert {m for m in expected if size(m) <= longest} <= set(mine)


def test_a_search_that_is_done_in_time_is_not_searched_by_size() -> None:
    edges, group = random_edges(1)
    asked = []

    def find(edges: Any, wanted: Any, **how: Any) -> HittingSets:
        asked.append(wanted.max_groups)
        return minimal_hitting_sets(edges, wanted, **how)

    masks, wanted = np.array(list(edges), dtype=np.uint64)[:, None], wanted_sets(np.array(group, dtype=np.int32))
    found = search(masks, wanted, Run(deadline=time.monotonic() + 600), hint="", weights=None, find=find)
    assert (found.complete, asked) == (True, [4])
    np.testing.assert_array_equal(found.sets, minimal_hitting_sets(masks, wanted).sets)


def like_columns(rows: int, columns: int) -> pd.DataFrame:
    """Columns of like numbers: nearly every set of comparisons is a constraint."""
    rng = np.random.default_rng(7)
    return pd.DataFrame({c: rng.integers(0, max(4, rows // 4), rows) for c in "abcdefghi"[:columns]})


@pytest.mark.parametrize("cross_columns", [False, True])
def test_constraints_of_a_search_by_size_are_those_of_the_whole(
    cross_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the size that is said to be complete, none is missing."""
    relation = tw.load(like_columns(12 if cross_columns else 40, 3 if cross_columns else 6))
    space = build_space(relation, DcDiscoverOptions(cross_columns=cross_columns))
    evidence = collect_evidence(relation, space, device="cpu")
    whole = invert(evidence)
    real = inversion.search

    def cut(*given: Any, find: Callable[..., HittingSets], **how: Any) -> Searched:
        return real(*given, find=ended(find, lambda groups: groups in (0, 4, 5, 6, 7, 8, 9)), **how)

    monkeypatch.setattr(inversion, "search", cut)
    part = invert(evidence, Run(deadline=time.monotonic() + 600))
    assert (part.complete, part.all_of) == (False, 3)

    def texts(arrays: inversion.ConstraintArrays, most: int) -> set[str]:
        rows = zip(arrays.predicates, arrays.sizes, strict=True)
        return {str(space.constraint(row[:size].tolist())) for row, size in rows if size <= most}

    assert texts(whole, 3) <= texts(part, 3)
    assert texts(whole, 3) == texts(part, 3) or cross_columns  # a longer one that is missing may imply a short one
    assert len(part) > len(texts(part, 3))
    if not cross_columns:
        assert texts(part, 99) <= texts(whole, 99)


def test_a_reduction_that_a_deadline_ends_reduces_the_first_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = tw.load(like_columns(12, 3))
    space = build_space(relation, DcDiscoverOptions())
    lists: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []

    def keep(predicates: NDArray[np.int32], sizes: NDArray[np.int32], *_: Any, **__: Any) -> NDArray[np.bool_]:
        lists.append((predicates, sizes))
        return keep_strongest(predicates, sizes, space)

    monkeypatch.setattr(inversion, "keep_strongest", keep)
    invert(collect_evidence(relation, space, device="cpu"))
    predicates, sizes = lists[0]
    monkeypatch.setattr(implication, "AT_ONCE", 50)
    assert len(sizes) > 200
    np.testing.assert_array_equal(keep_strongest(predicates, sizes, space), keep_strongest(*lists[0], space))
    part = keep_strongest(predicates, sizes, space, deadline=time.monotonic() - 1)
    np.testing.assert_array_equal(part, keep_strongest(predicates[:50], sizes[:50], space))
    assert not part.all()


def test_a_reduction_that_was_cut_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implication, "AT_ONCE", 100)
    relation = tw.load(like_columns(12, 3))
    space = build_space(relation, DcDiscoverOptions())
    evidence = collect_evidence(relation, space, device="cpu")
    whole = invert(evidence)
    monkeypatch.setattr(inversion, "REDUCTION_SHARE", -1e9)  # the deadline of the reduction has passed
    part = invert(evidence, Run(deadline=time.monotonic() + 600))
    assert whole.complete
    assert not part.complete
    assert 0 < len(part) <= 100 < len(whole)
    assert part.sizes.max() >= part.all_of >= 1


def test_a_sampled_inversion_counts_the_sets_of_some_clues() -> None:
    edges, group = random_edges(3)
    masks = np.array(list(edges), dtype=np.uint64)[:, None]
    masks = np.repeat(masks, 10, axis=0)[:100]
    clues, sets = sampled_inversion(masks, wanted_sets(np.array(group, dtype=np.int32)), 60)
    assert clues in (32, 64)
    order = np.random.default_rng(0).permutation(len(masks))
    numbers = {int(mask): 1 for mask in masks[order[:clues], 0]}
    assert sets == len(oracle.minimal_sets(list(numbers), list(numbers.values()), 0, group))


def test_a_search_of_very_many_constraints_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in {"FORECAST_AFTER_SECONDS": -1, "FORECAST_SHARE": 1e4, "MANY_SETS": 1}.items():
        monkeypatch.setattr(bounded_search, name, value)
    with caplog.at_level(logging.WARNING, "tuplewise"):
        discover(tw.load(like_columns(30, 4)), DcDiscoverOptions(device="cpu"))
    (said,) = caplog.messages
    assert said.startswith("at least some ")
    assert "constraints are to be expected" in said
    assert said.endswith(" clues alone have so many); max_predicates=N and cross_columns=False make fewer")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({}, "; --max-predicates N and --no-cross-columns make fewer"),
        ({"max_predicates": 3}, "; --no-cross-columns makes fewer"),
        ({"cross_columns": False}, "; --max-predicates N makes fewer"),
        ({"cross_columns": False, "max_predicates": 3}, ""),
    ],
)
def test_only_what_is_not_given_shortens(options: dict[str, Any], hint: str) -> None:
    space = build_space(tw.load(like_columns(9, 3)), DcDiscoverOptions(**options))
    assert spelled(what_shortens(space), command_line_option) == hint


def test_writing_is_cut_to_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc_result, "TIMED", 10)
    found = tw.discover_dcs(like_columns(30, 4), device="cpu")
    assert len(found) > 100
    assert found.written_by(None) is found
    assert found.written_by(time.monotonic() + 1e9) is found
    part = found.written_by(time.monotonic() - 1)
    document = json.loads(part.to_json())
    assert (len(part), document["result"]["count"], document["partial"]) == (10, 10, True)
    assert part.notes[-1] == (
        f"time limit: 10 of the {len(found):,} constraints that were found are listed, the shortest ones"
    )
    assert [c.rule for c in part.constraints] == [c.rule for c in found.constraints[:10]]
    whole = json.loads(found.to_json())["result"]["constraints"]
    assert document["result"]["constraints"] == whole[:10]


def test_a_command_keeps_its_time_limit_where_constraints_have_no_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "like.csv", tmp_path / "found.json"
    like_columns(120, 9).to_csv(path, index=False)
    run_command(["dc", "discover", str(path), "--max-predicates", "1", "-o", str(output)])  # compiles what is missing
    limit = 6.0
    began = time.monotonic()
    code = run_command(["dc", "discover", str(path), "--time-limit", str(limit), "-o", str(output)])
    seconds = time.monotonic() - began
    document = json.loads(output.read_text())
    assert (code, document["partial"]) == (3, True)
    assert seconds < 1.1 * limit + 5  # other work on the machine may hold it up at its end
    assert "time limit reached while constraints were searched" in " ".join(document["notes"])
    listed = [len(c["predicates"]) for c in document["result"]["constraints"]]
    assert listed == sorted(listed)
    assert "to be expected" not in capsys.readouterr().err


def test_arrays_keep_what_is_complete() -> None:
    arrays = replace(inversion.ConstraintArrays.none(False), all_of=3)
    assert arrays.take(np.zeros(0, dtype=np.int64)).all_of == 3
