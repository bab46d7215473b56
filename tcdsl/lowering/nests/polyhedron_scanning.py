"""Loops that visit the points of a set in lexicographic order, with exact bounds, by isl's generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl

from tcdsl.ir.build import apply, index, integer, size
from tcdsl.ir.domain import text_of
from tcdsl.ir.expressions import Apply, Constant, Expr, IndexValue, index_variables, substitute
from tcdsl.lowering.loopir.loops import Branch, Loop, LoopKind, Node
from tcdsl.polyhedra.affine import expression_of_ast
from tcdsl.polyhedra.linear import linear_expression, normalized
from tcdsl.polyhedra.spaces import arranged, parameter_names
from tcdsl.recent import Recent

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
    variables = frozenset(order) | frozenset(given)
    ends = None if descending else _ends_of_box(points, context, variables)
    if ends is not None:
        loops = _loops_of_box(list(zip(order, ends, strict=True)), leaf, frozenset(parallel))
        return _guarded(loops, points, context, variables)
    tree = _tree(points, context, tuple(order), frozenset(descending))
    scanner = _Scanner(tuple(order), variables, frozenset(parallel), leaf)
    return tuple(scanner.nodes(tree, {}, True))


# Statements over the same points come back: in gradients, in each form of a program, and in other programs.
_TREES: Recent[tuple[str, str, tuple[str, ...], frozenset[str]], isl.AstNode] = Recent(1000)


def _tree(points: isl.Set, context: isl.Set, order: tuple[str, ...], descending: frozenset[str]) -> isl.AstNode:
    key = text_of(points), text_of(context), order, descending
    found = _TREES.get(key)
    if found is None:
        names = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(order))
        for name in order:
            names = names.add(isl.Id(name))
        build = isl.AstBuild.from_context(context).set_iterators(names)
        schedule = isl.UnionMap.from_map(_schedule(points.set_tuple_name("S"), order, descending))
        found = _TREES[key] = build.node_from_schedule_map(schedule)
    return found


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


_Ends = tuple[Expr, Expr]


def _ends_of_box(points: isl.Set, context: isl.Set, variables: frozenset[str]) -> list[_Ends] | None:
    """For each variable its first value and the one behind its last, where sizes alone bound it; None for other sets.

    Most sets are such boxes, and isl's generator takes a hundred times as long to come to the same loops. Whether there
    are any points may depend on the sizes: `_guarded` sees to that.
    """
    if points.n_basic_set() != 1:
        return None
    rank = points.dim(isl.dim_type.set)
    found: list[list[Expr | None]] = [[None, None] for _ in range(rank)]
    for constraint in points.get_basic_sets()[0].get_constraints():
        own = [axis for axis in range(rank) if constraint.involves_dims(isl.dim_type.set, axis, 1)]
        if constraint.dim(isl.dim_type.div):
            return None
        if not own:
            continue
        if constraint.is_equality() or len(own) != 1:
            return None
        scale = constraint.get_coefficient_val(isl.dim_type.set, own[0]).to_python()
        upper = scale < 0
        if abs(scale) != 1 or found[own[0]][upper] is not None:
            return None
        terms: dict[Expr, int] = {}
        for position, name in enumerate(parameter_names(points)):
            if constraint.involves_dims(isl.dim_type.param, position, 1):
                factor = constraint.get_coefficient_val(isl.dim_type.param, position).to_python()
                terms[index(name) if name in variables else size(name)] = -scale * factor
        offset = -scale * constraint.get_constant_val().to_python()
        found[own[0]][upper] = linear_expression(terms, offset + upper)
    ends = [(low, high) for low, high in found if low is not None and high is not None]
    # A variable that has one value only, for these sizes, has no loop.
    hull = points.intersect_params(context).affine_hull()
    if len(ends) < rank or hull.involves_dims(isl.dim_type.set, 0, rank):
        return None
    return ends


def _guarded(loops: tuple[Node, ...], points: isl.Set, context: isl.Set, variables: frozenset[str]) -> tuple[Node, ...]:
    # The loops over a box, where the sizes are such that it has points.
    rank = points.dim(isl.dim_type.set)
    guard = points.get_basic_sets()[0].drop_constraints_involving_dims(isl.dim_type.set, 0, rank).params()
    if not loops or guard.plain_is_universe():
        return loops
    tree = isl.AstBuild.from_context(context).expr_from_set(isl.Set.from_basic_set(guard))
    condition = normalized(expression_of_ast(tree, variables))
    if isinstance(condition, Constant):
        # isl writes a number where the sizes of the context all have points, or none.
        return loops if condition.value else ()
    match loops:
        case (Loop(start=start, stop=stop) as loop,) if not index_variables(condition):
            # What looks for products of matrices among loops sees one that has no step for some sizes.
            return (replace(loop, stop=apply("where", condition, stop, start)),)
    return (Branch(condition, loops),)


def _loops_of_box(ends: Sequence[tuple[str, _Ends]], leaf: Leaf, parallel: frozenset[str]) -> tuple[Node, ...]:
    nodes = tuple(leaf({}))
    for depth, (name, (first, stop)) in reversed(list(enumerate(ends))):
        kind: LoopKind = "parallel" if depth == 0 and name in parallel else "serial"
        nodes = (Loop(name, first, stop, 1, nodes, kind),) if nodes else ()
    return nodes


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
