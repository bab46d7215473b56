"""Loops that add to zeros, and whose sums are added to another tensor, as loops that add to that one.

::

    zeros[z] = 0                                 repeat d_x_2 = N times with d_x
    repeat sums = N times with zeros             | sums_2[t] += ...  from sums_1
    | sums_2[t] += ...  from sums_1              | update sums_1 = sums_2
    | update sums_1 = sums_2
    d_x_2[z] = sums[z] + d_x[z]

In a loop around, whose rounds change few cells, all of them would be cleared and added in each round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tcdsl.ir.expressions import Apply, Constant, Expr, Read, is_plain_read
from tcdsl.ir.program import Keep, Neutral, Program, Repeat, Statement, Unset, statement_reads
from tcdsl.ir.stages import loops_in_order, tensors_needed
from tcdsl.polyhedra.boxes import is_over_box

__all__ = ["with_sums_continued"]


def with_sums_continued(program: Program) -> Program:
    """``program`` with such loops, also in the bodies of its loops."""
    if not program.repeats:
        return program
    bodies = [with_sums_continued(repeat.body) for repeat in program.repeats]
    if any(body is not repeat.body for body, repeat in zip(bodies, program.repeats, strict=True)):
        pairs = zip(program.repeats, bodies, strict=True)
        program = replace(program, repeats=tuple(replace(repeat, body=body) for repeat, body in pairs))
    for statement in program.statements:
        for result, other in _sums(program, statement):
            made = _continued(program, statement, result, other)
            if made is not None:
                # The loop may wait for another one now.
                program = replace(made, repeats=loops_in_order(made))
                break
    return program


def _sums(program: Program, statement: Statement) -> Iterator[tuple[str, str]]:
    # The result of a loop, and the tensor to which the statement adds it, cell by cell.
    results = {name for repeat in program.repeats for name in repeat.results}
    tensor = program.tensor(statement.target.tensor)
    parts: tuple[Expr, ...] = ()
    match statement:
        case Statement(accumulate="assign", value=Apply(primitive="add", arguments=parts)):
            pass
        case Statement(accumulate="add", start=Keep(tensor=kept), value=Read(tensor=name)):
            if _is_whole(statement, statement.value, tensor.name, program) and name in results:
                yield name, kept
            return
    if len(parts) != 2 or not all(_is_whole(statement, part, tensor.name, program) for part in parts):
        return
    for one, other in (parts, parts[::-1]):
        assert isinstance(one, Read)
        assert isinstance(other, Read)
        if one.tensor in results and one.tensor != other.tensor:
            yield one.tensor, other.tensor


def _is_whole(statement: Statement, part: Expr, target: str, program: Program) -> bool:
    # Whether a part of the value is, at each cell of the target, the same cell of a tensor like it.
    made = program.tensor(target)
    if not isinstance(part, Read) or not is_plain_read(part) or part.indices != statement.target.indices:
        return False
    read = program.tensor(part.tensor)
    return (read.shape, read.dtype) == (made.shape, made.dtype) and is_over_box(statement, made.shape)


def _continued(program: Program, statement: Statement, result: str, other: str) -> Program | None:
    [repeat] = (each for each in program.repeats if result in each.results)
    position = repeat.results.index(result)
    name, new = repeat.body.updates[position]
    places = [place for place, each in enumerate(repeat.body.inputs) if each.name == name]
    zeros = repeat.inputs[places[0] - 1]
    rules = [rule for rule in program.rules if {result, zeros} & {*rule.named}]
    if (
        not _only_adds(repeat.body, name, new)
        or not _is_zero(program, zeros)
        or _uses(program, result) != 1
        or not tensors_needed(program, [other]).isdisjoint(repeat.results)
        or any(rule.named.count(each) != 1 for rule in rules for each in (result, zeros))
    ):
        return None
    target = statement.target.tensor
    inputs = tuple(other if place == places[0] - 1 else each for place, each in enumerate(repeat.inputs))
    made = replace(repeat, inputs=inputs, results=tuple(target if each == result else each for each in repeat.results))
    renamed = {result: target, zeros: other}
    program = replace(
        program,
        tensors=tuple(each for each in program.tensors if each.name != result),
        statements=tuple(each for each in program.statements if each is not statement),
        repeats=tuple(made if each is repeat else each for each in program.repeats),
        rules=tuple(rule.with_tensors(renamed) if rule in rules else rule for rule in program.rules),
    )
    if _uses(program, zeros) or zeros in {name for rule in program.rules for name in rule.named}:
        return program
    return replace(
        program,
        tensors=tuple(each for each in program.tensors if each.name != zeros),
        statements=tuple(each for each in program.statements if each.target.tensor != zeros),
    )


def _uses(program: Program, name: str) -> int:
    # How often a tensor is read, but for what rules say of it.
    count = [name in repeat.read_by_ends for repeat in program.repeats].count(True)
    count += sum(repeat.inputs.count(name) for repeat in program.repeats)
    for statement in program.statements:
        count += sum(read.tensor == name for read in statement_reads(statement))
        count += isinstance(statement.start, Keep) and statement.start.tensor == name
    return count + program.outputs.count(name) + sum(new == name for _, new in program.updates)


def _is_zero(program: Program, name: str) -> bool:
    made = [statement for statement in program.statements if statement.target.tensor == name]
    if len(made) != 1 or not isinstance(made[0].start, Neutral | Unset):
        return False
    value = made[0].value
    zero = isinstance(value, Constant) and value.value == 0 and made[0].condition is None
    return zero and is_over_box(made[0], program.tensor(name).shape)


def _only_adds(body: Program, name: str, new: str) -> bool:
    """Whether a body makes ``new`` of its input ``name`` by adding to it, and needs neither for anything else."""
    while name != new:
        if _uses(body, name) != 1 or any(name in rule.named for rule in body.rules):
            return False
        onward = next((each.target.tensor for each in body.statements if _adds_to(each, name)), None)
        if onward is None:
            inner = next((each for each in body.repeats if name in each.inputs), None)
            onward = None if inner is None else _through(inner, name)
        if onward is None:
            return False
        name = onward
    return _uses(body, new) == 1


def _adds_to(statement: Statement, name: str) -> bool:
    adds = statement.accumulate in ("add", "subtract")
    return adds and isinstance(statement.start, Keep) and statement.start.tensor == name


def _through(repeat: Repeat, name: str) -> str | None:
    # What a loop inside makes of the tensor, if it only adds to it.
    own = repeat.body.inputs[1 + repeat.inputs.index(name)].name
    for result, (given, new) in zip(repeat.results, repeat.body.updates, strict=True):
        if given == own:
            return result if _only_adds(repeat.body, given, new) else None
    return None
