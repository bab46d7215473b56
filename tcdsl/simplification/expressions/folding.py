"""Simplification of one scalar step: constant folding and the identities that derivatives leave behind.

Every identity keeps NaN and inf: ``0 * x`` stays, because ``x`` may be NaN; a term that a derivative rule says is
zero is not built in the first place. So do the signs of zeros: ``x + 0.0`` stays, because it makes 0.0 of -0.0, and
``x - 0.0`` and ``x + -0.0`` become ``x``. Rounding never changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tcdsl.ir.build import apply, cast, constant, truth
from tcdsl.ir.constant_folding import evaluated
from tcdsl.ir.dtypes import INTEGER, is_boolean, is_floating
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, is_affine_index

__all__ = ["fold", "negated"]

_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def fold(step: Expr, definition: Callable[[Expr], Expr] = lambda leaf: leaf) -> Expr:
    """``fold(Apply("mul", (x, Constant(1.0))))`` is ``x``; a step that nothing applies to is returned as it is.

    ``definition`` gives what stands behind an argument that is a name. The result may hold further steps to fold.
    """
    match step:
        case Cast(operand=operand, dtype=dtype):
            return _cast(operand, dtype, step, definition)
        case Apply():
            return _applied(step, definition)
        case _:
            return step


def negated(condition: Expr, definition: Callable[[Expr], Expr] = lambda leaf: leaf) -> Expr:
    """The opposite of a condition; comparisons of floats keep a ``not_``, because NaN compares false both ways."""
    step = definition(condition)
    if isinstance(step, Apply):
        if step.primitive == "not_":
            return step.arguments[0]
        if step.primitive in _OPPOSITE and not is_floating(step.arguments[0].dtype):
            return apply(_OPPOSITE[step.primitive], *step.arguments)
    return apply("not_", condition)


def _cast(operand: Expr, dtype: str, step: Expr, definition: Callable[[Expr], Expr]) -> Expr:
    inner = definition(operand)
    if INTEGER in (operand.dtype, dtype) or (isinstance(inner, Cast) and inner.operand.dtype == INTEGER):
        return cast(operand, dtype, step.span)
    if isinstance(operand, Constant):
        return cast(operand, dtype)
    if isinstance(inner, Cast) and inner.operand.dtype == dtype and np.can_cast(dtype, inner.dtype, casting="safe"):
        return inner.operand
    return step if operand.dtype != dtype else operand


def _applied(step: Apply, definition: Callable[[Expr], Expr]) -> Expr:
    arguments = step.arguments
    folded = evaluated(step)
    if folded is not None:
        return folded
    plain = apply(step.primitive, *arguments, span=step.span)
    if plain != step:
        return plain
    rule = _RULES.get(step.primitive)
    changed = None if rule is None else rule(arguments, definition)
    return step if changed is None else changed


def _number(expr: Expr, value: float) -> bool:
    return isinstance(expr, Constant) and not is_boolean(expr.dtype) and expr.value == value


def _zero(expr: Expr) -> bool:
    return _number(expr, 0)


def _adds_nothing(expr: Expr) -> bool:
    # -0.0, or the 0 of integers.
    return isinstance(expr, Constant) and _zero(expr) and (not is_floating(expr.dtype) or _is_negative(expr.value))


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _under(expr: Expr, primitive: str, definition: Callable[[Expr], Expr]) -> Expr | None:
    # The argument of a unary primitive behind a name.
    step = definition(expr)
    return step.arguments[0] if isinstance(step, Apply) and step.primitive == primitive else None


_Arguments = tuple[Expr, ...]
_Lookup = Callable[[Expr], Expr]


def _add(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    left, right = arguments
    if _adds_nothing(left):
        return right
    if _adds_nothing(right):
        return left
    if left == right and is_floating(left.dtype):
        return apply("mul", constant(2, left.dtype), left)
    for one, other in (arguments, arguments[::-1]):
        opposite = _under(other, "neg", definition)
        if opposite is not None:
            return apply("sub", one, opposite)
    return None


def _sub(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    left, right = arguments
    if is_floating(left.dtype) and _adds_nothing(left):
        return apply("neg", right)
    opposite = _under(right, "neg", definition)
    return None if opposite is None else apply("add", left, opposite)


def _mul(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    left, right = arguments
    if isinstance(right, Constant) and not isinstance(left, Constant):
        return apply("mul", right, left)
    if is_floating(left.dtype):
        bracket = _bracketed_product(left, right, definition)
        if bracket is not None:
            return bracket
        if _number(left, -1):
            return apply("neg", right)
        scaled = _scale_first(left, right, definition)
        if scaled is not None:
            return scaled
        for k, argument in enumerate(arguments):
            opposite = _under(argument, "neg", definition)
            if opposite is not None:
                return apply("neg", apply("mul", *(opposite if n == k else a for n, a in enumerate(arguments))))
    return None


# How many factors of a product are searched for its constant.
_MOST_FACTORS = 8


def _scale(expr: Expr, definition: _Lookup) -> float:
    """The constant factor of a product, if it comes first: 2 in ``2 * a * b``, else 1."""
    for _ in range(_MOST_FACTORS):
        step = definition(expr)
        if isinstance(step, Constant):
            return float(step.value)
        if not (isinstance(step, Apply) and step.primitive == "mul"):
            break
        expr = step.arguments[0]
    return 1.0


def _scaled(expr: Expr, scale: float, definition: _Lookup) -> Expr:
    """A product with another constant factor."""
    step = definition(expr)
    if isinstance(step, Apply) and step.primitive == "mul" and _scale(expr, definition) != 1:
        first, second = step.arguments
        if isinstance(first, Constant):
            return apply("mul", constant(scale, first.dtype), second)
        return apply("mul", _scaled(first, scale, definition), second)
    return apply("mul", constant(scale, expr.dtype), expr)


def _scale_first(left: Expr, right: Expr, definition: _Lookup) -> Expr | None:
    # One constant per product, and that first: exact, if all but one are powers of two.
    behind = _scale(right, definition)
    if behind == 1 or isinstance(right, Constant):
        return None
    before = _scale(left, definition)
    if before == 1:
        return apply("mul", right, left)
    total = before * behind
    if not (math.isfinite(total) and total and (_power_of_two(before) or _power_of_two(behind))):
        return None
    rest = _scaled(right, 1, definition)
    return (
        apply("mul", constant(total, left.dtype), rest)
        if isinstance(left, Constant)
        else apply("mul", _scaled(left, total, definition), rest)
    )


def _bracketed_product(left: Expr, right: Expr, definition: Callable[[Expr], Expr]) -> Expr | None:
    # [c] a * [c] b is [c] a * b, and a finite number times [c] b is [c] number * b: exact, since 0 * 0 is 0.
    other = _bracket(right, definition)
    if other is None:
        return None
    condition, factor, zero = other
    if isinstance(left, Constant):
        if not math.isfinite(left.value):
            return None
        return apply("where", condition, apply("mul", left, factor), _folded_product(left, zero))
    own = _bracket(left, definition)
    if own is None or own[0] != condition:
        return None
    return apply("where", condition, apply("mul", own[1], factor), _folded_product(own[2], zero))


def _folded_product(left: Expr, right: Expr) -> Expr:
    product = Apply("mul", (left, right), left.dtype)
    return evaluated(product) or product


def _bracket(expr: Expr, definition: Callable[[Expr], Expr]) -> tuple[Expr, Expr, Expr] | None:
    step = definition(expr)
    if isinstance(step, Apply) and step.primitive == "where" and _zero(step.arguments[2]):
        return step.arguments[0], step.arguments[1], step.arguments[2]
    return None


def _neg(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    opposite = _under(arguments[0], "neg", definition)
    if opposite is not None:
        return opposite
    bracket = _bracket(arguments[0], definition)
    if bracket is None:
        return None
    zero = Apply("neg", bracket[2:], bracket[2].dtype)
    return apply("where", bracket[0], apply("neg", bracket[1]), evaluated(zero) or zero)


def _power_of_two(value: float) -> bool:
    return math.isfinite(value) and value != 0 and math.frexp(abs(value))[0] == 0.5


def _div(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    left, right = arguments
    if isinstance(right, Constant) and _power_of_two(right.value) and math.isfinite(1 / right.value):
        return apply("mul", constant(1 / right.value, right.dtype), left)
    if is_floating(left.dtype) and (cancelled := _cancelled(left, right, definition)) is not None:
        return cancelled
    opposite = _under(left, "neg", definition)
    return None if opposite is None else apply("neg", apply("div", opposite, right))


def _cancelled(left: Expr, right: Expr, definition: _Lookup) -> Expr | None:
    # 2 a / (2 b) is a / b: powers of two divide exactly.
    above, below = _scale(left, definition), _scale(right, definition)
    if above == 1 or below == 1 or not (_power_of_two(above) and _power_of_two(below)):
        return None
    ratio = above / below
    if not _power_of_two(ratio) or isinstance(left, Constant) or isinstance(right, Constant):
        return None
    # The sign goes with what is divided: 2 a / (-2 b) is -a / b.
    above, below = math.copysign(max(abs(ratio), 1.0), ratio), max(1 / abs(ratio), 1.0)
    return apply("div", _scaled(left, above, definition), _scaled(right, below, definition))


def _pow(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    base, exponent = arguments
    if _number(exponent, 1):
        return base
    return constant(1, base.dtype) if _number(exponent, 0) else None


def _not(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    opposite = negated(arguments[0], definition)
    return None if opposite == Apply("not_", arguments, "bool") else opposite


def _compare(primitive: str) -> Callable[[_Arguments, _Lookup], Expr | None]:
    reflexive = primitive in ("le", "ge", "eq")

    def rule(arguments: _Arguments, definition: _Lookup) -> Expr | None:
        if arguments[0] == arguments[1] and not is_floating(arguments[0].dtype):
            return truth(reflexive)
        return None

    return rule


def _where(arguments: _Arguments, definition: _Lookup) -> Expr | None:
    condition, chosen, other = arguments
    opposite = _under(condition, "not_", definition)
    if opposite is not None:
        return apply("where", opposite, other, chosen)
    step = definition(chosen)
    if isinstance(step, Apply) and step.primitive == "where" and step.arguments[0] == condition:
        return apply("where", condition, step.arguments[1], other)
    step = definition(other)
    if isinstance(step, Apply) and step.primitive == "where" and step.arguments[0] == condition:
        return apply("where", condition, chosen, step.arguments[2])
    return None


def _logical(neutral: bool) -> Callable[[_Arguments, _Lookup], Expr | None]:
    def rule(arguments: _Arguments, definition: _Lookup) -> Expr | None:
        left, right = arguments
        if left == right:
            return left
        # The right side may only go unevaluated where it cannot fail: an index condition, not a read.
        if right == truth(not neutral) and is_affine_index(left):
            return right
        return None

    return rule


_RULES: dict[str, Callable[[_Arguments, _Lookup], Expr | None]] = {
    "id": lambda arguments, definition: arguments[0],
    "fst": lambda arguments, definition: arguments[0],
    "snd": lambda arguments, definition: arguments[1],
    "neg": _neg,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "fma": lambda arguments, definition: apply("mul", *arguments[:2]) if _adds_nothing(arguments[2]) else None,
    "not_": _not,
    "where": _where,
    "and_": _logical(True),
    "or_": _logical(False),
    **{name: _compare(name) for name in _OPPOSITE},
}
