"""Sums of products and what reads or makes their rows go through blocks of rows together.

Attention takes no tensor of scores: those of a block of rows are in memory that the next block finds in the cache::

    nest: S[i, j] += Q[i, k] * K[j, k]       for each block of rows i:
    nest: top[i] >>= S[i, j]                     tiles of the block: scores[i - low, j] += Q[i, k] * K[j, k]
          E[i, j] = exp(S[i, j] - top[i])        for each row i: top, E, total, in scores[i - low]
          total[i] += E[i, j]
    nest: O[i, d] += E[i, j] * V[j, d]           tiles of the block: O[i, d] += scores[i - low, j] * V[j, d]

Every value is computed as it would be alone. Of memory that one of the statements writes, all touch the same rows in
the same block, which the axes of their accesses show, so blocks run in parallel. `row_block_nests` makes the loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import islpy as isl

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, index_variables
from tcdsl.ir.program import Access, statement_reads
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.contraction import SumOfProducts, may_hold
from tcdsl.lowering.program_passes.effort import too_little_work
from tcdsl.lowering.program_passes.merging import LARGEST, REACH, Group, SharedRows, Touched, Ways, is_contraction
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.program_passes.shared_memory import Memory
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import holds

__all__ = ["in_row_blocks", "reasons_apart_in_rows"]


@dataclass(frozen=True, slots=True)
class _Member:
    """A group that may be part of blocks: the ``variables`` whose loops it may share, those among them that may count
    ``rows``, and how it touches each memory, in terms of the variables.
    """

    group: Group
    variables: tuple[str, ...]
    rows: frozenset[str]
    ways: Ways

    def extent(self, level: int) -> Expr:
        """The extent of a variable."""
        return self.group.plans[0].extent(self.variables[level])


@dataclass(frozen=True, slots=True)
class _Block:
    """Members, and for each of the loops that they share the places of their variables."""

    members: tuple[_Member, ...]
    levels: tuple[tuple[int, ...], ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(member.group for member in self.members)

    @property
    def plans(self) -> tuple[LoopOrder, ...]:
        return tuple(plan for group in self.groups for plan in group.plans)

    def row(self) -> int | None:
        """The last loop that may count rows in all members."""
        for place in reversed(range(len(self.levels))):
            pairs = zip(self.members, self.levels[place], strict=True)
            if all(member.variables[k] in member.rows for member, k in pairs):
                return place
        return None


def in_row_blocks(
    groups: Sequence[Group],
    memory: Memory,
    touched: Touched,
    tensors: Declarations,
    context: isl.Set,
    kept: frozenset[str],
) -> list[Group]:
    """``groups``, those with sums of products together with what they share rows with, where that saves memory.

    All of ``kept`` tensors is needed.
    """
    return _Blocks(groups, memory, touched, tensors, context, kept).made()


def reasons_apart_in_rows(
    groups: Sequence[Group],
    memory: Memory,
    touched: Touched,
    tensors: Declarations,
    context: isl.Set,
    kept: frozenset[str],
) -> Iterator[tuple[str, str, str]]:
    """Targets of groups with a sum of products, and why they do not go through blocks of rows together."""
    blocks = _Blocks(groups, memory, touched, tensors, context, kept)
    if not blocks.may_be:
        return
    apart = blocks.touched
    for one, other in pairwise(groups):
        last, following = (
            (one if one.rows is None else one.rows.groups[-1]),
            (other if other.rows is None else other.rows.groups[0]),
        )
        if _contraction(last) is None and _contraction(following) is None:
            continue
        first, second = last.plans[-1].statement.target.tensor, following.plans[0].statement.target.tensor
        mine, its = _member(last, apart), _member(following, apart)
        if mine is None or its is None:
            yield first, second, f"{first if mine is None else second} does not go by rows"
            continue
        block = _joined(_alone(mine), its, apart, context)
        if isinstance(block, Declined):
            yield first, second, str(block)
    blocks.made()
    for found, reason in blocks.refused:
        yield found.plans[0].statement.target.tensor, found.plans[-1].statement.target.tensor, str(reason)


def _contraction(group: Group) -> SumOfProducts | None:
    return group.plans[0].contraction if len(group.plans) == 1 and group.rows is None else None


def _member(group: Group, touched: Touched) -> _Member | None:
    if group.swept or group.tiled or group.rows is not None:
        return None
    first, found = group.plans[0], _contraction(group)
    if found is not None:
        if found.guards or found.limits or found.phases or not found.full or can_fail(first.statement):
            return None
        sides = {side.variable: side for side in (*found.around, *found.rows)}
        cells = [name for axis in first.statement.target.indices for name in index_variables(axis) if name in sides]
        # Those that begin at 0 run over all cells, because every cell has rows and lanes.
        variables = tuple(name for name in cells if sides[name].first == integer(0))
        rows = frozenset(side.variable for side in found.rows)
    else:
        if not group.depth or not all(map(_goes_by_rows, group.plans)):
            return None
        variables = first.outer[: group.depth]
        rows = frozenset(variables)
    if not rows & set(variables):
        return None
    ways: Ways = {}
    for plan in group.plans:
        for name, ways_of in touched.ways(plan, variables).items():
            ways.setdefault(name, set()).update(ways_of)
    return _Member(group, variables, rows & set(variables), ways)


def _goes_by_rows(plan: LoopOrder) -> bool:
    if not plan.plain or plan.extents or plan.fixed is not None or plan.scan or plan.statement.unique:
        return False
    if can_fail(plan.statement) or is_contraction(plan):
        return False
    # Sums into rows in memory have memory of their own, for each iteration of the loop that is outermost now.
    return plan.single or plan.scalar or plan.window


def _alone(member: _Member) -> _Block:
    return _Block((member,), tuple((k,) for k in range(len(member.variables))))


def _joined(block: _Block, member: _Member, touched: Touched, context: isl.Set) -> _Block | Declined:
    """The block with ``member``, or why not."""
    every = (*block.plans, *member.group.plans)
    if sum(touched.of(plan).work for plan in every) > LARGEST:
        return Declined("they have more than {} operations", (LARGEST,))
    if not touched.conflict_between(block.plans, member.group.plans):
        return Declined("none of them needs what the other one makes")
    levels: list[tuple[int, ...]] = []
    left = list(range(len(member.variables)))
    apart: list[str] = []
    for places in block.levels:
        found = next((k for k in left if _is_level(block, places, member, k, context)), None)
        if found is not None:
            levels.append((*places, found))
            left.remove(found)
        elif any(_contraction(group) is not None for group in block.groups):
            apart.append(block.members[0].variables[places[0]])
    if _contraction(member.group) is not None:
        apart += [member.variables[k] for k in left]
    made = _Block((*block.members, member), tuple(levels))
    if made.row() is None:
        return Declined("no loop over rows of both touches the same cells in each iteration")
    # Inside of loops that only one has, rows of what is in between would take more memory than is near.
    return Declined("the loop over {} is around one of them alone", (apart[0],)) if apart else made


def _is_level(block: _Block, places: Sequence[int], member: _Member, k: int, context: isl.Set) -> bool:
    extent, other = member.extent(k), block.members[0].extent(places[0])
    if extent != other and not holds(apply("eq", extent, other), context):
        return False
    return all(
        not one[place].isdisjoint(its[k])
        for each, place in zip(block.members, places, strict=True)
        for name in each.ways.keys() & member.ways.keys()
        for one, writes in each.ways[name]
        for its, overwrites in member.ways[name]
        if writes or overwrites
    )


class _Blocks:
    """The blocks of a program's ``groups``; ``refused`` are those that do not pay, and why."""

    def __init__(
        self,
        groups: Sequence[Group],
        memory: Memory,
        touched: Touched,
        tensors: Declarations,
        context: isl.Set,
        kept: frozenset[str],
    ) -> None:
        self._groups = groups
        self._memory = memory
        self._tensors = tensors
        self._context = context
        self._kept = {memory.of[name] for name in kept}
        self.touched = touched
        buffers = (each.name for each in memory.buffers if each.kind == "temporary" and each.tensors)
        self._temporary = {name: place for place, name in enumerate(buffers)}
        # How many statements touch a memory.
        self._uses = Counter(name for group in groups for plan in group.plans for name in touched.of(plan).cells)
        self.refused: list[tuple[_Block, Declined]] = []

    @property
    def may_be(self) -> bool:
        """Whether there are two sums of products."""
        parts = (part for group in self._groups for part in ((group,) if group.rows is None else group.rows.groups))
        return sum(_contraction(part) is not None for part in parts) > 1

    def made(self) -> list[Group]:
        """All groups, those of a block as one."""
        if not self.may_be:
            return list(self._groups)
        members = [_member(group, self.touched) for group in self._groups]
        while True:
            found = [self._shared(each) if isinstance(each, _Block) else each for each in self._found(members)]
            apart = {id(group) for each in found if isinstance(each, tuple) for group in each}
            if not apart:
                return [each for each in found if isinstance(each, Group)]
            # Without these, what others do may come in between again.
            members = [None if member is None or id(member.group) in apart else member for member in members]

    def _found(self, members: Sequence[_Member | None]) -> list[_Block | Group]:
        # In an order that respects what depends on what.
        out: list[_Block | Group] = []
        for group, member in zip(self._groups, members, strict=True):
            for place in reversed(range(max(0, len(out) - REACH), len(out))):
                before = out[place]
                if not self.touched.conflict_between(before.plans, group.plans):
                    continue
                if member is not None and isinstance(before, _Block):
                    joined = _joined(before, member, self.touched, self._context)
                    if isinstance(joined, _Block):
                        out[place] = joined
                        break
                out.append(group if member is None else _alone(member))
                break
            else:
                out.append(group if member is None else _alone(member))
        return out

    def _shared(self, block: _Block) -> Group | tuple[Group, ...]:
        """The group of a block, if rows of some memory are its own, and are gone over again and again; else what is not
        to be part of it.

        Where rows are only made and multiplied again, as in layers of a network, nothing was won: factors are read more
        often, which takes as long (0.9 to 1.0 of the speed for 24 to 1024 rows, 1000 to 32000 columns).
        """
        row = block.row()
        if len(block.members) == 1 or row is None:
            return block.members[0].group
        again = self._gone_over(block)
        own: dict[str, tuple[int, ...]] = {}
        reason = self._why_not(block)
        if reason is None:
            own = self._own(block)
            if again.isdisjoint(own):
                reason = Declined("blocks of rows have no rows of their own that something adds up")
        if reason is not None:
            self.refused.append((block, reason))
            return block.groups
        sums = (group for group in block.groups if _contraction(group) is not None)
        apart = tuple(group for group in sums if again.isdisjoint(self.touched.of(group.plans[0]).cells))
        if apart:
            return apart
        levels = tuple(
            tuple(member.variables[places[number]] for places in block.levels)
            for number, member in enumerate(block.members)
        )
        return Group(block.plans, 0, rows=SharedRows(block.groups, levels, row, own))

    def _own(self, block: _Block) -> dict[str, tuple[int, ...]]:
        """The memory that nothing else touches, with the axis that each level indexes in all accesses."""
        inside = Counter(name for plan in block.plans for name in self.touched.of(plan).cells)
        own: dict[str, tuple[int, ...]] = {}
        alone = [name for name, uses in inside.items() if uses == self._uses[name] and name not in self._kept]
        for name in sorted(self._temporary.keys() & alone, key=self._temporary.__getitem__):
            axes = _axes(block, name)
            if axes is not None:
                own[name] = axes
        return own

    def _gone_over(self, block: _Block) -> frozenset[str]:
        """The memory whose rows something adds up, and what is computed from it or for it cell by cell."""
        plans = [plan for group in block.groups if _contraction(group) is None for plan in group.plans]
        found = [(plan.single, self._rows_of(plan, len(block.levels))) for plan in plans]
        again = frozenset[str]().union(*(rows for single, rows in found if not single))
        while True:
            more = again.union(*(rows for _, rows in found if rows & again))
            if more == again:
                return again
            again = more

    def _rows_of(self, plan: LoopOrder, levels: int) -> frozenset[str]:
        reads = (Access(read.tensor, read.indices) for read in statement_reads(plan.statement))
        cells = (plan.statement.target, *reads)
        return frozenset(self._memory.of[cell.tensor] for cell in cells if len(cell.indices) > levels)

    def _why_not(self, block: _Block) -> Declined | None:
        contractions = [found for group in block.groups if (found := _contraction(group)) is not None]
        if len(contractions) < 2:
            return Declined("blocks of rows save nothing for one sum of products alone")
        few = too_little_work(block.plans, self._tensors)
        if few is not None:
            return few
        if not all(may_hold(found.pays) for found in contractions):
            return Declined("tiles of one of them do not pay")
        return None


def _axes(block: _Block, name: str) -> tuple[int, ...] | None:
    """The axis of a memory that each level indexes in all accesses; None if there is none, or nothing touches it."""
    axes: list[int] = []
    for places in block.levels:
        found: frozenset[int] | None = None
        for member, place in zip(block.members, places, strict=True):
            for one, _ in member.ways.get(name, ()):
                found = one[place] if found is None else found & one[place]
        free = sorted((found or frozenset()) - set(axes))
        if not free:
            return None
        axes.append(free[0])
    return tuple(axes)
