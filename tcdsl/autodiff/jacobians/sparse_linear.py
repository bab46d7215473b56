"""Linear programs whose seeds are sparse: what is zero by structure is neither computed nor multiplied.

With the identity as its seed, ``t_x[i, b] = 1`` where ``i = b``, the tangent ``t_y[i, b] += A[i, k] * t_x[k, b]`` has
one point of k for each b: ``t_y[i, b] = A[i, b]``. Each read of a sparse tensor is composed with the statements that
write it (`tcdsl.simplification.sparsity.sparse_reads`), as reverse mode does with sparse adjoints; where nothing is
written, a linear program has no value to multiply, so no zero meets an infinity.

Sparse tensors are also read at positions that are data: ``t_y[n, b] += t_x[ids[n], b]`` where ``t_x[z, z] = 1``. isl
can invert neither an index that is data nor ``i*P + p`` with a size P, but a diagonal says by itself where its cells
are: the read finds 1 where ``b = ids[n]``, so the statement becomes a scatter, ``t_y[n, ids[n]] += 1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.autodiff.statement_derivatives.contributions import Contributions
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.autodiff.statement_derivatives.scalar import Guarded, Partial, conjunction, partials
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import INTEGER, compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Expr, IndexValue, Read, index_variables, reads, substitute
from tcdsl.ir.program import Access, Keep, Neutral, Program, Statement, Tensor, tensors_read
from tcdsl.polyhedra.affine import NotAffine, equated, function_of
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.read_pieces import Piece, places, restrict
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.polyhedra.writes import affine_target, both, cell_map
from tcdsl.rewrite.linearization import dependents
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.simplification.expressions.factoring import factored
from tcdsl.simplification.expressions.tape import Tape
from tcdsl.simplification.simplify import simplified_statement
from tcdsl.simplification.sparsity.sparse_reads import source

__all__ = ["with_sparse_seed"]


def with_sparse_seed(program: Program, seed: Tensor, writers: Sequence[Statement]) -> Program:
    """``program``, which is linear in its last input ``seed``, for the seed that is zero but for what ``writers``
    store.

    The statements ``writers`` store constants, each in its own cells. The seed is no input of the result; nothing reads
    it, so that `simplify` removes it, unless there are reads that cannot be composed.
    """
    work = _SparseLinear(program, seed, tuple(writers))
    for statement in program.statements:
        work.add(statement)
    outputs = tuple(work.result(name) for name in program.outputs)
    statements = (*writers, *work.factored_statements)
    made = {statement.target.tensor for statement in statements}
    return replace(
        program,
        inputs=tuple(tensor for tensor in program.inputs if tensor.name != seed.name),
        tensors=tuple(tensor for tensor in (seed, *program.tensors, *work.work.made) if tensor.name in made),
        statements=statements,
        outputs=outputs,
    )


class _Work(Derivative):
    """The program under construction."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, ())
        read = {name for statement in program.statements for name in tensors_read(statement)}
        self._results = set(program.outputs) - read

    def is_input(self, name: str) -> bool:
        """Whether a tensor is a result only, so that nobody will be looking for a shorter form of it."""
        return name in self._results


class _SparseLinear:
    def __init__(self, program: Program, seed: Tensor, writers: tuple[Statement, ...]) -> None:
        self.work = _Work(program)
        self._dependent = dependents(program, [seed.name])
        self._contributions = Contributions(self.work)
        self._contributions.sparse[seed.name] = writers
        # What the dependent tensors are called now; None for those that are zero.
        self._current: dict[str, str | None] = {seed.name: seed.name}
        # What is no result of its own: what the program was given, and results already.
        self._taken = {tensor.name for tensor in program.inputs}

    @property
    def factored_statements(self) -> list[Statement]:
        """The statements, common factors of those that depend on the seed written once."""
        given = {statement.target.tensor for statement in self.work.program.statements} - self._dependent
        return [
            statement if statement.target.tensor in given else replace(statement, value=factored(statement.value))
            for statement in self.work.statements
        ]

    def add(self, statement: Statement) -> None:
        """A statement of the program."""
        name = statement.target.tensor
        if name not in self._dependent:
            self.work.append(statement)
        elif self._is_dense(statement):
            self.work.append(self._renamed(statement))
            self._current[name] = name
        else:
            self._give_start(statement)
            for part in self._terms(statement):
                self._contributions.add(name, _added(simplified_statement(part)))
            self._current[name] = self._contributions.total(name, name)

    def result(self, name: str) -> str:
        """What an output is called now; made now if it is zeros, has another type, or is another tensor's own."""
        current = self._current[name] if name in self._dependent else name
        declared = self.work.tensor(name)
        if current is not None and current not in self._taken and self.work.tensor(current).dtype == declared.dtype:
            self._taken.add(current)
            return current
        return self.work.result(name, declared, current)

    # -- parts of a statement --------------------------------------------------------------------------------

    def _is_dense(self, statement: Statement) -> bool:
        # Whether all that it reads has cells everywhere, or whether it is none that a linear program has.
        if statement.accumulate not in ("assign", "add", "subtract"):
            return True
        read = {each.tensor for each in reads(statement.value)}
        if isinstance(statement.start, Keep):
            read.add(statement.start.tensor)
        current = {self._current[name] for name in read & self._dependent}
        return not any(name is None or name in self._contributions.sparse for name in current)

    def _give_start(self, statement: Statement) -> None:
        """What the target's cells hold before the statement, as contributions."""
        name, start = statement.target.tensor, statement.start
        if not isinstance(start, Keep):
            return
        kept = self._current.get(start.tensor, start.tensor)
        if kept is None:
            return
        if statement.accumulate != "assign":
            self._contributions.add_whole(name, kept)
            return
        # A store forgets what its cells held.
        sparse = self._contributions.sparse.get(kept)
        if sparse is not None and statement.condition is None and affine_target(statement):
            written = cell_map(statement.domain.set, statement.target.indices).range()
            for writer in sparse:
                left = cell_map(writer.domain.set, writer.target.indices).subtract_range(written).domain()
                points = writer.domain.set.intersect(left)
                target = replace(writer.target, tensor=name)
                part = replace(_added(writer), target=target, start=Neutral(), domain=Domain.from_set(points))
                self._contributions.add(name, part)
            return
        declared = self.work.tensor(name)
        made = self.work.declare(name, declared.dtype, declared.shape)
        zero = constant(0, compute_dtype(declared.dtype))
        target = replace(statement.target, tensor=made)
        self.work.append(self._renamed(replace(statement, target=target, start=Keep(kept), value=zero)))
        self._contributions.add_whole(name, made)

    def _terms(self, statement: Statement) -> Iterator[Statement]:
        """The statement's value as a sum of one term for each thing that it reads, over the points where that is."""
        tape = Tape()
        root = tape.flatten(statement.value)
        one: Expr = constant(1, statement.value.dtype)
        work = self.work
        for partial in partials(tape, root, Guarded((), one), self._dependent.__contains__, work.extents):
            name = self._current[partial.read.tensor]
            if name is not None:
                yield from self._composed(statement, tape, partial, name)

    def _composed(self, statement: Statement, tape: Tape, partial: Partial, name: str) -> Iterator[Statement]:
        """The term of one read, which is of the tensor that is called ``name`` now."""
        points, rest = restrict(statement.domain.set, partial.guards, tape.conjuncts)
        left = [tape.flatten(test) for test in rest]
        term = _Term(statement, tape, partial.value, left)
        read = replace(partial.read, tensor=name, fill=None)
        read = replace(read, indices=tuple(tape.expand(axis) for axis in read.indices))
        writers = self._contributions.sparse.get(name)
        found = None if writers is None else self._at_writers(term, read, points, writers)
        yield from found if found is not None else [term.over(points, read)]

    def _at_writers(
        self, term: _Term, read: Read, points: isl.Set, writers: Sequence[Statement]
    ) -> list[Statement] | None:
        """The term where the writers of a sparse tensor have put something; ``None`` if that cannot be said."""
        extents = self.work.extents(read.tensor)
        found: list[Statement] = []
        for place in places(read.indices, read.boundaries, extents, points, self.work.context):
            cell = replace(read, indices=place.indices, boundaries=(Boundary.SKIP,) * len(extents))
            for writer in writers:
                origin = source(writer, place.points, cell) if place.total else None
                if origin is None:
                    made = term.at_data(writer, extents, place)
                    if made is None:
                        return None
                    found.append(made)
                elif not origin.points.is_empty():
                    value = apply("neg", origin.value) if writer.accumulate == "subtract" else origin.value
                    found.append(term.over(origin.points, value))
        return found

    # -- tensors ---------------------------------------------------------------------------------------------

    def _renamed(self, statement: Statement) -> Statement:
        # None stands only for tensors that a dense statement does not read.
        names = {old: new for old, new in self._current.items() if new is not None and new != old}
        own = statement.target.tensor
        return statement_with_tensors_renamed(statement, {**names, own: own})


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of a statement's value: ``coefficient`` times something that is read, where all ``guards`` hold."""

    statement: Statement
    tape: Tape
    coefficient: Expr
    guards: Sequence[Expr]

    def over(self, points: isl.Set, factor: Expr) -> Statement:
        """The term over ``points``, where ``factor`` is read."""
        tape = self.tape
        value = tape.add(Apply("mul", (self.coefficient, tape.flatten(factor)), factor.dtype))
        if self.guards:
            zero = constant(0, value.dtype)
            value = tape.add(Apply("where", (conjunction(tape, list(self.guards)), value, zero), value.dtype))
        return self._adding(tape.assemble(value), Domain.from_set(points), self.statement.condition)

    def at_data(self, writer: Statement, extents: Sequence[Expr], place: Piece) -> Statement | None:
        """The term where the read, at positions that are data, finds a cell of ``writer``."""
        statement, tape = self.statement, self.tape
        condition = statement.condition
        if self.guards:
            condition = both(condition, tape.assemble(conjunction(tape, list(self.guards))))
        factor = tape.assemble(self.coefficient)
        made = composed_with_data(writer, extents, place.indices, statement.target, place.points, condition, factor)
        if made is None:
            return None
        adding = self._adding(made.value, made.domain, made.condition)
        return replace(adding, target=made.target)

    def _adding(self, value: Expr, domain: Domain, condition: Expr | None) -> Statement:
        value = cast(value, self.statement.value.dtype)
        if self.statement.accumulate == "subtract":
            value = apply("neg", value)
        return replace(
            self.statement,
            accumulate="add",
            start=Neutral(),
            value=value,
            domain=domain,
            condition=condition,
            unique=False,
            label="",
        )


def _added(statement: Statement) -> Statement:
    """A statement that stores, adds or subtracts, as one that adds."""
    if statement.accumulate == "subtract":
        statement = replace(statement, value=apply("neg", statement.value))
    return replace(statement, accumulate="add")


def composed_with_data(
    writer: Statement,
    extents: Sequence[Expr],
    indices: Sequence[Expr],
    target: Access,
    points: isl.Set,
    condition: Expr | None,
    factor: Expr,
) -> Statement | None:
    """``target += factor * read``, summed over ``points``, where ``indices`` of the read find a cell of ``writer``.

    ``extents`` are those of the tensor that is read, within which all indices are. ``None`` if the cells of ``writer``
    are not those of a diagonal, with one variable for each axis.
    """
    axes: dict[str, list[tuple[Expr, Expr]]] = {}
    for place, position, extent in zip(writer.target.indices, indices, extents, strict=True):
        if not isinstance(place, IndexValue):
            return None
        axes.setdefault(place.name, []).append((position, extent))
    own = writer.domain.variables
    if set(axes) != set(own) or not writer.domain.set.is_equal(box(own, [axes[name][0][1] for name in own])):
        return None
    values: dict[Expr, Expr] = {}
    moved: dict[Expr, Expr] = {}
    fixed = index_variables(factor).union(*map(index_variables, (condition,) if condition is not None else ()))
    for name, found in axes.items():
        positions = [position for position, _ in found]
        # An index that isl cannot speak of comes first: variables that meet it take its value.
        first, *others = sorted(positions, key=lambda position: _is_affine(position, points))
        # It is within the tensor's extent, so an int64 holds it.
        values[IndexValue(name)] = cast(first, "int64")
        for other in others:
            if _is_affine(first, points):
                points = equated(points, first, other)
            elif (
                isinstance(other, IndexValue)
                and other not in moved
                and _is_free(other.name, points, fixed, found)
                and _takes(target.indices, other, first)
            ):
                moved[other] = first
                points = _without(points, other.name)
            else:
                dtype = INTEGER if INTEGER in (first.dtype, other.dtype) else "int64"
                condition = both(condition, apply("eq", cast(first, dtype), cast(other, dtype)))
    value = apply("mul", factor, substitute(writer.value, values))
    if writer.accumulate == "subtract":
        value = apply("neg", value)
    place_of = Access(target.tensor, tuple(substitute(axis, moved) for axis in target.indices), target.span)
    return Statement(place_of, "add", Neutral(), value, Domain.from_set(points), condition)


def _takes(indices: Sequence[Expr], variable: IndexValue, position: Expr) -> bool:
    # Whether a position may take the place of a variable in indices: one of another type only where it stands alone.
    return position.dtype == "int64" or all(
        axis == variable or variable.name not in index_variables(axis) for axis in indices
    )


def _is_affine(position: Expr, points: isl.Set) -> bool:
    try:
        function_of(position, points)
    except NotAffine:
        return False
    return True


def _is_free(name: str, points: isl.Set, fixed: frozenset[str], found: Sequence[tuple[Expr, Expr]]) -> bool:
    """Whether a variable is bound by nothing but the extent of the axis that it indexes."""
    if name in fixed:
        return False
    [extent] = {extent for position, extent in found if position == IndexValue(name)}
    points = points.reset_tuple_id()
    without = _without(points, name).insert_dims(isl.dim_type.set, dimension_names(points).index(name), 1)
    return bool(points.is_equal(without.intersect(box([name], [extent], points))))


def _without(points: isl.Set, name: str) -> isl.Set:
    return points.reset_tuple_id().project_out(isl.dim_type.set, dimension_names(points).index(name), 1)
