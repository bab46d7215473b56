"""LLVM: from the text of a module to object code for this processor, and from object code to addresses."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from tcdsl.targets.cpu.emission.interface import PLAIN, READY, TILED
from tcdsl.targets.cpu.machine.concurrent_llvm import emit_object, run_passes
from tcdsl.targets.cpu.machine.processor import processor_of_code

__all__ = ["LoadedObject", "emission", "object_code", "optimized"]

_NUMBERS = itertools.count()
# Characters of a nest that LLVM has gone through before one could tell: loops of a few steps come out without jumps.
_SHORT = 30_000


_OF_THREAD = threading.local()


def _target_machine(level: int = 3) -> Any:
    # One that makes code at this level, of this thread.
    machines: dict[int, Any] = _OF_THREAD.__dict__.setdefault("machines", {})
    if level not in machines:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor, features = processor_of_code()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        # Code for the running process, which may lie any distance from its constants: with the model of ordinary
        # objects LLVM's linker ends the process where large arrays have left no room for both within two gigabytes.
        placing = "static" if target.name.startswith("x86") else "default"
        machines[level] = target.create_target_machine(
            cpu=processor, features=features, opt=level, reloc=placing, codemodel="jitdefault", jit=True
        )
    return machines[level]


def optimized(text: str, level: int = 3) -> Any:
    """The LLVM module of ``text``, tested and optimized; LLVM's level 2 takes half the time of 3.

    Nests that are `PLAIN` take its level 1 for 2, which is enough for them. All at level 0, those that are `READY` at
    level 1, and such that are not short at any, are only cleaned up; else level 1 is 2. Where they are `TILED` too, no
    instructions are combined, which takes a sixth of the time.
    """
    machine = _target_machine()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    if _is_only_cleaned(text, level):
        run_passes(module, machine, None, combining=TILED not in text)
        return module
    plain = level < 3 and PLAIN in text
    options = llvm.create_pipeline_tuning_options(1 if plain else max(level, 2))
    options.loop_vectorization = options.loop_unrolling = True
    options.slp_vectorization = not plain
    run_passes(module, machine, options)
    return module


def _is_only_cleaned(text: str, level: int) -> bool:
    return level == 0 or (READY in text and (level == 1 or len(text) > _SHORT))


def object_code(text: str, level: int = 3) -> bytes:
    """The object code of the LLVM module ``text``, `optimized`.

    Nests that are `TILED` are as fast at level 1 of code generation, which takes five sixths of the time.
    """
    quick = TILED in text and _is_only_cleaned(text, level)
    return emit_object(optimized(text, level), _target_machine(1 if quick else 3))


# LLVM ends the process where an option is unknown.
_KNOWN_VERSIONS = range(20, 23)


class _Emission:
    # How the threads that are making machine code make it, and how many there are.
    changed = threading.Condition()
    quick: bool | None = None
    threads = 0


@contextmanager
def emission(*, quick: bool) -> Iterator[None]:
    """Machine code is made inside: ``quick`` without strength reduction of loops, which takes half of the time.

    x86 addresses memory by a base and a counter at no cost, so that what comes out is as fast. Choices stay choices: as
    branches, which LLVM makes of some in innermost loops, those that data decide take two to three times as long. LLVM
    has such options once for all threads: those that want them otherwise wait.
    """
    with _Emission.changed:
        _Emission.changed.wait_for(lambda: not _Emission.threads or _Emission.quick == quick)
        if _Emission.quick != quick:
            _set_emission(quick=quick)
            _Emission.quick = quick
        _Emission.threads += 1
    try:
        yield
    finally:
        with _Emission.changed:
            _Emission.threads -= 1
            _Emission.changed.notify_all()


def _set_emission(*, quick: bool) -> None:
    if llvm.llvm_version_info[0] not in _KNOWN_VERSIONS:
        return
    # Else columns are read one by one: LLVM makes vectors for a stride that it does not know where that is 1 alone.
    llvm.set_option("tcdsl", "-enable-mem-access-versioning=false")
    if llvm.get_process_triple().startswith("x86_64"):
        llvm.set_option("tcdsl", "-disable-lsr" if quick else "-disable-lsr=false")
        llvm.set_option("tcdsl", "-x86-cmov-converter=false")


@cache
def _linker() -> Any:
    return llvm.create_lljit_compiler(_target_machine())


class LoadedObject:
    """Object code in memory: ``LoadedObject([code], ["nest"]).addresses["nest"]``; it stays while this lives."""

    def __init__(self, objects: Sequence[bytes], symbols: Sequence[str]) -> None:
        library = llvm.JITLibraryBuilder().add_current_process()
        for code in objects:
            library.add_object_img(code)
        for symbol in symbols:
            library.export_symbol(symbol)
        # LLVM wants a name for each that no other one ever had.
        self._tracker = library.link(_linker(), f"nests {next(_NUMBERS)}")
        self.addresses: Mapping[str, int] = {symbol: self._tracker[symbol] for symbol in symbols}
