"""Statements that share outer loops: a row's maximum, exponentials, sum and quotients in one pass over the rows.

Two statements may share their outer loops if, of any memory that one of them writes, both touch cells of the same
iteration only. isl proves it where the indices do not show it. Merging is ours: it needs a common extent and a tensor
that both touch, and it leaves contractions alone, which have kernels of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import islpy as isl

from tcdsl.ir.build import apply, index
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Expr, IndexValue, reads, substitute, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Keep, Statement, statement_reads
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.program_passes.fusion import work
from tcdsl.lowering.program_passes.schedule import LoopOrder, constant_length
from tcdsl.lowering.program_passes.shared_memory import Memory
from tcdsl.lowering.program_passes.touched_tensors import evaluated
from tcdsl.polyhedra.affine import holds
from tcdsl.polyhedra.index_variables import renamed
from tcdsl.rewrite.statement_kinds import of_kind

__all__ = [
    "LARGEST",
    "REACH",
    "Group",
    "SharedRows",
    "Touched",
    "Ways",
    "aligned",
    "is_contraction",
    "merge",
    "reads_own_cells",
    "reasons_apart",
    "thin_targets",
]

REACH = 8
"""How many groups a statement may move past to join one."""

LARGEST = 1024
"""Operations of a group beyond which no other statement joins it: LLVM takes longer for each where there are more."""


@dataclass(frozen=True, slots=True)
class Group:
    """Statements, in order, that share their first ``depth`` outer loops; those loops have the same variables.

    Those of the groups ``swept`` go over the same rows, some of which reduce them (`tcdsl.lowering.scheduling.sweeps`);
    those of the groups ``tiled`` are stencils of stencils (`tcdsl.lowering.scheduling.stencil_chains`); ``rows`` says
    what groups with sums of products have in common (`tcdsl.lowering.scheduling.row_blocks`).
    """

    plans: tuple[LoopOrder, ...]
    depth: int
    swept: tuple[Group, ...] = ()
    tiled: tuple[Group, ...] = ()
    rows: SharedRows | None = None


@dataclass(frozen=True, slots=True)
class SharedRows:
    """``groups`` that go through blocks of the same rows together.

    Each has a variable for each of the loops that they share, its ``levels``; that at the place ``row`` counts the rows
    of a block, those of ``outer`` are around. Of the memory in ``own`` a block has rows of its own: for each the axes
    that the levels index.
    """

    groups: tuple[Group, ...]
    levels: tuple[tuple[str, ...], ...]
    row: int
    own: Mapping[str, tuple[int, ...]]


def merge(given: Sequence[Group], touched: Touched, context: isl.Set, names: FreshNames) -> list[Group]:
    """Groups in an order that respects what depends on what; those ``given`` of one statement are joined."""
    groups: list[Group] = []
    for group in given:
        plan = group.plans[0]
        for back in range(min(len(groups), REACH) if len(group.plans) == 1 else 0):
            position = len(groups) - 1 - back
            joined = _joined(groups[position], plan, touched, context, names)
            if isinstance(joined, Group):
                groups[position] = joined
                break
            if touched.conflict_between(groups[position].plans, (plan,)):
                groups.append(group)
                break
        else:
            groups.append(group)
    return groups


def reasons_apart(groups: Sequence[Group], touched: Touched, context: isl.Set) -> Iterator[tuple[str, str, str]]:
    """For each of the ``groups`` and the next one: targets of both, and why they share no loops."""
    names = FreshNames(())
    for one, other in pairwise(groups):
        last, following = (*_parts(one), one)[len(_parts(one)) - 1], (*_parts(other), other)[0]
        found = [_joined(last, plan, touched, context, names) for plan in following.plans]
        first, second = (group.plans[-1].statement.target.tensor for group in (last, following))
        yield (
            first,
            second,
            str(next((each for each in found if isinstance(each, Declined)), "a statement is in between")),
        )


def _parts(group: Group) -> tuple[Group, ...]:
    return group.swept if group.rows is None else group.rows.groups


def is_contraction(plan: LoopOrder) -> bool:
    """Whether the statement sums products over at least three loops, and uses what it reads several times: a matrix
    product, a convolution.
    """
    return not plan.single and _sums_products(plan.statement)


@of_kind
def _sums_products(statement: Statement) -> bool:
    if len(statement.domain.variables) < 3 or statement.accumulate not in ("add", "subtract"):
        return False
    product = any(isinstance(node, Apply) and node.primitive == "mul" for node in walk(statement.value))
    several = len({read.indices for read in reads(statement.value)}) >= 2
    return product and several and not reads_own_cells(statement)


def reads_own_cells(statement: Statement) -> bool:
    """Whether each point reads a cell of some tensor that no other point reads: its memory is gone over once."""
    variables = set(map(IndexValue, statement.domain.variables))
    return any(variables <= set(read.indices) for expr in evaluated(statement) for read in reads(expr))


def thin_targets(plans: Sequence[LoopOrder], memory: Memory) -> frozenset[str]:
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


def _depth(plan: LoopOrder) -> int:
    return len(plan.outer) if plan.plain else 0


def _scalar_code(plan: LoopOrder) -> bool:
    # A statement without loops.
    return plan.plain and not plan.outer and not plan.inner


@of_kind
def _operations(statement: Statement) -> int:
    return 1 + sum(map(work, evaluated(statement)))


# By memory: for each outer loop the axes of an access that run with it, and whether the access writes.
Ways = dict[str, set[tuple[tuple[frozenset[int], ...], bool]]]


@dataclass(frozen=True, slots=True)
class _Touches:
    """What the statement of a plan touches: by memory, the cells and whether it writes them."""

    plan: LoopOrder
    cells: Mapping[str, tuple[tuple[Access, bool], ...]]
    written: frozenset[str]
    indexed: frozenset[str]
    mergeable: bool
    work: int


@dataclass(frozen=True, slots=True)
class _Together:
    """The memory that a group of statements writes, touches, and indexes, and a plan that shares no loops."""

    written: frozenset[str]
    touched: frozenset[str]
    indexed: frozenset[str]
    apart: LoopOrder | None


class Touched:
    """The `_Touches` of plans, found once: every plan is compared with many others."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._found: dict[int, _Touches] = {}
        self._ways: dict[int, Ways] = {}
        self._own_ways: dict[tuple[int, tuple[str, ...]], Ways] = {}
        self._work: dict[int, int] = {}
        self._together: dict[tuple[int, ...], _Together] = {}

    def of(self, plan: LoopOrder) -> _Touches:
        """What the statement of a plan touches."""
        known = self._found.get(id(plan))
        if known is None:
            cells: dict[str, list[tuple[Access, bool]]] = {}
            for access, writes in _accesses(plan.statement):
                cells.setdefault(self._memory.of[access.tensor], []).append((access, writes))
            indexed = frozenset(name for name, found in cells.items() if any(access.indices for access, _ in found))
            mergeable = plan.plain and not plan.statement.unique and not is_contraction(plan)
            # The plan is kept, so that no other object gets its number.
            written = frozenset([name for name, found in cells.items() if any(writes for _, writes in found)])
            every = {name: tuple(found) for name, found in cells.items()}
            known = _Touches(plan, every, written, indexed, mergeable, _operations(plan.statement))
            self._found[id(plan)] = known
        return known

    def work_of_all(self, plans: Sequence[LoopOrder]) -> int:
        """The operations of a group, which grows by one plan at a time."""
        last = plans[-1]
        if id(last) not in self._work:
            before = self.work_of_all(plans[:-1]) if len(plans) > 1 else 0
            self._work[id(last)] = before + self.of(last).work
        return self._work[id(last)]

    def ways(self, plan: LoopOrder, outer: tuple[str, ...] | None = None) -> Ways:
        """How a plan touches each memory, in loops over its own outer variables or over those of ``outer``."""
        outer = plan.outer if outer is None else outer
        found = self._own_ways.get((id(plan), outer))
        if found is not None:
            return found
        found = self._own_ways[id(plan), outer] = {}
        for name, cells in self.of(plan).cells.items():
            for access, writes in cells:
                axes = _axes_of(access.indices, outer, plan.statement.domain)
                found.setdefault(name, set()).add((axes, writes))
        return found

    def ways_of_all(self, plans: Sequence[LoopOrder]) -> Ways:
        """How the plans of a group touch each memory: those of many statements are few."""
        last = plans[-1]
        if id(last) not in self._ways:
            # Groups grow by one plan at a time: what is known of the others goes on.
            known = self._ways.pop(id(plans[-2]), None) if len(plans) > 1 else None
            found: Ways = {} if known is None else known
            for plan in plans if known is None else plans[-1:]:
                for name, ways in self.ways(plan).items():
                    found.setdefault(name, set()).update(ways)
            self._ways[id(last)] = found
        return self._ways[id(last)]

    def ordered(self, first: LoopOrder, second: LoopOrder) -> Iterator[tuple[Access, Access]]:
        """Cells of one memory that the one statement writes and the other one touches."""
        if not self.conflict(first, second):
            return
        mine, its = self.of(first).cells, self.of(second).cells
        for name in mine.keys() & its.keys():
            for one, writes in mine[name]:
                for other, overwrites in its[name]:
                    if writes or overwrites:
                        yield one, other

    def conflict(self, first: LoopOrder, second: LoopOrder) -> bool:
        """Whether the order of two statements matters."""
        one, other = self.of(first), self.of(second)
        return not (one.written.isdisjoint(other.cells) and other.written.isdisjoint(one.cells))

    def conflict_between(self, ones: Sequence[LoopOrder], others: Sequence[LoopOrder]) -> bool:
        """Whether the order of two groups of statements matters: of all that each touches, once."""
        mine, its = self.together(ones), self.together(others)
        return not (mine.written.isdisjoint(its.touched) and its.written.isdisjoint(mine.touched))

    def together(self, plans: Sequence[LoopOrder]) -> _Together:
        """What the statements of a group touch: a group is compared with many others."""
        key = tuple(map(id, plans))
        known = self._together.get(key)
        if known is None:
            found = list(map(self.of, plans))
            known = self._together[key] = _Together(
                frozenset().union(*[each.written for each in found]),
                frozenset().union(*[each.cells for each in found]),
                frozenset().union(*[each.indexed for each in found]),
                next((each.plan for each in found if not each.mergeable), None),
            )
        return known


def _joined(group: Group, plan: LoopOrder, touched: Touched, context: isl.Set, names: FreshNames) -> Group | Declined:
    """The group with ``plan``, or why not."""
    if group.tiled:
        return Declined("stencils of stencils have tiles of their own")
    if touched.work_of_all(group.plans) + touched.of(plan).work > LARGEST:
        return Declined("they have more than {} operations", (LARGEST,))
    if _scalar_code(plan) and _scalar_code(group.plans[0]):
        return Group((*group.plans, plan), 0)
    apart = _unrelated(group, plan, touched)
    if apart is not None:
        return apart
    for depth in range(min(group.depth, _depth(plan)), 0, -1):
        if _fits(group, plan, depth, touched, context):
            return Group((*group.plans, _with_variables(plan, group.plans[0].outer[:depth], names)), depth)
    single, depth = _one_cell_at_a_time(plan), group.depth
    if single is None or depth != len(single.outer) or not any(other.inner for other in group.plans):
        return _why_unfit(group, plan, context)
    if not _fits(group, single, depth, touched, context):
        return _why_unfit(group, single, context)
    return Group((*group.plans, _with_variables(single, group.plans[0].outer[:depth], names)), depth)


def _fits(group: Group, plan: LoopOrder, depth: int, touched: Touched, context: isl.Set) -> bool:
    return _same_extents(group, plan, depth, context) and _aligned(group, plan, depth, touched)


def _why_unfit(group: Group, plan: LoopOrder, context: isl.Set) -> Declined:
    if not min(group.depth, _depth(plan)):
        return Declined("one of them has no loop over its cells outside")
    if not _same_extents(group, plan, 1, context):
        return Declined("the loops over {} and {} have other ends", (group.plans[0].outer[0], plan.outer[0]))
    return Declined("what one of them writes, the other one touches in other iterations too")


def _one_cell_at_a_time(plan: LoopOrder) -> LoopOrder | None:
    # Beside reductions over whole rows, a test for each cell, such as that rows are not empty, costs nothing.
    if not plan.single or plan.full or plan.row is None:
        return None
    return replace(plan, outer=(*plan.outer, plan.row), inner=(), scalar=True)


def _unrelated(group: Group, plan: LoopOrder, touched: Touched) -> Declined | None:
    # Why the statements are not even compared.
    mine, others = touched.of(plan), touched.together(group.plans)
    own = others.apart if mine.mergeable else plan
    if own is not None:
        kind = "is a contraction" if is_contraction(own) else "finds its cells by data, or writes them once"
        return Declined("{} {}, and has loops of its own", (own.statement.target.tensor, kind))
    return Declined("they touch no memory in common") if others.indexed.isdisjoint(mine.cells) else None


def _accesses(statement: Statement) -> Iterator[tuple[Access, bool]]:
    """The cells that a statement touches, and whether it writes them."""
    yield statement.target, True
    if isinstance(statement.start, Keep):
        yield Access(statement.start.tensor, statement.target.indices), False
    for read in statement_reads(statement):
        yield Access(read.tensor, read.indices), False


def _same_extents(group: Group, plan: LoopOrder, depth: int, context: isl.Set) -> bool:
    first = group.plans[0]
    mine, its = map(plan.extent, plan.outer[:depth]), map(first.extent, first.outer[:depth])
    return all(one == other or holds(apply("eq", one, other), context) for one, other in zip(mine, its, strict=True))


def _aligned(group: Group, plan: LoopOrder, depth: int, touched: Touched) -> bool:
    return aligned(touched.ways(plan), touched.ways_of_all(group.plans), depth)


def aligned(mine: Ways, its: Ways, depth: int) -> bool:
    """Whether of memory that one of two statements writes, both touch cells of one iteration of ``depth`` loops."""
    return all(
        not one[level].isdisjoint(other[level])
        for name in mine.keys() & its.keys()
        for one, writes in mine[name]
        for other, overwrites in its[name]
        if writes or overwrites
        for level in range(depth)
    )


@lru_cache(maxsize=4096)
def _axes_of(indices: tuple[Expr, ...], outer: tuple[str, ...], domain: Domain) -> tuple[frozenset[int], ...]:
    # For each outer variable the axes with its value at every point. Equal layers ask the same.
    return tuple(frozenset([k for k, each in enumerate(indices) if _is_variable(each, name, domain)]) for name in outer)


def _is_variable(expr: Expr, name: str, domain: Domain) -> bool:
    if expr == IndexValue(name):
        return True
    return expr.dtype == "int64" and holds(apply("eq", expr, index(name)), domain.set)


def _with_variables(plan: LoopOrder, shared: tuple[str, ...], names: FreshNames) -> LoopOrder:
    """The plan with the names ``shared`` for its first outer variables; others that are called so get new names."""
    wanted = dict(zip(plan.outer, shared, strict=False))
    if all(name == other for name, other in wanted.items()):
        return plan
    for name in plan.statement.domain.variables:
        if name not in wanted:
            wanted[name] = names.fresh(name) if name in shared else name
    values: dict[Expr, Expr] = {index(old): index(new) for old, new in wanted.items() if old != new}
    return replace(
        plan,
        declined=tuple(each.changed(lambda expr: substitute(expr, values)) for each in plan.declined),
        statement=renamed(plan.statement, [wanted[name] for name in plan.statement.domain.variables]),
        cells=tuple(wanted[name] for name in plan.cells),
        outer=tuple(wanted[name] for name in plan.outer),
        inner=tuple(wanted[name] for name in plan.inner),
    )
