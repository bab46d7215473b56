"""The processor that machine code is made for."""

from __future__ import annotations

import os
import sys
from functools import cache

import llvmlite.binding as llvm

from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.nest_notes import VectorForm

__all__ = ["has_wide_vectors", "machine", "processor_of_code", "vector_form"]


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


def vector_form() -> VectorForm | None:
    """The vectors that loops are written with; ``None`` if LLVM is to find them, for processors it alone knows."""
    name, listed = processor_of_code()
    features = set(listed.split(","))
    if "+avx512f" in features and "+avx512bw" in features and "+avx512vl" in features:
        # Others slow down for the widest ones.
        return VectorForm(64 if name.startswith("znver") else 32, masks=True)
    if "+avx2" in features:
        return VectorForm(32, masks=False)
    return VectorForm(16, masks=False) if features & {"+sse2", "+neon"} else None


def has_wide_vectors() -> bool:
    """Whether there are thirty-two registers of 64 bytes, and masks for their lanes."""
    return "+avx512f" in processor_of_code()[1].split(",")


def machine() -> Machine:
    """What lowering is to know of it: vectors as they are written, and half as many registers without wide ones."""
    form, features = vector_form(), set(processor_of_code()[1].split(","))
    return Machine(form.size if form else 16, 32 if features & {"+avx512f", "+neon"} else 16)
