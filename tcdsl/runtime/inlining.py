"""A finished program as part of the one under construction: how derivatives are called inside decorated functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.frontend.session import Session
from tcdsl.frontend.symbols import SymbolicTensor
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, Read, SizeValue, substitute, transform
from tcdsl.ir.program import Access, AxisExtent, Fill, Keep, Program, Start, Statement, Tensor
from tcdsl.shapes.affine import NotAffine, function_of

__all__ = ["inline_program"]


def inline_program(session: Session, program: Program, inputs: Sequence[SymbolicTensor]) -> list[SymbolicTensor]:
    """Append ``program`` to the session's program with ``inputs`` as its inputs; the tensors of its outputs.

    Sizes of ``program`` become expressions of the session's sizes; its assertions become the session's.
    """
    builder = session.builder
    names = {tensor.name: given.name for tensor, given in zip(program.inputs, inputs, strict=True)}
    sizes: dict[Expr, Expr] = {}
    extents = {tensor.name: given.extents for tensor, given in zip(program.inputs, inputs, strict=True)}
    for size in program.sizes:
        if isinstance(size.source, AxisExtent):
            extent = extents[size.source.tensor][size.source.axis]
        else:
            extent = builder.opaque_size(substitute(size.source, sizes))
        sizes[SizeValue(size.name)] = extent
    for assertion in program.assertions:
        builder.require(
            substitute(assertion.condition, sizes), _renamed_message(assertion.message, sizes), assertion.span
        )
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        name = builder.fresh_name(tensor.name)
        names[tensor.name] = name
        moved = _statement(statement, names, sizes, builder)
        shape = tuple(substitute(extent, sizes) for extent in tensor.shape)
        builder.append((moved,), (Tensor(name, tensor.dtype, shape, tensor.label, tensor.span),))
    made = []
    for output in program.outputs:
        tensor = builder.tensor(names[output])
        made.append(SymbolicTensor(builder, tensor.name, tensor.dtype, tensor.shape, tensor.label))
    return made


def _renamed_message(message: str, sizes: dict[Expr, Expr]) -> str:
    for old, new in sizes.items():
        if isinstance(old, SizeValue) and isinstance(new, SizeValue):
            message = message.replace("{" + old.name + "}", "{" + new.name + "}")
    return message


def _statement(statement: Statement, names: dict[str, str], sizes: dict[Expr, Expr], builder: object) -> Statement:
    # Index variables that are also sizes here get a prime-like suffix, because domains keep both in one name space.
    taken = {name for size in sizes.values() for name in _size_names(size)}
    renaming = {v: _free(v, taken | set(statement.domain.variables)) for v in statement.domain.variables if v in taken}

    def moved(expr: Expr) -> Expr:
        from tcdsl.ir.expressions import IndexValue

        def rule(node: Expr) -> Expr:
            match node:
                case Read(tensor=tensor):
                    return replace(node, tensor=names.get(tensor, tensor))
                case SizeValue():
                    return sizes.get(node, node)
                case IndexValue(name=name):
                    return IndexValue(renaming.get(name, name), node.span)
            return node

        return transform(expr, rule)

    start: Start = statement.start
    if isinstance(start, Keep):
        start = Keep(names[start.tensor])
    elif isinstance(start, Fill):
        start = Fill(moved(start.value))
    target = Access(
        names[statement.target.tensor], tuple(moved(index) for index in statement.target.indices), statement.target.span
    )
    return replace(
        statement,
        target=target,
        start=start,
        value=moved(statement.value),
        condition=None if statement.condition is None else moved(statement.condition),
        domain=_domain(statement.domain, renaming, sizes, builder),
    )


def _size_names(expr: Expr) -> frozenset[str]:
    from tcdsl.ir.expressions import size_names

    return size_names(expr)


def _free(name: str, taken: set[str]) -> str:
    count = 2
    while f"{name}_{count}" in taken:
        count += 1
    return f"{name}_{count}"


def _domain(domain: Domain, renaming: dict[str, str], sizes: dict[Expr, Expr], builder: object) -> Domain:
    points = domain.set
    # Parameters get names of their own first, so that a size called N on both sides is not one size by accident.
    parameters = domain.parameters
    for k, name in enumerate(parameters):
        points = points.set_dim_name(isl.dim_type.param, k, f"inlined_{name}")
    for k, name in enumerate(domain.variables):
        points = points.set_dim_name(isl.dim_type.set, k, renaming.get(name, name))
    for name in parameters:
        extent = sizes[SizeValue(name)]
        try:
            value = function_of(extent, points)
        except NotAffine:
            value = function_of(builder.opaque_size(extent), points)  # type: ignore[attr-defined]
        own = function_of(SizeValue(f"inlined_{name}"), points)
        points = points.intersect(own.eq_set(value))
        position = points.find_dim_by_name(isl.dim_type.param, f"inlined_{name}")
        points = points.project_out(isl.dim_type.param, position, 1)
    return Domain.from_set(points)
