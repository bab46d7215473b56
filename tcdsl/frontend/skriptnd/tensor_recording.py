"""Tensors of a graph as tensors of the program: constants, rows, cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcdsl.errors import ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.values import Pack, ScalarValue, TensorValue, shown, type_of
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicSize
from tcdsl.ir.build import index, integer
from tcdsl.ir.expressions import Boundary, ExplicitRange, Read
from tcdsl.ir.program import Access as Cell
from tcdsl.ir.program import Keep, Neutral
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["TensorRecording"]


@dataclass(slots=True)
class TensorRecording:
    """Records tensors in a session; without one nothing is recorded, and shapes and types are all there is."""

    arithmetic: Arithmetic
    session: Session | None

    def same_shape(self, left: Pack, right: Pack, span: Span | None) -> bool:
        """Whether two shapes agree, as far as that is known."""
        if len(left) != len(right):
            return False
        for pair in zip(left, right, strict=True):
            guesses = self.arithmetic.decisions.guesses
            if not self.arithmetic.binary("==", *pair, span) and guesses == self.arithmetic.decisions.guesses:
                return False
        return True

    def recorded(self, value: Any, name: str) -> Any:
        """Constants of rank 0 as tensors of the program, where there is one."""
        if isinstance(value, Pack):
            return Pack.of(self.recorded(each, name) for each in value)
        if value is None or isinstance(value, TensorValue):
            return value
        if isinstance(value, ScalarValue) or type_of(value):
            return TensorValue(name, type_of(value), Pack(), None, value)
        return value

    def written(self, value: Any) -> Any:
        """A tensor that no formula has written is filled with zeros; a constant gets its cell."""
        if isinstance(value, Pack):
            return Pack.of(map(self.written, value))
        if self.session is None or not isinstance(value, TensorValue) or value.tensor is not None:
            return value
        given = value.constant if value.constant is not None else {"bool": False, "int": 0}.get(value.type, 0.0)
        return self.filled(value.name, value.type, value.shape, given)

    def symbols(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors of the program that ``values`` are, one after the other."""
        flat = [each for value in values for each in (value if isinstance(value, Pack) else (value,))]
        return tuple(self.written(each).tensor for each in flat)

    def tensors(self, values: Sequence[Any], symbols: Sequence[Any]) -> list[Any]:
        """``values`` with other tensors of the program, those that `symbols` has of others like them."""
        flat = iter(symbols)

        def made(value: TensorValue) -> TensorValue:
            return TensorValue(value.name, value.type, value.shape, next(flat))

        return [Pack.of(map(made, value)) if isinstance(value, Pack) else made(value) for value in values]

    def scalar(self, value: TensorValue) -> TensorValue:
        """The only cell of a tensor, as one of rank 0."""
        if self.session is None or not value.shape:
            made: TensorValue = self.written(value)
            return made
        builder = self.session.builder
        tensor = self.written(value).tensor
        dtype = self.arithmetic.dtype(value.type)
        cells = (integer(0),) * len(value.shape)
        sketch = Sketch(
            target=Cell(builder.fresh_name(value.name), ()),
            dtype=dtype,
            extents=(),
            mode="declared",
            accumulate="assign",
            start=Neutral(),
            value=Read(tensor.name, cells, (Boundary.SKIP,) * len(cells), dtype),
            variables=(),
            label=value.name,
        )
        return TensorValue(value.name, value.type, Pack(), builder.record(sketch, value.name))

    def count(self, value: Any) -> Any:
        """A number of rounds, as the loops of the program take it."""
        if isinstance(value, TensorValue):
            return self.scalar(value).tensor
        if isinstance(value, ScalarValue):
            assert self.session is not None
            return SymbolicSize(self.session.builder, value.expr)
        return value

    def number(self, number: Any) -> TensorValue:
        """The number of a round as a tensor."""
        return self.filled("index", "int", Pack(), ScalarValue(number.expr, "int", True))

    def stacked(self, pack: Pack, span: Span | None) -> TensorValue:
        """The tensors of a pack one behind the other."""
        assert self.session is not None
        first = pack[0]
        for each in pack:
            if not self.same_shape(each.shape, first.shape, span):
                raise ShapeError.at("a loop on data scans tensors of several shapes", span)
        shape = Pack.of((len(pack), *first.shape))
        made = TensorValue(first.name, first.type, shape)
        for k, each in enumerate(pack):
            variables = [f"i{axis}" for axis in range(len(first.shape))]
            cells = tuple(map(index, variables))
            source = self.written(each).tensor
            dtype = self.arithmetic.dtype(first.type)
            read = Read(source.name, cells, (Boundary.SKIP,) * len(cells), dtype)
            made = self._stored(made, (integer(k), *cells), variables, first.shape, read)
        return made

    def row(self, stack: TensorValue, position: ScalarValue) -> TensorValue:
        """One of the tensors of `stacked`."""
        shape = Pack.of(stack.shape[1:])
        variables = [f"i{axis}" for axis in range(len(shape))]
        cells = (position.expr, *map(index, variables))
        assert stack.tensor is not None
        dtype = self.arithmetic.dtype(stack.type)
        read = Read(stack.tensor.name, cells, (Boundary.SKIP,) * len(cells), dtype)
        made = TensorValue(stack.name, stack.type, shape)
        return self._stored(made, tuple(map(index, variables)), variables, shape, read)

    def _stored(
        self, into: TensorValue, target: tuple[Any, ...], variables: Sequence[str], extents: Sequence[Any], value: Any
    ) -> TensorValue:
        assert self.session is not None
        builder, known = self.session.builder, into.tensor
        ends = tuple(map(self.arithmetic.size, extents))
        sketch = Sketch(
            target=Cell(builder.fresh_name(into.name), target),
            dtype=self.arithmetic.dtype(into.type),
            extents=tuple(map(self.arithmetic.size, into.shape)),
            mode="declared",
            accumulate="assign",
            start=Neutral() if known is None else Keep(known.name),
            value=value,
            variables=tuple(variables),
            ranges=tuple(ExplicitRange(each, integer(0), end) for each, end in zip(variables, ends, strict=True)),
            label=into.name,
            previous="" if known is None else known.name,
        )
        made = builder.record(sketch, into.name)
        builder.all_written(made.name)
        return TensorValue(into.name, into.type, into.shape, made)

    def filled(self, name: str, kind: str, shape: Pack, value: Any) -> TensorValue:
        """A tensor of one value."""
        if self.session is None:
            return TensorValue(name, kind, shape, None, value if not shape else None)
        builder = self.session.builder
        dtype = self.arithmetic.dtype(kind)
        variables = [f"i{axis}" for axis in range(len(shape))]
        extents = tuple(map(self.arithmetic.size, shape))
        sketch = Sketch(
            target=Cell(builder.fresh_name(name), tuple(map(index, variables)), None),
            dtype=dtype,
            extents=extents,
            mode="declared",
            accumulate="assign",
            start=Neutral(),
            value=self.arithmetic.data(value),
            variables=tuple(variables),
            ranges=tuple(ExplicitRange(each, integer(0), end) for each, end in zip(variables, extents, strict=True)),
            label=name,
        )
        return TensorValue(name, kind, shape, builder.record(sketch, name), value if not shape else None)

    def table(self, name: str, kind: str, shape: Pack, values: Pack, span: Span | None) -> TensorValue:
        """A constant tensor of values in row-major order."""
        import numpy as np

        volume = 1
        for each in shape:
            if type(each) is not int:
                raise ShapeError.at(f"the extents of the constant `{name}` depend on the call", span)
            volume *= each
        if volume != len(values) or not all(type_of(each) == kind for each in values):
            fact = f"the constant `{name}` of shape {shown(shape)} has {volume} cells of type {kind}"
            raise ShapeError.at(f"{fact}, and is given {len(values)} values of type {type_of(values)}", span)
        if self.session is None:
            return TensorValue(name, kind, shape)
        array = np.array(values, self.arithmetic.dtype(kind)).reshape(tuple(shape))
        return TensorValue(name, kind, shape, self.session.capture(array, name))
