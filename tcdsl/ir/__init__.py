"""The intermediate representation: programs of typed index notation, and everything that reads or writes them.

The nodes are in `program`, `expressions` and `domain`; the tables in `primitives`, `accumulators` and `dtypes`. `build`
makes typed expressions, `text` goes to text and back, `verifier` checks a program, `interpreter` runs it.
"""

from __future__ import annotations

from tcdsl.ir.accumulators import ACCUMULATORS, Accumulator, neutral_element
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import DTYPES, accumulation_dtype, compute_dtype, same_kind
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
)
from tcdsl.ir.interpreter.interpreter import Interpretation, interpret
from tcdsl.ir.primitives import PRIMITIVES, Primitive
from tcdsl.ir.program import (
    Access,
    Assertion,
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
    Neutral,
    Program,
    Size,
    Start,
    Statement,
    Tensor,
)
from tcdsl.ir.sizes.size_binding import SizePlan, bind_sizes, evaluate_size
from tcdsl.ir.text.parser import parse_expr, parse_program, parse_rule
from tcdsl.ir.text.printer import format_expr, format_program, format_statement
from tcdsl.ir.verifier.verifier import VerificationError, verify
from tcdsl.span import Span

__all__ = [
    "ACCUMULATORS",
    "DTYPES",
    "PRIMITIVES",
    "Access",
    "Accumulator",
    "Apply",
    "Assertion",
    "AxisExtent",
    "Boundary",
    "Cast",
    "Constant",
    "DerivativeRule",
    "Domain",
    "Expr",
    "Fill",
    "IndexValue",
    "Interpretation",
    "Keep",
    "Let",
    "Local",
    "Neutral",
    "Primitive",
    "Program",
    "Read",
    "Size",
    "SizePlan",
    "SizeValue",
    "Span",
    "Start",
    "Statement",
    "Tensor",
    "VerificationError",
    "accumulation_dtype",
    "bind_sizes",
    "compute_dtype",
    "evaluate_size",
    "format_expr",
    "format_program",
    "format_statement",
    "interpret",
    "neutral_element",
    "parse_expr",
    "parse_program",
    "parse_rule",
    "same_kind",
    "verify",
]
