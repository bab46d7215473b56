"""Small factors of short sums, copied so that their rows lie along the target's; and targets so that theirs are long.

A sum over a few neighbouring cells ends with adding up a vector register across, for every cell of the target. With
the factor transposed first, the row of the target is the vector, and nothing is added across. Where the target's own
rows are shorter than a vector, and another of its variables goes along memory in all that is read, the sums are made
in rows along that one, and transposed last::

    h[i, k] += d[i, j] * w[k, j]       w_rows[j, k] = w[k, j];  h[i, k] += d[i, j] * w_rows[j, k]
    g[j, k] += d[i, j] * x[i, k]       g_rows[k, j] += d[i, j] * x[i, k];  g[j, k] = g_rows[k, j]     for two k

That pays where what is copied is small, and each of its cells takes part often enough.

Sums over pairs of points do for each pair what takes as long as the points have coordinates. There may be three of
these, so the loop along memory is one over points, and what holds their coordinates, one point a row, is transposed::

    d[i, j] += (x[i, c] - x[j, c]) ** 2    x_rows[c, j] = x[j, c];  d[i, j] += (x[i, c] - x_rows[c, j]) ** 2
    f[j, c] += g[i, j] - x[j, c]           f_rows[c, j] += g[i, j] - x_rows[c, j];  f[j, c] = f_rows[c, j]

Products alone are left as they are: sums of them along any axis stay in registers.

Whatever the sizes, a column that every row of a target reads is copied first, so that its cells lie side by side::

    A[i, j] -= A[i, k] * A[j, k]       A_column[j] = A[j, k];  A[i, j] -= A[i, k] * A_column[j]

So is what costs more than a few operations and is the same for all rows::

    y[i, j] = x[i, j] / sqrt(v[j] + e)     y_row[j] = sqrt(v[j] + e);  y[i, j] = x[i, j] / y_row[j]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from tcdsl.ir.build import in_range, index, integer, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    children,
    index_variables,
    is_plain_read,
    reads,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor, Unset, map_statement, statement_reads
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.program_passes.fusion import work
from tcdsl.lowering.program_passes.schedule import constant_count, constant_length
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.spaces import arranged
from tcdsl.rewrite.statement_kinds import of_kind

__all__ = ["transposed", "with_columns_copied"]

# Cells of a copy at most, and how many points each must be worth; the longest sum, and the shortest row.
_CELLS, _POINTS = 1 << 12, 4
_SUM, _ROW = 64, 8
# Operations of what is computed first: those of one function.
_COST = 10

_Lengths = Mapping[Expr, int]


def transposed(program: Program, names: FreshNames) -> Program:
    """``program`` with the copies that its sums want: of factors before them, of what they make after them."""
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    points = _Points(tensors, names)
    for each in program.statements:
        pairs = points.along(each)
        if pairs is not None:
            statements += pairs
            continue
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


@dataclass(slots=True)
class _Points:
    """Sums over pairs of points; ``known`` are the copies so far: of a tensor, with one of its axes last."""

    tensors: dict[str, Tensor]
    names: FreshNames
    known: dict[tuple[str, int], str] = field(default_factory=dict)

    def along(self, statement: Statement) -> list[Statement] | None:
        """The statements that go along a variable over points; None unless that is of use."""
        target = Access(statement.target.tensor, statement.target.indices)
        if not _is_simple_sum(statement) or len(statement.domain.variables) < 3 or can_fail(statement):
            return None
        if _is_product(statement.value):
            return None
        read = dict.fromkeys(each for each in reads(statement.value) if each.indices)
        if any(boundary is not Boundary.SKIP for each in read for boundary in each.boundaries):
            return None
        cells = dict.fromkeys((target, *(Access(each.tensor, each.indices) for each in read)))
        pairs = [cell for cell in cells if self._is_pair(cell)]
        if not pairs:
            return None
        # Along the target, if there is a choice.
        pair = next((each for each in pairs if each.indices[-1] in target.indices), pairs[0])
        row, other = pair.indices[-1], self._partner(pair)
        across = [cell for cell in cells if cell not in pairs and _is_across(cell, row)]
        if not across or any(other in cell.indices or not _plain(cell.indices) for cell in across):
            return None
        moves = target in across
        if moves and (not isinstance(statement.start, Neutral) or self.tensors[target.tensor].dtype == "float16"):
            return None
        before: list[Statement] = []
        value = statement.value
        for each in read:
            cell = Access(each.tensor, each.indices)
            if cell in across:
                rows = self._copied(cell, row, before)
                value = _with(value, each, replace(each, tensor=rows.tensor, indices=rows.indices))
        if not moves:
            return [*before, replace(statement, value=value)]
        rows = _with_rows(statement.target, row, self.tensors, self.names)
        last = _copy(statement.target, rows, self.tensors, self.names)
        return [*before, replace(statement, target=rows, value=value), last]

    def _copied(self, cell: Access, row: Expr, before: list[Statement]) -> Access:
        key = cell.tensor, cell.indices.index(row)
        if key not in self.known:
            rows = _with_rows(cell, row, self.tensors, self.names)
            self.known[key] = rows.tensor
            before.append(_copy(rows, cell, self.tensors, self.names))
        return Access(self.known[key], (*(axis for axis in cell.indices if axis != row), row))

    def _is_pair(self, cell: Access) -> bool:
        # Whether another axis is as long as the last one, whatever that is.
        shape = self.tensors[cell.tensor].shape
        return bool(shape) and _plain(cell.indices) and not isinstance(shape[-1], Constant) and shape[-1] in shape[:-1]

    def _partner(self, pair: Access) -> Expr:
        shape = self.tensors[pair.tensor].shape
        return pair.indices[shape.index(shape[-1])]


def _is_across(cell: Access, row: Expr) -> bool:
    return any(index_variables(row) <= index_variables(axis) for axis in cell.indices[:-1])


def _is_product(value: Expr) -> bool:
    return {part.primitive for part in walk(value) if isinstance(part, Apply)} <= {"mul", "neg"}


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
    variables = names.cells(len(target.indices))
    own = dict(zip(target.indices, map(index, variables), strict=True))
    tensor = tensors[target.tensor]
    value = plain_read(source.tensor, (own[axis] for axis in source.indices), compute_dtype(tensor.dtype))
    return replace(over_box(target.tensor, variables, tensor.shape, value), span=target.span)


def _long_row(statement: Statement, tensors: Declarations) -> Expr | None:
    """The variable along which sums should be made, where the target's last one is shorter than a vector."""
    target = statement.target
    if len(target.indices) < 2 or not isinstance(statement.start, Neutral) or not _is_simple_sum(statement):
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
    if not _is_simple_sum(statement):
        return None
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


def _is_simple_sum(statement: Statement) -> bool:
    return statement.accumulate != "assign" and statement.condition is None


def _lengths(statement: Statement, copy: Tensor, tensors: Declarations) -> _Lengths | None:
    """How many values each variable of a sum has, if they are constants that make a copy of the cells ``copy`` pay."""
    target = statement.target
    if can_fail(statement) or not _plain(target.indices) or tensors[target.tensor].dtype == "float16":
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


# -- columns

_ROWS_OF_COLUMN = 8
"""So many rows must read a column, where it is known how many do."""


def with_columns_copied(program: Program, names: FreshNames) -> Program:
    """``program`` with such columns, and what rows have in common, in tensors of their own."""
    declared = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    made: list[Tensor] = []
    statements: list[Statement] = []
    for statement in program.statements:
        moved: dict[Expr, Expr] = {}
        copies: dict[tuple[Expr | str, ...], str] = {}
        for read in dict.fromkeys(statement_reads(statement)) if _has_rows(statement) else ():
            axis = _column_axis(read, declared[read.tensor], statement)
            if axis is None:
                continue
            key = (read.tensor, *read.indices)
            if key not in copies:
                column = _column(declared[read.tensor], axis, names)
                try:
                    copy = _column_copied(column, read, axis, declared[read.tensor], statement, *names.cells(1))
                except NotAffine:
                    continue
                copies[key] = column.name
                made.append(column)
                statements.append(copy)
            moved[read] = plain_read(copies[key], (read.indices[axis],), read.dtype)
        for value in _values_of_rows(statement, declared[statement.target.tensor]):
            first = _first_computed(value, statement, declared[statement.target.tensor], names)
            made.append(first[0])
            statements.append(_reading(first[1], moved))
            moved[value] = plain_read(first[0].name, first[1].target.indices, value.dtype)
        statements.append(_reading(statement, moved) if moved else statement)
    if not made:
        return program
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *made))


def _has_rows(statement: Statement) -> bool:
    # Whether its innermost loop is over the cells of a row, of several rows.
    *others, last = statement.target.indices or (integer(0),)
    variables = statement.domain.variables
    if not isinstance(last, IndexValue) or len(variables) < 2:
        return False
    cells = set(map(index, variables)) <= {*others, last}
    return cells and _are_several(statement, [name for name in variables if name != last.name])


def _are_several(statement: Statement, variables: Iterable[str]) -> bool:
    few = 1
    for name in variables:
        length = constant_length(statement, name)
        if length is None:
            return True
        few *= length
    return few >= _ROWS_OF_COLUMN


def _values_of_rows(statement: Statement, target: Tensor) -> list[Expr]:
    # The largest parts of the value that several rows have in common, change along them, and cost something.
    return list(_found_values(statement)) if _has_values(statement) else []


@of_kind
def _has_values(statement: Statement) -> bool:
    return bool(_found_values(statement))


def _found_values(statement: Statement) -> Iterable[Expr]:
    *_, last = statement.target.indices or (integer(0),)
    if not isinstance(last, IndexValue) or len(statement.domain.variables) < 2 or work(statement.value) < _COST:
        return ()
    if statement.unique or can_fail(statement):
        return ()
    along = [read for read in statement_reads(statement) if read.indices and read.indices[-1] == last]
    if not any(index_variables(axis) - {last.name} for read in along for axis in read.indices):
        return ()
    found: dict[Expr, None] = {}
    cells = {axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)}

    def look(part: Expr) -> None:
        names = frozenset[str]().union(*map(index_variables, _indices(part)))
        others = [name for name in statement.domain.variables if name not in names]
        if last.name in names <= cells and others and _is_costly(part) and _are_several(statement, others):
            found[part] = None
        else:
            for child in children(part):
                look(child)

    look(statement.value)
    return found


def _indices(part: Expr) -> list[Expr]:
    inside = [axis for read in reads(part) for axis in read.indices]
    return [*inside, *(node for node in walk(part) if isinstance(node, IndexValue))]


def _is_costly(part: Expr) -> bool:
    simple = part.dtype in ("float32", "float64") and work(part) >= _COST
    plain = all(is_plain_read(read) and read.fill is None for read in reads(part))
    return simple and plain and not any(isinstance(node, Let | Local) for node in walk(part))


def _first_computed(value: Expr, statement: Statement, target: Tensor, names: FreshNames) -> tuple[Tensor, Statement]:
    # Wherever the statement has a point, so that all reads are in range.
    inside = frozenset[str]().union(*map(index_variables, _indices(value)))
    axes = [axis for axis, place in enumerate(statement.target.indices) if place in set(map(index, inside))]
    cells = tuple(statement.target.indices[axis] for axis in axes)
    row = Tensor(names.fresh(f"{target.name}_row"), value.dtype, tuple(target.shape[axis] for axis in axes))
    points = arranged(statement.domain.set, [name for cell in cells for name in index_variables(cell)])
    made = Statement(Access(row.name, cells), "assign", Unset(), value, Domain.from_set(points), span=statement.span)
    return row, made


def _column_axis(read: Read, whole: Tensor, statement: Statement) -> int | None:
    # The axis that the variable of the rows goes along, if nothing else changes from cell to cell or row to row.
    row = statement.target.indices[-1]
    axes = [axis for axis, place in enumerate(read.indices) if index_variables(place)]
    if len(axes) != 1 or read.indices[axes[0]] != row or not is_plain_read(read) or read.fill is not None:
        return None
    behind = whole.shape[axes[0] + 1 :]
    return None if all(extent == integer(1) for extent in behind) else axes[0]


def _column(whole: Tensor, axis: int, names: FreshNames) -> Tensor:
    name = names.fresh(f"{whole.name}_column")
    return replace(whole, name=name, shape=(whole.shape[axis],), label=whole.label or whole.name)


def _column_copied(column: Tensor, read: Read, axis: int, whole: Tensor, statement: Statement, cell: str) -> Statement:
    # For the sizes alone for which the statement has points: its reads are in range there.
    points = box((cell,), column.shape)
    places = [index(cell) if k == axis else place for k, place in enumerate(read.indices)]
    for place, extent in zip(places, whole.shape, strict=True):
        points = points.intersect(condition_set(in_range(place, extent), points))
    context = statement.domain.set.params()
    points = points.align_params(context.get_space()).intersect_params(context)
    value = plain_read(whole.name, tuple(places), compute_dtype(whole.dtype))
    target = Access(column.name, (index(cell),))
    return Statement(target, "assign", Unset(), value, Domain.from_set(points), span=statement.span)


def _reading(statement: Statement, moved: dict[Expr, Expr]) -> Statement:
    return map_statement(statement, lambda expr: transform(expr, lambda node: moved.get(node, node)))
