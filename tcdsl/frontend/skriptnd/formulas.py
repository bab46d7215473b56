"""The formulas of `@lower` become statements.

Every index has a range, so there is nothing to infer: guards are conditions of the statement, remaps are boundaries of
the read where they are those that the program has, and indices that are data are checked. Indices that choose among the
tensors of a pack are taken one by one, around all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope, unknown_name
from tcdsl.frontend.skriptnd.index_ranges import is_in_range, known_number, least_and_largest, shown_size
from tcdsl.frontend.skriptnd.rounds import counted_rounds
from tcdsl.frontend.skriptnd.tensor_recording import recorded_store
from tcdsl.frontend.skriptnd.text.syntax import (
    Access,
    Bound,
    Expand,
    Expression,
    Formula,
    Identifier,
    Whole,
    names_in,
    walk,
)
from tcdsl.frontend.skriptnd.values import GuardedIndex, Pack, ScalarValue, TensorValue, shown, type_of
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicSize
from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.build import apply, cast, constant, in_range, index, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    ExplicitRange,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    is_affine_index,
    size_names,
)
from tcdsl.ir.expressions import walk as walk_expr
from tcdsl.span import Span

__all__ = ["FormulaRecording"]

_ACCUMULATE: Mapping[str, str] = {
    "=": "assign",
    "+=": "add",
    "*=": "multiply",
    "&=": "and",
    "|=": "or",
    "<?=": "min",
    ">?=": "max",
    ":=": "assign",
}
_TAKES = {"&=": ("bool",), "|=": ("bool",), "+=": ("int", "real"), "*=": ("int", "real")}
_TAKES |= {"<?=": ("int", "real"), ">?=": ("int", "real")}


@dataclass(slots=True)
class _Cells:
    """What one statement reads: the conditions that guards of its accesses put on it."""

    arithmetic: Arithmetic
    conditions: list[Expr] = field(default_factory=list)
    #: Indices that have to be in range wherever the statement runs: the index, the tensor, its axis.
    plain: list[tuple[Expr, TensorValue, int, Span | None]] = field(default_factory=list)
    left_out: bool = False

    def read(self, node: Access, evaluator: ExpressionEvaluator) -> Any:
        """The cell of a tensor, or those of all tensors of a pack; null where the tensor is."""
        try:
            found = evaluator.scope.find(node.name)
        except KeyError:
            raise unknown_name(node.name, evaluator.scope, node.span) from None
        self.left_out = evaluator.may_be_left_out
        if found is None:
            return None
        item = None if node.item is None else evaluator.value(node.item)
        if node.item is not None:
            if not isinstance(found, Pack):
                raise DtypeError.at(f"`{node.name}` is no pack of tensors", node.span)
            if item is None:
                return None
            if isinstance(item, ScalarValue):
                return self._chosen(found, item, node, evaluator)
            if type(item) is not int or not -len(found) <= item < len(found):
                raise ShapeError.at(f"the index {shown(item)} of a pack of {len(found)} tensors", node.span)
            found = found[item]
        if isinstance(found, Pack):
            return Pack.of(self._cell(each, node, evaluator) for each in found)
        return self._cell(found, node, evaluator)

    def _chosen(self, tensors: Pack, item: ScalarValue, node: Access, evaluator: ExpressionEvaluator) -> Any:
        # Data says which tensor of the pack is read.
        if not tensors:
            raise ShapeError.at("an item of an empty pack", node.span)
        found = self._cell(tensors[-1], node, evaluator)
        for k in range(len(tensors) - 2, -1, -1):
            test = self.arithmetic.binary("==", item, k, node.span)
            found = self.arithmetic.selected(test, self._cell(tensors[k], node, evaluator), found, node.span)
        return found

    def _cell(self, tensor: Any, node: Access, evaluator: ExpressionEvaluator) -> Any:
        if not isinstance(tensor, TensorValue):
            raise DtypeError.at(f"`{node.name}` is no tensor", node.span, "write it without indices")
        indices = self.positions(tensor, node, evaluator)
        if indices is None:
            return None
        whole = [axis for axis, each in enumerate(indices) if each is Whole]
        if any(isinstance(each, Pack) for each in indices):
            return evaluator.each(lambda *row: self._scalar(tensor, row[:-1], node.span), tuple(indices), node.span)
        if not whole:
            return self._scalar(tensor, indices, node.span)
        if len(whole) > 1:
            raise DslSyntaxError.at("`:` stands twice", node.span, "cells along one axis are a pack")
        axis = whole[0]
        length = tensor.shape[axis]
        if type(length) is not int:
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
            if each is Whole or isinstance(each, GuardedIndex) or (isinstance(each, Pack) and not each):
                continue
            if type_of(each) != "int":
                raise DtypeError.at(f"an index of type {type_of(each) or 'null'}", node.span, "convert it: `int(x)`")
        return found

    def _scalar(self, tensor: TensorValue, indices: Sequence[Any], span: Span | None) -> Any:
        if tensor.tensor is None and tensor.constant is not None and not indices:
            return tensor.constant
        cells, boundaries = [], []
        for axis, each in enumerate(indices):
            cell, boundary = self._index(each, tensor, axis, span)
            cells.append(cell)
            boundaries.append(boundary)
        name = tensor.name if tensor.tensor is None else tensor.tensor.name
        dtype = self.arithmetic.dtype(tensor.type)
        return ScalarValue(Read(name, tuple(cells), tuple(boundaries), dtype, span=span), tensor.type)

    def _index(self, given: Any, tensor: TensorValue, axis: int, span: Span | None) -> tuple[Expr, Boundary]:
        extent = self.arithmetic.size(tensor.shape[axis])
        if not isinstance(given, GuardedIndex):
            self._check_known(given, tensor, axis, span)
            cell, boundary = self._plain(given, span)
            if boundary is Boundary.SKIP and not self.left_out:
                self.plain.append((cell, tensor, axis, span))
            return cell, boundary
        inner = given.index
        if given.below is None:
            cell, boundary = self._plain(inner, span)
            self.conditions.append(in_range(cell, extent))
            return cell, boundary
        affine = self._is_affine(inner)
        if affine and _same(given.below, 0) and self._is(given.above, extent, -1):
            return self.arithmetic.index(inner, span), Boundary.CLAMP
        if affine and self._is(given.below, inner, 0, -1) and self._is_mirrored(given.above, inner, extent, 2):
            return self.arithmetic.index(inner, span), Boundary.REFLECT
        if affine and self._is(given.below, inner, -1, -1) and self._is_mirrored(given.above, inner, extent, 1):
            return self.arithmetic.index(inner, span), Boundary.SYMMETRIC
        cell, below, above = (
            cast(self.arithmetic.index(each, span), INTEGER) for each in (inner, given.below, given.above)
        )
        end = cast(extent, INTEGER)

        def moved(cell: Expr) -> Expr:
            inside = apply("where", apply("ge", cell, end), above, cell)
            return apply("where", apply("lt", cell, constant(0, INTEGER)), below, inside)

        return self.arithmetic.shared(cell, moved), Boundary.CHECK

    def _is_affine(self, value: Any) -> bool:
        return type(value) is int or (isinstance(value, ScalarValue) and value.exact and is_affine_index(value.expr))

    def _difference(self, left: Any, right: Expr, factor: int) -> Any:
        # left - factor * right, if that is a number.
        arithmetic = self.arithmetic
        other: Any = ScalarValue(right, "int", True)
        scaled = arithmetic.binary("*", other, factor, None)
        return known_number(arithmetic.binary("-", left, scaled, None))

    def _is(self, value: Any, of: Any, distance: int, factor: int = 1) -> bool:
        # Whether value is factor * of + distance.
        if not self._is_affine(value):
            return False
        expr = of.expr if isinstance(of, ScalarValue) else integer(of) if type(of) is int else of
        return bool(self._difference(value, expr, factor) == distance)

    def _is_mirrored(self, value: Any, inner: Any, extent: Expr, less: int) -> bool:
        # Whether value is 2 * extent - less - inner.
        if not self._is_affine(value):
            return False
        arithmetic = self.arithmetic
        total = arithmetic.binary("+", value, inner, None)
        return bool(self._difference(total, extent, 2) == -less)

    def _plain(self, given: Any, span: Span | None) -> tuple[Expr, Boundary]:
        cell = self.arithmetic.index(given, span)
        return cell, Boundary.SKIP if is_affine_index(cell) and cell.dtype == "int64" else Boundary.CHECK

    def _check_known(self, given: Any, tensor: TensorValue, axis: int, span: Span | None) -> None:
        extent = tensor.shape[axis]
        if type(given) is int and type(extent) is int and not 0 <= given < extent:
            fact = f"the index {given} is out of range: axis {axis} of `{tensor.name}` has the extent {extent}"
            raise ShapeError.at(fact, span, "guard it: `|i|`")

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
                self._check_known(each, tensor, axis, span)
                cell = self.arithmetic.index(each, span)
                if is_affine_index(cell) and cell.dtype == "int64":
                    self.plain.append((cell, tensor, axis, span))
            found.append(cell)
        return tuple(found)


def _same(value: Any, number: int) -> bool:
    return type(value) is int and value == number


def _with_number(value: Any, variable: str, number: ScalarValue) -> Any:
    # The index `variable` as the number of a round.
    if isinstance(value, Pack):
        return Pack.of((_with_number(each, variable, number) for each in value), value.uniform)
    if isinstance(value, ScalarValue) and isinstance(value.expr, IndexValue) and value.expr.name == variable:
        return number
    return value


@dataclass(slots=True)
class FormulaRecording:
    """``FormulaRecording(evaluator, session).run(formula, outputs)`` records one formula.

    ``outputs`` holds the tensors of the operator's outputs, which are replaced as formulas write them. Without a
    session the formula is only looked at.
    """

    evaluator: ExpressionEvaluator
    session: Session | None
    label: str
    #: The ends of the numbers of rounds, which are sizes, by name.
    numbers: dict[str, Expr] = field(default_factory=dict)

    def run(self, formula: Formula) -> None:
        """Record a formula."""
        scope = self.evaluator.scope
        name = formula.target.name
        if not scope.knows(name):
            raise unknown_name(name, scope, formula.target.span)
        single = self._taken_one_by_one(formula)
        outer = [self._count(each) for each in single]
        for numbers in product(*(range(count) for count in outer)):
            inner = Scope(dict(zip((each.name for each in single), numbers, strict=True)), outer=scope)
            ranges = self._variables([each for each in formula.bounds if each not in single], inner)
            if formula.operator == ":=":
                self._in_order(formula, inner, ranges)
            else:
                self._statement(formula, inner, ranges)

    # -- indices ---------------------------------------------------------------------------------------------------

    def _taken_one_by_one(self, formula: Formula) -> list[Bound]:
        bounds = [formula.unrolled] if formula.unrolled is not None else []
        used: set[str] = set()
        for node in self._accesses(formula):
            if node.item is not None and not any(isinstance(each, Access) for each in walk(node.item)):
                used |= {each.name for each in walk(node.item) if isinstance(each, Identifier)}
        for each in formula.bounds:
            used |= names_in(each.end)
        return bounds + [each for each in formula.bounds if each.name in used]

    def _accesses(self, formula: Formula) -> Iterator[Access]:
        nodes: list[Expression] = [formula.target, formula.value, *(each.value for each in formula.locals)]
        if formula.condition is not None:
            nodes.append(formula.condition)
        for node in nodes:
            yield from (each for each in walk(node) if isinstance(each, Access))

    def _count(self, bound: Bound) -> int:
        return self.evaluator.count(bound.end, f"the end of `{bound.name}`")

    def _variables(self, bounds: Sequence[Bound], scope: Scope) -> list[ExplicitRange]:
        found: list[ExplicitRange] = []
        taken: set[str] = set()
        evaluator = self.evaluator.within(scope)
        for bound in bounds:
            if bound.name in scope.names:
                raise DslSyntaxError.at(f"the index `{bound.name}` has two bounds", bound.span)
            end = evaluator.value(bound.end)
            if end is None:
                raise DslSyntaxError.at(f"the bound of `{bound.name}` is null", bound.span)
            ends = end if isinstance(end, Pack) else (end,)
            values = []
            for k, each in enumerate(ends):
                if type_of(each) != "int":
                    raise DtypeError.at(f"the bound of `{bound.name}` is {shown(each)}, not an int", bound.span)
                variable = f"{bound.name}{k}" if isinstance(end, Pack) else bound.name
                while variable in taken:
                    variable += "_"
                taken.add(variable)
                high = self.evaluator.arithmetic.size(each)
                found.append(ExplicitRange(variable, integer(0), high, stated=False, span=bound.span))
                values.append(ScalarValue(index(variable), "int", True))
            scope.names[bound.name] = Pack.of(values) if isinstance(end, Pack) else values[0]
        return found

    # -- statements ------------------------------------------------------------------------------------------------

    def _in_order(self, formula: Formula, scope: Scope, ranges: Sequence[ExplicitRange]) -> None:
        # Indices that do not say alone which cell is written run one after the other; the others have no order.
        if self.session is None:
            self._statement(formula, scope, ranges)
            return
        own = self._own_indices(formula, scope)
        rest = [each for each in ranges if each.variable in own]
        self._rounds(formula, scope, [each for each in ranges if each not in rest], rest)

    def _own_indices(self, formula: Formula, scope: Scope) -> set[str]:
        evaluator = ExpressionEvaluator(self.evaluator.arithmetic, scope, _Cells(self.evaluator.arithmetic).read)
        target = self._output(formula.target, evaluator)
        tensor = target[0] if isinstance(target, Pack) else target
        positions = _Cells(self.evaluator.arithmetic).positions(tensor, formula.target, evaluator) or ()
        own = {
            each.expr.name for each in positions if isinstance(each, ScalarValue) and isinstance(each.expr, IndexValue)
        }
        # Where other cells of the target are read, there is an order between all cells.
        for node in self._accesses(formula):
            if (
                node.name == formula.target.name
                and node is not formula.target
                and node.indices != formula.target.indices
            ):
                return set()
        return own

    def _rounds(
        self, formula: Formula, scope: Scope, outer: Sequence[ExplicitRange], inner: Sequence[ExplicitRange]
    ) -> None:
        if not outer:
            self._statement(formula, scope, inner)
            return
        assert self.session is not None
        names = self.evaluator.scope.names
        name = formula.target.name
        before = names[name]
        tensors = before if isinstance(before, Pack) else Pack.of((before,))
        if any(each.tensor is None for each in tensors):
            hint = f"write `{name}[...] = ...` in front of it"
            raise DslSyntaxError.at(f"`:=` changes `{name}`, which has no values yet", formula.span, hint)
        first, *others = outer
        builder = self.session.builder

        def body(number: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            made = Pack.of(replace(each, tensor=tensor) for each, tensor in zip(tensors, state, strict=True))
            names[name] = made if isinstance(before, Pack) else made[0]
            changed = Scope(dict(scope.names), outer=scope.outer)
            position = ScalarValue(number.expr, "int", True)
            self.numbers |= dict.fromkeys(size_names(number.expr), first.high)
            for key, value in changed.names.items():
                changed.names[key] = _with_number(value, first.variable, position)
            self._rounds(formula, changed, others, inner)
            after = names[name]
            return tuple(each.tensor for each in (after if isinstance(before, Pack) else (after,)))

        count = first.high.value if isinstance(first.high, Constant) else SymbolicSize(builder, first.high)
        state = counted_rounds(tuple(each.tensor for each in tensors), count, body)
        made = Pack.of(replace(each, tensor=tensor) for each, tensor in zip(tensors, state, strict=True))
        names[name] = made if isinstance(before, Pack) else made[0]

    def _statement(self, formula: Formula, scope: Scope, ranges: Sequence[ExplicitRange]) -> None:
        cells = _Cells(self.evaluator.arithmetic)
        evaluator = ExpressionEvaluator(self.evaluator.arithmetic, scope, cells.read, table=self._table)
        for local in formula.locals:
            if local.name in scope.names:
                raise DslSyntaxError.at(f"`{local.name}` has two meanings in a formula", local.span)
            scope.names[local.name] = evaluator.value(local.value)
        target = self._output(formula.target, evaluator)
        value = evaluator.value(formula.value)
        condition = None if formula.condition is None else evaluator.value(formula.condition)
        if value is None or (formula.condition is not None and condition is None):
            fact = "the value of a formula is null" if value is None else "the condition of a formula is null"
            raise DslSyntaxError.at(fact, formula.value.span, "give it another value: `x[i,] ?? 0.0`")
        conditions = list(condition) if isinstance(condition, Pack) else [] if condition is None else [condition]
        for each in conditions:
            if type_of(each) != "bool":
                raise DtypeError.at(f"a condition of type {type_of(each)}", formula.span)
        if False in conditions:
            cells.conditions.append(constant(False, "bool"))
        cells.conditions.extend(each.expr for each in conditions if isinstance(each, ScalarValue))
        tensors = target if isinstance(target, Pack) else Pack.of((target,))
        values = value if isinstance(value, Pack) and isinstance(target, Pack) else (value,) * len(tensors)
        if len(values) != len(tensors):
            raise ShapeError.at(f"{len(values)} values for {len(tensors)} tensors", formula.span)
        made = []
        for tensor, each in zip(tensors, values, strict=True):
            made.append(self._written(formula, tensor, each, evaluator, cells, ranges))
        self._replace(formula.target, evaluator, made if isinstance(target, Pack) else made[0])

    def _table(self, values: Pack, position: ScalarValue) -> ScalarValue:
        kind, arithmetic = type_of(values), self.evaluator.arithmetic
        array = np.array(values, arithmetic.dtype(kind))
        name = "table" if self.session is None else self.session.capture(array, "table").name
        cell, boundary = arithmetic.index(position), Boundary.SKIP
        if not is_affine_index(cell):
            boundary = Boundary.CHECK
        return ScalarValue(Read(name, (cell,), (boundary,), array.dtype.name), kind)

    def _output(self, target: Access, evaluator: ExpressionEvaluator) -> Any:
        found = evaluator.scope.find(target.name)
        if target.item is None:
            return found
        item = evaluator.value(target.item)
        if not isinstance(found, Pack) or type(item) is not int or not -len(found) <= item < len(found):
            raise ShapeError.at(f"`{target.name}` has no item {shown(item)}", target.span)
        return found[item]

    def _replace(self, target: Access, evaluator: ExpressionEvaluator, made: Any) -> None:
        names = self.evaluator.scope.names
        if target.item is None:
            names[target.name] = Pack.of(made) if isinstance(made, list) else made
            return
        item = evaluator.value(target.item)
        items = list(names[target.name])
        items[item] = made
        names[target.name] = Pack.of(items)

    def _written(
        self,
        formula: Formula,
        tensor: TensorValue,
        value: Any,
        evaluator: ExpressionEvaluator,
        cells: _Cells,
        ranges: Sequence[ExplicitRange],
    ) -> TensorValue:
        positions = cells.positions(tensor, formula.target, evaluator)
        if positions is None:
            raise DslSyntaxError.at("an index of a target is null", formula.target.span)
        if Whole in positions:
            axis = positions.index(Whole)
            length = tensor.shape[axis]
            if type(length) is not int:
                raise ShapeError.at("`:` along an axis whose extent only a call knows", formula.target.span)
            values = value if isinstance(value, Pack) else (value,) * length
            if len(values) != length:
                raise ShapeError.at(f"{len(values)} values for {length} cells", formula.span)
            for k, each in enumerate(values):
                row = [*positions[:axis], k, *positions[axis + 1 :]]
                tensor = self._recorded(formula, tensor, each, row, cells, ranges)
            return tensor
        if isinstance(value, Pack) or any(isinstance(each, Pack) for each in positions):
            raise DtypeError.at("a pack is assigned to one cell", formula.span)
        return self._recorded(formula, tensor, value, positions, cells, ranges)

    def _recorded(
        self,
        formula: Formula,
        tensor: TensorValue,
        value: Any,
        positions: Sequence[Any],
        cells: _Cells,
        ranges: Sequence[ExplicitRange],
    ) -> TensorValue:
        operator, span = formula.operator, formula.span
        arithmetic = self.evaluator.arithmetic
        kind = type_of(value)
        if kind != tensor.type:
            raise DtypeError.at(f"`{tensor.name}` is {tensor.type}, and its value is {kind}", formula.value.span)
        if operator in _TAKES and kind not in _TAKES[operator]:
            raise DtypeError.at(f"`{operator}` takes {' or '.join(_TAKES[operator])}, not {kind}", span)
        conditions = cells.conditions[:]
        inner = _Cells(arithmetic, conditions, cells.plain[:])
        indices = inner.target(tensor, positions, formula.target.span)
        self._check_ranges(inner, ranges)
        on_left = {node.name for each in indices for node in walk_expr(each) if isinstance(node, IndexValue)}
        data = arithmetic.data(value, formula.value.span)
        if operator in ("=", ":="):
            others = [each.variable for each in ranges if each.variable not in on_left]
            if operator == "=" and others and self._is_used(others, data, conditions):
                fact = f"`=` with the index `{others[0]}`, which the target does not have"
                raise DslSyntaxError.at(fact, span, "accumulate: `+=`, `*=`, `<?=`, `>?=`, `&=`, `|=` or `:=`")
        if operator in ("<?=", ">?=") and kind == "real":
            # NaN never wins.
            neutral = constant(neutral_element(_ACCUMULATE[operator], data.dtype), data.dtype)
            data = arithmetic.shared(data, lambda cell: apply("where", apply("ne", cell, cell), neutral, cell))
        if self.session is None:
            return TensorValue(tensor.name, tensor.type, tensor.shape)
        used = [
            each
            for each in ranges
            if each.variable in on_left or operator != "=" or self._is_used([each.variable], data, conditions)
        ]
        made = recorded_store(
            self.session,
            self.label or tensor.name,
            arithmetic.dtype(tensor.type),
            [*map(arithmetic.size, tensor.shape)],
            data,
            indices,
            used,
            tensor.tensor,
            _ACCUMULATE[operator],
            conditions,
            span,
        )
        return TensorValue(tensor.name, tensor.type, tensor.shape, made)

    def _check_ranges(self, cells: _Cells, ranges: Sequence[ExplicitRange]) -> None:
        # What no guard protects is in range, or an error before anything runs.
        arithmetic = self.evaluator.arithmetic
        ends = {each.variable: each.high for each in ranges} | self.numbers
        if any(isinstance(high, Constant) and high.value <= 0 for high in ends.values()):
            return
        for cell, tensor, axis, span in dict.fromkeys(cells.plain):
            extent = arithmetic.size(tensor.shape[axis])
            found = least_and_largest(cell, ends, arithmetic)
            if found is not None and self._is_inside(*found, extent):
                continue
            if cells.conditions and is_in_range(cell, extent, ranges, cells.conditions):
                continue
            if found is None and not cells.conditions and is_in_range(cell, extent, ranges, ()):
                continue
            if self.session is None and self.guessed(cell, extent, ends):
                continue
            shown_index = span.text if span is not None else ""
            fact = f"an index of `{shown_index}` is out of range: axis {axis} of `{tensor.name}` has the extent "
            notes = ""
            if found is not None:
                notes = f", and its indices are from {shown_size(found[0])} to {shown_size(found[1])}"
            raise ShapeError.at(f"{fact}{shown_size(arithmetic.exact(extent))}{notes}", span, "guard it: `|i|`")

    def guessed(self, cell: Expr, extent: Expr, ends: Mapping[str, Expr]) -> bool:
        """Whether sizes that only a call knows decide about an index."""
        parts = [*walk_expr(cell), *walk_expr(extent), *(node for high in ends.values() for node in walk_expr(high))]
        return any(isinstance(node, SizeValue) for node in parts)

    def _is_inside(self, low: Any, high: Any, extent: Expr) -> bool:
        arithmetic = self.evaluator.arithmetic
        end = arithmetic.exact(extent)
        return bool(arithmetic.binary(">=", low, 0, None)) and bool(arithmetic.binary("<", high, end, None))

    def _is_used(self, variables: Sequence[str], data: Expr, conditions: Sequence[Expr]) -> bool:
        nodes = [node for each in (data, *conditions) for node in walk_expr(each)]
        return any(isinstance(node, IndexValue) and node.name in variables for node in nodes)
