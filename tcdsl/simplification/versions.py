"""Later versions of a tensor whose changes nobody reads: ``B = A`` with ``B[0] = 0``, read where A is still the same.

The derivative of a tensor that is stored piece by piece is passed on piece by piece, and each piece that was passed on
becomes zero in a version of its own. Where the pieces do not overlap, all of them are read from the first version.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import truth
from tcdsl.ir.expressions import reads
from tcdsl.ir.program import Keep, Neutral, Program, Statement, tensors_read, with_statements
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.writes import affine_target, cell_map, cells_read
from tcdsl.rewrite.renaming import expression_with_tensors_renamed
from tcdsl.simplification.expressions.tape import shared

__all__ = ["without_unread_changes"]


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
        start = Neutral() if isinstance(statement.start, Keep) else statement.start
        needed |= tensors_read(replace(statement, value=truth(True), start=start))
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
