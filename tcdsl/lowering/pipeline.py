"""Every pass from a program to its loop nests, in order, by name.

`PASSES` takes statements to nests; the pass ``loops`` writes each nest, and sends it through `NEST_PASSES`. Passes that
are optional make programs faster and change no result but by rounding. ``tc.config(optimize="-fusion")`` leaves one
out, and ``f.explain("passes", *arguments)`` shows what each changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.expressions import Expr, Let, Read, reads, walk
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Program, Tensor, Unset, without_rules
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.constant_sizes import (
    constant_sizes,
    declared_with,
    with_constants,
    without_sizes,
)
from tcdsl.lowering.equal_groups import Drafted, EqualGroups
from tcdsl.lowering.linking.joined_nests import joined_kinds
from tcdsl.lowering.loop_passes.data_bounds import within_data_ranges
from tcdsl.lowering.loop_passes.end_checks import with_checks_ahead, with_ends_checked
from tcdsl.lowering.loop_passes.forwarding import forwarded, without_unread
from tcdsl.lowering.loop_passes.hoisting import hoisted
from tcdsl.lowering.loop_passes.index_widths import procedure_with_index_widths, with_index_widths
from tcdsl.lowering.loop_passes.interchange import with_rows_inside
from tcdsl.lowering.loop_passes.long_sums import in_blocks
from tcdsl.lowering.loop_passes.row_buffers import with_row_buffers
from tcdsl.lowering.loop_passes.square_tiles import through_tiles
from tcdsl.lowering.loop_passes.sums_together import with_dots_together, with_terms_together, with_windows_inside
from tcdsl.lowering.loop_passes.unit_axes import plain_unit_axes, without_single_steps
from tcdsl.lowering.loopir.contraction import contraction_of, may_hold
from tcdsl.lowering.loopir.loops import Buffer, Kernel, Nest, Node, Procedure, Step, with_step
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.traversal import serial
from tcdsl.lowering.nests.bodies import NestContext
from tcdsl.lowering.program_passes.canonical_statements import (
    distinct_names,
    kept_promises,
    over_cells,
    solved,
    totalled,
    widened,
)
from tcdsl.lowering.program_passes.fusion import fuse
from tcdsl.lowering.program_passes.merging import Group, Touched, merge, thin_targets
from tcdsl.lowering.program_passes.overwriting import overwriting_late, saving_cells
from tcdsl.lowering.program_passes.phases import in_phases, row_of_phases
from tcdsl.lowering.program_passes.prepared_contractions import padded, separated
from tcdsl.lowering.program_passes.schedule import LoopOrder, plan
from tcdsl.lowering.program_passes.shared_memory import Memory, assign_memory
from tcdsl.lowering.program_passes.summing import summed
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.lowering.program_passes.transposing import transposed, with_columns_copied
from tcdsl.lowering.program_passes.unneeded_statements import own_outputs, with_constants_folded
from tcdsl.lowering.scheduling.nearest_misses import ALWAYS_PANELS, NO_SCAN, NO_TILES, SHOWN, nearest_misses
from tcdsl.lowering.scheduling.row_block_nests import without_shared
from tcdsl.lowering.scheduling.row_blocks import in_row_blocks
from tcdsl.lowering.scheduling.schedules import Draft, drafts_of, finished
from tcdsl.lowering.scheduling.stencil_chains import chained
from tcdsl.lowering.scheduling.sweeps import swept
from tcdsl.pass_names import OPTIONAL, Enabled
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.simplification import without_sparse_tensors
from tcdsl.simplification.contractions import Chooser, contracted, first_choice
from tcdsl.simplification.redundant_tensors import without_copies
from tcdsl.simplification.scans import scan_or_why
from tcdsl.simplification.simplify import without_dead_statements

__all__ = [
    "NEST_PASSES",
    "PASSES",
    "QUICK",
    "NestPass",
    "Nodes",
    "Pass",
    "PassWatch",
    "Work",
]

Nodes = Sequence[Node]


@dataclass(slots=True)
class Work:
    """What passes work on: statements first, then their loop orders and memory, at last nests.

    ``private``: nobody sees the inputs' memory when something fails. ``choose`` says which orders of contractions are
    best, ``zeros_around`` which tensors are 0 wherever a statement that reads them has no point. With ``alone`` one
    thread does it all. A part of a program with loops that run may be ``repeated``. Some inputs are ``strided``; of
    those ``by_rows`` that decides about nests. Why statements with a target were not prepared for tiles is
    ``declined``.
    """

    program: Program
    enabled: Enabled
    largest: int | None
    watch: PassWatch | None = None
    private: bool = False
    choose: Chooser = first_choice
    machine: Machine = field(default_factory=Machine)
    alone: bool = False
    repeated: bool = False
    strided: frozenset[str] = frozenset()
    by_rows: frozenset[str] = frozenset()
    zeros_around: Mapping[str, Expr] = field(default_factory=dict)
    declined: dict[str, Declined] = field(default_factory=dict)
    names: FreshNames = field(init=False)
    context: isl.Set = field(init=False)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    plans: list[LoopOrder] = field(default_factory=list)
    memory: Memory = field(init=False)
    touched: Touched = field(init=False)
    groups: list[Group] = field(default_factory=list)
    setting: NestContext = field(init=False)
    nests: list[Nest] = field(default_factory=list)
    procedures: list[Procedure] = field(default_factory=list)
    buffers: tuple[Buffer, ...] = ()
    limit: int = 0

    def __post_init__(self) -> None:
        self.program = without_rules(self.program)  # they say how to differentiate
        self.names = _names(self.program)
        self.context = size_context(self.program)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The memory of the program's outputs."""
        return tuple(self.memory.of[name] for name in self.program.outputs)

    @property
    def kept(self) -> frozenset[str]:
        """The tensors that are needed as a whole behind the last nest."""
        return frozenset((*self.program.outputs, *(name for _, name in self.program.updates)))

    def runs(self, name: str) -> bool:
        """Whether the pass of that name runs."""
        return name in self.enabled or name not in OPTIONAL

    def kernel(self) -> Kernel:
        """What the passes have made."""
        updates, procedures = self.memory.updates, tuple(self.procedures)
        made = Kernel(self.program, self.buffers, tuple(self.nests), self.outputs, updates, self.limit, procedures)
        return replace(made, by_rows=self.by_rows)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: its name, and what it does."""

    name: str
    what: str
    run: Callable[[Work], None]


@dataclass(frozen=True, slots=True)
class NestPass:
    """One pass over the loops of a single nest; what it does is a ``primitive`` of schedules, if it has one."""

    name: str
    what: str
    run: Callable[[Nodes, Draft, NestContext], Nodes]
    primitive: str = ""


class PassWatch(Protocol):
    """Who looks at what each pass has done."""

    def begin(self, work: Work) -> None:
        """No pass has run yet."""

    def after(self, done: Pass, work: Work) -> None:
        """A pass has run."""

    def after_nest(self, done: NestPass, draft: Draft, before: Nodes, nodes: Nodes, work: Work) -> None:
        """A pass has made ``nodes`` of the loops ``before`` of one nest."""


# -- statements

_Run = Callable[[Work], None]


def _alone(rewrite: Callable[[Program], Program]) -> _Run:
    def run(work: Work) -> None:
        work.program = rewrite(work.program)

    return run


def _named(rewrite: Callable[[Program, FreshNames], Program]) -> _Run:
    def run(work: Work) -> None:
        work.program = rewrite(work.program, work.names)

    return run


def _informed(rewrite: Callable[[Program, isl.Set, FreshNames], Program]) -> _Run:
    def run(work: Work) -> None:
        work.program = rewrite(work.program, work.context, work.names)

    return run


def _contractions(work: Work) -> None:
    work.program = contracted(work.program, work.choose, last=True)
    work.names.take(tensor.name for tensor in work.program.tensors)


def _constants(program: Program) -> Program:
    return replace(program, statements=tuple(map(with_constants_folded, program.statements)))


def _copies(program: Program) -> Program:
    return without_dead_statements(without_copies(program, asserted=True))


def _plain_cells(program: Program, names: FreshNames) -> Program:
    program = totalled(program, names)
    return replace(program, statements=tuple(over_cells(each, names) for each in program.statements))


def _products(work: Work) -> None:
    work.program = separated(work.program, work.context, work.names, work.declined)


def _padding(work: Work) -> None:
    work.program, work.zeros_around = padded(work.program, work.context, work.names, work.declined)


# -- loop orders and memory


def _loop_orders(work: Work) -> None:
    # What is told is the fault of the first statement that fails, in the order of the program.
    if work.private and sum(map(can_fail, work.program.statements)) <= 1:
        work.program = overwriting_late(work.program)
    if work.private:
        work.program = saving_cells(work.program, work.names)
    known = constant_sizes(work.program)
    work.tensors = {each.name: declared_with(each, known) for each in (*work.program.inputs, *work.program.tensors)}
    if known:
        statements = tuple(with_constants(each, known) for each in work.program.statements)
        work.program, work.context = replace(work.program, statements=statements), without_sizes(work.context, known)
    work.plans = [plan(statement, work.tensors, work.context) for statement in work.program.statements]


def _phase_rows(work: Work) -> None:
    work.plans = [row_of_phases(each, work.tensors, work.context, work.names) for each in work.plans]


def _going_on(plan: LoopOrder) -> LoopOrder:
    scan = scan_or_why(plan.statement, plan.tensor.shape) if plan.plain and not plan.extents else None
    if isinstance(scan, Declined):
        return replace(plan, declined=(*plan.declined, scan.of(NO_SCAN)))
    if scan is None:
        return plan
    summed = tuple(name for name in plan.statement.domain.variables if name not in plan.cells)
    outer = tuple(name for name in plan.cells if name != scan.variable)
    return replace(plan, outer=outer, inner=summed, scalar=True, window=False, scan=True)


def _scans(work: Work) -> None:
    work.plans = [_going_on(each) for each in work.plans]


_OTHER_CELLS = Declined("its cells are not at one variable for each axis, or are read before", what=NO_TILES)


def _tiled(work: Work, plan: LoopOrder) -> LoopOrder:
    if plan.scan:
        return plan
    if not plan.plain or plan.extents or plan.fixed is not None:
        return replace(plan, declined=(*plan.declined, _OTHER_CELLS))
    found = contraction_of(plan.statement, work.tensors, work.context, work.zeros_around)
    if isinstance(found, Declined):
        nearest = work.declined.get(plan.statement.target.tensor, found)
        return plan if plan.single else replace(plan, declined=(*plan.declined, nearest.of(NO_TILES)))
    found = replace(found, windows=work.machine.masks and work.runs("windows"))
    return plan if found is plan.contraction else replace(plan, contraction=found)


def _panels(work: Work) -> None:
    # Without registers none are tiled: the target makes its own vectors.
    if work.machine.registers:
        work.plans = [_tiled(work, each) for each in work.plans]


def _unpacked(work: Work) -> None:
    work.plans = [_without_panels(work, each) for each in work.plans]


def _without_panels(work: Work, plan: LoopOrder) -> LoopOrder:
    found = plan.contraction
    if found is None or found.guards or found.limits:
        return plan
    if not found.lanes_lie_side_by_side:
        apart = Declined("{} does not lie along {}", (found.right, index(found.lane.variable)), ALWAYS_PANELS)
        return replace(plan, declined=(*plan.declined, apart))
    # The last vector of a row has masks.
    if not work.machine.masks or _some_are_strided(work, (each.tensor for each in reads(found.right))):
        return plan
    return replace(plan, contraction=replace(found, unpacked=True))


def _some_are_strided(work: Work, names: Iterable[str]) -> bool:
    # Whether vectors of rows of these tensors cannot be had. They are inputs, or may share memory with some.
    behind, inputs = set(names), {tensor.name for tensor in work.program.inputs}
    if not work.repeated and not behind <= inputs:
        behind = (behind & inputs) | {name for name, _ in work.program.updates}
    work.by_rows |= behind
    return bool(behind & work.strided)


def _side_by_side(work: Work) -> None:
    work.plans = [_with_products_side_by_side(work, each) for each in work.plans]


def _with_products_side_by_side(work: Work, plan: LoopOrder) -> LoopOrder:
    if plan.contraction is None or (batch := plan.contraction.products_side_by_side) is None:
        return plan
    found = replace(plan.contraction, batch=batch)
    pays = found.pays_in_lanes(work.machine.widths(plan.tensor.dtype)[0])
    touched = (plan.tensor.name, *(each.tensor for factor in (found.left, found.right) for each in reads(factor)))
    unfit = not may_hold(pays) or _some_are_strided(work, touched)
    return plan if unfit else replace(plan, contraction=found)


def _memory(work: Work) -> None:
    made = assign_memory(work.program, work.plans, work.tensors, work.context, work.names, private=work.private)
    work.memory, work.program, plans = made
    work.touched = Touched(work.memory)
    # What has memory and leaves it as it is needs no nest.
    work.plans = [p for p in plans if not (isinstance(p.statement.start, Unset) and p.statement.domain.is_empty())]
    work.groups = [Group((each,), len(each.outer) if each.plain else 0) for each in work.plans]


def _chains(work: Work) -> None:
    work.groups = chained(work.groups, work.memory, work.kept)


def _merging(work: Work) -> None:
    work.groups = merge(work.groups, work.touched, work.context, work.names)


def _phases(work: Work) -> None:
    parts = [in_phases(group, work.tensors, work.context, work.names) for group in work.groups]
    work.groups = [part for group in parts for part in group]


def _row_blocks(work: Work) -> None:
    if work.alone:
        return
    work.groups = in_row_blocks(work.groups, work.memory, work.touched, work.tensors, work.context, work.kept)
    work.memory = replace(work.memory, buffers=tuple(without_shared(work.groups, work.memory.buffers)))


def _sweeps(work: Work) -> None:
    thin = thin_targets(work.plans, work.memory)
    work.groups = swept(work.groups, work.touched, work.context, thin)


# -- loops


def _loops(work: Work) -> None:
    memory = work.memory
    types = {buffer.name: buffer.dtype for buffer in memory.buffers}
    thin = thin_targets(work.plans, memory) if "merging" in work.enabled else frozenset()
    work.setting = setting = NestContext(
        work.tensors,
        memory.of,
        types,
        memory.in_place,
        memory.marks,
        work.context,
        work.names,
        thin,
        "long_sums" in work.enabled,
        work.machine,
        work.alone,
        work.repeated,
    )
    equal = EqualGroups(setting, work.program)
    make = partial(_drafted, work)
    for group in work.groups:
        # Who watches is shown what passes do with each.
        watched = work.watch is not None
        made = equal.made(group, make) if watched else equal.nests(group, make)
        for draft, nodes, title, points in made:
            if nodes:
                work.nests.append(finished(draft, nodes, title, points, setting.names))
    work.buffers = (*memory.buffers, *setting.extra)


def _drafted(work: Work, group: Group) -> Iterator[Drafted]:
    declined, known = work.setting.declined, set[Declined]()
    declined.clear()
    for draft in drafts_of(group, work.setting):
        nodes: Nodes = draft.nodes
        steps = list(draft.steps)
        for each in NEST_PASSES:
            if work.runs(each.name):
                before, nodes = nodes, each.run(nodes, draft, work.setting)
                if each.primitive and nodes is not before and tuple(nodes) != tuple(before):
                    steps.append(Step(each.primitive, each.what))
                if work.watch is not None:
                    work.watch.after_nest(each, draft, before, nodes, work)
        draft = replace(draft, steps=tuple(steps))
        if work.watch is not None and draft.hint in SHOWN:
            found = nearest_misses(draft.plans, nodes, declined, draft.serial)
            draft = replace(draft, declined=tuple(each for each in found if each not in known))
            declined.clear()
            known.update(found)
        yield draft, tuple(nodes)


def _joining(work: Work) -> None:
    work.nests = joined_kinds(work.nests)


def _unread_memory(work: Work) -> None:
    kept = {*work.outputs, *(source for _, source in work.memory.updates)}
    nests, work.buffers = without_unread(work.nests, work.buffers, kept)
    work.nests = list(nests)


def _row_buffers(work: Work) -> None:
    needed = frozenset((*work.outputs, *(source for _, source in work.memory.updates)))
    before = work.nests
    work.nests, buffers = with_row_buffers(before, work.buffers, needed, work.names)
    work.nests = with_step(before, work.nests, Step("stage", "temporaries of a few iterations, in memory of their own"))
    work.buffers = tuple(buffers)


def _index_widths(work: Work) -> None:
    nests, work.limit = with_index_widths(work.nests, work.program, work.largest)
    work.nests = list(nests)
    work.procedures = [procedure_with_index_widths(each, work.program) for each in work.procedures]


PASSES: tuple[Pass, ...] = (
    Pass("contractions", "sums of products take a few factors at a time", _contractions),
    Pass("distinct_names", "index variables get names that no tensor and no size has", _named(distinct_names)),
    Pass("kept_promises", "cells are not watched that are unique whatever the data are", _alone(kept_promises)),
    Pass(
        "sparse_tensors",
        "tensors that are mostly zeros are read where they were written",
        _alone(without_sparse_tensors),
    ),
    Pass("equal_sizes", "sizes that must be equal get one name", _alone(with_equal_sizes)),
    Pass("own_outputs", "every output becomes a tensor of its own", _named(own_outputs)),
    Pass("unit_axes", "axes of one cell are written at 0", _named(plain_unit_axes)),
    Pass("constants", "parts of values that are constant are computed", _alone(_constants)),
    Pass("dead_statements", "statements that nothing needs go", _alone(without_dead_statements)),
    Pass("copies", "tensors that hold the same as others go", _alone(_copies)),
    Pass("summing", "statements that add to the same cells become one that stores their sum", _informed(summed)),
    Pass("fusion", "values that are read once, or are little work, are computed where they are read", _informed(fuse)),
    Pass("gathers", "scatters with affine targets are solved for their cells", _named(solved)),
    Pass("wide_cells", "sums in half precision are kept in single precision", _named(widened)),
    Pass("plain_cells", "targets that single variables determine are written cell by cell", _named(_plain_cells)),
    Pass("transposing", "small factors are copied so that their rows lie along the target's", _named(transposed)),
    Pass(
        "columns",
        "what all rows read or compute alike is copied first",
        _named(with_columns_copied),
    ),
    Pass(
        "products",
        "sums of products become a statement for each product, and for each factor that takes work",
        _products,
    ),
    Pass("padding", "factors that have no terms beyond their ends are copied with zeros around", _padding),
    Pass("loop_orders", "each statement gets the order of its loops", _loop_orders),
    Pass("phase_rows", "rows whose cells go in steps become the innermost loop", _phase_rows),
    Pass("scans", "cells that have the terms of the one before go on from there", _scans),
    Pass("panels", "sums of products are made in tiles that stay in registers", _panels),
    Pass("unpacked", "factors of few rows are read where they lie", _unpacked),
    Pass("side_by_side", "products that lie side by side are made several at once", _side_by_side),
    Pass("memory", "tensors get memory, versions share it where nothing can tell", _memory),
    Pass("chains", "stencils of stencils are made a tile at a time", _chains),
    Pass("merging", "statements share outer loops", _merging),
    Pass("phases", "statements whose targets go in steps are done one phase at a time", _phases),
    Pass("row_blocks", "sums of products go through blocks of rows together with what shares them", _row_blocks),
    Pass("sweeps", "reductions of rows go through them together with what else does", _sweeps),
    Pass("loops", "loops with exact bounds, nest by nest, through the passes of nests", _loops),
    Pass("joining", "consecutive nests without parallel loops become one", _joining),
    Pass("unread_memory", "memory that nothing reads goes", _unread_memory),
    Pass("row_buffers", "temporaries of single iterations are memory for a few of them", _row_buffers),
    Pass("index_widths", "indices get as many bits as they need", _index_widths),
)


def _over(rewrite: Callable[[Nodes], Nodes]) -> Callable[[Nodes, Draft, NestContext], Nodes]:
    return lambda nodes, draft, setting: rewrite(nodes)


def _forwarding(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    return forwarded(nodes, setting.types, setting.names)


def _hoisting(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    return hoisted(nodes, setting.names)


def _interchange(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    # Tiles of contractions have the order that they need.
    return nodes if draft.work is not None else with_rows_inside(nodes, setting.names)


def _data_bounds(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    return within_data_ranges(nodes, setting.names)


def _checks_ahead(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    return nodes if draft.small else with_checks_ahead(nodes, setting.names)


def _one_thread(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    return serial(nodes) if draft.small else nodes


def _tiles(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    # Copies into panels go in squares of registers.
    found = draft.plans[0].contraction
    copied = draft.work is not None and found is not None and isinstance(found.right, Read)
    return nodes if draft.small or copied else through_tiles(nodes, setting.names)


def _long_sums(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    # Tiles of contractions have blocks of their own.
    small = draft.small and not setting.alone
    return nodes if small or draft.work is not None else in_blocks(nodes, setting.names)


def _dots(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    small = draft.small and not setting.alone
    return nodes if small or draft.work is not None else with_dots_together(nodes, setting.names)


def _terms(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    # Partial rows, what rounds read again, and what other statements have just read are near. Of other rows memory
    # takes as long.
    near = setting.repeated or draft.hint == "parts_" or len(draft.plans) > 1
    if not near or draft.work is not None:
        return nodes
    return with_terms_together(nodes, _types(setting), setting.names, setting.declined)


def _windows(nodes: Nodes, draft: Draft, setting: NestContext) -> Nodes:
    if draft.work is not None:
        return nodes
    return with_windows_inside(nodes, _types(setting), setting.names, setting.declined, masks=setting.machine.masks)


def _types(setting: NestContext) -> dict[str, str]:
    return {**setting.types, **{each.name: each.dtype for each in setting.extra}}


NEST_PASSES: tuple[NestPass, ...] = (
    NestPass("single_steps", "loops of one step become their body", _over(without_single_steps)),
    NestPass("forwarding", "what was just stored is used from a scalar", _forwarding),
    NestPass("interchange", "loops along memory go inside those that go on from row to row", _interchange, "reorder"),
    NestPass("tiles", "what is read or stored across rows goes through square tiles", _tiles, "stage"),
    NestPass("hoisting", "what does not change in a loop moves in front of it", _hoisting),
    NestPass("data_bounds", "loops run between ends that data give", _data_bounds, "bound"),
    NestPass(
        "end_checks", "positions that go step by step are checked for both ends", _over(with_ends_checked), "version"
    ),
    NestPass("checks_ahead", "sums where sorted data say go on in parts, behind one check", _checks_ahead, "version"),
    NestPass("one_thread", "little work is done by one thread", _one_thread, "serial"),
    NestPass("long_sums", "long sums are added up a block at a time", _long_sums, "split"),
    NestPass("dots", "sums in scalars are made several at once where they read the same factor", _dots, "tile"),
    NestPass("windows", "sums of windows into rows take all terms of a cell at once", _windows, "reorder"),
    NestPass("terms", "sums into rows take eight terms at a time", _terms, "unroll"),
)

QUICK: Enabled = OPTIONAL & {each.name for each in NEST_PASSES} | {"constants", "dead_statements"}
"""The passes that ask isl nothing, for programs of which it would know too much."""


def _names(program: Program) -> FreshNames:
    names = names_of(program, short=True)
    for statement in program.statements:
        for expr in (statement.value, statement.condition):
            if expr is not None:
                names.take(node.name for node in walk(expr) if isinstance(node, Let))
    return names
