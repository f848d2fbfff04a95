"""Front door: of many pairs of rows those that differ on fewest attributes, for each attribute that they differ on.

There is no CUDA twin: what is compared are samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu import near_pairs

KEPT_PAIRS = 16  # for each attribute


def nearest_pairs(
    codes: NDArray[np.int32],
    samples: Sequence[Callable[[], ClusterPairs]],
    *,
    unknown: bool,
    attributes: NDArray[np.bool_],
    any_attribute: bool,
    deadline: float | None = None,
) -> tuple[NDArray[np.int32], bool]:
    """Pairs of rows inside some clusters that differ on fewest attributes: int32 (pairs, 2), distinct, ascending; and
    whether all samples were compared.

    For each attribute KEPT_PAIRS are kept that differ on it. Of two pairs the one is left out whose differing
    attributes include those of the other, if that one came first.

    Parameters
    ----------
    codes : int32 (columns, rows), -1 is null
    samples : each makes clusters, reflexive ones; it is called on a thread of its own
    unknown : whether a null agrees with nothing and differs from nothing; else it is a value
    attributes : bool (columns,), the attributes for which pairs are kept
    any_attribute : whether pairs are kept, too, whatever attributes they differ on
    deadline : on the clock of time.monotonic

    Notes
    -----
    Cost: a comparison for each pair and attribute until more differ than in any pair that is kept. Memory: the codes
    once, and the pairs.

    Examples
    --------
    >>> from tuplewise.gpu_kernels.clusters import all_rows
    >>> codes = np.array([[0, 0, 1], [0, 1, 2], [0, 0, 1]], dtype=np.int32)
    >>> everything = all_rows(np.arange(3, dtype=np.int32))
    >>> only = np.array([False, True, False])
    >>> pairs, _ = nearest_pairs(codes, [lambda: everything], unknown=False, attributes=only, any_attribute=False)
    >>> pairs.tolist()  # the others differ on column 1 and on more
    [[0, 1]]
    """
    lists = np.append(attributes, any_attribute)
    return near_pairs.run(codes, samples, unknown, lists, KEPT_PAIRS, Control(deadline))
