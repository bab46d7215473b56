"""Numba and LLVM: compiling functions, their options, and calls of machine code."""
