"""The cells that a statement of a formula reads and writes: their positions, the guards, and whether they are in range.

Remaps are boundaries of the read where they are those that the program has; indices that are data are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS, ExpressionEvaluator
from tcdsl.frontend.skriptnd.text.syntax import Access, Expand, Whole
from tcdsl.frontend.skriptnd.values import GuardedIndex, Pack, ScalarValue, TensorValue, shown, type_of
from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.build import apply, cast, constant, in_range, index, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    ExplicitRange,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    size_names,
)
from tcdsl.polyhedra.linear import linear_form
from tcdsl.span import Span

__all__ = ["AccessedCells", "is_in_range", "least_and_largest"]


@dataclass(slots=True)
class AccessedCells:
    """What one statement reads: the conditions that guards of its accesses put on it."""

    arithmetic: Arithmetic
    #: The indices of the statement.
    ranges: Sequence[ExplicitRange] = ()
    conditions: list[Expr] = field(default_factory=list)
    #: Indices that have to be in range wherever the statement runs: the index, the tensor, its axis.
    plain: list[tuple[Expr, TensorValue, int, Span | None]] = field(default_factory=list)
    left_out: bool = False
    #: The tensors whose rows are the tensors of packs, by the name of the pack.
    wholes: Mapping[str, TensorValue] = field(default_factory=dict)

    def read(self, node: Access, evaluator: ExpressionEvaluator) -> Any:
        """The cell of a tensor, or those of all tensors of a pack; null where the tensor is."""
        found = evaluator.named(node.name, node.span)
        if found is None:
            return None
        item = None if node.item is None else evaluator.value(node.item)
        if node.item is not None and not isinstance(found, Pack):
            raise DtypeError.at(f"`{node.name}` is no pack of tensors", node.span)
        if node.item is not None and item is None:
            return None
        if node.item is not None and isinstance(item, ScalarValue) and node.name in self.wholes:
            row = replace(node, item=None, indices=(node.item, *node.indices))
            return self._cell(self.wholes[node.name], row, evaluator)
        if isinstance(found, Pack) and (item is None or isinstance(item, ScalarValue)):
            cells = Pack.of(self._cell(each, node, evaluator) for each in found)
            return cells if item is None else evaluator.chosen(cells, item, node.span)
        if item is not None:
            if type(item) is not int or not -len(found) <= item < len(found):
                raise ShapeError.at(f"the index {shown(item)} of a pack of {len(found)} tensors", node.span)
            found = found[item]
        return self._cell(found, node, evaluator)

    def _cell(self, tensor: Any, node: Access, evaluator: ExpressionEvaluator) -> Any:
        if not isinstance(tensor, TensorValue):
            raise DtypeError.at(f"`{node.name}` is no tensor", node.span, "write it without indices")
        indices = self.positions(tensor, node, evaluator)
        if indices is None:
            return None
        self.left_out = evaluator.may_be_left_out  # the indices may hold choices of their own
        whole = [axis for axis, each in enumerate(indices) if each is Whole]
        if any(isinstance(each, Pack) for each in indices):
            return evaluator.each(lambda *row: self._scalar(tensor, row[:-1], node.span), tuple(indices), node.span)
        if not whole:
            return self._scalar(tensor, indices, node.span)
        if len(whole) > 1:
            raise DslSyntaxError.at("`:` stands twice", node.span, "cells along one axis are a pack")
        axis = whole[0]
        length = tensor.shape[axis]
        if isinstance(length, ScalarValue) and length.bound is None:
            length = self.arithmetic.decisions.value(self.arithmetic.size(length))
        if type(length) is not int or length > MOST_ITEMS:
            raise ShapeError.at(f"`:` along axis {axis} of `{tensor.name}`, whose extent only a call knows", node.span)
        rows = [[*indices[:axis], k, *indices[axis + 1 :]] for k in range(length)]
        return Pack.of(self._scalar(tensor, row, node.span) for row in rows)

    def positions(self, tensor: TensorValue, node: Access, evaluator: ExpressionEvaluator) -> list[Any] | None:
        """The indices of an access, one per axis; None where one is null."""
        found: list[Any] = []
        for each in node.indices:
            if isinstance(each, Whole):
                found.append(Whole)
                continue
            # A pack that is not expanded is an index of several cells.
            items = evaluator.items((each,)) if isinstance(each, Expand) else (evaluator.value(each),)
            if items is None or None in items:
                return None
            found.extend(items)
        if len(found) != len(tensor.shape):
            fact = f"`{tensor.name}` has rank {len(tensor.shape)}, and is given {len(found)} indices"
            raise ShapeError.at(fact, node.span, f"its shape is {shown(tensor.shape)}")
        for each in found:
            if each is not Whole and each != Pack() and type_of(each) != "int":
                raise DtypeError.at(f"an index of type {type_of(each) or 'null'}", node.span, "convert it: `int(x)`")
        return found

    def _scalar(self, tensor: TensorValue, indices: Sequence[Any], span: Span | None) -> Any:
        if tensor.tensor is None and tensor.constant is not None and not indices:
            return tensor.constant
        pairs = [self._index(each, tensor, axis, span) for axis, each in enumerate(indices)]
        cells, boundaries = tuple(cell for cell, _ in pairs), tuple(boundary for _, boundary in pairs)
        name = tensor.name if tensor.tensor is None else tensor.tensor.name
        return ScalarValue(Read(name, cells, boundaries, self.arithmetic.dtype(tensor.type), span=span), tensor.type)

    def _index(self, given: Any, tensor: TensorValue, axis: int, span: Span | None) -> tuple[Expr, Boundary]:
        extent = self.arithmetic.size(tensor.shape[axis])
        if not isinstance(given, GuardedIndex):
            return self.required(given, tensor, axis, span)
        inner = given.index
        if given.below is None:
            cell, boundary = self._plain(inner, span)
            self.conditions.append(in_range(cell, extent))
            return cell, boundary
        remap = self._boundary(given, extent)
        if remap is not None:
            return self.arithmetic.index(inner, span), remap
        parts = (self.arithmetic.index(each, span) for each in (inner, given.below, given.above))
        cell, below, above, end = (cast(each, INTEGER) for each in (*parts, extent))

        def moved(cell: Expr) -> Expr:
            inside = apply("where", apply("ge", cell, end), above, cell)
            return apply("where", apply("lt", cell, constant(0, INTEGER)), below, inside)

        return shared(cell, moved), Boundary.CHECK

    def _boundary(self, given: GuardedIndex, extent: Expr) -> Boundary | None:
        # The boundary of the program that a remap is.
        parts = (given.index, given.below, given.above)
        if not all(type(each) is int or (isinstance(each, ScalarValue) and each.exact) for each in parts):
            return None
        inner, below, above = map(self.arithmetic.size, parts)
        if not is_affine_index(inner):
            return None
        one, low = integer(1), apply("neg", inner)
        end = apply("sub", extent, one)
        high = apply("sub", apply("add", end, end), inner)
        ends = {
            Boundary.CLAMP: (integer(0), end),
            Boundary.REFLECT: (low, high),
            Boundary.SYMMETRIC: (apply("sub", low, one), apply("add", high, one)),
        }
        found = (each for each, pair in ends.items() if _equal(below, pair[0]) and _equal(above, pair[1]))
        return next(found, None)

    def _plain(self, given: Any, span: Span | None) -> tuple[Expr, Boundary]:
        cell = self.arithmetic.index(given, span)
        return cell, Boundary.SKIP if is_affine_index(cell) and cell.dtype == "int64" else Boundary.CHECK

    def required(self, given: Any, tensor: TensorValue, axis: int, span: Span | None) -> tuple[Expr, Boundary]:
        """An index that has to be in range, and who checks it."""
        extent = tensor.shape[axis]
        if type(given) is int and type(extent) is int and not 0 <= given < extent:
            fact = f"the index {given} is out of range: axis {axis} of `{tensor.name}` has the extent {extent}"
            raise ShapeError.at(fact, span, "guard it: `|i|`")
        cell, boundary = self._plain(given, span)
        if boundary is Boundary.SKIP and not self.left_out:
            self.plain.append((cell, tensor, axis, span))
        return cell, boundary

    def target(self, tensor: TensorValue, indices: Sequence[Any], span: Span | None) -> tuple[Expr, ...]:
        """The indices of a target."""
        found = []
        for axis, each in enumerate(indices):
            if isinstance(each, GuardedIndex):
                if each.below is not None:
                    raise DslSyntaxError.at("an index of a target is remapped", span, "leave it out: `|i|`")
                cell = self.arithmetic.index(each.index, span)
                self.conditions.append(in_range(cell, self.arithmetic.size(tensor.shape[axis])))
            else:
                cell, _ = self.required(each, tensor, axis, span)
            found.append(cell)
        return tuple(found)


def _equal(left: Expr, right: Expr) -> bool:
    return linear_form(apply("sub", left, right)) == ({}, 0)


def least_and_largest(expr: Expr, ends: Mapping[str, Expr], arithmetic: Arithmetic) -> tuple[Any, Any] | None:
    """The ends of an index over a box, each variable of which takes its ends by itself; None where it is not affine."""

    def of(expr: Expr) -> tuple[Any, Any] | None:
        return least_and_largest(expr, ends, arithmetic)

    if not index_variables(expr) and not size_names(expr) & ends.keys():
        return arithmetic.exact(expr), arithmetic.exact(expr)
    match expr:
        case SizeValue(name=name) | IndexValue(name=name):  # the number of a round, or an index
            return 0, arithmetic.binary("-", arithmetic.exact(ends[name]), 1, None) if name in ends else None
        case Apply(primitive="neg", arguments=(operand,)):
            inner = of(operand)
            return inner and (arithmetic.unary("-", inner[1], None), arithmetic.unary("-", inner[0], None))
        case Apply(primitive="add" | "sub" as primitive, arguments=(left, right)):
            first, second = of(left), of(right)
            if first is None or second is None:
                return None
            operator, others = ("+", second) if primitive == "add" else ("-", second[::-1])
            low, high = (arithmetic.binary(operator, *pair, None) for pair in zip(first, others, strict=True))
            return low, high
        case Apply(primitive="mul", arguments=(left, right)) if not (index_variables(left) and index_variables(right)):
            other, size = (left, right) if index_variables(left) else (right, left)
            inner, factor = of(other), arithmetic.exact(size)
            pair = inner and tuple(arithmetic.binary("*", each, factor, None) for each in inner)
            # What the text does not say of the sign says the call.
            return pair if pair is None or arithmetic.binary(">=", factor, 0, None) else (pair[1], pair[0])
        case Apply(primitive="floor_div", arguments=(other, Constant(value=divisor))) if divisor > 0:
            inner = of(other)
            least, largest = (arithmetic.binary("/", each, int(divisor), None) for each in inner or (0, 0))
            return inner and (least, largest)
    return None


def is_in_range(cell: Expr, extent: Expr, ranges: Sequence[ExplicitRange], conditions: Sequence[Expr]) -> bool:
    """Whether an index is in range wherever conditions on indices and sizes hold, as far as isl can say."""
    from tcdsl.polyhedra.affine import NotAffine, condition_set, holds, universe

    variables = [each.variable for each in ranges]
    parts = (cell, extent, *(each.high for each in ranges), *conditions)
    points = universe(variables, sorted({name for each in parts for name in size_names(each)}))
    tests = [in_range(index(each.variable), each.high) for each in ranges]
    for test in (*tests, *conditions):
        with suppress(NotAffine):
            points = points.intersect(condition_set(test, points))
    return holds(in_range(cell, extent), points)
