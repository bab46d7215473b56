"""Nests of loops and procedures as functions of a printed module.

A procedure is called with views first, then sizes: ``tile(view(A, (k, 0), (None, N)), view(C, (k,), (N,)), N)``. ::

    @procedure(fastmath=('contract', 'reassoc'))
    def tile(A, C, M):
        for i in range(M):
            C[i] += A[i]

It is compiled for the types of its arguments, which name the memory that they are views of: so LLVM knows that they
are apart, and may put the function's body where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import count

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply
from tcdsl.ir.dtypes import WIDE_INTEGERS, compute_dtype
from tcdsl.ir.expressions import Boundary, Cast, Constant, Expr, Local, Read
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    BufferView,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Procedure,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps
from tcdsl.lowering.loopir.traversal import size_extents, sizes_of, walk_nodes
from tcdsl.targets.cpu.layout.frame import FrameLayout
from tcdsl.targets.cpu.layout.kernel_code import parallel_loop, shown_loops, words_of
from tcdsl.targets.cpu.printing.expression_printing import (
    ExpressionWriter,
    Identifiers,
    assignment,
    call,
    function_definition,
    name,
)

__all__ = ["NestWriter", "ProcedureCalls", "procedure_function"]

_SHOWN = 6  # Names of nests that a docstring lists.
_AUGMENTED: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "subtract": ast.Sub,
    "multiply": ast.Mult,
    "divide": ast.Div,
    "or": ast.BitOr,
    "and": ast.BitAnd,
}


class NestWriter:
    """Writes one nest: ``NestWriter(...).function(nest, identifier, decorator)``.

    ``strided`` names the buffers that are not contiguous. ``first_check`` is the number of the nest's first check; an
    error shows the loop variables that are ``shown``, or all if none are. ``calls`` writes calls of procedures.
    ``locals_of`` are the kernel's local buffers.
    """

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        strided: frozenset[str],
        layout: FrameLayout,
        names: Identifiers,
        shown: frozenset[str],
        calls: ProcedureCalls,
        locals_of: Sequence[str],
        *,
        first_check: int = 0,
        debug: bool,
    ) -> None:
        self.buffers = buffers
        self.strided = strided
        self.layout = layout
        self.checks = count(first_check)
        self.names = names
        self.shown = shown
        self.calls = calls
        self.debug = debug
        self.types = {buffer: declared.dtype for buffer, declared in buffers.items()}
        self.locals = locals_of
        self.values = ExpressionWriter(names)
        self.loops: list[Loop] = []
        self.split: Loop | None = None

    def function(self, nest: Nest, identifier: str, decorator: ast.expr, others: Sequence[str] = ()) -> ast.FunctionDef:
        """The function ``identifier(begin, end, frame)`` of ``nest``, with its title as the docstring; it serves the
        ``others`` too.
        """
        self.split = parallel_loop(nest.body)
        lines = [_title(nest, others), *self._declarations(nest), *self.block(nest.body)]
        return function_definition(identifier, ("begin", "end", "frame"), lines, decorator)

    def _declarations(self, nest: Nest) -> list[ast.stmt]:
        # The sizes and buffers that the body uses, found in the frame at the places.
        frame = name("frame")
        lines: list[ast.stmt] = []
        for place, (what, named) in enumerate(words_of(nest, checked=False)):
            if what == "size":
                found = call(self.values.function("size"), frame, ast.Constant(place))
                lines.append(assignment(self.names("size", named), found))
                continue
            declared = self.buffers[named]
            axes = [":"] * len(declared.shape)
            if axes and named not in self.strided:
                axes[-1] = "::1"
            # Checked buffers report their word; others are found at places.
            number = ast.Constant(self.layout.buffers[named] if self.debug else place)
            opener = self.values.function("checked_buffer" if self.debug else "buffer")
            opened = call(opener, frame, number, ast.Constant(f"{declared.dtype}[{', '.join(axes)}]"))
            lines.append(assignment(self.names("buffer", named), opened))
        return lines

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
                taken = self.block(body)
                orelse = self.block(otherwise) if otherwise else []
                self.values.block.append(ast.If(test, taken, orelse))
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
        self.types[node.name] = node.dtype
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
        over = self._lanes(loop) if loop.kind == "vector" else call(self._range(loop), *bounds, *step)
        if loop.rounds:
            over = call(self.values.function("rounds"), name("frame"), over)
        elif loop.seldom:
            over = call(self.values.function("seldom"), over)
        self.values.block.append(ast.For(target, over, body, [], lineno=0))

    def _range(self, loop: Loop) -> str:
        # What Numba runs on several threads takes single steps and has no way out, such as that of a check that fails.
        ends = any(isinstance(node, Check) for node in walk_nodes(loop.body))
        return "range" if loop is not self.split or loop.step != 1 or ends else self.values.function("prange")

    def _lanes(self, loop: Loop) -> ast.expr:
        # As many as there are at most; where there may be less, also where they end.
        steps = most_steps(loop.start, loop.stop)
        assert steps is not None
        stop = [] if isinstance(length_of_loop(loop), Constant) else [self.values.expression(loop.stop)]
        start = self.values.expression(loop.start)
        return call(self.values.function("lanes"), start, ast.Constant(steps), *stop)

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
        variables = [loop.variable for loop in shown_loops(self.loops, self.shown)]
        test = ast.UnaryOp(ast.Not(), self.values.expression(node.condition))
        arguments = [self._integer(node.value), self._integer(node.extent)]
        positions = ast.Tuple([name(self.names("variable", v)) for v in variables], ast.Load())
        stop = call(self.values.function("fail"), name("frame"), ast.Constant(next(self.checks)), *arguments, positions)
        self.values.block.append(ast.If(test, [ast.Expr(stop), ast.Return(None)], []))

    def _integer(self, expr: Expr) -> ast.expr:
        return self.values.expression(expr if expr.dtype in ("int64", *WIDE_INTEGERS) else Cast(expr, "int64"))


def _title(nest: Nest, others: Sequence[str]) -> ast.Expr:
    titles = (nest.title or nest.name).splitlines()
    text = "\n    ".join(titles if len(titles) == 1 else [*titles, ""])
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        text = f"{text.rstrip()}\n\n    The same for {', '.join(others[:_SHOWN])}{more}.\n    "
    return ast.Expr(ast.Constant(text))


class ProcedureCalls:
    """Writes calls: ``ProcedureCalls(procedures, identifiers, debug).statement(node, values)``."""

    def __init__(self, procedures: Mapping[str, Procedure], identifiers: Mapping[str, str], debug: bool) -> None:
        self._procedures = procedures
        self._identifiers = identifiers
        self._debug = debug

    def statement(self, node: ProcedureCall, values: ExpressionWriter) -> ast.stmt:
        """The statement that calls."""
        procedure = self._procedures[node.procedure]
        views = [_view(view, values) for view in node.views]
        sizes = map(values.expression, size_extents(procedure, node).values())
        frame = [name("frame")] if self._debug else []
        return ast.Expr(call(self._identifiers[node.procedure], *frame, *views, *sizes))


def _view(view: BufferView, values: ExpressionWriter) -> ast.expr:
    starts = ast.Tuple([values.expression(start) for start in view.starts], ast.Load())
    extents = [ast.Constant(None) if extent is None else values.expression(extent) for extent in view.extents]
    return call(values.function("view"), values.memory(view.buffer), starts, ast.Tuple(extents, ast.Load()))


def procedure_function(
    procedure: Procedure, writer: NestWriter, identifier: str, decorator: ast.expr
) -> ast.FunctionDef:
    """The function of ``procedure``: its parameters, then its sizes; in checked code the frame before them."""
    parameters = ["frame"] if writer.debug else []
    parameters += [writer.names("buffer", parameter.name) for parameter in procedure.parameters]
    parameters += [writer.names("size", size) for size in sizes_of(procedure)]
    title = ast.Expr(ast.Constant(f"The procedure {procedure.name}."))
    body = writer.block(procedure.body)
    if procedure.host:
        arrays = [name(parameter) for parameter in parameters[writer.debug : len(procedure.parameters) + writer.debug]]
        body = [ast.Expr(call(writer.values.function("host_call"), *arrays))]
    return function_definition(identifier, parameters, [title, *body], decorator)
