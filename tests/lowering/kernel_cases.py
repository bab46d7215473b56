"""Programs that lowering is tested on: contractions, convolutions, gathers, scatters, stencils, updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A program's text, the sizes to run it with, and its inputs for them."""

    text: str
    inputs: Callable[..., Arrays]
    sizes: tuple[tuple[int, ...], ...]


def real(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Numbers that are exact in float16, so that sums in any order agree closely."""
    return (np.random.default_rng(seed + sum(shape)).integers(-16, 17, shape) / 8).astype(dtype)


def whole(high: int, *shape: int, low: int = 0, dtype: str = "int64") -> np.ndarray:
    """Integers in ``low .. high``."""
    return np.random.default_rng(7).integers(low, max(high, low + 1), shape).astype(dtype)


LINE = ((0,), (1,), (2,), (3,), (5,), (9,))
PLANE = ((0, 0), (0, 3), (3, 0), (1, 1), (2, 3), (4, 1), (5, 6))
SPACE = ((0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1), (3, 4, 5))

CASES: dict[str, Case] = {}


def case(name: str, text: str, inputs: Callable[..., Arrays], sizes: tuple[tuple[int, ...], ...]) -> None:
    CASES[name] = Case(f"program {name}\n{text}", inputs, sizes)


case(
    "matmul",
    """
input A: float32[N, K]
input B: float32[B_0, M]
assert K == B_0, "inner"
tensor C: float32[N, M]
C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return C
""",
    lambda n, k, m: [real(n, k), real(k, m)],
    SPACE,
)
case(
    "matmul_transposed",
    """
input A: float32[N, K]
input B: float32[M, B_1]
assert K == B_1, "inner"
tensor C: float32[N, M]
C[i, j] += A[i, k] * B[j, k]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return C
""",
    lambda n, k, m: [real(n, k), real(m, k)],
    SPACE,
)
case(
    "chain_of_matrices",
    """
input A: float32[N, K]
input B: float32[K, K]
input C: float32[K, M]
tensor D: float32[N, M]
D[i, j] += A[i, k] * B[k, l] * C[l, j]  for [i, j, k, l]: 0 <= i < N and 0 <= j < M and 0 <= k < K and 0 <= l < K
return D
""",
    lambda n, k, m: [real(n, k), real(k, k), real(k, m)],
    SPACE,
)
case(
    "vector_matrix",
    """
input x: float32[N]
input A: float32[A_0, M]
assert N == A_0, "rows"
tensor y: float32[M]
y[j] += x[i] * A[i, j]  for [j, i]: 0 <= i < N and 0 <= j < M
return y
""",
    lambda n, m: [real(n), real(n, m)],
    (*PLANE, (3, 300), (200, 3)),
)
case(
    "valid_convolution",
    """
input I: float32[N]
input K: float32[X]
assert N >= X - 1, "window"
tensor O: float32[N - X + 1]
O[x] += I[x + k] * K[k]  for [x, k]: 0 <= x < N - X + 1 and 0 <= k < X
return O
""",
    lambda n, x: [real(n), real(x)],
    ((0, 1), (1, 1), (3, 3), (5, 2), (9, 3), (300, 4)),
)
case(
    "padded_convolution",
    """
input I: float32[B, C, H, W]
input K: float32[D, K_1, X, Y]
assert C == K_1, "channels"
tensor O: float32[B, D, H, W]
O[b, d, y, x] += I[b, c, y + p - 1, x + q - 1] * K[d, c, p, q]
  for [b, d, y, x, c, p, q]: 0 <= b < B and 0 <= d < D and 0 <= y < H and 0 <= x < W and 0 <= c < C and 0 <= p < X
    and 0 <= q < Y and 1 <= y + p <= H and 1 <= x + q <= W
return O
""",
    lambda b, h, w: [real(b, 2, h, w), real(3, 2, 3, 3)],
    ((1, 4, 5), (2, 1, 1), (1, 0, 3), (0, 2, 2), (1, 2, 3)),
)
case(
    "strided_dilated_convolution",
    """
input I: float32[N]
input K: float32[X]
tensor O: float32[(N + 1) // 2]
O[x] += I[2*x + 3*k - 3] * K[k]  for [x, k]: 0 <= x and 2*x < N and 0 <= k < X and 0 <= 2*x + 3*k - 3 < N
return O
""",
    lambda n, x: [real(n), real(x)],
    ((0, 3), (1, 3), (2, 1), (7, 3), (10, 4)),
)
case(
    "max_pool",
    """
input I: float32[N, M]
tensor O: float32[N, M // 2]
O[i, j] >>= I[i, 2*j + k]  for [i, j, k]: 0 <= i < N and 0 <= k <= 1 and 0 <= j and 2*j + k < M and 2*j + 1 < M
return O
""",
    lambda n, m: [real(n, m)],
    PLANE,
)
case(
    "cumulative_sum",
    """
input I: float32[N]
tensor O: float32[N]
O[i] += I[k]  for [i, k]: 0 <= k <= i < N
return O
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "diagonal",
    """
input x: float32[N]
tensor A: float32[N, N]
tensor t: float32
tensor d: float32[N]
A[i, i] = x[i]  for [i]: 0 <= i < N
t[()] += A[i, i]  for [i]: 0 <= i < N
d[i] = A[i, i] * t  for [i]: 0 <= i < N
return A, t, d
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "transpose",
    """
input A: float64[N, M]
tensor B: float64[M, N]
B[i, j] = A[j, i]  for [i, j]: 0 <= i < M and 0 <= j < N
return B
""",
    lambda n, m: [real(n, m, dtype="float64")],
    PLANE,
)
SOFTMAX = """
input x: float32[N, M]
tensor m: float32[N]
tensor e: float32[N, M]
tensor s: float32[N]
tensor y: float32[N, M]
m[i] >>= x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
e[i, j] = exp(x[i, j] - m[i])  for [i, j]: 0 <= i < N and 0 <= j < M
s[k] += e[k, l]  for [k, l]: 0 <= k < N and 0 <= l < M
y[i, j] = e[i, j] / s[i]  for [i, j]: 0 <= i < N and 0 <= j < M
return y
"""
case("softmax", SOFTMAX, lambda n, m: [real(n, m)], PLANE)
case(
    "layer_norm",
    """
input x: float32[N, M]
input g: float32[g_0]
assert M == g_0, "gain"
tensor a: float32[N]
tensor c: float32[N, M]
tensor v: float32[N]
tensor r: float32[N]
tensor y: float32[N, M]
a[i] += x[i, j] / float32(M)  for [i, j]: 0 <= i < N and 0 <= j < M
c[i, j] = x[i, j] - a[i]  for [i, j]: 0 <= i < N and 0 <= j < M
v[i] += c[i, j] * c[i, j] / float32(M)  for [i, j]: 0 <= i < N and 0 <= j < M
r[i] = 1.0 / sqrt(v[i] + 0.001)  for [i]: 0 <= i < N
y[i, j] = c[i, j] * r[i] * g[j]  for [i, j]: 0 <= i < N and 0 <= j < M
return y
""",
    lambda n, m: [real(n, m), real(m)],
    PLANE,
)
case(
    "gather",
    """
input table: float32[V, D]
input ids: int64[N]
tensor E: float32[N, D]
E[i, d] = table[ids[i], d]  for [i, d]: 0 <= i < N and 0 <= d < D
return E
""",
    lambda n, d: [real(4, d), whole(4, n)],
    PLANE,
)
case(
    "gather_with_fill",
    """
input table: float32[V, D]
input ids: int32[N]
tensor E: float32[N, D]
E[i, d] = get(table[int64(ids[i]), skip(d)], 2.0)  for [i, d]: 0 <= i < N and 0 <= d < D
return E
""",
    lambda n, d: [real(4, d), whole(6, n, low=-2, dtype="int32")],
    PLANE,
)
case(
    "scatter_add",
    """
input g: float32[N, D]
input ids: int64[N2]
assert N == N2, "rows"
tensor T: float32[5, D]
T[ids[i], d] += g[i, d]  for [i, d]: 0 <= i < N and 0 <= d < D
return T
""",
    lambda n, d: [real(n, d), whole(5, n)],
    PLANE,
)
for oob in ("skip", "clamp"):
    case(
        f"scatter_{oob}",
        f"""
input g: float32[N]
input ids: int64[N2]
assert N == N2, "rows"
tensor T: float32[3]
T[ids[i]] += g[i]  for [i]: 0 <= i < N  with oob {oob}
return T
""",
        lambda n: [real(n), whole(6, n, low=-3)],
        LINE,
    )
case(
    "histogram",
    """
input bins: int64[N]
tensor H: int64[4]
H[bins[i]] += 1  for [i]: 0 <= i < N
return H
""",
    lambda n: [whole(4, n)],
    LINE,
)
case(
    "unique_store",
    """
input p: int64[N]
input x: float32[N2]
assert N == N2, "rows"
tensor y: float32[N]
y[p[i]] = x[i]  for [i]: 0 <= i < N  with unique
return y
""",
    lambda n: [np.random.default_rng(1).permutation(n), real(n)],
    LINE,
)
for boundary in ("clamp", "wrap", "reflect", "symmetric"):
    case(
        f"blur_{boundary}",
        f"""
input x: float32[N, M]
input w: float32[3, 3]
assert N >= 1, "rows"
assert M >= 1, "columns"
tensor y: float32[N, M]
y[i, j] += x[{boundary}(i + k - 1), {boundary}(j + l - 1)] * w[k, l]
  for [i, j, k, l]: 0 <= i < N and 0 <= j < M and 0 <= k <= 2 and 0 <= l <= 2
return y
""",
        lambda n, m: [real(n, m), real(3, 3)],
        ((1, 1), (2, 1), (1, 3), (4, 5), (2, 2)),
    )
    case(
        f"shift_{boundary}",
        f"""
input x: float32[N]
assert N >= 1, "cells"
tensor y: float32[N]
y[i] = x[{boundary}(i - 2)] + x[{boundary}(i + 1)]  for [i]: 0 <= i < N
return y
""",
        lambda n: [real(n)],
        LINE[1:],
    )
case(
    "stencil_with_fill",
    """
input x: float32[N, M]
tensor y: float32[N, M]
y[i, j] = get(x[i - 1, j], 0.5) + get(x[i + 1, j], 0.5) + get(x[i, j - 1], 0.5) + get(x[i, j + 1], 0.5) - 4.0 * x[i, j]
  for [i, j]: 0 <= i < N and 0 <= j < M
return y
""",
    lambda n, m: [real(n, m)],
    PLANE,
)
case(
    "stencil_by_branches",
    """
input x: float32[N]
tensor y: float32[N]
y[i] = (x[i - 1] if i > 0 else 7.0) + (x[i + 1] if i < N - 1 else x[i])  for [i]: 0 <= i < N
return y
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "branch_by_parity",
    """
input x: float32[N]
tensor y: float32[N]
tensor z: float32[N]
y[i] = x[i - 1] if i % 2 == 0 else 2.0 * x[i]  for [i]: 1 <= i < N
z[i] += x[i + k] if (i + k) % 2 == 0 else 2.0 * x[i]  for [i, k]: 0 <= i < N and 0 <= k <= 2 and i + k < N
return y, z
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "sgd",
    """
input p: float32[N]
input g: float32[N2]
input v: float32[N3]
assert N == N2, "p"
assert N == N3, "v"
tensor v_2: float32[N3]
tensor p_2: float32[N]
v_2[i] = 0.5 * v[i] + g[i]  from v  for [i]: 0 <= i < N3
p_2[i] -= 0.25 * v_2[i]  from p  for [i]: 0 <= i < N
update v = v_2
update p = p_2
""",
    lambda n: [real(n), real(n, seed=1), real(n, seed=2)],
    LINE,
)
case(
    "snapshot",
    """
input x: float32[N]
tensor y: float32[N]
tensor z: float32[N]
y[i] = 2.0 * x[i]  for [i]: 0 <= i < N
z[i] = y[i - 1] + y[i]  from y  for [i]: 1 <= i < N
return z
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "snapshot_update",
    """
input x: float32[N]
tensor x_2: float32[N]
x_2[i] += x[i - 1]  from x  for [i]: 1 <= i < N
update x = x_2
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "update_with_later_check",
    """
input x: float32[N]
input ids: int64[M]
tensor x_2: float32[N]
tensor y: float32[M]
x_2[i] += 1.0  from x  for [i]: 0 <= i < N
y[j] = x_2[ids[j]]  for [j]: 0 <= j < M
return y
update x = x_2
""",
    lambda n, m: [real(n + 1), whole(n + 1, m)],
    PLANE,
)
