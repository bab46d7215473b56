"""What a round reads of a large tensor at places that it knows, as tensors of their own: they go on a tape then.

::

    d_x_2[t] += d_y * u[k[t]]        u_read = u[k[t]]     (in the loop forwards)
                                     d_x_2[t] += d_y * u_read

Of a tensor that rounds overwrite cell by cell, a tape would else hold all cells in each round, because isl cannot say
which ones data choose, nor leave out an axis of which a round reads two places; nor does it know what branches and
loops inside of the round read. Where data choose several, ``u[k[t, i]]``, they are kept for the points of the statement
that reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.autodiff.loop_derivatives.reads_at_points import ReadsAtPoints
from tcdsl.autodiff.loop_derivatives.reversed_rounds import extents_around
from tcdsl.ir.build import apply, in_range, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    Local,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    size_names,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import cell_names
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
from tcdsl.ir.stages import tensors_needed
from tcdsl.polyhedra.affine import NotAffine, condition_set, universe
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import normalized
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["with_gathered_reads"]

# A tensor that is read at more places than these is kept whole.
_MOST = 8

_Places = tuple[Expr | None, ...]
"""The index along each axis in the sizes and tensors of the round, ``None`` where one round reads several."""

_Around = Callable[[Expr], Expr | None]
"""What an index in a body is in the sizes and tensors of the round; ``None`` if one round has several values."""


def with_gathered_reads(
    values: Program,
    linear: Program,
    tensor: Tensor,
    fresh: Callable[[str], str],
    carried: Collection[str],
    few: bool,
    once: bool,
) -> tuple[Program, Program] | None:
    """``values``, which makes what is read of ``tensor``, and ``linear``, which takes that instead of its input.

    ``None`` where it is better, or not possible otherwise, to keep the tensor. With ``few``, rounds write few cells of
    it. The inputs ``carried`` are others in each round. A body that runs ``once`` at most has no tape, and keeps whole
    tensors.
    """
    if few:
        at_points = ReadsAtPoints(values, tensor, carried, fresh)
        changed = at_points.rewritten(linear)
        if at_points.made:
            values = replace(
                values,
                tensors=(*values.tensors, *(made for made, _ in at_points.made)),
                statements=_with_early(values.statements, [store for _, store in at_points.made]),
            )
            changed = replace(changed, inputs=(*(made for made, _ in at_points.made), *changed.inputs))
            if tensor.name not in tensors_needed(changed, changed.outputs):
                return values, changed
            return _at_places(values, changed, tensor, fresh, once)
    return _at_places(values, linear, tensor, fresh, once)


def _with_early(statements: Sequence[Statement], more: Sequence[Statement]) -> tuple[Statement, ...]:
    """``statements``, and ``more`` as early as they may be: before others write what they read."""
    found = list(statements)
    for statement in more:
        read = tensors_read(statement)
        makers = (place for place in range(len(found), 0, -1) if found[place - 1].target.tensor in read)
        found.insert(next(makers, 0), statement)
    return tuple(found)


def _at_places(
    values: Program, linear: Program, tensor: Tensor, fresh: Callable[[str], str], once: bool
) -> tuple[Program, Program] | None:
    known = {each.name for each in (*values.inputs, *values.tensors)}
    sizes = {size.name for size in values.sizes}

    def around(place: Expr) -> Expr | None:
        read = {part.tensor for part in walk(place) if isinstance(part, Read)}
        is_known = read <= known and size_names(place) <= sizes
        return normalized(place) if is_known and (read or _has_domain(place)) else None

    reads = _Reads(tensor, fresh)
    if not reads.find(linear, tensor.name, around) or not reads.are_worth_it(once):
        return None
    made = reads.groups.values()
    statements = tuple(group.gathering(tensor, values) for group in made)
    tensors = tuple(group.tensor for group in made)
    values = replace(values, tensors=(*values.tensors, *tensors), statements=_with_early(values.statements, statements))
    changed = reads.rewritten(linear, tensor.name, tensor.shape, {group.tensor.name: group for group in made}, around)
    return None if changed is None else (values, replace(changed, inputs=(*tensors, *changed.inputs)))


def _has_domain(place: Expr) -> bool:
    # Quotients and remainders by sizes have no names here, as they have in the bodies that read.
    try:
        condition_set(apply("ge", place, integer(0)), universe((), ()))
    except NotAffine:
        return False
    return True


@dataclass(slots=True)
class _Group:
    places: _Places
    tensor: Tensor

    def kept(self, axes: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Those of something for each axis that belong to an axis of the group."""
        return tuple(each for each, place in zip(axes, self.places, strict=True) if place is None)

    def gathering(self, whole: Tensor, values: Program) -> Statement:
        """The statement that makes it. Nothing fails: branches that are not taken read out of range."""
        cells = cell_names(len(self.tensor.shape), (size.name for size in values.sizes))
        points = box(cells, self.tensor.shape)
        free = iter(cells)
        indices: list[Expr] = []
        boundaries: list[Boundary] = []
        for place, extent in zip(self.places, whole.shape, strict=True):
            inside = place is None or is_affine_index(place)
            indices.append(index(next(free)) if place is None else place)
            boundaries.append(Boundary.SKIP if inside else Boundary.CLAMP)
            if place is not None:
                points = points.intersect(condition_set(in_range(place if inside else integer(0), extent), points))
        value = Read(whole.name, tuple(indices), tuple(boundaries), compute_dtype(whole.dtype))
        target = Access(self.tensor.name, tuple(map(index, cells)))
        return Statement(target, "assign", Neutral(), value, Domain.from_set(points))


class _Reads:
    """The reads of ``tensor`` in a round and in the loops inside of it, in groups of the same places."""

    def __init__(self, tensor: Tensor, fresh: Callable[[str], str]) -> None:
        self._tensor = tensor
        self._fresh = fresh
        self._nested = False
        self.groups: dict[_Places, _Group] = {}

    def find(self, program: Program, name: str, around: _Around) -> bool:
        """Find the reads of ``name`` in a body; whether there is nothing else that needs it."""
        if any(isinstance(each.start, Keep) and each.start.tensor == name for each in program.statements):
            return False
        if any(name in rule.named for rule in program.rules):
            return False
        if name in program.outputs or any(name == new for _, new in program.updates):
            return False
        for statement in program.statements:
            for read in statement_reads(statement):
                if read.tensor == name and not self._add(_places(read, around)):
                    return False
        for repeat in program.repeats:
            if name in repeat.read_by_ends:
                return False
            for inner in _given(repeat, name):
                self._nested = True
                inside = _around_body(program, repeat, around)
                if repeat.host:
                    return False
                if inner in dict(repeat.body.updates) or not self.find(repeat.body, inner, inside):
                    return False
        return True

    def _add(self, places: _Places) -> bool:
        if places not in self.groups:
            shape = tuple(extent for extent, place in zip(self._tensor.shape, places, strict=True) if place is None)
            made = Tensor(self._fresh(f"{self._tensor.name}_read"), self._tensor.dtype, shape)
            self.groups[places] = _Group(places, made)
        return len(self.groups) <= _MOST and any(place is not None for place in places)

    def are_worth_it(self, once: bool) -> bool:
        """Whether a tape for each group takes less than one of the cells that isl finds, or than the whole tensor."""
        places = [place for group in self.groups for place in group if place is not None]
        several = len(self.groups) > 1 and not all(isinstance(place, Constant) for place in places)
        return bool(self.groups) and (once or self._nested or several or not all(map(is_affine_index, places)))

    def rewritten(
        self, program: Program, name: str, shape: tuple[Expr, ...], names: Mapping[str, _Group], around: _Around
    ) -> Program | None:
        """``program``, a body, with reads of ``names`` instead of ``name``, which are to be inputs of it."""

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.tensor != name:
                return node
            group = self.groups[_places(node, around)]
            [called] = (each for each, other in names.items() if other is group)
            boundaries = tuple(b for b, place in zip(node.boundaries, group.places, strict=True) if place is None)
            return replace(node, tensor=called, indices=group.kept(node.indices), boundaries=boundaries)

        repeats: list[Repeat] = []
        for repeat in program.repeats:
            for inner in _given(repeat, name):
                changed = self._with_inputs(program, repeat, inner, names, around)
                if changed is None:
                    return None
                repeat = changed
            repeats.append(repeat)
        statements = (map_statement(each, lambda expr: transform(expr, rule)) for each in program.statements)
        return replace(program, statements=tuple(statements), repeats=tuple(repeats))

    def _with_inputs(
        self, program: Program, repeat: Repeat, inner: str, names: Mapping[str, _Group], around: _Around
    ) -> Repeat | None:
        body = repeat.body
        declared = body.tensor(inner)
        taken = {each.name for each in (*body.inputs, *body.tensors)} | {size.name for size in body.sizes}
        own: dict[str, _Group] = {}
        given: list[str] = []
        made: list[Tensor] = []
        for name, group in names.items():
            called = self._fresh(name)
            while called in taken:
                called = self._fresh(name)
            own[called] = group
            given.append(name)
            made.append(Tensor(called, declared.dtype, group.kept(declared.shape)))
        inside = _around_body(program, repeat, around)
        changed = self.rewritten(body, inner, declared.shape, own, inside)
        if changed is None:
            return None
        changed = replace(changed, inputs=(*changed.inputs, *made))
        read = [each.name for each in changed.inputs if each.name != inner]
        changed = with_needed_inputs(changed, read)
        if any(each.name == inner for each in changed.inputs):
            return None  # Nothing else has its extents.
        pairs = zip(body.inputs[1:], repeat.inputs, strict=True)
        kept = tuple(outer for each, outer in pairs if each.name != inner)
        return replace(repeat, body=changed, inputs=(*kept, *given))


def _places(read: Read, around: _Around) -> _Places:
    def place(axis: Expr) -> Expr | None:
        if index_variables(axis) or any(isinstance(part, Local) for part in walk(axis)):
            return None
        return around(axis)

    return tuple(map(place, read.indices))


def _given(repeat: Repeat, name: str) -> list[str]:
    # What the body calls a tensor that it is given.
    return [inner.name for inner, outer in zip(repeat.body.inputs[1:], repeat.inputs, strict=True) if outer == name]


def _around_body(program: Program, repeat: Repeat, around: _Around) -> _Around:
    body = repeat.body
    changing = {name for name, _ in body.updates} | {body.inputs[0].name}
    pairs = list(zip(body.inputs[1:], repeat.inputs, strict=True))
    tensors = {inner.name: outer for inner, outer in pairs if inner.name not in changing}
    sizes = extents_around(body, {inner.name: program.tensor(outer).shape for inner, outer in pairs})
    for size in body.sizes:
        if not isinstance(size.source, AxisExtent) and all(
            SizeValue(each) in sizes for each in size_names(size.source)
        ):
            sizes[SizeValue(size.name)] = substitute(size.source, sizes)

    def moved(place: Expr) -> Expr | None:
        if any(SizeValue(name) not in sizes for name in size_names(place)):
            return None
        if any(part.tensor not in tensors for part in walk(place) if isinstance(part, Read)):
            return None
        named = transform(
            place, lambda node: replace(node, tensor=tensors[node.tensor]) if isinstance(node, Read) else node
        )
        return around(substitute(named, sizes))

    return moved
