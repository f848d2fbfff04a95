#!/usr/bin/env bash
# All checks and timings of a borrowed GPU in one command; see gpu_session.py. Ends with 2 where there is no GPU.
# PYTHON names the interpreter (numpy, numba, numba-cuda); OUT the folder that the JSON lines go to; LIMIT_SECONDS when
# it is ended at the latest, whatever is running (its own budget ends it earlier).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH="src:.${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec timeout -k 5 "${LIMIT_SECONDS:-476}" "${PYTHON:-python3}" -m benchmarks.gpu_session "$@"
