"""Small factors of short sums, copied so that their rows lie along the target's.

A sum over a few neighbouring cells ends with adding up a vector register across, for every cell of the target. With
the factor transposed first, the row of the target is the vector, and nothing is added across::

    h[i, k] += d[i, j] * w[k, j]       w_rows[j, k] = w[k, j]
                                       h[i, k] += d[i, j] * w_rows[j, k]

That pays where the factor is small, and read often enough.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, IndexValue, Read, index_variables, reads, transform
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor
from tcdsl.lowering.boundaries import Declarations
from tcdsl.lowering.names import Names
from tcdsl.lowering.schedule import constant_length
from tcdsl.lowering.statements import box, can_fail
from tcdsl.shapes.affine import universe

__all__ = ["transposed_factors"]

# Cells of a factor at most, and how often each must be read at least; the longest sum, and the shortest row.
_CELLS, _READ = 1 << 12, 4
_SUM, _ROW = 64, 8


def transposed_factors(program: Program, names: Names) -> Program:
    """``program`` with the copies that its sums want, each before the statement that reads it."""
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    made: list[Tensor] = []
    for statement in program.statements:
        read = _factor(statement, tensors)
        if read is None:
            statements.append(statement)
            continue
        row = statement.target.indices[-1]
        indices = (*(axis for axis in read.indices if axis != row), row)
        tensor = tensors[read.tensor]
        shape = tuple(tensor.shape[read.indices.index(axis)] for axis in indices)
        copy = Tensor(names.fresh(f"{tensor.name}_rows"), tensor.dtype, shape, tensor.label or tensor.name, tensor.span)
        moved = replace(read, tensor=copy.name, indices=indices)
        made.append(copy)
        statements.append(_copy(read, indices, copy, names))
        statements.append(replace(statement, value=_with(statement.value, read, moved)))
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *made)) if made else program


def _with(value: Expr, read: Read, moved: Read) -> Expr:
    return transform(value, lambda expr: moved if expr == read else expr)


def _copy(read: Read, indices: tuple[Expr, ...], copy: Tensor, names: Names) -> Statement:
    renamed = {axis: index(names.fresh("c")) for axis in indices}
    variables = tuple(axis.name for axis in renamed.values())
    points = box(tuple(zip(variables, copy.shape, strict=True)), universe(variables, ()))
    value = Read(read.tensor, tuple(renamed[axis] for axis in read.indices), read.boundaries, compute_dtype(copy.dtype))
    target = Access(copy.name, tuple(renamed[axis] for axis in indices))
    return Statement(target, "assign", Neutral(), value, Domain.from_set(points), span=read.span)


def _factor(statement: Statement, tensors: Declarations) -> Read | None:
    """The factor of a sum that alone keeps the target's last variable from going along memory, if a copy pays."""
    target = statement.target.indices
    if not _plain(target) or statement.accumulate == "assign" or statement.condition is not None:
        return None
    if not target or can_fail(statement) or tensors[statement.target.tensor].dtype == "float16":
        return None
    row = target[-1]
    found = {read for read in reads(statement.value) if _holds(read, row) and read.indices[-1] != row}
    if len(found) != 1:
        return None
    (read,) = found
    summed = read.indices[-1]
    if not _plain(read.indices) or summed in target or set(read.boundaries) != {Boundary.SKIP}:
        return None
    return read if _pays(statement, read, row, tensors[read.tensor]) else None


def _plain(indices: tuple[Expr, ...]) -> bool:
    return all(isinstance(axis, IndexValue) for axis in indices) and len(set(indices)) == len(indices)


def _holds(read: Read, row: Expr) -> bool:
    return any(index_variables(row) <= index_variables(axis) for axis in read.indices)


def _pays(statement: Statement, read: Read, row: Expr, tensor: Tensor) -> bool:
    cells = points = 1
    for extent in tensor.shape:
        if not isinstance(extent, Constant):
            return False
        cells *= int(extent.value)
    for name in statement.domain.variables:
        length = constant_length(statement, name)
        if length is None:
            return False
        if (index(name) == read.indices[-1] and length > _SUM) or (index(name) == row and length < _ROW):
            return False
        points *= length
    return cells <= _CELLS and points >= _READ * cells
