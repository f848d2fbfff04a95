"""Front door: inclusions between attributes and their numbers of common values, from the clusters of attribute
clustering.

A cluster is a set of attributes, a mask of words: attribute a is bit a % 64 of word a // 64. A value belongs to the
cluster of all attributes that hold it, so A is included in B where every cluster with A also has B.

A GPU takes clusters in parts that fit its memory. One GPU is used, since distinct clusters are few.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.device import Device, pick_device
from tuplewise.gpu_kernels.words import as_flags, mask_words

BITS = 64


def intersect_clusters(
    masks: NDArray[np.uint64], attributes: int, *, device: Device | str = "auto", threads: int | None = None
) -> NDArray[np.bool_]:
    """Intersection of all clusters with an attribute, for each attribute.

    Parameters
    ----------
    masks : uint64 (clusters, words), C order; no bit from `attributes` on is set

    Returns
    -------
    bool (attributes, attributes)
        [a, b]: each cluster that has a has b. True for all b where no cluster has a.

    Notes
    -----
    Cost: sum over clusters of attributes x words. Memory: attributes^2 bytes.
    """
    words = mask_words(attributes)
    masks = _checked(masks, words)
    control = Control(threads=threads)

    def on_gpu() -> NDArray[np.uint64]:
        from tuplewise.gpu_kernels.cuda.inclusion import intersect

        common = np.full((attributes, words), np.uint64(0xFFFFFFFFFFFFFFFF))
        for part in _parts_with_room(masks, common.nbytes):
            intersect(masks[part], common, control)
        return common

    def on_cpu() -> NDArray[np.uint64]:
        from tuplewise.gpu_kernels.cpu.inclusion import intersect

        common = np.full((attributes, words), np.uint64(0xFFFFFFFFFFFFFFFF))
        intersect(masks, common, control)
        return common

    return as_flags(pick_device(device).run("intersecting clusters", on_gpu, on_cpu), attributes)


def count_common(
    masks: NDArray[np.uint64],
    values: NDArray[np.int64],
    attributes: int,
    *,
    device: Device | str = "auto",
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Count the values in clusters that have both attributes: int64 (attributes, attributes), symmetric.

    Parameters
    ----------
    masks : uint64 (clusters, words), C order; no bit from `attributes` on is set
    values : int64 (clusters,), how many values each cluster has

    Notes
    -----
    Cost: sum over clusters of attributes^2.
    """
    masks = _checked(masks, mask_words(attributes))
    values = np.ascontiguousarray(values, dtype=np.int64)
    if len(values) != len(masks):
        raise ValueError(f"values: {len(values)} entries; allowed: one for each of {len(masks)} clusters")
    control = Control(threads=threads)

    def on_gpu() -> NDArray[np.int64]:
        from tuplewise.gpu_kernels.cuda.inclusion import count

        counts = np.zeros((attributes, attributes), dtype=np.int64)
        for part in _parts_with_room(masks, counts.nbytes):
            count(masks[part], values[part], counts, control)
        return counts

    def on_cpu() -> NDArray[np.int64]:
        from tuplewise.gpu_kernels.cpu.inclusion import count

        counts = np.zeros((attributes, attributes), dtype=np.int64)
        count(masks, values, counts, control)
        return counts

    return pick_device(device).run("counting common values", on_gpu, on_cpu)


def count_distinct(masks: NDArray[np.uint64], values: NDArray[np.int64], attributes: int) -> NDArray[np.int64]:
    """Count the values in clusters that have each attribute: int64 (attributes,)."""
    masks = _checked(masks, mask_words(attributes))
    totals = np.zeros(attributes, dtype=np.int64)
    for a in range(attributes):
        has = (masks[:, a // BITS] >> np.uint64(a % BITS)) & np.uint64(1)
        totals[a] = int(values[has.astype(np.bool_)].sum())
    return totals


def _checked(masks: NDArray[np.uint64], words: int) -> NDArray[np.uint64]:
    if masks.dtype != np.uint64 or masks.ndim != 2 or masks.shape[1] != words:
        raise ValueError(f"masks: {masks.dtype} {masks.shape}; allowed: uint64 (clusters, {words})")
    return np.ascontiguousarray(masks)


def _parts_with_room(masks: NDArray[np.uint64], result_bytes: int) -> Iterator[slice]:
    """Parts of the clusters that fit the current device beside the result."""
    from tuplewise.gpu_kernels.cuda.primitives import room_bytes

    bytes_each = masks.strides[0] + 8  # a mask and a number of values
    most = max(1, (room_bytes() - result_bytes) // bytes_each)
    for first in range(0, len(masks), most):
        yield slice(first, first + most)
