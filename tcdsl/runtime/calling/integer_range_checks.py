"""Run-time integers that a program converts to a narrower type must fit there, as Python's integers must in NumPy 2.

``x + n`` with int8 cells and ``n=300`` is an error at the call, not a sum modulo 256.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcdsl.errors import Diagnostic, DtypeError
from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Read, SizeValue, children, walk
from tcdsl.ir.interpreter.point_values import PointValues
from tcdsl.ir.program import Program, statement_expressions
from tcdsl.span import Span

__all__ = ["NarrowedInteger", "check_narrowed", "narrowed_integers"]


@dataclass(frozen=True, slots=True)
class NarrowedInteger:
    """An expression of run-time integers and sizes, and the integer type that it is converted to."""

    value: Expr
    dtype: str
    span: Span | None


def narrowed_integers(program: Program, numbers: Collection[str]) -> tuple[NarrowedInteger, ...]:
    """What ``program`` narrows of ``numbers``, the inputs that are Python integers."""
    if not numbers:
        return ()
    found: dict[tuple[Expr, str], NarrowedInteger] = {}
    for expr in (expr for statement in program.statements for expr in statement_expressions(statement)):
        for node in _evaluated(expr):
            if (
                isinstance(node, Cast)
                and is_integer(node.dtype)
                and node.dtype != INTEGER  # it holds them all
                and node.operand.dtype == "int64"
                and _is_number(node.operand, numbers)
            ):
                found.setdefault((node.operand, node.dtype), NarrowedInteger(node.operand, node.dtype, node.span))
    return tuple(found.values())


def check_narrowed(
    narrowed: Sequence[NarrowedInteger], program: Program, arrays: Sequence[np.ndarray], sizes: Mapping[str, int]
) -> None:
    """Raise `DtypeError` unless every one of ``narrowed`` fits for these inputs."""
    held = {tensor.name: array for tensor, array in zip(program.inputs, arrays, strict=True) if array.ndim == 0}
    values = PointValues({}, 1, sizes, held.__getitem__)
    for one in narrowed:
        number = int(values.single(one.value))
        ends = np.iinfo(one.dtype)
        if not ends.min <= number <= ends.max:
            raise Diagnostic(
                DtypeError,
                f"the integer {number} does not fit in {one.dtype}",
                one.span,
                hint=f"{one.dtype} holds {ends.min} to {ends.max}; convert the other operand to a wider type, "
                "as in int64(x)",
            ).error()


def _evaluated(expr: Expr) -> Iterator[Expr]:
    # Without what stands behind `and` and `or`: a comparison of signed and unsigned converts what it knows to fit.
    yield expr
    guarded = isinstance(expr, Apply) and expr.primitive in ("and_", "or_")
    for part in children(expr)[: 1 if guarded else None]:
        yield from _evaluated(part)


def _is_number(expr: Expr, numbers: Collection[str]) -> bool:
    # Known before the call runs, and not by the sizes alone: at least one of the numbers takes part.
    leaves = [node for node in walk(expr) if not children(node)]
    known = all(
        isinstance(leaf, Constant | SizeValue) or (isinstance(leaf, Read) and leaf.tensor in numbers) for leaf in leaves
    )
    arithmetic = all(isinstance(node, Apply | Cast) for node in walk(expr) if children(node))
    return known and arithmetic and any(isinstance(leaf, Read) for leaf in leaves)
