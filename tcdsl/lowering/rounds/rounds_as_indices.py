"""A loop each of whose rounds makes a row of its own, as statements whose first index is the number of the round.

::

    repeat y_2 = N times:                        t[n, ()] += X[n, j] * X[n, j]
        r[j] = X[n, j]                           y_2[n, j] = X[n, j] / sqrt(t[n])
        t[()] += r[j] * r[j]
        y_3[n, j] = r[j] / sqrt(t)

So an op that is called for each row costs what whole arrays cost: its sums need no nest of their own in each round, and
what it makes in between is seen by all passes. What a round makes has a row for each round then. Where that could take
more memory than the arrays that the loop reads or fills, the rounds stay. So do rounds of scalars of which one is made
of cells that the loop changes, as in ``r = u[i - 1] + u[i + 1]; u[i] += r``: kept for all rounds, it would take a
second pass over the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Read,
    SizeValue,
    is_affine_index,
    reads,
    size_names,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames, cell_names, names_of
from tcdsl.ir.program import (
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
    Neutral,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    map_statement,
    statement_expressions,
    statement_reads,
    tensors_read,
)
from tcdsl.lowering.program_passes.fusion import fuse
from tcdsl.lowering.program_passes.schedule import covers
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.lowering.rounds.round_bounds import bounds_over_rounds
from tcdsl.polyhedra.affine import NotAffine, holds
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.polyhedra.linear import linear_form
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.writes import cell_map
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.span import Span

__all__ = ["with_rounds_as_indices"]

# Cells of constant extents that a round may make in between for each row of an array.
_FEW_CELLS = 16


def with_rounds_as_indices(program: Program) -> Program:
    """``program`` without the loops whose rounds can be indices of statements, inner ones first."""
    return _converted(program, 0)[1]


def _converted(program: Program, depth: int) -> tuple[Program, Program]:
    """``program``, inside of ``depth`` loops, without the loops that can be indices; and with those of them left that
    cost less as they are, unless the loop around them becomes an index too.
    """
    every = some = program
    left: list[Repeat] = []
    kept: list[Repeat] = []
    for repeat in program.repeats:
        if repeat.host:
            kept.append(repeat)
            left.append(repeat)
            continue
        bodies = _converted(repeat.body, depth + 1)
        found = _Rounds.of(every, replace(repeat, body=bodies[0]), _has_points(repeat.body))
        made = None if found is None else found.statements()
        if made is not None:
            every = _with(every, repeat, made)
        else:
            left.append(replace(repeat, body=bodies[1]))
        if made is not None and _is_worth_it(repeat, depth) and not made.twice:
            some = _with(some, repeat, made)
        else:
            unordered = made is not None and found is not None and found.apart
            kept.append(replace(repeat, body=bodies[1], unordered=unordered))
    return _in_order(every, left), _in_order(some, kept)


def _is_worth_it(repeat: Repeat, depth: int) -> bool:
    """Whether rounds inside of ``depth`` loops become statements, although the loop around them stays.

    A loop over scalars is machine code, and its statements would be launched in each round of the loop around it.
    """
    if depth == 0 or _has_points(repeat.body):
        return True
    return depth == 1 and bool(repeat.body.repeats) and any(each.shape for each in repeat.body.inputs[1:])


def _has_points(program: Program) -> bool:
    own = any(statement.domain.variables for statement in program.statements)
    return own or any(_has_points(repeat.body) for repeat in program.repeats)


def _with(program: Program, repeat: Repeat, made: _Made) -> Program:
    return replace(
        program,
        sizes=(*program.sizes, *(each for each in made.sizes if each not in program.sizes)),
        tensors=(*program.tensors, *(each for each in made.tensors if each.name not in repeat.results)),
        statements=(*program.statements, *made.made),
    )


def _in_order(program: Program, left: Sequence[Repeat]) -> Program:
    # Each statement behind those that make what it reads; loops give all of theirs.
    if len(left) == len(program.repeats):
        return replace(program, repeats=tuple(left))
    program = replace(program, repeats=tuple(left))
    known = {tensor.name for tensor in program.inputs}
    known.update(name for repeat in program.repeats for name in repeat.results)
    waiting, found = list(program.statements), list[Statement]()
    while waiting:
        later: list[Statement] = []
        for statement in waiting:
            ready = tensors_read(statement) <= known
            (found if ready else later).append(statement)
            if ready:
                known.add(statement.target.tensor)
        waiting = later
    return replace(program, statements=tuple(found))


class _UnfitError(Exception):
    """The rounds of this loop cannot be an index."""


@dataclass(slots=True)
class _Made:
    """A program that takes in the statements of one round: a `tcdsl.rewrite.inlining.Host`.

    ``own`` is what each round makes for itself. ``twice``: statements store, for a second pass, what rounds of scalars
    have in registers.
    """

    program: Program
    names: FreshNames
    number: str
    sizes: list[Size] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    made: list[Statement] = field(default_factory=list)
    own: Set[str] = frozenset()
    twice: bool = False

    def fresh_name(self, hint: str) -> str:
        """A name that is new."""
        return self.names.fresh(hint)

    def opaque_size(self, expr: Expr) -> Expr:
        """The size that stands for an expression, which is the same in all rounds."""
        if self.number in size_names(expr):
            raise _UnfitError
        if isinstance(expr, SizeValue | Constant):
            return expr
        for size in (*self.program.sizes, *self.sizes):
            if size.source == expr:
                return SizeValue(size.name)
        self.sizes.append(Size(self.names.fresh("size"), expr))
        return SizeValue(self.sizes[-1].name)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """What holds in a round has been asserted for all of them."""

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        """Rounds have no loops."""
        raise NotImplementedError(repeat)

    def add_rule(self, rule: DerivativeRule) -> None:
        """Rules are gone when programs are lowered."""
        raise NotImplementedError(rule)

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add a statement, with the declaration of what it makes."""
        self.made.append(statement)
        self.tensors.append(tensor)


@dataclass(frozen=True, slots=True)
class _Rounds:
    """A loop of ``program`` over straight code, and which version of what each of its statements makes.

    ``rows`` are what it carries and its versions: each round changes rows of its own, or, where they are not ``apart``,
    adds to what no round reads. A round has ``points`` if it is more than scalars, in loops or not.
    """

    program: Program
    repeat: Repeat
    number: str
    rows: Set[str]
    apart: bool
    points: bool

    @staticmethod
    def of(program: Program, repeat: Repeat, points: bool) -> _Rounds | None:
        """The loop, if its rounds may run in any order."""
        body = repeat.body
        if body.repeats or body.outputs or body.rules or repeat.begin != integer(0) or isinstance(repeat.count, Cast):
            return None
        counter = AxisExtent(body.inputs[0].name, 0)
        number = next((size.name for size in body.sizes if size.source == counter), None)
        if number is None or any(reads(repeat.count)):
            return None
        tensors = {tensor.name: tensor for tensor in (*body.inputs, *body.tensors)}
        if sum(can_fail(each, tensors) for each in body.statements) > 1 or any(each.unique for each in body.statements):
            return None
        rows: set[str] = set()
        apart = True
        for name, new in body.updates:
            versions = _versions(body, name, new)
            if versions[-1] != name or len(versions) < 2 or not rows.isdisjoint(versions):
                return None
            if not _is_row(body, versions, number):
                adds = _is_sum(body, versions, number)
                if not adds and not _are_apart(body, versions, number):
                    return None
                apart = apart and not adds
            rows.update(versions)
        made = {each.target.tensor for each in body.statements}
        for statement in body.statements:
            start, own = statement.start, statement.target.tensor in rows
            if isinstance(start, Keep) and (start.tensor in rows) != own:
                return None
            if isinstance(start, Fill) and (
                number in size_names(start.value) or any(read.tensor in made for read in reads(start.value))
            ):
                return None
        return _Rounds(program, repeat, number, rows, apart, points)

    def statements(self) -> _Made | None:
        """The statements with one index more, and what they make; ``None`` if they would need much more memory."""
        program, body = self.program, self.repeat.body
        names = names_of(program)
        names.take(name for each in body.statements for name in (*each.domain.variables, *_locals(each)))
        number = names.fresh(self.repeat.number)
        made = _Made(program, names, number)
        counter = Tensor(names.fresh("rounds"), "bool", (SizeValue(number),))
        given = [program.tensor(name) for name in self.repeat.inputs]
        piece = replace(body, outputs=tuple(new for _, new in body.updates), updates=(), assertions=())
        try:
            results = append_program(made, piece, [counter, *given])
            made.made = self._with_index(made)
        except (_UnfitError, NotAffine):
            return None
        final = dict(zip((each.name for each in results), self.repeat.results, strict=True))
        if not self._fits(made, list(final)):
            return None
        finished = replace(program, tensors=tuple(made.tensors), statements=tuple(made.made), outputs=(), updates=())
        renamed = with_tensors_renamed(replace(finished, repeats=()), final)
        made.made, made.tensors = list(renamed.statements), list(renamed.tensors)
        return made

    def _with_index(self, made: _Made) -> list[Statement]:
        number, extent = index(made.number), self.repeat.count
        value: dict[Expr, Expr] = {SizeValue(made.number): number}
        # In the order of the body, as they were appended.
        pairs = zip(made.tensors, self._made_names(), strict=True)
        made.own = own = {each.name for each, old in pairs if old not in self.rows}
        tensors: list[Tensor] = []
        found: list[Statement] = []

        def rule(node: Expr) -> Expr:
            if isinstance(node, Read) and node.tensor in own:
                boundaries = (Boundary.SKIP, *node.boundaries)
                return replace(node, indices=(number, *node.indices), boundaries=boundaries)
            return value.get(node, node)

        for statement, tensor in zip(made.made, made.tensors, strict=True):
            tensor = replace(tensor, shape=tuple(self._largest(axis, made.number) for axis in tensor.shape))
            statement = map_statement(statement, lambda expr: transform(expr, rule))
            if tensor.name in own:
                target = replace(statement.target, indices=(number, *statement.target.indices))
                tensor = replace(tensor, shape=(extent, *tensor.shape), ends=())
                if isinstance(statement.start, Keep) and statement.start.tensor not in own:
                    first = self._spread(made, statement.start.tensor, tensor)
                    tensors.append(first[0])
                    found.append(first[1])
                    statement = replace(statement, start=Keep(first[0].name))
                statement = replace(statement, target=target)
            points = _with_dimension(statement.domain.set, made.number)
            points = points.intersect(box([made.number], [extent], points))
            statement = replace(statement, domain=Domain.from_set(points))
            if isinstance(statement.start, Keep) and _is_whole(statement, tensor, self.program):
                statement = replace(statement, start=Neutral())
            tensors.append(tensor)
            found.append(statement)
        made.tensors = tensors
        return found

    def _largest(self, extent: Expr, number: str) -> Expr:
        # Of what has other extents in each round, all are as large as the largest.
        found = bounds_over_rounds(extent, {number: (integer(0), apply("sub", self.repeat.count, integer(1)))})
        if found is None:
            raise _UnfitError
        return found[1] if found[0] == found[1] else apply("max", found[1], integer(0))

    def _made_names(self) -> list[str]:
        return [statement.target.tensor for statement in self.repeat.body.statements]

    def _spread(self, made: _Made, source: str, like: Tensor) -> tuple[Tensor, Statement]:
        # What all rounds start from, a copy for each.
        tensor = replace(like, name=made.names.fresh(source), span=None)
        cells = cell_names(len(tensor.shape), (size.name for size in (*self.program.sizes, *made.sizes)))
        value = plain_read(source, tuple(map(index, cells[1:])), compute_dtype(tensor.dtype))
        return tensor, over_box(tensor.name, cells, tensor.shape, value)

    def _fits(self, made: _Made, results: Sequence[str]) -> bool:
        """Whether what is stored in between is no larger than an array that the loop reads or fills."""
        targets = {each.name for each in made.tensors}
        outside = dict.fromkeys(name for each in made.made for name in tensors_read(each) if name not in targets)
        program = replace(
            self.program,
            inputs=(*self.program.inputs, *(self.program.tensor(name) for name in outside if not self._is_input(name))),
            sizes=(*self.program.sizes, *made.sizes),
            tensors=tuple(made.tensors),
            statements=tuple(made.made),
            outputs=tuple(results),
            updates=(),
            repeats=(),
        )
        program = with_equal_sizes(program)
        large = [program.tensor(name).shape for name in (*outside, *results)]
        context = size_context(program)
        fused = fuse(program, context, names_of(program))
        kept = {each.target.tensor for each in fused.statements}.difference(results)
        changed = {given for _, _, given in self.repeat.carried}.union(results)
        made.twice = not self.points and any(
            each.target.tensor in kept & made.own
            and each.accumulate == "assign"
            and len(each.domain.variables) == len(each.target.indices)
            and not changed.isdisjoint(tensors_read(each))
            for each in fused.statements
        )
        return all(any(_is_within(program.tensor(name).shape, each, context) for each in large) for name in kept)

    def _is_input(self, name: str) -> bool:
        return any(tensor.name == name for tensor in self.program.inputs)


def _is_whole(statement: Statement, tensor: Tensor, program: Program) -> bool:
    # Whether each cell is stored, so that nothing is left of what it held.
    plain = len(set(statement.target.indices)) == len(tensor.shape) == len(statement.domain.variables)
    plain = plain and all(isinstance(axis, IndexValue) for axis in statement.target.indices)
    stored = statement.accumulate == "assign" and statement.condition is None
    return plain and stored and covers(statement, tensor, size_context(program))


def _is_within(shape: Sequence[Expr], large: Sequence[Expr], context: isl.Set) -> bool:
    # Whether each extent is at most one of the others, for all sizes; but for few cells of constant extents.
    cells = prod(int(extent.value) for extent in shape if isinstance(extent, Constant))
    left = list(large)
    for extent in shape:
        if cells <= _FEW_CELLS and isinstance(extent, Constant):
            continue
        found = next((each for each in left if extent == each or _is_at_most(extent, each, context)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _is_at_most(extent: Expr, other: Expr, context: isl.Set) -> bool:
    return not isinstance(extent, Constant | SizeValue) and holds(apply("le", extent, other), context)


def _versions(body: Program, name: str, new: str) -> list[str]:
    # From what a round is given to what it hands on; fewer if the one does not come from the other.
    makers = {each.target.tensor: each for each in body.statements}
    found = [new]
    while found[-1] != name and found[-1] in makers:
        start = makers[found[-1]].start
        if not isinstance(start, Keep):
            break
        found.append(start.tensor)
    return found


def _places(body: Program, versions: Sequence[str]) -> Iterator[tuple[Statement, tuple[Expr, ...], bool]]:
    # All that is written and read of ``versions``; reads beyond the ends but by leaving out have no place.
    for statement in body.statements:
        if statement.target.tensor in versions:
            yield statement, statement.target.indices, True
        for read in statement_reads(statement):
            if read.tensor in versions:
                if any(boundary != Boundary.SKIP for boundary in read.boundaries):
                    raise NotAffine(read)
                yield statement, read.indices, False


def _is_row(body: Program, versions: Sequence[str], number: str) -> bool:
    """Whether all that is read and written of ``versions`` has the number of the round at the same place."""
    try:
        places = [indices for _, indices, _ in _places(body, versions)]
    except NotAffine:
        return False
    for indices in zip(*places, strict=True):
        terms, _ = linear_form(indices[0])
        rest = [part for term in terms if term != SizeValue(number) for part in walk(term)]
        steady = not any(isinstance(part, IndexValue | Read) or part == SizeValue(number) for part in rest)
        if SizeValue(number) in terms and steady and len(set(indices)) == 1:
            return True
    return False


def _is_sum(body: Program, versions: Sequence[str], number: str) -> bool:
    """Whether rounds accumulate ``versions`` by one operation, and read none of the cells that any of them changes."""
    kinds = {each.accumulate for each in body.statements if each.target.tensor in versions}
    if len(kinds) != 1 or any(kind == "assign" or ACCUMULATORS[kind].ordered for kind in kinds):
        return False
    if not any(read.tensor in versions for each in body.statements for read in statement_reads(each)):
        return True
    cells = _cells(body, versions, number)
    return cells is not None and cells[0].range().is_disjoint(cells[1].range())


def _are_apart(body: Program, versions: Sequence[str], number: str) -> bool:
    """Whether no round reads or writes what another one writes."""
    cells = _cells(body, versions, number)
    if cells is None:
        return False
    written, read = cells
    pairs = written.apply_range(written.union(read).reverse())
    return bool(pairs.is_subset(isl.Map.identity(pairs.get_space())))


def _cells(body: Program, versions: Sequence[str], number: str) -> tuple[isl.Map, isl.Map] | None:
    """The cells of ``versions`` that each round writes, and that it reads, if isl can say it."""
    found: dict[bool, isl.Map] = {}
    try:
        with limited():
            context = size_context(body)
            for statement, indices, writes in _places(body, versions):
                cells = _cells_of_rounds(statement, indices, number, context)
                found[writes] = found[writes].union(cells) if writes in found else cells
    except (NotAffine, TooMuchWork):
        return None
    written = found[True]
    return written, found.get(False, written.subtract(written))


def _cells_of_rounds(statement: Statement, indices: Sequence[Expr], number: str, context: isl.Set) -> isl.Map:
    # From the number of a round to the cells at ``indices``.
    if not all(map(is_affine_index, indices)):
        raise NotAffine(indices)
    points = statement.domain.set.align_params(context.get_space()).intersect_params(context)
    points = _with_dimension(points, number)
    here: dict[Expr, Expr] = {SizeValue(number): index(number)}
    cells = cell_map(points, tuple(substitute(axis, here) for axis in indices))
    return cells.project_out(isl.dim_type.in_, 1, points.dim(isl.dim_type.set) - 1).reset_tuple_id(isl.dim_type.in_)


def _with_dimension(points: isl.Set, name: str) -> isl.Set:
    # The parameter ``name`` as the first variable.
    position = points.find_dim_by_name(isl.dim_type.param, name)
    if position < 0:
        points = points.insert_dims(isl.dim_type.set, 0, 1)
    else:
        points = points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, position, 1)
    return points.set_dim_name(isl.dim_type.set, 0, name)


def _locals(statement: Statement) -> Iterable[str]:
    return (node.name for expr in statement_expressions(statement) for node in walk(expr) if isinstance(node, Let))
