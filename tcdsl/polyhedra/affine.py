"""Between expressions and isl: index expressions to quasi-affine functions and back, conditions to sets.

An expression of index variables and sizes is quasi-affine if it is built from them with ``+ - min max``, products with
integers, and ``//`` and ``%`` by positive integers. Products and quotients of sizes alone are opaque: the front end
gives them names (`tcdsl.ir.Size`). Products of an index variable and a size are not quasi-affine: `NotAffine`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import islpy as isl

from tcdsl.ir.build import apply, index, integer, size, truth
from tcdsl.ir.domain import text_of
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, SizeValue, size_names
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.polyhedra.disjunctions import convex_pieces, within
from tcdsl.polyhedra.limits import new_question
from tcdsl.polyhedra.spaces import arranged, dimension_names
from tcdsl.recent import Recent

__all__ = [
    "NotAffine",
    "condition_set",
    "equated",
    "expression_of",
    "expression_of_ast",
    "expression_of_condition",
    "function_of",
    "holds",
    "isl_value",
    "knowing",
    "sizes_condition",
    "substituted",
    "universe",
    "with_variable",
]


# Convex pieces of an expression beyond which isl takes longer than a test at every point.
_MOST_PIECES = 64


class NotAffine(Exception):  # noqa: N818  # a question's answer, never an error that users see
    """The expression is not quasi-affine, or has too many cases; ``args[0]`` is the part that is not."""


def universe(variables: Sequence[str], sizes: Sequence[str]) -> isl.Set:
    """All integer points over ``variables``, parametric in ``sizes``."""
    space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=list(variables), params=sorted(set(sizes)))
    return isl.Set.universe(space)


def function_of(expr: Expr, points: isl.Set, any_pieces: bool = False) -> isl.PwAff:
    """``expr`` as a function on the space of ``points``, whose dimensions name the index variables.

    The sizes of ``expr`` are added as parameters. Raises `NotAffine`, which ``any_pieces`` does not for many cases.
    """
    if not any_pieces:
        _ask(expr)
    if not isinstance(expr, Apply):
        return _function(expr, _space_with_sizes(expr, points))
    key = _key(expr, points)
    found = _FUNCTIONS.get(key)
    if found is None:
        found = _FUNCTIONS[key] = _function(expr, _space_with_sizes(expr, points))
    return found


def with_variable(points: isl.Set, name: str, value: Expr) -> isl.Set:
    """``points`` with one dimension more, the last one, which equals ``value``."""
    count = points.dim(isl.dim_type.set)
    points = points.insert_dims(isl.dim_type.set, count, 1).set_dim_name(isl.dim_type.set, count, name)
    return equated(points, IndexValue(name), value)


# The same indices and conditions come back in every pass, and in every derivative.
_Key = tuple[Expr, str, tuple[str | None, ...]]
_FUNCTIONS: Recent[_Key, isl.PwAff] = Recent(2000)
_CONDITIONS: Recent[_Key, isl.Set] = Recent(2000)


def _key(expr: Expr, points: isl.Set) -> _Key:
    # For isl spaces are equal, and may print alike, whatever their dimensions are called.
    names = [points.get_dim_name(isl.dim_type.set, k) for k in range(points.dim(isl.dim_type.set))]
    return expr, text_of(points.get_space()), tuple(names)


def _ask(expr: Expr) -> None:
    new_question()
    if convex_pieces(expr) > _MOST_PIECES:
        raise NotAffine(expr)


def _space_with_sizes(expr: Expr, points: isl.Set) -> isl.LocalSpace:
    space = points.get_space()
    for name in sorted(size_names(expr)):
        if space.find_dim_by_name(isl.dim_type.param, name) < 0:
            position = space.dim(isl.dim_type.param)
            space = space.add_dims(isl.dim_type.param, 1).set_dim_name(isl.dim_type.param, position, name)
    return isl.LocalSpace.from_space(space)


def isl_value(number: bool | int | float) -> isl.Val:
    """``number`` for isl, whose integers have any number of digits."""
    value = int(number)
    if abs(value) < 1 << 62:
        return isl.Val.int_from_si(isl.DEFAULT_CONTEXT, value)
    return isl.Val(str(value))


def _function(expr: Expr, space: isl.LocalSpace) -> isl.PwAff:
    match expr:
        case Constant(value=value):
            return isl.PwAff.from_aff(isl.Aff.val_on_domain(space, isl_value(value)))
        case SizeValue(name=name):
            position = space.find_dim_by_name(isl.dim_type.param, name)
            return isl.PwAff.from_aff(isl.Aff.var_on_domain(space, isl.dim_type.param, position))
        case IndexValue(name=name):
            position = space.find_dim_by_name(isl.dim_type.set, name)
            if position < 0:
                raise NotAffine(expr)
            return isl.PwAff.from_aff(isl.Aff.var_on_domain(space, isl.dim_type.set, position))
        case Cast(operand=operand, dtype="int64") if operand.dtype.startswith(("int", "uint")):
            return _function(operand, space)
        case Apply(primitive=primitive, arguments=arguments):
            return _applied(expr, primitive, arguments, space)
        case _:
            raise NotAffine(expr)


def _applied(expr: Expr, primitive: str, arguments: tuple[Expr, ...], space: isl.LocalSpace) -> isl.PwAff:
    match primitive:
        case "neg":
            return _function(arguments[0], space).neg()
        case "add" | "sub" | "max" | "min":
            left, right = (_function(argument, space) for argument in arguments)
            combined: isl.PwAff = getattr(left, primitive)(right)
            return combined
        case "mul":
            for scale, other in (arguments, arguments[::-1]):
                if isinstance(scale, Constant):
                    return _function(other, space).scale_val(isl_value(scale.value))
        case "floor_div" | "mod":
            divisor = arguments[1]
            if isinstance(divisor, Constant) and divisor.value > 0:
                value = _function(arguments[0], space)
                if primitive == "mod":
                    return value.mod_val(isl_value(divisor.value))
                return value.scale_down_val(isl_value(divisor.value)).floor()
        case "where":
            chosen = _condition(arguments[0], space)
            left, right = (_function(argument, space) for argument in arguments[1:])
            return left.intersect_domain(chosen).union_add(right.intersect_domain(chosen.complement()))
    raise NotAffine(expr)


def knowing(known: isl.Set, fact: Expr) -> isl.Set:
    """What is known about sizes, with a condition that holds: as far as isl can say it, in few pieces.

    Alternatives of independent sizes, such as ``N == 0 or K >= 6``, would multiply.
    """
    try:
        allowed = condition_set(fact, known)
    except NotAffine:
        return known
    if allowed.n_basic_set() == 1:
        return known.intersect(allowed)
    both = within(known, allowed)
    return known if both is None else both


def condition_set(expr: Expr, points: isl.Set) -> isl.Set:
    """The points of the space of ``points`` (not of the set) where the bool expression ``expr`` holds. `NotAffine`."""
    _ask(expr)
    key = _key(expr, points)
    found = _CONDITIONS.get(key)
    if found is None:
        found = _CONDITIONS[key] = _condition(expr, _space_with_sizes(expr, points))
    return found


def equated(points: isl.Set, left: Expr, right: Expr) -> isl.Set:
    """Those of ``points`` at which two integers are equal. `NotAffine`."""
    return points.intersect(function_of(left, points).eq_set(function_of(right, points)))


def substituted(points: isl.Set, values: Mapping[Expr, Expr], order: Sequence[str]) -> isl.Set:
    """``points`` over the variables ``order``, in terms of which ``values`` gives those that go."""
    points = arranged(points, tuple(dict.fromkeys((*dimension_names(points), *order))))
    for variable, value in values.items():
        points = equated(points, variable, value)
    return arranged(points, tuple(order))


def holds(condition: Expr, points: isl.Set) -> bool:
    """Whether a condition holds at all of ``points``, as far as isl can say."""
    try:
        return bool(points.is_subset(condition_set(condition, points)))
    except NotAffine:
        return False


def _condition(expr: Expr, space: isl.LocalSpace) -> isl.Set:
    match expr:
        case Constant(value=value):
            every = isl.Set.universe(space.get_space())
            return every if value else every.complement()
        case Apply(primitive=primitive, arguments=arguments) if PRIMITIVES[primitive].kind == "compare":
            if any(argument.dtype.startswith(("float", "bool")) for argument in arguments):
                raise NotAffine(expr)
            left, right = (_function(argument, space) for argument in arguments)
            holding: isl.Set = getattr(left, f"{primitive}_set")(right)
            return holding
        case Apply(primitive="and_", arguments=(left, right)):
            return _condition(left, space).intersect(_condition(right, space))
        case Apply(primitive="or_", arguments=(left, right)):
            return _condition(left, space).union(_condition(right, space))
        case Apply(primitive="not_", arguments=(operand,)):
            return _condition(operand, space).complement()
        case _:
            raise NotAffine(expr)


def expression_of(function: isl.PwAff, context: isl.Set | None = None) -> Expr:
    """The expression that computes a quasi-affine ``function`` of named dimensions and parameters.

    Pieces become ``min``, ``max`` or ``where``; ``context``, a set of parameters, may drop pieces. Outside the
    function's own domain the value is arbitrary.
    """
    domain = function.domain()
    if context is not None:
        function = function.gist_params(context)
    names = dimension_names(domain)
    # isl's printer of expressions works on parameters only, so the dimensions become parameters first.
    function = function.coalesce()
    count = function.dim(isl.dim_type.in_)
    if count:
        params = function.dim(isl.dim_type.param)
        function = function.move_dims(isl.dim_type.param, params, isl.dim_type.in_, 0, count)
        for k, name in enumerate(names):
            function = function.set_dim_id(isl.dim_type.param, params + k, isl.Id(name))
    if not function.get_space().is_params():
        function = function.project_domain_on_params()
    build = isl.AstBuild.from_context(isl.Set.universe(function.get_domain_space()).params())
    return expression_of_ast(build.expr_from_pw_aff(function), frozenset(names))


def expression_of_condition(points: isl.Set) -> Expr:
    """The bool expression that holds exactly at ``points``, in terms of its dimensions and parameters."""
    names = dimension_names(points)
    count = points.dim(isl.dim_type.set)
    if count:
        params = points.dim(isl.dim_type.param)
        points = points.move_dims(isl.dim_type.param, params, isl.dim_type.set, 0, count)
        for k, name in enumerate(names):
            points = points.set_dim_id(isl.dim_type.param, params + k, isl.Id(name))
    points = points.params()
    build = isl.AstBuild.from_context(isl.Set.universe(points.get_space()))
    return _as_condition(expression_of_ast(build.expr_from_set(points), frozenset(names)))


# By isl's names of its operations; the others have the names of primitives.
_AST_BINARY = {
    **dict.fromkeys(("div", "fdiv_q", "pdiv_q"), "floor_div"),
    **dict.fromkeys(("pdiv_r", "zdiv_r"), "mod"),
    "and_then": "and_",
    "or_else": "or_",
}


def sizes_condition(sizes: isl.Set, context: isl.Set) -> Expr | None:
    """What tells ``sizes`` from the others of ``context``; None where none is left, or isl cannot say it."""
    if sizes.is_empty():
        return None
    try:
        condition = expression_of_condition(sizes.coalesce().gist(context))
    except NotAffine:
        return None
    return None if isinstance(condition, Constant) else condition


def expression_of_ast(node: isl.AstExpr, variables: frozenset[str]) -> Expr:
    """The expression that isl's tree ``node`` writes; its identifiers are ``variables`` or else sizes."""
    kind = isl.ast_expr_type(node.get_type()).name
    if kind == "int":
        return integer(node.get_val().to_python())
    if kind == "id":
        name = node.get_id().get_name()
        return index(name) if name in variables else size(name)
    operation = isl.ast_expr_op_type(node.get_op_type()).name
    operands = [expression_of_ast(node.get_op_arg(k), variables) for k in range(node.get_op_n_arg())]
    if operation == "minus":
        return apply("neg", operands[0])
    if operation in ("cond", "select"):
        return apply("where", _as_condition(operands[0]), *operands[1:])
    primitive = _AST_BINARY.get(operation, operation)
    if primitive in ("and_", "or_"):
        operands = [_as_condition(operand) for operand in operands]
    return reduce(lambda left, right: apply(primitive, left, right), operands)


def _as_condition(expr: Expr) -> Expr:
    # isl writes truth values as the integers 0 and 1.
    if expr.dtype == "bool":
        return expr
    return truth(bool(expr.value)) if isinstance(expr, Constant) else apply("ne", expr, integer(0))
