"""What spark-submit is given to run: the command line, with the arguments that follow.

A program of its own, so that it can be named by its path; what it needs it finds as an installed package.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first; names of modules here are not to hide others
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    runpy.run_module("tuplewise.engine.cli.main", run_name="__main__", alter_sys=True)
