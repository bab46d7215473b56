"""The processor that machine code is made for."""

from __future__ import annotations

import os
import sys
from functools import cache

import llvmlite.binding as llvm

from tcdsl.lowering.loopir.machine import Machine

__all__ = ["machine", "processor_of_code", "vector_machine"]


@cache
def processor_of_code() -> tuple[str, str]:
    """The processor and its features, as text for LLVM: this one, or what Numba is told.

    Those are ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES``, in the environment or in Numba's settings.
    """
    settings = getattr(sys.modules.get("numba"), "config", None)
    told_name = getattr(settings, "CPU_NAME", None) or os.environ.get("NUMBA_CPU_NAME")
    told_features = getattr(settings, "CPU_FEATURES", None) or os.environ.get("NUMBA_CPU_FEATURES")
    name = told_name or llvm.get_host_cpu_name()
    if told_features is not None:
        return name, told_features
    return name, "" if told_name else llvm.get_host_cpu_features().flatten()


def vector_machine() -> Machine | None:
    """The vectors that loops are written with; ``None`` if LLVM is to find them, for processors it alone knows."""
    name, listed = processor_of_code()
    features = set(listed.split(","))
    registers = 32 if features & {"+avx512f", "+neon"} else 16
    if {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl"} <= features:
        # Others slow down for the widest ones.
        return Machine(64 if name.startswith("znver") else 32, registers, masks=True)
    if "+avx2" in features:
        return Machine(32, registers)
    return Machine(16, registers) if features & {"+sse2", "+neon"} else None


def machine() -> Machine:
    """What lowering is to know of it."""
    return vector_machine() or Machine()
