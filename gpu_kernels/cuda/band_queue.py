"""Queue of bands of pairs for the GPUs of one machine, and the handling of failures.

Each GPU counts in a table of its own. A GPU that runs out of memory cuts its band into smaller ones, and where no band
is small enough leaves the work to the others. Any other failure ends the work of all.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import DeviceError, message
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cuda.clue_counter import Counter, Part, Sizes, default_sizes
from tuplewise.gpu_kernels.cuda.digits import DigitPlan
from tuplewise.gpu_kernels.cuda.primitives import HINT, device_index, release
from tuplewise.gpu_kernels.cuda.strips import split_band
from tuplewise.gpu_kernels.device import OutOfDeviceMemory, gpu, on_gpu
from tuplewise.gpu_kernels.faults import Fault, explain, is_out_of_memory

PAIRS_WORTH_A_GPU = 1 << 35  # a third of a second at 1e11 pairs a second: as long as making a context
BANDS_PER_GPU = 2  # of rows; with two GPUs four bands, so ten pairs of bands
CUDA_PACKAGES = ("cuda", "cupy", "cupy_backends", "numba", "numba_cuda")

Band = tuple[range, range]

_log = logging.getLogger("tuplewise")


def count_on_gpus(
    plan: DigitPlan,
    row_end: NDArray[np.int32],
    total_pairs: int,
    bands: Callable[[int], Iterable[Band]],
    control: Control,
    sizes: Sizes | None,
) -> tuple[list[Part], bool]:
    """Count the clues of all pairs of bands: clues and counts, neither sorted nor merged; False where a deadline or
    stop came first.

    The current GPU works in the caller's thread, each further one (from `control.gpus`, one for each PAIRS_WORTH_A_GPU
    pairs) in a thread of its own. `sizes` None: chosen by each GPU's memory.

    Raises
    ------
    OutOfDeviceMemory
        No GPU has room for the smallest sizes.
    DeviceError
        A GPU failed.
    """
    further = control.gpus[: total_pairs // PAIRS_WORTH_A_GPU]
    own = sizes or default_sizes(plan, total_pairs)
    band_rows = own.band_rows
    if further:
        rows = plan.operands.shape[1]
        band_rows = max(1, min(band_rows, -(-rows // (BANDS_PER_GPU * (1 + len(further))))))
    queue = _Queue(bands(band_rows), total_pairs, control)

    def count_here(of: Sizes | None, index: int) -> None:
        of = of or default_sizes(plan, total_pairs)
        try:
            queue.empty_with(Counter(plan, row_end, of, queue.over, queue.tell))
        except BaseException as error:  # Ctrl-C too: the others end after their launch
            queue.fail(_named(error, index))

    def help_from(index: int) -> None:
        found = gpu(index)
        if isinstance(found, Fault):
            _log.warning("GPU %d doesn't help: %s. %s", index, found.reason, found.hint)
            return
        try:
            with on_gpu(index):
                count_here(sizes, index)
        except BaseException as error:
            queue.fail(_named(error, index))

    threads = [threading.Thread(target=help_from, args=(index,), name=f"gpu-{index}") for index in further]
    for thread in threads:
        thread.start()
    count_here(own, device_index())
    for thread in threads:
        _join(thread, queue)
    return queue.outcome()


class _Queue:
    """Bands still to count, and the results so far."""

    def __init__(self, bands: Iterable[Band], total_pairs: int, control: Control) -> None:
        self._waiting, self._total, self._control = deque(bands), total_pairs, control
        self._changed = threading.Condition()
        self._taken = 0  # bands being counted, which may come back in pieces
        self._done_pairs = 0
        self._stopped = False
        self._error: BaseException | None = None
        self._no_room = ""  # message of a device without room even for the smallest sizes
        self._parts: list[Part] = []

    def empty_with(self, counter: Counter) -> None:
        """Count bands on the current device until none is left, or until it has no room even for the smallest sizes."""
        while (band := self._take()) is not None:
            if max(map(len, band)) > counter.sizes.band_rows:
                self._give_back(split_band(band, counter.sizes.band_rows))
                continue
            try:
                finished = counter.count(*band)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                said = str(error)
            else:
                self._give_back((), finished)
                continue
            release()
            smaller = counter.sizes.halved()
            if smaller is None:
                self._no_room = said
            self._give_back((band,))
            if smaller is None:
                break
            counter.sizes = smaller
        with self._changed:
            self._parts.extend(counter.parts)

    def over(self) -> bool:
        """Tell whether no further launch may begin."""
        return self._stopped or self._control.over()

    def tell(self, pairs: int) -> None:
        """Report progress: about so many more pairs were compared. A negative number takes pairs back."""
        with self._changed:
            self._done_pairs += pairs
            if self._control.progress is not None and pairs > 0:
                self._control.progress(min(1.0, self._done_pairs / self._total))

    def fail(self, error: BaseException) -> None:
        """End the work of all GPUs; the first error is the one reported."""
        with self._changed:
            self._error = self._error or error
            self._stopped = True
            self._changed.notify_all()

    def outcome(self) -> tuple[list[Part], bool]:
        """Results of all GPUs, once they are done."""
        if self._error is not None:
            raise self._error
        if self._waiting and not self._stopped:
            raise OutOfDeviceMemory(message("device memory for the smallest table", self._no_room, None, HINT))
        return self._parts, not self._stopped

    def _take(self) -> Band | None:
        """Take the next band; waits while another GPU may still give back pieces of its band."""
        with self._changed:
            while not self._waiting and self._taken and not self._stopped:
                self._changed.wait()
            if self._stopped or not self._waiting:
                return None
            self._taken += 1
            return self._waiting.popleft()

    def _give_back(self, pieces: Iterable[Band], finished: bool = True) -> None:
        """Give back a taken band: it is counted, except for these pieces. Not `finished`: time is over."""
        with self._changed:
            self._waiting.extendleft(reversed(list(pieces)))
            self._taken -= 1
            self._stopped = self._stopped or not finished
            self._changed.notify_all()


def _join(thread: threading.Thread, queue: _Queue) -> None:
    """Wait for a thread; Ctrl-C ends it after its launch."""
    try:
        thread.join()
    except BaseException as error:
        queue.fail(error)
        thread.join()


def _named(error: BaseException, index: int) -> BaseException:
    """Convert a failure of CUDA to one clear error; other errors are returned as they are."""
    if type(error).__module__.split(".")[0] not in CUDA_PACKAGES:
        return error
    fault = explain(error)
    named = DeviceError(message(f"GPU {index}", fault.reason, None, fault.hint))
    named.__cause__ = error
    return named
