"""Tensors of a graph as tensors of the program: declared ones, constants, rows, cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcdsl.errors import RAISED, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import COMPARISONS, Arithmetic
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS, ExpressionEvaluator
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Extent, TypeNode
from tcdsl.frontend.skriptnd.values import (
    UNKNOWN,
    ZERO,
    Pack,
    ScalarValue,
    TensorValue,
    Unknown,
    bound_of,
    flat,
    most_of,
    shown,
    type_of,
)
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables, recorded_store
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Boundary, Constant, ExplicitRange, Expr, Read
from tcdsl.ir.program import Keep
from tcdsl.span import Span

if TYPE_CHECKING:
    from tcdsl.frontend.staging.session import Session
    from tcdsl.frontend.symbols.symbols import SymbolicSize

__all__ = ["TOO_MANY_ROUNDS", "TensorRecording", "declared_shape", "declared_tensors", "round_count"]


MOST_CELLS = 2**48  # along an axis: no memory holds them
#: The fact that a loop has more rounds than there are tensors.
TOO_MANY_ROUNDS = "the number of rounds is not between 0 and {}, the length of what is scanned"


def round_count(session: Session, size: Expr) -> int | SymbolicSize:
    """How many rounds a loop has: products of sizes have names, by which what is known of a round's number is said."""
    from tcdsl.frontend.symbols.opaque_sizes import named_sizes
    from tcdsl.frontend.symbols.symbols import SymbolicSize

    if isinstance(size, Constant):
        return int(size.value)
    return SymbolicSize(session.builder, named_sizes(size, session.builder.opaque_size))


@dataclass(slots=True)
class TensorRecording:
    """Records tensors in a session; without one nothing is recorded, and shapes and types are all there is."""

    arithmetic: Arithmetic
    session: Session | None

    def require(self, test: Any, fact: str, span: Span | None) -> None:
        """Have the program check what only data says."""
        if self.session is not None and isinstance(test, ScalarValue):
            from tcdsl.frontend.running_loops.run_time_checks import record_check

            with self.session.located(span):
                holds = recorded_store(self.session, "holds", "bool", (), test.expr)
                record_check(self.session, holds, "ShapeError", fact, True)

    def differ(self, operator: str, left: Any, right: Any, fact: str, span: Span | None) -> bool:
        """Whether ``left operator right`` is false in every call.

        Where only data says an extent, the program checks that it is true, and raises ``fact``.
        """
        if self.arithmetic.refutes(operator, left, right, span):
            return True
        if bound_of(left) is not None or bound_of(right) is not None:
            pair = (self.arithmetic.data(left), self.arithmetic.data(right))
            if pair[0] != pair[1]:
                self.require(ScalarValue(apply(COMPARISONS[operator], *pair), "bool"), fact, span)
        return False

    def same_shape(self, left: Pack, right: Pack, span: Span | None) -> bool:
        """Whether two shapes agree, as far as that is known."""
        fact = "shapes that agree as far as the text says it, but not in this call"
        return len(left) == len(right) and not any(
            self.differ("==", *pair, fact, span) for pair in zip(left, right, strict=True)
        )

    def recorded(self, value: Any, name: str) -> Any:
        """Constants as tensors of the program, where there is one; those of rank 0 when they are used."""
        if isinstance(value, Pack):
            return Pack.of((self.recorded(each, name) for each in value), None, value.length)
        if isinstance(value, TensorValue) and value.shape and value.constant is not None and value.tensor is None:
            return self.filled(name, value.type, value.shape, value.constant)
        if value is None or isinstance(value, TensorValue | Unknown):
            return value
        if isinstance(value, ScalarValue) or type_of(value):
            return TensorValue(name, type_of(value), Pack(), None, value)
        return value

    def written(self, value: Any) -> Any:
        """A tensor that no formula has written is filled with zeros; a constant gets its cell."""
        if isinstance(value, Pack):
            return Pack.of(map(self.written, value), None, value.length)
        if self.session is None or not isinstance(value, TensorValue) or value.tensor is not None:
            return value
        given = value.constant if value.constant is not None else ZERO[value.type]
        return self.filled(value.name, value.type, value.shape, given)

    def symbols(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors of the program that ``values`` are, one after the other."""
        return tuple(self.written(each).tensor for each in flat(values))

    def tensors(self, values: Sequence[Any], symbols: Sequence[Any]) -> list[Any]:
        """``values`` with other tensors of the program, those that `symbols` has of others like them."""
        flat = iter(symbols)

        def like(value: Any) -> Any:
            if isinstance(value, Pack):
                return Pack.of(map(like, value), None, value.length)
            return TensorValue(value.name, value.type, value.shape, next(flat))

        return [*map(like, values)]

    def scalar(self, value: TensorValue) -> TensorValue:
        """The only cell of a tensor, as one of rank 0."""
        if self.session is None or not value.shape:
            made: TensorValue = self.written(value)
            return made
        dtype = self.arithmetic.dtype(value.type)
        cell = cell_of(self.written(value).tensor, (integer(0),) * len(value.shape), dtype)
        return self.stored(value.name, value.type, Pack(), cell)

    def stored(self, name: str, kind: str, shape: Pack, value: Expr, *where: Any) -> TensorValue:
        """A tensor of which one statement writes cells, as `recorded_store` does."""
        made = None
        if self.session is not None:
            dtype, extents = self.arithmetic.dtype(kind), [*map(self.arithmetic.size, shape)]
            made = recorded_store(self.session, name, dtype, extents, value, *where)
        return TensorValue(name, kind, shape, made)

    def count(self, value: Any, most: int | None, span: Span | None) -> Any:
        """A number of rounds, as the loops of the program take it; what data says is compared with ``most``."""
        if isinstance(value, int) or value is None:
            return value
        assert self.session is not None
        if isinstance(value, ScalarValue) and value.bound is None:
            return round_count(self.session, value.expr)
        tensor = self.scalar(self.recorded(value, "count")).tensor
        if tensor is None or most is None or not isinstance(value, TensorValue):
            return tensor
        label = f"{RAISED}DataIndexError: {TOO_MANY_ROUNDS.format(most)}"
        number = ScalarValue(cell_of(tensor, (), self.arithmetic.integer), "int")
        checked = self.checked_position(most + 1, number, span, label)
        return recorded_store(self.session, "count", self.arithmetic.integer, (), checked.expr)

    def checked_position(self, length: int, position: ScalarValue, span: Span | None, name: str = "") -> ScalarValue:
        """The index of an item of so many: it is read from a list of all indices, where it is checked.

        ``name`` is what messages call the list, if it is not the name of the pack.
        """
        import numpy as np

        name, dtype = name or pack_name(span), self.arithmetic.integer
        if self.session is not None:
            name = self.session.capture(np.arange(length, dtype=dtype), name).name
        cell = self.arithmetic.index(position, span)
        return ScalarValue(Read(name, (cell,), (Boundary.CHECK,), dtype, span=span), "int")

    def stacked(self, pack: Pack, span: Span | None) -> TensorValue:
        """The tensors of a pack one behind the other."""
        first = pack[0]
        if not all(self.same_shape(each.shape, first.shape, span) for each in pack):
            raise ShapeError.at("a loop on data scans tensors of several shapes", span)
        whole = self.whole(pack)
        if whole is not None:
            return whole
        stack = TensorValue(first.name, first.type, Pack.of((len(pack), *first.shape)))
        for k, each in enumerate(pack):
            stack = self.with_row(stack, ScalarValue(integer(k), "int", True), each)
        return stack

    def whole(self, pack: Pack) -> TensorValue | None:
        """The tensor whose rows these are, all of them in their order."""
        if self.session is None or not pack or pack.length is not None:
            return None
        from tcdsl.frontend.symbols.symbols import SymbolicTensor
        from tcdsl.polyhedra.affine import NotAffine

        builder, found = self.session.builder, ""
        makers = {each.target.tensor: each for each in builder.recording.statements}
        for k, each in enumerate(pack):
            made = None if each.tensor is None else makers.get(each.tensor.name)
            value = None if made is None or isinstance(made.start, Keep) or made.condition is not None else made.value
            if made is None or not isinstance(value, Read) or made.accumulate != "assign":
                return None
            if value.indices != (integer(k), *made.target.indices) or set(value.boundaries) != {Boundary.SKIP}:
                return None
            if found and value.tensor != found:
                return None
            found = value.tensor
        declared = builder.tensor(found)
        with suppress(NotAffine):
            if builder.known().never(apply("ne", declared.shape[0], integer(len(pack)))):
                tensor = SymbolicTensor(builder, found, declared.dtype, declared.shape)
                return TensorValue(pack[0].name, pack[0].type, Pack.of((len(pack), *pack[0].shape)), tensor)
        return None

    def row(self, stack: TensorValue, position: ScalarValue) -> TensorValue:
        """One of the tensors of `stacked`; there is one at the position."""
        assert stack.tensor is not None
        shape, dtype = Pack.of(stack.shape[1:]), self.arithmetic.dtype(stack.type)
        cell = cell_of(stack.tensor, (position.expr, *map(index, cell_variables(len(shape)))), dtype)
        return self.stored(stack.name, stack.type, shape, cell)

    def with_row(self, stack: TensorValue, position: ScalarValue, row: TensorValue) -> TensorValue:
        """The tensors of `stacked` with another one in a place."""
        variables, ends = cell_variables(len(row.shape)), map(self.arithmetic.size, stack.shape[1:])
        cells = [*map(index, variables)]
        ranges = [ExplicitRange(each, integer(0), end) for each, end in zip(variables, ends, strict=True)]
        value = cell_of(self.written(row).tensor, cells, self.arithmetic.dtype(stack.type))
        target = (position.expr, *cells)
        return self.stored(stack.name, stack.type, stack.shape, value, target, ranges, stack.tensor)

    def filled(self, name: str, kind: str, shape: Pack, value: Any) -> TensorValue:
        """A tensor of one value."""
        made = TensorValue(name, kind, shape)
        if self.session is not None:
            made = self.stored(name, kind, shape, self.arithmetic.data(value))
        return made if shape else replace(made, constant=value)

    def fitted(
        self,
        what: str,
        given: TypeNode,
        made: TensorValue,
        wanted: Pack | None,
        evaluator: ExpressionEvaluator,
        place: Span | None,
        item: int = 0,
    ) -> TensorValue:
        """A tensor as it is declared, of the shape ``wanted``; raises if it has another type or shape.

        What is declared without a bound has all cells, also those that data leaves out, which are 0.
        """
        kind = evaluator.scope.generic(given.name) or given.name or made.type
        if made.type != kind:
            raise DtypeError.at(f"{what} is {kind}, and what is assigned to it is {made.type}", place)
        if wanted is None:
            return made
        fact = f"{what} has the shape {shown(wanted)}, and what is assigned has {shown(made.shape)}"
        if len(made.shape) != len(wanted):
            raise ShapeError.at(fact, place)
        entries = [each for each in given.shape or () for _ in declared_shape((each,), evaluator, what, item) or ()]
        shape, rooms = list(made.shape), [*map(most_of, made.shape)]
        most = list(rooms)
        for axis, (entry, declared, found) in enumerate(zip(entries, wanted, made.shape, strict=True)):
            data, bound = bound_of(found) is not None, bound_of(declared)
            if _is_unknown(declared):  # the first extent of that name says what the others are
                known = evaluator.scope.names[declared.expr.tensor.removeprefix(UNKNOWN)]
                declared = declared if _is_unknown(known) else known
                bound = bound_of(declared)
            # `~|n` is the most that there may be, as is the bound of a name that nothing else says.
            is_open = entry.value is None or _is_unknown(declared)
            end = declared if bound is None else bound
            at_most = is_open or (data and bound is None)
            size = f"larger than {shown(end)}" if at_most else "not the one"
            late = f"{what} has an extent that is {size}, which is declared"
            if self.differ("<=" if at_most else "==", found, end if at_most else declared, late, place):
                raise ShapeError.at(fact, place)
            if data and at_most and not (is_open and self.arithmetic.binary("<=", found.bound, end, place)):
                most[axis], shape[axis] = end, replace(found, bound=end) if is_open else end
            if _is_unknown(declared):
                evaluator.scope.names[declared.expr.tensor.removeprefix(UNKNOWN)] = shape[axis]
        return self._cut(replace(made, shape=Pack.of(shape)), rooms, most)

    def _cut(self, made: TensorValue, rooms: Sequence[Any], most: Sequence[Any]) -> TensorValue:
        # The cells that there are at most: there was room for more of them, or for fewer.
        if self.session is None or [*rooms] == [*most]:
            return made
        from tcdsl.frontend.symbols.opaque_sizes import named_sizes

        opaque = self.session.builder.opaque_size
        dtype, cells = self.arithmetic.dtype(made.type), [*map(index, cell_variables(len(rooms)))]
        ends = [a if self.arithmetic.binary("<=", a, b, None) else b for a, b in zip(rooms, most, strict=True)]
        highs, extents = ([named_sizes(self.arithmetic.size(each), opaque) for each in row] for row in (ends, most))
        ranges = [ExplicitRange(f"i{axis}", integer(0), high) for axis, high in enumerate(highs)]
        value = cell_of(self.written(made).tensor, cells, dtype)
        into = None if ends == [*most] else self.filled(made.name, made.type, Pack.of(most), ZERO[made.type]).tensor
        return replace(made, tensor=recorded_store(self.session, made.name, dtype, extents, value, cells, ranges, into))

    def declared(
        self, name: str, given: TypeNode, value: Any, evaluator: ExpressionEvaluator, span: Span | None
    ) -> Any:
        """``value`` as a tensor of a type that the text gives for ``name``: a number fills the shape."""
        if isinstance(value, Pack):
            items = (self.declared(name, given, each, evaluator, span) for each in value)
            return Pack.of(items, None, value.length)
        what = f"`{name}`"
        shape = None if given.shape is None else declared_shape(given.shape, evaluator, what)
        if shape and not value.shape and value.constant is not None:
            value = self.filled(name, value.type, shape, value.constant)
        return self.fitted(what, given, value, shape, evaluator, span)

    def table(self, name: str, kind: str, shape: Pack, values: Pack, span: Span | None) -> TensorValue:
        """A constant tensor of values in row-major order."""
        import numpy as np

        if not all(type(each) is int for each in shape):
            raise ShapeError.at(f"the extents of the constant `{name}` depend on the call", span)
        volume = math.prod(shape)
        if volume != len(values) or not all(type_of(each) == kind for each in values):
            fact = f"the constant `{name}` of shape {shown(shape)} has {volume} cells of type {kind}"
            raise ShapeError.at(f"{fact}, and is given {len(values)} values of type {type_of(values)}", span)
        if self.session is None:
            return TensorValue(name, kind, shape)
        self.arithmetic.require_fitting(values, span)
        array = np.array(values, self.arithmetic.dtype(kind)).reshape(tuple(shape))
        return TensorValue(name, kind, shape, self.session.capture(array, name))


def _is_unknown(extent: Any) -> bool:
    # Whether an extent has a name that only its bound is known of.
    return isinstance(extent, ScalarValue) and isinstance(extent.expr, Read) and extent.expr.tensor.startswith(UNKNOWN)


def declared_shape(shape: Sequence[Extent], evaluator: ExpressionEvaluator, what: str, item: int = 0) -> Pack | None:
    """The extents of an output, a constant or a variable; None where an entry is open (``~`` without a bound).

    Of extents that differ in a pack, ``..z``, those of tensor ``item``.
    """
    found: list[Any] = []
    for extent in shape:
        node = extent.value if extent.value is not None else extent.bound
        if node is None:
            return None
        found.extend(_declared_extents(extent, evaluator.value(node), evaluator, what, item))
    for extent in found:
        if type_of(extent) != "int" or not evaluator.arithmetic.is_size(extent):
            raise DtypeError.at(f"{what}: an extent is {shown(extent)}, not an int", shape[0].span)
        if type(extent) is int and not 0 <= extent <= MOST_CELLS:
            fact = f"{what}: the extent {extent} is {'negative' if extent < 0 else 'too large'}"
            raise ShapeError.at(fact, shape[0].span, f"the shape is {shown(Pack(found))}")
    if len(found) > MOST_ITEMS:
        raise ShapeError.at(f"{what}: {len(found)} axes", shape[0].span)
    return Pack.of(found)


def _declared_extents(
    extent: Extent, value: Any, evaluator: ExpressionEvaluator, what: str, item: int
) -> Sequence[Any]:
    # Those of one entry of a shape; none where it is null.
    if extent.spread and isinstance(value, Pack):
        if item >= len(value):
            raise ShapeError.at(f"{what}: {len(value)} extents for more tensors", extent.span)
        value = value[item]
    if extent.repeats is None:
        if isinstance(value, Pack):
            raise DtypeError.at(f"{what}: an extent is a pack", extent.span, "expand it: `s..`")
        return () if value is None else (value,)
    length = extent.repeats.length
    if length is None:
        if value is not None and not isinstance(value, Pack):
            raise DtypeError.at(f"{what}: `..` behind what is no pack", extent.span)
        return value or ()
    count = evaluator.count(length, "the length of a shape")
    if isinstance(value, Pack):
        if count != len(value):
            raise ShapeError.at(f"{what}: {len(value)} extents for {count} axes", extent.span)
        return value
    if value is None and count:
        raise ShapeError.at(f"{what}: an extent is null", extent.span)
    return (value,) * count


def pack_name(span: Span | None) -> str:
    """What the text calls the pack of which ``span`` is an item."""
    return span.text.partition("[")[0] if span is not None else "a pack"


def declared_tensors(declaration: Declaration, evaluator: ExpressionEvaluator, what: str) -> Any:
    """Tensors of the declared type and shape, one or a pack; None where that is open."""
    given = declaration.type
    kind = evaluator.scope.generic(given.name) or given.name
    length = None if given.pack is None else given.pack.length
    if given.shape is None or (given.pack is not None and length is None):
        return None
    count = 1 if length is None else evaluator.count(length, f"the length of {what}")
    shapes = [declared_shape(given.shape, evaluator, what, k) for k in range(count)]
    found = Pack.of(TensorValue(declaration.name, kind, shape) for shape in shapes if shape is not None)
    return None if None in shapes else found[0] if given.pack is None else found
