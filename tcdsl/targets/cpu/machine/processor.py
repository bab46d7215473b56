"""The processor that machine code is made for."""

from __future__ import annotations

import os
import sys
from functools import cache

import llvmlite.binding as llvm

__all__ = ["has_wide_vectors", "processor_of_code"]


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


def has_wide_vectors() -> bool:
    """Whether there are thirty-two registers of 64 bytes, and masks for their lanes."""
    return "+avx512f" in processor_of_code()[1].split(",")
