"""Denial constraints: predicate space, evidence, inversion, reduction, ranking, discovery.

Some modules here hold compiled loops; where those are kept is settled before they are imported.
"""

from tuplewise.gpu_kernels import cache

cache.prepare()
