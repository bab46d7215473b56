"""Derivatives of one scalar expression: which reads it depends on, and by how much.

Reverse mode walks the steps of a `Tape` backwards, each primitive's row of `tcdsl.ir.primitives` saying what an
argument gets. What stands in a branch of ``where`` carries the branch's condition along as a *guard*: its derivative
is computed where the branch is taken and nowhere else, so that a read that is out of range, or a NaN, behind a false
guard is never touched. Forward mode uses the same rows: they are linear in ``g``, so ``g`` may be the tangent of the
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

from tcdsl.errors import DifferentiationError
from tcdsl.ir.build import constant, range_tests
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, Local, Read, reads
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.rule_parser import parse_rule
from tcdsl.polyhedra.read_pieces import is_affine_condition
from tcdsl.simplification.expressions.folding import negated
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["Guarded", "Partial", "carriers", "carries", "conjunction", "partials", "tangent_step"]

Guards = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Guarded:
    """A value and the conditions, in order, under which it may be computed; it is 0 elsewhere. All are leaves."""

    guards: Guards
    value: Expr


@dataclass(frozen=True, slots=True)
class Partial:
    """The loss's derivative by one read, ``value`` where all ``guards`` hold and 0 elsewhere."""

    read: Read
    guards: Guards
    value: Expr


def carriers(tape: Tape, root: Expr, active: Callable[[str], bool]) -> list[str]:
    """The steps under ``root``, in order, whose value depends differentiably on a tensor that ``active`` accepts."""
    carrying: dict[str, None] = {}

    def carries(leaf: Expr | None) -> bool:
        return isinstance(leaf, Local) and leaf.name in carrying

    for name in tape.steps([root]):
        step = tape.definition(Local(name, ""))
        if not is_floating(compute_dtype(step.dtype)):
            continue
        match step:
            case Read(tensor=tensor, fill=fill):
                found = active(tensor) or carries(fill)
            case Cast(operand=operand):
                found = carries(operand)
            case Apply(primitive=primitive, arguments=arguments):
                found = any(
                    carries(argument) and derivative_row(primitive, k, step) != "0"
                    for k, argument in enumerate(arguments)
                )
            case _:
                found = False
        if found:
            carrying[name] = None
    return list(carrying)


def carries(expr: Expr, active: Callable[[str], bool], *, anywhere: bool = False) -> bool:
    """Whether an expression, or with ``anywhere`` a part of it, depends differentiably on what ``active`` accepts."""
    found = frozenset(filter(active, {read.tensor for read in reads(expr)}))
    return bool(found) and _carries(expr, found)[anywhere]


@lru_cache(maxsize=4096)
def _carries(expr: Expr, active: frozenset[str]) -> tuple[bool, bool]:
    # Whether the expression itself does, and whether a part does.
    tape = Tape()
    root = tape.flatten(expr)
    found = carriers(tape, root, active.__contains__)
    return isinstance(root, Local) and root.name in found, bool(found)


def derivative_row(primitive: str, position: int, place: Expr) -> str:
    """The rule for one argument; `DifferentiationError` where the table has none."""
    rows = PRIMITIVES[primitive].derivatives
    if rows is None:
        fact = f"the primitive {primitive} has no derivative by its argument {position + 1}"
        hint = "stop_gradient(x) marks a value as constant; @f.defvjp gives an op that uses it a rule of its own"
        raise DifferentiationError.at(fact, place.span, hint)
    return rows[position]


def conjunction(tape: Tape, conditions: Iterable[Expr], primitive: str = "and_") -> Expr:
    """All conditions as one leaf (or any of them, with ``or_``)."""
    return reduce(lambda left, right: tape.add(Apply(primitive, (left, right), "bool")), conditions)


def partials(
    tape: Tape,
    root: Expr,
    seed: Guarded,
    active: Callable[[str], bool],
    extents: Callable[[str], tuple[Expr, ...]],
    result: Expr | None = None,
) -> list[Partial]:
    """The derivatives of ``seed * root`` by the reads of ``active`` tensors under ``root``, one per distinct read.

    ``extents`` gives the shape of a tensor. ``result``, if given, is a leaf that holds the value of ``root`` already.
    """
    order = carriers(tape, root, active)
    received: dict[str, list[Guarded]] = {name: [] for name in order}
    if isinstance(root, Local) and root.name in received:
        received[root.name].append(seed)

    def give(leaf: Expr | None, share: Guarded) -> None:
        if isinstance(leaf, Local) and leaf.name in received and not _is_zero(share.value):
            received[leaf.name].append(share)

    found: list[Partial] = []
    for name in reversed(order):
        if not received[name]:
            continue
        total = _combined(tape, received[name])
        step = tape.definition(Local(name, ""))
        match step:
            case Read(fill=None):
                found.append(Partial(step, total.guards, total.value))
            case Read(tensor=tensor, fill=fill):
                inside = _inside(tape, step, extents(tensor))
                outside = tape.add(Apply("not_", (inside,), "bool"))
                give(fill, Guarded((*total.guards, outside), total.value))
                if active(tensor):
                    found.append(Partial(step, (*total.guards, inside), total.value))
            case Cast(operand=operand):
                give(operand, Guarded(total.guards, tape.add(Cast(total.value, operand.dtype))))
            case Apply(primitive="where", arguments=(condition, chosen, other)):
                opposite = tape.flatten(negated(condition, tape.definition))
                give(chosen, Guarded((*total.guards, condition), total.value))
                give(other, Guarded((*total.guards, opposite), total.value))
            case Apply(arguments=arguments):
                known = result if result is not None and root == Local(name, step.dtype) else Local(name, step.dtype)
                for k, argument in enumerate(arguments):
                    if isinstance(argument, Local) and argument.name in received:
                        share = _by_argument(tape, step, k, known, total.value)
                        give(argument, Guarded(total.guards, share or constant(0, argument.dtype)))
    return found[::-1]


def _by_argument(tape: Tape, step: Apply, position: int, result: Expr, seed: Expr) -> Expr | None:
    # The row of the table with its names bound; None where the derivative is zero.
    text = derivative_row(step.primitive, position, step)
    if text == "0":
        return None
    bindings = {**dict(zip("abc", step.arguments, strict=False)), "y": result, "g": seed}
    share = tape.flatten(parse_rule(text, bindings))
    return None if _is_zero(share) else share


def _is_zero(leaf: Expr) -> bool:
    return isinstance(leaf, Constant) and leaf.value == 0


def _combined(tape: Tape, shares: list[Guarded]) -> Guarded:
    """The sum of guarded values: what all guards have in common stays a guard, the rest chooses inside the sum."""
    if len(shares) == 1:
        return shares[0]
    common = _common_guards(tape, shares)
    groups: dict[Guards, Expr] = {}
    for share in shares:
        rest = tuple(guard for guard in share.guards if guard not in common)
        have = groups.get(rest)
        groups[rest] = share.value if have is None else _sum(tape, have, share.value)
    if len(groups) == 1:
        [(rest, value)] = groups.items()
        return Guarded((*common, *rest), value)
    conditions = {rest: conjunction(tape, rest) for rest in groups if rest}
    if len(groups) == 2 and len(conditions) == 2:
        (first, one), (second, other) = ((conditions[rest], value) for rest, value in groups.items())
        if tape.flatten(negated(first, tape.definition)) == second:
            return Guarded(common, tape.add(Apply("where", (first, one, other), one.dtype)))
    total: Expr | None = None
    for rest, value in groups.items():
        zero = constant(0, value.dtype)
        term = tape.add(Apply("where", (conditions[rest], value, zero), value.dtype)) if rest else value
        total = term if total is None else _sum(tape, total, term)
    assert total is not None
    if len(conditions) < len(groups):
        return Guarded(common, total)
    return Guarded((*common, conjunction(tape, conditions.values(), "or_")), total)


def _common_guards(tape: Tape, shares: list[Guarded]) -> Guards:
    """The guards of all shares that may be asked before the others of each share.

    ``x[p[i]] > 0`` may be asked only where the guards before it hold, such as ``p[i] >= 0``: these must be common too.
    What reads nothing may be asked anywhere.
    """
    found: list[Expr] = []
    for guard in shares[0].guards:
        if all(guard in share.guards for share in shares) and (
            all(before in found for share in shares for before in share.guards[: share.guards.index(guard)])
            or all(map(is_affine_condition, tape.conjuncts(guard)))
        ):
            found.append(guard)
    return tuple(found)


def _sum(tape: Tape, left: Expr, right: Expr) -> Expr:
    return tape.add(Apply("add", (left, right), left.dtype))


def _inside(tape: Tape, read: Read, extents: tuple[Expr, ...]) -> Expr:
    # Whether a read with a fill value finds a cell.
    tests: list[Expr] = []
    for axis, boundary, extent in zip(read.indices, read.boundaries, extents, strict=True):
        if boundary is Boundary.FILL:
            tests.extend(map(tape.flatten, range_tests(axis, extent)))
    return conjunction(tape, tests)


def tangent_step(
    tape: Tape,
    root: Expr,
    active: Callable[[str], bool],
    extents: Callable[[str], tuple[Expr, ...]],
    tangent: Callable[[str], str],
    result: Expr | None = None,
) -> Expr | None:
    """The tangent of ``root`` as a leaf, or ``None`` if it is zero: forward mode by the same rows.

    ``tangent`` names the tangent of an active tensor, ``extents`` gives the shape of a tensor. ``result``, if given,
    is a leaf that holds the value of ``root`` already.
    """
    tangents: dict[str, Expr] = {}

    def of(leaf: Expr | None) -> Expr | None:
        return tangents.get(leaf.name) if isinstance(leaf, Local) else None

    for name in carriers(tape, root, active):
        step = tape.definition(Local(name, ""))
        total: Expr | None = None
        match step:
            case Read(tensor=tensor):
                zero = constant(0, step.dtype)
                fill = None if step.fill is None else of(step.fill) or zero
                if active(tensor):
                    total = tape.add(replace(step, tensor=tangent(tensor), fill=fill))
                elif fill is not None:
                    inside = _inside(tape, step, extents(tensor))
                    total = tape.add(Apply("where", (inside, zero, fill), step.dtype))
            case Cast(operand=operand):
                inner = of(operand)
                total = None if inner is None else tape.add(Cast(inner, step.dtype))
            case Apply(primitive="where", arguments=(condition, chosen, other)):
                zero = constant(0, step.dtype)
                branches = tuple(of(branch) or zero for branch in (chosen, other))
                total = tape.add(Apply("where", (condition, *branches), step.dtype))
            case Apply(arguments=arguments):
                value = result if result is not None and root == Local(name, step.dtype) else Local(name, step.dtype)
                for k, argument in enumerate(arguments):
                    inner = of(argument)
                    share = None if inner is None else _by_argument(tape, step, k, value, inner)
                    if share is not None:
                        total = share if total is None else _sum(tape, total, share)
        if total is not None:
            tangents[name] = total
    return of(root)
