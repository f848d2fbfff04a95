"""CPU twins. Importing this package first points Numba at the cache folder."""

from tuplewise.gpu_kernels import cache

cache.prepare()
