"""What a nest that stopped has to say, as an exception."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.errors import Diagnostic, ShapeError, TcdslError
from tcdsl.ir.interpreter.host_code import HOSTED, raised_by_host
from tcdsl.ir.interpreter.index_faults import index_fault
from tcdsl.ir.sizes.faulty_rounds import at_positions
from tcdsl.lowering.loopir.point_code import UNIQUE_AXIS
from tcdsl.targets.cpu.layout.frame import (
    CHECK_WORD,
    EXTENT_WORD,
    OUT_OF_RANGE,
    POSITION_WORD,
    STATUS_WORD,
    VALUE_WORD,
    VALUE_WORDS,
    FrameLayout,
)
from tcdsl.targets.cpu.layout.kernel_code import CheckSite

__all__ = ["failure"]


def failure(
    words: list[int],
    checks: tuple[CheckSite, ...],
    layout: FrameLayout,
    local_buffers: tuple[str, ...] = (),
    rounds: Sequence[tuple[str, int]] = (),
) -> BaseException:
    """The exception for the first words of a frame whose status is not 0, in these ``rounds`` of loops."""
    number, extent = words[CHECK_WORD], words[EXTENT_WORD]
    value = _value(words)
    if words[STATUS_WORD] == OUT_OF_RANGE:
        local = number >= layout.words
        names = {slot: name for name, slot in layout.buffers.items()}
        buffer = local_buffers[number - layout.words] if local else names[number]
        axis = words[POSITION_WORD]
        fact = f"compiled code read or wrote {buffer} at {value} along axis {axis}, whose extent is {extent}"
        return Diagnostic(TcdslError, fact, hint="this is a fault of tcdsl: please report it with the program").error()
    if checks[number].check.tensor == HOSTED:
        return raised_by_host(checks[number].check.span)
    check, variables = checks[number].check, checks[number].variables
    positions = [*rounds, *((variable, words[POSITION_WORD + k]) for k, variable in enumerate(variables))]
    notes = at_positions(positions)
    if check.axis == UNIQUE_AXIS:
        fact = f"`=` writes each cell once, but a cell of `{check.tensor}` is written twice"
        hint = "write an accumulator such as += or >>=, or make the indices unique"
        return Diagnostic(ShapeError, fact, check.span, notes, hint).error()
    return index_fault(check.tensor, check.axis, value, extent, check.span, notes).error()


def _value(words: list[int]) -> int:
    # The words hold the parts of one integer, the last of them with its sign.
    *low, high = words[VALUE_WORD : VALUE_WORD + VALUE_WORDS]
    return sum((word % 2**64) << (64 * k) for k, word in enumerate(low)) + (high << (64 * len(low)))
