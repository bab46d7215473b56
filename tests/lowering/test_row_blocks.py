"""Attention, in any spelling and layout, goes through blocks of rows: bit for bit what each statement gives alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.lower import lower
from tests.long_variants import every, few
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(28)

Arrays = list[np.ndarray]


@op
def attention(Q, K, V):
    S[b, h, i, j] += Q[b, h, i, d] * K[b, h, j, d]
    top[b, h, i] >>= S[b, h, i, j]
    E[b, h, i, j] = exp((S[b, h, i, j] - top[b, h, i]) * 0.125)
    total[b, h, i] += E[b, h, i, j]
    O[b, h, i, d] += E[b, h, i, j] * V[b, h, j, d]
    Y[b, h, i, d] = O[b, h, i, d] / total[b, h, i]
    return Y


@op
def of_matrices(Q, K, V):
    S = Q @ K.T * 0.125
    E = np.exp(S - np.max(S, axis=1, keepdims=True))
    return E / np.sum(E, axis=1, keepdims=True) @ V


@op
def einsums(Q, K, V):
    S["bihd;bjhd=>bhij"] += Q * K
    top["bhij=>bhi"] >>= S
    E[b, h, i, j] = exp((S[b, h, i, j] - top[b, h, i]) * 0.125)
    total["bhij=>bhi"] += E
    O["bhij;bjhd=>bihd"] += E * V
    Y[b, i, h, d] = O[b, i, h, d] / total[b, h, i]
    return Y


@op
def causal(Q, K, V):
    S[i, j] += Q[i, d] * K[j, d]
    M[i, j] = where(j <= i, S[i, j] * 0.125, -inf)
    top[i] >>= M[i, j]
    E[i, j] = exp(M[i, j] - top[i])
    total[i] += E[i, j]
    P[i, j] = E[i, j] / total[i]
    O[i, d] += P[i, j] * V[j, d]
    return O


@op
def masked(Q, K, V, mask):
    S[i, j] += Q[i, d] * K[j, d]
    top[i] >>= where(mask[i, j], S[i, j], -inf)
    E[i, j] = where(mask[i, j], exp(S[i, j] - top[i]), 0.0)
    total[i] += E[i, j]
    O[i, d] += E[i, j] * V[j, d]
    Y[i, d] = O[i, d] / total[i]
    return Y


@op
def of_pixels(Q, K, V):
    """One head of keys for several axes of queries."""
    S[y, x, j] += Q[y, x, d] * K[j, d]
    top[y, x] >>= S[y, x, j]
    E[y, x, j] = exp(S[y, x, j] - top[y, x])
    total[y, x] += E[y, x, j]
    O[y, x, d] += E[y, x, j] * V[j, d]
    Y[y, x, d] = O[y, x, d] / total[y, x]
    return Y


@op
def normalized(Q, K, V):
    """Without exponentials, and in integers."""
    S[i, j] += Q[i, d] * K[j, d]
    total[i] += abs(S[i, j])
    O[i, d] += S[i, j] * V[j, d]
    Y[i, d] = O[i, d] + total[i]
    return Y


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def wanted_causal(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    scores = Q @ K.T * 0.125
    return softmax(np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)) @ V


def wanted_normalized(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    S = Q @ K.T
    return S @ V + abs(S).sum(1, keepdims=True)


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def of_integers(*shape: int) -> np.ndarray:
    return RNG.integers(-50, 50, shape)


# Rows, columns and terms around the edges of tiles, panels and blocks; too few for tiles; none.
SIZES = ((24, 16, 4), (49, 65, 3), (97, 33, 17), (6, 40, 2), (23, 15, 1), (30, 1, 3), (1, 20, 5), (0, 18, 2))


def three(m: int, n: int, d: int) -> Arrays:
    return [real(m, d), real(n, d), real(n, 3)]


CASES: dict[str, tuple[Any, Callable[..., np.ndarray], list[Arrays]]] = {
    "attention": (
        attention,
        lambda Q, K, V: softmax(Q @ K.swapaxes(2, 3) * 0.125) @ V,
        [[real(2, 3, m, d), real(2, 3, n, d), real(2, 3, n, 7)] for m, n, d in SIZES],
    ),
    "matrices": (of_matrices, lambda Q, K, V: softmax(Q @ K.T * 0.125) @ V, [three(*size) for size in SIZES]),
    "einsums": (
        einsums,
        lambda Q, K, V: np.einsum("bhij,bjhd->bihd", softmax(np.einsum("bihd,bjhd->bhij", Q, K) * 0.125), V),
        [[real(2, m, 3, 4), real(2, n, 3, 4), real(2, n, 3, 5)] for m, n in ((50, 17), (7, 9))],
    ),
    "causal": (causal, wanted_causal, [three(m, n, d) for m, n, d in SIZES]),
    "masked": (
        masked,
        lambda Q, K, V, mask: softmax(np.where(mask, Q @ K.T, -np.inf)) @ V,
        [[*three(m, n, d), np.add.outer(np.arange(m), np.arange(n)) % 3 != 1] for m, n, d in SIZES[:4]],
    ),
    "pixels": (
        of_pixels,
        lambda Q, K, V: softmax(Q @ K.T) @ V,
        [[real(5, 25, 4), real(18, 4), real(18, 3)], [real(60, 2, 4), real(18, 4), real(18, 3)]],
    ),
    "normalized": (
        normalized,
        wanted_normalized,
        [[of_integers(50, 4), of_integers(18, 4), of_integers(18, 6)], three(50, 18, 4)],
    ),
}  # fmt: skip


def in_rows(kernel: Kernel) -> bool:
    return any(nest.name.startswith("rows_") for nest in kernel.nests)


def alone(function: Any, *arrays: np.ndarray) -> Any:
    with tc.config(optimize="-row_blocks"):
        return function(*arrays)


@pytest.mark.parametrize("name", every(2, CASES))
def test_blocks_change_no_bit(name: str) -> None:
    function, wanted, given = CASES[name]
    assert in_rows(lower(staged(function, *given[0])))
    for arrays in given:
        found = function(*arrays)
        np.testing.assert_array_equal(found, alone(function, *arrays))
        np.testing.assert_allclose(found, wanted(*arrays), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", few(CASES, {"attention", "normalized", "causal", "masked", "matrices"}))
def test_loops_for_any_machine(name: str) -> None:
    function, wanted, (arrays, *_) = CASES[name]
    # So little is near that a block has few rows.
    for machine in (Machine(), Machine(32, 32, near_bytes=2000)):
        kernel = lower(staged(function, *arrays), machine=machine)
        np.testing.assert_allclose(execute(kernel, arrays).outputs[0], wanted(*arrays), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["attention", "causal"])
def test_gradients_go_through_blocks_too(name: str) -> None:
    function, _, (arrays, *_) = CASES[name]
    weights = real(*function(*arrays).shape)
    _, pullback = tc.vjp(function, *arrays)
    found = pullback(weights)
    with tc.config(optimize="-row_blocks"):
        _, pullback = tc.vjp(function, *arrays)
        for mine, its in zip(found, pullback(weights), strict=True):
            np.testing.assert_array_equal(mine, its)

    @op
    def both(Q, K, V, C):
        Y, back = tc.vjp(function, Q, K, V)
        return Y, *back(C)

    assert in_rows(lower(staged(both, *arrays, weights)))
    for mine, its in zip(both(*arrays, weights)[1:], found, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10, atol=1e-12)


def test_there_is_no_tensor_of_scores() -> None:
    arrays = [real(2, 3, 1500, 8), real(2, 3, 1400, 8), real(2, 3, 1400, 8)]
    kernel = lower(staged(attention, *arrays))
    sizes = bind_sizes(kernel.program, [array.shape for array in arrays])
    scores = 8 * 2 * 3 * 1500 * 1400
    assert peak_bytes(kernel, sizes).temporaries < scores / 4
    without = lower(staged(attention, *arrays), optimize="-row_blocks")
    assert peak_bytes(without, bind_sizes(without.program, [array.shape for array in arrays])).temporaries > scores


def test_scores_that_are_needed_stay() -> None:
    @op
    def both(Q, K, V):
        S[i, j] += Q[i, d] * K[j, d]
        top[i] >>= S[i, j]
        E[i, j] = exp(S[i, j] - top[i])
        total[i] += E[i, j]
        O[i, d] += E[i, j] * V[j, d]
        return O, total, E

    Q, K, V = three(40, 20, 5)
    O, total, E = both(Q, K, V)
    np.testing.assert_allclose(E, np.exp(Q @ K.T - (Q @ K.T).max(1, keepdims=True)), rtol=1e-10)
    np.testing.assert_allclose(O, E @ V, rtol=1e-10)
    np.testing.assert_allclose(total, E.sum(1), rtol=1e-10)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_rows_that_are_not_finite(value: float) -> None:
    Q, K, V = three(60, 30, 5)
    Q[7] = value
    K[3, 2] = value
    with np.errstate(invalid="ignore"):
        found = of_matrices(Q, K, V)
        np.testing.assert_array_equal(found, alone(of_matrices, Q, K, V))
        np.testing.assert_allclose(found, of_matrices.interpret(Q, K, V), rtol=1e-10, equal_nan=True)


def test_equal_layers_have_equal_nests() -> None:
    @op
    def twice(Q, K, V):
        S[i, j] += Q[i, d] * K[j, d]
        top[i] >>= S[i, j]
        E[i, j] = exp(S[i, j] - top[i])
        O[i, d] += E[i, j] * V[j, d]
        S2[i, j] += O[i, d] * K[j, d]
        top2[i] >>= S2[i, j]
        E2[i, j] = exp(S2[i, j] - top2[i])
        O2[i, d] += E2[i, j] * V[j, d]
        return O2

    Q, K, V = real(30, 5), real(20, 5), real(20, 5)
    np.testing.assert_array_equal(twice(Q, K, V), alone(twice, Q, K, V))
    np.testing.assert_allclose(twice(Q, K, V), twice.interpret(Q, K, V), rtol=1e-10)


def test_sizes_that_are_known() -> None:
    @op
    def known(Q: real[200, 64], K: real[300, 64], V: real[300, 32]):
        S[i, j] += Q[i, d] * K[j, d]
        top[i] >>= S[i, j]
        E[i, j] = exp(S[i, j] - top[i])
        O[i, d] += E[i, j] * V[j, d]
        return O

    arrays = [real(200, 64), real(300, 64), real(300, 32)]
    assert in_rows(lower(staged(known, *arrays)))
    np.testing.assert_array_equal(known(*arrays), alone(known, *arrays))


def test_rows_whose_mask_leaves_nothing() -> None:
    arrays = [*three(60, 30, 5), np.arange(60 * 30).reshape(60, 30) >= 90]
    np.testing.assert_array_equal(masked(*arrays), alone(masked, *arrays))
    assert np.isnan(masked(*arrays)[:3]).all()


def test_threads_change_no_bit() -> None:
    arrays = [real(1, 2, 500, 20), real(1, 2, 300, 20), real(1, 2, 300, 20)]
    with tc.config(threads=1):
        one = attention(*arrays)
    with tc.config(threads=2):
        np.testing.assert_array_equal(attention(*arrays), one)


@pytest.mark.parametrize("layout", ["reversed", "transposed", "strided"])
def test_any_layout_of_arrays(layout: str) -> None:
    def laid_out(array: np.ndarray) -> np.ndarray:
        if layout == "reversed":
            return array[::-1].copy()[::-1]
        return array.T.copy().T if layout == "transposed" else np.repeat(array, 2, axis=1)[:, ::2]

    arrays = three(50, 40, 6)
    np.testing.assert_array_equal(of_matrices(*map(laid_out, arrays)), of_matrices(*arrays))


def test_the_schedule_says_what_goes_together_and_why_not() -> None:
    Q, K, V = three(30, 20, 5)
    shown = str(of_matrices.explain("schedule", Q, K, V))
    assert "blocks of rows of\n" in shown
    assert "a block of rows goes through all statements" in shown
    assert "else     where blocks of rows do not pay" in shown

    @op
    def layers(X, A, B):
        H = np.maximum(X @ A, 0.0)
        return H @ B

    text = str(layers.explain("schedule", Q, K.T, K))
    assert "blocks of rows have no rows of their own that something adds up" in text

    @op
    def across(Q, K, V):
        S[i, j] += Q[i, d] * K[j, d]
        top[j] >>= S[i, j]
        E[i, j] = exp(S[i, j] - top[j])
        O[i, d] += E[i, j] * V[j, d]
        return O

    text = str(across.explain("schedule", Q, K, V))
    assert "top does not go by rows" in text
    assert "rows_" not in text
