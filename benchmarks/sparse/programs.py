"""Programs with sparse parts, whose gradients other systems compute by way of mostly zeros.

They follow the examples of Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020),
sections 1 and 2. Each returns one number.
"""

from __future__ import annotations

from typing import Any

from tcdsl import op, output
from tcdsl.indices import b, i, j

__all__ = [
    "all_cells_but_one",
    "batched_deconvolution",
    "chosen_cells",
    "convolution",
    "dead_copies",
    "deconvolution",
    "product_of_cells",
    "row_times_column",
    "trace_of_identity",
    "traces",
]


@op
def traces(x: Any, *, count: int) -> Any:
    """The sum of ``count`` traces of a diagonal matrix."""
    (N,) = x.shape
    A = output(N, N)
    A[i, j] = x[i] * (i == j)
    total = 0.0
    for _ in range(count):
        trace = output()
        trace[()] += A[i, i]
        total = total + trace
    return total


@op
def row_times_column(x: Any) -> Any:
    """The first column of a diagonal matrix times its first row."""
    (N,) = x.shape
    A = output(N, N)
    A[i, j] = x[i] * (i == j)
    y = output()
    y[()] += A[i, 0] * A[0, i]
    return y


@op
def trace_of_identity(x: Any, like: Any) -> Any:
    """The trace of x times the identity matrix, with as many rows as ``like`` has."""
    (N,) = like.shape
    A = output(N, N)
    A[i, j] = x[()] * (i == j)
    t = output()
    t[()] += A[i, i]
    return t


@op
def chosen_cells(x: Any, *, count: int) -> Any:
    """x[0] + x[2] + x[3] + ..., ``count`` terms written out."""
    total = x[0]
    for cell in range(2, count + 1):
        total = total + x[cell]
    return total


@op
def all_cells_but_one(x: Any) -> Any:
    """x[0] + x[2] + x[3] + ... to the end."""
    total = output()
    total[()] += x[i] * (i != 1)
    return total


@op
def dead_copies(x: Any, *, count: int) -> Any:
    """2 x, beside ``count`` copies of x that nothing reads."""
    for _ in range(count):
        copy = output()
        copy[()] = x[()]
    y = output()
    y[()] = 2 * x[()]
    return y


@op
def convolution(x: Any, c: Any) -> Any:
    """The first cells of the convolution of x with c, as many as x has."""
    (N,) = x.shape
    f = output(N)
    f[i] += x[i - j] * c[j]
    return f


@op
def deconvolution(x: Any, c: Any, z: Any) -> Any:
    """The squared distance of z from x convolved with c."""
    f = convolution(x, c)
    loss = output()
    loss[()] += (f[i] - z[i]) ** 2
    return loss


@op
def batched_deconvolution(x: Any, c: Any, z: Any) -> Any:
    """The same for a batch of signals and one kernel."""
    B, N = x.shape
    f = output(B, N)
    f[b, i] += x[b, i - j] * c[j]
    loss = output()
    loss[()] += (f[b, i] - z[b, i]) ** 2
    return loss


@op
def product_of_cells(x: Any, *, count: int) -> Any:
    """x[0] * x[1] * ... of ``count`` factors, one intermediate name for each."""
    product = x[0]
    for cell in range(1, count):
        product = product * x[cell]
    return product
