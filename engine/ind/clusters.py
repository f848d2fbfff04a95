"""Attribute clustering: how many values occur in exactly each set of attributes. It determines all INDs.

Source: Bauckmann, Leser, Naumann, "Efficiently computing inclusion dependencies for schema discovery", ICDE Workshops
2006, for the grouping by value; Shaabani and Meinel, "Incrementally updating unary inclusion dependencies in dynamic
data", Distributed and Parallel Databases 37, 2019, for the distinct clusters. Departure: clusters keep the
number of their values, so that partial inclusions and distinct values follow from the same few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.values import FAMILIES, Family
from tuplewise.gpu_kernels import inclusion
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.words import mask_words


@dataclass(frozen=True, eq=False)
class AttributeClustering:
    """The values of some attributes, grouped by the set of attributes that hold them.

    Attributes
    ----------
    attributes : all columns, tables in order
    families : family of each attribute; values of different families are never equal
    masks : uint64 (clusters, words), distinct, ascending (word 0 first); attribute a is bit a % 64 of word a // 64
    values : int64 (clusters,), distinct values that occur in exactly these attributes, at least 1
    """

    attributes: tuple[Attribute, ...]
    families: tuple[Family, ...]
    masks: NDArray[np.uint64]
    values: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        families: Sequence[Family],
        masks: NDArray[np.uint64],
        values: NDArray[np.int64],
    ) -> AttributeClustering:
        """Build from clusters in any order. Equal masks are added up; values of no attribute and empty clusters are
        dropped."""
        words = mask_words(len(attributes))
        masks = np.ascontiguousarray(masks, dtype=np.uint64).reshape(-1, words)
        values = np.asarray(values, dtype=np.int64)
        order = np.lexsort(masks.T[::-1]) if len(masks) else np.empty(0, dtype=np.int64)
        masks, values = masks[order], values[order]
        new = np.ones(len(masks), dtype=np.bool_)
        new[1:] = (masks[1:] != masks[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        totals = np.add.reduceat(values, starts) if len(starts) else values
        kept = (totals > 0) & masks[starts].any(axis=1)
        return cls(tuple(attributes), tuple(families), np.ascontiguousarray(masks[starts][kept]), totals[kept])

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """Number of distinct values of each attribute, int64 (attributes,)."""
        return inclusion.count_distinct(self.masks, self.values, len(self.attributes))

    def included(self, device: Device | str = "cpu") -> NDArray[np.bool_]:
        """Whether every value of attribute a occurs in b, bool (attributes, attributes).

        An attribute without values is included in each b of its family.
        """
        inside = inclusion.intersect_clusters(self.masks, len(self.attributes), device=device)
        return inside & self.compared

    def common(self, device: Device | str = "cpu") -> NDArray[np.int64]:
        """Number of distinct values that attributes a and b share, int64 (attributes, attributes), symmetric."""
        return inclusion.count_common(self.masks, self.values, len(self.attributes), device=device)

    @cached_property
    def compared(self) -> NDArray[np.bool_]:
        """Whether a and b are of the same family, bool (attributes, attributes)."""
        numbers = np.array([FAMILIES.index(family) for family in self.families], dtype=np.int8)
        return np.asarray(numbers[:, None] == numbers[None, :])
