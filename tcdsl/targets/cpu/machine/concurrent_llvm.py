"""LLVM in several threads: its two long steps outside the lock that llvmlite holds around every call.

Each thread has a context, modules and a target machine of its own, which is all that LLVM asks for. Where llvmlite has
changed, its own functions are called, one at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm

__all__ = ["concurrently", "emit_object", "run_passes"]

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def concurrently(
    function: Callable[[Argument], Result], arguments: Iterable[Argument], threads: int
) -> Iterator[Result]:
    """``map(function, arguments)``, on so many threads."""
    # Not `concurrent.futures`: what it locks while a process forks would keep this one from going on.
    waiting: SimpleQueue[tuple[int, Argument] | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while (item := waiting.get()) is not None:
            position, argument = item
            try:
                done.put((position, function(argument), None))
            except BaseException as fault:
                done.put((position, None, fault))

    workers = _started(work, threads) if threads > 1 else []
    if not workers:
        yield from map(function, arguments)
        return
    try:
        count = 0
        for argument in arguments:
            waiting.put((count, argument))
            count += 1
        results: dict[int, tuple[Result | None, BaseException | None]] = {}
        for position in range(count):
            while position not in results:
                finished, made, fault = done.get()
                results[finished] = made, fault
            result, fault = results.pop(position)
            if fault is not None:
                raise fault
            yield cast("Result", result)
    finally:
        _empty(waiting)
        for _ in workers:
            waiting.put(None)
        for worker in workers:
            worker.join()


def _started(work: Callable[[], None], count: int) -> list[Thread]:
    # Fewer, or none, where Python or the system starts no more: when the interpreter ends, for one.
    workers: list[Thread] = []
    with suppress(RuntimeError):
        for _ in range(count):
            worker = Thread(target=work, name="tcdsl compiler", daemon=True)
            worker.start()
            workers.append(worker)
    return workers


def _empty(waiting: SimpleQueue[Any]) -> None:
    with suppress(Empty):
        while True:
            waiting.get_nowait()


def run_passes(module: Any, machine: Any, options: Any, *, combining: bool = True) -> None:
    """Run the passes that ``options`` describe; without any those that clean up, which may combine instructions."""
    builder = llvm.create_pass_builder(machine, options or llvm.create_pipeline_tuning_options(1))
    passes = builder.getModulePassManager() if options else _cleaning(combining)
    run = _unlocked("LLVMPY_RunNewModulePassManager")
    if run is None:
        passes.run(module, builder)
    else:
        run(passes, module, builder)


def _cleaning(combining: bool) -> Any:
    # Names become registers, calls of formulas what they compute, and what nobody reads goes away. Not so blocks that
    # are empty: what does not change in loops finds its place in those before them.
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    if combining:
        passes.add_instruction_combine_pass()
    return passes


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
