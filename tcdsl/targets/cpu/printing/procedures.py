"""Procedures as functions of a printed module.

::

    @procedure(fastmath=('contract', 'reassoc'))
    def tile(A, C, M):
        for i in range(M):
            C[i] += A[i]

Such a function is compiled for the types of its arguments, which name the memory that they are views of: so LLVM
knows that they are apart, and may put the function's body where it is called.
"""

from __future__ import annotations

import ast

from tcdsl.lowering.loopir.loops import Procedure
from tcdsl.lowering.loopir.traversal import sizes_of
from tcdsl.targets.cpu.printing.expression_printing import function_definition
from tcdsl.targets.cpu.printing.nest_printing import NestWriter

__all__ = ["procedure_function"]


def procedure_function(
    procedure: Procedure, writer: NestWriter, identifier: str, decorator: ast.expr
) -> ast.FunctionDef:
    """The function of ``procedure``: its parameters, then its sizes; in checked code the frame before them."""
    parameters = ["frame"] if writer.debug else []
    parameters += [writer.names("buffer", parameter.name) for parameter in procedure.parameters]
    parameters += [writer.names("size", size) for size in sizes_of(procedure)]
    title = ast.Expr(ast.Constant(f"The procedure {procedure.name}."))
    return function_definition(identifier, parameters, [title, *writer.block(procedure.body)], decorator)
