"""One way to check and to time a case on a borrowed GPU and on two cores of its machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from numpy.typing import NDArray

from benchmarks.answers import digest_bytes
from benchmarks.gpu_floors import Floor
from benchmarks.gpu_records import Session, say, simulated
from tuplewise.gpu_kernels.device import Device, pick_device

CPU_THREADS = 2  # of the CPU twin in timed cases: what a small machine has
CPU_SECONDS = 5.0  # after which it is stopped, where it can be: its rate is known by then
CUDA_SECONDS = 40.0
LEAST_CHECK_SECONDS = 2.0  # of a step's budget, without which no more twins are compared
Part = NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """What a run found: its bytes, how large it is, and of how many units of work, all of them where complete."""

    parts: list[Part]
    size: int
    units: float = 1.0
    complete: bool = True

    @property
    def digest(self) -> str:
        return digest_bytes(*(part.tobytes() for part in self.parts))


@dataclass(frozen=True)
class Timed:
    """A timed case.

    Attributes
    ----------
    name, group, dataset, parameters : as recorded; the case is `<group>/<name>`
    work : gets a device and until when it may go on (on the clock of time.monotonic)
    unit : what a unit of work is: "pairs", "rows", ...
    floor : of one unit, on the session's device; None where it isn't known
    least_seconds : of the budget, without which the case isn't begun
    cuda_runs, cpu_runs : at most, the first cold; fewer where they take long
    resident : work once more, with what an earlier run left on the device
    watch : around a run on the GPU; gives "seconds" in launches and "least_free_bytes"
    """

    name: str
    group: str
    dataset: dict[str, Any]
    work: Callable[[Device, float], Answer]
    unit: str
    floor: Floor | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    least_seconds: float = 10.0
    cuda_runs: int = 4
    cpu_runs: int = 2
    resident: Callable[[Device], Callable[[], Any]] | None = None
    watch: Callable[[], AbstractContextManager[dict[str, float]]] | None = None


def both_devices(session: Session) -> list[tuple[str, Device]]:
    """The session's GPU, where it has one, and the CPU."""
    found = [("cpu", pick_device("cpu"))]
    return [("cuda", session.device), *found] if session.device.kind == "cuda" else found


def compare(session: Session, name: str, answers: Callable[[Device], Iterable[tuple[str, Part]]]) -> None:
    """All that is answered on the session's device and on the CPU, by name, byte for byte."""
    if not session.has(LEAST_CHECK_SECONDS, name, "gpu_checks"):
        return
    there, here = (dict(answers(device)) for device in (session.device, pick_device("cpu")))
    session.compared += len(there)
    differing = [part for part in there if not same(there[part], here[part])]
    for part in differing:
        session.fault(f"twins differ: {name}: {part}")
    say(f"checked: {name}" if not differing else f"checked: {name}: {len(differing)} of {len(there)} parts differ")


def same(one: Part, two: Part) -> bool:
    """Byte for byte."""
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


@contextmanager
def on_cores(number: int) -> Iterator[None]:
    """Let this thread, and those that it starts, use so many cores; nothing where a system can't say that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def time_on_both(session: Session, case: Timed) -> None:
    """Run a case on the session's device and then on two cores, record both and compare the answers."""
    if not session.has(case.least_seconds, case.name, case.group):
        return
    answers: dict[str, Answer] = {}
    rates: dict[str, float] = {}
    for name, device in both_devices(session):
        with on_cores(CPU_THREADS) if name == "cpu" else nullcontext():
            seconds, answer, fields = _runs(session, case, name, device)
        answers[name] = answer
        typical = median(seconds[1:] or seconds)
        rates[name] = answer.units / typical
        figures: dict[str, Any] = {case.unit: answer.units, f"{case.unit}_per_second": rates[name]}
        if name == "cuda" and case.floor is not None:
            kernel = min(fields.get("kernel_seconds", {}).values(), default=typical)
            figures |= {"share_of_floor": case.floor.seconds * answer.units / kernel}
            figures |= {"share_of_floor_whole": case.floor.seconds * answer.units / typical}
            fields["floor"] = {"seconds": case.floor.seconds * answer.units, "counted": case.floor.counted}
        if name == "cpu":
            fields["threads"] = CPU_THREADS
            if "cuda" in rates:
                figures["cuda_times_faster"] = rates["cuda"] / rates["cpu"]
        session.record(
            case.name, device, group=case.group, implementation=name, dataset=case.dataset, parameters=case.parameters,
            cold_seconds=seconds[0], warm_seconds=seconds[1:],
            answer={"digest": answer.digest, "size": answer.size}, complete=answer.complete, figures=figures, **fields,
        )  # fmt: skip
        shown = "".join(f", {key} {value:.3g}" for key, value in figures.items())
        stopped = "" if answer.complete else ", stopped early"
        say(f"{case.name} on {name}: cold {seconds[0]:.4f} s, typical {typical:.4f} s{shown}{stopped}")
    if all(a.complete for a in answers.values()) and len({a.digest for a in answers.values()}) > 1:
        session.fault(f"twins differ: {case.name}")


def _runs(session: Session, case: Timed, name: str, device: Device) -> tuple[list[float], Answer, dict[str, Any]]:
    """Seconds of each run, the last answer, and what else is recorded."""
    runs = case.cpu_runs if name == "cpu" or simulated() else case.cuda_runs
    limit = CUDA_SECONDS if name == "cuda" else CPU_SECONDS
    seconds: list[float] = []
    launches: list[float] = []
    fields: dict[str, Any] = {}
    while not seconds or (len(seconds) < runs and sum(seconds) < limit / 2):
        with case.watch() if case.watch and name == "cuda" else nullcontext({}) as seen:
            begun = time.perf_counter()
            answer = case.work(device, time.monotonic() + limit)
            seconds.append(time.perf_counter() - begun)
        if seen:
            launches.append(seen["seconds"])
            fields["kernel_seconds"] = {"launches": min(launches)}
            fields["peak_bytes"] = max(0, session.device.memory_bytes - int(seen["least_free_bytes"]))
    if case.resident is not None and name == "cuda":
        again = case.resident(device)
        begun = time.perf_counter()
        again()
        fields["kernel_seconds"] = {"columns_on_device": time.perf_counter() - begun}
    return seconds, answer, fields
