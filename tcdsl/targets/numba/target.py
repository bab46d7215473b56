"""Numba as a target: it compiles printed modules as they stand, and they run as the CPU's machine code does."""

from __future__ import annotations

import ast
import os
import pickle
from collections.abc import Callable, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tcdsl.errors import ConfigurationError, Diagnostic
from tcdsl.installation import FOLDER, sources_digest
from tcdsl.ir.dtypes import WIDE_INTEGERS
from tcdsl.locks import COMPILING, lock_of_this_process
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cache.store import ProgramStore, store
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.cpu.layout.kernel_code import KernelCode, kernel_code
from tcdsl.targets.cpu.machine.machine_code import CompiledModule, generator_digest, module_stem
from tcdsl.targets.cpu.machine.threading_layer import threading_layer
from tcdsl.targets.cpu.printing.module import printed_module
from tcdsl.targets.protocol.target import HOST, Build, MemorySpace

__all__ = ["NumbaTarget"]

_HINT = 'run it on the other target: with tc.config(target="cpu")'
_LANGUAGE = "tcdsl.targets.numba.language"
_LACKING = {
    "host_call": "functions of Python",
    "float16": "arrays of float16",
    "checked_buffer": 'tested accesses (check="bounds")',
    "view": "views",
}
_LACKING |= dict.fromkeys(WIDE_INTEGERS, "integers of more than 64 bits")
_MODULES: WeakValueDictionary[Path, CompiledModule] = WeakValueDictionary()
_ONE_CALL = lock_of_this_process()
_PROCESSES: set[int] = set()  # that have started Numba's threads: this one, and those that it was forked from.


@dataclass(frozen=True, slots=True)
class NumbaModule:
    """The text that Numba compiles, the function of each nest in it, and what a run needs to know."""

    text: str
    functions: tuple[str, ...]
    code: KernelCode


class NumbaKernel(CompiledKernel):
    """A kernel whose nests Numba has compiled: they start threads themselves, and `run` makes all calls."""

    def __init__(self, kernel: Kernel, module: NumbaModule, compiled: CompiledModule, path: Path, build: Build) -> None:
        super().__init__(kernel, module.code, compiled, build)
        self._text, self._path = module.text, path

    @property
    def source(self) -> str:
        """The text that Numba has compiled."""
        return self._text

    @property
    def path(self) -> Path:
        """The file that holds it."""
        return self._path

    def changes(self, changed: Set[int], arrays: Set[int]) -> bool:
        """There is no shorter way for calls like earlier ones."""
        return False

    def kept(self, numbers: tuple[int, ...]) -> None:
        """There is nothing that launches without the kernel."""

    def _driven(self, call: Any, threads: int, *times: int) -> tuple[Callable[..., int], tuple[Any, ...]]:
        run, arguments = super()._driven(call, 1, *times)
        return partial(_on_threads, threads, run), arguments


def _on_threads(threads: int, run: Callable[..., int], *arguments: Any) -> int:
    import numba

    if _PROCESSES - {os.getpid()}:
        fact = "this process was forked from one that has used Numba's threads, which end it where they are used again"
        raise Diagnostic(ConfigurationError, fact, hint=f"start it by multiprocessing's spawn, or {_HINT}").error()
    _PROCESSES.add(os.getpid())
    # Numba's own thread pool ends the process if two threads use it at once.
    with nullcontext() if threading_layer().concurrent else _ONE_CALL:
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return run(*arguments)
        finally:
            numba.set_num_threads(before)


class NumbaTarget:
    """Modules of Numba's functions."""

    name = "numba"
    spaces = (HOST,)
    #: LLVM makes vectors of innermost loops alone: tiles of sums would take twice as long, and nine times to compile.
    machine = Machine(registers=0)

    def fingerprint(self) -> Sequence[Any]:
        """Its own files and the CPU's, versions, the host, and whether there are threads."""
        import numba

        several = numba.config.NUMBA_NUM_THREADS > 1
        return generator_digest(), sources_digest(FOLDER + "targets/numba"), numba.__version__, several

    def generate(self, kernel: Kernel, build: Build) -> NumbaModule:
        """The module that is printed for ``kernel``, importing what Numba compiles."""
        printed = printed_module(kernel, build.contiguous, checked=build.checked)
        names = {buffer.dtype for buffer in kernel.buffers}
        for node in ast.parse(printed.text).body:
            names |= {each.name for each in node.names} if isinstance(node, ast.ImportFrom) else set()
        lacking = sorted({fact for name, fact in _LACKING.items() if name in names})
        if lacking:
            fact = f"{kernel.program.name} needs {' and '.join(lacking)}, which Numba does not have"
            raise Diagnostic(ConfigurationError, fact, hint=_HINT).error()
        text = printed.text.replace("tcdsl.targets.cpu.printing.language", _LANGUAGE)
        return NumbaModule(text, printed.functions, kernel_code(kernel, build.contiguous, checked=build.checked))

    def declined(self, kernel: Kernel, build: Build) -> tuple[()]:
        """Nothing: Numba makes the vectors."""
        return ()

    def load(self, kernel: Kernel, module: NumbaModule, build: Build) -> NumbaKernel:
        """Have Numba compile ``module``, or take from disk what an earlier process compiled."""
        place, stem = store(build.cache_dir), module_stem(kernel.program.name, f"{self.fingerprint()}{module.text}")
        with COMPILING:
            path = place.write_text(f"{stem}.py", module.text)
            loaded = _MODULES.get(path) or _MODULES.setdefault(path, self._compiled(module, path, place))
        return NumbaKernel(kernel, module, loaded, path, build)

    def _compiled(self, module: NumbaModule, path: Path, place: ProgramStore) -> CompiledModule:
        from numba.core import compiler, registry, serialize, types

        words = (types.int64,) * 3
        kept = place.read(f"{path.stem}.code")
        if kept is None:
            functions: dict[str, Any] = {"__name__": _LANGUAGE}
            exec(compile(module.text, path, "exec"), functions)  # noqa: S102  # what was printed here
            for name in module.functions:
                functions[name].compile(words)
            code = {name: functions[name].overloads[words] for name in module.functions}
            place.write(f"{path.stem}.code", serialize.dumps({name: each._reduce() for name, each in code.items()}))
        else:
            context = registry.cpu_target.target_context
            context.refresh()  # has what code calls known to the linker
            code = {name: compiler.CompileResult._rebuild(context, *each) for name, each in pickle.loads(kept).items()}
        found = {
            name: each.library.get_pointer_to_function(each.fndesc.llvm_cfunc_wrapper_name)
            for name, each in code.items()
        }
        return CompiledModule([found[name] for name in module.functions], code, from_disk=kept is not None)

    def allocate(self, shape: tuple[int, ...], dtype: str, space: MemorySpace = HOST) -> np.ndarray:
        """An array of zeros."""
        return np.zeros(shape, dtype)
