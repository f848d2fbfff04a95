"""Running the command line: inside this process with a stand-in for Spark's reader, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tuplewise.engine.cli.main import run

TABLE = "id,zip,city,pay\n1,01,A,10\n2,01,A,20\n3,02,B,20\n4,03,B,35\n"


@dataclass
class Ran:
    code: int
    out: str
    err: str


def inside(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    capsys.readouterr()
    code = run(list(argv))
    out, err = capsys.readouterr()
    return Ran(code, out, err)


def process(*argv: str, env: dict[str, str] | None = None, **more: Any) -> Ran:
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", *argv]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **(env or {})}, **more
    )
    return Ran(done.returncode, done.stdout, done.stderr)
