"""LLVM in several threads: its two long steps outside the lock that llvmlite holds around every call.

Each thread has a context, modules and a target machine of its own, which is all that LLVM asks for. Where llvmlite has
changed, its own functions are called, one at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import llvmlite.binding as llvm

__all__ = ["concurrently", "emit_object", "run_passes"]

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def concurrently(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], threads: int
) -> Iterator[Result]:
    """``map(function, arguments)``, on so many threads."""
    if threads < 2:
        yield from map(function, arguments)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        for future in [pool.submit(function, each) for each in arguments]:
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_passes(module: Any, machine: Any, options: Any) -> None:
    """Run the passes that ``options`` describe."""
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    run = _unlocked("LLVMPY_RunNewModulePassManager")
    if run is None:
        passes.run(module, builder)
    else:
        run(passes, module, builder)


def emit_object(module: Any, machine: Any) -> bytes:
    """The module as object code."""
    emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
    if emit is None:
        code: bytes = machine.emit_object(module)
        return code
    lib = llvm.ffi.lib
    with llvm.ffi.OutputString() as fault:
        memory = emit(machine, module, 1, fault)
        if not memory:
            raise RuntimeError(str(fault))
    try:
        return ctypes.string_at(lib.LLVMPY_GetBufferStart(memory), lib.LLVMPY_GetBufferSize(memory))
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(memory)


@cache
def _unlocked(name: str) -> Any:
    try:
        locked = getattr(llvm.ffi.lib, name)
        function = getattr(ctypes.CDLL(llvm.ffi.lib._name), name)
        function.argtypes, function.restype = locked.argtypes, locked.restype
    except (AttributeError, OSError):
        return None
    return function
