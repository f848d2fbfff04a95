"""Random tables and checks of keys, constancy and order compatibility, and their answers by definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from oracles import order as oracle

from tuplewise.gpu_kernels.order import Checked, PartitionedRows


@dataclass(frozen=True, eq=False)
class Case:
    """A table and checks; `arguments` are those of `check` and `removals`."""

    codes: NDArray[np.int32]
    strict: bool
    checks: list[oracle.Check]

    @property
    def nulls(self) -> str:
        return "unknown" if self.strict else "value"

    @property
    def arguments(self) -> tuple[NDArray[np.uint64], list[int], list[int], list[int], list[int]]:
        contexts = list(dict.fromkeys(check[0] for check in self.checks))
        return (
            masks(contexts, len(self.codes)),
            [contexts.index(check[0]) for check in self.checks],
            *([check[place] for check in self.checks] for place in (1, 2, 3)),
        )


def masks(contexts: list[frozenset[int]], columns: int) -> NDArray[np.uint64]:
    """Contexts as bit masks."""
    found = np.zeros((len(contexts), max(1, -(-columns // 64))), dtype=np.uint64)
    for place, context in enumerate(contexts):
        for column in context:
            found[place, column // 64] |= np.uint64(1 << (column % 64))
    return found


def random_codes(rng: np.random.Generator, columns: int, rows: int) -> NDArray[np.int32]:
    """Dense ranks with nulls: columns of few and of many values, constants, copies of others; duplicate rows."""
    codes = np.empty((columns, rows), dtype=np.int32)
    for column in range(columns):
        raw = rng.integers(0, int(rng.choice([1, 2, 3, 6, max(1, rows)])), rows)
        if column and rng.random() < 0.3:
            raw = int(rng.choice([-1, 1])) * (codes[rng.integers(column)] // 2)
        null = rng.random(rows) < float(rng.choice([0, 0.2]))
        codes[column][null] = -1
        codes[column][~null] = np.unique(raw[~null], return_inverse=True)[1]
    if rows and rng.random() < 0.3:
        codes = codes[:, rng.integers(0, rows, rows)]
    return np.ascontiguousarray(codes)


def random_case(rng: np.random.Generator, rows: int, columns: int, checks: int = 40) -> Case:
    """Checks with contexts of up to four columns, in any order, some twice."""
    strict = bool(rng.integers(2))
    made: list[oracle.Check] = []
    contexts = [frozenset(rng.choice(columns, min(columns, int(rng.integers(0, 5))), replace=False).tolist())
                for _ in range(12)]  # fmt: skip
    for _ in range(checks):
        kind = int(rng.integers(0, 2 if strict else 4))
        left, right = (int(c) for c in rng.integers(0, columns, 2))
        context = contexts[rng.integers(len(contexts))]
        made.append((context, kind, -1 if kind == 0 else left, right if kind > 1 else -1))
        if kind > 1 and rng.random() < 0.5:
            made.append((context, 5 - kind, left, right))
    return Case(random_codes(rng, columns, rows), strict, made)


def assert_checked(case: Case, rows: PartitionedRows, limit: int, compared: int) -> None:
    """What the definition says of each check."""
    table, n = case.codes.tolist(), case.codes.shape[1]
    checked = rows.check(*case.arguments, limit=limit)
    assert checked.complete
    assert checked.first[-1] == len(checked.pairs)
    for k, check in enumerate(case.checks):
        assert checked.holds[k] == (not oracle.violations(table, n, check, case.strict)), check
        pairs = [tuple(pair) for pair in checked.pairs[checked.first[k] : checked.first[k + 1]].tolist()]
        assert pairs == oracle.best_pairs(table, n, check, case.strict, compared, limit), check


def same(one: Checked, two: Checked) -> bool:
    """Byte for byte."""
    return one.complete == two.complete and all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in ("holds", "pairs", "first")
    )
