"""Loops that carry what another tensor was, and not its negative: memory changes places then, and nothing is computed.

::

    repeat with a, b:                  repeat with a, minus_b:
        c = b + f(a)                       c = -minus_b + f(a)
        update b = -a                      update minus_b = a
        update a = c                       update a = c

So do adjoints of steps that look back at two states, as ``w = 2 * u - v + ...``. A negative is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.build import apply
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Apply, Cast, Expr, Read, transform
from tcdsl.ir.fresh_names import FreshNames, cell_names, names_of
from tcdsl.ir.program import Keep, Program, Repeat, Statement, Tensor, map_statement, statement_reads
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.simplification.redundant_tensors import copied

__all__ = ["without_carried_negations"]


def without_carried_negations(program: Program) -> Program:
    """``program`` whose loops, and those in them, carry no negatives of tensors that they carry anyway."""
    if not program.repeats:
        return program
    names = names_of(program)
    for position, repeat in enumerate(program.repeats):
        changed = replace(repeat, body=without_carried_negations(repeat.body))
        found = (
            None if isinstance(repeat.count, Cast) else _negated(with_equal_sizes(changed.body))
        )  # a branch: one round
        program = _with_repeat(program, position, changed)
        if found is not None:
            program = _negatives_around(program, position, *found, names)
    return program


def _with_repeat(program: Program, position: int, repeat: Repeat) -> Program:
    return replace(program, repeats=(*program.repeats[:position], repeat, *program.repeats[position + 1 :]))


def _negated(body: Program) -> tuple[str, str] | None:
    # An input that becomes the negative of another one that the loop carries too, and that one.
    made = {statement.target.tensor: statement for statement in body.statements}
    carried = {name for name, _ in body.updates}
    for name, new in body.updates:
        original = _negative_of(body, new, made)
        if original in carried - {name} and original is not None and _is_read_alone(body, name):
            mine, its = body.tensor(name), body.tensor(original)
            if mine.shape and (mine.shape, mine.dtype) == (its.shape, its.dtype):
                return name, original
    return None


def _negative_of(body: Program, name: str, made: Mapping[str, Statement]) -> str | None:
    while name in made and (original := copied(body, made[name])) is not None:
        name = original
    if name not in made:
        return None
    match made[name].value:
        case Apply(primitive="neg", arguments=(Read() as read,)) if is_floating(read.dtype):
            return copied(body, replace(made[name], value=read))
        case _:
            return None


def _is_read_alone(body: Program, name: str) -> bool:
    # Whether nothing but reads of its cells needs the input.
    if name in body.outputs or name in body.ruled or any(new == name for _, new in body.updates):
        return False
    if any(name in (*repeat.inputs, *repeat.read_by_ends) for repeat in body.repeats):
        return False
    if any(isinstance(each.start, Keep) and each.start.tensor == name for each in body.statements):
        return False
    return all(read.fill is None for each in body.statements for read in statement_reads(each) if read.tensor == name)


def _negatives_around(program: Program, position: int, name: str, original: str, names: FreshNames) -> Program:
    """The loop at ``position`` with the negative of what was its input ``name``, which becomes its ``original``."""
    repeat = program.repeats[position]
    body = repeat.body

    def rule(node: Expr) -> Expr:
        return apply("neg", node) if isinstance(node, Read) and node.tensor == name else node

    statements = tuple(map_statement(each, lambda expr: transform(expr, rule)) for each in body.statements)
    updates = tuple((each, original if each == name else new) for each, new in body.updates)
    place = next(place for place, each in enumerate(body.inputs[1:]) if each.name == name)
    given, result = repeat.inputs[place], repeat.results[[each for each, _ in body.updates].index(name)]
    minus_given, minus_result = names.fresh(f"minus_{given}"), names.fresh(f"minus_{result}")
    inputs = (*repeat.inputs[:place], minus_given, *repeat.inputs[place + 1 :])
    results = tuple(minus_result if each == result else each for each in repeat.results)
    changed = replace(
        repeat, results=results, inputs=inputs, body=replace(body, statements=statements, updates=updates)
    )
    program = _with_repeat(program, position, changed)
    declared = program.tensor(given)
    made = [replace(declared, name=minus_given), replace(program.tensor(result), name=minus_result)]
    return replace(
        program,
        tensors=(*program.tensors, *made),
        statements=(
            _negative(program, made[1], result),
            *program.statements,
            _negative(program, declared, minus_given),
        ),
    )


def _negative(program: Program, tensor: Tensor, name: str) -> Statement:
    cells = cell_names(len(tensor.shape), (size.name for size in program.sizes))
    value = apply("neg", read_cell(tensor, cells, compute_dtype(tensor.dtype)))
    return over_box(name, cells, tensor.shape, value)
