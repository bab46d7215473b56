"""Shapes of three rows, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.rows.inference.variables.origin import Origin, Reason
from tcdsl.rows.inference.variables.row import MOST_AXES, Dimension, Row, RowOwner, RowVariable, known_dimension
from tcdsl.tracebacks import NamesTold

__all__ = ["Axis", "Shape", "known", "number", "parameter", "scalar"]

Axis = int | tuple[str, int]
"""A size, or a label and a size: ``3`` or ``("channel", 3)``."""


@dataclass(frozen=True, slots=True)
class Shape(NamesTold):
    """``batch | input -> output``: ``known((16,), input=(2,), batch=(100,))`` prints as ``100 | 2 -> 16``.

    Rows change while constraints are added: what is read here is what is known by now. ``name`` is for messages.
    """

    batch: Row
    input: Row
    output: Row
    name: str = ""

    @property
    def rows(self) -> tuple[Row, Row, Row]:
        """In the order ``batch``, ``input``, ``output``, in which specs write them."""
        return self.batch, self.input, self.output

    @property
    def is_known(self) -> bool:
        """Whether all sizes are known."""
        return self.batch.is_known and self.input.is_known and self.output.is_known

    @property
    def sizes(self) -> tuple[int, ...]:
        """All sizes, in the order of storage: batch, output, input. `ValueError` while some are not known."""
        return (*self.batch.sizes, *self.output.sizes, *self.input.sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is known, without the constraints that it came from.
        rows = [[(axis.root.size, axis.root.label, axis.root.weak) for axis in row.axes] for row in self.rows]
        if not self.is_known:
            raise TypeError(f"the shape {self} cannot be pickled: not all of its sizes are known")
        return _rebuilt, (rows, self.name)

    def __str__(self) -> str:
        text = str(self.output)
        if not (self.input.closed and not self.input.axes):
            text = f"{self.input} -> {text}"
        if not (self.batch.closed and not self.batch.axes):
            text = f"{self.batch} | {text}"
        return text

    def __repr__(self) -> str:
        return f"<Shape {self}>"


def known(
    output: Sequence[Axis | None] = (),
    input: Sequence[Axis | None] = (),
    batch: Sequence[Axis | None] = (),
    *,
    name: str = "",
    origin: Origin | None = None,
) -> Shape:
    """The shape of data: ``known((16,), input=(2,))``; None stands for a size that nobody has said yet.

    `ShapeError` for negative sizes, and for too many axes.
    """
    rows = {"batch": batch, "input": input, "output": output}
    made = [_row(row, sizes, name, origin) for row, sizes in rows.items()]
    return Shape(made[0], made[1], made[2], name)


def _rebuilt(rows: Sequence[Sequence[tuple[int, str | None, bool]]], name: str) -> Shape:
    made = []
    for row, axes in zip(("batch", "input", "output"), rows, strict=True):
        reasons = [Reason(row, place, name) for place in reversed(range(len(axes)))]
        dimensions = [
            known_dimension(size, reason, None if label is None else (label, reason), weak=weak)
            for (size, label, weak), reason in zip(axes, reasons, strict=True)
        ]
        made.append(Row((), None, tuple(dimensions)))
    return Shape(made[0], made[1], made[2], name)


def number(name: str = "") -> Shape:
    """The shape of a number: one output axis of size 1.

    It stretches to whatever it meets, and determines a parameter only where nothing else does: in
    ``0.5 * ("w" @ x) + "b"[16]`` the output axis of w is 16, and in ``2 * "a"`` that of a is 1.
    """
    none = Row(fallback=0)
    return Shape(none, none, Row((), None, (known_dimension(1, Reason("output", 0, name), weak=True),)), name)


def scalar(name: str = "") -> Shape:
    """The shape of a Python number among tensors: no axes, so that it adds none.

    Where nothing else determines what it meets, that is one output axis of size 1, as for `number`.
    """
    none = Row(fallback=0)
    return Shape(none, none, Row(fallback=1), name)


def parameter(
    name: str,
    output: Sequence[Axis | None] | None = None,
    input: Sequence[Axis | None] | None = None,
    *,
    origin: Origin | None = None,
) -> Shape:
    """The shape of a parameter, of which inference finds the rows, and the sizes in them, that are not given.

    Parameters have no batch axes. If the output axes are given, no input axes are needed: they are found where the
    parameter is composed with something, and else there are none.
    """
    optional = output is not None
    rows = []
    for row, sizes in (("input", input), ("output", output)):
        if sizes is None:
            whole = RowVariable()
            whole.owners = (RowOwner(name, row, Row((), whole), optional and row == "input", origin),)
            rows.append(Row((), whole))
        else:
            made = _row(row, sizes, name, origin)
            for axis in made.trailing:
                if not axis.fixed:
                    axis.owners = (RowOwner(name, row, made, False, origin),)
            rows.append(made)
    return Shape(Row(), rows[0], rows[1], name)


def _row(row: str, sizes: Sequence[Axis | None], name: str, origin: Origin | None) -> Row:
    span = origin.span if origin is not None else None
    of = f" of `{name}`" if name else ""
    if len(sizes) > MOST_AXES:
        fact = f"the {row} row{of} has {len(sizes)} axes, and the most that there can be is {MOST_AXES}"
        raise Diagnostic(ShapeError, fact, span).error()
    axes = []
    for place, given in enumerate(sizes):
        if given is None:
            axes.append(Dimension())
            continue
        reason = Reason(row, len(sizes) - 1 - place, name)
        label, size = given if isinstance(given, tuple) else (None, given)
        if index(size) < 0:
            fact = f"the size of an axis is not negative, but {reason} is given as {size}"
            raise Diagnostic(ShapeError, fact, span).error()
        axes.append(known_dimension(index(size), reason, None if label is None else (label, reason)))
    return Row((), None, tuple(axes))
