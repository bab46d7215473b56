"""Calls of procedures: ``tile(view(A, (k, 0), (None, N)), view(C, (k,), (N,)), N)``, views first, then sizes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tcdsl.lowering.loopir.loops import BufferView, Procedure, ProcedureCall
from tcdsl.lowering.loopir.traversal import size_extents
from tcdsl.targets.cpu.printing.expression_printing import ExpressionWriter, call, name

__all__ = ["ProcedureCalls"]


class ProcedureCalls:
    """Writes calls: ``ProcedureCalls(procedures, identifiers, debug).statement(node, values)``."""

    def __init__(self, procedures: Mapping[str, Procedure], identifiers: Mapping[str, str], debug: bool) -> None:
        self._procedures = procedures
        self._identifiers = identifiers
        self._debug = debug

    def statement(self, node: ProcedureCall, values: ExpressionWriter) -> ast.stmt:
        """The statement that calls."""
        procedure = self._procedures[node.procedure]
        views = [_view(view, values) for view in node.views]
        sizes = map(values.expression, size_extents(procedure, node).values())
        frame = [name("frame")] if self._debug else []
        return ast.Expr(call(self._identifiers[node.procedure], *frame, *views, *sizes))


def _view(view: BufferView, values: ExpressionWriter) -> ast.expr:
    starts = ast.Tuple([values.expression(start) for start in view.starts], ast.Load())
    extents = [ast.Constant(None) if extent is None else values.expression(extent) for extent in view.extents]
    return call(values.function("view"), values.memory(view.buffer), starts, ast.Tuple(extents, ast.Load()))
