"""Kernels of loop nests to modules of Python that Numba compiles, kept on disk, and run on arrays.

>>> compiled = compile_kernel(kernel, contiguous=(True, True), options=CodegenOptions())
>>> print(compiled.source)
>>> [C] = compiled.run([A, B], {"N": 3, "K": 4, "M": 5})

Numba is imported when `compile_kernel` or `CompiledKernel` is first used: the rest does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tcdsl.targets.cpu.machine.options import CodegenOptions

if TYPE_CHECKING:
    from tcdsl.targets.cpu.compiled import CompiledKernel, compile_kernel

__all__ = ["CodegenOptions", "CompiledKernel", "compile_kernel"]


def __getattr__(name: str) -> Any:
    if name in ("CompiledKernel", "compile_kernel"):
        return getattr(import_module("tcdsl.targets.cpu.compiled"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
