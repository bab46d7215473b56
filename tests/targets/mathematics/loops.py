"""Loops over one function, compiled for any processor: ``y[i] = exp(x[i])``."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.module_emission import READY, emitted_nests
from tcdsl.targets.cpu.layout.frame import PLACES_WORD, layout_of
from tcdsl.targets.cpu.layout.kernel_code import kernel_code
from tcdsl.targets.cpu.machine.concurrent_llvm import run_passes
from tcdsl.targets.cpu.machine.object_code import LoadedObject
from tcdsl.targets.cpu.machine.processor import processor_of_code, vector_machine
from tests.targets.nest_text import nest_kernel

__all__ = ["HOST", "arity", "assembly", "llvm_text", "loop"]

HOST = (llvm.get_process_triple(), *processor_of_code())
"""Triple, processor and features."""

Processor = tuple[str, str, str]


def arity(name: str) -> int:
    """How many operands the function of generated code has."""
    rows = {row.code.partition("(")[0]: row.arity for row in PRIMITIVES.values()}
    return rows[name]


def _kernel(name: str, dtype: str) -> Kernel:
    value = f"{name}(x[i], y[i])" if arity(name) == 2 else f"{name}(x[i])"
    buffers = dict.fromkeys(("x", "y", "z"), f"{dtype}[n]")
    return nest_kernel(f"for i in range(n):\n    z[i] = {value}", buffers)


def llvm_text(name: str, dtype: str, form: Machine | None = None) -> str:
    """LLVM's text of the loop, with the liberties that all nests take; in vectors of the ``form``, if one is given."""
    ((_, found),) = emitted_nests(_kernel(name, dtype), (True, True), {0: "nest"}, form)
    assert (READY in found) == (form is not None)
    return found


@cache
def _machine(processor: Processor, jit: bool) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, name, features = processor
    target = llvm.Target.from_triple(triple)
    placing = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=name, features=features, opt=3, reloc=placing, codemodel="jitdefault" if jit else "default", jit=jit
    )


def _optimized(text: str, processor: Processor, machine: Any) -> Any:
    module = llvm.parse_assembly(text)
    module.triple = processor[0]
    module.data_layout = str(machine.target_data)
    module.verify()
    if READY in text:
        run_passes(module, machine, None)
        return module
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def assembly(name: str, dtype: str, processor: Processor, form: Machine | None = None) -> str:
    """The assembly of the loop, with calls by name; in vectors that LLVM finds, if no ``form`` is given."""
    machine = _machine(processor, jit=False)
    text: str = machine.emit_assembly(_optimized(llvm_text(name, dtype, form), processor, machine))
    return text


@cache
def _compiled(name: str, dtype: str, processor: Processor) -> LoadedObject:
    machine = _machine(processor, jit=True)
    form = vector_machine() if processor == HOST else None
    code = machine.emit_object(_optimized(llvm_text(name, dtype, form), processor, machine))
    return LoadedObject([code], ["nest"])


def loop(name: str, arrays: tuple[np.ndarray, ...], processor: Processor = HOST) -> np.ndarray:
    """The function at the elements of ``arrays``, by machine code for ``processor``."""
    dtype = str(arrays[0].dtype)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(_compiled(name, dtype, processor).addresses["nest"])
    result = np.empty_like(arrays[0])
    kernel = _kernel(name, dtype)
    layout = layout_of(kernel)
    frame = np.zeros(layout.words, np.int64)
    (places,) = (np.array(words) for words in kernel_code(kernel, (True, True), checked=False).places)
    frame[PLACES_WORD] = places.ctypes.data
    frame[layout.sizes["n"]] = len(result)
    for buffer, array in zip("xyz", (arrays[0], arrays[-1], result), strict=True):
        assert array.flags.c_contiguous
        word = layout.buffers[buffer]
        frame[word : word + 2] = array.ctypes.data, 1
    call(0, len(result), frame.ctypes.data)
    return result
