"""A program for one set of sizes: every extent a constant, so that loops can be written for it.

::

    specialized(program, {"N": 100, "K": 2})
        input x: float32[N, K]                       input x: float32[100, 2]
        s[i] += x[i, k]  for [i, k]: 0 <= i < N …    s[i] += x[i, k]  for [i, k]: 0 <= i <= 99 and 0 <= k <= 1

In the bodies of loops the number of the round stays open, and what is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.build import integer, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Constant, Expr, size_names, substitute
from tcdsl.ir.program import AxisExtent, Program, Repeat, Statement, Tensor, map_statement
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.spaces import at_sizes

__all__ = ["specialized"]


def specialized(program: Program, sizes: Mapping[str, int]) -> Program:
    """``program`` for inputs of the shapes that these sizes give; ``sizes`` has all of its sizes, and fits it.

    That its assertions hold is known then, so they go; rules of derivatives are for programs of any size, and stay.
    """
    return _specialized(program, sizes) if program.sizes or program.repeats else program


def _specialized(program: Program, sizes: Mapping[str, int]) -> Program:
    values: dict[Expr, Expr] = {size(name): integer(value) for name, value in sizes.items()}

    def constant(expr: Expr) -> Expr:
        return integer(evaluate_size(expr, sizes)) if size_names(expr) <= sizes.keys() else substitute(expr, values)

    def declared(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(map(constant, tensor.shape)))

    def rewritten(statement: Statement) -> Statement:
        made = map_statement(statement, lambda expr: substitute(expr, values))
        return replace(made, domain=Domain.from_set(at_sizes(statement.domain.set, sizes)))

    inputs = tuple(map(declared, program.inputs))
    tensors = tuple(map(declared, program.tensors))
    shapes = {tensor.name: tensor.shape for tensor in (*inputs, *tensors)}
    opened = (each for each in program.sizes if each.name not in sizes)
    return replace(
        program,
        inputs=inputs,
        sizes=tuple(
            each if isinstance(each.source, AxisExtent) else replace(each, source=substitute(each.source, values))
            for each in opened
        ),
        tensors=tensors,
        statements=tuple(map(rewritten, program.statements)),
        assertions=tuple(
            replace(each, condition=substitute(each.condition, values))
            for each in program.assertions
            if not size_names(each.condition) <= sizes.keys()
        ),
        repeats=tuple(
            replace(repeat, body=_body(repeat, shapes)).with_ends(lambda end: substitute(end, values))
            for repeat in program.repeats
        ),
    )


def _body(repeat: Repeat, shapes: Mapping[str, tuple[Expr, ...]]) -> Program:
    """The body of a loop for what it is given: an extent that is known is a constant in it."""
    body = repeat.body
    given = {inner.name: shapes[name] for inner, name in zip(body.inputs[1:], repeat.inputs, strict=True)}
    known: dict[str, int] = {}
    for each in body.sizes:
        if isinstance(each.source, AxisExtent):
            extent = given[each.source.tensor][each.source.axis] if each.source.tensor in given else None
            if isinstance(extent, Constant):
                known[each.name] = int(extent.value)
        elif size_names(each.source) <= known.keys():
            known[each.name] = evaluate_size(each.source, known)
    return _specialized(body, known)
