"""Denial constraints: predicate space, evidence, inversion, reduction, ranking, discovery.

Some modules here hold compiled loops. The cache folder of these loops is set before they are imported.
"""

from tuplewise.gpu_kernels import cache

cache.prepare()
