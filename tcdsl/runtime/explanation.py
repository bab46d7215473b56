"""`f.explain(stage)`: each stage of the compilation as text that prints well and is rich in notebooks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError, TcdslError
from tcdsl.tracebacks import missing_name

if TYPE_CHECKING:
    import numpy as np

    from tcdsl.ir.program import Program
    from tcdsl.runtime.calling.arguments import Call
    from tcdsl.runtime.calling.entries import Entry
    from tcdsl.runtime.calling.execution import Executable
    from tcdsl.runtime.calls.staged import StagedFunction

__all__ = ["STAGES", "Explanation", "explain", "explain_program"]

_STAGES_OF_PROGRAMS = ("ir", "passes", "schedule", "loops", "python")
STAGES = ("source", "ir", "passes", "schedule", "loops", "python", "grad", "cost")


class Explanation(str):
    """Text of one stage. A plain `str` that notebooks show as a code block."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from tcdsl.runtime.displays.listings import listing

        return listing(self)

    def __rich__(self) -> Any:
        from rich.syntax import Syntax

        return Syntax(str(self).rstrip("\n"), "python", theme="ansi_dark", background_color="default", word_wrap=True)

    def __repr__(self) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Any:
        raise missing_name("what `explain` gives", name, self, None, "it is a text, which `print` shows")


def explain(function: Any, staging: StagedFunction, stage: str, call: Call | None) -> Explanation:
    """The text of ``stage`` for the program that serves ``call``, or for the one staged last.

    `ConfigurationError` for an unknown stage, or if nothing was staged and no arguments are given.
    """
    if not isinstance(stage, str) or stage not in STAGES:
        raise ConfigurationError(f"there is no stage {stage!r}; the stages are {', '.join(STAGES)}")
    if stage == "source":
        return Explanation(function.source_text())
    entry, arrays = staging.entry(call) if call is not None else (_last_entry(function, staging), None)
    executable = entry.executable
    if stage == "python" and arrays is None and executable.compiled_last is not None:
        return Explanation(executable.compiled_last.source)
    if stage in _STAGES_OF_PROGRAMS:
        # A program is shown whether or not the call fits it; the bytes of a call are those of one that does.
        sizes = None
        if arrays is not None and stage == "loops":
            sizes = executable.sizes(arrays)
        elif arrays is not None and stage == "schedule":
            with contextlib.suppress(TcdslError):
                sizes = executable.sizes(arrays)
        layout = None if arrays is None else [array.flags.c_contiguous for array in arrays]
        return _explained(executable, stage, sizes, layout)
    if stage == "cost":
        return Explanation(_cost(function, entry, arrays))
    from tcdsl.simplification.contractions import chosen, contracted

    return _gradient(contracted(executable.program, chosen(executable.orders)), entry.differentiable)


def explain_program(executable: Executable, stage: str) -> Explanation:
    """The text of a stage after ``source`` for a program whose inputs have constant extents.

    `ConfigurationError` for another stage.
    """
    if not isinstance(stage, str) or stage not in _STAGES_OF_PROGRAMS:
        raise ConfigurationError(
            f"there is no stage {stage!r} of a routine; the stages are {', '.join(_STAGES_OF_PROGRAMS)}"
        )
    return _explained(executable, stage, {})


def _explained(
    executable: Executable, stage: str, sizes: Mapping[str, int] | None, layout: Sequence[bool] | None = None
) -> Explanation:
    # Given sizes, also the bytes of a call and what it does not do; given arrays' layout, the file that runs for it.
    from tcdsl.ir.text.printer import format_program
    from tcdsl.lowering.loop_passes.liveness import peak_bytes
    from tcdsl.lowering.loopir.loop_printer import format_kernel
    from tcdsl.lowering.pass_log import PassLog, ScheduleLog

    contiguous = (True,) * len(executable.program.inputs) if layout is None else tuple(layout)
    kernel_of = partial(executable.kernel, settings().optimize, strided=executable.strided(contiguous))
    if stage == "ir":
        return Explanation(format_program(executable.program))
    if stage == "passes":
        passes = PassLog()
        kernel_of(watch=passes)
        return Explanation(passes.text())
    if stage == "schedule":
        log = ScheduleLog()
        kernel = kernel_of(watch=log)
        return Explanation(log.text(kernel, executable.declined(kernel, contiguous), sizes))
    if stage == "python":
        return Explanation(executable.compiled(contiguous).source)
    kernel = kernel_of()
    text = format_kernel(kernel)
    return Explanation(text if sizes is None else f"{text}\nmemory: {peak_bytes(kernel, sizes)}\n")


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
    latest = staging.last_entry()
    if latest is None:
        raise ConfigurationError(
            f"`{function.__name__}` has not been staged yet: call it first, or give explain() sample arguments, "
            f'as in `{function.__name__}.explain("ir", x)`'
        )
    return latest
