"""Rows that loops inside of a round read, read where they are.

::

    repeat N times:                              repeat N times:
        r[j] = X[n, j]                               repeat K times:
        repeat K times:                                  s[()] = s * t + X[n, k]
            s[()] = s * t + r[k]

An op with a loop that is called for each row copies none of them then, and its rounds may stay a loop of scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    is_affine_index,
    size_names,
    substitute,
    transform,
)
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import (
    AxisExtent,
    Keep,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    map_statement,
    statement_reads,
)
from tcdsl.polyhedra.boxes import is_over_box
from tcdsl.polyhedra.linear import linear_form

__all__ = ["with_rows_in_place"]


@dataclass(frozen=True, slots=True)
class _Row:
    """A tensor whose cell ``variables`` is that of ``source``, an input, at ``indices``; ``extents`` say where sizes of
    these come from.
    """

    variables: tuple[str, ...]
    source: Tensor
    indices: tuple[Expr, ...]
    extents: Mapping[str, AxisExtent]

    def at(self, read: Read) -> Read:
        """What ``read``, of the row, finds."""
        place: dict[Expr, Expr] = {IndexValue(v): at for v, at in zip(self.variables, read.indices, strict=True)}
        indices = tuple(substitute(axis, place) for axis in self.indices)
        return replace(read, tensor=self.source.name, indices=indices, boundaries=(Boundary.SKIP,) * len(indices))


def with_rows_in_place(program: Program) -> Program:
    """``program`` with such rows read in place by the loops of its loops' bodies."""
    if not program.repeats:
        return program
    return replace(program, repeats=tuple(replace(each, body=_in_body(each.body)) for each in program.repeats))


def _in_body(body: Program) -> Program:
    for statement in body.statements if body.repeats else ():
        row = _row(body, statement)
        if row is not None:
            name = statement.target.tensor
            repeats = tuple(_given(body, each, name, row) for each in body.repeats)
            body = replace(body, repeats=repeats)
    return with_rows_in_place(body)


def _row(body: Program, statement: Statement) -> _Row | None:
    value, tensor = statement.value, body.tensor(statement.target.tensor)
    if not isinstance(value, Read) or statement.accumulate != "assign" or isinstance(statement.start, Keep):
        return None
    source = next((each for each in body.inputs if each.name == value.tensor), None)
    variables = statement.domain.variables
    if source is None or source.name in dict(body.updates) or source.dtype != tensor.dtype or not variables:
        return None
    if not all(map(is_affine_index, value.indices)) or set(value.boundaries) != {Boundary.SKIP}:
        return None
    terms, _ = linear_form(value.indices[-1])
    if terms.get(IndexValue(variables[-1])) != 1 or not is_over_box(statement, tensor.shape):
        return None  # What lies apart in memory is better copied once.
    inputs = {each.name for each in body.inputs}
    sources = {size.name: size.source for size in body.sizes}
    extents: dict[str, AxisExtent] = {}
    for name in {name for axis in value.indices for name in size_names(axis)}:
        extent = sources.get(name)
        if not isinstance(extent, AxisExtent) or extent.tensor not in inputs:
            return None
        extents[name] = extent
    return _Row(variables, source, value.indices, extents)


def _given(program: Program, repeat: Repeat, name: str, row: _Row) -> Repeat:
    """The loop with ``row`` read in its body instead of the tensor ``name``, of which it is left the extents."""
    carried = dict(repeat.body.updates)
    for inner, given in zip(repeat.body.inputs[1:], repeat.inputs, strict=True):
        if given == name and inner.name not in carried and _is_read_plainly(repeat.body, inner.name):
            repeat, inside = _with_source(program, repeat, row)
            repeat = replace(repeat, body=_through(repeat.body, inner.name, inside))
    return repeat


def _is_read_plainly(body: Program, name: str) -> bool:
    for statement in body.statements:
        if isinstance(statement.start, Keep) and statement.start.tensor == name:
            return False
        if any(read.tensor == name and set(read.boundaries) != {Boundary.SKIP} for read in statement_reads(statement)):
            return False
    return name not in {new for _, new in body.updates}


def _with_source(program: Program, repeat: Repeat, row: _Row) -> tuple[Repeat, _Row]:
    # The loop is given what the row is read from, and what its sizes are extents of.
    body, carried = repeat.body, dict(repeat.body.updates)
    names = names_of(body)
    pairs = zip(repeat.inputs, body.inputs[1:], strict=True)
    given = {outer: inner for outer, inner in pairs if inner.name not in carried}
    more: dict[str, Tensor] = {}
    sizes: list[Size] = []
    for tensor in (row.source.name, *(extent.tensor for extent in row.extents.values())):
        if tensor not in given:
            declared, made = program.tensor(tensor), names.fresh(tensor)
            shape = list(declared.shape)
            for axis, length in enumerate(shape):
                if not isinstance(length, Constant):
                    hint = length.name if isinstance(length, SizeValue) else f"{tensor}_{axis}"
                    sizes.append(Size(names.fresh(hint), AxisExtent(made, axis)))
                    shape[axis] = SizeValue(sizes[-1].name)
            given[tensor] = more[tensor] = Tensor(made, declared.dtype, tuple(shape), declared.label)
    place: dict[Expr, Expr] = {}
    extents: dict[str, AxisExtent] = {}
    for name, source in row.extents.items():
        inside = given[source.tensor]
        place[SizeValue(name)] = inside.shape[source.axis]
        for each in size_names(inside.shape[source.axis]):
            extents[each] = AxisExtent(inside.name, source.axis)
    body = replace(body, inputs=(*body.inputs, *more.values()), sizes=(*body.sizes, *sizes))
    indices = tuple(substitute(axis, place) for axis in row.indices)
    found = _Row(row.variables, given[row.source.name], indices, extents)
    return replace(repeat, body=body, inputs=(*repeat.inputs, *more)), found


def _through(body: Program, name: str, row: _Row) -> Program:
    def rule(node: Expr) -> Expr:
        return row.at(node) if isinstance(node, Read) and node.tensor == name else node

    statements = tuple(map_statement(each, lambda expr: transform(expr, rule)) for each in body.statements)
    repeats = tuple(_given(body, each, name, row) for each in body.repeats)
    return replace(body, statements=statements, repeats=repeats)
