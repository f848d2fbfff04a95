"""Program for spark-submit: the command line of tuplewise, with the arguments that follow.

It is a file of its own, so that spark-submit can be given its path. It imports tuplewise as an installed package.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first; its modules must not hide others of the same names
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    runpy.run_module("tuplewise.engine.cli.main", run_name="__main__", alter_sys=True)
