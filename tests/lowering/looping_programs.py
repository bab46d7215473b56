"""Programs with loops that run, as text, and arguments for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.verifier.verifier import verify

__all__ = ["LOOPING", "Looping", "rounds_of"]


@dataclass(frozen=True)
class Looping:
    """``arguments(n)`` are arrays for which the outermost loop has about ``n`` rounds."""

    text: str
    arguments: Callable[[int], list[np.ndarray]]

    @property
    def program(self) -> Program:
        """The program, verified."""
        program = parse_program(self.text)
        verify(program)
        return program

    def problems(self) -> Iterator[list[np.ndarray]]:
        """Arguments for no round, one, two, and more."""
        for rounds in (0, 1, 2, 3, 7):
            yield self.arguments(rounds)


def rounds_of(count: int) -> np.ndarray:
    """An array without cells whose first extent is ``count``."""
    return np.empty((count, 0), bool)


def _uniform(*shape: int, seed: int = 3, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


def _positive(n: int) -> np.ndarray:
    G = _uniform(n, n)
    return G @ G.T + np.eye(n)


HEAT = Looping(
    """\
program heat
input u: float64[N]
input carrier: bool[steps, none]
tensor twice: float64[N]
tensor u_2: float64[N]
tensor total: float64

twice[i] = 2.0 * u[i]  for [i]: 0 <= i < N

repeat u_2 = steps times with twice
| program heat_loop
| input round: bool[t]
| input u: float64[N]
| tensor u_2: float64[N]
|
| u_2[i] += 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])  from u  for [i]: 0 < i <= -2 + N
|
| update u = u_2

total[()] += u_2[i]  for [i]: 0 <= i < N

return u_2, total
""",
    lambda n: [_uniform(9), rounds_of(n)],
)

NEWTON = Looping(
    """\
program newton
input a: float64
tensor x: float64
tensor running: bool
tensor x_2: float64
tensor running_2: bool

x[()] = a                        for []:
running[()] = x * x - a > 1e-12  for []:

repeat x_2, running_2 = 1000 times with x, running, a
| program newton_loop
| input round: int64
| input x: float64
| input running: bool
| input a: float64
| tensor x_2: float64
| tensor running_2: bool
|
| x_2[()] = 0.5 * (x + a / x)            for []:
| running_2[()] = x_2 * x_2 - a > 1e-12  for []:
|
| update x = x_2
| update running = running_2
| return running

return x_2
""",
    lambda n: [np.array(1.0 + 3 * n)],
)

FIBONACCI = Looping(
    """\
program fibonacci
input a: int64
input b: int64
input carrier: bool[steps, none]
tensor a_3: int64
tensor b_3: int64

repeat a_3, b_3 = steps times with a, b
| program fibonacci_loop
| input round: bool[t]
| input a: int64
| input b: int64
| tensor c: int64
|
| c[()] = a + b  for []:
|
| update a = b
| update b = c

return a_3, b_3
""",
    lambda n: [np.array(0), np.array(1), rounds_of(n)],
)

# The same with arrays: memory moves in a circle.
WAVE = Looping(
    """\
program wave
input u: float32[N, M]
input v: float32[N, M]
input carrier: bool[steps, none]
tensor u_3: float32[N, M]
tensor v_3: float32[N, M]
tensor w_3: float32[N, M]
tensor energy: float32

repeat u_3, v_3, w_3 = steps times with u, v, v
| program wave_loop
| input round: bool[t]
| input u: float32[N, M]
| input v: float32[N, M]
| input w: float32[N, M]
| tensor c: float32[N, M]
|
| c[i, j] = 2.0 * v[i, j] - u[i, j] + 0.1 * (v[i - 1, j] + v[i + 1, j] - 2.0 * v[i, j])  \
for [i, j]: 0 < i <= -2 + N and 0 <= j < M
|
| update u = v
| update v = c
| update w = u

energy[()] += u_3[i, j] * v_3[i, j] * w_3[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M

return energy, v_3
""",
    lambda n: [_uniform(6, 5, dtype=np.float32), _uniform(6, 5, seed=5, dtype=np.float32), rounds_of(n)],
)

# One tensor becomes two, one stays what it was outside, and one is the start of two.
SHARED = Looping(
    """\
program shared
input a: float64[N]
input carrier: bool[steps, none]
tensor x: float64[N]
tensor p: float64[N]
tensor q: float64[N]
tensor r: float64[N]
tensor s: float64[N]
tensor last: float64[N]

x[i] = a[i] + 1.0  for [i]: 0 <= i < N

repeat p, q, r = steps times with x, x, x, a
| program shared_loop
| input round: bool[t]
| input p: float64[N]
| input q: float64[N]
| input r: float64[N]
| input a: float64[N]
| tensor c: float64[N]
|
| c[i] = 2.0 * q[-1 - i + N] + p[i] - r[i] + float64(t)  for [i]: 0 <= i < N
|
| update p = c
| update q = c
| update r = a

repeat s = steps times with p, q
| program again
| input round: bool[t]
| input s: float64[N]
| input q: float64[N]
| tensor s_2: float64[N]
|
| s_2[i] = s[i] * 0.5 + q[i]  for [i]: 0 <= i < N
|
| update s = s_2

last[i] = s[i] + x[i] + p[i]  for [i]: 0 <= i < N

return last, q, r, p
""",
    lambda n: [_uniform(5), rounds_of(n)],
)

CHOLESKY = Looping(
    """\
program cholesky
input A: float64[N, N]
tensor A_9: float64[N, N]

repeat A_9 = N times with A
| program cholesky_loop
| input round: bool[k]
| input A: float64[N, N]
| tensor A_2: float64[N, N]
| tensor A_3: float64[N, N]
| tensor A_4: float64[N, N]
| assert k < N
|
| A_2[k, k] = sqrt(A[k, k])  from A  for []: 0 <= k < N
| A_3[i, k] = A_2[i, k] / A_2[k, k]  from A_2  for [i]: k < i < N and k >= 0
| A_4[i, j] += -(A_3[i, k] * A_3[j, k])  from A_3  for [i, j]: k < j <= i and i < N and k >= 0
|
| update A = A_4

update A = A_9
""",
    lambda n: [_positive(n)],
)

# A history: each step writes the next row; the step uses a tensor that is as long as the round's number.
HISTORY = Looping(
    """\
program history
input x: float64[T, B]
input h: float64[B]
size S = T + 1
tensor states: float64[T + 1, B]
tensor states_9: float64[T + 1, B]

states[0, b] = h[b]  for [b]: 0 <= b < B

repeat states_9 = T times with states, x
| program history_loop
| input round: bool[t]
| input states: float64[S, B]
| input x: float64[T, B]
| tensor seen: float64[t, B]
| tensor states_2: float64[S, B]
| assert t < T
| assert S == T + 1
|
| seen[s, b] = states[s, b] * x[s, b]  for [s, b]: 0 <= s < t and 0 <= b < B
| states_2[t + 1, b] += tanh(states[t, b] + x[t, b]) + 0.1 * seen[s, b] * seen[s, b]  from states  \
for [b, s]: 0 <= b < B and 0 <= s < t
|
| update states = states_2

return states_9
""",
    lambda n: [_uniform(n, 3), _uniform(3, seed=1)],
)

# Two loops, the inner as long as the number of the outer round; the inner one starts anew in each.
TRIANGLE = Looping(
    """\
program triangle
input x: float64[N]
tensor total: float64
tensor steps: int64
tensor x_9: float64[N]
tensor total_9: float64
tensor steps_9: int64

total[()] = 0.0  for []:
steps[()] = 0  for []:

repeat x_9, total_9, steps_9 = N times with x, total, steps
| program triangle_loop
| input round: bool[n]
| input x: float64[N]
| input total: float64
| input steps: int64
| tensor part: float64[n]
| tensor part_9: float64[n]
| tensor steps_9: int64
| tensor total_2: float64
| tensor x_2: float64[N]
| assert n < N
|
| part[i] = x[i] + float64(i)  for [i]: 0 <= i < n
|
| repeat part_9, steps_9 = n times with part, steps
| | program inner
| | input round: bool[i]
| | input part: float64[M]
| | input steps: int64
| | tensor part_2: float64[M]
| | tensor steps_2: int64
| | assert i < M
| |
| | part_2[j] += part[j - 1] * 0.5  from part  for [j]: i < j < M
| | steps_2[()] = steps + i + 1  for []:
| |
| | update part = part_2
| | update steps = steps_2
|
| total_2[()] += part_9[j]  from total  for [j]: 0 <= j < n
| x_2[i] = x[i] + total_2  for [i]: 0 <= i < N
|
| update x = x_2
| update total = total_2
| update steps = steps_9

return x_9, total_9, steps_9
""",
    lambda n: [_uniform(n)],
)

# Counts from data, a round that is data, indices by it.
COUNTED = Looping(
    """\
program counted
input count: int64
input x: float32[N]
tensor y: float32[N]
tensor y_9: float32[N]
tensor where_9: int64
tensor place: int64

y[i] = 0.0  for [i]: 0 <= i < N
place[()] = 0  for []:

repeat y_9, where_9 = 2 * count times with y, place, x
| program counted_loop
| input t: int64
| input y: float32[N]
| input place: int64
| input x: float32[N]
| tensor y_2: float32[N]
| tensor place_2: int64
|
| y_2[t] += x[N - t - 1] + y[place]  from y  for []:
| place_2[()] = t  for []:
|
| update y = y_2
| update place = place_2

return y_9, where_9
""",
    lambda n: [np.array(n), _uniform(15, dtype=np.float32)],
)

# Game of life: bools, neighbours.
LIFE = Looping(
    """\
program life
input cells: bool[N, M]
input carrier: bool[steps, none]
tensor cells_9: bool[N, M]

repeat cells_9 = steps times with cells
| program life_loop
| input round: bool[t]
| input cells: bool[N, M]
| tensor count: int32[N, M]
| tensor cells_2: bool[N, M]
|
| count[i, j] += int32(cells[i + a - 1, j + b - 1])  \
for [i, j, a, b]: 0 <= i < N and 0 <= j < M and 0 <= a < 3 and 0 <= b < 3 \
and 0 < i + a <= N and 0 < j + b <= M
| cells_2[i, j] = count[i, j] == 3 or count[i, j] == 4 and cells[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
|
| update cells = cells_2

update cells = cells_9
return cells_9
""",
    lambda n: [np.random.default_rng(0).integers(0, 2, (7, 6)).astype(bool), rounds_of(n)],
)

# Loops three deep: the innermost changes the state of the outermost one, one cell in each round.
PRODUCT = Looping(
    """\
program product
input A: float64[N, K]
input B: float64[K, M]
tensor C: float64[N, M]
tensor C_9: float64[N, M]

C[a, b] = 0.0  for [a, b]: 0 <= a < N and 0 <= b < M

repeat C_9 = N times with C, A, B
| program product_rows
| input row: bool[i]
| input C: float64[N, M]
| input A: float64[N, K]
| input B: float64[K, M]
| tensor C_8: float64[N, M]
| tensor C_9: float64[N, M]
| assert i < N
|
| repeat C_8 = M times with C, A, B, row
| | program product_columns
| | input column: bool[j]
| | input C: float64[N, M]
| | input A: float64[N, K]
| | input B: float64[K, M]
| | input row: bool[i]
| | tensor C_7: float64[N, M]
| | assert j < M
| | assert i < N
| |
| | repeat C_7 = K times with C, A, B, row, column
| | | program product_terms
| | | input term: bool[k]
| | | input C: float64[N, M]
| | | input A: float64[N, K]
| | | input B: float64[K, M]
| | | input row: bool[i]
| | | input column: bool[j]
| | | tensor C_2: float64[N, M]
| | | assert k < K
| | | assert i < N
| | | assert j < M
| | |
| | | C_2[i, j] += A[i, k] * B[k, j]  from C  for []: i >= 0 and j >= 0 and k >= 0
| | |
| | | update C = C_2
| |
| | update C = C_7
|
| C_9[i, b] = 0.5 * C_8[i, b]  from C_8  for [b]: 0 <= b < M and i >= 0
|
| update C = C_9

return C_9
""",
    lambda n: [_uniform(n, 3), _uniform(3, 2)],
)

# An array that some rounds change: a branch is a loop of at most one round. A history of what was there; the last
# stage of a body reads what loops have made of the memory that it writes.
BRANCHES = Looping(
    """\
program branches
input x: float64[N]
input keys: int32[T]
tensor x_9: float64[N]
tensor x_8: float64[N]

repeat x_9 = T times with x, keys
| program branches_loop
| input round: bool[t]
| input x: float64[N]
| input keys: int32[T]
| tensor key: int32
| tensor x_3: float64[N]
| tensor x_4: float64[N]
| tensor x_5: float64[N]
| assert t < T
|
| key[()] = keys[t]                  for []: 0 <= t
|
| repeat x_3 = where(key > 1, 1, 0) times with x
| | program first_arm
| | input round: bool[n]
| | input x: float64[N]
| | tensor x_2: float64[N]
| |
| | x_2[0] += 1.0  from x  for []: N > 0
| |
| | update x = x_2
|
| repeat x_4 = where(key > 1, 0, 1) times with x_3
| | program second_arm
| | input round: bool[n]
| | input x: float64[N]
| | tensor x_2: float64[N]
| |
| | x_2[i] = x[i] * 2.0  for [i]: 0 <= i < N
| |
| | update x = x_2
|
| x_5[i] = x_4[N - i - 1]  for [i]: 0 <= i < N
|
| update x = x_5

x_8[i] = x_9[i] + x[i]  for [i]: 0 <= i < N

update x = x_8

return x, x, x_9, x_8
""",
    lambda n: [_uniform(4), (np.arange(n) % 3).astype(np.int32)],
)

LOOPING = {
    "product": PRODUCT,
    "branches": BRANCHES,
    "heat": HEAT,
    "newton": NEWTON,
    "fibonacci": FIBONACCI,
    "wave": WAVE,
    "shared": SHARED,
    "cholesky": CHOLESKY,
    "history": HISTORY,
    "triangle": TRIANGLE,
    "counted": COUNTED,
    "life": LIFE,
}
