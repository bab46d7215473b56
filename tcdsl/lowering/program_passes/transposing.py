"""Small factors of short sums, copied so that their rows lie along the target's; and targets so that theirs are long.

A sum over a few neighbouring cells ends with adding up a vector register across, for every cell of the target. With
the factor transposed first, the row of the target is the vector, and nothing is added across. Where the target's own
rows are shorter than a vector, and another of its variables goes along memory in all that is read, the sums are made
in rows along that one, and transposed last::

    h[i, k] += d[i, j] * w[k, j]       w_rows[j, k] = w[k, j];  h[i, k] += d[i, j] * w_rows[j, k]
    g[j, k] += d[i, j] * x[i, k]       g_rows[k, j] += d[i, j] * x[i, k];  g[j, k] = g_rows[k, j]     for two k

That pays where what is copied is small, and each of its cells takes part often enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tcdsl.ir.build import index, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Read, index_variables, reads, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.program_passes.schedule import constant_count, constant_length
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.boxes import over_box

__all__ = ["transposed"]

# Cells of a copy at most, and how many points each must be worth; the longest sum, and the shortest row.
_CELLS, _POINTS = 1 << 12, 4
_SUM, _ROW = 64, 8

_Lengths = Mapping[Expr, int]


def transposed(program: Program, names: FreshNames) -> Program:
    """``program`` with the copies that its sums want: of factors before them, of what they make after them."""
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    for each in program.statements:
        statement, after = each, list[Statement]()
        row = _long_row(statement, tensors)
        if row is not None:
            rows = _with_rows(statement.target, row, tensors, names)
            after.append(_copy(statement.target, rows, tensors, names))
            statement = replace(statement, target=rows)
        read = _factor(statement, tensors)
        if read is not None:
            rows = _with_rows(Access(read.tensor, read.indices), statement.target.indices[-1], tensors, names)
            statements.append(_copy(rows, Access(read.tensor, read.indices), tensors, names))
            moved = replace(read, tensor=rows.tensor, indices=rows.indices)
            statement = replace(statement, value=_with(statement.value, read, moved))
        statements += [statement, *after]
    made = tuple(tensors.values())[len(program.inputs) + len(program.tensors) :]
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *made)) if made else program


def _with_rows(access: Access, row: Expr, tensors: Declarations, names: FreshNames) -> Access:
    """The same cell of a tensor with another order of axes, ``row`` last, which is added to ``tensors``."""
    tensor = tensors[access.tensor]
    order = (*(axis for axis in access.indices if axis != row), row)
    shape = tuple(tensor.shape[access.indices.index(axis)] for axis in order)
    name = names.fresh(f"{tensor.name}_rows")
    tensors[name] = replace(tensor, name=name, shape=shape, label=tensor.label or tensor.name)
    return Access(name, order, access.span)


def _with(value: Expr, read: Read, moved: Read) -> Expr:
    return transform(value, lambda expr: moved if expr == read else expr)


def _copy(target: Access, source: Access, tensors: Declarations, names: FreshNames) -> Statement:
    """``target = source`` for all cells, with variables of its own."""
    own = {axis: index(names.fresh("c")) for axis in target.indices}
    variables = tuple(axis.name for axis in own.values())
    tensor = tensors[target.tensor]
    value = plain_read(source.tensor, (own[axis] for axis in source.indices), compute_dtype(tensor.dtype))
    return replace(over_box(target.tensor, variables, tensor.shape, value), span=target.span)


def _long_row(statement: Statement, tensors: Declarations) -> Expr | None:
    """The variable along which sums should be made, where the target's last one is shorter than a vector."""
    target = statement.target
    if len(target.indices) < 2 or not isinstance(statement.start, Neutral):
        return None
    lengths = _lengths(statement, tensors[target.tensor], tensors)
    if lengths is None or lengths[target.indices[-1]] >= _ROW:
        return None
    for axis in reversed(target.indices[:-1]):
        along = [read.indices[-1] == axis for read in reads(statement.value) if _holds(read, axis)]
        if lengths[axis] >= _ROW and along and all(along):
            return axis
    return None


def _factor(statement: Statement, tensors: Declarations) -> Read | None:
    """The factor of a sum that alone keeps the target's last variable from going along memory."""
    target = statement.target.indices
    found = {read for read in reads(statement.value) if target and _holds(read, target[-1])}
    found = {read for read in found if read.indices[-1] != target[-1]}
    if len(found) != 1:
        return None
    (read,) = found
    lengths = _lengths(statement, tensors[read.tensor], tensors)
    if lengths is None or not _plain(read.indices) or set(read.boundaries) != {Boundary.SKIP}:
        return None
    summed = read.indices[-1]
    suitable = summed not in target and lengths[summed] <= _SUM and lengths[target[-1]] >= _ROW
    return read if suitable else None


def _lengths(statement: Statement, copy: Tensor, tensors: Declarations) -> _Lengths | None:
    """How many values each variable of a sum has, if they are constants that make a copy of the cells ``copy`` pay."""
    target, simple = statement.target, statement.accumulate != "assign" and statement.condition is None
    if not simple or can_fail(statement) or not _plain(target.indices) or tensors[target.tensor].dtype == "float16":
        return None
    cells = constant_count(copy.shape)
    lengths: dict[Expr, int] = {}
    for name in statement.domain.variables:
        length = constant_length(statement, name)
        if length is None or cells is None:
            return None
        lengths[index(name)] = length
    pays = cells is not None and cells <= _CELLS and cells * _POINTS <= prod(lengths.values())
    return lengths if pays else None


def _plain(indices: tuple[Expr, ...]) -> bool:
    return all(isinstance(axis, IndexValue) for axis in indices) and len(set(indices)) == len(indices)


def _holds(read: Read, row: Expr) -> bool:
    return any(index_variables(row) <= index_variables(axis) for axis in read.indices)
