"""Tensors under other names."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_

from tcdsl.ir.expressions import LEAVES, Expr, Read, children, rebuild
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, AxisExtent, Keep, Program, Size, Statement, Tensor, map_statement
from tcdsl.rewrite.statement_kinds import of_renamed_kind

__all__ = [
    "expression_with_tensors_renamed",
    "statement_with_tensors_renamed",
    "with_tensors_renamed",
]


def expression_with_tensors_renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """``expr`` reading ``names[t]`` instead of ``t``."""
    # Written out, because equal layers are one that is renamed.
    kind = type(expr)
    if kind in LEAVES:
        return expr
    parts = children(expr)
    made = [part if type(part) in LEAVES else expression_with_tensors_renamed(part, names) for part in parts]
    if not all(map(is_, made, parts)):
        expr = rebuild(expr, tuple(made))
    if type(expr) is Read and names.get(expr.tensor, expr.tensor) != expr.tensor:
        return Read(names[expr.tensor], expr.indices, expr.boundaries, expr.dtype, expr.fill, expr.span)
    return expr


def statement_with_tensors_renamed(statement: Statement, names: Mapping[str, str]) -> Statement:
    """The statement with its target, its start and its reads renamed."""
    made = map_statement(statement, lambda expr: expression_with_tensors_renamed(expr, names))
    target, start = made.target, made.start
    if isinstance(start, Keep) and start.tensor in names:
        start = Keep(names[start.tensor])
    if target.tensor in names:
        target = Access(names[target.tensor], target.indices, target.span)
    if target is not made.target or start is not made.start:
        made = replace(made, target=target, start=start)
    return made if made is statement else of_renamed_kind(made, statement, names)


def with_tensors_renamed(program: Program, names: Mapping[str, str]) -> Program:
    """The program with tensors renamed everywhere; ``names`` may swap names."""

    def declared(tensor: Tensor) -> Tensor:
        return replace(tensor, name=names.get(tensor.name, tensor.name))

    def sized(size: Size) -> Size:
        source = size.source
        if isinstance(source, AxisExtent):
            return replace(size, source=replace(source, tensor=names.get(source.tensor, source.tensor)))
        return size

    return replace(
        program,
        inputs=tuple(map(declared, program.inputs)),
        sizes=tuple(map(sized, program.sizes)),
        tensors=tuple(map(declared, program.tensors)),
        statements=tuple(statement_with_tensors_renamed(statement, names) for statement in program.statements),
        outputs=tuple(names.get(name, name) for name in program.outputs),
        updates=tuple((names.get(a, a), names.get(b, b)) for a, b in program.updates),
        rules=tuple(rule.with_tensors(names) for rule in program.rules),
        repeats=tuple(repeat.with_tensors(names) for repeat in program.repeats),
    )
