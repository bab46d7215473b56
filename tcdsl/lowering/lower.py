"""Programs to kernels: the passes of `tcdsl.lowering.pipeline`, one after the other."""

from __future__ import annotations

from tcdsl.errors import ShapeError
from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.pipeline import PASSES, QUICK, PassWatch, Work
from tcdsl.pass_names import Enabled, chosen_passes
from tcdsl.polyhedra.limits import TooMuchWork, limited, refused_beyond_limits

__all__ = ["lower"]


def lower(
    program: Program,
    *,
    optimize: bool | str = True,
    largest: int | None = None,
    watch: PassWatch | None = None,
) -> Kernel:
    """``lower(matmul)``: the memory and the loop nests that compute ``program``.

    Without ``optimize`` every statement has a nest of its own, for comparison; ``"-fusion"`` leaves out one pass. Where
    isl would take too long, the quick passes alone run. Sizes may be up to ``largest``, or else as large as the kernel
    says. ``watch`` sees what each pass does.
    """
    enabled = chosen_passes(optimize)
    if enabled - QUICK:
        try:
            with limited():
                return _lowered(program, enabled, largest, watch)
        except TooMuchWork:
            pass
    with refused_beyond_limits(ShapeError, f"what {program.name} computes"):
        return _lowered(program, enabled & QUICK, largest, watch)


def _lowered(program: Program, enabled: Enabled, largest: int | None, watch: PassWatch | None) -> Kernel:
    work = Work(program, enabled, largest, watch)
    if watch is not None:
        watch.begin(work)
    for each in PASSES:
        if work.runs(each.name):
            each.run(work)
            if watch is not None:
                watch.after(each, work)
    return work.kernel()
