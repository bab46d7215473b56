"""Which intermediate values of a statement its derivative stores, and which it computes again.

Derivatives compute values again, which takes no memory, as long as that stays within what a derivative may cost: three
operations for each of the statement's own. Where it would not, because several tensors have a share in a long
expression, intermediate values are stored, one after the other, the one that helps most first, each once for every
combination of the index variables that it depends on. Then every derivative by it is computed once as well.

Source of the limit: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), theorems
6.1 and 6.55, for programs in which every operation is a statement of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.autodiff.statement_derivatives.candidates import stored
from tcdsl.autodiff.statement_derivatives.recomputation import ValueSteps
from tcdsl.autodiff.statement_derivatives.scalar import conjunction
from tcdsl.ir.build import apply
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, Read, children, index_variables, rebuild
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Access, Fill, Neutral, Program, Statement, Tensor
from tcdsl.polyhedra.read_pieces import restrict
from tcdsl.polyhedra.writes import both, writes_each_cell_once
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["with_intermediates_stored"]

# Operations that a derivative may take for each one of the function.
_LIMIT = 3

# Of more values that may be stored not each is tried: every so many-th is stored, or more of them.
_MANY = 64
_APART = 32

Work = Callable[[ValueSteps, Iterable[str]], float]


def with_intermediates_stored(program: Program, active: Callable[[str], bool], work: Work) -> Program:
    """``program`` with values stored that derivatives by ``active`` tensors would compute too often.

    ``work`` is `ValueSteps.adjoint_work` or `ValueSteps.tangent_work`.
    """
    names = names_of(program)
    tensors = list(program.tensors)
    statements: list[Statement] = []
    for statement in program.statements:
        if active(statement.target.tensor):
            made, statement = _split(statement, active, work, names.fresh)
            if isinstance(statement.start, Fill) and not isinstance(statement.start.value, Constant | Read):
                start, statement = _with_start_stored(statement, names.fresh(f"{statement.target.tensor}_start"))
                made.append(start)
            tensors.extend(tensor for tensor, _ in made)
            statements.extend(store for _, store in made)
        statements.append(statement)
    if len(tensors) == len(program.tensors):
        return program
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _split(
    statement: Statement, active: Callable[[str], bool], work: Work, fresh: Callable[[str], str]
) -> tuple[list[tuple[Tensor, Statement]], Statement]:
    elementwise = writes_each_cell_once(statement)
    if not elementwise and statement.accumulate not in ("add", "subtract"):
        return [], statement
    tape = Tape()
    root = tape.flatten(statement.value)
    steps = ValueSteps(tape, root, active, summed=not elementwise)
    limit = _LIMIT * steps.work
    many = len(steps.candidates) > _MANY
    stored: list[str] = _spread(steps, work, limit) if many else []
    now = 0.0 if many else work(steps, stored)
    while now > limit + 1e-9:
        options = [name for name in steps.candidates if name not in stored]
        if not options:
            break
        after, best = min((work(steps, [*stored, name]), name) for name in options)
        if after >= now - 1e-9:
            break
        stored.append(best)
        now = after
    if not stored:
        return [], statement
    return _with_steps_stored(statement, tape, root, [name for name in tape.steps([root]) if name in stored], fresh)


def _spread(steps: ValueSteps, work: Work, limit: float) -> list[str]:
    # In a long value what one step takes is asked of its neighbours: the more are stored, the less is computed again.
    candidates = steps.candidates
    for apart in (len(candidates), _APART, _APART // 2, _APART // 4, _APART // 8, 2):
        stored = candidates[apart - 1 :: apart] if apart < len(candidates) else []
        if work(steps, stored) <= limit + 1e-9:
            break
    return stored


def _with_start_stored(statement: Statement, name: str) -> tuple[tuple[Tensor, Statement], Statement]:
    # Every cell starts from one value: computed once, whatever asks for it.
    assert isinstance(statement.start, Fill)
    value = statement.start.value
    once = Domain.from_set(isl.Set("{ [] }"))
    tensor, store, read = stored(
        Statement(Access(name, ()), "assign", Neutral(), value, once, span=statement.span), name
    )
    return (tensor, store), replace(statement, start=Fill(read))


def _with_steps_stored(
    statement: Statement, tape: Tape, root: Expr, stored: Sequence[str], fresh: Callable[[str], str]
) -> tuple[list[tuple[Tensor, Statement]], Statement]:
    """The statements that store steps, in order, and the statement that reads them."""
    reads: dict[str, Expr] = {}
    made: list[tuple[Tensor, Statement]] = []
    for name in stored:
        tests = _needed_where(tape, root, name)
        if tests is None:
            continue
        value = _reading(tape, Local(name, ""), reads)
        tensor, store, read = _store(statement, tape, value, tests, fresh(f"{statement.target.tensor}_part"))
        reads[name] = read
        made.append((tensor, store))
    return made, replace(statement, value=_reading(tape, root, reads))


def _reading(tape: Tape, root: Expr, reads: dict[str, Expr]) -> Expr:
    # The expression of a leaf, with reads in place of the steps that have been stored.
    copy = Tape()
    known: dict[str, Expr] = {}

    def copied(part: Expr) -> Expr:
        if isinstance(part, Local):
            if part.name not in known:
                found = reads.get(part.name)
                known[part.name] = copied(tape.definition(part)) if found is None else copy.flatten(found)
            return known[part.name]
        parts = children(part)
        return copy.add(rebuild(part, tuple(map(copied, parts)))) if parts else part

    return copy.assemble(copied(root))


def _needed_where(tape: Tape, root: Expr, name: str) -> tuple[Expr, ...] | None:
    """Conditions under which a step is evaluated, as leaves; none if it always is, ``None`` if that cannot be said.

    Each may be asked where those before it hold. They are joined at each step, not at the end: there are as many ways
    through nested choices as the product of their numbers.
    """
    found: dict[str, list[tuple[Expr, ...]]] = {}

    def reach(leaf: Expr, tests: tuple[Expr, ...]) -> None:
        for mentioned in tape.steps([leaf]) if not isinstance(leaf, Local) else (leaf.name,):
            found.setdefault(mentioned, []).append(tests)

    reach(root, ())
    for each in reversed(tape.steps([root])):
        if each not in found:
            continue
        tests = _any_of(tape, found[each])
        if each == name:
            return tests
        match tape.definition(Local(each, "")):
            case Apply(primitive="where", arguments=(condition, chosen, other)):
                reach(condition, tests)
                reach(chosen, (*tests, condition))
                reach(other, (*tests, tape.flatten(apply("not_", condition))))
            case Apply(primitive=("and_" | "or_") as primitive, arguments=(first, second)):
                reach(first, tests)
                reach(second, (*tests, first if primitive == "and_" else tape.flatten(apply("not_", first))))
            case Read(indices=indices, fill=fill):
                if fill is not None and name in tape.steps([fill]):
                    return None
                for axis in indices:
                    reach(axis, tests)
            case step:
                for part in children(step):
                    reach(part, tests)
    return None


def _any_of(tape: Tape, ways: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    # What all ways begin with stays; of the rest any suffices.
    ways = list(dict.fromkeys(ways))
    shortest = min(map(len, ways))
    begin = next((k for k in range(shortest) if any(way[k] != ways[0][k] for way in ways)), shortest)
    rests = [way[begin:] for way in ways]
    if len(ways) == 1:
        return ways[0]
    if not all(rests) or _are_opposite(tape, rests):
        return ways[0][:begin]
    return (*ways[0][:begin], conjunction(tape, [conjunction(tape, rest) for rest in rests], "or_"))


def _are_opposite(tape: Tape, rests: Sequence[tuple[Expr, ...]]) -> bool:
    # Both branches of a choice: in one or the other everything is.
    if len(rests) != 2 or any(len(rest) > 1 for rest in rests):
        return False
    [[one], [other]] = rests
    return tape.flatten(apply("not_", one)) == other or tape.flatten(apply("not_", other)) == one


def _store(
    statement: Statement, tape: Tape, value: Expr, tests: Sequence[Expr], name: str
) -> tuple[Tensor, Statement, Read]:
    points, left = restrict(statement.domain.set, tests, tape.conjuncts)
    condition = statement.condition
    for test in left:
        condition = both(condition, tape.assemble(tape.flatten(test)))
    used = index_variables(value) | (frozenset() if condition is None else index_variables(condition))
    for position in reversed(range(len(statement.domain.variables))):
        if statement.domain.variables[position] not in used:
            points = points.project_out(isl.dim_type.set, position, 1)
    value_of = Access(name, (), value.span)
    domain = Domain.from_set(points)
    return stored(Statement(value_of, "assign", Neutral(), value, domain, condition, span=statement.span), name)
