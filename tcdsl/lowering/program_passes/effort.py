"""How much work a nest is. Where it is known to be little, no thread is woken for it and nothing is cut into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tcdsl.ir.build import apply, integer, product_of
from tcdsl.ir.expressions import Apply, Constant, Expr, Read, index_variables, reads, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access, Statement
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.machine import SERIAL_WORK

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.boundary_reads import Declarations
    from tcdsl.lowering.program_passes.schedule import LoopOrder

__all__ = ["lengths_of", "points_of", "too_few", "too_little_work", "weight"]

# A point that calls a function of the C library counts as many.
_LIBRARY_CALL = 16
_QUICK = frozenset(("floor", "ceil", "round", "sqrt", "recip", "recip_sqrt", "div"))


def weight(expressions: Iterable[Expr]) -> int:
    """How many simple points one point counts as that evaluates ``expressions``."""
    primitives = {part.primitive for expr in expressions for part in walk(expr) if isinstance(part, Apply)}
    calls = any(PRIMITIVES[name].kind == "real" and name not in _QUICK for name in primitives) or "pow" in primitives
    return _LIBRARY_CALL if calls else 1


def too_little_work(plans: Sequence[LoopOrder], tensors: Declarations) -> Declined | None:
    """What says that all statements together are less work than threads are worth, if the sizes are constants and they
    are.
    """
    points = points_of(plans, tensors)
    if not isinstance(points, Constant):
        return None
    operations = int(points.value) * weight(plan.statement.value for plan in plans)
    return too_few(operations) if operations < SERIAL_WORK else None


def too_few(operations: int) -> Declined:
    """What says that so many are less than threads are worth."""
    return Declined("{} operations are too few, {} would be enough", (operations, SERIAL_WORK))


def points_of(plans: Sequence[LoopOrder], tensors: Declarations) -> Expr:
    """An estimate of the points of all statements: products of the extents of what they touch."""
    total: Expr = integer(0)
    for plan in plans:
        shape, cells = (plan.tensor.shape, plan.cells) if plan.plain else ((), ())
        others = [name for name in plan.statement.domain.variables if name not in cells]
        points = product_of((*shape, *lengths_of(plan.statement, others, tensors)))
        total = apply("add", total, points)
    return total


def lengths_of(statement: Statement, names: Iterable[str], tensors: Declarations) -> list[Expr]:
    """For each of the variables the extent of an axis that it indexes, of the shortest index that has it."""
    found: dict[str, tuple[int, Expr]] = {}
    accesses: tuple[Access | Read, ...] = (statement.target, *reads(statement.value))
    for access in accesses:
        for axis, extent in zip(access.indices, tensors[access.tensor].shape, strict=True):
            size = 0
            for name in index_variables(axis):
                size = size or sum(1 for _ in walk(axis))
                if name not in found or size < found[name][0]:
                    found[name] = size, extent
    return [found[name][1] if name in found else integer(1) for name in names]
