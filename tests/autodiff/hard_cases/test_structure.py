"""What the calculus promises of the form of adjoints.

Target and read swap roles, the predicate stays and gains the equation z = g(v), and the equation is solved: where every
index is affine, an adjoint writes cells by plain index variables and never scatters. Source: Bernstein, Mara, Li,
Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tcdsl.autodiff import adjoint
from tcdsl.ir.expressions import Boundary, Read, index_variables, is_affine_index, walk
from tcdsl.ir.program import Program, Statement
from tcdsl.ir.text.printer import format_statement
from tcdsl.polyhedra.scatter_to_gather import target_variables
from tests.autodiff.hard_cases.cases import HardCase
from tests.autodiff.hard_cases.compositions import program_of
from tests.autodiff.hard_cases.rows import ROWS
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of


def has_data_indices(program: Program) -> bool:
    """Whether any access of the program depends on data, or a boundary computes its cell at run time."""
    for statement in program.statements:
        nodes = list(walk(statement.value))
        axes = [axis for node in nodes if isinstance(node, Read) for axis in node.indices]
        if not all(map(is_affine_index, (*axes, *statement.target.indices))):
            return True
    return False


def periodic(program: Program) -> bool:
    """Whether any read may be moved by more than a period, which leaves an index that is computed at run time."""
    periods = (Boundary.WRAP, Boundary.REFLECT, Boundary.SYMMETRIC)
    reads = [n for s in program.statements for n in walk(s.value) if isinstance(n, Read)]
    return any(boundary in periods for read in reads for boundary in read.boundaries)


def scatters(derived: Program, primal: Program) -> Iterator[Statement]:
    """Statements of a derivative in which points of several iterations of a target's variable meet in one cell."""
    own = {statement.target.tensor for statement in primal.statements}
    for statement in derived.statements:
        if statement.target.tensor in own:
            continue
        mentioned = frozenset().union(*map(index_variables, statement.target.indices))
        if mentioned - set(target_variables(statement)):
            yield statement


def check(program: Program, wrt: list[str]) -> None:
    derived = adjoint(program, wrt)
    found = [format_statement(statement, "") for statement in scatters(derived, program)]
    assert not found


@pytest.mark.parametrize("row", {row.function: row for row in ROWS}.values(), ids=str)
def test_affine_reads_have_gathers_as_adjoints(row: HardCase) -> None:
    program = program_of(row.function, row.arguments)
    if has_data_indices(program) or periodic(program):
        pytest.skip("its cells are known at run time only")
    check(program, [t.name for t in program.inputs if t.dtype.startswith("float")])


@pytest.mark.parametrize("program", [p for p in PROGRAMS.values() if p.smooth], ids=str)
def test_characteristic_programs_have_gathers_as_adjoints(program: CharacteristicProgram) -> None:
    arguments = arguments_of(program, program.calls[0], "float64")
    made = program.function.program(*arguments, **program.options)
    if has_data_indices(made) or periodic(made):
        pytest.skip("its cells are known at run time only")
    check(made, [t.name for t in made.inputs if t.dtype.startswith("float")])
