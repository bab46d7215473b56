"""The reference interpreter: a program, executed point by point.

::

    interpret(matmul, [A, B]).outputs[0]

It does what the nodes say, in the order in which they stand, in float64, with none of what lowering does: slow,
obvious, and what everything else is compared with. It shares range inference with the compiler, so it says nothing
about that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DtypeError, ShapeError, raise_diagnostics
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.dtypes import same_kind
from tcdsl.ir.expressions import Boundary, Expr, is_affine_index
from tcdsl.ir.interpreter.expression_evaluation import Frame, PointEvaluator, working_dtype
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Program, Statement, Tensor
from tcdsl.ir.sizes.size_binding import SizePlan, evaluate_size

__all__ = ["Interpretation", "interpret"]


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What a program computed: its outputs in order, and for each input that it updates, the new array."""

    outputs: list[np.ndarray]
    updates: dict[str, np.ndarray]


def interpret(program: Program, inputs: Sequence[Any]) -> Interpretation:
    """``interpret(program, [A, B])``: run ``program`` on arrays, which it does not change.

    Floats are computed in float64 and rounded to their declared type only in the results; an input that is declared as
    one floating type may be given as another. Raises `ShapeError` as `tcdsl.ir.sizes.size_binding.SizePlan` does, or
    where a statement that promises to write each cell once does not; `DtypeError` for arrays of another kind;
    `DataIndexError` for indices read from data.
    """
    given = [np.asarray(array) for array in inputs]
    sizes = SizePlan(program).bind([array.shape for array in given])
    _check_types(program, given)
    arrays = {
        tensor.name: array.astype(working_dtype(tensor.dtype))
        for tensor, array in zip(program.inputs, given, strict=True)
    }
    with np.errstate(all="ignore"):
        for statement in program.statements:
            arrays[statement.target.tensor] = _run(program, statement, arrays, sizes)
        return Interpretation(
            [arrays[name].astype(program.tensor(name).dtype) for name in program.outputs],
            {name: arrays[new].astype(program.tensor(name).dtype) for name, new in program.updates},
        )


def _check_types(program: Program, given: Sequence[np.ndarray]) -> None:
    raise_diagnostics(
        [
            Diagnostic(
                DtypeError,
                f"{tensor.label or tensor.name} is declared as {tensor.dtype}, but the array given is {array.dtype}",
                tensor.span,
            )
            for tensor, array in zip(program.inputs, given, strict=True)
            if not same_kind(str(array.dtype), tensor.dtype)
        ]
    )


def _run(
    program: Program, statement: Statement, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> np.ndarray:
    """The tensor that ``statement`` makes."""
    tensor = program.tensor(statement.target.tensor)
    labels = {each.name: each.label or each.name for each in (*program.inputs, *program.tensors)}
    cells = _started(statement, tensor, arrays, sizes, labels)
    # The statement cannot read its own target: that is a new tensor. It is listed for error messages only.
    seen = {**arrays, tensor.name: cells}
    point = PointEvaluator(statement.domain.variables, sizes, seen, labels, statement.span)
    target = _target(statement, cells, point)
    condition = None if statement.condition is None else point.function(statement.condition)
    value = point.function(statement.value)
    combine = _combination(statement.accumulate, tensor.dtype)
    frame = point.frame()
    written: dict[tuple[int, ...], tuple[int, ...]] = {}
    for indices in statement.domain.points(sizes):
        frame[: len(indices)] = [np.int64(index) for index in indices]
        if condition is not None and not condition(frame):
            continue
        cell = target(frame)
        if cell is None:
            continue
        if statement.unique and written.setdefault(cell, indices) != indices:
            raise _written_twice(statement, labels[tensor.name], cell, written[cell], indices)
        cells[cell] = combine(cells[cell], value(frame))
    return cells


def _started(
    statement: Statement,
    tensor: Tensor,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    labels: Mapping[str, str],
) -> np.ndarray:
    """The target before its first point."""
    shape = tuple(evaluate_size(extent, sizes) for extent in tensor.shape)
    match statement.start:
        case Keep(tensor=earlier):
            return arrays[earlier].copy()
        case Fill(value=value):
            start = PointEvaluator((), sizes, arrays, labels, statement.span)
            fill = start.function(value)
            return np.full(shape, fill(start.frame()), working_dtype(tensor.dtype))
        case _:
            return np.full(shape, neutral_element(statement.accumulate, tensor.dtype), working_dtype(tensor.dtype))


def _combination(accumulate: str, dtype: str) -> Callable[[Any, Any], Any]:
    if accumulate == "assign":
        return lambda old, new: new
    evaluate = PRIMITIVES[ACCUMULATORS[accumulate].primitive].evaluate
    scalar = np.dtype(working_dtype(dtype)).type
    return lambda old, new: scalar(evaluate(old, new))


def _target(
    statement: Statement, cells: np.ndarray, point: PointEvaluator
) -> Callable[[Frame], tuple[int, ...] | None]:
    """The cell that a point writes; None where a data index out of range leaves the point out."""
    access = statement.target
    axes = [(axis, point.index(index), _on_target(statement, index)) for axis, index in enumerate(access.indices)]

    def cell(frame: Frame) -> tuple[int, ...] | None:
        positions = []
        for axis, index, boundary in axes:
            position, extent = index(frame), cells.shape[axis]
            if not 0 <= position < extent:
                if boundary is Boundary.FILL:
                    return None
                if boundary is not Boundary.CLAMP or extent == 0:
                    span = access.span or statement.span
                    raise point.out_of_range(access.tensor, axis, position, boundary, frame, span)
                position = min(max(position, 0), extent - 1)
            positions.append(position)
        return tuple(positions)

    return cell


def _on_target(statement: Statement, index: Expr) -> Boundary:
    # An affine index is in range by the domain; FILL stands for leaving the point out.
    if is_affine_index(index):
        return Boundary.SKIP
    return {"check": Boundary.CHECK, "skip": Boundary.FILL, "clamp": Boundary.CLAMP}[statement.oob]


def _written_twice(
    statement: Statement, label: str, cell: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> Exception:
    names = statement.domain.variables
    places = [", ".join(f"{name} = {value}" for name, value in zip(names, at, strict=True)) for at in (first, second)]
    return Diagnostic(
        ShapeError,
        f"{label}[{', '.join(map(str, cell))}] is written twice by an assignment that promises unique cells",
        statement.span,
        (f"first at {places[0]}, again at {places[1]}",),
        "write an accumulator such as += or >>=, or make the indices unique",
    ).error()
