"""Python's integers where the program computes with 64 bits: bounds, extents, positions, and numbers in values."""

from __future__ import annotations

from tcdsl.errors import Diagnostic, DtypeError, TcdslError
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Constant
from tcdsl.span import Span

__all__ = ["int64_constant", "shown_number", "too_large"]

# Longer numbers are shown by their ends.
_MOST_DIGITS = 40


def int64_constant(number: int, span: Span | None) -> Constant:
    """``number`` as a constant of the program; `DtypeError` if it does not fit into 64 bits."""
    if not -(2**63) <= number < 2**63:
        raise too_large(number, "int64", span)
    return integer(number)


def too_large(number: int, dtype: str, span: Span | None, hint: str = "") -> TcdslError:
    """The error of a number that ``dtype`` cannot hold."""
    if dtype == "int64":
        hint = hint or f"{dtype} holds {-(2**63)} to {2**63 - 1}"
    fact = f"the integer {shown_number(number)} does not fit in {dtype}"
    return Diagnostic(DtypeError, fact, span, hint=hint).error()


def shown_number(number: int) -> str:
    """``number`` in digits; the first of them if there are many."""
    bits = abs(number).bit_length()
    if bits < 3 * _MOST_DIGITS:
        return str(number)
    digits = int(bits * 0.30103)
    return f"{'-' if number < 0 else ''}{abs(number) // 10 ** (digits - 5)}... (about {digits} digits)"
