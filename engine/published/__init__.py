"""Published algorithms, kept so that people can compare: Hydra (denial constraints) and the indexes of IncDC.

Only the choice of an algorithm imports them: `dc/local_discover.py`, and `dc/incremental/revising.py` for the index of
a state. They hold compiled loops; where those are kept is settled before they are imported.
"""

from tuplewise.gpu_kernels import cache

cache.prepare()
