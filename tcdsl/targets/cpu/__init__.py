"""Kernels of loop nests to modules of Python that LLVM compiles, kept on disk, and run on arrays."""
