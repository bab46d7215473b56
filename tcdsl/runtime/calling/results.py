"""What a function returns while it is staged: tensors of its own, and the structure around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.running_loops.run_time_checks import passed
from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, walk
from tcdsl.runtime.calling.structure import Structure, flatten
from tcdsl.span import Span

__all__ = ["as_tensor", "copied", "filled", "returned", "returned_if_passed", "staged_leaves"]

_KINDS = SymbolicArray | SymbolicNumber | SymbolicSize | np.ndarray | Unwritten | DeclaredTarget | PointValue


def staged_leaves(result: Any) -> tuple[list[Any], Structure]:
    """The arrays and numbers of the program in nested tuples, lists and dicts, and the structure around them."""
    return flatten(result, lambda value: isinstance(value, _KINDS))


def as_tensor(session: Session, value: Any, label: str) -> SymbolicTensor:
    """An array or a number as a tensor of the program."""
    if isinstance(value, PendingArray):
        return value.materialize(label)
    if isinstance(value, np.ndarray):
        return session.capture(value, label)
    return value if isinstance(value, SymbolicTensor) else copied(session, value, label)


def copied(session: Session, value: Any, label: str) -> SymbolicTensor:
    """An array or a number as a tensor of the program that is nothing else."""
    element, extents = element_of(value, session)
    return record_elementwise(session, element, extents, label)


def filled(session: Session, number: float, dtype: str, extents: Sequence[Expr], label: str) -> SymbolicTensor:
    """A new tensor of the program with ``number`` in every cell."""
    value = Value(constant(number, compute_dtype(dtype)), None, dtype)
    return record_elementwise(session, value, tuple(extents), label)


def returned(session: Session, result: Any, name: str, begin: int = 0) -> tuple[list[str], Structure]:
    """The names of the returned tensors, each one a tensor of its own, and the structure around them.

    What the statements before ``begin`` have made counts as given to the function, like its inputs.
    """
    leaves, structure = staged_leaves(result)
    names: list[str] = []
    leaves = [_stored(session, leaf, name) if isinstance(leaf, PendingArray) else leaf for leaf in leaves]
    recording = session.builder.recording
    made = {statement.target.tensor for statement in recording.statements[begin:]}
    made.update(name for repeat in recording.repeats for name in repeat.results)
    for leaf in leaves:
        if isinstance(leaf, PointValue):
            raise DslSyntaxError.at(
                "a local definition is a scalar at each point, not an array", leaf.span, "store it first: `y[i] = z`"
            )
        if not isinstance(leaf, SymbolicTensor) or leaf.name not in made or leaf.name in names:
            # A returned input, number, or second copy of an output is an array of its own.
            with session.located(_place(leaf)):
                leaf = copied(session, leaf, getattr(leaf, "label", name))
        names.append(leaf.name)
    return names, structure


def _stored(session: Session, array: PendingArray, name: str) -> SymbolicTensor:
    with session.located(_place(array)):
        return array.materialize(name)


def _place(value: Any) -> Span | None:
    # Where a value was computed that has no statement when the function has ended.
    expr = value.element.expr if isinstance(value, PendingArray) else getattr(value, "expr", None)
    return None if expr is None else next((node.span for node in walk(expr) if node.span is not None), None)


def returned_if_passed(session: Session, result: Any, name: str) -> tuple[list[str], Structure]:
    """What `returned` gives, where all checks of the user's have passed."""
    names, structure = returned(session, result, name)
    builder = session.builder
    tensors = [builder.tensor(each) for each in names]
    results = [SymbolicTensor(builder, each.name, each.dtype, each.shape, each.label) for each in tensors]
    return [each.name for each in passed(session, results)], structure
