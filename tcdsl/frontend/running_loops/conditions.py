"""Conditions of `while` and `if`: Python's where it knows them, else one truth value of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import combine, element_of, record_elementwise
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.running_loops.bodies import labels_of
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, Specialize
from tcdsl.frontend.staging.session import Session, current_session, session_of
from tcdsl.frontend.staging.subprograms import Part
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.retired_values import OF_A_ROUND
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import as_truth
from tcdsl.ir.build import apply
from tcdsl.ir.conjunctions import said_of_sizes
from tcdsl.ir.expressions import Apply, Constant, Expr, reads, size_names, transform
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Statement, statement_expressions
from tcdsl.polyhedra.affine import NotAffine

__all__ = [
    "asked",
    "asks_more",
    "branched",
    "changing_truth",
    "connected",
    "decided",
    "goes_on",
    "is_among",
    "is_data",
    "is_truth_value",
    "matched",
    "numbers_of",
    "taken",
    "truth",
]


def is_data(value: Any) -> bool:
    """Whether a value is known at the call only, and is the program's: keyword-only numbers are configuration."""
    if isinstance(value, SymbolicNumber):
        return not value.parameters or any(map(str.isdigit, value.parameters))
    return isinstance(value, SymbolicArray | SymbolicSize)


def decided(session: Session | None, condition: Any) -> Any:
    """A condition; one of a tensor of a graph is known when the function is staged as a whole, with constant sizes."""
    if session is None:
        return condition
    if isinstance(condition, GraphTensor):
        if session.may_be_whole:
            raise RunsOnTensors
        if session.shapes is not None:
            return session.shapes.truth()
        if session.context.graph is not None:
            condition = session.capture(condition)
    if isinstance(condition, PointValue):
        session.needs_one_point()
    known = isinstance(condition, SymbolicSize) or (isinstance(condition, SymbolicNumber) and not condition.parameters)
    return condition.expr.value if known and isinstance(condition.expr, Constant) else condition


def numbers_of(*values: Any) -> frozenset[str]:
    """The arguments on which values depend, if those are numbers alone."""
    known = [each for each in values if is_data(each)]
    numbers = [each.parameters for each in known if isinstance(each, SymbolicNumber) and each.parameters]
    return frozenset().union(*numbers) if len(numbers) == len(known) else frozenset()


def truth(session: Session, condition: Any) -> SymbolicTensor:
    """A condition as a bool tensor of rank 0."""
    element, extents = element_of(condition, session)
    if extents:
        raise session.fault(
            ShapeError,
            f"a condition of rank {len(extents)}: a branch, or another round, depends on one truth value",
            "reduce it by `any(...)` or `all(...)`, or choose cell by cell: `y[i] = a[i] if c[i] else b[i]`",
        )
    return record_elementwise(session, as_truth(element), (), "condition")


def taken(session: Session, condition: Any) -> Expr:
    """Whether the first arm of a branch is: an expression of sizes alone, or the cell that holds it."""
    element, extents = element_of(condition, session)
    made = as_truth(element).expr
    if extents or any(reads(made)) or not size_names(made):
        return truth(session, condition).cell(()).expr
    return made


def asked(session: Session, condition: Any) -> Expr:
    """What a condition asks, where a name holds it too: ``b = t > 0 and x[t] > 0``, and then ``if b``.

    What it asks of integers of the call it asks of sizes.
    """
    integers = session.integers

    def of_sizes(node: Expr) -> Expr:
        if not isinstance(node, Apply) or PRIMITIVES[node.primitive].kind != "compare":
            return node
        if not all(read.tensor in integers for read in reads(node)):
            return node
        parts = [part for part in map(integers.size, node.arguments) if part is not None]
        return apply(node.primitive, *parts) if len(parts) == len(node.arguments) else node

    said = session.builder.written.conditions.asked(as_truth(element_of(condition, session)[0]).expr)
    return transform(said, of_sizes)


def changing_truth(session: Session, before: Any, after: Any) -> SymbolicTensor:
    """The condition of ``while`` after a round; a fault if it is the one before the round, of the same values."""
    if is_data(after) and element_of(before, session)[0].expr == element_of(after, session)[0].expr:
        raise session.fault(
            DslSyntaxError,
            "a loop whose condition no round changes would never end",
            "change what the condition reads in the body: names that the body binds, or memory",
        )
    return truth(session, after)


def goes_on(session: Session, going: SymbolicTensor, left: Any) -> SymbolicTensor:
    """Whether there is another round after one that ``break`` has ended if ``left`` is true."""
    if left is False:
        return going
    stays = combine("not_", left) if is_data(left) else not left
    return truth(session, combine("and_", going, stays))


def asks_more(session: Session, known: Any, parts: Sequence[Callable[[], Any]]) -> bool:
    """Whether ``parts`` may be evaluated only where the condition ``known`` leaves them open.

    They ask of the sizes in it what may not hold elsewhere, or have statements of their own, ``y[n] > sum(x)``, that
    read where data says.
    """
    if not parts:
        return False
    of_sizes = bool(size_names(element_of(known, session)[0].expr))
    builder = session.builder
    learned, tried = builder.learned(), Part(builder)
    try:
        with tried.recording():
            for part in parts:
                found = part()
                if is_data(found):
                    element_of(found, session)  # which records what computes it
    except ShapeError:
        if not of_sizes:
            raise
        return True
    finally:
        since = builder.forget_since(learned)
        builder.retire(labels_of(tried.recorded), OF_A_ROUND)
    if any(_reads_by_data(each) for each in tried.recorded.statements) or tried.recorded.repeats:
        return True
    return of_sizes and not all(_is_known(session, each.condition) for each in since.assertions)


def _reads_by_data(statement: Statement) -> bool:
    read = (each for expression in statement_expressions(statement) for each in reads(expression))
    return any(any(reads(index)) for each in read for index in each.indices)


def _is_known(session: Session, condition: Expr) -> bool:
    try:
        return session.builder.known().never(apply("not_", condition))
    except NotAffine:
        return False


Branch = Callable[[Any, Callable[[], Any]], Any]
"""What is asked only where a condition leaves it open."""


def connected(primitive: str, parts: Sequence[Callable[[], Any]], branch: Branch) -> Any:
    """``a and b`` or ``a or b``: Python's as far as Python knows the operands, then the program's.

    What would read out of range where the operands before it decide is a ``branch``.
    """
    known: Any = None
    for k, part in enumerate(parts):
        known = decided(current_session(), part())
        if is_data(known):
            others = parts[k + 1 :]
            if asks_more(session_of("a condition"), known, others):
                return branched(primitive, known, partial(connected, primitive, others, branch), branch)
            return combine(primitive, known, connected(primitive, others, branch)) if others else known
        if bool(known) != (primitive == "and_"):
            return known
    return known


def is_among(value: Any, others: Any) -> Any:
    """``value in others``: whether it is equal to any of them, or any cell, which the program asks where it is data."""
    value = decided(current_session(), value)
    if isinstance(others, range) and is_data(value):
        rising = others if others.step > 0 else others[::-1]
        inside = combine("and_", combine("ge", value, rising.start), combine("lt", value, rising.stop))
        steps = combine("mod", combine("sub", value, rising.start), rising.step)
        return combine("and_", inside, combine("eq", steps, 0))
    if hasattr(type(others), "__array__") and (is_data(value) or isinstance(others, SymbolicArray)):
        return combine("eq", value, others).any()
    if not isinstance(others, tuple | list | set | frozenset) or not any(map(is_data, (value, *others))):
        return value in others
    found: Any = False
    for other in others:
        one = combine("eq", value, other)
        found = combine("or_", found, one) if is_data(found) else one
    return found


def matched(value: Any) -> Any:
    """What is compared by ``match``: a value, or those in a tuple or a list, which Python has to know."""
    for part in value if isinstance(value, tuple | list) else (value,):
        if not is_data(part):
            continue
        if numbers_of(part):
            raise Specialize(numbers_of(part))
        raise session_of("a branch").fault(DslSyntaxError, "`match` on data", "write `if` and `elif`")
    return value


def branched(
    primitive: str,
    known: Any,
    more: Callable[[], Any],
    branch: Branch,
    is_truth: Callable[[Any], bool] = lambda _: True,
) -> Any:
    """``known and more()`` or ``known or more()`` by a ``branch``: beside its result, if it ``is_truth``, what both say
    of sizes.
    """
    session, holds = session_of("a condition"), primitive == "and_"
    conditions = [asked(session, known)]

    def rest() -> Any:
        # What computes it is the branch's.
        value = more()
        if is_data(value) and is_truth(value) and not getattr(value, "rank", 0):
            value = truth(session, value)
            conditions[1:] = [asked(session, value)]
        return value

    found = branch(known, rest)
    for each in conditions if is_truth(found) else ():
        said = said_of_sizes(each, holds)
        if said is not None:
            condition = said if holds else apply("not_", said)
            found = combine(primitive, SymbolicNumber(session.builder, condition, "bool", frozenset()), found)
    return found


def is_truth_value(session: Session, value: Any) -> bool:
    """Whether ``value`` is a bool, of Python or of the program."""
    return isinstance(value, bool) or (is_data(value) and element_of(value, session)[0].logical == "bool")
