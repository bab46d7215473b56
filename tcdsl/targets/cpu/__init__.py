"""Kernels of loop nests to modules of Python that Numba compiles, kept on disk, and run on arrays.

>>> compiled = compile_kernel(kernel, contiguous=(True, True), options=CodegenOptions())
>>> print(compiled.source)
>>> [C] = compiled.run([A, B], {"N": 3, "K": 4, "M": 5})

Numba is imported by the first of the `compile_` functions and `CompiledKernel` that is used: the rest does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tcdsl.targets.cache.store import CacheEntry, cache_entries, clear_cache
from tcdsl.targets.cpu.machine.options import CodegenOptions

if TYPE_CHECKING:
    from tcdsl.targets.cpu.compiled import CompiledKernel, compile_kernel, compile_program

__all__ = [
    "CacheEntry",
    "CodegenOptions",
    "CompiledKernel",
    "cache_entries",
    "clear_cache",
    "compile_kernel",
    "compile_program",
]


def __getattr__(name: str) -> Any:
    if name in ("CompiledKernel", "compile_kernel", "compile_program"):
        return getattr(import_module("tcdsl.targets.cpu.compiled"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
