"""A finished program as part of the one under construction: how derivatives are called inside decorated functions."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.frontend.session import Session
from tcdsl.frontend.symbols import SymbolicTensor
from tcdsl.ir.program import Program
from tcdsl.shapes.inlining import append_program

__all__ = ["inline_program"]


def inline_program(session: Session, program: Program, inputs: Sequence[SymbolicTensor]) -> list[SymbolicTensor]:
    """Append ``program`` to the session's program with ``inputs`` as its inputs; the tensors of its outputs.

    Sizes of ``program`` become expressions of the session's sizes; its assertions become the session's.
    """
    builder = session.builder
    made = append_program(builder, program, [builder.tensor(given.name) for given in inputs])
    return [SymbolicTensor(builder, each.name, each.dtype, each.shape, each.label) for each in made]
