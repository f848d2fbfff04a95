"""What known pairs of rows refute, against the definition."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import od as oracle

from tuplewise.gpu_kernels import witnesses as module
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, DESCENDING, KEY
from tuplewise.gpu_kernels.witnesses import Witnesses

Nulls = Literal["unknown", "value"]
Targets = tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int32]]


def every_target(attributes: int, nulls: Nulls) -> Targets:
    listed = [(KEY, -1, -1)] + [(CONSTANT, a, -1) for a in range(attributes)]
    if nulls == "value":
        pairs = [(a, b) for a in range(attributes) for b in range(a + 1, attributes)]
        listed += [(kind, a, b) for a, b in pairs for kind in (ASCENDING, DESCENDING)]
    kind, left, right = zip(*listed, strict=True)
    return np.array(kind, dtype=np.int8), np.array(left, dtype=np.int32), np.array(right, dtype=np.int32)


def violates(columns: list[list[int | None]], target: tuple[int, int, int], t: int, u: int, nulls: Nulls) -> bool:
    kind, left, right = target
    if kind == KEY:
        return True
    if kind == CONSTANT:
        return oracle.splits(columns[left], t, u, nulls)
    direction = oracle.ASCENDING if kind == ASCENDING else oracle.DESCENDING
    return oracle.swaps(columns[left], columns[right], t, u, direction)


@pytest.mark.parametrize("nulls", ["unknown", "value"])
@pytest.mark.parametrize(("attributes", "pairs"), [(3, 1), (5, 63), (8, 64), (9, 65), (12, 300), (66, 40)])
def test_equals_definition(attributes: int, pairs: int, nulls: Nulls) -> None:
    rng = np.random.default_rng(pairs)
    codes = rng.integers(-1, 3, (attributes, 30)).astype(np.int32)
    columns = [[None if v < 0 else int(v) for v in column] for column in codes]
    targets = every_target(attributes, nulls)
    added = np.stack([rng.integers(0, 15, pairs), rng.integers(15, 30, pairs)], axis=1).astype(np.int32)
    witnesses = Witnesses(codes, *targets, nulls=nulls)
    witnesses.add(added[: pairs // 2])
    witnesses.add(added)
    sets = [set(rng.choice(attributes, rng.integers(0, 4), replace=False).tolist()) for _ in range(40)]
    contexts = np.zeros((len(sets), -(-attributes // 64)), dtype=np.uint64)
    for row, members in enumerate(sets):
        for m in members:
            contexts[row, m // 64] |= np.uint64(1 << (m % 64))
    open_ = rng.integers(0, 2**64, (len(sets), -(-len(targets[0]) // 64)), dtype=np.uint64)
    still = witnesses.unrefuted(contexts, open_)
    listed = list(zip(*(side.tolist() for side in targets), strict=True))
    for row, members in enumerate(sets):
        agreeing = [(t, u) for t, u in added.tolist() if oracle.agree(columns, frozenset(members), t, u, nulls)]
        for number, target in enumerate(listed):
            left = not any(violates(columns, target, t, u, nulls) for t, u in agreeing)
            was = int(open_[row, number // 64]) >> (number % 64) & 1
            assert int(still[row, number // 64]) >> (number % 64) & 1 == (was and left)


def test_keeps_those_that_agree_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 64)
    codes = np.arange(200, dtype=np.int32)[None, :].repeat(3, axis=0)
    codes[0] = 0
    codes[1, 100:] = 7
    witnesses = Witnesses(codes, *every_target(3, "value"))
    near = np.stack([np.arange(100, 150), np.arange(150, 200)], axis=1).astype(np.int32)  # agree on columns 0 and 1
    far = np.stack([np.arange(99), np.arange(1, 100)], axis=1).astype(np.int32)  # on column 0
    witnesses.add(far)
    witnesses.add(near)
    witnesses.add(near[:, ::-1].copy())
    assert {tuple(sorted(pair)) for pair in near.tolist()} <= {tuple(pair) for pair in witnesses._pairs.tolist()}
    assert len(witnesses._pairs) == 64


def test_without_pairs_everything_is_left() -> None:
    witnesses = Witnesses(np.zeros((2, 0), dtype=np.int32), *every_target(2, "value"))
    witnesses.add(np.zeros((0, 2), dtype=np.int32))
    open_ = np.array([[5]], dtype=np.uint64)
    assert witnesses.unrefuted(np.zeros((1, 1), dtype=np.uint64), open_).tolist() == [[5]]
