"""Run the Python part of Dockerfile.cuda in a new environment: install as it does, then use what was installed.

    python tools/check_image.py [--cuda 13] [--python python3.12]
    python tools/check_image.py --resolve        only whether the image's packages go together, for CUDA 12 and 13

Needs no Docker and no GPU, but the package index. What is installed takes 3 GB for a while.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tools.build_wheel import build_wheel  # noqa: E402

ENVIRONMENT = "/opt/tuplewise"
# What the CUDA twin that ranks texts calls, which only a GPU can run.
CUDF = (
    "Table.columns Column.from_arrow Column.to_arrow stream_compaction.distinct "
    "stream_compaction.DuplicateKeepOption.KEEP_ANY types.NullEquality.EQUAL types.NanEquality.ALL_EQUAL "
    "types.Order.ASCENDING types.NullOrder.BEFORE sorting.sort search.lower_bound"
).split()
log = logging.getLogger("check_image")


def instructions(dockerfile: str) -> list[str]:
    """The instructions of a Dockerfile, each on one line, without comments."""
    kept = "\n".join(line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\s*\\\n\s*", " ", kept)
    return [line.strip() for line in joined.splitlines() if line.strip()]


def cuda_version(dockerfile: str, major: str) -> str:
    """The CUDA version of the base image for CUDA 12 or 13."""
    match = re.search(rf"^FROM nvidia/cuda:({major}\.\d+\.\d+)-runtime-\S+ AS base-{major}$", dockerfile, re.MULTILINE)
    if match is None:
        raise SystemExit(f"Dockerfile.cuda has no base image for CUDA {major}")
    return match[1]


def install_step(dockerfile: str, environment: Path, wheels: Path) -> str:
    """The shell command of the image that installs the wheel, for other folders."""
    steps = [i for i in instructions(dockerfile) if i.startswith("RUN") and f"python3 -m venv {ENVIRONMENT} " in i]
    if len(steps) != 1:
        raise SystemExit(f"Dockerfile.cuda makes {ENVIRONMENT} in {len(steps)} steps; one was looked for")
    command = re.sub(r"^RUN (--\S+ )*", "", steps[0])
    return command.replace(ENVIRONMENT, str(environment)).replace("/wheels/", f"{wheels}/")


def resolve_step(step: str) -> str:
    """The part of an install step that says what is installed, only to be resolved, by the pip of this Python."""
    match = re.search(r"(wheel=.*? && )\S+/pip (install .*?) &&", step)
    if match is None:
        raise SystemExit(f"no pip install in: {step}")
    return f"{match[1]}{sys.executable} -m pip {match[2]} --dry-run --ignore-installed --disable-pip-version-check"


def main(arguments: list[str] | None = None) -> int:
    """Check the image's Python; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", default="12", choices=("12", "13"), help="which of the two images (12)")
    parser.add_argument("--python", default=sys.executable, help="the Python to stand for the image's (this one)")
    parser.add_argument("--resolve", action="store_true", help="install nothing")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    dockerfile = (REPOSITORY / "Dockerfile.cuda").read_text(encoding="utf-8")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tuplewise-image-") as name:
        folder = Path(name)
        wheels = build_wheel(folder).parent
        if given.resolve:
            for major in ("12", "13"):
                step = resolve_step(install_step(dockerfile, folder / "tuplewise", wheels))
                said = resolved(["sh", "-euc", step], folder, _variables(dockerfile, major))
                log.info("CUDA %s: %s (%.0f s)", major, said, time.monotonic() - started)
            return 0
        programs = folder / "programs"
        programs.mkdir()
        (programs / "python3").symlink_to(shutil.which(given.python) or given.python)
        step = install_step(dockerfile, folder / "tuplewise", wheels)
        path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        _run(["sh", "-euc", step], folder, {**_variables(dockerfile, given.cuda), **path, "PIP_QUIET": "1"})
        log.info("installed as in the image for CUDA %s: %.0f s", given.cuda, time.monotonic() - started)
        use(folder / "tuplewise", folder)
    log.info("the image's Python works: %.0f s in all", time.monotonic() - started)
    return 0


def _variables(dockerfile: str, major: str) -> dict[str, str]:
    """This process's, with the image's argument and what its base image sets."""
    return {**os.environ, "CUDA": major, "CUDA_VERSION": cuda_version(dockerfile, major)}


def use(environment: Path, folder: Path) -> None:
    """Doctor, a discovery, the paths that others name, and cuDF's functions."""
    home = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK", "PYTHON"))}
    variables = {**home, "SPARK_HOME": str(environment / "spark"), "TUPLEWISE_CACHE_DIR": str(folder / "cache")}
    program = str(environment / "bin" / "tuplewise")
    found = json.loads(_run([program, "doctor", "--format", "json"], folder, variables))
    faults = [check for check in found["checks"] if check["ok"] is False]
    if faults:
        raise SystemExit(f"doctor found faults in the image's Python: {faults}")
    rows = folder / "rows.csv"
    rows.write_text("a,b,c\n1,x,1\n2,x,1\n3,y,2\n", encoding="utf-8")
    rules = _run([program, "fd", "discover", str(rows), "--format", "text"], folder, variables)
    if "b -> c" not in rules.replace("[", "").replace("]", ""):
        raise SystemExit(f"the discovery missed that b determines c:\n{rules}")
    for path in ("spark/bin/spark-submit", "spark_conf/gpu_discovery.sh", "spark_conf/image_entry.sh"):
        if not os.access(environment / path, os.X_OK):
            raise SystemExit(f"{ENVIRONMENT}/{path} can't be started")
    wanted = "import operator, pylibcudf, tuplewise.gpu_kernels.cuda.texts\n" + "".join(
        f"operator.attrgetter({name!r})(pylibcudf)\n" for name in CUDF
    )
    _run([str(environment / "bin" / "python"), "-c", wanted], folder, variables)


def resolved(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """What pip would install; or that the package index lacks a package altogether, which says nothing about ours."""
    done = _done(command, folder, variables)
    lacking = re.search(r"satisfies the requirement (\S+) \(from versions: none\)", done.stderr)
    if done.returncode and lacking:
        return f"skipped: the package index has no {lacking[1]}"
    if done.returncode:
        raise SystemExit(f"these don't go together: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout.splitlines()[-1]


def _done(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = _done(command, folder, variables)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(command)[:300]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
