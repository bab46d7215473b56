"""The examples of "Differentiating a Tensor Language" (Bernstein et al., 2020), and the usual ones of its field.

The first part follows sections 1 and 2 of the paper. ``LINEAR`` ones have no second derivative worth printing.
"""

from __future__ import annotations

from tcdsl import op

__all__ = ["EXAMPLES", "LINEAR"]


@op
def convolution(x: real[N], c: real[M]):
    f: real[N]
    f[i] += x[i - j] * c[j]
    return f


@op
def one_hot_convolution(c: real[M], like: real[N]):
    f: real[N]
    f[i] += c[j] * (i - j == 2)
    return f


@op
def deconvolution(x: real[N], c: real[M], z: real[N]):
    f: real[N]
    f[i] += x[i - j] * c[j]
    loss[()] += (f[i] - z[i]) ** 2
    return loss


@op
def fitted_kernel(w: real[M], x: real[B, N], z: real[B, N]):
    f: real[B, N]
    f[b, i] += x[b, i - j] * w[j]
    loss[()] += (f[b, i] - z[b, i]) ** 2
    return loss


@op
def identity_matrix(x, like: real[N]):
    A: real[N, N]
    A[i, j] = x[()] * (i == j)
    return A


@op
def trace(A):
    t[()] += A[i, i]
    return t


@op
def trace_of_identity(x, like):
    return trace(identity_matrix(x, like))


@op
def diagonal_matrix(x: real[N]):
    A: real[N, N]
    A[i, j] = x[i] * (i == j)
    return A


@op
def sum_of_traces(x):
    A = diagonal_matrix(x)
    return trace(A) + trace(A) + trace(A) * trace(A)


@op
def column_times_row(x):
    A = diagonal_matrix(x)
    y[()] += A[i, 0] * A[0, i]
    return y


@op
def sum_of_squares(x):
    s[()] += x[i] * x[i]
    return s


@op
def sum_of_mapped_squares(x):
    y[i] = x[i] * x[i]
    s[()] += y[i]
    return s


@op
def dead_copies(x):
    for _ in range(3):
        z = output()
        z[()] = x[()]
    y[()] = 2 * x[()]
    return y


@op
def linear_graph(x, y):
    a[()] = 2 * x[()] + 3 * y[()]
    b[()] = 4 * x[()] + a[()]
    z[()] = 8 * x[()]
    w[()] = 5 * a[()] + 6 * b[()]
    return z, w


@op
def chosen_cells(x: real[5]):
    total[()] = x[0] + x[2] + x[3] + x[4]
    return total


@op
def scalar_product(a, b, c, d):
    p[()] = a[()] * b[()]
    q[()] = p[()] * c[()]
    r[()] = q[()] * d[()]
    return r


@op
def matrix_product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    loss[()] += C[i, j] ** 2
    return loss


@op
def quadratic_form(x, A):
    y[()] += x[i] * A[i, j] * x[j]
    return y


@op
def hanging_springs(p: real[N, 2], rest, weight):
    s[i] += (p[i + 1, d] - p[i, d]) ** 2
    energy[()] += (sqrt(s[i]) - rest[()]) ** 2
    height[()] += p[i, 1]
    return energy + weight * height


@op
def rigid_deformation(q: real[X, Y, 2], angle: real[X, Y], u: real[X, Y, 2]):
    R: real[X, Y, 2, 2]
    R[x, y, 0, 0] = cos(angle[x, y])
    R[x, y, 0, 1] = -sin(angle[x, y])
    R[x, y, 1, 0] = sin(angle[x, y])
    R[x, y, 1, 1] = cos(angle[x, y])
    turned: real[X, Y, 2]
    turned[x, y, c] += R[x, y, c, k] * (u[x + 1, y, k] - u[x, y, k])
    energy[()] += (q[x + 1, y, c] - q[x, y, c] - turned[x, y, c]) ** 2
    return energy


@op
def gravitational_potential(p: real[N, D], m: real[N]):
    r[i, j] += (p[i, d] - p[j, d]) ** 2, i < j, j < N
    U[()] -= m[i] * m[j] / sqrt(r[i, j]), i < j, j < N
    return U


@op
def embedding_loss(table, ids, y):
    loss[()] += (table[ids[i], d] - y[i, d]) ** 2
    return loss


@op
def outer_product(x):
    A[i, j] = x[i] * x[j]
    y[()] += A[i, j] * A[i, j]
    return y


@op
def normalized_exponentials(x, t):
    e[i] = exp(x[i])
    p[i] = e[i] / sum(e[k])
    loss[()] -= t[i] * log(p[i])
    return loss


@op
def heat_step(u, target):
    N = u.shape[0]
    v: real[N]
    v[i] = u[i] + 0.1 * (u[clamp(i - 1)] - 2 * u[i] + u[clamp(i + 1)])
    loss[()] += (v[i] - target[i]) ** 2
    return loss


#: What to call and by which arguments to differentiate.
EXAMPLES = (
    (deconvolution, ((6,), (3,), (6,)), ("x",)),
    (fitted_kernel, ((3,), (2, 6), (2, 6)), ("w",)),
    (trace_of_identity, ((), (3,)), ("x",)),
    (sum_of_traces, ((3,),), ("x",)),
    (column_times_row, ((3,),), ("x",)),
    (sum_of_squares, ((3,),), ("x",)),
    (sum_of_mapped_squares, ((3,),), ("x",)),
    (dead_copies, ((),), ("x",)),
    (chosen_cells, ((5,),), ("x",)),
    (scalar_product, ((), (), (), ()), ("a", "b", "c", "d")),
    (matrix_product, ((2, 3), (3, 2)), ("A", "B")),
    (quadratic_form, ((3,), (3, 3)), ("x",)),
    (hanging_springs, ((4, 2), (), ()), ("p",)),
    (rigid_deformation, ((3, 2, 2), (3, 2), (3, 2, 2)), ("q", "angle")),
    (gravitational_potential, ((4, 2), (4,)), ("p",)),
    (embedding_loss, ((4, 2), (3,), (3, 2)), ("table",)),
    (outer_product, ((3,),), ("x",)),
    (normalized_exponentials, ((3,), (3,)), ("x",)),
    (heat_step, ((4,), (4,)), ("u",)),
)

LINEAR = (
    (convolution, ((6,), (3,)), ("x", "c")),
    (one_hot_convolution, ((3,), (6,)), ("c",)),
    (linear_graph, ((), ()), ("x", "y")),
)
