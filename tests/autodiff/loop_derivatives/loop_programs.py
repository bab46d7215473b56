"""Programs with loops, written out by hand, and the same programs without: their bodies as often as they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, walk
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.interpreter.tensor_values import TensorValues
from tcdsl.ir.program import Assertion, DerivativeRule, Program, Repeat, Size, Statement, Tensor
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.ir.stages import stages
from tcdsl.ir.text.parser import parse_program
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.inlining import append_program
from tcdsl.span import Span

__all__ = ["LOOPS", "SMOOTH", "Case", "unrolled"]


class _Unrolling:
    """A program while the bodies of its loops are written into it."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray]) -> None:
        sizes = bind_sizes(program, [array.shape for array in arrays])
        self.values = TensorValues(program, arrays, sizes)
        self.names = names_of(program)
        self.known = dict(sizes)
        self.sizes = list(program.sizes)
        self.tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in program.inputs}
        self.statements: list[Statement] = []
        self.assertions = list(program.assertions)
        self.rules = list(program.rules)

    def fresh_name(self, hint: str) -> str:
        return self.names.fresh(hint)

    def opaque_size(self, expr: Expr) -> Expr:
        if isinstance(expr, SizeValue):
            return expr
        name = self.names.fresh("size")
        self.sizes.append(Size(name, expr))
        self.known[name] = evaluate_size(expr, self.known)
        return SizeValue(name)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        self.assertions.append(Assertion(condition, message, span))

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        self.tensors[tensor.name] = tensor
        self.statements.append(statement)

    def add_rule(self, rule: DerivativeRule) -> None:
        self.rules.append(rule)

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        body = repeat.body
        counter, *inputs = body.inputs
        step = replace(body, outputs=tuple(new for _, new in body.updates), updates=())
        state = dict(zip((each.name for each in inputs), (self.tensors[name] for name in repeat.inputs), strict=True))
        for number in range(self._count(repeat)):
            of_round = self._of_round(counter, number)
            made = append_program(self, step, [of_round, *state.values()])
            state.update(zip((name for name, _ in body.updates), made, strict=True))
        for tensor, (name, _) in zip(tensors, body.updates, strict=True):
            cells = tuple(self.names.fresh("z") for _ in tensor.shape)
            value = read_cell(state[name], cells, compute_dtype(tensor.dtype))
            self.add_statement(over_box(tensor.name, cells, tensor.shape, value), tensor)

    def _count(self, repeat: Repeat) -> int:
        if all(isinstance(node, Constant | SizeValue | Apply) for node in walk(repeat.count)) and not repeat.condition:
            return evaluate_size(repeat.count, self.known)
        # What data say is computed.
        return sum(1 for _ in self.values.rounds(repeat))

    def _of_round(self, counter: Tensor, number: int) -> Tensor:
        made = replace(counter, name=self.names.fresh("round"))
        if counter.shape:
            # Only its extent is used, in loops inside too.
            self.tensors[made.name] = replace(made, shape=(integer(number),))
            return self.tensors[made.name]
        self.add_statement(over_box(made.name, (), (), integer(number)), made)
        return made


def unrolled(program: Program, arrays: Sequence[np.ndarray]) -> Program:
    """``program`` for arrays of these shapes, with the bodies of its loops as often as they run."""
    work = _Unrolling(program, arrays)
    for stage in stages(program):
        for statement in stage.statements:
            work.add_statement(statement, program.tensor(statement.target.tensor))
        if stage.repeat is not None:
            work.add_repeat(stage.repeat, [program.tensor(name) for name in stage.repeat.results])
    made = {statement.target.tensor for statement in work.statements}
    return replace(
        program,
        sizes=tuple(work.sizes),
        tensors=tuple(tensor for tensor in work.tensors.values() if tensor.name in made),
        statements=tuple(work.statements),
        assertions=tuple(work.assertions),
        rules=tuple(work.rules),
        repeats=(),
    )


@dataclass(frozen=True)
class Case:
    """A program, and arrays for it of sizes that a number gives."""

    text: str
    arrays: Callable[[np.random.Generator, int], list[np.ndarray]]
    #: Whether derivatives are those of the values: not where values are rounded, nor where a rule says otherwise.
    smooth: bool = True

    @property
    def program(self) -> Program:
        return parse_program(self.text)

    def of(self, size: int) -> list[np.ndarray]:
        return self.arrays(np.random.default_rng(size), size)


def _rounds(count: int) -> np.ndarray:
    return np.empty(count, bool)


def _definite(matrix: np.ndarray) -> np.ndarray:
    return matrix @ matrix.T + len(matrix) * np.eye(len(matrix))


LOOPS = {
    "heat": Case(
        """\
program heat
input u: float64[N]
input carrier: bool[steps]
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
        lambda rng, n: [rng.normal(size=5), _rounds(n)],
    ),
    "product": Case(
        """\
program product
input y: float64
input x: float64[N]
tensor y_3: float64

repeat y_3 = N times with y, x
| program product_loop
| input round: bool[t]
| input y: float64
| input x: float64[N]
| assert t < N
| tensor y_2: float64
|
| y_2[()] = y * x[t]  for []:
|
| update y = y_2

return y_3
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=n)],
    ),
    "recurrent": Case(
        """\
program recurrent
input h: float64[H]
input W: float64[H, H_2]
input x: float64[T, X_1]
assert H == H_2
assert H == X_1
tensor states: float64[T + 1, H]
tensor states_3: float64[T + 1, H]

states[0, k] = h[k]  for [k]: 0 <= k < H

repeat states_3 = T times with states, W, x
| program recurrent_loop
| input round: bool[t]
| input states: float64[states_0, H]
| input W: float64[H, H_2]
| input x: float64[T, X_1]
| assert states_0 == T + 1
| assert H == H_2
| assert H == X_1
| assert t < T
| tensor states_sum: float64[H]
| tensor states_2: float64[states_0, H]
|
| states_sum[k] += states[t, j] * W[j, k]  for [k, j]: 0 <= k < H and 0 <= j < H
| states_2[t + 1, k] = tanh(states_sum[k] + x[t, k])  from states  for [k]: 0 <= k < H
|
| update states = states_2

return states_3
""",
        lambda rng, n: [
            rng.normal(size=3),
            rng.normal(size=(3, 3)),
            rng.normal(size=(n, 3)),
        ],
    ),
    "swap": Case(
        """\
program swap
input a: float64
input b: float64
input x: float64[N]
tensor a_3: float64
tensor b_3: float64

repeat a_3, b_3 = N times with a, b, x
| program swap_loop
| input round: bool[t]
| input a: float64
| input b: float64
| input x: float64[N]
| assert t < N
| tensor b_2: float64
|
| b_2[()] = sin(a) + b * x[t]  for []:
|
| update a = b
| update b = b_2

return b_3
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=()), rng.normal(size=n)],
    ),
    "delay": Case(
        """\
program delay
input c: float64
input x: float64[N]
tensor a: float64
tensor b: float64
tensor a_2: float64
tensor b_2: float64
tensor c_2: float64
tensor y: float64

a[()] = 0.0  for []:
b[()] = 0.0  for []:

repeat a_2, b_2, c_2 = N times with a, b, c, x
| program delay_loop
| input round: bool[t]
| input a: float64
| input b: float64
| input c: float64
| input x: float64[N]
| assert t < N
| tensor a_2: float64
|
| a_2[()] = x[t] * x[t]  for []:
|
| update a = a_2
| update b = a
| update c = b

y[()] = c_2 * c_2  for []:

return y
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=n)],
    ),
    "lorenz": Case(
        """\
program lorenz
input p: float64[3]
input s: float64
input carrier: bool[steps]
tensor x: float64
tensor y: float64
tensor z: float64
tensor x_3: float64
tensor y_3: float64
tensor z_3: float64

x[()] = p[0]  for []:
y[()] = p[1]  for []:
z[()] = p[2]  for []:

repeat x_3, y_3, z_3 = steps times with x, y, z, s
| program lorenz_loop
| input round: bool[t]
| input x: float64
| input y: float64
| input z: float64
| input s: float64
| tensor x_2: float64
| tensor y_2: float64
| tensor z_2: float64
|
| x_2[()] = x + 0.01 * s * (y - x)  for []:
| y_2[()] = y + 0.01 * (x * (28.0 - z) - y)  for []:
| z_2[()] = z + 0.01 * (x * y - 2.5 * z)  for []:
|
| update x = x_2
| update y = y_2
| update z = z_2

return x_3, z_3, y_3
""",
        lambda rng, n: [rng.normal(size=3), np.array(10.0), _rounds(n)],
    ),
    "cholesky": Case(
        """\
program cholesky
input A: float64[N, A_1]
assert N == A_1
tensor A_5: float64[N, N]

repeat A_5 = N times with A
| program cholesky_loop
| input round: bool[k]
| input A: float64[N, A_1]
| assert N == A_1
| assert k < N
| tensor A_2: float64[N, N]
| tensor A_3: float64[N, N]
| tensor A_4: float64[N, N]
|
| A_2[k, k] = sqrt(A[k, k])  from A  for []:
| A_3[i, k] /= A_2[k, k]  from A_2  for [i]: k < i < N
| A_4[i, j] -= A_3[i, k] * A_3[j, k]  from A_3  for [i, j]: k < i < N and k < j <= i
|
| update A = A_4

return A_5
""",
        lambda rng, n: [_definite(rng.normal(size=(n, n)))],
    ),
    "nested": Case(
        """\
program nested
input u: float64[M]
input w: float64[M_2]
input x: float64[N]
assert M == M_2
tensor u_3: float64[M]

repeat u_3 = N times with u, w, x
| program outer_loop
| input round: bool[t]
| input u: float64[M]
| input w: float64[M_2]
| input x: float64[N]
| assert M == M_2
| assert t < N
| tensor v: float64[M]
| tensor v_3: float64[M]
| tensor u_2: float64[M]
|
| v[i] = u[i] * w[i]  for [i]: 0 <= i < M
|
| repeat v_3 = t + 2 times with v, w, x
| | program inner_loop
| | input round: bool[k]
| | input v: float64[M]
| | input w: float64[M_2]
| | input x: float64[N]
| | assert M == M_2
| | tensor v_2: float64[M]
| |
| | v_2[i] = sin(v[i]) * w[i] + x[0]  for [i]: 0 <= i < M
| |
| | update v = v_2
|
| u_2[i] = v_3[i] + u[i] * x[t]  for [i]: 0 <= i < M
|
| update u = u_2

return u_3
""",
        lambda rng, n: [rng.normal(size=2), 0.5 * rng.normal(size=2), 0.5 * rng.normal(size=max(n, 1))],
    ),
    "everywhere": Case(
        # Used before, inside and after; carried by two results; carried and never changed; given as an initial value
        # and as an invariant; one loop after the other.
        """\
program everywhere
input a: float64
input w: float64
input x: float64[N]
assert N >= 1
tensor before: float64
tensor a_3: float64
tensor b_3: float64
tensor c_3: float64
tensor same: float64
tensor between: float64
tensor a_6: float64
tensor y: float64

before[()] = a * w  for []:

repeat a_3, b_3, c_3, same = N times with before, before, before, w, before, x
| program first_loop
| input round: bool[t]
| input a: float64
| input b: float64
| input c: float64
| input kept: float64
| input w: float64
| input x: float64[N]
| assert t < N
| tensor a_2: float64
|
| a_2[()] = a * w + b * c * kept + x[t]  for []:
|
| update a = a_2
| update b = a_2
| update c = a
| update kept = kept

between[()] = a_3 * b_3 + c_3 * before  for []:

repeat a_6 = N - 1 times with between, same, a_3, x
| program second_loop
| input round: bool[k]
| input a: float64
| input w: float64
| input m: float64
| input x: float64[N]
| assert k < N - 1
| tensor a_2: float64
|
| a_2[()] = cos(a * w) * m + x[k + 1]  for []:
|
| update a = a_2

y[()] = a_6 * before * a * w * same + a_3 * x[0]  for []:

return y, between
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=()), rng.normal(size=max(n, 1))],
    ),
    "integers": Case(
        # The number of the place to read, and whether to add, are carried; neither has a derivative.
        """\
program integers
input y: float64
input x: float64[N]
input carrier: bool[steps]
tensor place: int64
tensor flag: bool
tensor y_3: float64
tensor place_3: int64
tensor flag_3: bool

place[()] = 0     for []:
flag[()] = False  for []:

repeat y_3, place_3, flag_3 = steps times with y, place, flag, x
| program integers_loop
| input round: bool[t]
| input y: float64
| input place: int64
| input flag: bool
| input x: float64[N]
| tensor y_2: float64
| tensor place_2: int64
| tensor flag_2: bool
|
| y_2[()] = where(flag, y * x[check(place)], y + sin(x[check(place)]))  for []:
| place_2[()] = (place * 2 + 1) % 3                                   for []:
| flag_2[()] = not flag                                               for []:
|
| update y = y_2
| update place = place_2
| update flag = flag_2

return y_3, place_3
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=3), _rounds(n)],
    ),
    "substitution": Case(
        # A triangular system, row by row.
        """\
program substitution
input L: float64[N, L_1]
input b: float64[N_2]
assert N == L_1
assert N == N_2
tensor x: float64[N]
tensor x_3: float64[N]

x[i] = 0.0  for [i]: 0 <= i < N

repeat x_3 = N times with x, L, b
| program substitution_loop
| input round: bool[r]
| input x: float64[N]
| input L: float64[N_2, L_1]
| input b: float64[N_3]
| assert N == L_1
| assert N == N_2
| assert N == N_3
| assert r < N
| tensor x_sum: float64
| tensor x_2: float64[N]
|
| x_sum[()] += L[r, j] * x[j]                from fill(0.0) for [j]: 0 <= j < r
| x_2[r] = (b[r] - x_sum) / L[r, r]  from x  for []:
|
| update x = x_2

return x_3
""",
        lambda rng, n: [rng.normal(size=(n, n)) + 3 * np.eye(n), rng.normal(size=n)],
    ),
    "overwritten": Case(
        # Cells that each round overwrites in place, of which other cells are made.
        """\
program overwritten
input u: float64[N]
input w: float64
input carrier: bool[steps]
tensor u_4: float64[N]

repeat u_4 = steps times with u, w
| program overwritten_loop
| input round: bool[t]
| input u: float64[N]
| input w: float64
| tensor u_2: float64[N]
| tensor u_3: float64[N]
|
| u_2[i] = u[i] * u[i + 1] * w    from u    for [i]: 0 < i <= -2 + N
| u_3[i] += sin(u_2[i - 1] * w)   from u_2  for [i]: 0 < i < N
|
| update u = u_3

return u_4
""",
        lambda rng, n: [0.5 * rng.normal(size=4), 0.5 * rng.normal(size=()), _rounds(n)],
    ),
    "branch": Case(
        # A loop of one round or none.
        """\
program branch
input u: float64[N]
input w: float64
tensor positive: bool
tensor u_3: float64[N]
tensor y: float64

positive[()] = w > 0.0  for []:

repeat u_3 = int64(positive) times with u, w
| program branch_loop
| input round: int64
| input u: float64[N]
| input w: float64
| tensor v: float64[N]
| tensor u_2: float64[N]
|
| v[i] = sin(u[i] * w)      for [i]: 0 <= i < N
| u_2[i] = v[i] * u[i] * v[0]  for [i]: 0 <= i < N
|
| update u = u_2

y[()] += u_3[i] * u[i]  for [i]: 0 <= i < N

return y, u_3
""",
        lambda rng, n: [rng.normal(size=2), np.array(0.7 * (-1) ** n)],
    ),
    "until": Case(
        # Data say how often the loop runs; a round reads its number.
        """\
program until
input u: float64[N]
input w: float64
tensor running: bool
tensor u_3: float64[N]
tensor running_3: bool
tensor y: float64

running[()] = w > 0.2  for []:

repeat u_3, running_3 = 4611686018427387904 times with u, w, running
| program until_loop
| input round: int64
| input u: float64[N]
| input w: float64
| input running: bool
| tensor u_2: float64[N]
| tensor total: float64
| tensor running_2: bool
|
| u_2[i] = sin(u[i]) * w + float64(round + 1) * 0.1 * u[0]  for [i]: 0 <= i < N
| total[()] += u_2[i] * u_2[i]                   for [i]: 0 <= i < N
| running_2[()] = total > 0.01 and round < 5     for []:
|
| update u = u_2
| update running = running_2
| return running

y[()] += u_3[i] * u[i] * w  for [i]: 0 <= i < N

return y, u_3
""",
        lambda rng, n: [rng.normal(size=2), np.array(0.15 + 0.1 * n)],
    ),
    "counted": Case(
        # Data say how often the loop runs, without a condition.
        """\
program counted
input y: float64
input x: float64[N]
input n: int64
tensor y_3: float64

repeat y_3 = n * 2 times with y, x
| program counted_loop
| input round: int64
| input y: float64
| input x: float64[N]
| tensor y_2: float64
|
| y_2[()] = sin(y) * x[clamp(round)]  for []:
|
| update y = y_2

return y_3
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=3), np.array(n)],
    ),
    "unrelated": Case(
        # The body knows no extent that says how many rounds there are.
        """\
program unrelated
input y: float64
input x: float64[N]
input carrier: bool[steps]
assert steps <= N
tensor y_3: float64

repeat y_3 = steps times with y, x
| program unrelated_loop
| input round: bool[t]
| input y: float64
| input x: float64[N]
| assert t < N
| tensor y_2: float64
|
| y_2[()] = y + x[t] * x[t]  for []:
|
| update y = y_2

return y_3
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=n + 2), _rounds(n)],
    ),
    "growing": Case(
        # Tensors of one round, whose extents depend on it, and a maximum that is recognized again.
        """\
program growing
input y: float64
input x: float64[N]
tensor y_3: float64

repeat y_3 = N times with y, x
| program growing_loop
| input round: bool[t]
| input y: float64
| input x: float64[N]
| assert t < N
| tensor part: float64[t + 1]
| tensor largest: float64
| tensor y_2: float64
|
| part[i] = exp(x[t - i]) * y              for [i]: 0 <= i <= t
| largest[()] >>= part[i] * x[i] + part[0]  for [i]: 0 <= i <= t
| y_2[()] = sin(largest) * part[t]         for []:
|
| update y = y_2

return y_3
""",
        lambda rng, n: [rng.normal(size=()), 0.4 * rng.normal(size=n)],
    ),
    "single precision": Case(
        """\
program single_precision
input y: float16[N]
input w: float32[M]
input carrier: bool[steps]
assert N == M
tensor y_3: float16[N]

repeat y_3 = steps times with y, w
| program single_loop
| input round: bool[t]
| input y: float16[N]
| input w: float32[M]
| assert N == M
| tensor v: float32[N]
| tensor y_2: float16[N]
|
| v[i] = y[i] * w[i]     for [i]: 0 <= i < N
| y_2[i] = v[i] * w[0]  for [i]: 0 <= i < N
|
| update y = y_2

return y_3
""",
        lambda rng, n: [rng.normal(size=3), rng.normal(size=3), _rounds(n)],
        smooth=False,
    ),
    "ring": Case(
        # A history of two cells, each overwritten by every second round.
        """\
program ring
input u: float64[2]
input w: float64
input carrier: bool[steps]
tensor u_3: float64[2]

repeat u_3 = steps times with u, w
| program ring_loop
| input round: bool[t]
| input u: float64[2]
| input w: float64
| tensor u_2: float64[2]
|
| u_2[t % 2] = sin(u[(t + 1) % 2] * w)  from u  for []:
|
| update u = u_2

return u_3
""",
        lambda rng, n: [rng.normal(size=2), rng.normal(size=()), _rounds(n)],
    ),
    "upwards": Case(
        # A history from its last row to its first, of which each round reads the first row too.
        """\
program upwards
input s: float64[N]
input w: float64
tensor s_3: float64[N]
tensor y: float64

repeat s_3 = N - 1 times with s, w
| program upwards_loop
| input round: bool[t]
| input s: float64[N]
| input w: float64
| assert t < N - 1
| tensor s_2: float64[N]
|
| s_2[N - 2 - t] = sin(s[N - 1 - t] * w) + s[0] * s[0]  from s  for []:
|
| update s = s_2

y[()] += s_3[i] * s_3[i]  for [i]: 0 <= i < N

return y
""",
        lambda rng, n: [rng.normal(size=n), rng.normal(size=())],
    ),
    "places": Case(
        # A history that is read and written at places that are data.
        """\
program places
input s: float64[M]
input p: int64[N]
input q: int64[N_2]
assert N == N_2
tensor s_3: float64[M]

repeat s_3 = N times with s, p, q
| program places_loop
| input round: bool[t]
| input s: float64[M]
| input p: int64[N]
| input q: int64[N_2]
| assert N == N_2
| assert t < N
| tensor s_2: float64[M]
|
| s_2[q[t]] += sin(s[check(p[t])])  from s  for []:
|
| update s = s_2

return s_3
""",
        lambda rng, n: [rng.normal(size=3), rng.integers(0, 3, size=n), rng.integers(0, 3, size=n)],
    ),
    "two histories": Case(
        # Rows of a history made by a loop in each round.
        """\
program two_histories
input s: float64[N, M]
input w: float64[M_2]
assert M == M_2
tensor s_3: float64[N, M]

repeat s_3 = N times with s, w
| program rows
| input round: bool[t]
| input s: float64[N, M]
| input w: float64[M_2]
| assert M == M_2
| assert t < N
| tensor v: float64
| tensor s_2: float64[N, M]
| tensor v_3: float64
| tensor s_4: float64[N, M]
|
| v[()] = s[t, 0]  for []: M > 0
|
| repeat v_3, s_2 = M times with v, s, w, round
| | program cells
| | input inner: bool[k]
| | input v: float64
| | input s: float64[N, M]
| | input w: float64[M_2]
| | input outer: bool[t]
| | assert M == M_2
| | assert k < M
| | assert t < N
| | tensor v_2: float64
| | tensor s_2: float64[N, M]
| |
| | v_2[()] = v * w[k] + sin(s[t, k])  for []:
| | s_2[t, k] = v_2 * v               from s  for []:
| |
| | update v = v_2
| | update s = s_2
|
| s_4[t, j] *= v_3  from s_2  for [j]: 0 <= j < M
|
| update s = s_4

return s_3
""",
        lambda rng, n: [rng.normal(size=(n, 2)), rng.normal(size=2)],
    ),
    "ruled": Case(
        # A derivative rule in the body, and a part without a derivative.
        """\
program ruled
input y: float64
input x: float64[N]
tensor y_4: float64

repeat y_4 = N times with y, x
| program ruled_loop
| input round: bool[t]
| input y: float64
| input x: float64[N]
| assert t < N
| tensor y_2: float64
| tensor y_3: float64
|
| y_2[()] = floor(y * 10.0)                       for []:
| y_3[()] = y_2 * x[t] + stop_gradient(y * x[t])  for []:
|
| update y = y_3
|
| pullback y_2 by y
| | program straight_through
| | input y: float64
| | input y_2: float64
| | input d_y_2: float64
| | tensor d_y: float64
| |
| | d_y[()] = 10.0 * d_y_2 * y  for []:
| |
| | return d_y

return y_4
""",
        lambda rng, n: [rng.normal(size=()), rng.normal(size=n)],
        smooth=False,
    ),
}

SMOOTH = [name for name, case in LOOPS.items() if case.smooth]
