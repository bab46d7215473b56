"""Expressions for sizes, in domains and in whole programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import islpy as isl

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, Read, SizeValue, is_affine_index, map_children, substitute, transform
from tcdsl.ir.program import AxisExtent, Program, Statement, Tensor, map_statement
from tcdsl.polyhedra.affine import NotAffine, equated
from tcdsl.polyhedra.linear import normalized

__all__ = ["domain_with_sizes", "with_size_replaced"]


def domain_with_sizes(
    domain: Domain,
    sizes: Mapping[Expr, Expr],
    opaque_size: Callable[[Expr], Expr],
    renaming: Mapping[str, str] | None = None,
) -> Domain:
    """``domain`` with an expression for each of its sizes, and some of its variables renamed.

    ``opaque_size`` gives the size that stands for an expression that domains cannot hold.
    """
    renaming = renaming or {}
    if not renaming and not domain.parameters:
        return domain
    points = domain.set
    # Parameters get names of their own first, so that a size called N on both sides is not one size by accident.
    parameters = domain.parameters
    for k, name in enumerate(parameters):
        points = points.set_dim_name(isl.dim_type.param, k, f"inlined_{name}")
    for k, name in enumerate(domain.variables):
        points = points.set_dim_name(isl.dim_type.set, k, renaming.get(name, name))
    for name in parameters:
        own, extent = SizeValue(f"inlined_{name}"), sizes.get(SizeValue(name), SizeValue(name))
        try:
            points = equated(points, own, extent)
        except NotAffine:
            points = equated(points, own, opaque_size(extent))
        position = points.find_dim_by_name(isl.dim_type.param, f"inlined_{name}")
        points = points.project_out(isl.dim_type.param, position, 1)
    return Domain.from_set(points)


def with_size_replaced(program: Program, name: str, value: Expr) -> Program:
    """``program`` with an affine expression of sizes for the size ``name``, wherever it is used.

    The definition of ``name`` stays, because ``value`` may mention it.
    """
    sizes: dict[Expr, Expr] = {SizeValue(name): value}

    def rule(expr: Expr) -> Expr:
        found = substitute(expr, sizes)
        return expr if found == expr else transform(found, _with_collected_indices)

    def declared(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(map(rule, tensor.shape)))

    def rewritten(statement: Statement) -> Statement:
        made = map_statement(statement, rule)
        made = replace(made, target=replace(made.target, indices=_collected(made.target.indices)))
        if name not in made.domain.parameters:
            return made
        return replace(made, domain=domain_with_sizes(made.domain, sizes, lambda extent: extent))

    return replace(
        program,
        sizes=tuple(
            each if isinstance(each.source, AxisExtent) else replace(each, source=rule(each.source))
            for each in program.sizes
        ),
        tensors=tuple(map(declared, program.tensors)),
        statements=tuple(map(rewritten, program.statements)),
        assertions=tuple(
            replace(each, condition=map_children(rule(each.condition), normalized)) for each in program.assertions
        ),
        repeats=tuple(repeat.with_ends(lambda end: normalized(rule(end))) for repeat in program.repeats),
    )


def _with_collected_indices(node: Expr) -> Expr:
    # `x[N - 1 - k + 1]` is `x[N - k]`.
    return replace(node, indices=_collected(node.indices)) if isinstance(node, Read) else node


def _collected(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(normalized(axis) if is_affine_index(axis) else axis for axis in indices)
