"""Which axes of a program's inputs the axes of its results come from, as the index accesses say.

::

    y[i, d] = x[i] * w[i + 1] * v[d]     # i: x at its own place, w at another one; d: v at its own place

    found = axis_origins(program)
    found.results[0][0].origins          # {("x", 0): Way.OWN, ("w", 0): Way.OTHER}
    found.tied                           # groups of axes of inputs over which one letter runs

The relation goes through statements and loops. A sum over an axis is no relation: each cell has all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag
from functools import lru_cache

import islpy as isl

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    IndexValue,
    Local,
    SizeValue,
    index_variables,
    is_affine_index,
    walk,
)
from tcdsl.ir.program import AxisExtent, Keep, Program, Repeat, Statement, statement_reads
from tcdsl.ir.stages import stages
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.polyhedra.writes import cell_map

__all__ = ["AxisOrigins", "InputAxis", "ResultAxis", "Way", "axis_origins"]

InputAxis = tuple[str, int]


class Way(Flag):
    """How the cell ``i`` along an axis reads along another one: at ``i``, elsewhere, or both."""

    OWN = 1
    OTHER = 2


@dataclass(frozen=True, slots=True)
class ResultAxis:
    """An axis of a result: the letter of the statement that makes it, if that is one, and where it comes from."""

    letter: str | None
    origins: Mapping[InputAxis, Way]


@dataclass(frozen=True, slots=True)
class AxisOrigins:
    """What `axis_origins` finds: of each output the axes, and the axes of inputs that belong together.

    ``tied`` are groups of axes that one letter goes over at one place, or whose extents must agree.
    """

    results: tuple[tuple[ResultAxis, ...], ...]
    tied: tuple[frozenset[InputAxis], ...]


@lru_cache(maxsize=256)
def axis_origins(program: Program) -> AxisOrigins:
    """The origins of the axes of ``program``'s outputs; see the top of this file."""
    walked = _Walk(frozenset())
    for tensor in program.inputs:
        axes = range(len(tensor.shape))
        walked.put(tensor.name, [{(tensor.name, axis): Way.OWN} for axis in axes], [None for _ in axes])
    walked.follow(program)
    results = [tuple(map(ResultAxis, walked.letters[name], walked.known[name])) for name in program.outputs]
    return AxisOrigins(tuple(results), _joined([*walked.met, *_equal_extents(program)]))


Origins = dict[InputAxis, Way]


@dataclass(slots=True)
class _Walk:
    """What is known of the tensors behind each statement; ``rounds`` are sizes that number the rounds of loops."""

    rounds: frozenset[str]
    known: dict[str, tuple[Origins, ...]] = field(default_factory=dict)
    letters: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    met: list[frozenset[InputAxis]] = field(default_factory=list)

    def put(self, name: str, origins: Iterable[Origins], letters: Iterable[str | None]) -> None:
        self.known[name], self.letters[name] = tuple(origins), tuple(letters)

    def follow(self, program: Program) -> None:
        for stage in stages(program):
            for statement in stage.statements:
                self._statement(statement)
            if stage.repeat is not None:
                self._repeat(stage.repeat)

    def _statement(self, statement: Statement) -> None:
        indices, start = statement.target.indices, statement.start
        found: list[Origins] = [{} for _ in indices]
        letters = [each.name if isinstance(each, IndexValue) else None for each in indices]
        meeting: dict[Expr, set[InputAxis]] = {}
        if isinstance(start, Keep):
            for axis, (index, kept) in enumerate(zip(indices, self.known[start.tensor], strict=True)):
                _add(found[axis], kept)
                letters[axis] = letters[axis] or self.letters[start.tensor][axis]
                _meet(meeting, index, kept)
        for read in statement_reads(statement):
            for index, origins in zip(read.indices, self.known[read.tensor], strict=True):
                if not origins:
                    continue
                _meet(meeting, index, origins)
                for axis, target in enumerate(indices):
                    way = _way(statement.domain, target, index, self.rounds)
                    if way:
                        _add(found[axis], origins if way is Way.OWN else dict.fromkeys(origins, Way.OTHER))
        self.put(statement.target.tensor, found, letters)
        self.met.extend(frozenset(each) for each in meeting.values() if len(each) > 1)

    def _repeat(self, repeat: Repeat) -> None:
        # What a round hands on may come from more axes in the next one, until nothing is new.
        body = repeat.body
        counter = body.inputs[0]
        rounds = self.rounds | {each.name for each in body.sizes if each.source == AxisExtent(counter.name, 0)}
        names = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
        given = {inner: tuple(map(dict, self.known[outer])) for inner, outer in names.items()}
        grown = True
        while grown:
            inside = _Walk(rounds)
            inside.put(counter.name, [{} for _ in counter.shape], [None for _ in counter.shape])
            for name, origins in given.items():
                inside.put(name, map(dict, origins), self.letters[names[name]])
            inside.follow(body)
            grown = False
            for old, new in body.updates:
                for mine, others in zip(given[old], inside.known[new], strict=True):
                    grown = _add(mine, others) or grown
        if not repeat.host:  # whose body says only that results depend on what is given
            self.met.extend(inside.met)
        for result, (old, new) in zip(repeat.results, body.updates, strict=True):
            self.put(result, given[old], inside.letters[new])


def _add(origins: Origins, others: Mapping[InputAxis, Way]) -> bool:
    # Whether there is something new.
    before = dict(origins)
    for place, way in others.items():
        origins[place] = origins.get(place, Way(0)) | way
    return origins != before


def _meet(meeting: dict[Expr, set[InputAxis]], index: Expr, origins: Origins) -> None:
    if not isinstance(index, Constant):
        meeting.setdefault(index, set()).update(place for place, way in origins.items() if Way.OWN in way)


@lru_cache(maxsize=4096)
def _way(domain: Domain, target: Expr, index: Expr, rounds: frozenset[str]) -> Way:
    """How cells of the index ``target`` read at ``index``: at their own place, elsewhere, or wherever they are."""
    if target == index:
        return Way.OWN
    if not is_affine_index(target):
        return Way(0)  # data say where a cell goes: its place is none of the axes that are read
    shared = Way.OTHER if _what_varies(target, rounds) & _what_varies(index, rounds) else Way(0)
    if not is_affine_index(index):
        return Way.OTHER if any(isinstance(each, Local) for each in walk(index)) else shared
    try:
        with limited():
            return _way_of(_places(domain.set, (target, index), rounds))
    except (NotAffine, TooMuchWork):
        return shared


def _what_varies(index: Expr, rounds: Collection[str]) -> frozenset[str]:
    sizes = [each.name for each in walk(index) if isinstance(each, SizeValue) and each.name in rounds]
    return index_variables(index).union(sizes)


def _places(points: isl.Set, indices: tuple[Expr, Expr], rounds: Collection[str]) -> isl.Set:
    # The pairs of places, in all rounds together.
    places = cell_map(points, indices).range().reset_tuple_id()
    for name in rounds:
        position = places.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            places = places.project_out(isl.dim_type.param, position, 1)
    return places


def _way_of(places: isl.Set) -> Way:
    if places.is_subset(isl.Set("{ [a, b] : a = b }")):
        return Way.OWN
    targets = places.project_out(isl.dim_type.set, 1, 1).add_dims(isl.dim_type.set, 1)
    reads = places.project_out(isl.dim_type.set, 0, 1).insert_dims(isl.dim_type.set, 0, 1)
    return Way(0) if targets.intersect(reads).is_subset(places) else Way.OTHER


def _equal_extents(program: Program) -> Iterator[frozenset[InputAxis]]:
    """Axes of different inputs whose extents the program wants to be equal."""
    sources = {each.name: each.source for each in program.sizes}
    for assertion in program.assertions:
        match assertion.condition:
            case Apply(primitive="eq", arguments=(SizeValue(name=one), SizeValue(name=other))):
                first, second = sources.get(one), sources.get(other)
                if isinstance(first, AxisExtent) and isinstance(second, AxisExtent) and first.tensor != second.tensor:
                    yield frozenset([(first.tensor, first.axis), (second.tensor, second.axis)])


def _joined(groups: Iterable[frozenset[InputAxis]]) -> tuple[frozenset[InputAxis], ...]:
    # Groups that share an axis are one.
    found: list[frozenset[InputAxis]] = []
    for group in groups:
        apart = [each for each in found if not each & group]
        found = [*apart, group.union(*[each for each in found if each & group])]
    return tuple(found)
