"""Statements in index notation on views of memory: ``w = a[1:]; w[i] += x[i]``.

The statement is recorded on a tensor of the view's shape, which decides its ranges, and then moved to the cells that
the view stands for::

    w_2[i] += x[i] * w[i]    from w         a_2[i + 1] += x[i] * a[i + 1]    from a

Where that would not keep its meaning, as with checks of data against the view's extents, the view is copied, and what
the statement makes of the copy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.arrays.row_alignment import cell_at
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.frontend.symbols.symbols import SymbolicTensor, View
from tcdsl.ir.expressions import Boundary, Expr, Read, is_affine_index, reads, transform
from tcdsl.ir.program import Keep, Statement, Tensor, map_statement
from tcdsl.polyhedra.linear import normalized
from tcdsl.rewrite.renaming import statement_with_tensors_renamed

__all__ = ["record_in_view"]


def record_in_view(view: View, name: str, record: Callable[[Existing], SymbolicTensor]) -> SymbolicTensor:
    """Record a statement on what ``name`` holds, a view: the new version of the tensor behind it."""
    builder = session_of("a tensor statement").builder
    with builder.nested() as recording:
        stand_in = builder.placeholder(name, view.element_type, view.extents)
        builder.written.stands_for(stand_in.name, view.tensor.name)
        stand_in.rows = view.rows
        view.stands_for(stand_in)
        try:
            made = record(Existing(stand_in))
        finally:
            view.stands_for(None)
        weak = builder.written.is_weak(made.name)
    statements, tensors = recording.statements, recording.tensors
    moved = _moved(statements, view, stand_in.name)
    if moved is None:
        held = view.materialize(name)
        names = {stand_in.name: held.name}
        builder.append([statement_with_tensors_renamed(statement, names) for statement in statements], tensors)
        same = SymbolicTensor(view.builder, made.name, made.element_type, view.extents, name)
        version = store_elementwise(view, "assign", same)
    else:
        version = _version(view)
        *others, last = moved
        last = replace(last, target=replace(last.target, tensor=version.name))
        builder.check_recurrence(last, view.tensor.name, others)
        declared = Tensor(version.name, version.element_type, version.extents, version.label, last.span)
        builder.append([*others, last], [*(each for each in tensors if each.name != made.name), declared])
        if weak:
            builder.written.by_numbers(last)
        version.rows = view.tensor.rows
    for rule in recording.rules:
        builder.add_rule(rule)
    return version


def _version(view: View) -> SymbolicTensor:
    tensor = view.tensor
    name = session_of("a tensor statement").builder.fresh_name(tensor.label)
    return SymbolicTensor(tensor.builder, name, tensor.element_type, tensor.extents, tensor.label)


def _moved(statements: Sequence[Statement], view: View, name: str) -> list[Statement] | None:
    # The statements with the cells that the view stands for in the place of those of `name`; None if that cannot be.
    last = statements[-1]
    if last.start != Keep(name) or last.unique or not all(map(is_affine_index, last.target.indices)):
        return None
    for statement in statements:
        if (statement.start == Keep(name) and statement is not last) or not _reads_plainly(statement, name):
            return None

    def cells(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(normalized(cell_at(index, indices)) for index in view.indices)

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor != name:
            return node
        indices = cells(node.indices)
        return replace(node, tensor=view.tensor.name, indices=indices, boundaries=view.boundaries)

    moved = [map_statement(statement, lambda expr: transform(expr, rule)) for statement in statements]
    target = replace(moved[-1].target, indices=cells(moved[-1].target.indices))
    moved[-1] = replace(moved[-1], target=target, start=Keep(view.tensor.name))
    return moved


def _reads_plainly(statement: Statement, name: str) -> bool:
    plain = True

    def rule(expr: Expr) -> Expr:
        nonlocal plain
        plain = plain and all(set(read.boundaries) <= {Boundary.SKIP} for read in reads(expr) if read.tensor == name)
        return expr

    map_statement(statement, rule)
    return plain
