"""Statements in the form that loops need: scatters solved for their cells, half-precision cells summed in float32.

Running totals whose cells go in steps, or do not fill their target, get a tensor of their own, where each cell goes on
from the one before::

    t[2 * i] += x[j], j <= i      t_total[i] += x[j], j <= i
                                  t[2 * i] += t_total[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import index, integer, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, is_affine_index, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Keep, Neutral, Program, Statement, Tensor, map_statement
from tcdsl.lowering.program_passes.thinness import is_thin
from tcdsl.lowering.program_passes.touched_tensors import can_fail, copy_statement
from tcdsl.polyhedra.affine import NotAffine, substituted
from tcdsl.polyhedra.boxes import bounds
from tcdsl.polyhedra.index_variables import renamed
from tcdsl.polyhedra.linear import linear_form, normalized, solved_for
from tcdsl.polyhedra.scatter_to_gather import solve, target_variables
from tcdsl.polyhedra.spaces import arranged, constant_range
from tcdsl.simplification.scans import scan_of

__all__ = ["distinct_names", "kept_promises", "over_cells", "solved", "totalled", "widened"]


def solved(program: Program, names: FreshNames) -> Program:
    """Scatters with affine targets as gathers (`tcdsl.polyhedra.scatter_to_gather`)."""
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        parts = solve(statement, names.fresh)
        between.extend(
            replace(tensor, name=part.target.tensor, label=tensor.label or tensor.name) for part in parts[:-1]
        )
        statements.extend(parts)
        for part in parts:
            names.take(part.domain.variables)
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between))


def over_cells(statement: Statement, names: FreshNames) -> Statement:
    """``statement`` with the cells it writes for its variables, where they are shifted or mirrored.

    ``Y[i + 1] = x[i]`` becomes ``Y[z] = x[z - 1]``, so that the loop over z also writes the start value of the other
    cells. Statements that write few cells stay, because those loops run over all, and so do those whose errors name the
    user's variables. A variable of one value, as the groups of a convolution that has one, goes.
    """
    if all(isinstance(axis, IndexValue) for axis in statement.target.indices) or can_fail(statement):
        return statement
    if ACCUMULATORS[statement.accumulate].ordered:
        return statement
    statement = _without_single_values(statement)
    indices = statement.target.indices
    values: dict[Expr, Expr] = {}
    cells: dict[str, str] = {}
    target: list[Expr] = []
    for axis in indices:
        terms, offset = linear_form(axis)
        used = index_variables(axis)
        variable = next(iter(used), None)
        if not is_affine_index(axis) or variable is None or len(used) > 1 or variable in cells:
            return statement
        others = terms.keys() - {index(variable)}
        if abs(terms.get(index(variable), 0)) != 1 or any(variable in index_variables(atom) for atom in others):
            return statement
        cells[variable] = variable if axis == index(variable) else names.shared(f"z{len(target)}")
        target.append(index(cells[variable]))
        if cells[variable] != variable:
            values[index(variable)] = solved_for(index(variable), terms, offset, target[-1])
    order = [cells.get(name, name) for name in statement.domain.variables]
    try:
        points = substituted(statement.domain.set, values, order)
    except NotAffine:
        return statement
    if is_thin(arranged(points, tuple(cells.values()))):
        return statement
    made = map_statement(statement, lambda expr: normalized(substitute(expr, values)))
    access = replace(made.target, indices=tuple(target))
    return replace(made, target=access, domain=Domain.from_set(points))


def _without_single_values(statement: Statement) -> Statement:
    # Without such variables in targets, but for those that are an index of their own.
    indices = statement.target.indices
    alone = {axis.name for axis in indices if isinstance(axis, IndexValue)}
    points, values = statement.domain.set, dict[Expr, Expr]()
    for name in frozenset().union(*map(index_variables, indices)) - alone:
        found = constant_range(points, name)
        if found is not None and len(found) == 1:
            values[index(name)] = integer(found.start)
    if not values:
        return statement
    made = map_statement(statement, lambda expr: normalized(substitute(expr, values)))
    left = [name for name in statement.domain.variables if index(name) not in values]
    return replace(made, domain=Domain.from_set(arranged(points, left)))


def totalled(program: Program, names: FreshNames) -> Program:
    """``program`` with running totals that fill tensors of their own."""
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        total = _total(statement, tensor, names)
        if total is not None:
            sums, own = total
            between.append(own)
            statements.append(sums)
            cells = sums.target.indices
            points = arranged(statement.domain.set, [each for axis in cells for each in index_variables(axis)])
            value = plain_read(own.name, cells, tensor.dtype)
            statement = replace(statement, value=value, condition=None, domain=Domain.from_set(points))
        statements.append(statement)
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between)) if between else program


@lru_cache(maxsize=4096)
def _bounds(domain: Domain, cells: tuple[str, ...]) -> tuple[Sequence[Expr], Sequence[Expr]]:
    # Equal layers ask the same.
    return bounds(arranged(domain.set, cells), len(cells))


def _total(statement: Statement, tensor: Tensor, names: FreshNames) -> tuple[Statement, Tensor] | None:
    # The running totals of a statement whose own cells do not go on from each other.
    if statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered:
        return None
    cells = [name for axis in statement.target.indices for name in index_variables(axis)]
    plain = all(map(is_affine_index, statement.target.indices)) and len(set(cells)) == len(cells)
    if not plain or any(len(index_variables(axis)) != 1 for axis in statement.target.indices):
        return None
    if len(cells) == len(statement.domain.variables) or statement.unique or compute_dtype(tensor.dtype) != tensor.dtype:
        return None
    if can_fail(statement) or scan_of(statement, tensor.shape) is not None:
        return None
    lows, extents = _bounds(statement.domain, tuple(cells))
    if any(low != integer(0) for low in lows):
        return None
    own = replace(tensor, name=f"{tensor.name}_total", shape=tuple(extents), label=tensor.label or tensor.name)
    target = Access(own.name, tuple(map(index, cells)), statement.target.span)
    accumulate = "add" if statement.accumulate == "subtract" else statement.accumulate
    sums = replace(statement, target=target, accumulate=accumulate, start=Neutral())
    if scan_of(sums, own.shape) is None:
        return None
    name = names.fresh(own.name)
    return replace(sums, target=replace(target, tensor=name)), replace(own, name=name)


def widened(program: Program, names: FreshNames) -> Program:
    """Scatters into float16 cells accumulate in a float32 tensor, which is rounded once at the end.

    Other statements sum in a float32 scalar.
    """
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        if tensor.dtype != "float16" or statement.accumulate == "assign" or _determined(statement):
            statements.append(statement)
            continue
        wide = replace(_between(tensor, names), dtype=compute_dtype(tensor.dtype))
        between.append(wide)
        start = statement.start
        if isinstance(start, Keep):
            first = replace(wide, name=names.fresh(tensor.name))
            between.append(first)
            statements.append(copy_statement(program.tensor(start.tensor), first.name, names))
            start = Keep(first.name)
        target = Access(wide.name, statement.target.indices, statement.target.span)
        statements.append(replace(statement, target=target, start=start))
        statements.append(copy_statement(wide, tensor.name, names))
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between))


def _determined(statement: Statement) -> bool:
    # Whether one scalar can sum all that goes into a cell.
    indices = statement.target.indices
    variables = frozenset().union(*map(index_variables, indices))
    return all(map(is_affine_index, indices)) and variables <= set(target_variables(statement))


def _between(tensor: Tensor, names: FreshNames) -> Tensor:
    return replace(tensor, name=names.fresh(tensor.name), label=tensor.label or tensor.name)


def distinct_names(program: Program, names: FreshNames) -> Program:
    """``program`` whose index variables are called otherwise than its tensors and sizes: loops have one name space."""
    taken = {tensor.name for tensor in (*program.inputs, *program.tensors)} | {size.name for size in program.sizes}

    def distinct(statement: Statement) -> Statement:
        variables = statement.domain.variables
        return renamed(statement, [names.shared(f"{name}_") if name in taken else name for name in variables])

    return replace(program, statements=tuple(map(distinct, program.statements)))


def kept_promises(program: Program) -> Program:
    """``program`` without watching cells that are unique whatever the data are."""

    def is_kept(statement: Statement) -> bool:
        return statement.unique and set(statement.domain.variables) <= set(target_variables(statement))

    changed = (replace(each, unique=False) if is_kept(each) else each for each in program.statements)
    return replace(program, statements=tuple(changed))
