"""The CPU as a target. LLVM is imported when something is generated or loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.targets.cpu.call.spare_memory import aligned
from tcdsl.targets.protocol.target import HOST, Build, MemorySpace

if TYPE_CHECKING:
    from tcdsl.ir.text.declined import Declined
    from tcdsl.lowering.loopir.loops import Kernel
    from tcdsl.lowering.loopir.machine import Machine
    from tcdsl.targets.cpu.compiled import CompiledKernel
    from tcdsl.targets.cpu.layout.kernel_code import KernelCode
    from tcdsl.targets.protocol.loaded_kernel import LaunchedKernel

__all__ = ["CpuTarget"]


class CpuTarget:
    """Kernels as functions that LLVM compiles: see `tcdsl.targets.cpu.compiled`."""

    name = "cpu"
    spaces = (HOST,)

    def __init__(self) -> None:
        #: What was generated last, as `load` wants it.
        self._generated: tuple[Kernel, Build, Kernel] | None = None

    @property
    def machine(self) -> Machine:
        """The host's vectors and registers."""
        from tcdsl.targets.cpu.machine.processor import machine

        return machine()

    def fingerprint(self) -> Sequence[Any]:
        """Its own files, versions, and the host."""
        from tcdsl.targets.cpu.machine.machine_code import generator_digest

        return (generator_digest(),)

    def generate(self, kernel: Kernel, build: Build) -> KernelCode:
        """What is known of the machine code of ``kernel``."""
        from tcdsl.targets.cpu.call.drivers import begin_drivers
        from tcdsl.targets.cpu.layout.kernel_code import kernel_code

        begin_drivers(build.cache_dir)
        made = _prepared(kernel, build)
        self._generated = kernel, build, made
        return kernel_code(made, build.contiguous, checked=build.checked)

    def declined(self, kernel: Kernel, build: Build) -> Iterator[tuple[str, Declined]]:
        """Innermost loops that it writes step by step."""
        from tcdsl.targets.cpu.emission.module_emission import loops_without_vectors
        from tcdsl.targets.cpu.machine.processor import vector_machine

        machine = vector_machine()
        if machine is not None:
            for name, loop, declined in loops_without_vectors(_prepared(kernel, build), build.contiguous, machine):
                yield name, declined.of(f"vectors along {loop.variable} are left to LLVM")

    def load(self, kernel: Kernel, module: KernelCode, build: Build) -> CompiledKernel:
        """Compile ``kernel``, or take its machine code from disk."""
        from tcdsl.targets.cpu.compiled import load_kernel

        last, self._generated = self._generated, None
        if last is not None and last[0] is kernel and last[1] == build:
            return load_kernel(last[2], module, build)
        return load_kernel(_prepared(kernel, build), module, build)

    def kept(self, values: Any, cache_dir: Path | None) -> LaunchedKernel | None:
        """The kernel that was kept, if its machine code is still on disk."""
        from tcdsl.targets.cpu.launcher import kept_kernel

        return kept_kernel(values, cache_dir)

    def native_functions(self, cache_dir: Path | None) -> tuple[int, int]:
        """The addresses of what makes calls without Python (`tcdsl.runtime.calls.native_calls`)."""
        from tcdsl.targets.cpu.call.native_records import native_calls

        addresses = native_calls(cache_dir).addresses
        return addresses["find_record"], addresses["run_record"]

    def allocate(self, shape: tuple[int, ...], dtype: str, space: MemorySpace = HOST) -> np.ndarray:
        """An array of zeros that begins on a cache line."""
        return aligned(np.zeros, shape, dtype)


def _prepared(kernel: Kernel, build: Build) -> Kernel:
    # Checked code stays simple.
    if build.checked:
        return kernel
    from tcdsl.lowering.rounds.size_values import with_size_values

    return with_size_values(kernel)
