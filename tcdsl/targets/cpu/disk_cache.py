"""Kernels kept on disk: what lowering and printing made of a program, so that the next process need not do it again.

A kernel depends on the program, with its positions in the user's source, and on options and versions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.targets.cache.kept_values import keep_value, kept_value, value_name
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.layout.frame import frame_layout
from tcdsl.targets.cpu.machine.module_names import module_stem
from tcdsl.targets.cpu.python.module import GeneratedModule

__all__ = ["keep_kernel", "kept_kernel", "kernel_name"]


def kernel_name(program: Program, choices: tuple[Any, ...]) -> str | None:
    """The entry of the kernel of ``program``; ``choices`` is everything else that it depends on."""
    # Rules of derivatives do not matter, and the copy has none of what the program has looked up.
    # The name of a module tells the versions and the generator.
    content = replace(program, rules=()), choices, module_stem(program.name, "")
    return value_name(program.name, content, "kernel")


def kept_kernel(store: ProgramStore, name: str | None) -> tuple[Kernel, GeneratedModule] | None:
    """What `keep_kernel` wrote; None if there is nothing, or something damaged."""
    found = kept_value(store, name)
    if found is None:
        return None
    kernel, text, functions, places, checks = found
    buffers = [(buffer.name, len(buffer.shape)) for buffer in kernel.buffers]
    layout = frame_layout([size.name for size in kernel.program.sizes], buffers)
    return kernel, GeneratedModule(text, functions, places, layout, checks)


def keep_kernel(store: ProgramStore, name: str | None, kernel: Kernel, generated: GeneratedModule) -> None:
    """Write ``kernel`` and its module for later processes, if that is possible."""
    keep_value(store, name, (kernel, generated.text, generated.functions, generated.places, generated.checks))
