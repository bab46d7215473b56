"""Loops whose rounds change one part of a tensor, the same in all of them, as loops that hand on this part alone.

::

    repeat y_2 = row[i + 1] - row[i] times with y       y_part[()] = y[i]
    | y_3[i] = y[i] * f[j]  from y                      repeat y_part_2 = row[i + 1] - row[i] times with y_part
    | update y = y_3                                    | y_part_3[()] = y_part * f[j]
                                                        | update y_part = y_part_3
                                                        y_2[i] = y_part_2  from y

Derivatives keep what rounds read: all of ``y``, in each round of the loop around, where it is one cell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tcdsl.ir.build import in_range, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Expr,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    size_names,
    substitute,
    transform,
)
from tcdsl.ir.fresh_names import cell_names, names_of
from tcdsl.ir.program import (
    Access,
    AxisExtent,
    Keep,
    Neutral,
    Program,
    Repeat,
    Statement,
    Tensor,
    map_statement,
    statement_reads,
    tensors_read,
)
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import box
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["with_parts_carried"]

Each = TypeVar("Each")


def with_parts_carried(program: Program, inside: bool = False) -> Program:
    """``program`` with such loops, where data say how many rounds there are, or ``inside`` of such loops.

    Rounds that only add to the part need nothing of it, and stay as they are.
    """
    for repeat in program.repeats:
        data = inside or repeat.condition is not None or bool(repeat.read_by_ends)
        body, made = with_parts_carried(repeat.body, data), repeat
        if body is not repeat.body:
            made = replace(repeat, body=body)
            program = _with_loop(program, repeat, made)
        for name, _, _ in made.carried if data else ():
            part = _Part.of(made.body, name, inside)
            found = None if part is None else _with_part(program, made, part)
            if found is not None:
                program, made = found
    return program


def _with_loop(program: Program, old: Repeat, new: Repeat) -> Program:
    return replace(program, repeats=tuple(new if each is old else each for each in program.repeats))


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of the input ``name`` of a body that its rounds change: of each axis its one place, or ``None`` for all.

    The tensors of the ``chain`` hold it in the course of a round.
    """

    name: str
    chain: frozenset[str]
    places: tuple[Expr | None, ...]

    @staticmethod
    def of(body: Program, name: str, always: bool) -> _Part | None:
        """That part, if the rounds change one, and read it unless ``always``."""
        chain = {name}
        while more := {each.target.tensor for each in body.statements if _keeps(each, chain)} - chain:
            chain |= more
        if dict(body.updates)[name] not in chain or not _is_alone(body, chain):
            return None
        read = [each for statement in body.statements for each in statement_reads(statement) if each.tensor in chain]
        written = [statement for statement in body.statements if statement.target.tensor in chain]
        if not always and not read and all(each.accumulate in ("assign", "add", "subtract") for each in written):
            return None
        accesses = [*(each.indices for each in read), *(each.target.indices for each in written)]
        places = tuple(map(_place, zip(*accesses, strict=True)))
        if all(place is None for place in places) or not all(_is_plain(each, places) for each in read):
            return None
        return _Part(name, frozenset(chain), places)

    def kept(self, axes: Sequence[Each]) -> tuple[Each, ...]:
        """Those of something for each axis that the part has too."""
        return tuple(each for each, place in zip(axes, self.places, strict=True) if place is None)

    def of_tensor(self, tensor: Tensor, name: str) -> Tensor:
        """The tensor that holds the part of another one."""
        return replace(tensor, name=name, shape=self.kept(tensor.shape), label=tensor.label or tensor.name)


def _keeps(statement: Statement, chain: Collection[str]) -> bool:
    return isinstance(statement.start, Keep) and statement.start.tensor in chain


def _is_alone(body: Program, chain: Collection[str]) -> bool:
    # Whether statements alone touch the tensors, each of which is made of another one.
    used = {name for repeat in body.repeats for name in (*repeat.inputs, *repeat.results, *repeat.read_by_ends)}
    used.update(name for rule in body.rules for name in (*rule.named, *rule.outputs))
    used.update(body.outputs, (new for name, new in body.updates if name not in chain))
    own = {statement.target.tensor for statement in body.statements if _keeps(statement, chain)}
    carried = sum(name in chain for name, _ in body.updates)
    return used.isdisjoint(chain) and carried == 1 and len(chain) == len(own) + 1


def _place(axes: Sequence[Expr]) -> Expr | None:
    first, *others = dict.fromkeys(axes)
    return None if others or index_variables(first) or not is_affine_index(first) else first


def _is_plain(read: Read, places: Sequence[Expr | None]) -> bool:
    pairs = zip(read.boundaries, places, strict=True)
    return all(place is None or boundary is Boundary.SKIP for boundary, place in pairs)


def _with_part(program: Program, repeat: Repeat, part: _Part) -> tuple[Program, Repeat] | None:
    given = dict(zip((each.name for each in repeat.body.inputs[1:]), repeat.inputs, strict=True))
    # The sizes of the body that are extents of what it is given: not the number of a round.
    around: dict[Expr, Expr] = {
        SizeValue(size.name): program.tensor(given[size.source.tensor]).shape[size.source.axis]
        for size in repeat.body.sizes
        if isinstance(size.source, AxisExtent) and size.source.tensor in given
    }
    places = [None if place is None else substitute(place, around) for place in part.places]
    mentioned = {SizeValue(name) for place in part.places if place is not None for name in size_names(place)}
    [result] = (made for made, (name, _) in zip(repeat.results, repeat.body.updates, strict=True) if name == part.name)
    if not mentioned <= around.keys():
        return None
    first, last, names = program.tensor(given[part.name]), program.tensor(result), names_of(program)
    begun, ended = (part.of_tensor(each, names.fresh(f"{each.name}_part")) for each in (first, last))
    try:
        copies = _copies(program, places, (first, begun), (ended, last), repeat)
    except NotAffine:
        return None
    body, called = _body(repeat.body, part)
    made = replace(
        repeat,
        body=body,
        inputs=tuple(begun.name if each.name == called else given[each.name] for each in body.inputs[1:]),
        results=tuple(ended.name if each == result else each for each in repeat.results),
    )
    # The one before all that reads what the loop makes, the other one behind what makes what it is given.
    read = (place for place, each in enumerate(program.statements) if last.name in tensors_read(each))
    behind = next(read, len(program.statements))
    early, late = program.statements[:behind], program.statements[behind:]
    if any(each.target.tensor == first.name for each in late):
        return None
    tensors, statements = (*program.tensors, begun, ended), (*early, *copies, *late)
    return replace(_with_loop(program, repeat, made), tensors=tensors, statements=statements), made


def _copies(
    program: Program,
    places: Sequence[Expr | None],
    before: tuple[Tensor, Tensor],
    after: tuple[Tensor, Tensor],
    repeat: Repeat,
) -> tuple[Statement, Statement]:
    """What takes the part from the tensor before the loop, and puts it there after it."""
    (first, begun), (ended, last) = before, after
    cells = cell_names(len(begun.shape), (size.name for size in program.sizes))
    free = iter(cells)
    indices = tuple(index(next(free)) if place is None else place for place in places)
    points = box(cells, begun.shape)
    for place, extent in zip(places, first.shape, strict=True):
        if place is not None:
            # Where no round runs, nothing has been asked of it.
            points = points.intersect(condition_set(in_range(place, extent), points))
    own, domain, dtype = tuple(map(index, cells)), Domain.from_set(points), compute_dtype(first.dtype)
    taken = plain_read(first.name, indices, dtype)
    put = plain_read(ended.name, own, dtype)
    return (
        Statement(Access(begun.name, own), "assign", Neutral(), taken, domain, span=repeat.span),
        Statement(Access(last.name, indices), "assign", Keep(first.name), put, domain, span=repeat.span),
    )


def _body(body: Program, part: _Part) -> tuple[Program, str]:
    """The body that hands on the part, and what it calls it."""
    names = names_of(body)
    called = {name: names.fresh(f"{name}_part") for name in sorted(part.chain)}

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in called:
            return node
        indices, boundaries = part.kept(node.indices), part.kept(node.boundaries)
        return replace(node, tensor=called[node.tensor], indices=indices, boundaries=boundaries)

    def of_part(statement: Statement) -> Statement:
        statement, target = map_statement(statement, lambda expr: transform(expr, rule)), statement.target
        if target.tensor not in called:
            return statement
        assert isinstance(statement.start, Keep)
        target = replace(target, tensor=called[target.tensor], indices=part.kept(statement.target.indices))
        return replace(statement, target=target, start=Keep(called[statement.start.tensor]))

    tensors = (part.of_tensor(each, called[each.name]) if each.name in called else each for each in body.tensors)
    given = part.of_tensor(body.tensor(part.name), called[part.name])
    made = replace(
        body,
        inputs=(*body.inputs, given),
        tensors=tuple(tensors),
        statements=tuple(map(of_part, body.statements)),
        updates=tuple((called.get(name, name), called.get(new, new)) for name, new in body.updates),
    )
    read = [each.name for each in made.inputs if each.name != part.name]
    return with_needed_inputs(made, read), given.name
