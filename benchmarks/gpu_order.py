"""Checks over partitions in a session on a borrowed GPU: CUDA twin against CPU twin, byte for byte; timed cases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.gpu_floors import by_bytes
from benchmarks.gpu_records import Session, simulated
from benchmarks.gpu_tables import hard_tables
from benchmarks.gpu_timing import Answer, Part, Timed, compare, same, time_on_both
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.order import Checked, lay_out_orders
from tuplewise.gpu_kernels.order_types import CONSTANT, KEY

GROUP = "gpu_order"
CHECK_BYTES = 12  # the fewest of a row and check: row, class, code
CONTEXT_BYTES = 40  # of a row and context: a key that is written, sorted (read and written once) and split
Nulls = Literal["unknown", "value"]
NULLS: tuple[Nulls, Nulls] = ("value", "unknown")
Arguments = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def table_of(rows: int, seed: int = 11) -> NDArray[np.int32]:
    """Dense ranks, int32 (10, rows): 2 values to nearly a key, three of the columns ordered alike, two with nulls."""
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(rows)
    columns = [rng.integers(0, values, rows) for values in (2, 12, 40, 365, 4_000)]
    columns += [rng.integers(-1, values, rows) for values in (30, max(2, rows // 8))]
    columns += [hidden * values // max(1, rows) for values in (7, 90, max(2, rows // 4))]
    return np.stack(columns).astype(np.int32)


def checks_of(columns: int, sizes: tuple[int, ...], nulls: Nulls) -> Arguments:
    """Every key, constancy and (where nulls are values) order-compatible pair in all contexts of these sizes."""
    contexts = [c for size in sizes for c in combinations(range(columns), size)]
    masks = np.array([[sum(1 << c for c in context)] for context in contexts], dtype=np.uint64)
    targets = [(KEY, -1, -1)] + [(CONSTANT, c, -1) for c in range(columns)]
    if nulls == "value":
        targets += [(kind, a, b) for a, b in combinations(range(columns), 2) for kind in (2, 3)]
    kind, left, right = (np.tile(side, len(contexts)) for side in np.array(targets, dtype=np.int64).T)
    return masks, np.repeat(np.arange(len(contexts)), len(targets)), kind, left, right


def parts_of(checked: Checked) -> list[Part]:
    return [checked.holds, checked.pairs, checked.first]


def answers_of(codes: NDArray[np.int32], device: Device) -> Iterator[tuple[str, Part]]:
    """All that the checks say about a table, by name."""
    codes = codes[:2] if simulated() else codes
    for nulls in NULLS:
        rows = lay_out_orders(codes, nulls=nulls, device=device)
        arguments = checks_of(len(codes), tuple(range(min(3, len(codes) + 1))), nulls)
        for limit in (0, 1, 5):
            checked = rows.check(*arguments, limit=limit)
            for name, part in zip(("holds", "pairs", "first"), parts_of(checked), strict=True):
                yield f"nulls={nulls!r}, limit {limit}, {name}", part


def check_orders(session: Session) -> None:
    """CUDA twin against CPU twin."""
    rows = (20 if simulated() else 300) if session.smoke else 20_000
    for name, codes in (("all kinds of columns", table_of(rows)), ("two rows", table_of(2))):
        compare(session, f"checks over partitions: {name}, {codes.shape[1]} rows", partial(answers_of, codes))
    for name, codes in hard_tables(session.smoke, columns=3):
        if not name.startswith("codes"):  # the front door asks for dense ranks
            compare(session, f"checks over partitions: {name}", partial(answers_of, codes))


def time_orders(session: Session) -> None:
    """All orders in the empty context, in all contexts of one and of two columns; all constancies in those of three."""
    rows, columns = (20, 3) if simulated() else (2_000, 10) if session.smoke else (300_000, 10)
    codes = table_of(rows)[:columns]
    dataset = {"name": "order-codes", "rows": rows, "columns": columns, "sha256": digest_bytes(codes.tobytes())}
    cases: tuple[tuple[str, tuple[int, ...], Nulls], ...] = (
        ("empty-context", (0,), "value"), ("contexts-of-one", (1,), "value"), ("contexts-of-two", (2,), "value"),
        ("constancies-of-three", (3,), "unknown"),
    )  # fmt: skip
    for name, sizes, nulls in cases:
        arguments = checks_of(columns, sizes, nulls)
        checks, contexts = len(arguments[1]), len(arguments[0])

        def work(device: Device, deadline: float, arguments: Arguments = arguments, nulls: Nulls = nulls) -> Answer:
            checked = lay_out_orders(codes, nulls=nulls, device=device).check(*arguments)
            return Answer(parts_of(checked), int(np.count_nonzero(checked.holds)), rows * len(arguments[1]))

        moved = CHECK_BYTES + CONTEXT_BYTES * contexts * (sizes[0] > 0) / checks
        time_on_both(session, Timed(
            name, GROUP, dataset, work, "rows_and_checks", floor=by_bytes(session.device, moved),
            parameters={"checks": checks, "contexts": contexts, "nulls": nulls}, least_seconds=8.0, cuda_runs=3,
        ))  # fmt: skip


def _small_case() -> None:
    """A twin that differs ends it with an error."""
    both = [dict(answers_of(table_of(150)[:5], pick_device(name))) for name in ("cuda", "cpu")]
    if not all(same(answer, both[1][part]) for part, answer in both[0].items()):
        raise SystemExit(1)


SMALL_CASES = {"order": _small_case}
