"""Checks over partitions in a session on a borrowed GPU: CUDA twin against CPU twin, byte for byte; timed cases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.gpu_records import Session, say, simulated
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.order import CONSTANT, KEY, Checked, PartitionedRows, lay_out_orders

GROUP = "gpu_order"
LEAST_SECONDS = 60.0  # left of the budget, below which no case is begun
Nulls = Literal["unknown", "value"]
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


def bytes_of(checked: Checked) -> tuple[bytes, ...]:
    return checked.holds.tobytes(), checked.pairs.tobytes(), checked.first.tobytes()


def answers_of(codes: NDArray[np.int32], device: Device) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """All that the checks say about a table, by name."""
    small = 2 if simulated() else len(codes)
    for nulls in ("value", "unknown"):
        rows = lay_out_orders(codes[:small] if simulated() else codes, nulls=nulls, device=device)  # type: ignore[arg-type]
        arguments = checks_of(small, (0, 1, 2), nulls)  # type: ignore[arg-type]
        for limit in (0, 1, 5):
            yield f"nulls={nulls!r}, limit {limit}", bytes_of(rows.check(*arguments, limit=limit))


def check_orders(session: Session) -> None:
    """CUDA twin against CPU twin."""
    rows = (20 if simulated() else 300) if session.smoke else 20_000
    tables = {"all kinds of columns": table_of(rows), "constant": np.zeros((3, rows), dtype=np.int32),
              "nulls only": np.full((3, rows), -1, dtype=np.int32), "two rows": table_of(2)}  # fmt: skip
    for name, codes in tables.items():
        both = [dict(answers_of(codes, device)) for device in (session.device, pick_device("cpu"))]
        for part, answer in both[0].items():
            if answer != both[1][part]:
                session.fault(f"twins differ: checks over partitions, {name}, {codes.shape[1]} rows: {part}")
        say(f"checked: checks over partitions, {name}, {codes.shape[1]} rows")


def time_orders(session: Session) -> None:
    """All orders in the empty context, in all contexts of one and of two columns; all constancies in those of three."""
    rows, columns = (20, 3) if simulated() else (2_000, 10) if session.smoke else (300_000, 10)
    codes = table_of(rows)[:columns]
    cases = (("empty-context", (0,), "value"), ("contexts-of-one", (1,), "value"),
             ("contexts-of-two", (2,), "value"), ("constancies-of-three", (3,), "unknown"))  # fmt: skip
    for name, sizes, nulls in cases:
        if session.left() < LEAST_SECONDS and not session.smoke:
            say(f"skipped: {name}: no time left")
            session.record(name, group=GROUP, skipped="no time left")
            continue
        time_case(session, name, codes, checks_of(columns, sizes, nulls), nulls)  # type: ignore[arg-type]


def time_case(session: Session, name: str, codes: NDArray[np.int32], arguments: Arguments, nulls: Nulls) -> None:
    dataset = {"name": "order-codes", "rows": codes.shape[1], "columns": len(codes),
               "sha256": digest_bytes(codes.tobytes())}  # fmt: skip
    digests = {}
    devices = [("cpu", pick_device("cpu"))]
    if session.device.kind == "cuda":
        devices.insert(0, ("cuda", session.device))
    for implementation, device in devices:
        seconds: list[float] = []
        for _ in range(3 if implementation == "cuda" and not simulated() else 2):
            begun = time.perf_counter()
            made: PartitionedRows = lay_out_orders(codes, nulls=nulls, device=device)
            checked = made.check(*arguments)
            seconds.append(time.perf_counter() - begun)
        digests[implementation] = digest_bytes(*bytes_of(checked))
        holding = int(np.count_nonzero(checked.holds))
        session.record(name, device, group=GROUP, implementation=implementation, dataset=dataset,
                       parameters={"checks": len(arguments[1]), "contexts": len(arguments[0]), "nulls": nulls},
                       cold_seconds=seconds[0], warm_seconds=seconds[1:],
                       answer={"digest": digests[implementation], "size": holding})  # fmt: skip
        rate = min(seconds) / max(1, codes.shape[1] * len(arguments[1])) * 1e9
        say(f"{name}, {codes.shape[1]} rows, {len(arguments[1])} checks, {implementation}: cold {seconds[0]:.4f} s, "
            f"best {min(seconds):.4f} s, {rate:.3f} ns a row and check, {holding} hold")  # fmt: skip
    if len(set(digests.values())) > 1:
        session.fault(f"twins differ: {name}")


def sanitizer_case() -> None:
    """The small case that runs under compute-sanitizer; a twin that differs ends it with an error."""
    codes = table_of(150)[:5]
    if dict(answers_of(codes, pick_device("cuda"))) != dict(answers_of(codes, pick_device("cpu"))):
        raise SystemExit(1)
