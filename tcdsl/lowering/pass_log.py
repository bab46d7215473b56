"""What lowering does, as text: `f.explain("passes", *arguments)` and `f.explain("schedule", *arguments)`."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from tcdsl.ir.build import integer
from tcdsl.ir.conjunctions import conjuncts, said_of_sizes
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Local, Read, walk
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.text.declined import Declined
from tcdsl.ir.text.printer import format_program, format_statement
from tcdsl.lowering.loopir.loop_printer import format_kernel, format_nest, format_schedules
from tcdsl.lowering.loopir.loops import Branch, Kernel, Loop, Nest
from tcdsl.lowering.loopir.machine import SERIAL_WORK
from tcdsl.lowering.loopir.traversal import expressions
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pipeline import NEST_PASSES, PASSES, NestPass, Nodes, Pass, Work
from tcdsl.lowering.program_passes.effort import too_few, weight
from tcdsl.lowering.program_passes.merging import reasons_apart
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.scheduling.nearest_misses import SHOWN
from tcdsl.lowering.scheduling.row_blocks import reasons_apart_in_rows
from tcdsl.lowering.scheduling.schedules import Draft

__all__ = ["PassLog", "ScheduleLog"]

_WIDTH = 18


class PassLog:
    """A `tcdsl.lowering.pipeline.PassWatch` that keeps what passes change."""

    def __init__(self) -> None:
        #: For each pass that has run, the lines that it took away (``-``) and those that it put there (``+``).
        self.changes: dict[str, list[str]] = {}
        self._before: list[str] = []
        self._drafts: list[Draft] = []

    @staticmethod
    def of(program: Program, optimize: bool | str = True) -> PassLog:
        """What the passes do with ``program``."""
        log = PassLog()
        lower(program, optimize=optimize, watch=log)
        return log

    def begin(self, work: Work) -> None:
        """The program before any pass; with loops that run, each of its straight parts in turn."""
        self._before = _lines(work)
        self._drafts = []

    def after(self, done: Pass, work: Work) -> None:
        """A pass of the whole program is done."""
        now = _lines(work)
        if done.name == "loop_orders":
            self.changes.setdefault(done.name, []).extend(now)  # in another form than before
        elif done.name == "loops":
            lines = [line for draft in self._drafts for line in _loops(draft, draft.nodes, work)]
            self.changes.setdefault(done.name, []).extend(lines)
        else:
            self._note(done.name, self._before, now)
        self._before = now

    def after_nest(self, done: NestPass, draft: Draft, before: Nodes, nodes: Nodes, work: Work) -> None:
        """A pass over one nest is done."""
        if draft not in self._drafts[-1:]:
            self._drafts.append(draft)
        self._note(done.name, _loops(draft, before, work), _loops(draft, nodes, work))

    def _note(self, name: str, before: list[str], after: list[str]) -> None:
        changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"] if before != after else []
        self.changes.setdefault(name, []).extend(changed)

    def text(self) -> str:
        """Every pass in order: what it does, and the lines that it took from the program and put in their place."""
        return "\n".join(self._parts()) + "\n"

    def _parts(self) -> Iterator[str]:
        for each in PASSES:
            yield from self._part(each)
            if each.name == "loops":
                for inner in NEST_PASSES:
                    yield from self._part(inner)

    def _part(self, each: Pass | NestPass) -> Iterator[str]:
        found = self.changes.get(each.name)
        state = ": left out" if found is None else "" if found else ": nothing to do"
        yield f"{each.name:{_WIDTH}} {each.what}{state}"
        for line in found or ():
            yield textwrap.indent(line, "    ").rstrip()


class ScheduleLog:
    """A `tcdsl.lowering.pipeline.PassWatch` that keeps why statements share no loops."""

    def __init__(self) -> None:
        self._apart: dict[tuple[str, str], str] = {}

    def begin(self, work: Work) -> None:
        """Nothing has been decided yet."""

    def after(self, done: Pass, work: Work) -> None:
        """A pass of the whole program is done."""
        if done.name == "loops":
            for first, second, reason in reasons_apart(work.groups, work.touched, work.context):
                self._apart[first, second] = reason
            if work.runs("row_blocks") and not work.alone:
                found = reasons_apart_in_rows(
                    work.groups, work.memory, work.touched, work.tensors, work.context, work.kept
                )
                self._apart |= {(first, second): reason for first, second, reason in found}

    def after_nest(self, done: NestPass, draft: Draft, before: Nodes, nodes: Nodes, work: Work) -> None:
        """A pass over one nest is done: its draft says so."""

    def text(
        self, kernel: Kernel, declined: Iterable[tuple[str, Declined]] = (), sizes: Mapping[str, int] | None = None
    ) -> str:
        """The schedule of every nest, and which neighbours share no loops.

        What a target has ``declined`` is told of nests by name, and what a call with such ``sizes`` does not do.
        """
        found: dict[str, list[Declined]] = {nest.name: list(nest.declined) for nest in kernel.nests}
        for name, each in declined:
            found.setdefault(name, []).append(each)
        for nest in _straight(kernel):
            if sizes is not None:
                found[nest.name] += _in_call(nest, sizes)
        told = (replace(nest, declined=tuple(dict.fromkeys(found[nest.name]))) for nest in kernel.nests)
        kernel = kernel.with_nests(told)
        threads = list(_threads(kernel, sizes)) if sizes is not None else []
        apart = [f"    {first}, {second}: {reason}" for (first, second), reason in self._apart.items()]
        parts = ((title, *lines, "") for title, lines in (("one thread", threads), ("apart", apart)) if lines)
        return "\n".join((format_schedules(kernel), *(line for part in parts for line in part)))


def _straight(kernel: Kernel) -> list[Nest]:
    # The nests that do the work of statements, but for those of rounds, whose sizes a call does not know.
    repeated = {number for each in kernel.repeated for number in range(each.first, each.end)}
    return [
        nest
        for number, nest in enumerate(kernel.nests)
        if number not in repeated and nest.name.startswith(tuple(SHOWN))
    ]


def _in_call(nest: Nest, sizes: Mapping[str, int]) -> Iterator[Declined]:
    # What keeps a nest from running in a call with such sizes.
    match nest.body:
        case (Branch(asked, _, ()),):
            conditions = [asked]
        case (Loop(start=start, stop=stop),) if _of_sizes(start) and _of_sizes(stop):
            empty = evaluate_size(stop, sizes) <= evaluate_size(start, sizes)
            cases = (part for part in walk(stop) if isinstance(part, Apply) and part.primitive == "where")
            conditions = [part.arguments[0] for part in cases] if empty else []
        case _:
            conditions = []
    said = (each for each in map(said_of_sizes, conditions) if each is not None)
    failing = (each for condition in said for each in conjuncts(condition) if not evaluate_size(each, sizes))
    yield from (_opposite(each).of("not run in this call") for each in islice(failing, 1))


def _of_sizes(expr: Expr) -> bool:
    return not any(isinstance(part, Read | Local | IndexValue) for part in walk(expr))


def _threads(kernel: Kernel, sizes: Mapping[str, int]) -> Iterator[str]:
    # Which loops threads could share, but do not in a call with such sizes.
    for nest in _straight(kernel):
        match nest.body:
            case (Loop(kind="parallel"), *_) if nest.bounds is None and not list(_in_call(nest, sizes)):
                operations = evaluate_size(nest.work, sizes) * weight(expressions(nest.body))
                if operations < SERIAL_WORK:
                    yield f"    {nest.name}: {too_few(operations)}"


def _opposite(condition: Expr) -> Declined:
    match condition:
        case Apply(primitive="not_", arguments=(asked,)):
            return Declined("{} holds", (asked,))
        case Apply(primitive="or_") if (other := said_of_sizes(condition, False)) is not None:
            return Declined("{} holds", (other,))
        case _:
            return Declined("{} does not hold", (condition,))


def _lines(work: Work) -> list[str]:
    if work.nests:
        return format_kernel(work.kernel()).splitlines()
    if not work.plans:
        return format_program(work.program).splitlines()
    if not work.groups:
        return [_order(made) for made in work.plans]
    lines = [f"{name} lies in {place}" for name, place in work.memory.of.items() if name != place]
    for group in work.groups:
        indent = ""
        if group.rows is not None:
            lines.append(f"blocks of rows of {group.rows.levels[0][group.rows.row]} around:")
            indent = "    "
        elif len(group.plans) > 1:
            lines.append(f"{group.depth} loops around:" if group.depth != 1 else "one loop around:")
            indent = "    "
        lines.extend(indent + _order(made) for made in group.plans)
    return lines


def _order(made: LoopOrder) -> str:
    if made.scan:
        scan = next(name for name in made.cells if name not in made.outer)
        loops = " ".join((*made.outer, "|", *made.inner, f"along {scan}"))
        return f"{format_statement(made.statement)}  by {loops}"
    loops = " ".join((*made.outer, "|", *made.inner)) if made.inner else " ".join(made.outer) or "no loop"
    if made.contraction is not None:
        loops += f", in {made.contraction}"
    return f"{format_statement(made.statement)}  by {loops}"


def _loops(draft: Draft, nodes: Nodes, work: Work) -> list[str]:
    buffers = (*work.memory.buffers, *work.setting.extra)
    types = {buffer.name: compute_dtype(buffer.dtype) for buffer in buffers}
    name = f"{draft.hint}{draft.plans[-1].statement.target.tensor}"
    return format_nest(Nest(name, "", tuple(nodes), integer(1)), types).splitlines()
