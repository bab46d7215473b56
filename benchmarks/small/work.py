"""Work that stays the same whatever tcdsl does: multiply-adds, copies, steps of Python, and a compilation by LLVM.

>>> work("float32", operations=10**6, bytes=10**6, steps=10)()
"""

from __future__ import annotations

import ast
import inspect
import json.decoder
import time
from collections.abc import Callable

import numpy as np

from benchmarks.machine import multiply_adds, text_of_chains

__all__ = ["compilation", "work"]


def work(dtype: str, operations: int, bytes: int, steps: int) -> Callable[[], None]:
    """So many operations of one core in registers, bytes read and written by NumPy, and calls of a Python function."""
    adding = multiply_adds(dtype, operations)
    source = np.ones(bytes // 2, np.uint8)
    target = np.zeros_like(source)

    def done() -> None:
        for step in range(steps):
            _step(step)
        if operations:
            adding()
        if bytes:
            np.copyto(target, source)

    return done


def _step(step: int) -> tuple[int, ...]:
    return step, step + 1


def compilation() -> float:
    """The processor seconds of reading a module of Python and of compiling a loop by LLVM: what a first call does."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    source, text = inspect.getsource(json.decoder), text_of_chains("float32")
    begin = time.process_time()
    compile(ast.unparse(ast.parse(source)), "decoder", "exec")
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3)
    machine.emit_object(llvm.parse_assembly(text))
    return time.process_time() - begin
