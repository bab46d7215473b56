"""A checked definition becomes statements of the program that is being staged.

Ranges come first (`tcdsl.ranges.required_ranges`); the statement is then recorded with the ranges and extents that
were found, as any other statement is. A statement that gives a result larger extents than it had begins with a copy;
one that starts anew does not keep what was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcdsl.errors import ShapeError
from tcdsl.frontend.comprehensions.checked import Checked, CheckedCall, CheckedStatement, TensorType
from tcdsl.frontend.comprehensions.outcomes import Outcome
from tcdsl.frontend.comprehensions.text.syntax import ElementType, Name, Target
from tcdsl.frontend.comprehensions.values import Typed, Values
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables, recorded_store
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.ir.build import apply, cast, index, integer
from tcdsl.ir.dtypes import INTEGER, compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Constant, ExplicitRange, Expr, Read, SizeValue, transform
from tcdsl.ir.program import Access, Keep, Neutral
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.ranges.required_ranges import RequiredRanges, required_ranges
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["ComprehensionRecording", "InferredRange"]

# The largest of truth values is true if one of them is.
_OF_TRUTH = {"max": "or", "min": "and"}
ADVICE = "state a range: `where {} in 0:N`"


@dataclass(frozen=True, slots=True)
class InferredRange:
    """``variable in low:end`` of a statement, and whether the statement states it."""

    variable: str
    low: Expr
    end: Expr
    stated: bool
    reduced: bool


@dataclass(slots=True)
class ComprehensionRecording:
    """``ComprehensionRecording(session, checked).run(arrays)`` gives the tensors of the results.

    ``buffers`` are tensors that results continue. ``begins`` are the first cells of results, by tensors' names.
    ``ranges`` are those of the statements of this definition. ``tested`` says that some accesses are tested at run
    time. Of definitions with ``outcomes`` the statements are not recorded, unless they have to say what is wrong.
    """

    session: Session
    checked: Checked
    buffers: Mapping[str, SymbolicTensor] = field(default_factory=dict)
    tensors: dict[str, SymbolicTensor] = field(default_factory=dict)
    sizes: dict[str, Expr] = field(default_factory=dict)
    begins: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    ranges: list[tuple[CheckedStatement, tuple[InferredRange, ...], SymbolicTensor]] = field(default_factory=list)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    tested: bool = False

    @property
    def builder(self) -> ProgramBuilder:
        """The program under construction."""
        return self.session.builder

    def run(self, arrays: Sequence[SymbolicTensor]) -> tuple[SymbolicTensor, ...]:
        """Record all statements."""
        definition = self.checked.definition
        for parameter, array in zip(definition.parameters, arrays, strict=True):
            self.tensors[parameter.name.name] = array
            self._bind(parameter.type, parameter.name, array)
        for statement in self.checked.statements:
            if isinstance(statement, CheckedCall):
                self._call(statement)
            else:
                try:
                    with sharing():
                        self._statement(statement)
                except NotAffine:
                    fact = "the ranges of this statement depend on sizes in too many ways"
                    raise ShapeError.at(fact, statement.statement.span, "state them: `where i in 0:N`") from None
        for result in definition.results:
            if result.type is not None:
                self._bind(result.type, result.name, self.tensors[result.name.name])
        return tuple(self.tensors[result.name.name] for result in definition.results)

    def _bind(self, given: ElementType, name: Name, array: SymbolicTensor) -> None:
        for axis, (size, extent) in enumerate(zip(given.sizes, array.extents, strict=False)):
            if isinstance(size, Name):
                wanted, shown = self.sizes.setdefault(size.name, extent), size.name
            else:
                wanted, shown = integer(int(size.value)), str(size.value)
            if wanted == extent:
                continue
            fact = f"axis {axis} of `{name.name}` has the extent {_number(extent)}, and `{shown}` is {_number(wanted)}"
            self.builder.require_equal(extent, wanted, fact, size.span)

    # -- statements ------------------------------------------------------------------------------------------

    def _call(self, call: CheckedCall) -> None:
        for target, (tensor, begin) in zip(call.targets, self._results(call), strict=True):
            wanted = self.checked.tensors[target.name]
            made = self.tensors[target.name] = self._as_type(tensor, wanted, target)
            if begin is not None:
                self.begins[made.name] = begin

    def _results(self, call: CheckedCall) -> list[tuple[SymbolicTensor, tuple[Expr, ...] | None]]:
        arrays = [self.tensors[argument.name] for argument in call.arguments]
        outcome = self.outcomes.get(call.callee.name)
        if outcome is not None:
            known = outcome.of(arrays, [target.name for target in call.targets], self.builder)
            if known is not None:
                self.tested |= outcome.tested
                return known
        inner = ComprehensionRecording(self.session, call.callee, outcomes=self.outcomes)
        results = inner.run(arrays)
        self.tested |= inner.tested
        return [(tensor, inner.begins.get(tensor.name)) for tensor in results]

    def _as_type(self, tensor: SymbolicTensor, wanted: TensorType, target: Name) -> SymbolicTensor:
        if tensor.element_type == wanted.dtype:
            return SymbolicTensor(self.builder, tensor.name, tensor.element_type, tensor.extents, target.name)
        return self._copied(tensor, tensor.extents, wanted.dtype, target)

    def _copied(self, tensor: SymbolicTensor, extents: Sequence[Expr], dtype: str, target: Name) -> SymbolicTensor:
        names = cell_variables(tensor.rank)
        cells = [*map(index, names)]
        value = Typed(cell_of(tensor, cells, compute_dtype(tensor.element_type)), tensor.element_type).as_type(dtype)
        ends = zip(names, tensor.extents, strict=True)
        ranges = [ExplicitRange(name, integer(0), extent) for name, extent in ends]
        return recorded_store(self.session, target.name, dtype, extents, value, cells, ranges, span=target.span)

    def _statement(self, checked: CheckedStatement) -> None:
        statement, target = checked.statement, checked.statement.target
        name = target.name.name
        values = Values(self.tensors, self.sizes, checked.definitions)
        dtype = self.checked.tensors[name].dtype
        value = values.typed(statement.value).as_type(dtype, statement.value.span)
        known = None if checked.begins else self.tensors[name]
        continues = known is not None and checked.accumulate != "assign" and not checked.resets
        sketch = Sketch(
            target=Access(name, tuple(index(each.name) for each in target.indices), target.span),
            dtype=dtype,
            extents=known.extents if known is not None and continues else (None,) * len(target.indices),
            mode="existing" if continues else "fresh",
            accumulate=_OF_TRUTH.get(checked.accumulate, "assign") if dtype == "bool" else checked.accumulate,
            start=Neutral(),
            value=value,
            variables=checked.variables,
            ranges=tuple(
                ExplicitRange(each.variable.name, values.size(each.low), values.size(each.high), span=each.span)
                for each in checked.ranges.values()
            ),
            label=name,
            span=statement.span,
        )
        asked = replace(self._with_others(sketch, checked, values), previous="" if known is None else known.name)
        found = required_ranges(asked, self.builder, ADVICE, self.begins)
        self.builder.learn((), found.assertions)
        self.tested |= bool(found.tested)
        sketch = replace(
            sketch,
            value=_tested(value, found),
            ranges=tuple(ExplicitRange(each, *found.ends[each]) for each in checked.variables),
            mode="declared",
        )
        made = self.tensors[name] = self._recorded(sketch, found, known, continues, target.name)
        # The cells that no point writes are neutral, and may be read.
        self.builder.all_written(made.name)
        self._note_begin(made, known, found, target)
        self.ranges.append((checked, _shown(checked, found), made))

    def _note_begin(
        self, made: SymbolicTensor, known: SymbolicTensor | None, found: RequiredRanges, target: Target
    ) -> None:
        begin = tuple(found.ends[each.name][0] for each in target.indices)
        zero = (integer(0),) * len(begin)
        if known is not None:
            before = self.begins.get(known.name, zero)
            begin = tuple(apply("min", *pair) for pair in zip(begin, before, strict=True))
        if begin != zero:
            self.begins[made.name] = begin

    def _with_others(self, sketch: Sketch, checked: CheckedStatement, values: Values) -> Sketch:
        # What stands behind `exists` is accessed for the ranges alone.
        value = sketch.value
        for expression in checked.exists:
            given = values.typed(expression)
            dtype = "bool" if value.dtype == "bool" else given.dtype
            part = cast(given.as_type(dtype), value.dtype)
            value = Apply("fst", (value, part), value.dtype)
        return replace(sketch, value=value)

    def _recorded(
        self, sketch: Sketch, found: RequiredRanges, known: SymbolicTensor | None, continues: bool, target: Name
    ) -> SymbolicTensor:
        name, builder = target.name, self.builder
        fresh = replace(sketch, target=replace(sketch.target, tensor=builder.fresh_name(name)))
        if known is None:
            buffer = self.buffers.get(name)
            if buffer is None or sketch.accumulate == "assign":
                return builder.record(replace(fresh, extents=found.extents), name)
            for axis, (extent, wanted) in enumerate(zip(buffer.extents, found.extents, strict=True)):
                fact = f"axis {axis} of out for `{name}` has the extent {_number(extent)}, not {_number(wanted)}"
                builder.require_equal(extent, wanted, fact, sketch.span)
            known, continues = buffer, True
        if continues:
            kept = replace(fresh, extents=known.extents, start=Keep(known.name), previous=known.name)
            return builder.record(kept, name)
        extents = tuple(_larger(*pair) for pair in zip(known.extents, found.extents, strict=True))
        if sketch.accumulate != "assign":
            return builder.record(replace(fresh, extents=extents), name)
        if extents != known.extents or known.element_type != sketch.dtype:
            known = self._copied(known, extents, sketch.dtype, target)
            fresh = replace(fresh, target=replace(fresh.target, tensor=builder.fresh_name(name)))
        kept = replace(fresh, extents=extents, start=Keep(known.name), previous=known.name)
        return builder.record(kept, name)


def _larger(left: Expr, right: Expr) -> Expr:
    return left if left == right else apply("max", left, right)


def _shown(checked: CheckedStatement, found: RequiredRanges) -> tuple[InferredRange, ...]:
    target = {each.name for each in checked.statement.target.indices}
    return tuple(
        InferredRange(name, *found.ends[name], name in checked.ranges, name not in target) for name in checked.variables
    )


def _tested(value: Expr, found: RequiredRanges) -> Expr:
    # Where data decides whether an access is made, it is tested there.
    if not found.tested:
        return value

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read):
            return node
        indices, boundaries = list(node.indices), list(node.boundaries)
        for axis, each in enumerate(node.indices):
            place: Span | None = getattr(each, "span", None) or node.span
            if (node.tensor, axis, place) in found.tested and boundaries[axis] is Boundary.SKIP:
                indices[axis], boundaries[axis] = cast(each, INTEGER, place), Boundary.CHECK
        return replace(node, indices=tuple(indices), boundaries=tuple(boundaries))

    return transform(value, rule)


def _number(extent: Expr) -> str:
    # Its value at the call, in braces if it is a size.
    match extent:
        case SizeValue(name=name):
            return f"{{{name}}}"
        case Constant(value=value):
            return str(value)
    return format_expr(extent)
