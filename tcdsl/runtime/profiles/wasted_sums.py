"""Statements that take many terms for each cell where their results need few, and what to write instead.

Only what the loops have really done counts: sums that go on from the cell before take each term once, however they are
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tcdsl.autodiff.cost.point_sets import cardinality
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read, children, index_variables, walk
from tcdsl.ir.program import Program, Statement, statement_reads
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.spaces import at_sizes
from tcdsl.span import Span

__all__ = ["wasted_sums"]

_TERMS = 16  # For each cell.
_POINTS = 50_000
_SUMS = ("add", "subtract")


def wasted_sums(
    program: Program, sizes: Mapping[str, int], executed: Sequence[tuple[Sequence[Span], float]]
) -> Iterator[str]:
    """A sentence for each such statement; ``executed`` are the points of nests, with the places of their statements."""
    for statement in program.statements:
        if statement.span is None or statement.accumulate not in (*_SUMS, "max", "min", "multiply", "or", "and"):
            continue
        shape = program.tensor(statement.target.tensor).shape
        cells = max(1, prod(evaluate_size(extent, sizes) for extent in shape))
        points = max((each for spans, each in executed if statement.span in spans), default=0.0)
        found = _advice(statement) if points > _POINTS and points / cells >= _TERMS else None
        if found is not None:
            why, hint = found
            terms = cardinality(at_sizes(statement.domain.set, sizes)) / cells
            line = f"line {statement.span.position}: `{statement.span.text or statement.target.tensor}`"
            yield f"{line} takes {round(terms):,} terms for each of {cells:,} cells, but {why}: {hint}"


def _advice(statement: Statement) -> tuple[str, str] | None:
    kept = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    summed = [name for name in statement.domain.variables if name not in kept]
    for name in kept if summed else ():
        found = _chosen(statement, name) or _window(statement, name, summed) or _same(statement, name)
        if found is not None:
            return found
    return None


def _chosen(statement: Statement, name: str) -> tuple[str, str] | None:
    # Data say to which cell each term belongs.
    tests = [part for expr in _expressions(statement) for part in walk(expr) if isinstance(part, Apply)]
    for test in tests:
        if test.primitive != "eq":
            continue
        sides = [{name} & index_variables(side) for side in test.arguments]
        if sides[0] == sides[1]:
            continue
        data = test.arguments[0 if sides[1] else 1]
        reads = [part for part in walk(data) if isinstance(part, Read)]
        others = [read for read in statement_reads(statement) if name in index_variables(read)]
        if reads and not others:
            index = format_expr(reads[0])
            target = statement.target
            places = ", ".join(index if each == IndexValue(name) else "..." for each in target.indices)
            why = f"`{index}` says to which cell along `{name}` a term belongs"
            return why, f"write `{target.tensor}[{places}] += ...`, without a condition, which takes each term once"
    return None


def _window(statement: Statement, name: str, summed: Sequence[str]) -> tuple[str, str] | None:
    # The terms depend on where a window begins and on the place in it by their sum alone.
    if statement.accumulate not in _SUMS or statement.condition is not None:
        return None
    indices = [axis for read in statement_reads(statement) for axis in read.indices]
    forms = {axis for axis in indices if name in index_variables(axis)}
    form = forms.pop() if len(forms) == 1 else None
    inside = set() if form is None else index_variables(form).intersection(summed)
    moving = {name, *inside}
    elsewhere = (axis for axis in indices if axis != form)
    if len(inside) != 1 or any(moving & index_variables(axis) for axis in elsewhere) or moving & _bare(statement.value):
        return None
    why = f"neighbours along `{name}` share all but one of them"
    return why, (
        f"write running totals, `c[{name}] += ...` with the terms before `{name}`, and the difference of two of them, "
        "which takes each term once; its rounding is that of the totals"
    )


def _same(statement: Statement, name: str) -> tuple[str, str] | None:
    # Nothing in a term depends on the cell.
    if any(name in index_variables(expr) for expr in _expressions(statement)):
        return None
    why = f"no term depends on `{name}`"
    return why, f"write a sum without `{name}` first, and read it in each cell; or running totals, `j <= {name}`"


def _bare(expr: Expr) -> set[str]:
    # The index variables outside of reads.
    if isinstance(expr, Read):
        return set()
    own = {expr.name} if isinstance(expr, IndexValue) else set()
    return own.union(*map(_bare, children(expr)))


def _expressions(statement: Statement) -> list[Expr]:
    return [statement.value] if statement.condition is None else [statement.value, statement.condition]
