"""The CUDA twins. Importing them settles first where Numba keeps what it compiles."""

from tuplewise.gpu_kernels import cache

cache.prepare()
