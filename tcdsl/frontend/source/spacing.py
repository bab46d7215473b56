"""``c =+ a`` in plain Python, which reads it as ``c = +a``: on tensors it is taken for a slip, because in the literal
spelling it accumulates, and refused.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.span import Span

if TYPE_CHECKING:
    from tcdsl.frontend.staging.session import Session

__all__ = ["SpacedSign", "mark_spacing", "refused", "signed"]

_SIGNS: dict[type[ast.unaryop], str] = {ast.UAdd: "+", ast.USub: "-"}


class SpacedSign(ast.UnaryOp):
    """The value ``+a`` of ``c =+ a``, or ``-a`` of ``c =- a``: there is a space before ``=`` and none behind it."""


def mark_spacing(definition: ast.FunctionDef, rows: Sequence[str], first: int) -> None:
    """Make the values of such assignments `SpacedSign` nodes. ``rows`` are the source's lines, the first one's number
    ``first``; columns are characters.
    """
    for node in ast.walk(definition):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        # Conditions may follow the value: `C[i] =+ A[i], i < 3`.
        several = isinstance(node.value, ast.Tuple) and bool(node.value.elts)
        value = node.value.elts[0] if several else node.value  # type: ignore[attr-defined]
        if not isinstance(value, ast.UnaryOp) or type(value.op) not in _SIGNS:
            continue
        before = rows[value.lineno - first][: value.col_offset] if value.lineno >= first else ""
        if before[-1:] != "=" or not before[-2:-1].isspace():
            continue
        spaced = ast.copy_location(SpacedSign(value.op, value.operand), value)
        if several:
            node.value.elts[0] = spaced  # type: ignore[attr-defined]
        else:
            node.value = spaced


def refused(session: Session, node: ast.stmt, span: Callable[[ast.AST], Span | None]) -> bool:
    """Whether a tensor statement is spaced like this; then the session has its fault."""
    value = node.value if isinstance(node, ast.Assign) else None
    if isinstance(value, ast.Tuple) and value.elts:
        value = value.elts[0]
    if not isinstance(value, SpacedSign):
        return False
    session.faults.append(_fault(_SIGNS[type(value.op)], span(value)))
    return True


def signed(session: Session, sign: str, value: Any) -> Any:
    """``+value`` or ``-value`` after ``name =``: a fault if it is symbolic, else Python's."""
    from tcdsl.frontend.symbols.graph_tensors import GraphTensor
    from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber

    if not isinstance(value, SymbolicArray | SymbolicNumber | GraphTensor):
        return operator.pos(value) if sign == "+" else operator.neg(value)
    raise _fault(sign, session.location()).error()


def _fault(sign: str, span: Span | None) -> Diagnostic:
    if span is not None:
        # The operator that it looks like.
        span = Span(span.filename, span.line, max(0, span.column - 1), span.line, span.column + 1)
    return Diagnostic(
        DslSyntaxError,
        f"`={sign}` is Python's assignment of `{sign}a`; it accumulates in the literal spelling only",
        span,
        hint=f"write `c {sign}= a`, or `c = {sign}a` to assign; tc.literal.install(...), %load_ext tcdsl in a notebook "
        "and python -m tcdsl run turn the literal spelling on",
    )
