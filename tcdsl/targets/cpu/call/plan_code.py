"""The sizes of a kernel's calls as one compiled Python function: from the sizes to the words that a `Plan` holds.

A new set of sizes costs microseconds this way; evaluated one by one, every expression would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.lowering.loopir.kinds import nodes_alike
from tcdsl.lowering.loopir.loops import Branch, Buffer, Kernel, Nest, ProcedureCall, Rounds
from tcdsl.lowering.loopir.machine import ROUND_WORK, SERIAL_WORK
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.lowering.program_passes.effort import weight
from tcdsl.targets.cpu.layout.call_arrays import CallArray, CallArrays
from tcdsl.targets.cpu.layout.call_block import (
    ALIGNED,
    BEGIN,
    BEGIN_AT,
    BEGIN_COUNTED,
    BLOCKS_PER_THREAD,
    CONDITION,
    CONTIGUOUS,
    END,
    FIRST_ROW,
    HOLD_NUMBER,
    NUMBER,
    RANGED,
    ROW_WORDS,
    SWAP,
    WRITEABLE,
    WRITTEN,
    ControlRow,
)
from tcdsl.targets.cpu.layout.frame import INTERRUPT_WORD, FrameLayout
from tcdsl.targets.cpu.layout.kernel_code import parallel_loop

__all__ = ["PlanCode", "frame_words", "table_rows"]

_ROUND = 4  # What a round, and each of its nests, takes beside its work, in points.
_AWAKE = SERIAL_WORK // ROUND_WORK  # As much as work counts where threads need not be woken for it.


def frame_words(kernel: Kernel, layout: FrameLayout, arrays: CallArrays) -> int:
    """How many words the frames of a kernel have: those of the layout, numbers, and the stretches of the arrays."""
    return layout.words + len(kernel.program.inputs) + 2 * len(arrays.bindings)


class PlanCode:
    """``code.written.bound(of_this_process(...))(*sizes, threads, serial_work)`` gives, for a kernel's sizes in order::

        shapes of the arrays made, bytes of temporaries, words of frame and block, whether nests are split

    The inputs at the positions ``numbers`` are no arrays but numbers, in the words of the frame behind the layout's.
    Nests whose work is less than ``serial_work`` stay on one thread. ``table`` is where the table begins in the block.
    """

    def __init__(self, kernel: Kernel, layout: FrameLayout, arrays: CallArrays, numbers: Sequence[int] = ()) -> None:
        self._layout = layout
        self._nests = kernel.nests
        self._repeated = {number for each in kernel.repeated for number in range(each.first, each.end)}
        self._numbers = tuple(numbers)
        self._procedures = {procedure.name: procedure.body for procedure in kernel.procedures}
        self.table = FIRST_ROW + sum(ROW_WORDS + len(each.buffer.shape) for each in arrays.bindings)
        self._extents: dict[Expr, str] = {}
        self._code = code = SizeCode([size.name for size in kernel.program.sizes])
        for name, value in kernel.size_values:
            code.define(name, code.value(value))
        self._shapes = {buffer.name: [self._extent(each) for each in buffer.shape] for buffer in kernel.buffers}
        self._awake = self._threads_awake()
        rows = [item for binding in arrays.given for item in self._row(binding, given=True)]
        rows += [item for binding in arrays.made for item in self._row(binding, given=False)]
        table = [
            self._control(row, kernel) if isinstance(row, ControlRow) else self._launch(row)
            for row in table_rows(kernel, layout)
        ]
        split = [f"{row[3]} > 1" for row in table if row[0] and row[3] != "1"]
        ranged = [number for number, nest in enumerate(kernel.nests) if nest.bounds]
        split += [f"(threads > 1 and {self._spread(number)} >= serial_work)" for number in ranged]
        parallel = code.line(" or ".join(split) or "False")
        header: list[object] = [len(arrays.given), len(arrays.made), self.table]
        # Where there are rounds, the driver enters the arrays only.
        header.append("0" if kernel.repeated else f"0 if {parallel} else {len(kernel.nests)}")
        header += ["array_header", "array_type", "tuple_header"]
        header += [layout.words + len(kernel.program.inputs)]
        block = [*header, *rows, *(item for row in table for item in row)]
        shapes = [f"({_items(self._shapes[binding.buffer.name])})" for binding in arrays.made]
        bytes_ = [self._bytes(buffer) for buffer in kernel.buffers if buffer.kind == "temporary"]
        parts = (shapes, bytes_, [*self._frame(kernel), *block])
        result = f"{''.join(f'({_items(part)}), ' for part in parts)}{parallel}"
        self.written = code.written(result, "threads", "serial_work")

    def _extent(self, extent: Expr) -> str:
        if extent not in self._extents:
            text = self._code.value(extent)
            known = isinstance(extent, Constant) and extent.value >= 0
            self._extents[extent] = text if known else self._code.line(f"{text} if {text} > 0 else 0")
        return self._extents[extent]

    def _bytes(self, buffer: Buffer) -> str:
        return " * ".join(map(str, (numpy_dtype(buffer.dtype).itemsize, *self._shapes[buffer.name])))

    def _frame(self, kernel: Kernel) -> list[object]:
        # The words of the frame as they are before the call.
        layout = self._layout
        words: list[object] = [0] * layout.words
        words[INTERRUPT_WORD] = "interrupted"
        for size in kernel.program.sizes:
            words[layout.sizes[size.name]] = self._code.size(size.name)
        for name, _ in kernel.size_values:
            words[layout.sizes[name]] = self._code.size(name)
        products: dict[tuple[str, ...], str] = {(): "1"}
        for buffer in kernel.buffers:
            slot, shape = layout.buffers[buffer.name], self._shapes[buffer.name]
            for axis, extent in enumerate(shape):
                words[slot + 1 + axis] = self._product(tuple(shape[axis + 1 :]), products)
                words[slot + 1 + len(shape) + axis] = extent
        return words

    def _product(self, extents: tuple[str, ...], products: dict[tuple[str, ...], str]) -> str:
        # The stride of a row-major array in front of these axes.
        if extents not in products:
            inner = self._product(extents[1:], products)
            # Where it is no int64, the array's own strides take its place: memory is not that large.
            products[extents] = self._code.line(f"min(({extents[0]} or 1) * {inner}, {2**62})")
        return products[extents]

    def _row(self, binding: CallArray, given: bool) -> list[object]:
        buffer = binding.buffer
        slot = self._layout.buffers[buffer.name]
        if given and binding.position in self._numbers:
            return [slot, self._layout.words + self._numbers.index(binding.position), 0, 0, 8, NUMBER]
        dtype, shape = numpy_dtype(buffer.dtype), self._shapes[buffer.name]
        flags = ALIGNED | (CONTIGUOUS if binding.contiguous else 0)
        flags |= WRITEABLE | WRITTEN if binding.written else 0
        return [slot, binding.position, len(shape), f"type_{dtype.name}", dtype.itemsize, flags, *shape]

    def _control(self, row: ControlRow, kernel: Kernel) -> list[object]:
        second: object = row.second
        if row.kind == END:
            works = [self._work(kernel.nests[number]) for number in row.nests]
            second = f"min({' + '.join((str(_ROUND * (1 + len(works))), *works))}, {2**62})"
        elif not isinstance(row.second, int):
            second = f"min({self._code.value(row.second)}, {2**62})"
        return [0, row.kind, row.first, second, row.row]

    def _work(self, nest: Nest) -> str:
        called = [body for name, body in self._procedures.items() if name in _called(nest)]
        return f"{self._code.value(nest.work)} * {weight(expressions((*nodes_alike(nest), *chain(*called))))}"

    def _threads_awake(self) -> str:
        # The factor by which the work of nests beside rounds counts: threads are awake if they work in rounds.
        nests = [
            self._nests[number]
            for number in self._repeated
            if parallel_loop(nodes_alike(self._nests[number])) is not None
        ]
        works = [f"{self._work(nest)} * {_AWAKE} >= serial_work" for nest in nests]
        return self._code.line(f"{_AWAKE} if {' or '.join(works)} else 1") if works else "1"

    def _spread(self, number: int) -> str:
        # The work that decides whether a nest is for threads, which in rounds are awake.
        return f"{self._work(self._nests[number])} * {_AWAKE if number in self._repeated else self._awake}"

    def _launch(self, number: int) -> list[object]:
        # Address, begin, end, number of blocks, address of the places: see `tcdsl.targets.cpu.call.driver`.
        nest = self._nests[number]
        code, loop = self._code, parallel_loop(nodes_alike(nest))
        address, places = f"nest_{number}", f"places_{number}"
        if loop is None:
            return [address, 0, 0, self._needed(nest), places]
        if nest.bounds is not None:
            return [0, RANGED, self._layout.buffers[nest.bounds], address, places]
        begin, end = code.value(loop.start), code.value(loop.stop)
        if loop.step != 1:
            begin, end = "0", code.line(f"max(0, -(({begin} - {end}) // {loop.step}))")
        end = code.line(f"{end} if {end} > {begin} else {begin}")
        work = self._spread(number)
        split = f"max(1, min({end} - {begin}, threads * {BLOCKS_PER_THREAD}))"
        blocks = code.line(f"0 if {begin} == {end} else 1 if threads < 2 or {work} < serial_work else {split}")
        return [address, begin, end, blocks, places]

    def _needed(self, nest: Nest) -> str:
        # Whether a nest without a parallel loop has anything to do: not if a condition on sizes around all of it fails.
        match nodes_alike(nest):
            case (Branch(condition=condition, otherwise=()),) if self._code.has_value(condition):
                return self._code.line(f"1 if {self._code.value(condition)} else 0")
        return "1"


def _called(nest: Nest) -> set[str]:
    return {node.procedure for node in walk_nodes(nodes_alike(nest)) if isinstance(node, ProcedureCall)}


def _items(texts: Sequence[object]) -> str:
    return "".join(f"{text}, " for text in texts)


def table_rows(kernel: Kernel, layout: FrameLayout) -> list[int | ControlRow]:
    """The rows of the table of ``kernel``: the number of a nest, or a row of control."""
    rows: list[int | ControlRow] = []
    _add(rows, kernel.body, count(), layout)
    return rows


def _add(
    rows: list[int | ControlRow], body: Sequence[Nest | Rounds], numbers: Iterator[int], layout: FrameLayout
) -> tuple[int, ...]:
    # The numbers of the nests that are in no loop inside.
    own: list[int] = []
    for each in body:
        if isinstance(each, Rounds):
            _add_loop(rows, each, numbers, layout)
        else:
            own.append(next(numbers))
            rows.append(own[-1])
    return tuple(own)


def _add_loop(rows: list[int | ControlRow], loop: Rounds, numbers: Iterator[int], layout: FrameLayout) -> None:
    word, slots = layout.sizes[loop.number], layout.buffers
    if loop.counted is None:
        begin = ControlRow(BEGIN, word, loop.count)
    else:
        begin = ControlRow(BEGIN_COUNTED, word, slots[loop.counted])
    start = len(rows)
    heads = [begin]
    if loop.begin is not None:
        heads.append(ControlRow(BEGIN_AT, word, slots[loop.begin]))
    first = start + len(heads)
    if loop.condition is not None:
        heads.append(ControlRow(CONDITION, slots[loop.condition]))
    rows.extend(heads)
    if loop.counter is not None:
        rows.append(ControlRow(HOLD_NUMBER, word, slots[loop.counter]))
    own = _add(rows, loop.body, numbers, layout)
    rows.extend(ControlRow(SWAP, slots[one], slots[other]) for one, other in loop.swaps)
    rows.append(ControlRow(END, word, row=first, nests=own))
    for k, head in enumerate(heads):
        rows[start + k] = replace(head, row=len(rows))
