"""Kernels written by hand, as lowering would write them."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.ir.build import apply, constant, integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Read, SizeValue
from tcdsl.ir.program import AxisExtent, Program, Size, Tensor
from tcdsl.lowering.loopir.loops import Buffer, Kernel, Loop, Nest, Node, Store, Update

I, J, K, N, M, P = IndexValue("i"), IndexValue("j"), IndexValue("k"), SizeValue("N"), SizeValue("M"), SizeValue("P")


def read(tensor: str, *indices: Expr, dtype: str = "float32") -> Read:
    return Read(tensor, indices, (Boundary.SKIP,) * len(indices), dtype)


def loop(
    variable: str, stop: Expr, *body: Node, start: Expr | None = None, step: int = 1, parallel: bool = False
) -> Loop:
    return Loop(
        variable, integer(0) if start is None else start, stop, step, body, "parallel" if parallel else "serial"
    )


def make(
    inputs: dict[str, tuple[str, tuple[Expr, ...]]],
    outputs: dict[str, tuple[str, tuple[Expr, ...]]],
    *bodies: Sequence[Node],
    temporaries: dict[str, tuple[str, tuple[Expr, ...]]] | None = None,
    updated: Sequence[str] = (),
    updates: Sequence[tuple[str, str]] = (),
    results: Sequence[str] | None = None,
    work: Expr | None = None,
    name: str = "program",
) -> Kernel:
    """A kernel whose sizes are the bare names in the shapes of ``inputs``, with one nest per body."""
    sizes = {}
    for tensor, (_, shape) in inputs.items():
        for axis, extent in enumerate(shape):
            if isinstance(extent, SizeValue):
                sizes.setdefault(extent.name, AxisExtent(tensor, axis))
    program = Program(
        name,
        tuple(Tensor(t, dtype, shape) for t, (dtype, shape) in inputs.items()),
        tuple(Size(size, source) for size, source in sizes.items()),
        tuple(Tensor(t, dtype, shape) for t, (dtype, shape) in {**outputs, **(temporaries or {})}.items()),
        (),
        tuple(results if results is not None else outputs),
    )
    kinds = {**dict.fromkeys(inputs, "input"), **dict.fromkeys(updated, "update"), **dict.fromkeys(outputs, "output")}
    declared = {**inputs, **outputs, **(temporaries or {})}
    buffers = tuple(
        Buffer(buffer, dtype, shape, kinds.get(buffer, "temporary"), (buffer,))
        for buffer, (dtype, shape) in declared.items()
    )
    nests = tuple(
        Nest(f"{name}_{k}", f"nest {k} of {name}", tuple(body), integer(1) if work is None else work)
        for k, body in enumerate(bodies)
    )
    return Kernel(program, buffers, nests, program.outputs, tuple(updates), 2**48)


def matmul(dtype: str = "float32", *, parallel: bool = True) -> Kernel:
    """``C[i, j] += A[i, k] * B[k, j]``."""
    value = compute_dtype(dtype)
    product = apply("mul", read("A", I, K, dtype=value), read("B", K, J, dtype=value))
    body = loop(
        "i",
        N,
        loop("j", M, Store("C", (I, J), constant(0, value))),
        loop("k", P, loop("j", M, Update("C", (I, J), "add", product))),
        parallel=parallel,
    )
    work = apply("mul", apply("mul", N, M), P)
    shapes = {"A": (dtype, (N, P)), "B": (dtype, (P, M))}
    return make(shapes, {"C": (dtype, (N, M))}, [body], work=work, name="matmul")


def elementwise(value: Expr, dtype: str, inputs: dict[str, str], result: str | None = None) -> Kernel:
    """``Y[i] = value`` over vectors of length N."""
    body = loop("i", N, Store("Y", (I,), value))
    shapes: dict[str, tuple[str, tuple[Expr, ...]]] = {name: (kind, (N,)) for name, kind in inputs.items()}
    return make(shapes, {"Y": (result or dtype, (N,))}, [body])
