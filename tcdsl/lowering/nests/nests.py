"""Groups of statements as nests: shared outer loops, starts, blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer, product_of
from tcdsl.ir.expressions import Expr, IndexValue
from tcdsl.ir.program import Program, Statement
from tcdsl.ir.text.printer import format_statement
from tcdsl.lowering.loopir.loops import Branch, Loop, Nest, Node, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import serial
from tcdsl.lowering.nests.blocks import Block
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.nests.contraction_tiles import contraction_tiles
from tcdsl.lowering.nests.innermost_loops import cell_loops, rows_of_phases
from tcdsl.lowering.nests.interleaving import interleaved
from tcdsl.lowering.nests.parallel_reductions import in_parts, partial_results
from tcdsl.lowering.nests.shared_tiles import in_shared_tiles
from tcdsl.lowering.nests.stencil_chains import chained_nest
from tcdsl.lowering.nests.sweeps import swept_nests
from tcdsl.lowering.program_passes.effort import is_small, points_of
from tcdsl.lowering.program_passes.merging import Group
from tcdsl.lowering.program_passes.schedule import LoopOrder

__all__ = ["Draft", "drafts_of", "finished"]

# Cells per parallel block of a row. Along a reduction blocks are as long as eight of them allow: longer ones stream
# through memory faster, but there must be enough to share among threads.
_BLOCK = 4096
_REDUCED_BLOCKS = 8
_SHORTEST, _LONGEST = 64, 1024
_HEADS = {
    "start_": "start of ",
    "marks_": "unique cells of ",
    "parts_": "partial results of ",
    "join_": "all results of ",
    "pack_": "panels of ",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A nest as it is first written: what it is for, its statements' plans, its loops, whether it is little work."""

    hint: str
    plans: tuple[LoopOrder, ...]
    nodes: tuple[Node, ...]
    small: bool
    work: Expr | None = None


def drafts_of(group: Group, setting: NestContext) -> Iterator[Draft]:
    """The nests of a group; without nodes for a statement that leaves memory as it is."""
    small = setting.alone or is_small(group.plans, setting.tensors)
    tiles = contraction_tiles(group.plans[0], setting) if len(group.plans) == 1 and not small else None
    if tiles is not None:
        for hint, nodes, work in tiles.nests():
            yield Draft(hint, group.plans, nodes, small, work)
        if tiles.always:
            return
        if tiles.is_large:
            yield Draft("nest_", group.plans, tiles.elsewhere(tiles.short_loops()), small)
            return
    for hint, plans, body in _bodies(group, setting, small):
        nodes = body if tiles is None else tiles.elsewhere(_outermost(body))
        yield Draft(hint, plans, _outermost(nodes), small)


def finished(draft: Draft, nodes: Sequence[Node], program: Program, setting: NestContext) -> Nest:
    """The nest with its name, its title and its work."""
    plans = draft.plans
    name = setting.names.fresh(f"{draft.hint}{plans[-1].statement.target.tensor}")
    title = _HEADS.get(draft.hint, "") + "\n".join(_title(plan.statement, program) for plan in plans)
    work = draft.work
    if work is None:
        work = _joining(plans[0]) if draft.hint == "join_" else points_of(plans, setting.tensors)
    return Nest(name, title, tuple(nodes), work)


def _bodies(
    group: Group, setting: NestContext, small: bool
) -> Iterator[tuple[str, tuple[LoopOrder, ...], tuple[Node, ...]]]:
    first = group.plans[0]
    if small and (group.swept or group.tiled):
        for each in (*group.swept, *group.tiled):
            yield from _bodies(each, setting, small)
        return
    if group.tiled:
        yield "nest_", group.plans, chained_nest(group, setting)
        return
    if group.swept:
        yield from swept_nests(group, setting, lambda each: _inside(each, 1, setting))
        return
    if first.fixed is not None:
        yield "nest_", group.plans, StatementLoops(first, setting).in_fixed_order(first.fixed)
        return
    if len(group.plans) == 1 and first.statement.target.tensor in setting.thin:
        body = StatementLoops(first, setting)
        yield "nest_", group.plans, serial(cell_loops(body) if first.plain else body.scattered())
        return
    if len(group.plans) == 1 and not first.plain:
        body = StatementLoops(first, setting)
        yield "start_", group.plans, body.start()
        yield "marks_", group.plans, body.clear_marks()
        yield "nest_", group.plans, body.scattered() if small else _scattered(body, setting)
        return
    if len(group.plans) == 1 and not small and in_parts(first):
        parts, together = partial_results(first, setting)
        yield "parts_", group.plans, parts
        yield "join_", group.plans, together
        return
    if len(group.plans) == 1 and not small and (tiles := in_shared_tiles(first, setting)):
        yield "nest_", group.plans, tiles
        return
    if len(group.plans) == 1 and first.statement.unique:
        yield "marks_", group.plans, StatementLoops(first, setting).clear_marks()
    if len(group.plans) == 1 and not small and not first.outer and first.row is not None and not first.row_of_data:
        yield "nest_", group.plans, _blocks(first, setting)
        return
    # Alone and serial, a statement may have another loop outside than those over its cells.
    depth = 0 if small and len(group.plans) == 1 else group.depth
    nodes = _inside(replace(group, depth=depth), 0, setting)
    if depth and not first.statement.unique:
        nodes = tuple(replace(node, kind="parallel") if isinstance(node, Loop) else node for node in nodes)
    yield "nest_", group.plans, nodes


def _inside(group: Group, level: int, setting: NestContext) -> tuple[Node, ...]:
    # The loops that the statements share from that one on, and those of each.
    nodes = tuple(node for run in _runs(group) for node in _rows(run, group.depth, setting))
    return loops_over(group.plans[0].spans(group.plans[0].outer[level : group.depth]), nodes)


def _runs(group: Group) -> list[list[LoopOrder]]:
    # Phases whose rows lie in the same cells of the other axes, together; every other plan alone.
    runs: list[list[LoopOrder]] = []
    for plan in group.plans:
        last = runs[-1][-1] if runs else None
        if last is not None and plan.extents and _sits_beside(plan, last):
            runs[-1].append(plan)
        else:
            runs.append([plan])
    return runs


def _sits_beside(plan: LoopOrder, other: LoopOrder) -> bool:
    same = plan.statement.target.tensor == other.statement.target.tensor and plan.innermost == other.innermost
    if not same or plan.innermost not in plan.extents or plan.around != other.around:
        return False
    return all(plan.extent(name) == other.extent(name) for name in plan.around)


def _rows(run: Sequence[LoopOrder], depth: int, setting: NestContext) -> tuple[Node, ...]:
    first = run[0]
    if len(run) == 1 or first.innermost is None:
        return cell_loops(StatementLoops(first, setting), depth)
    bodies = [StatementLoops(plan, setting) for plan in run]
    together = rows_of_phases(bodies, StatementLoops(first.whole, setting)) if first.whole is not None else None
    if together is None:
        rows = [cell_loops(body, len(body.plan.around)) for body in bodies]
        nodes = interleaved(rows, first.innermost, setting.names)
    else:
        nodes = tuple(together)
    return loops_over(first.spans(first.around[depth:]), nodes)


def _scattered(body: StatementLoops, setting: NestContext) -> tuple[Node, ...]:
    plan = body.plan
    row = plan.row
    reduced = set(plan.inner) - set(plan.cells)
    if row is None or plan.outer or not reduced or plan.statement.unique:
        return body.scattered()
    if IndexValue(row) not in plan.statement.target.indices:
        return body.scattered()
    # Rows at data positions: every block of columns is one thread's.
    extent = plan.extent(row)
    return _in_blocks(row, extent, _reduced_block(extent), setting, body.scattered)


def _blocks(plan: LoopOrder, setting: NestContext) -> tuple[Node, ...]:
    """A row cut into parallel blocks, where no other loop over cells is outside."""
    body = StatementLoops(plan, setting)
    if plan.statement.unique:
        return cell_loops(body)
    row = plan.inner[-1]
    extent = plan.extent(row)
    length = integer(_BLOCK) if plan.single or plan.window else _reduced_block(extent)
    return _in_blocks(row, extent, length, setting, lambda block: cell_loops(body, 0, block))


def _reduced_block(extent: Expr) -> Expr:
    share = quotient_up(extent, integer(_REDUCED_BLOCKS))
    return apply("min", apply("max", share, integer(_SHORTEST)), integer(_LONGEST))


def _in_blocks(
    row: str, extent: Expr, length: Expr, setting: NestContext, make: Callable[[Block], tuple[Node, ...]]
) -> tuple[Node, ...]:
    names = setting.names
    number = names.fresh("block")
    block = Block.of(row, names)
    nodes = make(block)
    if not nodes:
        return ()
    ends = block.defined(apply("mul", index(number), length), length, extent)
    return (Loop(number, integer(0), quotient_up(extent, length), 1, (*ends, *nodes), "parallel"),)


def _outermost(nodes: Sequence[Node]) -> tuple[Node, ...]:
    # A parallel loop under a condition on sizes is a parallel loop that may be empty.
    if len(nodes) == 1 and isinstance(nodes[0], Branch) and not nodes[0].otherwise and len(nodes[0].body) == 1:
        (loop,) = _outermost(nodes[0].body)
        if isinstance(loop, Loop) and loop.kind == "parallel":
            stop = apply("where", nodes[0].condition, loop.stop, loop.start)
            return (Loop(loop.variable, loop.start, stop, loop.step, loop.body, "parallel"),)
    return tuple(nodes)


def _title(statement: Statement, program: Program) -> str:
    # What the user says about a statement stands above it.
    tensor = program.tensor(statement.target.tensor)
    text = format_statement(replace(statement, label=""), tensor.dtype, [size.name for size in program.sizes])
    return f"{statement.label}\n{text}" if statement.label else text


def _joining(plan: LoopOrder) -> Expr:
    # Every cell is made of some partial results.
    return product_of((integer(16), *plan.tensor.shape))
