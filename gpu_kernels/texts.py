"""Front door of ranking texts: the distinct values of several columns in ascending order, and the rank of each value.

Texts are compared by their bytes, which for UTF-8 is the order of code points and Spark's order of strings. This is the
only step of encoding that compares texts; afterwards a table consists of ranks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import DeviceError, message
from tuplewise.gpu_kernels.device import Device, pick_device

if TYPE_CHECKING:
    import pyarrow as pa

# Loading cuDF takes one to two seconds, once a process; the CPU takes 2 to 3.5 microseconds for a text of 20 bytes.
LEAST_VALUES = 1_000_000
# cuDF gets one column of texts with 32-bit offsets.
MOST_BYTES = (1 << 31) - 1
RANKING = "ranking texts"

_log = logging.getLogger("tuplewise")


def rank_texts(
    parts: Sequence[pa.Array], *, device: Device | str = "auto"
) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """Rank the values of all parts among their distinct texts, ascending by bytes.

    Parameters
    ----------
    parts : pyarrow large_string arrays (values,), at least one, without nulls
        Values of one column each, duplicates allowed.
    device : str or Device
        "cuda" and "auto" use a GPU where cuDF is installed and there are at least LEAST_VALUES values, of at most
        MOST_BYTES (64-bit offsets included). Otherwise, and with "cpu", the CPU ranks them, without looking for a GPU.

    Returns
    -------
    distinct : pyarrow large_string (distinct,)
    ranks : for each part int32 (values,)
        `distinct.take(ranks[i])` is `parts[i]`.

    Raises
    ------
    DeviceError
        A GPU was asked for by name and can't be used, or cuDF failed on it. With "auto" the CPU takes over, and a
        warning says why.

    Notes
    -----
    Cost: a hash of each value and a sort of the distinct ones. Memory on a GPU: about three times that of the values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> distinct, ranks = rank_texts([pa.array(["b", "a"], pa.large_string()), pa.array(["c", "a"], pa.large_string())])
    >>> distinct.to_pylist(), [rank.tolist() for rank in ranks]
    (['a', 'b', 'c'], [[1, 0], [2, 0]])
    """
    _check(parts)
    from tuplewise.gpu_kernels.cpu.texts import run as on_cpu

    if device == "cpu" or not _for_cudf(parts):
        return on_cpu(parts)
    chosen = pick_device(device) if isinstance(device, str) else device
    if chosen.kind == "cpu":
        return on_cpu(parts)
    from tuplewise.gpu_kernels.cuda.texts import run as on_gpu

    try:
        with chosen.active():
            return on_gpu(parts)
    except Exception as error:  # cuDF, its libraries and the driver fail in many ways and types
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {(lines[0] if lines else 'no reason given')[:200]}"
        if not chosen.may_fall_back:
            hint = "Say 'auto' or 'cpu', or mend cuDF"
            raise DeviceError(message(f"device {chosen}: cuDF failed while {RANKING}", reason, None, hint)) from error
    _log.warning("cuDF failed while %s: going on on the CPU (%s)", RANKING, reason)
    return on_cpu(parts)


def _for_cudf(parts: Sequence[pa.Array]) -> bool:
    """Tell whether cuDF is installed, can hold these values, and is worth loading. Doesn't load it."""
    return (
        sum(map(len, parts)) >= LEAST_VALUES
        and sum(part.nbytes for part in parts) <= MOST_BYTES
        and find_spec("pylibcudf") is not None
    )


def _check(parts: Sequence[pa.Array]) -> None:
    """Raise ValueError for parts that the twins don't support."""
    import pyarrow as pa

    if not parts:
        raise ValueError("parts: none; allowed: at least one array")
    for part in parts:
        if not pa.types.is_large_string(part.type) or part.null_count:
            raise ValueError(f"parts: {part.type} with {part.null_count} nulls; allowed: large_string without nulls")
    if sum(map(len, parts)) > np.iinfo(np.int32).max:
        raise ValueError(f"parts: {sum(map(len, parts))} values; allowed: at most {np.iinfo(np.int32).max}")
