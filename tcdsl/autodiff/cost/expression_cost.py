"""The operations of one expression, counted over a set of points.

What is not evaluated is not counted: branches that a condition does not take, what stands behind a false bracket,
local definitions that no point needs. An addition one side of which is *zero by predicate* is free, because no such
addition needs to be executed: a bracket ``where(p, e, 0)`` is zero by predicate where p is false, ``get(x[i - 1], 0)``
where it is out of range, and so are products and sums of such values. A literal zero outside of a bracket is a number
like any other.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from tcdsl.autodiff.cost.operations import operations_of
from tcdsl.autodiff.cost.point_sets import PointSet
from tcdsl.ir.build import apply, range_tests, truth
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Let, Local, Read, children
from tcdsl.ir.interpreter.point_values import LocalDefinition, LocalDefinitions
from tcdsl.ir.primitives import LAZY
from tcdsl.ir.program import Tensor

__all__ = ["ExpressionCounter"]

_Points = TypeVar("_Points", bound=PointSet)


class ExpressionCounter(Generic[_Points]):
    """``ExpressionCounter(declarations).add(expr, points)`` counts what evaluating ``expr`` takes into ``operations``.

    `NotAffine` where the points cannot tell what is evaluated.
    """

    def __init__(self, declarations: dict[str, Tensor]) -> None:
        self.operations: Counter[str] = Counter()
        self._declarations = declarations
        self._facts: dict[int, tuple[bool, bool, bool]] = {}
        self._uses: dict[int, _Points] = {}
        self._counting = True

    def add(self, expr: Expr, points: _Points, zeros: bool = False) -> _Points | None:
        """Count evaluating ``expr``; if ``zeros`` is asked for, where it is zero by predicate, ``None`` for nowhere."""
        return self._visited(expr, points, {}, zeros)

    # -- what a subexpression can contribute -------------------------------------------------------------------------

    def _fact(self, expr: Expr) -> tuple[bool, bool, bool]:
        """Whether evaluating costs something, whether the value may be zero by predicate, whether points differ."""
        found = self._facts.get(id(expr))
        if found is not None:
            return found
        # Innermost first, without recursion: sums of hundreds of terms are deep trees.
        pending = [expr]
        while pending:
            node = pending[-1]
            missing = [part for part in children(node) if id(part) not in self._facts]
            if missing:
                pending.extend(missing)
            else:
                self._facts[id(node)] = self._judged(node)
                pending.pop()
        return self._facts[id(expr)]

    def _judged(self, expr: Expr) -> tuple[bool, bool, bool]:
        parts = [self._facts[id(part)] for part in children(expr)]
        differs = isinstance(expr, Read | IndexValue | Local) or any(part[2] for part in parts)
        costs = any(part[0] for part in parts)
        match expr:
            case Local():
                # What it stands for is counted where it is used.
                return True, True, True
            case Let():
                return parts[0][0] or parts[1][0], parts[1][1], differs
            case Read(fill=fill):
                return costs, fill is not None and (_is_zero(fill) or parts[-1][1]), differs
            case Cast():
                return costs, parts[0][1], differs
            case Apply(primitive="where", arguments=(_, chosen, other)):
                vanishes = _is_zero(chosen) or _is_zero(other) or parts[1][1] or parts[2][1]
                return costs, vanishes, differs
            case Apply(primitive=primitive):
                costs = differs and (costs or bool(operations_of(expr)))
                vanishing = [part[1] for part in parts]
                return costs, _combines_zeros(primitive, vanishing), differs
            case _:
                return False, False, differs

    # -- the walk ----------------------------------------------------------------------------------------------------

    def _visited(self, expr: Expr, points: _Points, local: LocalDefinitions, zeros: bool) -> _Points | None:
        costs, vanishes, _ = self._fact(expr)
        zeros = zeros and vanishes
        if not zeros and not (costs and self._counting):
            return None
        match expr:
            case Local(name=name):
                return self._local(local[name], points, zeros)
            case Let(name=name, value=value, body=body):
                definition = LocalDefinition(value, local)
                found = self._visited(body, points, {**local, name: definition}, zeros)
                used = self._uses.pop(id(definition), None)
                if used is not None:
                    self._visited(value, used, local, zeros=False)
                return found
            case Cast(operand=operand):
                return self._visited(operand, points, local, zeros)
            case Read():
                return self._read(expr, points, local, zeros)
            case Apply():
                return self._applied(expr, points, local, zeros)
            case _:
                return None

    def _local(self, definition: LocalDefinition, points: _Points, zeros: bool) -> _Points | None:
        if self._counting:
            used = self._uses.get(id(definition))
            self._uses[id(definition)] = points if used is None else used.union(points)
        if not zeros or not self._fact(definition.value)[1]:
            return None
        return self._zeros_of(definition.value, points, definition.around)

    def _zeros_of(self, expr: Expr, points: _Points, local: LocalDefinitions) -> _Points | None:
        counting, self._counting = self._counting, False
        found = self._visited(expr, points, local, zeros=True)
        self._counting = counting
        return found

    def _read(self, expr: Read, points: _Points, local: LocalDefinitions, zeros: bool) -> _Points | None:
        for index in expr.indices:
            self._visited(index, points, local, zeros=False)
        if expr.fill is None:
            return None
        within: Expr = truth(True)
        shape = self._declarations[expr.tensor].shape
        for index, boundary, extent in zip(expr.indices, expr.boundaries, shape, strict=True):
            if boundary is Boundary.FILL:
                for test in range_tests(index, extent):
                    within = apply("and_", within, test)
        outside = points.minus(points.where(within, local))
        found = self._visited(expr.fill, outside, local, zeros)
        return outside if _is_zero(expr.fill) else found

    def _applied(self, expr: Apply, points: _Points, local: LocalDefinitions, zeros: bool) -> _Points | None:
        match expr.primitive, expr.arguments:
            case "where", (condition, chosen, other):
                return self._chosen(condition, chosen, other, points, local, zeros)
            case ((("and_" | "or_") as primitive), (first, second)):
                self._visited(first, points, local, zeros=False)
                if self._fact(second)[0]:
                    true = points.where(first, local)
                    self._visited(second, true if primitive == "and_" else points.minus(true), local, zeros=False)
                return None
        # Along the first arguments in a loop, as above.
        spine = [expr]
        wanted = [_wants_zeros(expr.primitive, zeros)]
        while isinstance(inner := spine[-1].arguments[0], Apply) and inner.primitive not in LAZY:
            spine.append(inner)
            wanted.append(_wants_zeros(inner.primitive, wanted[-1]))
        found = self._visited(spine[-1].arguments[0], points, local, wanted[-1])
        for node, wants in zip(reversed(spine), reversed(wanted), strict=True):
            rest = [self._visited(part, points, local, wants) for part in node.arguments[1:]]
            found = self._combined(node, [found, *rest], points)
        return found

    def _chosen(
        self, condition: Expr, chosen: Expr, other: Expr, points: _Points, local: LocalDefinitions, zeros: bool
    ) -> _Points | None:
        self._visited(condition, points, local, zeros=False)
        branches = (self._fact(chosen), self._fact(other))
        if not zeros and not any(branch[0] for branch in branches):
            return None
        true = points.where(condition, local)
        false = points.minus(true)
        found = [self._visited(branch, side, local, zeros) for branch, side in ((chosen, true), (other, false))]
        if _is_zero(chosen):
            found[0] = true
        if _is_zero(other):
            found[1] = false
        return _united(found)

    def _combined(self, expr: Apply, zero: list[_Points | None], points: _Points) -> _Points | None:
        """Count one primitive whose arguments have been visited; where the result is zero by predicate."""
        operations = operations_of(expr) if self._counting and self._fact(expr)[2] else ()
        if expr.primitive == "fma":
            product, summand = _united(zero[:2]), zero[2]
            if operations:
                self.operations["mul"] += points.count
            return self._sum(operations[1:], product, summand, points)
        if expr.primitive in ("add", "sub"):
            return self._sum(operations, zero[0], zero[1], points)
        for operation in operations:
            self.operations[operation] += points.count
        if expr.primitive == "mul":
            return _united(zero)
        return zero[0] if expr.primitive in ("neg", "div", "id") else None

    def _sum(
        self, operations: tuple[str, ...], left: _Points | None, right: _Points | None, points: _Points
    ) -> _Points | None:
        either = _united([left, right])
        if operations:
            self.operations["add"] += points.count if either is None else points.minus(either).count
        if left is None or right is None:
            return None
        return left.minus(left.minus(right))


def _united(parts: list[_Points | None]) -> _Points | None:
    found: _Points | None = None
    for part in parts:
        if part is not None:
            found = part if found is None else found.union(part)
    return found


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.value == 0


def _wants_zeros(primitive: str, zeros: bool) -> bool:
    # Sums are free where a summand is zero by predicate; these others hand their arguments' zeros on.
    return primitive in ("add", "sub", "fma") or (zeros and primitive in ("mul", "neg", "div", "id"))


def _combines_zeros(primitive: str, vanishing: list[bool]) -> bool:
    match primitive:
        case "add" | "sub":
            return all(vanishing)
        case "mul":
            return any(vanishing)
        case "fma":
            return any(vanishing[:2]) and vanishing[2]
        case "neg" | "div" | "id":
            return vanishing[0]
    return False
