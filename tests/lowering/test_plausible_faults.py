"""Programs whose results change with plausible faults of single passes, run through lowering and compared with NumPy.

Each was found by putting a fault into a pass that the other tests did not notice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl import cd, op
from tcdsl.autodiff import gradient, tangent
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import lifetimes
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.lower import lower
from tcdsl.simplification import simplify
from tests.golden_texts import Golden
from tests.lowering.loop_interpreter import execute
from tests.lowering.placement import place_temporaries
from tests.lowering.test_lowering import shuffled

X = np.array([0.3, -1.1, 2.7, 0.0, 1.9, -0.4])


def staged(function: Any, *arrays: np.ndarray) -> Program:
    return function.staging.entry(function.signature.call(arrays, {}))[0].executable.program


def run(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """Outputs and updates of the lowered program: the same in any order, without fusion, and simplified before."""
    found = []
    simplified = simplify(program)
    for given, order, optimize in (
        (program, None, True),
        (program, shuffled, True),
        (program, None, False),
        (simplified, None, True),
    ):
        kernel = lower(given, optimize=optimize)
        done = execute(kernel, [array.copy() for array in arrays], order)
        found.append([*done.outputs, *(done.inputs[name] for name, _ in program.updates)])
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-14)
    return found[0]


def check(function: Any, *arrays: np.ndarray, wanted: tuple[Any, ...]) -> None:
    made = run(staged(function, *arrays), *arrays)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=function.__name__)


def derivative(function: Any, *arrays: np.ndarray, wrt: int = 0) -> np.ndarray:
    program = staged(function, *arrays)
    adjoint = gradient(program, [program.inputs[wrt].name], False)
    return run(simplify(adjoint), *arrays)[0]


def test_half_precision_cells_round_what_is_stored_in_them() -> None:
    @op
    def f(x):
        (N,) = x.shape
        t: float16[N]
        t[i] = x[i] * 1.0009765625
        y: float32[N]
        y[i] = t[i] * 3
        z[i] = x[i] * 1.0009765625
        return y, z

    x = np.linspace(0.1, 2.0, 50).astype("float32")
    t = (x * np.float32(1.0009765625)).astype("float16")
    wanted = t.astype("float32") * np.float32(3)
    assert (wanted != x * np.float32(1.0009765625) * np.float32(3)).any()
    for made in (run(staged(f, x), x), f(x)):
        np.testing.assert_array_equal(made[0], wanted)
        np.testing.assert_array_equal(made[1], x * np.float32(1.0009765625))


def test_a_rounded_result_is_not_the_derivative() -> None:
    @op
    def f(x):
        (N,) = x.shape
        y: float16[N]
        y[i] = exp(x[i])
        total[()] += float32(y[i])
        return total

    x = np.linspace(-1.0, 1.0, 9).astype("float32")
    np.testing.assert_allclose(derivative(f, x), np.exp(x), rtol=1e-6)
    forward, x = tangent(staged(f, x), ["x"]), np.linspace(-1.0, 1.0, 50).astype("float32")
    steps = (3 * np.exp(x)).astype("float16").astype("float32")
    np.testing.assert_allclose(run(forward, x, np.full_like(x, 3))[-1], steps.sum(), rtol=1e-6)
    assert abs((3 * np.exp(x).astype("float16")).astype("float32").sum() - steps.sum()) > 1e-5 * steps.sum()


def test_a_chain_begins_with_a_store_into_some_cells() -> None:
    @op
    def f(x, w):
        (N,) = x.shape
        y: real[N]
        y[i] = x[i] * 2, i >= 2
        y[i] += w[i]
        y[i] += x[i] * w[i]
        z: real[N]
        z[i + 1] = x[i]
        z[i] -= w[i]
        z[i] += x[i + 1]
        u: real[N]
        u[i] = x[i], x[i] > 0
        u[i] += w[i]
        u[i] += x[i] * 2
        return y, z, u

    @cd
    def g(a, x, w):
        a[i] = x[i], i >= 2
        a[i] += w[i]
        a[i] += x[i] * 4

    w = X[::-1] + 0.5
    y = w + X * w
    y[2:] += 2 * X[2:]
    z = -w
    z[1:] += X[:-1]
    z[:-1] += X[1:]
    check(f, X, w, wanted=(y, z, np.maximum(X, 0) + w + 2 * X))
    a = np.ones(6)
    a[2:] = X[2:]
    check(g, np.ones(6), X, w, wanted=(a + w + X * 4,))


def test_what_neighbours_read_is_not_updated_before() -> None:
    @cd
    def f(y, x):
        y[i, k] += x[i - 1, k]
        x[i, k] = x[i, k] * 2 + y[i, k]
        x[i, k] += y[i - 1, k]

    @cd
    def g(y, x):
        y[i] += x[i + 1, k] * x[i, k]
        x[i, k] += 1.0

    x, y = np.arange(12.0).reshape(4, 3), np.ones((4, 3))
    after = y.copy()
    after[1:] += x[:-1]
    moved = x * 2 + after
    moved[1:] += after[:-1]
    check(f, y, x, wanted=(after, moved))
    sums = np.ones(4)
    sums[:-1] += (x[1:] * x[:-1]).sum(axis=1)
    check(g, np.ones(4), x, wanted=(sums, x + 1))


def lives_apart(kernel: Kernel, *arrays: np.ndarray) -> None:
    """What lies in the same memory is never needed together, and what is copied at the end is there until then."""
    sizes = bind_sizes(kernel.program, [array.shape for array in arrays])
    (offsets, _), lives = place_temporaries(kernel, sizes), lifetimes(kernel)
    bytes_of = {each.name: 8 * int(np.prod([bound(size, sizes) for size in each.shape])) for each in kernel.buffers}
    names = sorted(offsets, key=offsets.__getitem__)
    for one in names:
        for other in names:
            together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
            if one != other and together:
                first, second = sorted((one, other), key=offsets.__getitem__)
                assert offsets[first] + bytes_of[first] <= offsets[second]
    for _, source in kernel.updates:
        assert lives[source][1] == len(kernel.nests)


def bound(size: Any, sizes: dict[str, int]) -> int:
    from tcdsl.ir.sizes.size_binding import evaluate_size

    return evaluate_size(size, sizes)


def test_updates_that_are_computed_aside_live_until_they_are_copied() -> None:
    @cd
    def f(x, w, s, u, ids):
        t = output(x.shape[0])
        t[i] = x[x.shape[0] - 1 - i] * 2
        x[i] = t[i] + w[ids[i]]
        s[i] = exp(x[i] + x[x.shape[0] - 1 - i])
        u[i] = s[x.shape[0] - 1 - i] + s[i]
        w[i] = u[i] + u[x.shape[0] - 1 - i]

    ids = np.array([1, 0, 3, 3, 5, 2])
    w, s, u = X * 0.5, np.zeros(6), np.zeros(6)
    x = X[::-1] * 2 + w[ids]
    s = np.exp(x + x[::-1])
    u = s[::-1] + s
    arrays = (X, w, np.zeros(6), np.zeros(6), ids)
    check(f, *arrays, wanted=(x, u + u[::-1], s, u))
    kernel = lower(staged(f, *arrays))
    assert kernel.updates
    lives_apart(kernel, *arrays)
    copies = [array.copy() for array in arrays]
    f(*copies)
    for made, wanted in zip(copies, (x, u + u[::-1], s, u), strict=False):
        np.testing.assert_allclose(made, wanted)


def test_a_constant_sum_leaves_the_cells_beyond_its_range() -> None:
    @op
    def f(x):
        (N,) = x.shape
        t: real[N]
        t[i] += 2.0, i < 3
        s: real[N]
        s[i] = sum(1.0 for k in range(4)), i < 2
        v[i] = 1.0, i < N
        v[i] += 2.0, i < 2
        y[i] = t[i] * x[i] + s[i] + v[i]
        return y

    t, s, v = np.zeros(6), np.zeros(6), np.ones(6)
    t[:3], s[:2], v[:2] = 2, 4, 3
    check(f, X, wanted=(t * X + s + v,))


def test_a_gate_asks_all_values_but_the_last() -> None:
    @op
    def f(x):
        y: real[2]
        assign(y[i], "=?/", x[i, k])
        total[()] += y[i] * (i + 1)
        return total

    x = np.array([[0.5, 1.0, -2.0], [0.5, -1.0, 2.0]])
    wanted = np.array([[0, 0, 1.0], [0, 0, 0]])
    np.testing.assert_array_equal(derivative(f, x), wanted)


def test_nan_fails_every_condition_backward_too() -> None:
    @op
    def f(x):
        total[()] += x[i] * x[i], not (x[i] < 0.5)
        total[()] += x[i] * 3 if x[i] >= 1.0 else x[i] * 5
        other[()] += x[i] * 7, x[i] > 0
        total[()] += other
        return total

    @op
    def g(x):
        y[i] = x[i] * 2 if not (x[i] <= 0.0) else x[i] * 4
        y[i] += x[i] * 16, not (x[i] > 1.0), x[i] < 9
        total[()] += y[i]
        return total

    x = np.array([np.nan, 0.2, 0.7, 3.0, -1.0])
    with np.errstate(invalid="ignore"):
        wanted = np.where(x < 0.5, 0, 2 * x) + np.where(x >= 1, 3, 5) + 7 * (x > 0)
        np.testing.assert_array_equal(derivative(f, x), wanted)
        np.testing.assert_array_equal(derivative(g, x), np.where(x <= 0, 4, 2) + 16.0 * (~(x > 1.0) & (x < 9)))


def test_a_sparse_tensor_keeps_what_it_starts_from() -> None:
    @op
    def f(x):
        (N,) = x.shape
        a: real[N, N]
        a[i, j] = 3.0
        a[i, i] += x[i]
        b: real[N, N]
        b[i, i] *= x[i]
        y[i] = a[i, i] + a[i, N - 1 - i] * b[i, i] + b[0, i]
        s[i] += a[i, j] * b[j, i]
        return y, s

    N = len(X)
    a, b = np.full((N, N), 3.0) + np.diag(X), np.ones((N, N))
    b[np.diag_indices(N)] = X
    y = np.diag(a) + a[np.arange(N), N - 1 - np.arange(N)] * np.diag(b) + b[0]
    check(f, X, wanted=(y, (a * b.T).sum(axis=1)))


def test_stores_whose_parts_are_used_stay_apart() -> None:
    @cd
    def f(y, g):
        y[2] += g[0]
        y[3] += g[0]
        t = y[2] * 1.0
        y[4] += g[0]
        g[1] = t

    @op
    def h(g):
        d: real[6]
        d[2] += g[0]
        c = d
        d[3] += g[0]
        d[4] += g[0]
        return c, d

    y, g = np.arange(6.0), np.array([0.5, 7.0])
    check(f, y, g, wanted=([0, 1, 2.5, 3.5, 4.5, 5], [0.5, 2.5]))
    check(h, g, wanted=([0, 0, 0.5, 0, 0, 0], [0, 0, 0.5, 0.5, 0.5, 0]))


def test_a_long_sum_into_short_rows_keeps_earlier_cells() -> None:
    text = """
        input e: float64[40, 5]
        input h: float64[40, 6]
        input d: float64[6, 5]
        tensor d_2: float64[6, 5]
        tensor c: float64[6, 5]
        d_2[k, j] += e[i, j] * h[i, k]  from d  for [k, j, i]: 0 <= k < 6 and 0 <= j < 5 and 0 <= i < 40
        c[k, j] += e[i, j] * h[i, k]  for [k, j, i]: 0 <= k < 6 and 0 <= j < 5 and 0 <= i < 40
        update d = d_2
        return c
    """
    from tcdsl.ir.text.parser import parse_program

    program = parse_program("program p\n" + "\n".join(line.strip() for line in text.splitlines()))
    generator = np.random.default_rng(0)
    e, h, d = (generator.integers(-8, 9, shape).astype(float) for shape in ((40, 5), (40, 6), (6, 5)))
    c, updated = run(program, e, h, d)
    np.testing.assert_array_equal(c, h.T @ e)
    np.testing.assert_array_equal(updated, d + h.T @ e)
    # Several terms at a time, for what starts from earlier cells too.
    assert format_kernel(lower(program)).count(" by ") >= 2


def test_the_interior_of_a_window_is_written_out(golden: Golden) -> None:
    @op
    def f(x):
        N, M = x.shape
        y: real[N, M]
        y[i, j] += x[i + k - 1, j + l - 1] * (k + 2 * l), k < 3, l < 3
        return y

    golden("lowering/window_interior", format_kernel(lower(staged(f, np.ones((5, 6))))))


def test_a_size_that_may_be_negative_is_not_taken_for_an_extent() -> None:
    # The range of i depends on N * max(-M, -2), which is negative: taken for an extent it lost a lower bound.
    @op
    def f(A, B, D):
        N = A.shape[0]
        T[()] >>= max(A[clamp(i + 2), 1 - j] * B[j * N + i], D[j] * i)
        return T

    A, B, D = np.array([[-3, -2], [3, 0], [-1, 2]]), np.array([-2, 2, -3, 0, -3, -3]), np.array([0, -3])
    assert f.interpret(A, B, D) == 4
    assert f(A, B, D) == 4
