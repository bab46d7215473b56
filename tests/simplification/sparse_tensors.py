"""Functions with a matrix that is thin, or read in thin parts only: none may store it, nor may their gradients."""

from __future__ import annotations

from tcdsl import op

__all__ = ["FUNCTIONS"]


@op
def written_on_the_diagonal(x: real[N]):
    A: real[N, N]
    A[i, i] = x[i]
    t[()] += A[i, i]
    return t


@op
def costly_values(x: real[N]):
    A: real[N, N]
    A[i, j] = exp(tanh(x[i]) * sin(x[j])) * (i == j)
    t[()] += A[i, i] * A[0, i] + A[i, 0]
    return t


@op
def many_readers(x: real[N]):
    A: real[N, N]
    A[i, j] = exp(x[i]) * (i == j)
    total = 0.0
    for cell in range(3):
        t = output()
        t[()] += A[i, cell] * A[i, i]
        total = total + t
    return total


@op
def diagonal_matrix(x: real[N]):
    A: real[N, N]
    A[i, i] = x[i]
    return A


@op
def trace(A):
    t[()] += A[i, i]
    return t


@op
def through_operations(x):
    A = diagonal_matrix(x)
    return trace(A) + trace(A) * trace(A)


@op
def through_whole_arrays(x):
    A = diagonal_matrix(x)
    return trace(A + A)


@op
def outer_product(x: real[N]):
    A[i, j] = tanh(x[i]) * tanh(x[j]) + x[i]
    t[()] += A[i, i]
    return t


@op
def three_diagonals(x: real[N]):
    A: real[N, N]
    A[i, i] = x[i]
    A[i, i + 1] = -x[i]
    A[i + 1, i] = -2 * x[i]
    t[()] += A[i, i] * A[i, i]
    s[()] += A[i, i + 1] * A[i + 1, i]
    r[()] += A[i, 1]
    return t + s + r


@op
def added_up(x: real[N]):
    A: real[N, N]
    A[i, i] += x[i]
    A[i, 0] += x[i]
    t[()] += A[i, i] + A[i, 0] * A[0, i]
    return t


@op
def column_times_vector(x: real[N]):
    A: real[N, N]
    A[i, j] = x[i] * (i == j)
    s[()] += A[i, 0] * x[i]
    return s


@op
def row_overwritten(x: real[N]):
    A: real[N, N]
    A[i, j] = x[i] * (i == j)
    A[0, j] = x[j]
    t[()] += A[0, i] * A[i, i]
    return t


@op
def triangle(x: real[N]):
    A: real[N, N]
    A[i, j] = x[i] * x[j] * (i >= j)
    t[()] += A[i, i]
    return t


@op
def sums_on_the_diagonal(x: real[N]):
    A: real[N, N]
    A[i, i] += x[i] * x[k], k < 3
    t[()] += A[i, i] * A[i, i] + A[i, 0]
    return t


FUNCTIONS = (
    added_up,
    column_times_vector,
    costly_values,
    many_readers,
    outer_product,
    row_overwritten,
    sums_on_the_diagonal,
    three_diagonals,
    through_operations,
    through_whole_arrays,
    triangle,
    written_on_the_diagonal,
)
