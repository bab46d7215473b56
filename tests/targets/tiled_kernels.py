"""Kernels written by hand with local buffers and procedures, which no pass of lowering makes yet."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr
from tcdsl.lowering.loopir.loops import (
    Buffer,
    BufferView,
    Kernel,
    LocalBuffer,
    Node,
    Procedure,
    ProcedureCall,
    Store,
    Update,
)
from tests.targets.kernels import I, J, K, M, N, P, loop, make, read

I0, J0 = index("i0"), index("j0")


def plus(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def rest(extent: Expr, first: Expr, most: int) -> Expr:
    """``min(most, extent - first)``."""
    return apply("min", integer(most), apply("sub", extent, first))


def transpose(dtype: str = "float32", *, last: Expr = J) -> Kernel:
    """``B[j, i] = A[i, j]`` through a local tile of 4 by 8 cells, less at the borders."""
    value = compute_dtype(dtype)
    rows, columns = rest(N, I0, 4), rest(M, J0, 8)
    gather = Store("tile", (I, last), read("A", plus(I0, I), plus(J0, J), dtype=value))
    spread = Store("B", (plus(J0, J), plus(I0, I)), read("tile", I, J, dtype=value))
    tile: list[Node] = [
        LocalBuffer("tile", dtype, (rows, columns), (4, 8)),
        loop("i", rows, loop("j", columns, gather)),
        loop("j", columns, loop("i", rows, spread)),
    ]
    body = loop("i0", N, loop("j0", M, *tile, step=8), step=4, parallel=True)
    return make({"A": (dtype, (N, M))}, {"B": (dtype, (M, N))}, [body], name="transpose", work=apply("mul", N, M))


def row_product() -> Procedure:
    """``c[j] += a[k] * B[k, j]``, for a row of each matrix."""
    product = apply("mul", read("a", K), read("B", K, J))
    parameters = (
        Buffer("a", "float32", (P,), "input", ()),
        Buffer("B", "float32", (P, M), "input", ()),
        Buffer("c", "float32", (M,), "update", ()),
    )
    body = loop("k", P, loop("j", M, Update("c", (J,), "add", product)))
    return Procedure("row_product", parameters, (body,))


def matmul(block: int = 3, *, over: int = 0) -> Kernel:
    """``C[i, j] += A[i, k] * B[k, j]``: a row at a time, ``block`` terms of a sum at a time, in a local row."""
    k0 = index("k0")
    terms = plus(rest(P, k0, block), integer(over))
    zero = loop("j", M, Store("row", (J,), constant(0, "float32")))
    reads = (BufferView("A", (I, k0), (None, terms)), BufferView("B", (k0, integer(0)), (terms, M)))
    product = ProcedureCall("row_product", reads, (BufferView("row", (integer(0),), (M,)),))
    copy = loop("j", M, Store("C", (I, J), read("row", J)))
    local = LocalBuffer("row", "float32", (M,), (64,))
    body = loop("i", N, local, zero, loop("k0", P, product, step=block), copy, parallel=True)
    shapes = {"A": ("float32", (N, P)), "B": ("float32", (P, M))}
    made = make(shapes, {"C": ("float32", (N, M))}, [body], name="matmul", work=apply("mul", N, M))
    return replace(made, procedures=(row_product(),))
