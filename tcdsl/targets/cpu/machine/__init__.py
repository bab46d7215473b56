"""Numba and LLVM: compiling functions, the liberties they take, and calls of machine code."""
