"""Statements that share outer loops: a row's maximum, exponentials, sum and quotients in one pass over the rows.

Two statements may share their outer loops if, of any memory that one of them writes, both touch cells of the same
iteration only. isl proves it where the indices do not show it. Merging is ours: it needs a common extent and a tensor
that both touch, and it leaves contractions alone, which have kernels of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.build import apply, index
from tcdsl.ir.expressions import Apply, Expr, IndexValue, reads, walk
from tcdsl.ir.program import Access, Keep, Statement
from tcdsl.lowering.buffers import Memory
from tcdsl.lowering.names import Names
from tcdsl.lowering.schedule import Plan, constant_length
from tcdsl.lowering.statements import renamed_statement, statement_reads
from tcdsl.shapes.affine import NotAffine, condition_set

__all__ = ["Group", "is_contraction", "merge", "thin_targets"]

# How many groups a statement may move past to join one.
_REACH = 8


@dataclass(frozen=True, slots=True)
class Group:
    """Statements, in order, that share their first ``depth`` outer loops; those loops have the same variables."""

    plans: tuple[Plan, ...]
    depth: int


def merge(plans: list[Plan], memory: Memory, context: isl.Set, names: Names) -> list[Group]:
    """Groups in an order that respects what depends on what."""
    groups: list[Group] = []
    for plan in plans:
        for back in range(min(len(groups), _REACH)):
            position = len(groups) - 1 - back
            joined = _joined(groups[position], plan, memory, context, names)
            if joined is not None:
                groups[position] = joined
                break
            if any(_conflict(other, plan, memory) for other in groups[position].plans):
                groups.append(Group((plan,), _depth(plan)))
                break
        else:
            groups.append(Group((plan,), _depth(plan)))
    return groups


def is_contraction(plan: Plan) -> bool:
    """Whether the statement sums products over at least three loops: a matrix product, a convolution."""
    statement = plan.statement
    if plan.single or len(statement.domain.variables) < 3 or statement.accumulate not in ("add", "subtract"):
        return False
    product = any(isinstance(node, Apply) and node.primitive == "mul" for node in walk(statement.value))
    return product and len({read.indices for read in reads(statement.value)}) >= 2


def thin_targets(plans: Sequence[Plan], memory: Memory) -> frozenset[str]:
    """The targets of statements that change few cells of memory all of whose cells another one writes.

    They add what happens at a border to what the others have done. Waking threads for them costs more than it saves.
    """
    ranks: dict[str, int] = {}
    loops: dict[str, int] = {}
    for plan in plans:
        statement, name = plan.statement, plan.statement.target.tensor
        long = {each for each in statement.domain.variables if constant_length(statement, each) is None}
        if name not in memory.in_place:
            ranks[memory.of[name]] = len(plan.tensor.shape)
        elif long <= set(plan.cells) and not statement.unique:
            loops[name] = len(long)
    return frozenset(name for name, count in loops.items() if count < ranks.get(memory.of[name], 0))


def _depth(plan: Plan) -> int:
    return len(plan.outer) if plan.plain else 0


def _scalar_code(plan: Plan) -> bool:
    # A statement without loops.
    return plan.plain and not plan.outer and not plan.inner


def _joined(group: Group, plan: Plan, memory: Memory, context: isl.Set, names: Names) -> Group | None:
    if _scalar_code(plan) and all(_scalar_code(other) for other in group.plans):
        return Group((*group.plans, plan), 0)
    if not plan.plain or plan.statement.unique or is_contraction(plan) or not _related(group, plan, memory):
        return None
    for depth in range(min(group.depth, _depth(plan)), 0, -1):
        if _same_extents(group, plan, depth, context) and all(
            _aligned(other, plan, depth, memory) for other in group.plans
        ):
            return Group((*group.plans, _with_variables(plan, group.plans[0].outer[:depth], names)), depth)
    return None


def _related(group: Group, plan: Plan, memory: Memory) -> bool:
    if any(is_contraction(other) or not other.plain or other.statement.unique for other in group.plans):
        return False
    touched = {memory.of[access.tensor] for access, _ in _accesses(plan.statement)}
    return any(
        memory.of[access.tensor] in touched and access.indices
        for other in group.plans
        for access, _ in _accesses(other.statement)
    )


def _accesses(statement: Statement) -> Iterator[tuple[Access, bool]]:
    """The cells that a statement touches, and whether it writes them."""
    yield statement.target, True
    if isinstance(statement.start, Keep):
        yield Access(statement.start.tensor, statement.target.indices), False
    for read in statement_reads(statement):
        yield Access(read.tensor, read.indices), False


def _conflict(first: Plan, second: Plan, memory: Memory) -> bool:
    # Whether the order of two statements matters.
    return any(
        memory.of[one.tensor] == memory.of[other.tensor] and (writes or overwrites)
        for one, writes in _accesses(first.statement)
        for other, overwrites in _accesses(second.statement)
    )


def _same_extents(group: Group, plan: Plan, depth: int, context: isl.Set) -> bool:
    first = group.plans[0]
    for mine, its in zip(plan.outer[:depth], first.outer[:depth], strict=True):
        if not same_size(plan.extent(mine), first.extent(its), context):
            return False
    return True


def same_size(left: Expr, right: Expr, context: isl.Set) -> bool:
    """Whether two expressions of sizes are equal wherever ``context`` holds."""
    if left == right:
        return True
    try:
        return bool(context.is_subset(condition_set(apply("eq", left, right), context).params()))
    except NotAffine:
        return False


def _aligned(first: Plan, second: Plan, depth: int, memory: Memory) -> bool:
    # Of memory that one of the two writes, both must touch the cells of one iteration of the shared loops.
    for one, writes in _accesses(first.statement):
        for other, overwrites in _accesses(second.statement):
            if memory.of[one.tensor] != memory.of[other.tensor] or not (writes or overwrites):
                continue
            if not all(
                any(
                    _is_variable(first, one.indices[axis], first.outer[level])
                    and _is_variable(second, other.indices[axis], second.outer[level])
                    for axis in range(len(one.indices))
                )
                for level in range(depth)
            ):
                return False
    return True


def _is_variable(plan: Plan, expr: Expr, name: str) -> bool:
    # Whether the index has the variable's value at every point.
    if expr == IndexValue(name):
        return True
    points = plan.statement.domain.set
    try:
        return bool(points.is_subset(condition_set(apply("eq", expr, index(name)), points)))
    except NotAffine:
        return False


def _with_variables(plan: Plan, shared: tuple[str, ...], names: Names) -> Plan:
    """The plan with the names ``shared`` for its first outer variables; others that are called so get new names."""
    wanted = dict(zip(plan.outer, shared, strict=False))
    for name in plan.statement.domain.variables:
        if name not in wanted:
            wanted[name] = names.fresh(name) if name in shared else name
    return renamed_plan(plan, wanted)


def renamed_plan(plan: Plan, wanted: dict[str, str]) -> Plan:
    """The plan with its statement's index variables renamed."""
    return replace(
        plan,
        statement=renamed_statement(plan.statement, wanted),
        cells=tuple(wanted[name] for name in plan.cells),
        outer=tuple(wanted[name] for name in plan.outer),
        inner=tuple(wanted[name] for name in plan.inner),
    )
