"""The rules by which groups of statements become loops, and what each has decided.

`RULES` is a table: the first rule that fits a group makes its nests. What a rule has decided, together with the orders
of the statements' loops and the passes that have changed them since, is the schedule of a nest: ``f.explain("schedule",
*arguments)`` shows it, a line for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer, product_of
from tcdsl.ir.expressions import Expr, IndexValue
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Program, Statement
from tcdsl.ir.text.declined import Declined
from tcdsl.ir.text.printer import format_expr, format_statement
from tcdsl.lowering.loopir.contraction import Side, SumOfProducts
from tcdsl.lowering.loopir.loops import Branch, EqualNodes, Loop, Nest, Node, Step, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import serial
from tcdsl.lowering.nests.batch_tiles import batch_tiles
from tcdsl.lowering.nests.blocks import Block
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.nests.contraction_loops import ContractionLoops
from tcdsl.lowering.nests.contraction_tiles import contraction_tiles
from tcdsl.lowering.nests.innermost_loops import cell_loops, rows_of_phases
from tcdsl.lowering.nests.interleaving import interleaved
from tcdsl.lowering.nests.parallel_reductions import apart_from_parts, partial_results
from tcdsl.lowering.nests.shared_tiles import in_shared_tiles
from tcdsl.lowering.program_passes.effort import points_of, too_little_work
from tcdsl.lowering.program_passes.merging import Group, SharedRows
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.scheduling.nearest_misses import NO_THREADS, NO_TILES
from tcdsl.lowering.scheduling.row_block_nests import RowBlockNests
from tcdsl.lowering.scheduling.stencil_chains import chained_nest
from tcdsl.lowering.scheduling.sweeps import swept_nests

__all__ = ["PLAIN_RULES", "RULES", "Draft", "ScheduleRule", "drafts_of", "finished", "titled"]

# Cells per parallel block of a row. Along a reduction blocks are as long as eight of them allow: longer ones stream
# through memory faster, but there must be enough to share among threads.
_BLOCK = 4096
_REDUCED_BLOCKS = 8
_SHORTEST, _LONGEST = 64, 1024
_MOST_NESTS = 2
_HEADS = {
    "start_": "start of ",
    "marks_": "unique cells of ",
    "parts_": "partial results of ",
    "join_": "all results of ",
    "pack_": "panels of ",
    "rows_": "blocks of rows of\n",
    "batch_pack_": "panels, some products at once, of ",
    "batch_": "some products at once of ",
}
_ALONE = Declined("rows in a loop in a loop are too few for threads")
_OTHERWISE_ROWS = (Step("else", "where blocks of rows do not pay"),)
_OTHERWISE = Step("else", "where tiles do not pay")
_UNSOUND = Step("else", "where a factor is not finite beside a zero that stands for no term")

Made = tuple[str, tuple[LoopOrder, ...], tuple[Node, ...]]
"""A nest: what it is for, the plans of its statements, its loops."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A nest as it is first written: what it is for, its statements' plans, its loops, and why it is too ``few`` for
    threads, if it is.

    ``steps`` are what the rule has decided that has made it, and what passes have changed since. What rules and passes
    could not do has ``declined``; threads do not share loops of the rule because they are ``serial``, if they are.
    """

    hint: str
    plans: tuple[LoopOrder, ...]
    nodes: tuple[Node, ...]
    few: Declined | None
    work: Expr | None = None
    steps: tuple[Step, ...] = ()
    serial: str = ""
    declined: tuple[Declined, ...] = ()

    @property
    def small(self) -> bool:
        """Whether it is little work."""
        return self.few is not None


@dataclass(frozen=True, slots=True)
class ScheduleRule:
    """``ScheduleRule("split", "the row in blocks", in_blocks)``: a step, and the nests that the rule makes of a group.

    ``nests`` is None for a group that the rule does not fit, or says why. ``small`` says that it is little work, and
    ``serial`` why no loop may be one for threads. A rule that has others make the same loops, for sizes of which it is
    of no use, gives whole drafts.
    """

    primitive: str
    what: str
    nests: Callable[[Group, NestContext, bool], Iterator[Made | Draft] | Declined | None]
    serial: str = ""

    def steps(self, plans: Sequence[LoopOrder]) -> tuple[Step, ...]:
        """How the rule stands in the schedule of ``plans``; not at all if it leaves one statement as it is."""
        return (Step(self.primitive, self.what),) if self.primitive != "fuse" or len(plans) > 1 else ()


def drafts_of(group: Group, setting: NestContext, *, tiled: bool = True) -> Iterator[Draft]:
    """The nests of a group; without nodes for a statement that leaves memory as it is. Products are ``tiled``."""
    few = _ALONE if setting.alone else too_little_work(group.plans, setting.tensors)
    if few is not None:
        products = (plan.statement.target.tensor for plan in group.plans if plan.contraction is not None)
        setting.declined.extend((*(few.of(f"{NO_TILES} for {name}") for name in products), few.of(NO_THREADS)))
    return _by_rules(group, setting, few, RULES if tiled else PLAIN_RULES)


def _by_rules(
    group: Group, setting: NestContext, few: Declined | None, rules: Sequence[ScheduleRule]
) -> Iterator[Draft]:
    small = few is not None
    if small and (group.swept or group.tiled):
        for each in (*group.swept, *group.tiled):
            yield from _by_rules(each, setting, few, rules)
        return
    for rule in rules:
        nests = rule.nests(group, setting, small)
        if isinstance(nests, Declined):
            setting.declined.append(nests)
        elif nests is not None:
            for made in nests:
                if isinstance(made, Draft):
                    yield made
                    continue
                hint, plans, nodes = made
                yield Draft(hint, plans, _outermost(nodes), few, None, rule.steps(plans), rule.serial)
            return


def titled(draft: Draft, program: Program) -> str:
    """The title of a nest: what its statements compute."""
    return _HEADS.get(draft.hint, "") + "\n".join(_title(plan.statement, program) for plan in draft.plans)


def work_of(draft: Draft, setting: NestContext) -> Expr:
    """The work of a nest, which has no names of tensors in it."""
    if draft.work is not None:
        return draft.work
    return _joining(draft.plans[0]) if draft.hint == "join_" else points_of(draft.plans, setting.tensors)


def finished(draft: Draft, code: tuple[Node, ...] | EqualNodes, title: str, work: Expr, names: FreshNames) -> Nest:
    """The nest with its name."""
    plans = draft.plans
    name = names.fresh(f"{draft.hint}{plans[-1].statement.target.tensor}")
    spans = tuple(dict.fromkeys(plan.statement.span for plan in plans if plan.statement.span is not None))
    return Nest(name, title, code, work, None, _schedule(draft), draft.declined, spans)


def _schedule(draft: Draft) -> tuple[Step, ...]:
    # What is said of a draft has no names in it, which those of equal groups do not share.
    first = draft.plans[0]
    tiles = first.contraction if draft.work is not None else None
    match draft.hint, tiles:
        case ("nest_" | "few_") as hint, SumOfProducts():
            of = tiles.one_by_one if hint == "few_" else replace(tiles.one_by_one, unpacked=False)
            orders = [Step("tile", f"{of}: sums stay in registers")]
        case "batch_", SumOfProducts(batch=Side(variable=name)):
            orders = [Step("tile", f"{tiles.one_by_one}: sums of some {name} stay in registers, a lane for each")]
        case "pack_" | "batch_pack_", SumOfProducts():
            orders = [Step("stage", f"{format_expr(tiles.right)} in panels of {tiles.lane.variable}")]
        case "rows_", _:
            tiled = (
                f"{plan.statement.target.tensor}: {plan.contraction.one_by_one}"
                for plan in draft.plans
                if plan.contraction
            )
            orders = [
                *(Step("tile", each) for each in tiled),
                *_steps_of(plan for plan in draft.plans if not plan.contraction),
            ]
        case "nest_" | "parts_", _:
            orders = list(_steps_of(draft.plans))
        case "join_", _:
            orders = []
        case _:
            return ()
    return tuple(dict.fromkeys((*orders, *draft.steps)))


def _steps_of(plans: Iterable[LoopOrder]) -> Iterator[Step]:
    """What the orders of the statements' loops say: for each the loops from the outermost one, and how it sums."""
    for plan in plans:
        of = f"{plan.statement.target.tensor}: "
        loops = (*plan.outer, *plan.inner)
        if plan.scan:
            (along,) = set(plan.cells) - set(plan.outer)
            yield Step("carry", f"{of}each cell goes on from the one before along {along}")
            continue
        if plan.fixed is not None:
            loops = plan.fixed.variables
        yield Step("order", of + (" ".join(loops) or "no loop"))
        if plan.extents:
            yield Step("phases", f"{of}{' '.join(plan.extents)} in steps")
        if plan.window:
            yield Step("unroll", f"{of}the terms of a cell along {plan.row}, over {' '.join(plan.inner[:-1])}")
        elif plan.scalar and not plan.full and set(plan.inner) - set(plan.cells):
            yield Step("sum", f"{of}in a scalar, over {' '.join(plan.inner)}")
        elif plan.row is not None and not plan.single:
            yield Step("sum", f"{of}in memory, along the row of {plan.row}")


# -- rules


def _row_blocks(group: Group, setting: NestContext, small: bool) -> Iterator[Made | Draft] | None:
    return _in_row_blocks(group, group.rows, setting) if group.rows is not None else None


def _in_row_blocks(group: Group, rows: SharedRows, setting: NestContext) -> Iterator[Made | Draft]:
    nests = RowBlockNests(group, setting, lambda each: _inside(each, each.depth, setting))
    for plan, hint, nodes, work in nests.panels():
        yield Draft(hint, (plan,), nodes, None, work)
    yield "rows_", group.plans, nests.nest()
    for each in () if nests.always else rows.groups:
        before = len(setting.extra)
        for draft in drafts_of(each, setting, tiled=nests.tiles_elsewhere(each)):
            yield replace(draft, nodes=_outermost(nests.elsewhere(draft.nodes)), steps=(*_OTHERWISE_ROWS, *draft.steps))
        setting.extra[before:] = [nests.where_elsewhere(buffer) for buffer in setting.extra[before:]]


def _products(group: Group, setting: NestContext, small: bool) -> Iterator[Made | Draft] | None:
    if small or len(group.plans) > 1 or group.plans[0].contraction is None:
        return None
    return _in_registers(group, list(_tiled_ways(group.plans[0], setting)), setting)


def _in_registers(group: Group, ways: Sequence[ContractionLoops], setting: NestContext) -> Iterator[Draft]:
    for tiles in ways:
        for hint, nodes, work in tiles.nests():
            yield Draft(hint, group.plans, nodes, None, work)
    last = ways[-1]
    if last.guarded:
        nodes = last.where_unsound(last.short_loops())
        yield Draft("nest_", group.plans, nodes, None, None, (_UNSOUND,))
    if last.is_large:
        return
    for draft in _by_rules(group, setting, None, PLAIN_RULES):
        yield replace(draft, nodes=_elsewhere(ways, draft.nodes), steps=(_OTHERWISE, *draft.steps))


def _tiled_ways(plan: LoopOrder, setting: NestContext) -> Iterator[ContractionLoops]:
    """The ways to make a contraction in tiles, each for the sizes for which none before it is."""
    found = plan.contraction
    batch = batch_tiles(plan, setting)
    if batch is not None and found is not None:
        yield batch
        if batch.is_large:
            return
        dense = apply("and_", found.dense, apply("not_", batch.pays))
        plan = replace(plan, contraction=replace(found, dense=dense))
    tiles = contraction_tiles(plan, setting)
    if tiles is not None:
        yield tiles


def _elsewhere(ways: Sequence[ContractionLoops], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    # What runs where none of the ways does.
    for each in reversed(ways):
        nodes = each.elsewhere(_outermost(nodes))
    return _outermost(nodes)


def _stencils(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    return iter([("nest_", group.plans, chained_nest(group, setting))]) if group.tiled else None


def _rows_together(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    return swept_nests(group, setting, lambda each: _inside(each, 1, setting)) if group.swept else None


def _read_first(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    first = group.plans[0]
    if first.fixed is None:
        return None
    return iter([("nest_", group.plans, StatementLoops(first, setting).in_fixed_order(first.fixed))])


def _few_cells(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    first = group.plans[0]
    if len(group.plans) > 1 or first.statement.target.tensor not in setting.thin:
        return None
    body = StatementLoops(first, setting)
    return iter([("nest_", group.plans, serial(cell_loops(body) if first.plain else body.scattered()))])


def _all_points(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    first = group.plans[0]
    return None if len(group.plans) > 1 or first.plain else _points(group, StatementLoops(first, setting), small)


def _points(group: Group, body: StatementLoops, small: bool) -> Iterator[Made]:
    yield "start_", group.plans, body.start()
    yield "marks_", group.plans, body.clear_marks()
    yield "nest_", group.plans, body.scattered() if small else _scattered(body)


def _points_in_place(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    # Where memory holds the other cells, loops over all of them would test, or store again, what no point writes.
    first = group.plans[0]
    if len(group.plans) > 1 or not first.single or first.full or not first.outer or first.extents or first.row_of_data:
        return None
    body = StatementLoops(first, setting)
    if not body.started or first.statement.unique:
        return None
    nodes = body.scattered()
    # Threads share the loop that is a nest's only one; the borders of both axes are better rows of one loop.
    return iter(("nest_", group.plans, (node,)) for node in nodes) if len(nodes) <= _MOST_NESTS else None


def _parts(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | Declined | None:
    if small or len(group.plans) > 1:
        return None
    apart = apart_from_parts(group.plans[0])
    if apart is not None:
        return apart.of(NO_THREADS)
    parts, together = partial_results(group.plans[0], setting)
    return iter([("parts_", group.plans, parts), ("join_", group.plans, together)])


def _rows_in_tiles(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    tiles = () if small or len(group.plans) > 1 else in_shared_tiles(group.plans[0], setting)
    return iter([("nest_", group.plans, tiles)]) if tiles else None


def _row_in_blocks(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    first = group.plans[0]
    if small or len(group.plans) > 1 or first.outer or first.row is None or first.row_of_data:
        return None
    return _marked(group, setting, lambda: _blocks(first, setting))


def _cells(group: Group, setting: NestContext, small: bool) -> Iterator[Made] | None:
    # Alone and serial, a statement may have another loop outside than those over its cells.
    depth = 0 if small and len(group.plans) == 1 else group.depth

    def loops() -> tuple[Node, ...]:
        nodes = _inside(replace(group, depth=depth), 0, setting)
        if not depth or group.plans[0].statement.unique:
            return nodes
        return tuple(replace(node, kind="parallel") if isinstance(node, Loop) else node for node in nodes)

    return _marked(group, setting, loops)


def _marked(group: Group, setting: NestContext, loops: Callable[[], tuple[Node, ...]]) -> Iterator[Made]:
    first = group.plans[0]
    if len(group.plans) == 1 and first.statement.unique:
        yield "marks_", group.plans, StatementLoops(first, setting).clear_marks()
    yield "nest_", group.plans, loops()


PLAIN_RULES: tuple[ScheduleRule, ...] = (
    ScheduleRule("tile", "stencils of stencils, what is in between lies in a tile", _stencils),
    ScheduleRule("sweep", "reductions go through a few rows together with what else does", _rows_together),
    ScheduleRule(
        "order", "every cell is read before it is written", _read_first, "each cell must be read before it is written"
    ),
    ScheduleRule(
        "serial",
        "few cells of memory that another statement writes",
        _few_cells,
        "few cells are too little for threads",
    ),
    ScheduleRule(
        "scatter", "all points, each to the cell that it finds", _all_points, "two points may find the same cell"
    ),
    ScheduleRule(
        "points",
        "only the cells that are written, whose memory holds the others",
        _points_in_place,
        "two points may find the same cell",
    ),
    ScheduleRule("partial", "blocks have results of their own, which are joined in order", _parts),
    ScheduleRule("tile", "what is read across rows serves many of the target's rows", _rows_in_tiles),
    ScheduleRule("split", "the row in blocks", _row_in_blocks),
    ScheduleRule("fuse", "the statements share outer loops", _cells, "no loop over cells is outside"),
)
"""Every way to make the loops of a group without tiles of products, the first that fits first."""

RULES: tuple[ScheduleRule, ...] = (
    ScheduleRule("fuse", "a block of rows goes through all statements", _row_blocks),
    ScheduleRule("tile", "sums stay in registers", _products),
    *PLAIN_RULES,
)
"""Every way to make the loops of a group, the first that fits first."""


# -- loops


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


def _scattered(body: StatementLoops) -> tuple[Node, ...]:
    plan = body.plan
    row = plan.row
    reduced = set(plan.inner) - set(plan.cells)
    if row is None or plan.outer or not reduced or plan.statement.unique:
        return body.scattered()
    if IndexValue(row) not in plan.statement.target.indices:
        return body.scattered()
    # Rows at data positions: every block of columns is one thread's.
    extent = plan.extent(row)
    return _in_blocks(row, extent, _reduced_block(extent), body.setting, body.scattered)


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
