"""Clues of pairs in a session on a borrowed GPU: all pairs, pairs between two sets of rows, pairs inside clusters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.generators import table_with_clues
from benchmarks.gpu_floors import by_operations
from benchmarks.gpu_records import Session, say, simulated
from benchmarks.gpu_tables import hard_tables
from benchmarks.gpu_timing import Answer, Part, Timed, compare, time_on_both
from tuplewise.gpu_kernels.clues import lay_out
from tuplewise.gpu_kernels.clusters import all_rows
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.evidence import ClueSet, collect_clues, collect_clues_between
from tuplewise.gpu_kernels.refine import refine_equal
from tuplewise.gpu_kernels.words import ClueLayout, make_layout

GROUP = "gpu_evidence"
COLUMNS = 15
OPERATIONS_ORDERED = 4  # a pair and comparison: two subtractions, two funnel shifts
Nulls = Literal["unknown", "value"]
NULLS: tuple[Nulls, Nulls] = ("unknown", "value")


def ordered_layout(columns: int, ordered: int | None = None) -> ClueLayout:
    """Each column with itself; the first `ordered` with order, all where None."""
    most = columns if ordered is None else ordered
    return make_layout([(c, c, 0, c < most) for c in range(columns)])


def parts_of(found: ClueSet) -> list[Part]:
    return [found.clues, np.zeros(0, dtype=np.int64) if found.counts is None else found.counts]


def check_cases(rows: int) -> Iterator[tuple[str, NDArray[np.int32], ClueLayout, NDArray[np.int64] | None]]:
    """Random and adversarial tables with up to `rows` rows: name, codes, layout, group offsets."""
    rng = np.random.default_rng(20)

    def random(columns: int, values: int, of: int = rows) -> NDArray[np.int32]:
        return rng.integers(-1, values, (columns, of)).astype(np.int32)

    yield "15 columns, 6 ordered", random(15, 5), ordered_layout(15, 6), None
    yield "15 columns, many values", random(15, 10**6), ordered_layout(15), None
    few = min(rows, 400)
    yield "each pair its own clue", np.eye(few, dtype=np.int32)[:128], ordered_layout(min(few, 128), 0), None
    mixed = [(a, b, s, (a + b) % 2 == 0) for a in range(5) for b in range(5) for s in (0, 1, 2)]
    yield "all scopes, 75 comparisons", random(5, 4, few), make_layout(mixed), None
    sizes = rng.integers(1, 9, rows)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    offsets = np.concatenate([offsets[offsets < rows], [rows]]).astype(np.int64)
    yield "many small groups", random(6, 3), ordered_layout(6, 3), offsets


def all_pairs(
    codes: NDArray[np.int32], layout: ClueLayout, offsets: NDArray[np.int64] | None, device: Device
) -> Iterator[tuple[str, Part]]:
    """Clues and counts of all pairs, under both rules of nulls."""
    members = None if offsets is None else np.arange(codes.shape[1], dtype=np.int32)
    for nulls in NULLS:
        found = collect_clues(codes, layout, nulls=nulls, members=members, group_offsets=offsets, device=device)
        for name, part in zip(("clues", "counts"), parts_of(found), strict=True):
            yield f"nulls={nulls!r}, {name}", part


def between_rows(codes: NDArray[np.int32], few: int, device: Device) -> Iterator[tuple[str, Part]]:
    """Clues and counts of the pairs of some rows with the others."""
    order = np.random.default_rng(few).permutation(codes.shape[1])
    for nulls in NULLS:
        found = collect_clues_between(codes, ordered_layout(len(codes), 2), order[few:], order[:few], nulls=nulls,
                                      device=device)  # fmt: skip
        for name, part in zip(("clues", "counts"), parts_of(found), strict=True):
            yield f"nulls={nulls!r}, {name}", part


def inside_clusters(codes: NDArray[np.int32], device: Device) -> Iterator[tuple[str, Part]]:
    """New clues of pairs that agree on a column, then of all pairs; then clues of chosen pairs, counted."""
    rows = codes.shape[1]
    everything = all_rows(np.arange(rows, dtype=np.int32))
    t, u = (np.random.default_rng(side).integers(0, rows, min(rows, 500)).astype(np.int32) for side in (1, 2))
    for nulls in NULLS:
        comparable = lay_out(codes, ordered_layout(len(codes), 2), nulls=nulls, device=device)
        agreeing = refine_equal(everything, codes, [(0, 0)], device=device)
        yield f"nulls={nulls!r}, agreeing", comparable.within(agreeing).clues
        yield f"nulls={nulls!r}, the others", comparable.within(everything).clues
        for name, part in zip(("clues", "counts"), parts_of(comparable.of_pairs(t, u, counting=True)), strict=True):
            yield f"nulls={nulls!r}, of pairs, {name}", part


def check_evidence(session: Session) -> None:
    """CUDA twins against CPU twins."""
    rows = (24 if simulated() else 300) if session.smoke else 6000
    for name, codes, layout, offsets in check_cases(rows):
        compare(session, f"evidence: {name}, {codes.shape[1]} rows", partial(all_pairs, codes, layout, offsets))
    for name, codes in hard_tables(session.smoke, columns=3):
        layout = ordered_layout(3, 2)
        if not name.startswith("codes"):  # the front door of all pairs asks for ranks
            compare(session, f"evidence: {name}", partial(all_pairs, codes, layout, None))
        if codes.shape[1] > 1:
            few = max(1, codes.shape[1] // 3)
            compare(session, f"evidence between rows: {name}", partial(between_rows, codes, few))
        if 1 < codes.shape[1] < 2000:
            compare(session, f"clues of pairs: {name}", partial(inside_clusters, codes))


@contextmanager
def launches_timed() -> Iterator[dict[str, float]]:
    """Seconds in kernel launches (each waits for its end), their number, and the least free device memory seen."""
    from numba import cuda

    from tuplewise.gpu_kernels.cuda.clue_counter import DeviceTable

    seen = {"seconds": 0.0, "launches": 0, "least_free_bytes": float("inf")}
    original = DeviceTable.count

    def count(table: Any, *arguments: Any) -> Any:
        begun = time.perf_counter()
        left = original(table, *arguments)
        seen["seconds"] += time.perf_counter() - begun
        seen["launches"] += 1
        free = float(cuda.current_context().get_memory_info()[0]) if not simulated() else 0.0
        seen["least_free_bytes"] = min(seen["least_free_bytes"], free)
        return left

    DeviceTable.count = count  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        DeviceTable.count = original  # type: ignore[method-assign]


def case_table(rows: int, clues: int, independent: bool) -> NDArray[np.int32]:
    """A table of 15 columns with about so many distinct clues, int32 (15, rows).

    Few kinds of rows (long runs of one clue once sorted), or independent columns of three values and constant ones
    (nearly every pair has another clue than its neighbour).
    """
    if not independent:
        return table_with_clues(rows, clues, seed=22, columns=COLUMNS)
    codes = np.zeros((COLUMNS, rows), dtype=np.int32)
    free = min(COLUMNS, int(np.ceil(np.log(clues) / np.log(3))))
    codes[:free] = np.random.default_rng(22).integers(0, 3, (free, rows))
    return codes


def time_table(session: Session, rows: int, clues: int, independent: bool) -> None:
    """All pairs of one table on the session's device and on the CPU, which may be stopped early."""
    codes = case_table(rows, clues, independent)
    layout = ordered_layout(COLUMNS)
    name = f"{'independent' if independent else 'kinds'}-{clues}"
    dataset = {"name": name, "rows": rows, "columns": COLUMNS, "sha256": digest_bytes(codes.tobytes())}

    def work(device: Device, deadline: float) -> Answer:
        found = collect_clues(codes, layout, device=device, deadline=deadline)
        pairs = found.ordered_pairs // 2
        if found.complete and pairs != rows * (rows - 1) // 2:
            session.fault(f"{pairs} pairs of {rows * (rows - 1) // 2}: {rows} rows, {name}")
        return Answer(parts_of(found), len(found.clues), pairs, found.complete)

    time_on_both(session, Timed(
        f"{rows}-rows-{name}", GROUP, dataset, work, "pairs", watch=launches_timed,
        floor=by_operations(session.device, OPERATIONS_ORDERED * layout.comparisons),
        least_seconds=(50.0 if clues > 10**5 else 20.0) if rows > 10**5 else 12.0,
        cuda_runs=2 if rows > 10**5 else 4,
    ))  # fmt: skip


def time_evidence(session: Session, rows: int) -> None:
    """Tables of so many rows, with 10^2 to 10^6 distinct clues."""
    if session.smoke:
        cases = [(40, 20, False)] if simulated() else [(2000, 100, False), (2000, 10_000, True)]
    else:
        cases = [(rows, *kind) for kind in ((10**2, False), (10**4, False), (2 * 10**4, True), (10**6, True))]
    for case in cases:
        time_table(session, *case)


def compare_sizes(session: Session) -> None:
    """The kernel compiled for other sizes, on one table: which geometry a card likes."""
    if session.device.kind != "cuda":
        return session.skip("sizes", GROUP, "no GPU in this run")
    from tuplewise.gpu_kernels.cuda import evidence
    from tuplewise.gpu_kernels.cuda.clue_counter import default_sizes
    from tuplewise.gpu_kernels.cuda.clue_table import GEOMETRIES, SHARED_LIMIT_BYTES
    from tuplewise.gpu_kernels.cuda.digits import make_plan

    rows, clues = (40, 50) if session.smoke else (200_000, 20_000)
    codes = case_table(rows, clues, independent=True)
    codes = np.ascontiguousarray(codes[:, np.lexsort(codes[::-1])])
    layout = ordered_layout(COLUMNS)
    arguments = (codes, layout.under("unknown"), np.array([0, rows]), Control())
    plan = make_plan(*arguments[:2])
    pairs = rows * (rows - 1) // 2
    usual = default_sizes(plan, pairs)
    first = usual.geometry if session.smoke else GEOMETRIES[0]
    changes: list[dict[str, Any]] = [{}, {"threads": first.threads // 2}, {"slots": 2 * first.slots}, {"copies": 1},
                                     {"tile_rows": first.tile_rows // 2}, {"batch": first.batch // 2},
                                     {"tile_rows": 2 * first.tile_rows}]  # fmt: skip
    for change in changes[:2] if session.smoke else changes:
        if not session.has(8.0, f"sizes {change}", GROUP):
            continue
        geometry = replace(first, **change)
        if geometry.shared_bytes(plan.digits) > SHARED_LIMIT_BYTES:
            continue
        sizes = replace(usual, geometry=geometry)
        evidence.run(*arguments, sizes=sizes)
        with launches_timed() as seen:
            _, counts, _ = evidence.run(*arguments, sizes=sizes)
        if int(counts.sum()) != pairs:
            session.fault(f"sizes {change}: {int(counts.sum())} pairs of {pairs}")
        rate = pairs / max(1e-9, seen["seconds"])
        session.record("sizes", group=GROUP, parameters={"rows": rows, "clues": clues, **change},
                       kernel_seconds={"launches": seen["seconds"]},
                       figures={"kernel_pairs_per_second": rate})  # fmt: skip
        say(f"sizes {change or 'as shipped'}: {rate:.3g} pairs a second in {int(seen['launches'])} launches")
    return None


def _small_case(between: bool) -> None:
    """A small table through a kernel with a small table, so that it fills up; wrong counts end it with an error."""
    from tuplewise.gpu_kernels.cuda import evidence, evidence_between
    from tuplewise.gpu_kernels.cuda.clue_counter import Sizes
    from tuplewise.gpu_kernels.cuda.clue_table import Geometry

    rng = np.random.default_rng(21)
    codes = rng.integers(-1, 4, (20, 500)).astype(np.int32)
    layout = ordered_layout(20, 10)
    sizes = Sizes(Geometry(64, 32, 4, 64, 2), 8, 1 << 8, 1 << 12, 300)
    comparisons = layout.under("unknown")
    if between:
        rows = np.arange(500, dtype=np.int64)
        counts = evidence_between.run(codes, rows[:400], rows[400:], comparisons, Control(), sizes=sizes)[1]
        wanted = 400 * 100
    else:
        offsets = np.array([0, 100, 500], dtype=np.int64)
        counts = evidence.run(codes, comparisons, offsets, Control(), sizes=sizes)[1]
        wanted = 100 * 99 // 2 + 400 * 399 // 2
    if int(counts.sum()) != wanted:
        raise SystemExit(1)


SMALL_CASES = {"evidence": partial(_small_case, False), "between": partial(_small_case, True)}
