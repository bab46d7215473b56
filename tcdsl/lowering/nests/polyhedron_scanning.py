"""Loops that visit the points of a set in lexicographic order, with exact bounds, by isl's generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Apply, Expr, IndexValue, substitute
from tcdsl.lowering.loopir.loops import Branch, Loop, LoopKind, Node
from tcdsl.polyhedra.affine import expression_of_ast
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged, parameter_names

__all__ = ["Leaf", "scan"]

# The package's type information lacks these names.
_KINDS: Any = isl.ast_node_type

Leaf = Callable[[Mapping[Expr, Expr]], Iterable[Node]]
"""Makes the nodes of a point. The argument says what a variable is where it has one value only and therefore no
loop.
"""


def scan(
    points: isl.Set,
    order: Sequence[str],
    leaf: Leaf,
    *,
    context: isl.Set,
    given: Sequence[str] = (),
    parallel: Iterable[str] = (),
    descending: Iterable[str] = (),
) -> tuple[Node, ...]:
    """Loops over ``points``, outermost variable first, with ``leaf`` inside.

    A loop over a variable of ``descending`` counts its negative up.

    ``given`` are variables of ``points`` that loops outside have set; ``context`` is what holds of them and of the
    sizes. The outermost loops over ``parallel`` variables are marked so. Nothing runs where there is no point.
    """
    points = arranged(points, order, given)
    context = _relevant(context, points)
    points = points.gist_params(context)
    if points.is_empty():
        return ()
    build = isl.AstBuild.from_context(context)
    names = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(order))
    for name in order:
        names = names.add(isl.Id(name))
    build = build.set_iterators(names)
    schedule = isl.UnionMap.from_map(_schedule(points.set_tuple_name("S"), order, frozenset(descending)))
    scanner = _Scanner(tuple(order), frozenset(order) | frozenset(given), frozenset(parallel), leaf)
    return tuple(scanner.nodes(build.node_from_schedule_map(schedule), {}, True))


def _schedule(points: isl.Set, order: Sequence[str], descending: frozenset[str]) -> isl.Map:
    times = points.identity().set_tuple_name(isl.dim_type.out, "")
    if not descending:
        return times
    space = isl.LocalSpace.from_space(points.get_space())
    columns = [isl.Aff.var_on_domain(space, isl.dim_type.set, k) for k in range(len(order))]
    times = isl.Map.from_domain(points)
    for name, column in zip(order, columns, strict=True):
        times = times.flat_range_product(isl.Map.from_aff(column.neg() if name in descending else column))
    return times.intersect_domain(points)


def _relevant(context: isl.Set, points: isl.Set) -> isl.Set:
    # isl takes longer for every parameter that the points do not depend on.
    used = {name for k, name in enumerate(parameter_names(points)) if points.involves_dims(isl.dim_type.param, k, 1)}
    for k in reversed(range(context.dim(isl.dim_type.param))):
        if context.get_dim_name(isl.dim_type.param, k) not in used:
            context = context.project_out(isl.dim_type.param, k, 1)
    return context


def _next(last: Expr) -> Expr:
    # min(K - 1, z) + 1 reads better as min(K, z + 1).
    match last:
        case Apply(primitive="min" | "max" as primitive, arguments=(left, right)):
            return apply(primitive, _next(left), _next(right))
        case _:
            return normalized(apply("add", last, integer(1)))


@dataclass(frozen=True, slots=True)
class _Scanner:
    """Turns isl's tree into nodes."""

    order: tuple[str, ...]
    variables: frozenset[str]
    parallel: frozenset[str]
    leaf: Leaf

    def nodes(self, tree: isl.AstNode, values: Mapping[Expr, Expr], outermost: bool) -> list[Node]:
        kind: Any = tree.get_type()
        if kind == _KINDS.block:
            children = tree.block_get_children()
            return [
                node
                for k in range(children.n_ast_node())
                for node in self.nodes(children.get_ast_node(k), values, outermost)
            ]
        if kind == _KINDS.if_:
            condition = self.expression(tree.if_get_cond(), values)
            body = self.nodes(tree.if_get_then_node(), values, outermost)
            otherwise = self.nodes(tree.if_get_else_node(), values, outermost) if tree.if_has_else_node() else []
            return [Branch(condition, tuple(body), tuple(otherwise))]
        if kind == _KINDS.for_:
            return self.loop(tree, values, outermost)
        return list(self.leaf(self.point(tree.user_get_expr(), values)))

    def loop(self, tree: isl.AstNode, values: Mapping[Expr, Expr], outermost: bool) -> list[Node]:
        name = tree.for_get_iterator().get_id().get_name()
        start = self.expression(tree.for_get_init(), values)
        if tree.for_is_degenerate():
            return self.nodes(tree.for_get_body(), {**values, index(name): start}, outermost)
        condition = tree.for_get_cond()
        stop = self.expression(condition.get_op_arg(1), values)
        comparison: Any = condition.get_op_type()
        if comparison == isl.ast_expr_op_type.le:
            stop = _next(stop)
        step = tree.for_get_inc().get_val().to_python()
        kind: LoopKind = "parallel" if outermost and name in self.parallel else "serial"
        body = self.nodes(tree.for_get_body(), values, False)
        return [Loop(name, start, stop, step, tuple(body), kind)] if body else []

    def point(self, call: isl.AstExpr, values: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
        found: dict[Expr, Expr] = {}
        for k, name in enumerate(self.order):
            value = self.expression(call.get_op_arg(k + 1), values)
            if value != IndexValue(name):
                found[index(name)] = value
        return found

    def expression(self, expr: isl.AstExpr, values: Mapping[Expr, Expr]) -> Expr:
        # A parameter that a loop outside has set prints as a name like a size.
        return normalized(substitute(expression_of_ast(expr, self.variables), dict(values)))
