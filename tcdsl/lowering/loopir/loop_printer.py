"""Kernels as readable text: memory, then each nest as indented pseudo-code under its statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, is_affine_index, transform
from tcdsl.ir.text.printer import format_expr
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    BufferView,
    Check,
    Define,
    Kernel,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Procedure,
    ProcedureCall,
    Rounds,
    Step,
    Store,
    Update,
)
from tcdsl.lowering.loopir.point_code import UNIQUE_AXIS
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.polyhedra.linear import normalized

__all__ = ["format_kernel", "format_nest", "format_schedules"]


def format_kernel(kernel: Kernel) -> str:
    """``print(format_kernel(lower(program)))`` shows what will run::

    kernel matmul
    input A: float32[N, K]
    input B: float32[K, M]
    output C: float32[N, M]

    # C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
    nest_C:
        parallel for i in 0 .. N:
            for j in 0 .. M:
                C[i, j] = 0.0
            for k in 0 .. K:
                for j in 0 .. M:
                    C[i, j] += A[i, k] * B[k, j]
    """
    types = {buffer.name: compute_dtype(buffer.dtype) for buffer in kernel.buffers}
    lines = [f"kernel {kernel.program.name}", *(_buffer(buffer) for buffer in kernel.buffers)]
    for procedure in kernel.procedures:
        lines.extend(["", *_procedure(procedure)])
    lines.extend(_body(kernel.body, partial(format_nest, types=types)))
    if kernel.updates:
        lines.extend(["", *(f"copy {source} into {target}" for target, source in kernel.updates)])
    if kernel.outputs:
        lines.extend(["", f"return {', '.join(kernel.outputs)}"])
    return "\n".join(lines) + "\n"


def format_schedules(kernel: Kernel) -> str:
    """``print(format_schedules(lower(program)))``: of every nest its statements, and how their loops were made::

    nest_C
        C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
        order    C: i k j
        sum      C: in memory, along the row of j
        parallel i
    """
    return "\n".join(_body(kernel.body, _schedule)).lstrip("\n") + "\n"


def _schedule(nest: Nest) -> str:
    loops = (node for node in walk_nodes(nest.body) if isinstance(node, Loop) and node.kind == "parallel")
    parallel = (Step("parallel", name) for name in dict.fromkeys(loop.variable for loop in loops))
    declined = (Step("but", str(each)) for each in nest.declined)
    return "\n    ".join((nest.name, *nest.title.splitlines(), *map(str, (*nest.schedule, *parallel, *declined))))


def format_nest(nest: Nest, types: dict[str, str]) -> str:
    """One nest, headed by the statements that it serves. ``types`` gives the compute type of each buffer."""
    lines = [f"# {line}" for line in nest.title.splitlines()]
    lines.extend(f"#     {step}" for step in nest.schedule)
    lines.append(f"{nest.name}:")
    lines.extend(_nodes(nest.body, types, 1))
    return "\n".join(lines)


def _body(body: Sequence[Nest | Rounds], shown: Callable[[Nest], str]) -> Iterator[str]:
    for each in body:
        if isinstance(each, Nest):
            yield from ("", *shown(each).splitlines())
            continue
        yield from ("", f"repeat {each.number} in {each.begin or 0} .. {_text(each.count, 'int64')}{_held(each)}:")
        swaps = (f"swap {one}, {other}" for one, other in each.swaps)
        for line in (*_body(each.body, shown), *(("", *swaps) if each.swaps else ())):
            yield f"    {line}" if line else ""


def _held(rounds: Rounds) -> str:
    held = "" if rounds.counter is None else f" as {rounds.counter}"
    return held if rounds.condition is None else f"{held} while {rounds.condition}"


def _procedure(procedure: Procedure) -> Iterator[str]:
    yield f"procedure {procedure.name}:"
    yield from (f"    {_buffer(parameter)}" for parameter in procedure.parameters)
    yield from _nodes(procedure.body, {each.name: compute_dtype(each.dtype) for each in procedure.parameters}, 1)


def _buffer(buffer: Buffer) -> str:
    extents = ", ".join(_text(extent, "int64") for extent in buffer.shape)
    others = [name for name in buffer.tensors if name != buffer.name]
    held = f"  (holds {', '.join(others)})" if others else ""
    return f"{buffer.kind} {buffer.name}: {buffer.dtype}{f'[{extents}]' if extents else ''}{held}"


def _nodes(nodes: Sequence[Node], types: dict[str, str], level: int) -> Iterator[str]:
    indent = "    " * level
    types = dict(types)
    for node in nodes:
        match node:
            case Loop(variable=variable, start=start, stop=stop, step=step, body=body, kind=kind):
                stride = f" by {step}" if step != 1 else ""
                first, last = _text(start, "int64"), _text(stop, "int64")
                held = "" if node.condition is None else f" while {_text(node.condition, 'bool')}"
                ahead = f"{kind} " if kind != "serial" else ""
                yield f"{indent}{ahead}for {variable} in {first} .. {last}{stride}{held}:"
                yield from _nodes(body, types, level + 1)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                yield f"{indent}if {_text(condition, 'bool')}:"
                yield from _nodes(body, types, level + 1)
                if otherwise:
                    yield f"{indent}else:"
                    yield from _nodes(otherwise, types, level + 1)
            case Define(name=name, value=value):
                yield f"{indent}{name} = {_text(value)}"
            case Accumulate(name=name, accumulate=accumulate, value=value):
                yield f"{indent}{name} {ACCUMULATORS[accumulate].symbol} {_text(value, value.dtype)}"
            case Store(buffer=buffer, indices=indices, value=value):
                yield f"{indent}{_cell(buffer, indices)} = {_text(value, types[buffer])}"
            case Update(buffer=buffer, indices=indices, accumulate=accumulate, value=value):
                symbol = ACCUMULATORS[accumulate].symbol
                yield f"{indent}{_cell(buffer, indices)} {symbol} {_text(value, types[buffer])}"
            case Check(condition=condition, tensor=tensor, axis=axis):
                what = "unique cells" if axis == UNIQUE_AXIS else f"axis {axis}"
                yield f"{indent}check {_text(condition, 'bool')}  (of {tensor}, {what})"
            case LocalBuffer(name=name, dtype=dtype):
                types[name] = compute_dtype(dtype)
                yield f"{indent}local {name}: {dtype}{_local_shape(node)}"
            case ProcedureCall(procedure=procedure, reads=reads, writes=writes):
                given, changed = (", ".join(map(_view, views)) for views in (reads, writes))
                yield f"{indent}{procedure}({given}) -> {changed}"


def _local_shape(node: LocalBuffer) -> str:
    extents = ", ".join(_text(extent, "int64") for extent in node.shape)
    fixed = all(isinstance(extent, Constant) for extent in node.shape)
    return (f"[{extents}]" if extents else "") + ("" if fixed else f"  (at most {list(node.bounds)})")


def _view(view: BufferView) -> str:
    axes = [
        _text(start, "int64") if extent is None else f"{_text(start, 'int64')} : {_text(_end(start, extent), 'int64')}"
        for start, extent in zip(view.starts, view.extents, strict=True)
    ]
    return f"{view.buffer}[{', '.join(axes)}]" if axes else view.buffer


def _end(start: Expr, extent: Expr) -> Expr:
    return normalized(apply("add", start, extent))


def _cell(buffer: str, indices: Sequence[Expr]) -> str:
    return f"{buffer}[{', '.join(_text(part, 'int64') for part in indices)}]" if indices else buffer


def _text(expr: Expr, dtype: str | None = None) -> str:
    return format_expr(transform(expr, _plain), dtype)


def _plain(node: Expr) -> Expr:
    # All indices are in range, so none is marked.
    if isinstance(node, Read):
        plain = tuple(Boundary.SKIP if is_affine_index(index) else Boundary.CHECK for index in node.indices)
        return node if plain == node.boundaries else replace(node, boundaries=plain)
    return node
