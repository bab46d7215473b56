"""Programs that lowering is tested on: text, and arrays for given sizes."""

from __future__ import annotations

import numpy as np

from tests.lowering.kernel_cases import CASES, LINE, PLANE, case, real, whole

__all__ = ["CASES", "real"]


case(
    "triangle",
    """
input A: float32[N, N2]
assert N == N2, "square"
tensor L: float32[N, N]
tensor U: float32[N, N]
L[i, j] = A[i, j]  for [i, j]: 0 <= j <= i < N
U[i, j] += L[i, k] * A[k, j]  for [i, j, k]: 0 <= k <= i < N and k <= j < N
return L, U
""",
    lambda n: [real(n, n)],
    LINE,
)
case(
    "even_cells",
    """
input O: float32[N]
input I: float32[M, K]
tensor O_2: float32[N]
O_2[2*i] += I[2*i, j]  from O  for [i, j]: 0 <= i and 2*i < N and 2*i < M and 0 <= j < K
return O_2
""",
    lambda n, m: [real(n), real(n + 1, m)],
    PLANE,
)
case(
    "deconvolution",
    """
input g: float32[N]
input K: float32[X]
tensor d: float32[2*N + X]
d[2*i + k] += g[i] * K[k]  for [i, k]: 0 <= i < N and 0 <= k < X
return d
""",
    lambda n, x: [real(n), real(x)],
    PLANE,
)
case(
    "clamped_scatter",
    """
input g: float32[N]
assert N >= 1, "cells"
tensor d: float32[N]
d[min(max(i - 1, 0), N - 1)] += g[i]  for [i]: 0 <= i < N
return d
""",
    lambda n: [real(n)],
    LINE[1:],
)
for operator, scale in (("/=", 2.0), ("**=", 1.0), (">>=", 1.0), ("<<=", 1.0), ("*=", 1.0), ("-=", 1.0)):
    name = {"/=": "divide", "**=": "power", ">>=": "max", "<<=": "min", "*=": "multiply", "-=": "subtract"}[operator]
    case(
        f"accumulate_{name}",
        f"""
input x: float64[N, M]
input s: float64[N2]
assert N == N2, "rows"
tensor r: float64[N]
tensor c: float64[M]
tensor t: float64
tensor u: float64[N2]
r[i] {operator} x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
c[j] {operator} x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
t[()] {operator} x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
u[i] {operator} x[i, j]  from s  for [i, j]: 0 <= i < N and 0 <= j < M
return r, c, t, u
""",
        lambda n, m, scale=scale: [
            np.abs(real(n, m, dtype="float64")) + scale,
            np.abs(real(n, dtype="float64")) + scale,
        ],
        PLANE,
    )
case(
    "accumulate_logic",
    """
input x: int32[N, M]
tensor a: bool[N]
tensor o: bool[M]
a[i] &= x[i, j] > 1  for [i, j]: 0 <= i < N and 0 <= j < M
o[j] |= x[i, j] == 3  for [i, j]: 0 <= i < N and 0 <= j < M
return a, o
""",
    lambda n, m: [whole(4, n, m, dtype="int32")],
    PLANE,
)
case(
    "conditions_on_data",
    """
input x: float32[N, M]
tensor y: float32[N, M]
tensor s: float32[N]
tensor z: float32[M]
y[i, j] = x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M  if x[i, j] > 0.0
s[i] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M  if x[i, j] > 0.0
z[j] >>= x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M  if x[i, j] < 0.5 and j > 0
return y, s, z
""",
    lambda n, m: [real(n, m)],
    PLANE,
)
case(
    "half_precision",
    """
input x: float16[N, M]
input ids: int64[N2]
assert N == N2, "rows"
tensor s: float16[M]
tensor y: float16[N, M]
tensor h: float16[3, M]
s[j] += x[i, j] / 3.0  for [j, i]: 0 <= i < N and 0 <= j < M
y[i, j] = x[i, j] / 3.0 + s[j]  for [i, j]: 0 <= i < N and 0 <= j < M
h[ids[i], j] += x[i, j] / 3.0  for [i, j]: 0 <= i < N and 0 <= j < M
return s, y, h
""",
    lambda n, m: [real(n, m, dtype="float16"), whole(3, n)],
    PLANE,
)
case(
    "lets_in_branches",
    """
input x: float32[N]
tensor y: float32[N]
y[i] = let(a := x[i] * x[i], exp(a) + a if x[i] > 0.0 else let(b := x[i - 1] + 1.0, b * b if i > 0 else a + a))
  for [i]: 0 <= i < N
return y
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "lazy_gather",
    """
input table: float32[V]
input ids: int64[N]
tensor y: float32[N]
tensor z: bool[N]
y[i] = table[ids[i]] * 2.0 if ids[i] >= 0 and table[ids[i]] > 0.0 else -1.0  for [i]: 0 <= i < N
z[i] = ids[i] < 0 or table[ids[i]] > 0.0  for [i]: 0 <= i < N
return y, z
""",
    lambda n: [real(4), whole(4, n, low=-3)],
    LINE,
)
case(
    "start_from_value",
    """
input x: float32[N]
input b: float32
tensor s: float32[3]
tensor t: float32[N]
s[k] += x[i]  from fill(b * 2.0)  for [k, i]: 0 <= k <= 1 and 0 <= i < N
t[i] = x[i]  from fill(5.0)  for [i]: 2 <= i < N
return s, t
""",
    lambda n: [real(n), np.float32(1.5)],
    LINE,
)
case(
    "scalars",
    """
input a: float64
input b: float64
tensor c: float64
tensor d: float64
tensor e: float64
tensor f: float64
c[()] = a * b + a  for []
d[()] = c * c + b  for []
e[()] = c * d - c / d  for []
f[()] = tanh(e) + c  for []
return f, c
""",
    lambda: [np.float64(0.5), np.float64(1.25)],
    ((),),
)
case(
    "empty_domain",
    """
input x: float32[N]
tensor y: float32[N]
y[i] += x[i]  for [i]: 0 <= i < N and i < 0
return y
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "names_that_clash",
    """
input x: float32[i]
tensor N: float32[i]
N[j] += x[k]  for [j, k]: 0 <= j < i and 0 <= k <= j
return N
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "index_values",
    """
input x: float32[N]
tensor y: int64[N, 3]
y[i, j] += i * j + N  for [i, j]: 0 <= i < N and 0 <= j < 3
return y
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "coarse_scatter",
    """
input x: float32[N]
tensor s: float32[N // 2 + 1]
tensor p: float32[3]
s[i // 2] += x[i]  for [i]: 0 <= i < N
p[i % 3] += x[i]  for [i]: 0 <= i < N
return s, p
""",
    lambda n: [real(n)],
    LINE,
)
case(
    "outputs_that_repeat",
    """
input x: float32[N]
tensor y: float32[N]
y[i] = x[i] + 1.0  for [i]: 0 <= i < N
return y, x, y
""",
    lambda n: [real(n)],
    LINE,
)
