"""What a session on a borrowed GPU is about, what it writes down and what it says."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import records
from tuplewise.gpu_kernels.device import Device


@dataclass
class Session:
    """What a session is about, and how long it may go on."""

    device: Device
    smoke: bool
    out: Path
    ends: float
    faults: list[str] = field(default_factory=list)
    run: str = field(default_factory=lambda: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))

    def left(self) -> float:
        return self.ends - time.monotonic()

    def record(self, case: str, device: Device | None = None, group: str = "gpu_evidence", **fields: Any) -> None:
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
