"""Sizes at the call: binding them to the extents of the arrays given, and checking what must hold of them.

::

    bind_sizes(program, [(3, 4), (4, 5)])      # {"N": 3, "K": 4, "B_0": 4, "M": 5}

`SizePlan` is the same for many calls: expressions become one Python function, and a call that is in order costs a few
microseconds. Only where something fails are messages made.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcdsl.errors import RAISED, Diagnostic, ShapeError, TcdslError, raise_diagnostics, raised_by_user
from tcdsl.ir.expressions import Constant, Expr, SizeValue, size_names, walk
from tcdsl.ir.program import Assertion, AxisExtent, Program, Tensor
from tcdsl.ir.sizes.faulty_rounds import at_positions, first_faulty_round
from tcdsl.ir.sizes.loop_sizes import assertions_with_loops
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.ir.sizes.size_functions import SizeFunction
from tcdsl.ir.sizes.spoken_sizes import error_in_words, spoken_in
from tcdsl.ir.text.printer import format_expr, format_tensor
from tcdsl.recent import Recent

__all__ = ["BoundSizes", "SizePlan", "bind_sizes", "evaluate_size", "largest_of", "plan_of"]

Sizes = Mapping[str, int]


@lru_cache(maxsize=1024)
def _size_function(expr: Expr) -> Callable[[Sizes], Any]:
    names = sorted(size_names(expr))
    code = SizeCode(names)
    function = code.function(code.value(expr))
    return lambda sizes: function(*[sizes[name] for name in names])


def evaluate_size(expr: Expr, sizes: Sizes) -> int:
    """``evaluate_size(apply("add", size("N"), integer(1)), {"N": 4})`` is 5, without overflow.

    Raises ``ZeroDivisionError`` where ``//`` or ``%`` divides by zero and ``KeyError`` for a size that is not given.
    ``TypeError`` if ``expr`` reads tensors or index variables.
    """
    match expr:
        case Constant(value=value):
            return int(value)
        case SizeValue(name=name):
            return sizes[name]
    return int(_size_function(expr)(sizes))


class BoundSizes(dict[str, int]):
    """The sizes of one call, and the largest of their absolute values."""

    largest = 0


def largest_of(sizes: Sizes) -> int:
    """The largest absolute value of ``sizes``, which `SizePlan.bind` has noted."""
    return sizes.largest if isinstance(sizes, BoundSizes) else max(map(abs, sizes.values()), default=0)


class SizePlan:
    """``SizePlan(program).bind(shapes)``: the sizes of one call, by name, with everything checked.

    The checks, in this order: ranks, assertions, extents of all tensors non-negative, shapes of the inputs as declared.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._ranks = [len(tensor.shape) for tensor in program.inputs]
        self._names = [size.name for size in program.sizes]
        self.written = _written(program)
        self._values = self.written.bound()
        rank = max((len(tensor.shape) for tensor in program.tensors), default=0)
        parts = (part for tensor in program.tensors for extent in tensor.shape for part in walk(extent))
        constant = max((abs(int(each.value)) for each in parts if isinstance(each, Constant)), default=0)
        # Words of 64 bits hold whatever is made of sizes below this one.
        limit = math.ceil(2 ** (56 / max(rank, 1)))
        self.harmless = limit if constant < limit else 0

    def bind(self, shapes: Sequence[tuple[int, ...]]) -> BoundSizes:
        """The value of every size, for inputs of these shapes. Raises `ShapeError` for all faults of one kind."""
        if [len(shape) for shape in shapes] != self._ranks:
            raise_diagnostics(self._rank_faults(shapes))
        try:
            found = self._values(shapes)
        except ZeroDivisionError:
            found = None
        if found is None:
            self._explain(shapes)
        values, largest = found
        sizes = BoundSizes(zip(self._names, values, strict=True))
        sizes.largest = largest
        if largest >= self.harmless:
            try:
                raise_diagnostics(self._overflows(sizes))
            except TcdslError as error:
                error_in_words(error, spoken_in(self.program))
                raise
        return sizes

    def values(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], int] | None:
        """The values of all sizes in order, and the largest of their absolute values, where nothing is unusual."""
        try:
            found: tuple[tuple[int, ...], int] | None = self._values(shapes)
        except (ZeroDivisionError, IndexError):
            return None
        return None if found is None or found[1] >= self.harmless else found

    def _rank_faults(self, shapes: Sequence[tuple[int, ...]]) -> list[Diagnostic]:
        inputs = self.program.inputs
        if len(shapes) != len(inputs):
            fact = f"{self.program.name} takes {len(inputs)} arrays, not {len(shapes)}"
            return [Diagnostic(ShapeError, fact, notes=tuple(map(format_tensor, inputs)))]
        return [
            Diagnostic(
                ShapeError,
                f"{_label(tensor)} has {len(tensor.shape)} axes, but the array given has {len(shape)}",
                tensor.span,
                (format_tensor(tensor), f"given: {tuple(shape)}"),
            )
            for tensor, shape in zip(inputs, shapes, strict=True)
            if len(tensor.shape) != len(shape)
        ]

    def _explain(self, shapes: Sequence[tuple[int, ...]]) -> None:
        try:
            self._raise(shapes)
        except TcdslError as error:
            error_in_words(error, spoken_in(self.program))
            raise

    def _raise(self, shapes: Sequence[tuple[int, ...]]) -> None:
        # Something does not hold: find out what, and raise.
        sizes, faults = self._bound_with_faults(shapes)
        for assertion in assertions_with_loops(self.program):
            if faults and not assertion.message:
                continue  # what a loop asks of it: that has been said
            if size_names(assertion.condition) <= sizes.keys() and not _holds(assertion.condition, sizes):
                rounds = first_faulty_round(self.program, sizes, assertion.span)
                faults.append(_unmet(assertion, sizes, at_positions(rounds)))
        raise_diagnostics(faults)
        for tensor in (*self.program.inputs, *self.program.tensors):
            try:
                shape = _shape(tensor, sizes)
            except ZeroDivisionError:
                faults.append(_shape_fault(f"the shape of {_label(tensor)} divides by zero", tensor, sizes))
                continue
            if any(extent < 0 for extent in shape):
                fact = f"{_label(tensor)} would have a negative extent: its shape is {shape}"
                faults.append(_shape_fault(fact, tensor, sizes))
        raise_diagnostics(faults)
        for tensor, given in zip(self.program.inputs, shapes, strict=True):
            shape = _shape(tensor, sizes)
            if shape != tuple(given):
                fact = f"{_label(tensor)} has shape {tuple(given)}, but {shape} is needed"
                faults.append(_shape_fault(fact, tensor, sizes))
        raise_diagnostics(faults)

    def _overflows(self, sizes: Sizes) -> list[Diagnostic]:
        faults = []
        for size in self.program.sizes:
            value = sizes[size.name]
            if not -(2**63) <= value < 2**63 and not isinstance(size.source, AxisExtent):
                fact = f"the size {format_expr(size.source)} is {value}, which does not fit into 64 bits"
                faults.append(Diagnostic(ShapeError, fact, notes=(_values((size.source,), sizes),)))
        for tensor in self.program.tensors:
            shape = _shape(tensor, sizes)
            if math.prod(max(extent, 1) for extent in shape) * np.dtype(tensor.dtype).itemsize >= 2**63:
                fact = f"{_label(tensor)} would have the shape {shape}, which is larger than an array can be"
                faults.append(_shape_fault(fact, tensor, sizes))
        return faults

    def _bound_with_faults(self, shapes: Sequence[tuple[int, ...]]) -> tuple[dict[str, int], list[Diagnostic]]:
        sizes: dict[str, int] = {}
        faults: list[Diagnostic] = []
        positions = {tensor.name: k for k, tensor in enumerate(self.program.inputs)}
        for size in self.program.sizes:
            if isinstance(size.source, AxisExtent):
                sizes[size.name] = shapes[positions[size.source.tensor]][size.source.axis]
            elif size_names(size.source) <= sizes.keys():
                try:
                    sizes[size.name] = evaluate_size(size.source, sizes)
                except ZeroDivisionError:
                    fact = f"the size {format_expr(size.source)} divides by zero"
                    faults.append(Diagnostic(ShapeError, fact, notes=(_values((size.source,), sizes),)))
        return sizes, faults


def _written(program: Program) -> SizeFunction:
    # From the shapes of the inputs to the values of all sizes and the largest of their absolute values, or to None if
    # something does not hold.
    positions = {tensor.name: k for k, tensor in enumerate(program.inputs)}
    from_axes = {size.name: size.source for size in program.sizes if isinstance(size.source, AxisExtent)}
    code = SizeCode([])
    for name, source in from_axes.items():
        code.define(name, f"shapes[{positions[source.tensor]}][{source.axis}]")
    for size in program.sizes:
        if not isinstance(size.source, AxisExtent):
            code.define(size.name, f"int({code.value(size.source)})")
    values = [code.size(size.name) for size in program.sizes]
    assertions = assertions_with_loops(program) if program.repeats else program.assertions
    checks = [code.value(assertion.condition) for assertion in assertions]
    extents = dict.fromkeys(extent for tensor in (*program.inputs, *program.tensors) for extent in tensor.shape)
    checks += [f"{code.value(extent)} >= 0" for extent in extents if not _never_negative(extent, from_axes)]
    checks += [
        f"shapes[{position}][{axis}] == {code.value(extent)}"
        for position, tensor in enumerate(program.inputs)
        for axis, extent in enumerate(tensor.shape)
        if not (isinstance(extent, SizeValue) and from_axes.get(extent.name) == AxisExtent(tensor.name, axis))
    ]
    absolute = [
        value if size.name in from_axes else f"abs({value})" for size, value in zip(program.sizes, values, strict=True)
    ]
    found = f"({''.join(f'{value}, ' for value in values)}), max(0, 0, {', '.join(absolute)})"
    return code.written(f"({found}) if {' and '.join(checks)} else None" if checks else found, "shapes")


def _never_negative(extent: Expr, from_axes: Mapping[str, AxisExtent]) -> bool:
    # Quotients are evaluated in any case, because they may divide by zero.
    if isinstance(extent, Constant):
        return extent.value >= 0
    return isinstance(extent, SizeValue) and extent.name in from_axes


def _holds(condition: Expr, sizes: Sizes) -> bool:
    try:
        return bool(_size_function(condition)(sizes))
    except ZeroDivisionError:
        return False


def _unmet(assertion: Assertion, sizes: Sizes, notes: tuple[str, ...]) -> Diagnostic:
    if assertion.message.startswith(RAISED):
        return raised_by_user(assertion.message, assertion.span, notes)
    message = assertion.message or f"{format_expr(assertion.condition, 'bool')} does not hold"
    fact, _, hint = _filled(message, sizes).partition("\n")
    return Diagnostic(ShapeError, fact, assertion.span, notes, hint)


def _filled(message: str, sizes: Sizes) -> str:
    # {N} becomes its value; other braces stay.
    return re.sub(r"\{(\w+)\}", lambda found: str(sizes.get(found[1], found[0])), message)


def _shape(tensor: Tensor, sizes: Sizes) -> tuple[int, ...]:
    return tuple(evaluate_size(extent, sizes) for extent in tensor.shape)


def _shape_fault(fact: str, tensor: Tensor, sizes: Sizes) -> Diagnostic:
    return Diagnostic(ShapeError, fact, tensor.span, (format_tensor(tensor), _values(tensor.shape, sizes)))


def _label(tensor: Tensor) -> str:
    return tensor.label or tensor.name


def _values(exprs: Sequence[Expr], sizes: Sizes) -> str:
    used = sorted({name for expr in exprs for name in size_names(expr)})
    return ", ".join(f"{name} = {sizes[name]}" for name in used)


# By the identity of the program: equal ones may stand at other places, which errors tell.
_PLANS: Recent[int, SizePlan] = Recent(100)


def plan_of(program: Program) -> SizePlan:
    """A `SizePlan` that is kept for the next time that the same program is asked for."""
    found = _PLANS.get(id(program))
    if found is None or found.program is not program:
        found = _PLANS[id(program)] = SizePlan(program)
    return found


def bind_sizes(program: Program, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """``bind_sizes(matmul, [(3, 4), (4, 5)])``: the value of every size of ``program`` for inputs of these shapes.

    Raises `ShapeError`: an assertion fails (all that fail are reported), a tensor would have a negative extent, or an
    input has another shape than declared.
    """
    return plan_of(program).bind(shapes)
