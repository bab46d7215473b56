"""Tensors under other names."""

from __future__ import annotations

from collections.abc import Mapping

from tcdsl.ir.expressions import Expr, Read, transform
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import AxisExtent, Keep, Program, Size, Statement, Tensor, map_statement

__all__ = [
    "expression_with_tensors_renamed",
    "statement_with_tensors_renamed",
    "with_tensors_renamed",
]


def expression_with_tensors_renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """``expr`` reading ``names[t]`` instead of ``t``."""

    def rule(node: Expr) -> Expr:
        return replace(node, tensor=names[node.tensor]) if isinstance(node, Read) and node.tensor in names else node

    return transform(expr, rule)


def statement_with_tensors_renamed(statement: Statement, names: Mapping[str, str]) -> Statement:
    """The statement with its target, its start and its reads renamed."""
    statement = map_statement(statement, lambda expr: expression_with_tensors_renamed(expr, names))
    target, start = statement.target, statement.start
    if isinstance(start, Keep):
        start = Keep(names.get(start.tensor, start.tensor))
    return replace(statement, target=replace(target, tensor=names.get(target.tensor, target.tensor)), start=start)


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
