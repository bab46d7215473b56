"""Indices that are data, as checks of their own: derivatives that read none of what they reach check them all the same.

::

    s = sum(x[p[i]])        checked[int64(not 0 <= p[i] < N)] |= True      for all i

The second derivative of ``s`` is zero, and its first one by anything else reads no ``x[p[i]]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.errors import RAISED, DataIndexError
from tcdsl.ir.build import all_of, apply, cast, in_range, integer, plain_read, truth
from tcdsl.ir.expressions import Apply, Boundary, Expr, Let, Read, certain_children, is_affine_index, reads
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.primitives import LAZY
from tcdsl.ir.program import Access, Fill, Program, Repeat, Statement, Tensor, statement_expressions
from tcdsl.ir.stages import in_order, tensors_needed
from tcdsl.ir.text.printer import format_expr
from tcdsl.polyhedra.boxes import over_box
from tcdsl.rewrite.loop_trimming import trimmed
from tcdsl.simplification.simplify import simplify, without_dead_statements
from tcdsl.span import Span

__all__ = ["Place", "lost_index_checks", "unused_index_checks", "with_index_checks"]

#: Where an index is written, which derivatives keep; what it is, where that is not known.
Place = Span | str


@dataclass(frozen=True, slots=True)
class _Check:
    """An index that is data, on an axis of ``tensor``; ``guard`` holds where it is evaluated, among these lets."""

    index: Expr
    tensor: str
    axis: int
    span: Span | None
    guard: Expr
    lets: tuple[Let, ...] = ()

    @property
    def place(self) -> Place:
        return next((read.span for read in reads(self.index) if read.span is not None), format_expr(self.index))


def lost_index_checks(derived: Iterable[Program], program: Program) -> frozenset[Place]:
    """Where ``program`` checks indices that none of ``derived``, which have been made from it, checks."""
    kept = _checked_in(map(without_dead_statements, derived))

    def lost(made: Program) -> frozenset[Place]:
        return frozenset(place for place, indices in _checked(made).items() if len(kept[place]) < len(indices))

    # What is simplified may turn out to be one index at places that seem to have two.
    return lost(simplify(program)) if lost(without_dead_statements(program)) else frozenset()


def unused_index_checks(program: Program) -> frozenset[Place]:
    """Where ``program`` checks indices of values that none of its results and updates is made of."""
    if not _has_checks(program):
        return frozenset()
    used = _checked(_without_unused(program))
    return frozenset(place for place, indices in _checked(program).items() if len(used[place]) < len(indices))


def _has_checks(program: Program) -> bool:
    return any(any(_checks(program, statement)) for statement in program.statements) or any(
        _has_checks(repeat.body) for repeat in program.repeats
    )


def _without_unused(program: Program) -> Program:
    alive = without_dead_statements(program)
    needed = tensors_needed(alive, {*alive.outputs, *(new for _, new in alive.updates)})
    return replace(alive, repeats=tuple(trimmed(repeat, needed) for repeat in alive.repeats))


def _checked(program: Program) -> defaultdict[Place, set[str]]:
    # The indices, by their places: a function that is called twice has two at one.
    found = _checked_in(repeat.body for repeat in program.repeats)
    for statement in program.statements:
        for check in _checks(program, statement):
            found[check.place].add(format_expr(check.index))
    return found


def _checked_in(programs: Iterable[Program]) -> defaultdict[Place, set[str]]:
    found: defaultdict[Place, set[str]] = defaultdict(set)
    for program in programs:
        for place, indices in _checked(program).items():
            found[place] |= indices
    return found


def _checks(program: Program, statement: Statement) -> Iterator[_Check]:
    target, condition = statement.target, statement.condition
    if program.tensor(target.tensor).label.startswith(RAISED):
        return  # a check itself
    always = truth(True) if condition is None else condition
    for axis, index in enumerate(target.indices if statement.oob == "check" else ()):
        if not is_affine_index(index):
            yield _Check(index, target.tensor, axis, target.span or statement.span, always)
    for expr in statement_expressions(statement):
        yield from _within(expr, always if expr is not condition else truth(True), (), statement.span)


def _within(expr: Expr, guard: Expr, lets: tuple[Let, ...], span: Span | None) -> Iterator[_Check]:
    if isinstance(expr, Read):
        for axis, (index, boundary) in enumerate(zip(expr.indices, expr.boundaries, strict=True)):
            if boundary is Boundary.CHECK:
                yield _Check(index, expr.tensor, axis, expr.span or span, guard, lets)
    if isinstance(expr, Let):
        yield from _within(expr.value, guard, lets, span)
        yield from _within(expr.body, guard, (*lets, expr), span)
        return
    for part in certain_children(expr):
        yield from _within(part, guard, lets, span)
    if isinstance(expr, Apply) and expr.primitive in LAZY:
        first, *rest = expr.arguments
        holds = apply("and_", guard, first)
        refused = apply("and_", guard, apply("not_", first))
        yield from _within(rest[0], refused if expr.primitive == "or_" else holds, lets, span)
        for part in rest[1:]:
            yield from _within(part, refused, lets, span)


def with_index_checks(program: Program, places: Collection[Place], passed: Sequence[str] = ()) -> tuple[Program, str]:
    """``program`` with checks of the indices at these places, and the tensor that says whether they have passed.

    What it has ``passed`` already counts too.
    """
    return _with_checks(program, places, names_of(program), passed)


def _with_checks(
    program: Program, places: Collection[Place], names: FreshNames, before: Sequence[str]
) -> tuple[Program, str]:
    tensors, statements, repeats = list(program.tensors), list(program.statements), list(program.repeats)

    def held(value: Expr) -> str:
        tensors.append(Tensor(names.fresh("checked"), "bool", (), "checked"))
        statements.append(over_box(tensors[-1].name, (), (), value))
        return tensors[-1].name

    passed = all_of(plain_read(name, (), "bool") for name in before)
    for statement in program.statements:
        for check in _checks(program, statement):
            if check.place in places:
                made, tensor = _statement(program, statement, check, names)
                statements.append(made)
                tensors.append(tensor)
                passed = apply("and_", passed, plain_read(tensor.name, (integer(0),), "bool"))
    for position, repeat in enumerate(repeats):
        if not places & _checked(repeat.body).keys():
            continue
        result = Tensor(names.fresh("checked"), "bool", (), "checked")
        tensors.append(result)
        repeats[position] = _carrying(repeat, places, held(truth(True)), result.name)
        passed = apply("and_", passed, plain_read(result.name, (), "bool"))
    found = held(passed)
    checking = replace(program, tensors=tuple(tensors), statements=tuple(statements), repeats=tuple(repeats))
    return in_order(checking), found


def _carrying(repeat: Repeat, places: Collection[Place], first: str, result: str) -> Repeat:
    names = names_of(repeat.body)
    carried = Tensor(names.fresh("checked"), "bool", (), "checked")
    body = replace(repeat.body, inputs=(*repeat.body.inputs, carried))
    body, passed = _with_checks(body, places, names, (carried.name,))
    body = replace(body, updates=(*body.updates, (carried.name, passed)))
    return replace(repeat, body=body, inputs=(*repeat.inputs, first), results=(*repeat.results, result))


def _statement(program: Program, statement: Statement, check: _Check, names: FreshNames) -> tuple[Statement, Tensor]:
    tensor = program.tensor(check.tensor)
    fact = f"an index is out of range for axis {check.axis} of `{tensor.label or tensor.name}`"
    made = Tensor(
        names.fresh("checked"), "bool", (integer(1),), f"{RAISED}{DataIndexError.__name__}: {fact}", check.span
    )
    fails = apply("and_", check.guard, apply("not_", in_range(check.index, tensor.shape[check.axis])))
    for let in reversed(check.lets):
        fails = Let(let.name, let.value, fails)
    target = Access(made.name, (cast(fails, "int64"),), check.span)
    checking = Statement(target, "or", Fill(truth(True)), truth(True), statement.domain, span=check.span)
    return checking, made
