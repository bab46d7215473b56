"""What stands for the value of something that has a fault, so that one fault does not hide or cause others."""

from __future__ import annotations

import re

from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import Expr
from tcdsl.ir.text.printer import format_expr

__all__ = ["FAULTY", "Faulty", "shape_note", "valued"]


# The extents of arrays that have no name of the user's, `x + np.ones(5)`.
_OF_NAMELESS = re.compile(r"constant(_\d+)?_\d+")


class Faulty:
    """The value of a part whose fault is recorded already."""


FAULTY = Faulty()


def shape_note(tensor: SymbolicTensor) -> str:
    """``A has the shape (A_0, A_1)``, for messages."""
    shape = ", ".join(format_expr(extent) for extent in tensor.extents)
    return f"{tensor.label} has the shape ({shape}{',' * (tensor.rank == 1)})"


def valued(size: Expr) -> str:
    """A size for the message of an assertion, with its value at the call: ``N = {N}``, ``N - 1``, ``3``."""
    text = format_expr(size)
    if _OF_NAMELESS.fullmatch(text):
        return f"{{{text}}}"
    return f"{text} = {{{text}}}" if text.isidentifier() else text
