"""Where local definitions are computed: once per point, and not where no one asks for them.

``O[i] = z + z * w[i]`` with ``z = exp(x[i])`` becomes ``let z = exp(x[i]) in z + z * w[i]``. One that is used once
stands where it is used. Otherwise the `Let` stands around the smallest part that holds all uses; uses in different
branches of a ``where`` get one each, so that a branch that is not taken mentions nothing.

Brackets at the top of a sum become filters: ``O[i] += I[k] * (k <= i)`` adds only where the bracket holds. A product
with a false bracket is 0, and adding 0 changes nothing; so for ``+=``, ``-=`` and ``sum``, and for these only, the
bracket may decide which points are visited at all, and affine ones become loop bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tcdsl.frontend.points.definitions import GENERATED, definition_name, is_affine_test, is_definition, serial
from tcdsl.frontend.symbols.values import Value, applied
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.dtypes import is_boolean
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
    children,
    height,
    rebuild,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import LAZY

__all__ = ["conjuncts", "named_lets", "share", "text_of", "without_brackets"]

# So deeply expressions are nested; what would be deeper gets a `Let` around the whole.
_DEEPEST = 150


def share(expr: Expr, definition: Callable[[str], Value | None], known: Sequence[Expr] = ()) -> Expr:
    """``expr`` with the local definitions that it mentions (`Local`s with generated names) computed in it.

    ``definition(name)`` gives their values, which may mention earlier ones. ``known`` are conditions that hold where
    ``expr`` is evaluated: brackets among them need not be tested again.
    """
    if not any(map(is_definition, _level(expr))):
        return expr
    placement = _Placement(expr, definition, known)
    while placement.uses:
        # The latest first: a definition mentions earlier ones only.
        placement.place(max(placement.uses, key=serial))
    return placement.built()


class _Placement:
    """An expression under construction, as a list of positions, each after the one around it.

    What stands at a position is an expression whose parts have positions of their own, a use of a definition that is
    not placed yet, or a use whose definition stands there. ``uses`` has the positions of each definition to be placed.
    """

    def __init__(self, expr: Expr, definition: Callable[[str], Value | None], known: Sequence[Expr]) -> None:
        self.uses: dict[str, list[int]] = {}
        self._definition = definition
        self._known = known
        self._exprs: list[Expr] = []
        self._around: list[int] = []
        self._depths: list[int] = []
        self._parts: list[list[int]] = []
        #: Positions at which definitions stand instead of their only use.
        self._inlined: dict[int, int] = {}
        #: The `Let`s around positions, outermost first: names, and the positions of their values.
        self._lets: dict[int, list[tuple[str, int]]] = {}
        self._add(expr, -1)

    def _add(self, expr: Expr, around: int) -> int:
        # Numbers the positions of `expr` within the position `around`.
        first = len(self._exprs)
        stack = [(expr, around)]
        while stack:
            node, outer = stack.pop()
            here = len(self._exprs)
            self._exprs.append(node)
            self._around.append(outer)
            self._depths.append(0 if outer < 0 else self._depths[outer] + 1)
            self._parts.append([])
            if here > first:
                self._parts[outer].append(here)
            if isinstance(node, Local) and is_definition(node):
                self.uses.setdefault(definition_name(node), []).append(here)
            stack.extend((part, here) for part in reversed(_parts(node)))
        return first

    def place(self, name: str) -> None:
        """Decide where the definition ``name`` is computed, after all that mention it."""
        value = self._definition(name)
        assert value is not None
        self._place(name, value, self.uses.pop(name))

    def _place(self, name: str, value: Value, uses: list[int]) -> None:
        deep = max(self._depths[use] for use in uses) + height(value.expr, _DEEPEST + 1, _parts) > _DEEPEST
        if (len(uses) == 1 and not deep) or _is_cheap(value.expr):
            for use in uses:
                self._inlined[use] = self._add(self._chosen(value, [use], use), use)
            return
        # A `Let` is lazy: around everything it computes no more, and what it holds starts at no depth.
        home = 0 if deep else reduce(self._common, uses)
        arrivals = [self._below(use, home) for use in uses]
        expr = self._exprs[home]
        lazy = isinstance(expr, Apply) and expr.primitive in LAZY and not deep
        if lazy and not any(map(is_definition, _level(value.expr))):
            parts = self._parts[home]
            if set(arrivals) <= set(parts[1:]):
                for part in parts[1:]:
                    inside = [use for use, arrival in zip(uses, arrivals, strict=True) if arrival == part]
                    if inside:
                        self._place(name, value, inside)
                return
        position = self._add(self._chosen(value, uses, home), home)
        lets = self._lets.setdefault(home, [])
        # Outside of the definitions around the same part that mention it.
        outside = next((k for k, (_, inner) in enumerate(lets) if inner in arrivals), len(lets))
        lets.insert(outside, (name, position))

    def _common(self, left: int, right: int) -> int:
        # The smallest position that holds both.
        while left != right:
            if self._depths[left] >= self._depths[right]:
                left = self._around[left]
            else:
                right = self._around[right]
        return left

    def _below(self, position: int, home: int) -> int:
        # The part of `home` that holds `position`.
        while self._around[position] != home and position != home:
            position = self._around[position]
        return position

    def _chosen(self, value: Value, uses: Sequence[int], position: int) -> Expr:
        # A factor behind its own brackets, as in `z * w[k]` with `z = x[k] * (k <= i)`, need not test them again.
        if value.product is None or not all(map(self._is_factor, uses)):
            return value.expr
        missing = {part for bracket in value.product.brackets for part in self._texts(bracket)}
        missing.difference_update(text_of(condition, self._definition) for condition in self._known)
        while missing and self._around[position] >= 0:
            position, inner = self._around[position], position
            expr = self._exprs[position]
            if isinstance(expr, Apply) and expr.primitive == "where" and self._parts[position][1] == inner:
                missing.difference_update(self._texts(expr.arguments[0]))
        return value.expr if missing else value.product.rest.expr

    def _texts(self, condition: Expr) -> list[Expr]:
        return [text_of(part, self._definition) for part in conjuncts(condition, self._definition)]

    def _is_factor(self, use: int) -> bool:
        local = self._exprs[use]
        return isinstance(local, Local) and definition_name(local) != local.name

    def built(self) -> Expr:
        """The expression with all definitions in their places."""
        made: list[Expr] = list(self._exprs)
        for position in reversed(range(len(made))):
            expr = self._exprs[position]
            if position in self._inlined:
                expr = made[self._inlined[position]]
            elif parts := self._parts[position]:
                arguments = tuple(made[part] for part in parts)
                if isinstance(expr, Apply) and not self._inlined.keys().isdisjoint(parts):
                    expr = applied(expr.primitive, arguments, expr.span)
                else:
                    expr = rebuild(expr, arguments)
            elif isinstance(expr, Local) and is_definition(expr):
                expr = replace(expr, name=definition_name(expr))
            for name, value in reversed(self._lets.get(position, ())):
                expr = Let(name, made[value], expr, expr.span)
            made[position] = expr
        return made[0]


def _parts(expr: Expr) -> tuple[Expr, ...]:
    # Each reduction computes its own definitions.
    return () if isinstance(expr, Reduction) else children(expr)


def _level(expr: Expr) -> Iterator[Expr]:
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(_parts(node))


def _is_cheap(value: Expr) -> bool:
    # Reading a cell again costs nothing: the compiler sees that it is the same one.
    if isinstance(value, Read):
        return all(isinstance(index, Constant | IndexValue | SizeValue) for index in value.indices)
    return isinstance(value, Constant | IndexValue | SizeValue | Local)


def named_lets(expressions: Sequence[Expr], taken: FreshNames) -> tuple[Expr, ...]:
    """``expressions`` with readable names for their `Let`s, all different; reductions that were equal stay equal."""
    known: dict[Reduction, Reduction] = {}
    return tuple(_named(expr, {}, taken, known) for expr in expressions)


def _named(expr: Expr, names: Mapping[str, str], taken: FreshNames, known: dict[Reduction, Reduction]) -> Expr:
    match expr:
        case Local(name=name):
            return Local(names[name], expr.dtype, expr.span) if name in names else expr
        case Let(name=name, value=value, body=body):
            bound = _named(value, names, taken, known)
            new = taken.fresh(name.split(GENERATED)[0])
            return Let(new, bound, _named(body, {**names, name: new}, taken, known), expr.span)
        case Reduction():
            # No reduction mentions a Let around it: each level computes its own.
            if expr not in known:
                known[expr] = expr.with_parts(tuple(_named(part, {}, taken, known) for part in children(expr)))
            return known[expr]
        case _:
            parts = children(expr)
            return rebuild(expr, tuple(_named(part, names, taken, known) for part in parts)) if parts else expr


def without_brackets(value: Expr, definition: Callable[[str], Value | None]) -> tuple[tuple[Expr, ...], Expr]:
    """The brackets of a term of a sum, each once, and the rest: ``where(k <= i, I[k], 0)`` gives ``((k <= i,), I[k])``.

    ``definition(name)`` is the local definition of that name, if it is one: what they are is what the term is.
    """
    found, rest = _separated(value, definition)
    once: dict[Expr, Expr] = {}
    for bracket in found:
        once.setdefault(text_of(bracket, definition), bracket)
    return tuple(once.values()), rest


def text_of(condition: Expr, definition: Callable[[str], Value | None]) -> Expr:
    """What a condition is that may be a local definition: equal ones are the same condition."""
    local = definition(condition.name) if isinstance(condition, Local) else None
    return condition if local is None else local.expr


def _separated(value: Expr, definition: Callable[[str], Value | None]) -> tuple[tuple[Expr, ...], Expr]:
    match value:
        case Apply(primitive="where", arguments=(condition, taken, Constant(value=0))):
            inner, rest = _separated(taken, definition)
            return (*conjuncts(condition, definition), *inner), rest
        case Local(name=name) if (local := definition(name)) is not None:
            inner, rest = _separated(local.expr, definition)
            return (inner, rest) if inner else ((), value)
        case Apply(primitive="neg", arguments=(operand,)):
            inner, rest = _separated(operand, definition)
            return inner, apply("neg", rest, span=value.span) if inner else value
        case Cast(operand=operand, dtype=dtype) if is_boolean(operand.dtype):
            return _counted(value, operand, dtype, definition)
        case Cast(operand=operand, dtype=dtype):
            inner, rest = _separated(operand, definition)
            return inner, cast(rest, dtype, value.span) if inner else value
        case _:
            return (), value


def _counted(
    value: Expr, condition: Expr, dtype: str, definition: Callable[[str], Value | None]
) -> tuple[tuple[Expr, ...], Expr]:
    # A count: conjuncts without reads bound the loops, the others are what is added.
    parts = conjuncts(condition, definition)
    bounds = tuple(part for part in parts if is_affine_test(part))
    if not bounds:
        return (), value
    tests = [part for part in parts if part not in bounds]
    if not tests:
        return bounds, constant(1, dtype, value.span)
    rest = tests[0]
    for test in tests[1:]:
        rest = apply("and_", rest, test, span=value.span)
    return bounds, cast(rest, dtype, value.span)


def conjuncts(condition: Expr, definition: Callable[[str], Value | None]) -> tuple[Expr, ...]:
    """The conditions that ``condition`` joins by ``and``, those that local definitions join included."""
    match condition:
        case Apply(primitive="and_", arguments=(left, right)):
            return (*conjuncts(left, definition), *conjuncts(right, definition))
        case Local(name=name) if (local := definition(name)) is not None:
            parts = conjuncts(local.expr, definition)
            return parts if len(parts) > 1 else (condition,)
        case _:
            return (condition,)
