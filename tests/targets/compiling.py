"""Kernels compiled as a program's are, without a program's cache."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.cpu.target import CpuTarget
from tcdsl.targets.protocol.target import Build

__all__ = ["compile_kernel"]


def compile_kernel(kernel: Kernel, *, contiguous: tuple[bool, ...], options: Build) -> CompiledKernel:
    """Generate, write, compile and load ``kernel`` for inputs that are C-contiguous or not."""
    build = replace(options, contiguous=contiguous)
    target = CpuTarget()
    return target.load(kernel, target.generate(kernel, build), build)
