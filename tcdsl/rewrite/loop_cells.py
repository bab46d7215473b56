"""Loops whose rounds change one part of a tensor, the same in all of them, as loops that hand on this part alone.

::

    repeat y_2 = row[i + 1] - row[i] times with y       y_part[()] = y[i]
    | y_3[i] = y[i] * f[j]  from y                      repeat y_part_2 = row[i + 1] - row[i] times with y_part
    | update y = y_3                                    | y_part_3[()] = y_part * f[j]
                                                        | update y_part = y_part_3
                                                        y_2[i] = y_part_2  from y

What rounds read of it elsewhere, ``y[i - 1]``, is handed in as it was before the loop, ``y_beside[()] = y[i - 1]``.
Derivatives keep what rounds read: all of ``y``, in each round of the loop around, where it is one cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tcdsl.ir.build import apply, in_range, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
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
from tcdsl.ir.stages import at_most_one
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import normalized
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["with_parts_carried"]

# What is read at more places than these is given whole.
_MOST = 8

Each = TypeVar("Each")

_Places = tuple[Expr | None, ...]


def with_parts_carried(program: Program, inside: bool = False, changing: Collection[str] = ()) -> Program:
    """``program`` with such loops, where data say how many rounds there are, or ``inside`` of such loops.

    Rounds that only add to the part need nothing of it, and stay as they are. Of tensors that rounds of ``program``
    are ``changing``, loops inside are given the parts that they read.
    """
    for repeat in program.repeats:
        data = inside or repeat.condition is not None or bool(repeat.read_by_ends)
        own = {name for name, _ in repeat.body.updates} | {each.name for each in repeat.body.tensors}
        own.update(inner.name for inner, outer in _given(repeat) if outer in changing)
        body, made = with_parts_carried(repeat.body, data, own), repeat
        if body is not repeat.body:
            made = replace(repeat, body=body)
            program = _with_loop(program, repeat, made)
        for name, _, _ in made.carried if data else ():
            part = _Part.of(made.body, name, inside)
            # What a branch reads beside the part is read once, where it is.
            taken = part is not None and not (part.beside and at_most_one(made))
            found = _with_part(program, made, part) if part is not None and taken else None
            program, made = found or (program, made)
        for inner, outer in _given(made) if data else ():
            part = _Part.read_alone(made.body, inner.name) if outer in changing else None
            found = None if part is None else _with_part(program, made, part)
            program, made = found or (program, made)
    return program


def _given(repeat: Repeat) -> list[tuple[Tensor, str]]:
    return list(zip(repeat.body.inputs[1:], repeat.inputs, strict=True))


def _with_loop(program: Program, old: Repeat, new: Repeat) -> Program:
    return replace(program, repeats=tuple(new if each is old else each for each in program.repeats))


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of the input ``name`` of a body that its rounds change: of each axis its one place, or ``None`` for all.

    The tensors of the ``chain`` hold it in the course of a round; none does if all is read alone. Parts ``beside`` are
    read and not changed.
    """

    name: str
    chain: frozenset[str]
    places: _Places
    beside: tuple[_Places, ...]

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
        places = tuple(map(_place, zip(*(each.target.indices for each in written), strict=True)))
        at = {each.indices: _at(each.indices, places) for each in read}
        while (shared := _shared(places, at.values())) != places:
            places = shared
            at = {indices: _at(indices, places) for indices in at}
        if all(place is None for place in places) or not all(_is_plain(each, places) for each in read):
            return None
        return _Part(
            name, frozenset(chain), places, tuple(dict.fromkeys(each for each in at.values() if each != places))
        )

    @staticmethod
    def read_alone(body: Program, name: str) -> _Part | None:
        """What the body reads of an input that it does not change, if these are a few parts."""
        if name in dict(body.updates) or not _is_alone(body, {name}, 0):
            return None
        read = [each for statement in body.statements for each in statement_reads(statement) if each.tensor == name]
        if not read:
            return None
        fixed = [tuple(_place((axis,)) for axis in each.indices) for each in read]
        places = tuple(None if None in axes else axes[0] for axes in zip(*fixed, strict=True))
        beside = tuple(dict.fromkeys(_at(each.indices, places) for each in read))
        if all(place is None for place in places) or not all(_is_plain(each, places) for each in read):
            return None
        return _Part(name, frozenset(), places, beside) if len(beside) <= _MOST else None

    @property
    def all_places(self) -> tuple[_Places, ...]:
        """Those of the part, and of what is read beside it."""
        return (self.places, *self.beside) if self.chain else self.beside

    def at(self, read: Read) -> _Places:
        """The places that something is read at."""
        return _at(read.indices, self.places)

    def kept(self, axes: Sequence[Each]) -> tuple[Each, ...]:
        """Those of something for each axis that the part has too."""
        return tuple(each for each, place in zip(axes, self.places, strict=True) if place is None)

    def of_tensor(self, tensor: Tensor, name: str) -> Tensor:
        """The tensor that holds the part of another one."""
        return replace(tensor, name=name, shape=self.kept(tensor.shape), label=tensor.label or tensor.name)


def _keeps(statement: Statement, chain: Collection[str]) -> bool:
    return isinstance(statement.start, Keep) and statement.start.tensor in chain


def _is_alone(body: Program, chain: Collection[str], updates: int = 1) -> bool:
    # Whether statements alone touch the tensors, each of which is made of another one.
    used = {name for repeat in body.repeats for name in (*repeat.inputs, *repeat.results, *repeat.read_by_ends)}
    used.update(name for rule in body.rules for name in (*rule.named, *rule.outputs))
    used.update(body.outputs, (new for name, new in body.updates if name not in chain))
    own = {statement.target.tensor for statement in body.statements if _keeps(statement, chain)}
    carried = sum(name in chain for name, _ in body.updates)
    return used.isdisjoint(chain) and carried == updates and len(chain) == len(own) + 1


def _place(axes: Sequence[Expr]) -> Expr | None:
    first, *others = dict.fromkeys(axes)
    return None if others or index_variables(first) or not is_affine_index(first) else first


def _at(indices: Sequence[Expr], places: _Places) -> _Places:
    return tuple(None if place is None else axis for axis, place in zip(indices, places, strict=True))


def _shared(places: _Places, read: Iterable[_Places]) -> _Places:
    """``places`` without the axes along which what is ``read`` may be, and may not be, the part."""
    for each in read:
        pairs = list(zip(places, each, strict=True))
        fixed = tuple(None if other is None or _place((other,)) is None else place for place, other in pairs)
        if fixed != places:
            return fixed
        if not any(place is not None and _apart(place, other) for place, other in pairs):
            places = tuple(place if place == other else None for place, other in pairs)
    return places


def _apart(place: Expr, other: Expr | None) -> bool:
    distance = None if other is None else normalized(apply("sub", place, other))
    return isinstance(distance, Constant) and distance.value != 0


def _is_plain(read: Read, places: Sequence[Expr | None]) -> bool:
    pairs = zip(read.boundaries, places, strict=True)
    return all(place is None or boundary is Boundary.SKIP for boundary, place in pairs)


def _with_part(program: Program, repeat: Repeat, part: _Part) -> tuple[Program, Repeat] | None:
    given = {inner.name: outer for inner, outer in _given(repeat)}
    # The sizes of the body that are extents of what it is given: not the number of a round.
    around: dict[Expr, Expr] = {
        SizeValue(size.name): program.tensor(given[size.source.tensor]).shape[size.source.axis]
        for size in repeat.body.sizes
        if isinstance(size.source, AxisExtent) and size.source.tensor in given
    }
    mentioned = {SizeValue(name) for at in part.all_places for place in at if place for name in size_names(place)}
    if not mentioned <= around.keys():
        return None
    first, names = program.tensor(given[part.name]), names_of(program)
    parts = [part.of_tensor(first, names.fresh(f"{first.name}_part")) for _ in part.all_places]
    try:
        copies = [
            _copy(program, [None if place is None else substitute(place, around) for place in at], first, copy, repeat)
            for at, copy in zip(part.all_places, parts, strict=True)
        ]
    except NotAffine:
        return None
    body, called = _body(repeat.body, part)
    given |= dict(zip(called, (each.name for each in parts), strict=True))
    made = replace(repeat, body=body, inputs=tuple(given[each.name] for each in body.inputs[1:]))
    if part.chain:
        [result] = (
            made for made, (name, _) in zip(repeat.results, repeat.body.updates, strict=True) if name == part.name
        )
        ended = part.of_tensor(program.tensor(result), names.fresh(f"{result}_part"))
        made = replace(made, results=tuple(ended.name if each == result else each for each in repeat.results))
        parts.append(ended)
        copies.append(_put(copies[0], ended, program.tensor(result)))
    # The one before all that reads what the loop makes, the other one behind what makes what it is given.
    results = set(repeat.results)
    read = (place for place, each in enumerate(program.statements) if not results.isdisjoint(tensors_read(each)))
    behind = next(read, len(program.statements))
    early, late = program.statements[:behind], program.statements[behind:]
    if any(each.target.tensor == first.name for each in late):
        return None
    tensors, statements = (*program.tensors, *parts), (*early, *copies, *late)
    return replace(_with_loop(program, repeat, made), tensors=tensors, statements=statements), made


def _copy(program: Program, places: Sequence[Expr | None], whole: Tensor, part: Tensor, repeat: Repeat) -> Statement:
    """What takes a part from a tensor before the loop."""
    cells = cell_names(len(part.shape), (size.name for size in program.sizes))
    free = iter(cells)
    indices = tuple(index(next(free)) if place is None else place for place in places)
    points = box(cells, part.shape)
    for place, extent in zip(places, whole.shape, strict=True):
        if place is not None:
            # Where no round runs, nothing has been asked of it.
            points = points.intersect(condition_set(in_range(place, extent), points))
    taken = plain_read(whole.name, indices, compute_dtype(whole.dtype))
    target = Access(part.name, tuple(map(index, cells)))
    return Statement(target, "assign", Neutral(), taken, Domain.from_set(points), span=repeat.span)


def _put(taken: Statement, ended: Tensor, last: Tensor) -> Statement:
    """What puts the part where it was ``taken``, after the loop."""
    assert isinstance(taken.value, Read)
    value = plain_read(ended.name, taken.target.indices, taken.value.dtype)
    return replace(taken, target=Access(last.name, taken.value.indices), start=Keep(taken.value.tensor), value=value)


def _body(body: Program, part: _Part) -> tuple[Program, tuple[str, ...]]:
    """The body that hands on the part, and what it calls it and what is read beside it."""
    names = names_of(body)
    called = {name: names.fresh(f"{name}_part") for name in sorted(part.chain)}
    beside = {at: names.fresh(f"{part.name}_beside") for at in part.beside}

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in (part.chain or (part.name,)):
            return node
        indices, boundaries = part.kept(node.indices), part.kept(node.boundaries)
        tensor = beside.get(part.at(node)) or called[node.tensor]
        return replace(node, tensor=tensor, indices=indices, boundaries=boundaries)

    def of_part(statement: Statement) -> Statement:
        statement, target = map_statement(statement, lambda expr: transform(expr, rule)), statement.target
        if target.tensor not in called:
            return statement
        assert isinstance(statement.start, Keep)
        target = replace(target, tensor=called[target.tensor], indices=part.kept(statement.target.indices))
        return replace(statement, target=target, start=Keep(called[statement.start.tensor]))

    tensors = (part.of_tensor(each, called[each.name]) if each.name in called else each for each in body.tensors)
    given = (*(called[name] for name in part.chain if name == part.name), *beside.values())
    made = replace(
        body,
        inputs=(*body.inputs, *(part.of_tensor(body.tensor(part.name), name) for name in given)),
        tensors=tuple(tensors),
        statements=tuple(map(of_part, body.statements)),
        updates=tuple((called.get(name, name), called.get(new, new)) for name, new in body.updates),
    )
    read = [each.name for each in made.inputs if each.name != part.name]
    return with_needed_inputs(made, read), given
