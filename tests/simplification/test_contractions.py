"""Sums of products of several factors: a few factors at a time, in the order that is best at the sizes of the call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.lowering.lower import lower
from tcdsl.simplification.contractions import contracted
from tests.language.running_programs import program
from tests.long_variants import every
from tests.lowering.loop_interpreter import execute

rng = np.random.default_rng(0)


@op
def chain(A, B, C):
    y[i, l] += A[i, j] * B[j, k] * C[k, l]
    return y


@op
def spec(A, B, C):
    return tc.einsum("ij;jk;kl=>il", A, B, C)


@op
def taken_away(A, B, C, x):
    y = copy(x)
    y[i] -= 2.0 * A[i, j] * -B[j, k] * C[k, l] * x[l] / x[j]
    return y


@op
def triangles(A, B, C):
    y[i, l] += A[i, j] * B[j, k] * C[k, l], j <= i, k < j, B[j, k] > 0
    return y


@op
def row_sums(A, B):
    y[i] += A[i, j] * B[j, k]
    return y


@op
def outer_sum(x, z):
    t[()] += x[i] * z[j]
    return t


@op
def windows(x, w, q):
    y[i, l] += x[i + a - 1, j] * w[a, k] * q[k, j, l]
    return y


@op
def looked_up(table, ids, A, B):
    y[n, l] += table[ids[n], j] * A[j, k] * B[k, l]
    return y


@op
def scattered(ids, A, B, C):
    y = output(7, 3)
    y[ids[i], l] += A[i, j] * B[j, k] * C[k, l]
    return y


@op
def local(A, B, C):
    scale = exp(A[i, j])
    y[i, l] += scale * scale * B[j, k] * (C[k, l] + 1)
    return y


@op
def value(A, B, C):
    y[i] = 1 + sum(A[i, j] * B[j, k] * C[k, l])
    return y


@op
def rounds(A, B, x, n):
    for _ in range(n):
        x = tc.einsum("ij;jk;kl=>il", A, B, x)
    return x


def square(*shape: int) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


IDS = np.array([3, 0, 3])
PROGRAMS: dict[str, tuple[Any, list[Any]]] = {
    "chain": (chain, [square(3, 4), square(4, 5), square(5, 3)]),
    "spec": (spec, [square(3, 4), square(4, 5), square(5, 3)]),
    "taken_away": (taken_away, [square(4, 4), square(4, 4), square(4, 4), square(4)]),
    "triangles": (triangles, [square(5, 5), square(5, 5) - 1, square(5, 2)]),
    "row_sums": (row_sums, [square(3, 4), square(4, 5)]),
    "outer_sum": (outer_sum, [square(3), square(4)]),
    "windows": (windows, [square(6, 3), square(3, 4), square(4, 3, 2)]),
    "looked_up": (looked_up, [square(5, 3), IDS, square(3, 4), square(4, 2)]),
    "scattered": (scattered, [IDS, square(3, 4), square(4, 2), square(2, 3)]),
    "local": (local, [square(3, 4), square(4, 5), square(5, 3)]),
    "value": (value, [square(3, 4), square(4, 5), square(5, 3)]),
    "rounds": (rounds, [square(3, 3), square(3, 3), square(3, 2), 2]),
}


@pytest.mark.parametrize("name", every(2, PROGRAMS))
def test_values_are_those_of_one_sum(name: str) -> None:
    function, arguments = PROGRAMS[name]
    program = function.program(*arguments)
    parts = contracted(program)
    assert parts != program
    assert contracted(parts) == parts
    wanted = function.interpret(*arguments)
    np.testing.assert_allclose(function(*arguments), wanted, rtol=1e-12)
    arrays = [np.asarray(each) for each in arguments]
    if not program.repeats and name != "scattered":
        np.testing.assert_allclose(interpret(parts, arrays).outputs[0], wanted, rtol=1e-12)
    tc.check_grads(function, tuple(arguments), modes=("rev", "fwd"))


@pytest.mark.parametrize("function", [chain, spec])
def test_three_matrices_cost_what_two_products_do(function: Any) -> None:
    n = 20
    cost = function.cost(*[np.broadcast_to(0.0, (n, n))] * 3)
    assert cost.primal.operations.multiplications == 2 * n**3
    assert cost.primal.operations.additions == 2 * n**2 * (n - 1)
    # Both products again, and for each of them one product for each factor.
    assert cost.adjoint.operations.multiplications == 6 * n**3
    assert cost.tangent.operations.multiplications == 6 * n**3
    assert cost.within_bounds
    assert max(cost.primal.points, cost.adjoint.points / 3) <= 2 * n**3 + 2 * n**2


@pytest.mark.parametrize(
    ("shapes", "multiplications", "first"),
    [
        (((9, 2), (2, 9), (9, 2)), 2 * (2 * 9 * 2), "y_sum[j, l] += B[j, k] * C[k, l]"),
        (((2, 9), (9, 2), (2, 9)), 2 * (2 * 9 * 2), "y_sum[i, k] += A[i, j] * B[j, k]"),
        (((50, 40), (40, 30), (30, 1)), 40 * 30 + 50 * 40, "y_sum[j, l] += B[j, k] * C[k, l]"),
        (((1, 40), (40, 30), (30, 50)), 40 * 30 + 30 * 50, "y_sum[i, k] += A[i, j] * B[j, k]"),
    ],
)
def test_the_order_is_that_of_fewest_operations_at_the_sizes_of_the_call(
    shapes: Sequence[tuple[int, ...]], multiplications: int, first: str
) -> None:
    arrays = [square(*shape) for shape in shapes]
    assert chain.cost(*arrays).primal.operations.multiplications == multiplications
    np.testing.assert_allclose(chain(*arrays), arrays[0] @ arrays[1] @ arrays[2])
    line = next(line for line in chain.explain("passes", *arrays).splitlines() if line.startswith("    + y_sum["))
    assert first in line
    with tc.config(optimize="-contractions"):
        assert "contractions       sums of products take a few factors at a time: left out" in chain.explain("passes")
        np.testing.assert_allclose(chain(*arrays), arrays[0] @ arrays[1] @ arrays[2])


def test_a_call_of_other_sizes_has_a_program_of_its_own_if_another_order_is_best() -> None:
    @op
    def product(A, B, C):
        y[i, l] += A[i, j] * B[j, k] * C[k, l]
        return y

    gradient = tc.grad(lambda A, B, C: product(A, B, C).sum(), (0, 1, 2))
    for shapes, programs in (
        (((9, 2), (2, 9), (9, 2)), 1),
        (((19, 2), (2, 29), (29, 3)), 1),
        (((2, 9), (9, 2), (2, 9)), 2),
        (((3, 70), (70, 2), (2, 9)), 2),
        (((9, 2), (2, 9), (9, 2)), 2),
    ):
        A, B, C = (square(*shape) for shape in shapes)
        np.testing.assert_allclose(product(A, B, C), A @ B @ C)
        ones = np.ones((len(A), C.shape[1]))
        wanted = ones @ C.T @ B.T, A.T @ ones @ C.T, (A @ B).T @ ones
        for found, its in zip(gradient(A, B, C), wanted, strict=True):
            np.testing.assert_allclose(found, its)
        assert product.cache_info().programs == gradient.cache_info().programs == programs


@op
def scaled(A, B, c):
    y[i] += A[i, j] * B[j] * c[i]
    return y


@op
def bilinear(x, A, z):
    t[()] += x[i] * A[i, j] * z[j]
    return t


@op
def khatri_rao(X, B, C):
    y[i, r] += X[i, j, k] * B[j, r] * C[k, r]
    return y


@op
def in_order(A, B, C):
    y[i, l] /= A[i, j] * B[j, k] * C[k, l]
    return y


@op
def hidden(A, B, C):
    y[i, l] += A[i, j] * B[j, k] * C[k, l], (i + j + k) % 2 == 0
    return y


ONE_SUM: list[tuple[Any, list[np.ndarray]]] = [
    (scaled, [square(4, 5), square(5), square(4)]),
    (bilinear, [square(4), square(4, 5), square(5)]),
    (khatri_rao, [square(3, 4, 5), square(4, 6), square(5, 6)]),
    (in_order, [square(3, 4), square(4, 5), square(5, 3)]),
    (hidden, [square(3, 4), square(4, 5), square(5, 3)]),
]


@pytest.mark.parametrize(("function", "arrays"), ONE_SUM)
def test_what_gains_nothing_or_has_points_of_its_own_stays_one_sum(function: Any, arrays: list[np.ndarray]) -> None:
    program = function.program(*arrays)
    assert contracted(program) == program


@pytest.mark.parametrize("dtype", ["uint64", "int64"])
def test_integers_are_exact_modulo_their_range(dtype: str) -> None:
    ends = np.iinfo(dtype)
    A, B, C = (rng.integers(ends.min, ends.max, shape, dtype) for shape in ((5, 6), (6, 7), (7, 4)))
    found = chain(A, B, C)
    np.testing.assert_array_equal(found, np.einsum("ij,jk,kl->il", A, B, C))
    np.testing.assert_array_equal(found, chain.interpret(A, B, C))


def test_products_that_wrap_before_they_are_summed_stay_in_one_sum() -> None:
    A, B, C = (rng.integers(-128, 127, shape, "int8") for shape in ((5, 6), (6, 7), (7, 4)))
    found = chain(A, B, C)
    np.testing.assert_array_equal(found, np.einsum("ijkl->il", np.einsum("ij,jk,kl->ijkl", A, B, C), dtype="int64"))


def test_half_precision_rounds_once() -> None:
    A, B, C = (np.full(shape, 40, "float16") for shape in ((8, 40), (40, 40), (40, 8)))
    C = C / np.float16(400)
    np.testing.assert_allclose(chain(A, B, C), chain.interpret(A, B, C), rtol=2e-3)  # A B is beyond its range


def test_infinities_and_nan_are_those_of_products_of_two() -> None:
    special = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        for seed in range(30):
            draw = np.random.default_rng(seed).choice
            A, B, C = (draw(special, (4, 4), p=[0.1, 0.1, 0.4, 0.3, 0.05, 0.03, 0.02]) for _ in "ABC")
            found, wanted = chain(A, B, C), chain.interpret(A, B, C)
            np.testing.assert_allclose(found, A @ B @ C)
            # What one sum makes finite is finite, and the infinities that it finds are the same ones.
            np.testing.assert_allclose(found[~np.isnan(wanted)], wanted[~np.isnan(wanted)])


def test_a_sum_over_nothing_is_zero_whatever_it_would_meet() -> None:
    A, B, C = np.ones((4, 0)), np.ones((0, 4)), np.full((4, 4), np.inf)
    np.testing.assert_array_equal(chain(A, B, C), np.zeros((4, 4)))
    np.testing.assert_array_equal(chain(C, B.T, A.T), np.zeros((4, 4)))
    np.testing.assert_array_equal(outer_sum(A[0], C[0]), 0)
    np.testing.assert_array_equal(row_sums(C, A), np.zeros(4))


def test_many_matrices_take_the_best_order() -> None:
    @op
    def product(A, B, C, D, E):
        y[a, f] += A[a, b] * B[b, c] * C[c, d] * D[d, e] * E[e, f]
        return y

    sizes = [30, 35, 15, 5, 10, 20]
    arrays = [square(*shape) for shape in itertools.pairwise(sizes)]
    np.testing.assert_allclose(product(*arrays), np.linalg.multi_dot(arrays))
    # ((A (B C)) (D E)), as in Cormen, Leiserson, Rivest, Stein, "Introduction to Algorithms", section 14.2
    best = 35 * 15 * 5 + 30 * 35 * 5 + 5 * 10 * 20 + 30 * 5 * 20
    assert product.cost(*arrays).primal.operations.multiplications == best


@pytest.mark.parametrize("factor", [" / n[p]", " * log(n[p])", " * w[p]", " * w[p] * w[p] * v[r]"])
def test_factors_are_not_met_where_no_term_passes_the_conditions(factor: str) -> None:
    # Where n is 0 the factors are infinite or not a number.
    f = program(f"y[p, r] += x[j, l]{factor}, j < n[p], l < n[r]\nreturn y", "x, n, w, v")
    n, w = np.array([0, 2, 3]), np.array([np.nan, 2.0, 3.0])
    x, v = np.arange(25.0).reshape(5, 5), np.array([np.inf, 0.5, 1.0])
    wanted = f.interpret(x, n, w, v)
    assert (wanted[0] == 0).all()
    assert (wanted[:, 0] == 0).all()
    assert "y_any" in str(f.explain("passes", x, n, w, v))
    np.testing.assert_allclose(f(x, n, w, v), wanted)
    found = tc.grad(lambda x, w: f(x, n, w, v).sum(), argnums=(0, 1))(x, w)
    assert all(np.isfinite(each).all() for each in found)


@st.composite
def products(draw: st.DrawFn) -> tuple[list[str], str, list[np.ndarray]]:
    sizes = {letter: draw(st.integers(0, 5)) for letter in "ijklm"}
    names = draw(st.lists(st.text("ijklm", min_size=1, max_size=3), min_size=2, max_size=3))
    used = sorted(set("".join(names)))
    result = "".join(draw(st.lists(st.sampled_from(used), max_size=2, unique=True)))
    values = np.random.default_rng(draw(st.integers(0, 99)))
    return names, result, [values.integers(-9, 9, [sizes[letter] for letter in text]) for text in names]


@given(products())
@settings(max_examples=30, deadline=None)
def test_any_product_in_any_order(case: tuple[list[str], str, list[np.ndarray]]) -> None:
    names, result, arrays = case
    function = op_of(";".join(names) + "=>" + result)
    program = function.program(*arrays)
    wanted = np.einsum(",".join(names) + "->" + result, *arrays)
    for number in range(3):
        parts = contracted(program, lambda points, number=number: number % len(points))  # type: ignore[misc]
        np.testing.assert_array_equal(interpret(parts, arrays).outputs[0], wanted)
        np.testing.assert_array_equal(execute(lower(parts), arrays).outputs[0], wanted)


def op_of(text: str) -> Any:
    @op
    def product(*arrays):
        return tc.einsum(text, *arrays)

    return product
