"""`f.explain(stage)`: each stage of the compilation as text that prints well and is rich in notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np

    from tcdsl.ir.program import Program
    from tcdsl.runtime.calling.arguments import Call
    from tcdsl.runtime.calling.entries import Entry
    from tcdsl.runtime.calling.execution import Executable
    from tcdsl.runtime.calling.staged import StagedFunction
    from tcdsl.targets.protocol.loaded_kernel import LoadedKernel

__all__ = ["STAGES", "Explanation", "explain", "explain_program"]

STAGES = ("source", "ir", "passes", "loops", "python", "grad", "cost")


class Explanation(str):
    """Text of one stage. A plain `str` that notebooks show as a code block."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


def explain(function: Any, staging: StagedFunction, stage: str, call: Call | None) -> Explanation:
    """The text of ``stage`` for the program that serves ``call``, or for the one staged last.

    `ConfigurationError` for an unknown stage, or if nothing was staged and no arguments are given.
    """
    if stage not in STAGES:
        raise ConfigurationError(f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}")
    if stage == "source":
        return Explanation(function.source_text())
    entry, arrays = staging.entry(call) if call is not None else (_last_entry(function, staging), None)
    program = entry.executable.program
    if stage == "ir":
        from tcdsl.ir.text.printer import format_program

        return Explanation(format_program(program))
    if stage == "passes":
        from tcdsl.lowering.pass_log import explain_passes

        return Explanation(explain_passes(program, settings().optimize))
    if stage == "loops":
        return Explanation(_loops(entry, arrays))
    if stage == "python":
        return Explanation(_module(entry, arrays).source)
    if stage == "cost":
        return Explanation(_cost(function, entry, arrays))
    return _gradient(program, entry.differentiable)


def explain_program(executable: Executable, stage: str) -> Explanation:
    """The text of ``ir``, ``loops`` or ``python`` for a program whose inputs have constant extents.

    `ConfigurationError` for another stage.
    """
    from tcdsl.ir.text.printer import format_program
    from tcdsl.lowering.loop_passes.liveness import peak_bytes
    from tcdsl.lowering.loopir.loop_printer import format_kernel

    if stage == "ir":
        return Explanation(format_program(executable.program))
    if stage == "loops":
        kernel = executable.kernel(settings().optimize)
        return Explanation(f"{format_kernel(kernel)}\nmemory: {peak_bytes(kernel, {})}\n")
    if stage == "python":
        return Explanation(executable.compiled((True,) * len(executable.program.inputs)).source)
    raise ConfigurationError(f"there is no stage {stage!r} of a routine; the stages are ir, loops, python")


def _module(entry: Entry, arrays: Sequence[np.ndarray] | None) -> LoadedKernel:
    # Given arguments, the file that runs for their layout; else the last one that ran, if any has.
    existing = list(entry.executable._compiled.values())
    if arrays is None and existing:
        return existing[-1]
    inputs = entry.executable.program.inputs
    layout = [True] * len(inputs) if arrays is None else [array.flags.c_contiguous for array in arrays]
    return entry.executable.compiled(tuple(layout))


def _loops(entry: Entry, arrays: Sequence[np.ndarray] | None) -> str:
    # Given arguments, also the bytes of their call.
    from tcdsl.lowering.loop_passes.liveness import peak_bytes
    from tcdsl.lowering.loopir.loop_printer import format_kernel

    kernel = entry.executable.kernel(settings().optimize)
    text = format_kernel(kernel)
    if arrays is None:
        return text
    return f"{text}\nmemory: {peak_bytes(kernel, entry.executable.sizes(arrays))}\n"


def _cost(function: Any, entry: Entry, arrays: Sequence[np.ndarray] | None) -> str:
    if arrays is None:
        raise ConfigurationError(
            "a cost is that of arguments of known sizes: give explain() sample arguments, "
            f'as in `{function.__name__}.explain("cost", x)`'
        )
    from tcdsl.runtime.cost import cost_of

    return str(cost_of(entry.executable.program, arrays, entry.differentiable))


def _gradient(program: Program, wrt: Sequence[str]) -> Explanation:
    from tcdsl.autodiff import adjoint
    from tcdsl.ir.text.printer import format_program

    return Explanation(format_program(adjoint(program, wrt, keep_outputs=False)))


def _last_entry(function: Any, staging: StagedFunction) -> Entry:
    if staging.latest is None:
        raise ConfigurationError(
            f"`{function.__name__}` has not been staged yet: call it first, or give explain() sample arguments, "
            f'as in `{function.__name__}.explain("ir", x)`'
        )
    return staging.latest
