"""Front door of ranking texts: the distinct values of several columns in ascending order, and where each value stands.

Texts are compared by their bytes, which for UTF-8 is the order of code points and Spark's order of strings. Ranks are
what a table is made of afterwards; this is the one step of encoding that compares texts.
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

# Loading cuDF takes a second or two, once a process; the CPU takes 2 to 3.5 microseconds for each text of 20 bytes.
LEAST_VALUES = 1_000_000
# cuDF is handed one column of texts whose places in it are 32-bit numbers.
MOST_BYTES = (1 << 31) - 1
RANKING = "ranking texts"

_log = logging.getLogger("tuplewise")


def rank_texts(
    parts: Sequence[pa.Array], *, device: Device | str = "auto"
) -> tuple[pa.Array, list[NDArray[np.int32]]]:
    """The distinct texts of all parts, ascending by bytes, and the rank of each part's values among them.

    Parameters
    ----------
    parts : pyarrow large_string arrays (values,), at least one, without nulls
        The values of a column each; a value may stand there more than once.
    device : str or Device
        "cuda" and "auto" work on a GPU where cuDF is installed and there are LEAST_VALUES values or more, of MOST_BYTES
        at most (with their 64-bit offsets). Else, and with "cpu", the CPU ranks them, and no GPU is looked for.

    Returns
    -------
    distinct : pyarrow large_string (distinct,)
    ranks : for each part int32 (values,)
        `distinct.take(ranks[i])` is `parts[i]`.

    Raises
    ------
    DeviceError
        A GPU was asked for by name, and it can't be used, or cuDF failed on it. With "auto" the CPU goes on, and a
        warning says why.

    Notes
    -----
    Cost: hashing all values and sorting the distinct ones. Memory on a GPU: about three times that of the values.

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
    """Whether cuDF is there, can hold these values, and is worth being loaded. It is not loaded here."""
    return (
        sum(map(len, parts)) >= LEAST_VALUES
        and sum(part.nbytes for part in parts) <= MOST_BYTES
        and find_spec("pylibcudf") is not None
    )


def _check(parts: Sequence[pa.Array]) -> None:
    """Raise ValueError for what the twins don't take."""
    import pyarrow as pa

    if not parts:
        raise ValueError("parts: none; allowed: at least one array")
    for part in parts:
        if not pa.types.is_large_string(part.type) or part.null_count:
            raise ValueError(f"parts: {part.type} with {part.null_count} nulls; allowed: large_string without nulls")
    if sum(map(len, parts)) > np.iinfo(np.int32).max:
        raise ValueError(f"parts: {sum(map(len, parts))} values; allowed: at most {np.iinfo(np.int32).max}")
