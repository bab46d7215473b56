"""Gradients of layers against PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.autodiff.programs import check, program, pulled_back
from tests.jax_functions import compiled

RNG = np.random.default_rng(3)

SOFTMAX = """\
m[i] >>= x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
e[i, j] = exp(x[i, j] - m[i])  for [i, j]: 0 <= i < N and 0 <= j < M
s[i] += e[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
y[i, j] = e[i, j] / s[i]  for [i, j]: 0 <= i < N and 0 <= j < M"""

LAYER_NORM = """\
mu[i] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
mean[i] = mu[i] / float64(M)  for [i]: 0 <= i < N
v[i] += square(x[i, j] - mean[i]) / float64(M)  for [i, j]: 0 <= i < N and 0 <= j < M
y[i, j] = (x[i, j] - mean[i]) * recip_sqrt(v[i] + 1e-05) * w[j] + b[j]  for [i, j]: 0 <= i < N and 0 <= j < M"""


def convolution(stride: int, padding: int, dilation: int) -> str:
    row, column = (f"{stride}*{v} + {dilation}*{k} - {padding}" for v, k in (("h", "i"), ("w", "j")))
    ranges = "0 <= b < B and 0 <= o < O and 0 <= c < C and 0 <= i < 3 and 0 <= j < 3"
    inside = f"0 <= {row} < H and 0 <= {column} < W"
    return (
        f"y[b, o, h, w] += x[b, c, {row}, {column}] * k[o, c, i, j]"
        f" for [b, o, h, w, c, i, j]: {ranges} and 0 <= h < P and 0 <= w < Q and {inside}"
    )


def conv(stride: int, padding: int, dilation: int) -> Any:
    height = f"(H + {2 * padding} - {2 * dilation} - 1) // {stride} + 1"
    width = height.replace("H", "W")
    body = convolution(stride, padding, dilation).replace("< P", f"< {height}").replace("< Q", f"< {width}")
    return program("x: float64[B, C, H, W]; k: float64[O, C, 3, 3]", f"y: float64[B, O, {height}, {width}]", body)


def torch_gradients(function: Callable[..., Any], inputs: list[np.ndarray], seed: np.ndarray) -> list[np.ndarray]:
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(array, requires_grad=True) for array in inputs]
    function(torch, *leaves).backward(torch.tensor(seed))
    return [leaf.grad.numpy() for leaf in leaves]


def agree(made: Any, function: Callable[..., Any], inputs: list[np.ndarray], shape: tuple[int, ...]) -> None:
    seed = RNG.standard_normal(shape)
    expected = torch_gradients(function, inputs, seed)
    found = pulled_back(made, inputs, [seed], [tensor.name for tensor in made.inputs])
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (1, 1, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1)])
def test_convolutions(stride: int, padding: int, dilation: int) -> None:
    inputs = [RNG.random((2, 2, 7, 6)), RNG.random((3, 2, 3, 3))]
    shape = (2, 3, *((n + 2 * padding - 2 * dilation - 1) // stride + 1 for n in (7, 6)))

    def function(torch: Any, x: Any, k: Any) -> Any:
        return torch.nn.functional.conv2d(x, k, stride=stride, padding=padding, dilation=dilation)

    agree(conv(stride, padding, dilation), function, inputs, shape)


def test_max_pooling() -> None:
    window = "0 <= h < H // 2 and 0 <= w < W // 2 and 0 <= i < 2 and 0 <= j < 2"
    body = f"y[h, w] >>= x[2*h + i, 2*w + j] for [h, w, i, j]: {window}"
    made = program("x: float64[H, W]", "y: float64[H // 2, W // 2]", body)
    agree(made, lambda torch, x: torch.nn.functional.max_pool2d(x[None], 2)[0], [RNG.random((7, 6))], (3, 3))


def test_softmax() -> None:
    made = program("x: float64[N, M]", "m: float64[N]; e: float64[N, M]; s: float64[N]; y: float64[N, M]", SOFTMAX)
    x = RNG.standard_normal((3, 5))
    agree(made, lambda torch, x: torch.softmax(x, 1), [x], (3, 5))
    x[1, :2] = 4.0
    agree(made, lambda torch, x: torch.softmax(x, 1), [x], (3, 5))
    check(made, RNG.standard_normal((3, 5)))
    check(made, RNG.standard_normal((3, 1)), order=1)


def test_layer_norm() -> None:
    made = program(
        "x: float64[N, M]; w: float64[M]; b: float64[M]",
        "mu: float64[N]; mean: float64[N]; v: float64[N]; y: float64[N, M]",
        LAYER_NORM,
    )
    inputs = [RNG.random((3, 5)), RNG.random(5), RNG.random(5)]
    agree(made, lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (5,), w, b), inputs, (3, 5))
    check(made, *inputs)


def test_products() -> None:
    made = program("x: float64[N, M]", "y: float64[N]", "y[i] *= x[i, j] for [i, j]: 0 <= i < N and 0 <= j < M")
    x = RNG.standard_normal((4, 3))
    x[1, 0] = x[2, 0] = x[2, 2] = 0
    agree(made, lambda torch, x: torch.prod(x, 1), [x], (4,))


def test_second_derivatives_of_products_with_zeros() -> None:
    jax = pytest.importorskip("jax")
    from tcdsl.autodiff import adjoint
    from tests.autodiff.programs import values

    made = program("x: float64[N]", "y: float64", "y[()] *= x[i] for [i]: 0 <= i < N")
    twice = adjoint(adjoint(made, ["x"], keep_outputs=False), ["x"], keep_outputs=False)
    hessian_of_product = compiled(jax.hessian(jax.numpy.prod))
    for x in ([2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]):
        with jax.enable_x64(True):
            hessian = np.asarray(hessian_of_product(np.array(x)))
        found = [values(twice, x, 1.0, row)[0] for row in np.eye(3)]
        np.testing.assert_allclose(found, hessian, atol=1e-12)


def test_embedding_and_attention_scores() -> None:
    body = """\
e[i, d] = t[ids[i], d]  for [i, d]: 0 <= i < L and 0 <= d < D
y[i, j] += e[i, d] * e[j, d]  for [i, j, d]: 0 <= i < L and 0 <= j <= i and 0 <= d < D"""
    made = program("t: float64[V, D]; ids: int64[L]", "e: float64[L, D]; y: float64[L, L]", body)
    torch = pytest.importorskip("torch")
    t, ids, seed = RNG.random((5, 3)), np.array([1, 4, 1, 0]), RNG.random((4, 4))
    leaf = torch.tensor(t, requires_grad=True)
    e = leaf[torch.tensor(ids)]
    torch.tril(e @ e.T).backward(torch.tensor(seed))
    (found,) = pulled_back(made, [t, ids], [seed], ["t"])
    np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-12)
