"""Nests of loops as functions of a generated module."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply
from tcdsl.ir.dtypes import WIDE_INTEGERS, compute_dtype, numpy_dtype
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, Local, Read, SizeValue, walk
from tcdsl.lowering.loopir.kinds import Named
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps
from tcdsl.targets.cpu.layout.frame import MAX_POSITIONS, FrameLayout
from tcdsl.targets.cpu.printing.expression_printing import ExpressionWriter, assignment, call, function_definition, name
from tcdsl.targets.cpu.printing.identifiers import Identifiers
from tcdsl.targets.cpu.printing.nest_deduplication import PrintedNest
from tcdsl.targets.cpu.printing.procedure_calls import ProcedureCalls

__all__ = ["LARGEST_LOCAL_BYTES", "CheckSite", "NestWriter", "parallel_loop"]

LARGEST_LOCAL_BYTES = 1 << 18
"""So much fits on the stacks of all threads."""

_AUGMENTED: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "subtract": ast.Sub,
    "multiply": ast.Mult,
    "divide": ast.Div,
    "or": ast.BitOr,
    "and": ast.BitAnd,
}


@dataclass(frozen=True, slots=True)
class CheckSite:
    """A `Check` of the kernel with the loop variables around it that an error shows, outermost first."""

    check: Check
    variables: tuple[str, ...]


def parallel_loop(nest: Nest) -> Loop | None:
    """The loop of ``nest`` that may be split among threads: its only node, with bounds that sizes alone decide."""
    if len(nest.body) != 1 or not isinstance(nest.body[0], Loop) or nest.body[0].kind != "parallel":
        return None
    loop = nest.body[0]
    bounds = [node for bound in (loop.start, loop.stop) for node in walk(bound)]
    return loop if all(isinstance(node, Apply | Cast | Constant | SizeValue) for node in bounds) else None


class NestWriter:
    """Writes one nest: ``NestWriter(...).function(nest)``.

    ``strided`` names the buffers that are not contiguous. ``checks`` is the kernel's list of checks, which the writer
    extends; an error shows the loop variables that are ``shown``, or all if none are. ``calls`` writes calls of
    procedures. ``local_names`` lists the local buffers so far, and is extended: the kernel's own list in checked code.
    """

    def __init__(
        self,
        buffers: dict[str, Buffer],
        strided: frozenset[str],
        layout: FrameLayout,
        checks: list[CheckSite],
        names: Identifiers,
        shown: frozenset[str],
        calls: ProcedureCalls,
        local_names: list[str],
        *,
        debug: bool,
    ) -> None:
        self.buffers = buffers
        self.strided = strided
        self.layout = layout
        self.checks = checks
        self.names = names
        self.shown = shown
        self.calls = calls
        self.debug = debug
        self.types = {buffer: declared.dtype for buffer, declared in buffers.items()}
        self.locals = local_names
        self.values = ExpressionWriter(names)
        self.loops: list[Loop] = []
        self.split: Loop | None = None

    def function(self, nest: Nest, identifier: str, decorator: ast.expr) -> PrintedNest:
        """The function ``identifier(begin, end, frame)`` of ``nest``, with its title as the docstring."""
        self.split = parallel_loop(nest)
        body = self.block(nest.body)
        titles = (nest.title or nest.name).splitlines()
        title = ast.Expr(ast.Constant("\n    ".join(titles if len(titles) == 1 else [*titles, ""])))
        declarations, places = self._declarations()
        lines = [title, *declarations, *body]
        function = function_definition(identifier, ("begin", "end", "frame"), lines, decorator)
        return PrintedNest(identifier, function, tuple(places))

    def _declarations(self) -> tuple[list[ast.stmt], list[Named]]:
        # The sizes and buffers that the body uses, found in the frame at the places.
        frame = name("frame")
        lines: list[ast.stmt] = []
        places: list[Named] = []
        for size in self.values.sizes:
            place = ast.Constant(len(places))
            places.append(("size", size))
            lines.append(assignment(self.names("size", size), call(self.values.function("size"), frame, place)))
        used = [buffer for buffer in self.values.buffers if buffer not in self.locals]
        opener = self.values.function("checked_buffer" if self.debug else "buffer") if used else ""
        for buffer in used:
            declared = self.buffers[buffer]
            axes = [":"] * len(declared.shape)
            if axes and buffer not in self.strided:
                axes[-1] = "::1"
            description = ast.Constant(f"{declared.dtype}[{', '.join(axes)}]")
            number = self.layout.buffers[buffer]
            if not self.debug:
                # Checked buffers report their word; others are found at places.
                number = len(places)
                places.append(("buffer", buffer))
            opened = call(opener, frame, ast.Constant(number), description)
            lines.append(assignment(self.names("buffer", buffer), opened))
        return lines, places

    def block(self, nodes: Sequence[Node]) -> list[ast.stmt]:
        """The statements of ``nodes``."""
        outer = self.values.block
        lines: list[ast.stmt] = []
        self.values.block = lines
        for node in nodes:
            self.node(node)
        self.values.block = outer
        return lines or [ast.Pass()]

    def node(self, node: Node) -> None:
        """Append the statements of ``node`` to the current block."""
        match node:
            case Loop():
                self._loop(node)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                test = self.values.expression(condition)
                orelse = self.block(otherwise) if otherwise else []
                self.values.block.append(ast.If(test, self.block(body), orelse))
            case Define(name=local, value=value):
                written = self.values.expression(value)
                self.values.block.append(assignment(self.values.local(local, value.dtype), written))
            case Accumulate(name=local, accumulate=accumulate, value=value):
                self._accumulate(local, accumulate, value)
            case Store(buffer=buffer, indices=indices, value=value):
                written = self.values.expression(value)
                target = self.values.cell(buffer, indices, ast.Store())
                self.values.block.append(ast.Assign([target], written, lineno=0))
            case Update():
                self._update(node)
            case Check():
                self._check(node)
            case LocalBuffer():
                self._local(node)
            case ProcedureCall():
                statement = self.calls.statement(node, self.values)
                self.values.block.append(statement)

    def _local(self, node: LocalBuffer) -> None:
        size = numpy_dtype(node.dtype).itemsize * prod(node.bounds)
        if size > LARGEST_LOCAL_BYTES:
            raise ValueError(f"{node.name} takes {size} bytes, more than the {LARGEST_LOCAL_BYTES} of a local buffer")
        self.types[node.name] = node.dtype
        if node.name not in self.locals:  # loops that are written out repeat it
            self.locals.append(node.name)
        # Behind the words of the frame, so that it is no other buffer's.
        slot = ast.Constant(self.layout.words + self.locals.index(node.name))
        arguments: list[ast.expr] = [slot, ast.Constant(f"{node.dtype}[{', '.join(map(str, node.bounds))}]")]
        if self.debug:
            extents = ast.Tuple([self.values.expression(extent) for extent in node.shape], ast.Load())
            arguments = [name("frame"), *arguments, extents]
        opener = self.values.function("checked_local_buffer" if self.debug else "local_buffer")
        identifier = self.names("buffer", node.name)
        self.values.block.append(assignment(identifier, call(opener, *arguments)))

    def _loop(self, loop: Loop) -> None:
        bounds: list[ast.expr] = [name("begin"), name("end")]
        step: list[ast.expr] = [] if loop.step == 1 else [self.values.expression(Constant(loop.step, "int64"))]
        if loop is not self.split:
            start, stop = self.values.expression(loop.start), self.values.expression(loop.stop)
            from_zero = isinstance(loop.start, Constant) and loop.start.value == 0 and not step
            bounds = [stop] if from_zero else [start, stop]
        elif step:
            # Blocks count iterations, so that they begin on a step.
            bounds = [self._iteration(loop, bound) for bound in bounds]
        self.loops.append(loop)
        body = self.block(loop.body)
        self.loops.pop()
        if loop.rounds:
            body = [*self._ends(loop), *body]
        target = ast.Name(self.names("variable", loop.variable), ast.Store())
        over = self._lanes(loop) if loop.kind == "vector" else call("range", *bounds, *step)
        if loop.rounds:
            over = call(self.values.function("rounds"), name("frame"), over)
        elif loop.seldom:
            over = call(self.values.function("seldom"), over)
        self.values.block.append(ast.For(target, over, body, [], lineno=0))

    def _lanes(self, loop: Loop) -> ast.expr:
        # As many as there are at most; where there may be less, also where they end.
        count = most_steps(loop.start, loop.stop)
        assert count is not None
        stop = [] if isinstance(length_of_loop(loop), Constant) else [self.values.expression(loop.stop)]
        start = self.values.expression(loop.start)
        return call(self.values.function("lanes"), start, ast.Constant(count), *stop)

    def _ends(self, loop: Loop) -> list[ast.stmt]:
        if loop.condition is None:
            return []
        return [ast.If(ast.UnaryOp(ast.Not(), self.values.expression(loop.condition)), [ast.Break()], [])]

    def _iteration(self, loop: Loop, count: ast.expr) -> ast.expr:
        start = self.values.expression(loop.start)
        return ast.BinOp(start, ast.Add(), ast.BinOp(count, ast.Mult(), ast.Constant(loop.step)))

    def _accumulate(self, local: str, accumulate: str, value: Expr) -> None:
        # Through the primitive itself, which wraps narrow integers.
        held = Local(local, value.dtype)
        identifier = self.values.local(local, value.dtype)
        if accumulate in _AUGMENTED and value.dtype in ("bool", "int64", "uint64", "float16", "float32", "float64"):
            written = self.values.expression(value)
            target = ast.Name(identifier, ast.Store())
            self.values.block.append(ast.AugAssign(target, _AUGMENTED[accumulate](), written))
            return
        result = apply(ACCUMULATORS[accumulate].primitive, held, value)
        self.values.block.append(assignment(identifier, self.values.expression(result)))

    def _update(self, node: Update) -> None:
        dtype = compute_dtype(self.types[node.buffer])
        value = node.value if compute_dtype(node.value.dtype) == dtype else Cast(node.value, dtype)
        target = self.values.cell(node.buffer, node.indices, ast.Store())
        if node.accumulate in _AUGMENTED:
            # Storing wraps narrow integers and rounds float16.
            written = self.values.expression(value)
            self.values.block.append(ast.AugAssign(target, _AUGMENTED[node.accumulate](), written))
            return
        held = Read(node.buffer, node.indices, (Boundary.SKIP,) * len(node.indices), dtype)
        written = self.values.expression(apply(ACCUMULATORS[node.accumulate].primitive, held, value))
        self.values.block.append(ast.Assign([target], written, lineno=0))

    def _check(self, node: Check) -> None:
        # Users know the index variables of their statements, not the loops over blocks around them.
        loops = [loop for loop in self.loops if loop.rounds or loop.variable in self.shown or not self.shown]
        variables = [loop.variable for loop in loops[:MAX_POSITIONS]]
        number = len(self.checks)
        self.checks.append(CheckSite(node, tuple(loop.rounds or loop.variable for loop in loops[:MAX_POSITIONS])))
        test = ast.UnaryOp(ast.Not(), self.values.expression(node.condition))
        arguments = [self._integer(node.value), self._integer(node.extent)]
        positions = ast.Tuple([name(self.names("variable", v)) for v in variables], ast.Load())
        stop = call(self.values.function("fail"), name("frame"), ast.Constant(number), *arguments, positions)
        self.values.block.append(ast.If(test, [ast.Expr(stop), ast.Return(None)], []))

    def _integer(self, expr: Expr) -> ast.expr:
        return self.values.expression(expr if expr.dtype in ("int64", *WIDE_INTEGERS) else Cast(expr, "int64"))
