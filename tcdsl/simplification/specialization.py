"""A program for one set of sizes: every extent a constant, so that loops can be written for it.

::

    specialized(program, {"N": 100, "K": 2})
        input x: float32[N, K]                       input x: float32[100, 2]
        s[i] += x[i, k]  for [i, k]: 0 <= i < N …    s[i] += x[i, k]  for [i, k]: 0 <= i <= 99 and 0 <= k <= 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.build import integer, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, substitute
from tcdsl.ir.program import Program, Statement, Tensor, map_statement
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.spaces import at_sizes

__all__ = ["specialized"]


def specialized(program: Program, sizes: Mapping[str, int]) -> Program:
    """``program`` for inputs of the shapes that these sizes give; ``sizes`` has all of its sizes, and fits it.

    That its assertions hold is known then, so they go; rules of derivatives are for programs of any size, and stay.
    """
    if not program.sizes:
        return program
    values: dict[Expr, Expr] = {size(name): integer(value) for name, value in sizes.items()}

    def declared(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(integer(evaluate_size(extent, sizes)) for extent in tensor.shape))

    def rewritten(statement: Statement) -> Statement:
        made = map_statement(statement, lambda expr: substitute(expr, values))
        return replace(made, domain=Domain.from_set(at_sizes(statement.domain.set, sizes)))

    return replace(
        program,
        inputs=tuple(map(declared, program.inputs)),
        sizes=(),
        tensors=tuple(map(declared, program.tensors)),
        statements=tuple(map(rewritten, program.statements)),
        assertions=(),
    )
