"""Programs to kernels: the passes of `tcdsl.lowering.pipeline`, one after the other.

Where a program has loops that run, the passes take its straight parts one by one, and `tcdsl.lowering.linking` makes
one kernel of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.errors import ShapeError
from tcdsl.ir.program import Program, without_rules
from tcdsl.lowering.linking.eager_sums import with_eager_sums
from tcdsl.lowering.linking.known_checks import without_known_checks
from tcdsl.lowering.linking.linker import linked
from tcdsl.lowering.loop_passes.carried_cells import with_cells_in_registers
from tcdsl.lowering.loop_passes.end_checks import with_ends_of_rounds_checked
from tcdsl.lowering.loop_passes.index_widths import size_intervals, with_index_widths
from tcdsl.lowering.loop_passes.inductive_checks import without_inductive_checks
from tcdsl.lowering.loop_passes.interchange import with_rows_inside_rounds
from tcdsl.lowering.loopir.integer_facts import IntegerFacts
from tcdsl.lowering.loopir.loops import Kernel, Step, with_step
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.pipeline import PASSES, QUICK, PassWatch, Work
from tcdsl.lowering.rounds.invariant_sums import with_invariant_sums
from tcdsl.lowering.rounds.invariant_values import with_invariant_values
from tcdsl.lowering.rounds.rounds_as_indices import with_rounds_as_indices
from tcdsl.lowering.rounds.rows_in_place import with_rows_in_place
from tcdsl.lowering.rounds.wrapped_positions import with_wrapped_positions
from tcdsl.pass_names import Enabled, chosen_passes
from tcdsl.polyhedra.limits import TooMuchWork, limited, refused_beyond_limits
from tcdsl.simplification.carried_negations import without_carried_negations
from tcdsl.simplification.contractions import chosen, contracted
from tcdsl.simplification.redundant_tensors import without_copies
from tcdsl.simplification.simplify import without_dead_statements
from tcdsl.simplification.smaller_loops import with_smaller_loops

__all__ = ["lower"]

_ENDS = Step("version", "positions that go step by step are checked for both ends")
_SUMS = Step("reorder", "sums over the rounds before are added up along memory")
_CELLS = Step("stage", "cells that stay while a loop runs are in registers")
_ROWS = Step("reorder", "loops along memory go inside those that go on from row to row")


def lower(
    program: Program,
    *,
    optimize: bool | str = True,
    largest: int | None = None,
    watch: PassWatch | None = None,
    orders: Sequence[int] = (),
    machine: Machine | None = None,
    strided: frozenset[str] = frozenset(),
) -> Kernel:
    """``lower(matmul)``: the memory and the loop nests that compute ``program``.

    Without ``optimize`` every statement has a nest of its own, for comparison; ``"-fusion"`` leaves out one pass. Where
    isl would take too long, the quick passes alone run. Sizes may be up to ``largest``, or else as large as the kernel
    says. ``watch`` sees what each pass does. ``orders`` are the choices among orders of contractions
    (`tcdsl.simplification.contractions`), as a call makes them. The loops suit any ``machine``, and the given one best.
    Inputs that are ``strided`` need not be row-major: where vectors of their rows would be read, as those that the
    kernel has ``by_rows``, it is made in another way.
    """
    enabled, machine = chosen_passes(optimize), machine or Machine()
    if not program.repeats:
        return _straight(program, enabled, machine, largest, watch, orders=orders, strided=strided)
    program = without_rules(program)
    if "contractions" in enabled:
        program = contracted(program, chosen(orders), last=True)
    if {"copies", "dead_statements"} <= enabled:
        program = _with_smaller_loops(with_rows_in_place(program))
        program = _with_smaller_loops(with_invariant_sums(program))
        program = without_carried_negations(program)
        program = with_invariant_values(without_dead_statements(program))
    if "fusion" in enabled:
        program = with_rounds_as_indices(program)
        if not program.repeats:
            return _straight(program, enabled, machine, largest, watch, strided=strided)
    by_rows: set[str] = set()

    def part(program: Program, private: bool, alone: bool) -> Kernel:
        # Any of its tensors may lie where an input does.
        every = frozenset(tensor.name for tensor in (*program.inputs, *program.tensors) if strided)
        made = _straight(program, enabled, machine, None, watch, private, alone=alone, strided=every)
        by_rows.update(made.by_rows)
        return made

    kernel = linked(program, part, join="joining" in enabled, rows="interchange" in enabled)
    kernel = replace(kernel, by_rows=frozenset(tensor.name for tensor in program.inputs if by_rows))
    rounds = tuple((each.rounds.number, each.rounds.most) for each in kernel.repeated)
    nests = [replace(nest, code=without_known_checks(nest.body)) for nest in kernel.nests]
    facts = IntegerFacts(size_intervals(program, largest))
    nests = with_wrapped_positions(without_inductive_checks(nests, kernel.repeated, facts), facts)
    if "end_checks" in enabled:
        nests = with_step(nests, with_ends_of_rounds_checked(nests), _ENDS)
    if "eager_sums" in enabled:
        nests = with_step(nests, with_eager_sums(nests, kernel.buffers, facts), _SUMS)
    if "carried_cells" in enabled:
        nests = with_step(nests, with_cells_in_registers(nests, kernel.buffers, facts), _CELLS)
    if "interchange" in enabled:
        nests = with_step(nests, with_rows_inside_rounds(nests, kernel.buffers), _ROWS)
    nests, limit = with_index_widths(nests, program, largest, rounds)
    return replace(kernel.with_nests(nests), limit=limit)


def _with_smaller_loops(program: Program) -> Program:
    # Stages are lowered one by one: what loops carry and are given is looked at before.
    if not program.repeats:
        return without_dead_statements(without_copies(program, asserted=True))
    return without_dead_statements(with_smaller_loops(program, _with_smaller_loops))


def _straight(
    program: Program,
    enabled: Enabled,
    machine: Machine,
    largest: int | None,
    watch: PassWatch | None,
    private: bool | None = None,
    orders: Sequence[int] = (),
    alone: bool = False,
    strided: frozenset[str] = frozenset(),
) -> Kernel:
    # A part of a larger kernel says whether its inputs are that kernel's own memory.
    if enabled - QUICK:
        try:
            with limited():
                return _lowered(program, enabled, machine, largest, watch, private, orders, alone, strided)
        except TooMuchWork:
            pass
    with refused_beyond_limits(ShapeError, f"what {program.name} computes"):
        return _lowered(program, enabled & QUICK, machine, largest, watch, private, alone=alone, strided=strided)


def _lowered(
    program: Program,
    enabled: Enabled,
    machine: Machine,
    largest: int | None,
    watch: PassWatch | None,
    private: bool | None,
    orders: Sequence[int] = (),
    alone: bool = False,
    strided: frozenset[str] = frozenset(),
) -> Kernel:
    repeated = private is not None
    work = Work(program, enabled, largest, watch, bool(private), chosen(orders), machine, alone, repeated, strided)
    if watch is not None:
        watch.begin(work)
    for each in PASSES:
        # The widths of a part are those of the whole kernel.
        if work.runs(each.name) and (private is None or each.name != "index_widths"):
            each.run(work)
            if watch is not None:
                watch.after(each, work)
    return work.kernel()
