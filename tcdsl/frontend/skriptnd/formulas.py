"""The formulas of `@lower` become statements.

Every index has a range, so there is nothing to infer: guards are conditions of the statement. Indices that choose among
the tensors of a pack are taken one by one, around all others. An extent that only data says is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.accessed_cells import AccessedCells, is_in_range, least_and_largest
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.loops import counted_rounds
from tcdsl.frontend.skriptnd.tensor_recording import TensorRecording, declared_tensors, pack_name, round_count
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.syntax import names_in
from tcdsl.frontend.skriptnd.values import ZERO, Pack, ScalarValue, TensorValue, bound_of, shown, type_of
from tcdsl.frontend.words.declared_stores import cell_of
from tcdsl.frontend.words.nodes import walk
from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.build import apply, cast, constant, in_range, index, integer
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

if TYPE_CHECKING:
    pass

__all__ = ["FormulaRecording", "declared_constant"]

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


def _with_number(value: Any, variable: str, number: ScalarValue) -> Any:
    # The index `variable` as the number of a round.
    if isinstance(value, Pack):
        return Pack.of((_with_number(each, variable, number) for each in value), value.uniform)
    if isinstance(value, ScalarValue) and isinstance(value.expr, IndexValue) and value.expr.name == variable:
        return number
    return value


@dataclass(slots=True)
class FormulaRecording:
    """``FormulaRecording(evaluator, recording, label).run(formula)`` records one formula.

    What it writes has its name in the evaluator's scope. Without a session the formula is only looked at.
    """

    evaluator: ExpressionEvaluator
    recording: TensorRecording
    label: str
    #: Whether the tensors of packs that are taken one by one are there, where only data says it.
    there: list[Expr] = field(default_factory=list)
    #: The ends of the numbers of rounds, which are sizes, by name.
    numbers: dict[str, Expr] = field(default_factory=dict)
    #: The ends of indices that only data says, by variable.
    limits: dict[str, Expr] = field(default_factory=dict)
    #: The tensors whose rows are those of packs, by the names of these: all rows are read in one statement.
    wholes: Mapping[str, TensorValue] = field(default_factory=dict)

    def run(self, formula: syntax.Formula) -> None:
        """Record a formula."""
        scope = self.evaluator.scope
        counter = self._counter(formula)
        if counter is not None:
            self._counted(formula, counter)
            return
        single = self._taken_one_by_one(formula)
        self.wholes = self._wholes(formula, single)
        if self.wholes:
            single = []
        outer = [self.evaluator.count(each.value, f"the end of `{each.name}`") for each in single]
        ends = [self.evaluator.value(each.value) for each in single]
        for numbers in product(*(range(count) for count in outer)):
            pairs = ((number, end.expr) for number, end in zip(numbers, ends, strict=True) if bound_of(end) is not None)
            self.there = [apply("lt", constant(number, end.dtype), end) for number, end in pairs]
            inner = Scope(dict(zip((each.name for each in single), numbers, strict=True)), outer=scope)
            ranges = self._variables([each for each in formula.bounds if each not in single], inner)
            if formula.operator == ":=":
                self._in_order(formula, inner, ranges)
            else:
                self._statement(formula, inner, ranges)

    def _counter(self, formula: syntax.Formula) -> str | None:
        """The index of a target that has no bound: it counts the points at which the condition holds.

        As in ``index[:,k] = i, i < s | x[i..] != 0.0``, where ``k`` is an extent that only data says.
        """
        bound, names = {each.name for each in formula.bounds}, self.evaluator.scope.names
        used = (node.name for node in formula.target.indices if isinstance(node, syntax.Identifier))
        return next((name for name in used if name not in bound and bound_of(names.get(name)) is not None), None)

    def _counted(self, formula: syntax.Formula, counter: str) -> None:
        # One point after the other: the cell of the number of those before it.
        names, arithmetic = self.evaluator.scope.names, self.evaluator.arithmetic
        tensor = names[formula.target.name]
        extent: ScalarValue = names[counter]
        if formula.operator != "=" or isinstance(tensor, Pack):
            raise DslSyntaxError.at("points that are counted are assigned by `=`", formula.span)
        inner, ordered = Scope(outer=self.evaluator.scope), replace(formula, operator=":=")
        ranges = self._variables(formula.bounds, inner)
        if self.recording.session is None:
            inner.names[counter] = ScalarValue(constant(0, arithmetic.integer), "int")
            self._statement(ordered, inner, ranges)
            return
        names[tensor.name] = self.recording.filled(tensor.name, tensor.type, tensor.shape, ZERO[tensor.type])
        names[counter] = self.recording.filled(counter, "int", Pack(), 0)
        self._rounds(inner, ranges, (tensor.name, counter), lambda scope: self._counted_point(ordered, counter, scope))
        number = replace(extent, expr=cell_of(names[counter].tensor, (), arithmetic.integer))
        shape = Pack.of(number if each == extent else each for each in tensor.shape)
        names[tensor.name] = replace(names[tensor.name], shape=shape)
        names[counter] = number

    def _counted_point(self, formula: syntax.Formula, counter: str, scope: Scope) -> None:
        names, arithmetic = self.evaluator.scope.names, self.evaluator.arithmetic
        here = cell_of(names[counter].tensor, (), arithmetic.integer)
        scope.names[counter] = ScalarValue(here, "int")
        self._statement(formula, scope, ())
        cells = ExpressionEvaluator(arithmetic, scope, AccessedCells(arithmetic).read)
        test = True if formula.condition is None else cells.value(formula.condition)
        one = constant(1, arithmetic.integer)
        more = apply("where", test.expr, one, constant(0, one.dtype)) if isinstance(test, ScalarValue) else one
        names[counter] = self.recording.stored(counter, "int", Pack(), apply("add", here, more))

    def _taken_one_by_one(self, formula: syntax.Formula) -> list[syntax.Named]:
        bounds = [formula.unrolled] if formula.unrolled is not None else []
        used: set[str] = set()
        for node in (formula.target, *formula.accesses):
            if node.item is not None and not any(isinstance(each, syntax.Access) for each in walk(node.item)):
                used |= {each.name for each in walk(node.item) if isinstance(each, syntax.Identifier)}
        for each in formula.bounds:
            used |= names_in(each.value)
        return bounds + [each for each in formula.bounds if each.name in used]

    def _wholes(self, formula: syntax.Formula, single: Sequence[syntax.Named]) -> dict[str, TensorValue]:
        # Where all packs are rows of tensors, and one index takes them in their order.
        found: dict[str, TensorValue] = {}
        if len(single) != 1 or formula.unrolled is not None or formula.target.item is not None:
            return {}
        for node in formula.accesses:
            pack = self.evaluator.scope.names.get(node.name)
            if isinstance(pack, Pack):
                plain = isinstance(node.item, syntax.Identifier) and node.item.name == single[0].name
                whole = self.recording.whole(pack) if plain else None
                if whole is None or self.evaluator.value(single[0].value) != len(pack):
                    return {}
                found[node.name] = whole
        return found

    def _variables(self, bounds: Sequence[syntax.Named], scope: Scope) -> list[ExplicitRange]:
        found: list[ExplicitRange] = []
        taken: set[str] = set()
        evaluator = self.evaluator.within(scope)
        for bound in bounds:
            end = evaluator.value(bound.value)
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
                if isinstance(each, ScalarValue) and each.bound is not None:
                    self.limits[variable] = each.expr
                found.append(ExplicitRange(variable, integer(0), high, stated=False, span=bound.span))
                values.append(ScalarValue(index(variable), "int", True))
            scope.names[bound.name] = Pack.of(values) if isinstance(end, Pack) else values[0]
        return found

    def _in_order(self, formula: syntax.Formula, scope: Scope, ranges: Sequence[ExplicitRange]) -> None:
        # Indices that do not say alone which cell is written run one after the other; the others have no order.
        if self.recording.session is None:
            self._statement(formula, scope, ranges)
            return
        own = self._own_indices(formula, scope)
        rest = [each for each in ranges if each.variable in own]
        outer = [each for each in ranges if each not in rest]
        self._rounds(scope, outer, (formula.target.name,), lambda scope: self._statement(formula, scope, rest))

    def _own_indices(self, formula: syntax.Formula, scope: Scope) -> set[str]:
        evaluator = ExpressionEvaluator(self.evaluator.arithmetic, scope, AccessedCells(self.evaluator.arithmetic).read)
        target = self._output(formula.target, evaluator)
        tensor = target[0] if isinstance(target, Pack) else target
        positions = AccessedCells(self.evaluator.arithmetic).positions(tensor, formula.target, evaluator) or ()
        own = {
            each.expr.name for each in positions if isinstance(each, ScalarValue) and isinstance(each.expr, IndexValue)
        }
        # Where other cells of the target are read, there is an order between all cells.
        read = (each.indices for each in formula.accesses if each.name == formula.target.name)
        return own if all(indices == formula.target.indices for indices in read) else set()

    def _rounds(
        self, scope: Scope, outer: Sequence[ExplicitRange], written: Sequence[str], point: Callable[[Scope], None]
    ) -> None:
        # `point` for all values of the indices `outer`, one after the other, which carry the tensors `written`.
        if not outer:
            point(scope)
            return
        assert self.recording.session is not None
        names = self.evaluator.scope.names
        recording = self.recording
        before = [names[name] for name in written]
        first, *others = outer

        def body(number: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            names.update(zip(written, recording.tensors(before, state), strict=True))
            position = ScalarValue(number.expr, "int", True)
            self._number(number.expr, first.high)
            changed = {key: _with_number(value, first.variable, position) for key, value in scope.names.items()}
            self._rounds(Scope(changed, outer=scope.outer), others, written, point)
            return recording.symbols([names[name] for name in written])

        state = counted_rounds(recording.symbols(before), round_count(self.recording.session, first.high), body)
        names.update(zip(written, recording.tensors(before, state), strict=True))

    def _number(self, number: Expr, end: Expr) -> None:
        self.numbers |= dict.fromkeys(size_names(number), end)
        self.evaluator.arithmetic.rounds.update(size_names(number))

    def _statement(self, formula: syntax.Formula, scope: Scope, ranges: Sequence[ExplicitRange]) -> None:
        cells = AccessedCells(self.evaluator.arithmetic, ranges, wholes=self.wholes)
        evaluator = ExpressionEvaluator(self.evaluator.arithmetic, scope, cells.read, table=self._table)
        evaluator.position = partial(self._position, cells)
        for local in formula.locals:
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
        cells.conditions.extend(self.evaluator.arithmetic.data(each) for each in conditions if each is not True)
        cells.conditions.extend(self.there)
        ends = ((each.variable, self.limits[each.variable]) for each in ranges if each.variable in self.limits)
        cells.conditions.extend(apply("lt", cast(index(name), end.dtype), end) for name, end in ends)
        tensors = target if isinstance(target, Pack) else Pack.of((target,))
        values = value if isinstance(value, Pack) and isinstance(target, Pack) else (value,) * len(tensors)
        if len(values) != len(tensors):
            raise ShapeError.at(f"{len(values)} values for {len(tensors)} tensors", formula.span)
        pairs = zip(tensors, values, strict=True)
        written = Pack.of(self._written(formula, tensor, each, evaluator, cells) for tensor, each in pairs)
        made, names = written if isinstance(target, Pack) else written[0], self.evaluator.scope.names
        if formula.target.item is not None:
            items = list(names[formula.target.name])
            items[evaluator.value(formula.target.item)] = made
            made = Pack.of(items)
        names[formula.target.name] = made

    def _position(
        self, cells: AccessedCells, length: int, position: ScalarValue, span: Span | None, may_be_left_out: bool
    ) -> ScalarValue:
        # What is no data is compared with the ends of its range, as indices of tensors are.
        cells.left_out = may_be_left_out
        _, boundary = cells.required(position, TensorValue(pack_name(span), "int", Pack.of((length,))), 0, span)
        if boundary is Boundary.SKIP:
            return position
        return self.recording.checked_position(length, position, span)

    def _table(self, values: Pack, position: ScalarValue) -> ScalarValue:
        kind, arithmetic = type_of(values), self.evaluator.arithmetic
        arithmetic.require_fitting(values, None)
        array = np.array(values, arithmetic.dtype(kind))
        name = "table" if self.recording.session is None else self.recording.session.capture(array, "table").name
        cell = arithmetic.index(position)
        boundary = Boundary.SKIP if is_affine_index(cell) else Boundary.CHECK
        return ScalarValue(Read(name, (cell,), (boundary,), array.dtype.name), kind)

    def _output(self, target: syntax.Access, evaluator: ExpressionEvaluator) -> Any:
        found = evaluator.scope.find(target.name)
        if target.item is None:
            return found
        item = evaluator.value(target.item)
        if not isinstance(found, Pack) or type(item) is not int or not -len(found) <= item < len(found):
            raise ShapeError.at(f"`{target.name}` has no item {shown(item)}", target.span)
        return found[item]

    def _written(
        self, formula: syntax.Formula, tensor: Any, value: Any, evaluator: ExpressionEvaluator, cells: AccessedCells
    ) -> TensorValue:
        positions = cells.positions(tensor, formula.target, evaluator)
        if positions is None:
            raise DslSyntaxError.at("an index of a target is null", formula.target.span)
        if syntax.Whole in positions:
            axis = positions.index(syntax.Whole)
            length = tensor.shape[axis]
            if type(length) is not int:
                raise ShapeError.at("`:` along an axis whose extent only a call knows", formula.target.span)
            values = value if isinstance(value, Pack) else (value,) * length
            if len(values) != length:
                raise ShapeError.at(f"{len(values)} values for {length} cells", formula.span)
            for k, each in enumerate(values):
                row = [*positions[:axis], k, *positions[axis + 1 :]]
                tensor = self._recorded(formula, tensor, each, row, cells)
            made: TensorValue = tensor
            return made
        if isinstance(value, Pack) or any(isinstance(each, Pack) for each in positions):
            raise DtypeError.at("a pack is assigned to one cell", formula.span)
        return self._recorded(formula, tensor, value, positions, cells)

    def _recorded(
        self, formula: syntax.Formula, tensor: TensorValue, value: Any, positions: Sequence[Any], cells: AccessedCells
    ) -> TensorValue:
        operator, span, ranges, kind = formula.operator, formula.span, cells.ranges, type_of(value)
        arithmetic = self.evaluator.arithmetic
        if kind != tensor.type:
            raise DtypeError.at(f"`{tensor.name}` is {tensor.type}, and its value is {kind}", formula.value.span)
        arithmetic.require_accumulated(operator, value, span)
        conditions = cells.conditions[:]
        inner = AccessedCells(arithmetic, ranges, conditions, cells.plain[:])
        indices = inner.target(tensor, positions, formula.target.span)
        self._check_ranges(inner)
        on_left = {node.name for each in indices for node in walk_expr(each) if isinstance(node, IndexValue)}
        data = arithmetic.data(value, formula.value.span)
        read = {node.name for each in (data, *conditions) for node in walk_expr(each) if isinstance(node, IndexValue)}
        others = [each.variable for each in ranges if each.variable not in on_left]
        if operator == "=" and read & {*others}:
            fact = f"`=` with the index `{others[0]}`, which the target does not have"
            raise DslSyntaxError.at(fact, span, "accumulate: `+=`, `*=`, `<?=`, `>?=`, `&=`, `|=` or `:=`")
        if operator in ("<?=", ">?=") and kind == "real":
            # NaN never wins.
            neutral = constant(neutral_element(_ACCUMULATE[operator], data.dtype), data.dtype)
            data = shared(data, lambda cell: apply("where", apply("ne", cell, cell), neutral, cell))
        used = [each for each in ranges if operator != "=" or each.variable in on_left | read]
        where = (indices, used, tensor.tensor, _ACCUMULATE[operator], conditions, span)
        made = self.recording.stored(self.label or tensor.name, tensor.type, tensor.shape, data, *where)
        return replace(made, name=tensor.name)

    def _check_ranges(self, cells: AccessedCells) -> None:
        # What no guard protects is in range, or an error before anything runs.
        arithmetic, ranges = self.evaluator.arithmetic, cells.ranges
        ends = {each.variable: each.high for each in ranges} | self.numbers
        if any(isinstance(high, Constant) and high.value <= 0 for high in ends.values()):
            return
        known = [in_range(SizeValue(name), high) for name, high in self.numbers.items()] + cells.conditions
        for cell, tensor, axis, span in dict.fromkeys(cells.plain):
            extent = arithmetic.size(tensor.shape[axis])
            found = least_and_largest(cell, ends, arithmetic)
            end = arithmetic.exact(extent)
            low, high = found or (-1, 0)
            if arithmetic.binary(">=", low, 0, None) and arithmetic.binary("<", high, end, None):
                continue
            if (found is None or cells.conditions) and is_in_range(cell, extent, ranges, known):
                continue
            # Sizes that only a call knows may decide about an index.
            parts = (node for each in (cell, extent, *ends.values()) for node in walk_expr(each))
            if self.recording.session is None and any(isinstance(node, SizeValue) for node in parts):
                continue
            shown_index = span.text if span is not None else ""
            fact = f"an index of `{shown_index}` is out of range: axis {axis} of `{tensor.name}` has the extent "
            notes = ""
            if found is not None:
                notes = f", and its indices are from {shown(found[0])} to {shown(found[1])}"
            raise ShapeError.at(f"{fact}{shown(end)}{notes}", span, "guard it: `|i|`")


def declared_constant(
    recording: TensorRecording, declaration: syntax.Declaration, evaluator: ExpressionEvaluator
) -> Any:
    """A tensor of `@constant`, or a pack of them."""
    assert declaration.default is not None
    name, what = declaration.name, f"the constant `{declaration.name}`"
    wanted = declared_tensors(declaration, evaluator, what)
    if wanted is None:
        raise ShapeError.at(f"the shape of {what} is open", declaration.span)
    if isinstance(wanted, Pack):
        value = evaluator.value(declaration.default)
        values = value if isinstance(value, Pack) else Pack.of((value,) * len(wanted))
        if len(values) != len(wanted):
            raise ShapeError.at(f"{what} has {len(wanted)} tensors, and {len(values)} values", declaration.span)
        pairs = zip(wanted, values, strict=True)
        return Pack.of(recording.filled(name, each.type, each.shape, number) for each, number in pairs)
    kind, shape = wanted.type, wanted.shape
    if declaration.bounds:
        indices = []
        for bound in declaration.bounds:
            place = syntax.Identifier(bound.name, span=bound.span)
            packed = isinstance(evaluator.value(bound.value), Pack)
            indices.append(syntax.Expand(place, None, span=bound.span) if packed else place)
        span, scope = declaration.span, Scope({name: TensorValue(name, kind, shape)}, outer=evaluator.scope)
        target = syntax.Access(name, None, tuple(indices), span=span)
        formula = syntax.Formula(target, "=", declaration.default, (), declaration.bounds, None, None, span=span)
        inner = ExpressionEvaluator(recording.arithmetic, scope)
        FormulaRecording(inner, recording, name).run(formula)
        made: TensorValue = inner.scope.names[name]
        return made
    value = evaluator.value(declaration.default)
    if isinstance(value, Pack):
        return recording.table(name, kind, shape, value, declaration.span)
    if type_of(value) != kind:
        raise DtypeError.at(f"{what} is {kind}, and its value is {type_of(value)}", declaration.span)
    return recording.filled(name, kind, shape, value)
