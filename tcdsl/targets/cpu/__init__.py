"""Kernels of loop nests to modules of Python that Numba compiles, kept on disk, and run on arrays."""
