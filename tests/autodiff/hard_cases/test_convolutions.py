"""Convolutions of one, two and three dimensions: strided, padded, dilated, grouped; both orders against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.runtime.calling.execution import Executable
from tests.autodiff.hard_cases.compositions import Point, compositions, derivatives
from tests.autodiff.hard_cases.peers import PEERS

# Stride, padding, dilation, and the extents of image and window along each axis.
SETTINGS = [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2), (2, 3, 3), (1, 4, 1)]
IMAGES, WINDOWS = (7, 5, 4), (3, 2, 1)


def reached(extent: Any, window: Any, stride: int, padding: int, dilation: int) -> Any:
    return (extent + 2 * padding - dilation * (window - 1) - 1) // stride + 1


@op
def convolution_1(I, K, *, stride, padding, dilation):
    N, G, _, X = I.shape
    _, O, _, P = K.shape
    Y = output(N, G, O, reached(X, P, stride, padding, dilation))
    Y[n, g, o, x] += I[n, g, c, stride * x + dilation * p - padding] * K[g, o, c, p]
    return Y


@op
def convolution_2(I, K, *, stride, padding, dilation):
    N, G, _, X0, X1 = I.shape
    _, O, _, P, Q = K.shape
    S0, S1 = reached(X0, P, stride, padding, dilation), reached(X1, Q, stride, padding, dilation)
    Y = output(N, G, O, S0, S1)
    Y[n, g, o, x, y] += (
        I[n, g, c, stride * x + dilation * p - padding, stride * y + dilation * q - padding] * K[g, o, c, p, q]
    )
    return Y


@op
def convolution_3(I, K, *, stride, padding, dilation):
    N, G, _, X0, X1, X2 = I.shape
    _, O, _, P, Q, R = K.shape
    S0, S1 = reached(X0, P, stride, padding, dilation), reached(X1, Q, stride, padding, dilation)
    Y = output(N, G, O, S0, S1, reached(X2, R, stride, padding, dilation))
    Y[n, g, o, x, y, z] += (
        I[
            n,
            g,
            c,
            stride * x + dilation * p - padding,
            stride * y + dilation * q - padding,
            stride * z + dilation * r - padding,
        ]
        * K[g, o, c, p, q, r]
    )
    return Y


CONVOLUTIONS = {1: convolution_1, 2: convolution_2, 3: convolution_3}


def arguments(rank: int, groups: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rank)
    images, windows = IMAGES[:rank] if rank < 3 else (4, 3, 4), WINDOWS[:rank]
    return [rng.uniform(-1, 1, (2, groups, 2, *images)), rng.uniform(-1, 1, (groups, 2, 2, *windows))]


def by_torch(rank: int, stride: int, padding: int, dilation: int) -> Any:
    def oracle(torch: Any, I: Any, K: Any) -> Any:
        groups, outputs = K.shape[:2]
        convolve = getattr(torch.nn.functional, f"conv{rank}d")
        image, windows = I.flatten(1, 2), K.flatten(0, 1)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return convolve(image, windows, **options).unflatten(1, (groups, outputs))

    return oracle


def check(rank: int, groups: int, stride: int, padding: int, dilation: int, **run: Any) -> None:
    given = arguments(rank, groups)
    program = CONVOLUTIONS[rank].program(*given, stride=stride, padding=padding, dilation=dilation)
    point = Point.of(program, given, **run)
    wanted = PEERS["torch"](by_torch(rank, stride, padding, dilation), point)
    found = derivatives(point, compositions(program, point.wrt), **run)
    parts = [(found.reverse, wanted.reverse), (found.forward, wanted.forward), (found.pushed, wanted.forward)]
    parts += [(product, wanted.product) for product in found.products.values()]
    for own, theirs in parts:
        for one, other in zip(own, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "dilation"), SETTINGS)
def test_along_one_axis(stride: int, padding: int, dilation: int, groups: int) -> None:
    check(1, groups, stride, padding, dilation)


def compiled(program: Any, arrays: Any) -> Any:
    return Executable(program).run([np.asarray(array, order="C") for array in arrays])


@pytest.mark.parametrize(("rank", "groups", "setting"), [(2, 2, (2, 1, 2)), (3, 1, (1, 1, 1))])
def test_along_several_axes(rank: int, groups: int, setting: tuple[int, int, int]) -> None:
    check(rank, groups, *setting, **({"run": compiled} if rank == 2 else {}))


@pytest.mark.long
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_more_along_several_axes(rank: int, groups: int, setting: tuple[int, int, int]) -> None:
    check(rank, groups, *setting, run=compiled)
