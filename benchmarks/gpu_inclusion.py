"""Intersections of clusters in a session on a borrowed GPU: CUDA twin against CPU twin, then timed cases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.gpu_floors import by_operations
from benchmarks.gpu_records import Session, simulated
from benchmarks.gpu_tables import EDGES, LARGE_EDGES
from benchmarks.gpu_timing import Answer, Part, Timed, compare, same, time_on_both
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.inclusion import count_common, intersect_clusters
from tuplewise.gpu_kernels.words import as_masks

GROUP = "gpu_inclusion"
Clusters = tuple[NDArray[np.uint64], NDArray[np.int64]]


def clusters_of(clusters: int, attributes: int, share: float | None = None) -> Clusters:
    """Masks, uint64 (clusters, words), of sets that are small, middling or nearly whole, and values, int64 (clusters,).

    `share` : of the attributes that a cluster has; None: one of three for each.
    """
    rng = np.random.default_rng([clusters, attributes])
    shares = rng.choice([0.02, 0.3, 0.97], size=clusters) if share is None else np.full(clusters, share)
    flags = rng.random((clusters, attributes)) < shares[:, None]
    return as_masks(flags), rng.integers(1, 1 << 40, size=clusters)


def answers_of(clusters: Clusters, attributes: int, device: Device) -> Iterator[tuple[str, Part]]:
    yield "intersections", intersect_clusters(clusters[0], attributes, device=device)
    yield "common values", count_common(*clusters, attributes, device=device)


def check_inclusions(session: Session) -> None:
    """CUDA twin against CPU twin."""
    edges = (1, 3) if simulated() else EDGES[:8] if session.smoke else (0, *EDGES, *LARGE_EDGES)
    cases: list[tuple[int, int, float | None]] = [(clusters, 6, None) for clusters in edges]
    cases += [(40, attributes, None) for attributes in ((3,) if simulated() else (1, 63, 64, 65, 127, 128, 129))]
    cases += [(40, 5, 0.0), (40, 5, 1.0)]
    for clusters, attributes, share in cases:
        made = clusters_of(clusters, attributes, share)
        name = f"inclusion: {clusters} clusters, {attributes} attributes" + ("" if share is None else f", {share}")
        compare(session, name, partial(answers_of, made, attributes))


def time_inclusions(session: Session) -> None:
    """A table of the size of TPC-H's, a wide one, and one with many clusters."""
    if session.smoke:
        sizes = [(10, 4)] if simulated() else [(500, 61)]
    else:
        sizes = [(100_000, 61), (20_000, 1_000), (1_000_000, 128)]
    for clusters, attributes in sizes:
        made = clusters_of(clusters, attributes)
        words = made[0].shape[1]

        def work(device: Device, deadline: float, made: Clusters = made, attributes: int = attributes) -> Answer:
            parts = [part for _, part in answers_of(made, attributes, device)]
            return Answer(parts, int(np.count_nonzero(parts[0])), len(made[0]))

        # of a cluster: a test and an AND of two halves for each attribute and word, a test and a sum for each two
        operations = 3.0 * attributes * words + 3.0 * attributes * attributes
        dataset = {"name": f"clusters-{attributes}", "rows": clusters, "columns": attributes,
                   "sha256": digest_bytes(made[0].tobytes(), made[1].tobytes())}  # fmt: skip
        time_on_both(session, Timed(f"{clusters}-clusters-{attributes}-attributes", GROUP, dataset, work, "clusters",
                                    floor=by_operations(session.device, operations), least_seconds=8.0))  # fmt: skip


def _small_case() -> None:
    """A twin that differs ends it with an error."""
    made = clusters_of(300, 70)
    both = [dict(answers_of(made, 70, pick_device(name))) for name in ("cuda", "cpu")]
    if not all(same(answer, both[1][part]) for part, answer in both[0].items()):
        raise SystemExit(1)


SMALL_CASES = {"inclusion": _small_case}
