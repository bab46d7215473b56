"""Tensors that need not be read, because what they hold is known from elsewhere: a constant, or another tensor.

Copies, and statements that occur twice, hold what another tensor does; so do values that an elementwise tensor has been
filled with: ``d_b[j] += d_a[n, j] * (1 - a[n, j] * a[n, j])`` reads ``d_h[n, j]`` instead. And so do later versions of
a tensor whose changes nobody reads: ``B = A`` with ``B[0] = 0``, read where A is still the same. The derivative of a
tensor that is stored piece by piece is passed on piece by piece, and each piece that was passed on becomes zero in a
version of its own. Where the pieces do not overlap, all of them are read from the first version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import islpy as isl

from tcdsl.ir.build import constant, index, neutral_constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Constant, Expr, IndexValue, Read, reads, substitute, transform, walk
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import (
    Fill,
    Keep,
    Neutral,
    Program,
    Statement,
    Tensor,
    map_statement,
    reads_beside_value,
    with_statements,
)
from tcdsl.polyhedra.boxes import box, is_over_box
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.spaces import arranged
from tcdsl.polyhedra.writes import affine_target, cell_map, cells_read, read_cell
from tcdsl.rewrite.renaming import expression_with_tensors_renamed, statement_with_tensors_renamed, with_tensors_renamed
from tcdsl.rewrite.statement_kinds import content
from tcdsl.simplification.expressions.tape import shared
from tcdsl.simplification.sparsity.sparse_reads import operations

__all__ = ["copied", "with_constants_propagated", "with_values_reused", "without_copies", "without_unread_changes"]

_Constants = Mapping[str, Constant]


def with_constants_propagated(program: Program) -> Program:
    """``program`` with reads of constant tensors replaced by their constant."""
    known: dict[str, Constant] = {}
    statements = []
    for statement in program.statements:
        if known:
            statement = _substituted(statement, known)
        found = _uniform(statement, program.tensor(statement.target.tensor))
        if found is not None:
            known[statement.target.tensor] = found
        statements.append(statement)
    return replace(program, statements=tuple(statements)) if known else program


def _uniform(statement: Statement, tensor: Tensor) -> Constant | None:
    """The constant that all cells hold after a statement, if there is one."""
    dtype = compute_dtype(tensor.dtype)
    started: Constant | None = None
    if isinstance(statement.start, Neutral):
        started = neutral_constant(statement.accumulate, tensor.dtype)
    elif isinstance(statement.start, Fill) and isinstance(statement.start.value, Constant):
        started = statement.start.value
    if statement.domain.text.endswith(": false }"):
        return started
    value = statement.value
    if not isinstance(value, Constant) or tensor.dtype != dtype or not is_over_box(statement, tensor.shape):
        return None
    if statement.accumulate == "assign":
        return value
    if statement.accumulate == "add" and started is not None and started.value == 0:
        return constant(started.value + value.value, dtype)
    return None


def _substituted(statement: Statement, known: _Constants) -> Statement:
    # The target stays: an index of it that is data is checked, one that is not counts as in range.
    made = map_statement(statement, lambda expr: _with_constants(expr, known))
    made = made if made.target is statement.target else replace(made, target=statement.target)
    if not isinstance(made.start, Keep) or made.start.tensor not in known:
        return made
    value = known[made.start.tensor]
    neutral = value == neutral_constant(statement.accumulate, value.dtype)
    return replace(made, start=Neutral() if neutral else Fill(value))


def _with_constants(expr: Expr, known: _Constants) -> Expr:
    def rule(node: Expr) -> Expr:
        if isinstance(node, Read) and node.tensor in known and _always_finds_a_cell(node):
            return known[node.tensor]
        return node

    changed = transform(expr, rule)
    return expr if changed == expr else shared(changed)


def _always_finds_a_cell(read: Read) -> bool:
    # A checked index must go on raising errors, and a fill is another value.
    return not any(boundary in (Boundary.CHECK, Boundary.FILL) for boundary in read.boundaries)


def without_copies(program: Program, *, asserted: bool = False) -> Program:
    """``program`` without statements that only copy a tensor or repeat an earlier statement; where shapes are
    ``asserted`` to be equal, too.

    A copy that is an output stays where its original is an input, an output or an update too: results are arrays of
    their own. Otherwise the original takes the output's name.
    """
    fixed = {*program.outputs, *(new for _, new in program.updates)}
    inputs = {tensor.name for tensor in program.inputs}
    ruled = program.ruled
    names: dict[str, str] = {}
    promoted: dict[str, str] = {}
    seen: dict[object, str] = {}
    # What goes on from a tensor has its very shape.
    continued = {each.start.tensor for each in program.statements if isinstance(each.start, Keep)}
    kept: list[Statement] = []
    for statement in program.statements:
        if names:
            statement = statement_with_tensors_renamed(statement, names)
        name = statement.target.tensor
        original = copied(program, statement, asserted=asserted and name not in continued)
        if original is None and name not in ruled:
            original = seen.setdefault(content(statement, program.tensor(name)), name)
        if original in (None, name):
            kept.append(statement)
        elif name not in fixed:
            names[name] = original
        elif original not in fixed and original not in inputs and original not in promoted:
            promoted[original] = name
            names[name] = original
        else:
            kept.append(statement)
    if len(kept) == len(program.statements):
        return program
    program = replace(
        with_statements(program, kept),
        outputs=tuple(names.get(name, name) for name in program.outputs),
        updates=tuple((old, names.get(new, new)) for old, new in program.updates),
    )
    return with_tensors_renamed(program, promoted) if promoted else program


def copied(program: Program, statement: Statement, *, asserted: bool = False) -> str | None:
    """The tensor that a statement copies whole, if it does; see `without_copies`."""
    tensor = program.tensor(statement.target.tensor)
    if isinstance(statement.start, Keep) and statement.domain.text.endswith(": false }"):
        return statement.start.tensor
    value = statement.value
    plain = statement.accumulate == "assign" or (statement.accumulate == "add" and isinstance(statement.start, Neutral))
    if not plain or not isinstance(value, Read) or value.fill is not None or value.indices != statement.target.indices:
        return None
    source = program.tensor(value.tensor)
    alike = source.shape == tensor.shape or (asserted and _one_shape(program, source, tensor))
    if not alike or source.dtype != tensor.dtype or source.dtype != compute_dtype(source.dtype):
        return None
    return source.name if is_over_box(statement, tensor.shape) else None


def _one_shape(program: Program, one: Tensor, other: Tensor) -> bool:
    # By assertions, as those on a cotangent and what it belongs to.
    if len(one.shape) != len(other.shape):
        return False
    equal = {
        each.condition.arguments
        for each in program.assertions
        if isinstance(each.condition, Apply) and each.condition.primitive == "eq"
    }
    return all(a == b or (a, b) in equal or (b, a) in equal for a, b in zip(one.shape, other.shape, strict=True))


def with_values_reused(program: Program) -> Program:
    """``program`` with whole values read from an elementwise tensor that an earlier statement has filled with them."""
    held: dict[Expr, tuple[Tensor, tuple[int, ...]]] = {}
    context: isl.Set | None = None
    ruled = program.ruled
    statements: list[Statement] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        if operations(statement.value):
            pattern, variables = _pattern(statement.value)
            found = held.get(pattern)
            if found is not None:
                context = size_context(program) if context is None else context
                statement = _reading(statement, *found, variables, context)
            elif (
                tensor.name not in ruled
                and _fills(statement, tensor)
                and set(variables) == set(statement.domain.variables)
            ):
                held[pattern] = tensor, tuple(variables.index(name) for name in statement.domain.variables)
        statements.append(statement)
    return replace(program, statements=tuple(statements))


@lru_cache(maxsize=4096)
def _pattern(value: Expr) -> tuple[Expr, tuple[str, ...]]:
    # The value with its variables named in the order in which they occur, and these variables.
    names = tuple(dict.fromkeys(node.name for node in walk(value) if isinstance(node, IndexValue)))
    step: dict[Expr, Expr] = {index(name): index(f"_{k}") for k, name in enumerate(names)}
    return substitute(value, step), names


def _fills(statement: Statement, tensor: Tensor) -> bool:
    # Each cell holds the value at the point of the same name.
    plain = statement.accumulate == "assign" and tensor.dtype == compute_dtype(tensor.dtype)
    return plain and is_over_box(statement, tensor.shape)


def _reading(
    statement: Statement, tensor: Tensor, places: tuple[int, ...], variables: tuple[str, ...], context: isl.Set
) -> Statement:
    # The statement with the tensor's cells as its value, if they are in range at all its points.
    cells = tuple(variables[place] for place in places)
    points = arranged(statement.domain.set, cells).intersect_params(context)
    if not points.is_subset(box(cells, tensor.shape)):
        return statement
    return replace(statement, value=read_cell(tensor, cells, tensor.dtype))


def without_unread_changes(program: Program) -> Program:
    """``program`` without the versions of tensors that differ from an earlier one in cells that nobody reads."""
    statements = list(program.statements)
    if not any(isinstance(statement.start, Keep) for statement in statements):
        return program
    readers: dict[str, set[int]] = {}
    needed = {*program.outputs, *(new for _, new in program.updates)}
    for position, statement in enumerate(statements):
        for read in reads(statement.value):
            readers.setdefault(read.tensor, set()).add(position)
        # Reads in targets, conditions and fills stay. What later versions keep is looked at below.
        needed.update(read.tensor for read in reads_beside_value(statement))
    gone: set[int] = set()
    for position in reversed(range(len(statements))):
        statement = statements[position]
        if not isinstance(statement.start, Keep):
            continue
        name, earlier_name = statement.target.tensor, statement.start.tensor
        places = readers.get(name, set())
        open_to_readers = name not in needed and bool(places) and affine_target(statement)
        if not (open_to_readers and _unread(program, statements, position, places)):
            needed.add(earlier_name)
            continue
        for place in places:
            value = expression_with_tensors_renamed(statements[place].value, {name: earlier_name})
            statements[place] = replace(statements[place], value=shared(value))
        readers.setdefault(earlier_name, set()).update(places)
        gone.add(position)
    if not gone:
        return program
    return with_statements(program, (each for position, each in enumerate(statements) if position not in gone))


def _unread(program: Program, statements: list[Statement], position: int, places: set[int]) -> bool:
    """Whether the statements at ``places`` read no cell that the one at ``position`` writes."""
    writer = statements[position]
    context = size_context(program)
    written = cell_map(writer.domain.set, writer.target.indices).range().reset_tuple_id().intersect_params(context)
    for place in places:
        for read in reads(statements[place].value):
            if read.tensor == writer.target.tensor:
                found = cells_read(statements[place].domain.set, read)
                if found is None or not found.is_disjoint(written):
                    return False
    return True
