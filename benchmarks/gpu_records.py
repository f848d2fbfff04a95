"""Session on a borrowed GPU: its device, budget, records and messages."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import records
from tuplewise.gpu_kernels.device import Device


@dataclass
class Session:
    """What a session is about, and how long it and the step that it is at may go on."""

    device: Device
    smoke: bool
    out: Path
    ends: float
    faults: list[str] = field(default_factory=list)
    run: str = field(default_factory=lambda: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    step_ends: float = float("inf")
    compared: int = 0  # answers of twins, so far

    def left(self) -> float:
        return min(self.ends, self.step_ends) - time.monotonic()

    def has(self, seconds: float, case: str, group: str) -> bool:
        """Tell whether so many are left; else the case is skipped, which is said and recorded."""
        if self.smoke or self.left() >= seconds:
            return True
        self.skip(case, group, "no time left")
        return False

    def skip(self, case: str, group: str, reason: str) -> None:
        say(f"skipped: {case}: {reason}")
        self.record(case, group=group, skipped=reason)

    @contextmanager
    def step(self, name: str, budget_seconds: float) -> Iterator[None]:
        """A step of the session; how long it took is said and recorded."""
        begun, faults, compared = time.monotonic(), len(self.faults), self.compared
        self.step_ends = begun + budget_seconds
        try:
            yield
        finally:
            self.step_ends = float("inf")
            seconds = time.monotonic() - begun
            say(f"step {name}: {seconds:.1f} s of {budget_seconds:.0f}")
            self.record(name, group="gpu_steps", seconds=seconds, budget_seconds=budget_seconds,
                        faults=len(self.faults) - faults, compared=self.compared - compared)  # fmt: skip

    def record(self, case: str, device: Device | None = None, *, group: str, **fields: Any) -> None:
        """Append a record of `<group>/<case>`, on the session's device where none is given."""
        commit, dirty = records.commit()
        entry = {"run": self.run, "time_utc": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
                 "case": f"{group}/{case}", **fields, "device": device_name(device or self.device),
                 "smoke": self.smoke,
                 "versions": versions(), "commit": commit, "dirty": dirty}  # fmt: skip
        records.append(entry, self.out)

    def fault(self, text: str) -> None:
        say(f"WRONG: {text}")
        self.faults.append(text)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def device_name(device: Device) -> str:
    return f"cpu: {records.processor()}" if device.kind == "cpu" else str(device)


def versions() -> dict[str, str]:
    """Versions of what matters on a GPU machine."""
    found = records.versions()
    for name in ("numba-cuda", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def simulated() -> bool:
    return os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
