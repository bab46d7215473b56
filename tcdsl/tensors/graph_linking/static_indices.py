"""Static indices: numbers of a run that choose a part of the data, such as the number of a minibatch.

::

    batch_n = tc.static_index("batch_n", 10)
    x = data[batch_n]                    # data: 10, 100 | -> 2;  x: 100 | -> 2
    step = tc.compile(tc.train.grad_update(loss(x)))
    step.run(batch_n=3)

Their range is known before a run, so reads at them need no check while it runs. A program with a check that may fail
computes everything that it writes aside, and copies it at the end; ``data[batch_n]`` alone does not make it such a one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DataIndexError
from tcdsl.ir.expressions import Boundary, Cast, Constant, Expr, Read, is_affine_index, transform
from tcdsl.ir.program import Program, Statement, map_statement
from tcdsl.rows.inference import known
from tcdsl.tensors.graphs.initialization import Filled
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor, shown_memory, tick
from tcdsl.tracebacks import user_facing

__all__ = ["StaticIndex", "static_index", "without_checks"]


class StaticIndex(Tensor):
    """An integer from 0 to ``size - 1``, set by ``routine.run(batch_n=3)`` or ``batch_n.value = 3``."""

    __slots__ = ("extent",)

    def __init__(self, name: str, size: int) -> None:
        super().__init__((name,), known(), "int64", initial=Filled(0))
        self.extent = size

    def checked(self, number: object) -> int:
        """``number`` as a position. `DataIndexError` if out of range, `ConfigurationError` if it is no integer."""
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise fault(ConfigurationError, f"the static index `{self.label}` is an integer, not {number!r}")
        if not 0 <= number < self.extent:
            raise fault(
                DataIndexError,
                f"the static index `{self.label}` = {number} is out of range",
                f"it runs from 0 to {self.extent - 1}",
            )
        return int(number)

    value = shown_memory("value", "The position, as an array of rank 0; assigning checks its range.")

    def _store(self, kind: str, array: Any) -> None:
        if kind == "value":
            self.set(array)
        else:
            super()._store(kind, array)

    def set(self, number: object) -> None:
        """Take a number, as `checked`."""
        position = self.checked(number)
        buffer = self.buffer("value")
        buffer.allocated()[()] = position
        buffer.clock = tick()


@user_facing
def static_index(name: str, size: int) -> StaticIndex:
    """``batch_n = tc.static_index("batch_n", 10)``: an index from 0 to 9, 0 until it is set.

    ``data[batch_n]`` (in the literal spelling ``data @| batch_n``) is the part of the leading axis at that position.
    `ConfigurationError` unless ``name`` is an identifier and ``size`` an integer above 0.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise fault(
            ConfigurationError,
            f"tc.static_index({name!r}): the name of a static index is an identifier",
            'write tc.static_index("batch_n", size); run(batch_n=...) sets it',
        )
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise fault(
            ConfigurationError,
            f"tc.static_index({name!r}, {size!r}): a size is an integer above 0",
            "give the number of positions, such as the number of minibatches",
        )
    return StaticIndex(name, int(size))


def without_checks(program: Program, extents: Mapping[str, int]) -> Program:
    """``program`` without checks of the inputs in ``extents``: names, and what each input is at least 0 and below of.

    Where an axis is shorter than that the check stays.
    """
    if not extents:
        return program
    shapes = {tensor.name: tensor.shape for tensor in (*program.inputs, *program.tensors)}

    def within(index: Expr, axis: Expr) -> bool:
        while isinstance(index, Cast):
            index = index.operand
        known = isinstance(index, Read) and not index.indices and index.tensor in extents
        return known and isinstance(axis, Constant) and int(axis.value) >= extents[index.tensor]  # type: ignore[union-attr]

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or Boundary.CHECK not in node.boundaries:
            return node
        axes = zip(node.indices, node.boundaries, shapes[node.tensor], strict=True)
        boundaries = tuple(
            Boundary.CLAMP if boundary is Boundary.CHECK and within(index, axis) else boundary
            for index, boundary, axis in axes
        )
        return replace(node, boundaries=boundaries)

    def changed(statement: Statement) -> Statement:
        made = map_statement(statement, lambda expr: transform(expr, rule))
        target = made.target
        data = [
            (index, axis)
            for index, axis in zip(target.indices, shapes[target.tensor], strict=True)
            if not is_affine_index(index)
        ]
        if data and made.oob == "check" and all(within(index, axis) for index, axis in data):
            made = replace(made, oob="clamp")
        return made

    return replace(program, statements=tuple(map(changed, program.statements)))
