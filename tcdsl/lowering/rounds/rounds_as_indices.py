"""A loop each of whose rounds makes a row of its own, as statements whose first index is the number of the round.

::

    repeat y_2 = N times:                        t[n, ()] += X[n, j] * X[n, j]
        r[j] = X[n, j]                           y_2[n, j] = X[n, j] / sqrt(t[n])
        t[()] += r[j] * r[j]
        y_3[n, j] = r[j] / sqrt(t)

So an op that is called for each row costs what whole arrays cost: its sums need no nest of their own in each round, and
what it makes in between is seen by all passes. What a round makes has a row for each round then. Where that could take
more memory than the arrays that the loop reads or fills, the rounds stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import islpy as isl

from tcdsl.ir.build import index, integer, plain_read
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
    reads,
    size_names,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames, cell_names, names_of
from tcdsl.ir.program import (
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
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
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.linear import linear_form
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.span import Span

__all__ = ["with_rounds_as_indices"]

# Cells of constant extents that a round may make in between for each row of an array.
_FEW_CELLS = 16


def with_rounds_as_indices(program: Program) -> Program:
    """``program`` without the loops whose rounds can be indices of statements, inner ones first."""
    left: list[Repeat] = []
    for repeat in program.repeats:
        repeat = replace(repeat, body=with_rounds_as_indices(repeat.body))
        found = _Rounds.of(program, repeat)
        made = None if found is None else found.statements()
        if made is None:
            left.append(repeat)
            continue
        program = replace(
            program,
            sizes=(*program.sizes, *made.sizes),
            tensors=(*program.tensors, *(each for each in made.tensors if each.name not in repeat.results)),
            statements=(*program.statements, *made.made),
        )
    if len(left) == len(program.repeats):
        return replace(program, repeats=tuple(left))
    return _in_order(replace(program, repeats=tuple(left)))


def _in_order(program: Program) -> Program:
    # Each statement behind those that make what it reads; loops give all of theirs.
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
    """A program that takes in the statements of one round: a `tcdsl.rewrite.inlining.Host`."""

    program: Program
    names: FreshNames
    number: str
    sizes: list[Size] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    made: list[Statement] = field(default_factory=list)

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

    ``rows`` are what it carries and its versions, each with the axis whose index is the number of the round.
    """

    program: Program
    repeat: Repeat
    number: str
    rows: Mapping[str, int]

    @staticmethod
    def of(program: Program, repeat: Repeat) -> _Rounds | None:
        """The loop, if each round changes rows of its own, and no other one reads them."""
        body = repeat.body
        if body.repeats or body.outputs or body.rules or repeat.begin != integer(0) or isinstance(repeat.count, Cast):
            return None
        counter = AxisExtent(body.inputs[0].name, 0)
        number = next((size.name for size in body.sizes if size.source == counter), None)
        if number is None or any(reads(repeat.count)) or not any(each.domain.variables for each in body.statements):
            return None
        tensors = {tensor.name: tensor for tensor in (*body.inputs, *body.tensors)}
        if sum(can_fail(each, tensors) for each in body.statements) > 1 or any(each.unique for each in body.statements):
            return None
        rows: dict[str, int] = {}
        for name, new in body.updates:
            versions = _versions(body, name, new)
            axis = _row(body, versions, number)
            if axis is None or not rows.keys().isdisjoint(versions):
                return None
            rows.update(dict.fromkeys(versions, axis))
        made = {each.target.tensor for each in body.statements}
        for statement in body.statements:
            start, own = statement.start, statement.target.tensor in rows
            if isinstance(start, Keep) and (start.tensor in rows) != own:
                return None
            if isinstance(start, Fill) and (
                number in size_names(start.value) or any(read.tensor in made for read in reads(start.value))
            ):
                return None
        return _Rounds(program, repeat, number, rows)

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
        own = {each.name for each, old in zip(made.tensors, self._made_names(), strict=True) if old not in self.rows}
        tensors: list[Tensor] = []
        found: list[Statement] = []

        def rule(node: Expr) -> Expr:
            if isinstance(node, Read) and node.tensor in own:
                boundaries = (Boundary.SKIP, *node.boundaries)
                return replace(node, indices=(number, *node.indices), boundaries=boundaries)
            return value.get(node, node)

        for statement, tensor in zip(made.made, made.tensors, strict=True):
            if any(made.number in size_names(axis) for axis in tensor.shape):
                raise _UnfitError
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
            tensors.append(tensor)
            found.append(replace(statement, domain=Domain.from_set(points)))
        made.tensors = tensors
        return found

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
        large = [Counter(program.tensor(name).shape) for name in (*outside, *results)]
        fused = fuse(program, size_context(program), names_of(program))
        kept = {each.target.tensor for each in fused.statements}.difference(results)
        return all(_is_within(program.tensor(name).shape, large) for name in kept)

    def _is_input(self, name: str) -> bool:
        return any(tensor.name == name for tensor in self.program.inputs)


def _is_within(shape: Sequence[Expr], large: Sequence[Counter[Expr]]) -> bool:
    cells = prod(int(extent.value) for extent in shape if isinstance(extent, Constant))
    sizes = Counter(extent for extent in shape if not isinstance(extent, Constant))
    return any(sizes <= each and (cells <= _FEW_CELLS or Counter(shape) <= each) for each in large)


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


def _row(body: Program, versions: Sequence[str], number: str) -> int | None:
    """The axis along which all that is read and written of ``versions`` is in the row of the round."""
    if versions[-1] not in {name for name, _ in body.updates} or len(versions) < 2:
        return None
    places: list[tuple[Expr, ...]] = []
    for statement in body.statements:
        if statement.target.tensor in versions:
            places.append(statement.target.indices)
        for read in statement_reads(statement):
            if read.tensor in versions:
                if any(boundary != Boundary.SKIP for boundary in read.boundaries):
                    return None
                places.append(read.indices)
    for axis, indices in enumerate(zip(*places, strict=True)):
        terms, _ = linear_form(indices[0])
        rest = [part for term in terms if term != SizeValue(number) for part in walk(term)]
        steady = not any(isinstance(part, IndexValue | Read) or part == SizeValue(number) for part in rest)
        if SizeValue(number) in terms and steady and len(set(indices)) == 1:
            return axis
    return None


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
