"""The operators of the library against NumPy: values at odd sizes, types of results, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import ShapeError
from tcdsl.library.texts import MODULES, library_module
from tests.autodiff.program_gradients import check_interpreted_gradient
from tests.skriptnd.graphs import graph_of, operator_graph, reals, values

Reference = Callable[..., Any]


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x.astype(np.float64))


def _softmax(x: np.ndarray, axis: Any = 1) -> np.ndarray:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def _away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def signed(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.9, 0.9, shape).astype(np.float32)


def whole(*shape: int, seed: int = 2, low: int = -5, high: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def truths(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


X, Y, Z = signed(2, 3, 5), signed(2, 3, 5, seed=4), signed(5, seed=5)
P = reals(2, 3, 5)

# The operator, its inputs, the type of its result, and what it is in NumPy.
UNARY: dict[str, tuple[np.ndarray, Reference]] = {
    "math.iden": (X, lambda x: x),
    "math.neg": (X, np.negative),
    "math.sqr": (X, np.square),
    "math.abs": (X, np.abs),
    "math.sign": (X, np.sign),
    "math.rcp": (P, np.reciprocal),
    "math.sqrt": (P, np.sqrt),
    "math.rsqr": (P, lambda x: 1 / x**2),
    "math.rsqrt": (P, lambda x: 1 / np.sqrt(x)),
    "math.exp": (X, np.exp),
    "math.log": (P, np.log),
    "math.log2": (P, np.log2),
    "math.sin": (X, np.sin),
    "math.cos": (X, np.cos),
    "math.tan": (X, np.tan),
    "math.sinh": (X, np.sinh),
    "math.cosh": (X, np.cosh),
    "math.tanh": (X, np.tanh),
    "math.asin": (X, np.arcsin),
    "math.acos": (X, np.arccos),
    "math.atan": (X, np.arctan),
    "math.asinh": (X, np.arcsinh),
    "math.acosh": (P + 1, np.arccosh),
    "math.atanh": (X, np.arctanh),
    "math.floor": (X * 4, np.floor),
    "math.ceil": (X * 4, np.ceil),
    "math.round": (np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, -2.6]), _away),
    "nn.relu": (X, lambda x: np.maximum(x, 0)),
    "nn.relu{alpha=0.25}": (X, lambda x: np.maximum(x, 0.25 * x)),
    "nn.relu{max=0.5}": (X, lambda x: np.clip(x, 0, 0.5)),
    "nn.thresholded_relu{theta=0.3}": (X, lambda x: np.where(x > 0.3, x, 0)),
    "nn.elu{alpha=0.5}": (X, lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)),
    "nn.selu": (X, lambda x: 1.05070102 * np.where(x < 0, 1.67326319 * np.expm1(x), x)),
    "nn.gelu": (X, lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2)))),
    "nn.gelu{approximate='TANH'}": (
        X,
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "nn.gelu{approximate='SIGMOID'}": (X, lambda x: x / (1 + np.exp(-1.702 * x))),
    "nn.silu": (X, lambda x: x / (1 + np.exp(-x))),
    "nn.sigmoid": (X, lambda x: 1 / (1 + np.exp(-x))),
    "nn.softplus": (X, lambda x: np.log1p(np.exp(x))),
    "nn.erf": (X, _erf),
    "nn.softmax": (X, _softmax),
    "nn.softmax{axes=[0, -1]}": (X, lambda x: _softmax(x, (0, 2))),
    "math.sum_reduce": (X, lambda x: x.sum(keepdims=True)),
    "math.sum_reduce{axes=[0, -1], squeeze=true}": (X, lambda x: x.sum((0, 2))),
    "math.prod_reduce{axes=[1]}": (X, lambda x: x.prod(1, keepdims=True)),
    "math.min_reduce{axes=[2], squeeze=true}": (X, lambda x: x.min(2)),
    "math.max_reduce{axes=[0]}": (X, lambda x: x.max(0, keepdims=True)),
    "math.mean_reduce{axes=[0, 1], squeeze=true}": (X, lambda x: x.mean((0, 1))),
    "math.lp_reduce{axes=[1], p=1.0}": (X, lambda x: np.abs(x).sum(1, keepdims=True)),
    "math.lp_reduce{axes=[1], p=2.0, squeeze=true}": (X, lambda x: np.sqrt((x**2).sum(1))),
    "math.lp_reduce{axes=[1], p=3.0}": (X, lambda x: (np.abs(x) ** 3).sum(1, keepdims=True) ** (1 / 3)),
    "math.cumsum{axis=1}": (X, lambda x: x.cumsum(1)),
    "math.cumsum{axis=-1, exclusive=true}": (X, lambda x: x.cumsum(2) - x),
    "math.cumsum{axis=0, reverse=true}": (X, lambda x: x[::-1].cumsum(0)[::-1]),
    "math.cumsum{axis=1, exclusive=true, reverse=true}": (X, lambda x: x[:, ::-1].cumsum(1)[:, ::-1] - x),
    "layout.reshape{shape=[5, -1]}": (X, lambda x: x.reshape(5, 6)),
    "layout.reshape{axis=1, shape=[5, 3]}": (X, lambda x: x.reshape(2, 5, 3)),
    "layout.reshape{axis=1, rank=1, shape=[3, 1]}": (X, lambda x: x.reshape(2, 3, 1, 5)),
    "layout.flatten{axis=1}": (X, lambda x: x.reshape(2, 15)),
    "layout.flatten{axis=-3, rank=2}": (X, lambda x: x.reshape(6, 5)),
    "layout.unflatten{axis=-1, shape=[5, 1]}": (X, lambda x: x.reshape(2, 3, 5, 1)),
    "layout.squeeze{axes=[1, -1]}": (signed(2, 1, 3, 1), lambda x: x[:, 0, :, 0]),
    "layout.unsqueeze{axes=[0, -1]}": (X, lambda x: x[None, ..., None]),
    "layout.transpose": (X, lambda x: x.T),
    "layout.transpose{axis=1, perm=[2, 1]}": (X, lambda x: x.transpose(0, 2, 1)),
    "layout.transpose{perm=[1, 2, 0]}": (X, lambda x: x.transpose(1, 2, 0)),
    "layout.tile{axes=[0, 2], repeats=[2, 3]}": (X, lambda x: np.tile(x, (2, 1, 3))),
    "layout.broadcast{axes=[1], shape=[4]}": (signed(2, 1, 3), lambda x: np.broadcast_to(x, (2, 4, 3))),
    "layout.slice{axes=[2], begin=[1], end=[4]}": (X, lambda x: x[:, :, 1:4]),
    "layout.slice{axes=[2, 1], begin=[-1, 0], end=[-6, 3], stride=[-2, 1]}": (X, lambda x: x[:, :, ::-2]),
    "layout.slice{axes=[0], begin=[0], end=[-1]}": (X, lambda x: x[:-1]),
    "layout.pad{axes=[2], padding=[1, 2]}": (X, lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2)))),
    "layout.pad{axes=[2, 1], padding=[2, 1, 1, 0], method='REFLECT'}": (
        X,
        lambda x: np.pad(x, ((0, 0), (1, 0), (2, 1)), mode="reflect"),
    ),
    "layout.pad{axes=[2], padding=[2, 3], method='SYMMETRIC'}": (
        X,
        lambda x: np.pad(x, ((0, 0), (0, 0), (2, 3)), mode="symmetric"),
    ),
    "layout.pad{axes=[1], padding=[2, 1], method='REPLICATE'}": (
        X,
        lambda x: np.pad(x, ((0, 0), (2, 1), (0, 0)), mode="edge"),
    ),
    "layout.shuffle{axis=1, groups=2}": (
        signed(2, 6, 3),
        lambda x: x.reshape(2, 2, 3, 3).transpose(0, 2, 1, 3).reshape(2, 6, 3),
    ),
    "layout.space_to_batch{block_size=[2, 3]}": (
        signed(1, 2, 4, 6),
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(3, 5, 0, 1, 2, 4).reshape(6, 2, 2, 2),
    ),
    "layout.batch_to_space{block_size=[2, 3]}": (
        signed(6, 2, 2, 2),
        lambda x: x.reshape(2, 3, 1, 2, 2, 2).transpose(2, 3, 4, 0, 5, 1).reshape(1, 2, 4, 6),
    ),
    "layout.space_to_depth{block_size=[2, 2]}": (
        signed(1, 3, 4, 6),
        lambda x: x.reshape(1, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 2, 3),
    ),
    "layout.space_to_depth{block_size=[2, 2], blocks_first=false}": (
        signed(1, 3, 4, 6),
        lambda x: x.reshape(1, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 12, 2, 3),
    ),
    "layout.depth_to_space{block_size=[2, 2]}": (
        signed(1, 12, 2, 3),
        lambda x: x.reshape(1, 2, 2, 3, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 3, 4, 6),
    ),
    "layout.depth_to_space{block_size=[2, 2], data_format='NXC', blocks_first=false}": (
        signed(1, 2, 3, 12),
        lambda x: x.reshape(1, 2, 3, 3, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 4, 6, 3),
    ),
    "nn.l1_norm{axes=[1], bias=0.5}": (X, lambda x: x / (np.abs(x).sum(1, keepdims=True) + 0.5)),
    "nn.l2_norm{axes=[2], epsilon=0.1}": (
        X,
        lambda x: x / np.maximum(np.sqrt((x**2).sum(2, keepdims=True)), 0.1),
    ),
    "nn.local_response_norm{size=[3], alpha=0.3, beta=0.75, bias=2.0}": (
        X,
        lambda x: (
            x / (2 + 0.3 * sum(np.pad(x**2, ((0, 0), (1, 1), (0, 0)))[:, k : k + 3] for k in range(3)) / 3) ** 0.75
        ),
    ),
    "nn.mean_variance_norm": (
        X,
        lambda x: (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5),
    ),
}


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max(initial=0.0) <= 1e-5 * max(np.abs(wanted).max(initial=0.0), 1e-30)


@pytest.mark.parametrize("call", UNARY)
def test_operators_of_one_tensor(call: str) -> None:
    array, reference = UNARY[call]
    (found,) = values(operator_graph(call, [array], ["real"]), [array])
    close(found, reference(array))


@pytest.mark.parametrize(
    "call",
    [
        "math.sum_reduce{axes=[0, -1], squeeze=true}",
        "math.mean_reduce{axes=[0, 1], squeeze=true}",
        "layout.flatten{axis=1}",
        "layout.transpose",
        "nn.softmax",
        "layout.reshape{shape=[5, -1]}",
        "layout.pad{axes=[2], padding=[1, 2]}",
        "math.cumsum{axis=1}",
    ],
)
def test_extents_that_only_the_call_knows(call: str) -> None:
    array, reference = UNARY[call]
    graph = operator_graph(call, [array], ["real"], dynamic=True)
    close(values(graph, [array])[0], reference(array))
    other = signed(5, 3, 7)
    others = {"layout.flatten{axis=1}": (5, 21), "layout.reshape{shape=[5, -1]}": (5, 21)}
    close(values(graph, [other])[0], other.reshape(others[call]) if call in others else reference(other))


SMOOTH = [
    "math.exp",
    "nn.gelu",
    "nn.softmax",
    "math.prod_reduce{axes=[1]}",
    "nn.l2_norm{axes=[2], epsilon=0.1}",
    "layout.pad{axes=[2], padding=[2, 3], method='SYMMETRIC'}",
    "layout.space_to_depth{block_size=[2, 2]}",
    "math.cumsum{axis=0, reverse=true}",
]


@pytest.mark.parametrize("call", SMOOTH)
def test_gradients(call: str) -> None:
    array, _ = UNARY[call]
    double = array.astype(np.float64)
    graph = operator_graph(call, [double], ["real"])
    check_interpreted_gradient(graph, [double])


def _c(x: np.ndarray) -> np.ndarray:
    return x.reshape(3, 1)


BINARY: dict[str, tuple[list[Any], str, Reference]] = {
    "math.add": ([X, Y], "real", np.add),
    "math.sub": ([X, Z], "real", np.subtract),
    "math.mul{rhs_align=1}": ([X, signed(3)], "real", lambda x, y: x * y[:, None]),
    "math.div{lhs_align=0}": ([signed(2), P], "real", lambda x, y: x[:, None, None] / y),
    "math.mod": ([X * 5, P], "real", np.fmod),
    "math.pow": ([P, Y], "real", np.power),
    "math.min": ([X, Y], "real", np.minimum),
    "math.max{rhs_align=-1}": ([X, signed(3)], "real", lambda x, y: np.maximum(x, y[:, None])),
    "math.lt": ([X, Y], "bool", np.less),
    "math.ge": ([whole(2, 3), whole(3, seed=9)], "bool", np.greater_equal),
    "math.eq": ([whole(4), whole(4, seed=9)], "bool", np.equal),
    "math.ne": ([truths(4), truths(4, seed=9)], "bool", np.not_equal),
    "math.and": ([truths(2, 3), truths(3, seed=9)], "bool", np.logical_and),
    "math.or": ([truths(2, 1), truths(3, seed=9)], "bool", np.logical_or),
    "math.xor": ([truths(3), truths(3, seed=9)], "bool", np.logical_xor),
    "math.not": ([truths(3)], "bool", np.logical_not),
    "math.select": ([truths(2, 3, 1), X, Y], "real", np.where),
    "math.clamp": ([X, np.float32(-0.2), Z * 0 + 0.3], "real", np.clip),
    "math.axpb{a_align=0}": ([signed(2), X, Z], "real", lambda a, x, b: a[:, None, None] * x + b),
    "math.axpby": ([Z, X, Z * 2, Y], "real", lambda a, x, b, y: a * x + b * y),
    "math.argmax{axis=1}": ([X], "int", lambda x: x.argmax(1)[:, None]),
    "math.argmin{axis=-1, squeeze=true}": ([whole(3, 7).astype(np.float32)], "int", lambda x: x.argmin(1)),
    "math.argmax_nd{axes=[0, 2], squeeze=true}": (
        [X],
        "int",
        lambda x: np.stack([np.unravel_index(x[:, k].argmax(), (2, 5)) for k in range(3)]),
    ),
    "math.sum_n": ([[X, Y, P]], "real", sum),
    "math.max_n": ([[X, Y, P]], "real", lambda xs: np.max(xs, 0)),
    "math.argmin_n": ([[X, Y, P - 1]], "int", lambda xs: np.argmin(xs, 0)),
    "math.any_n": ([[truths(4), truths(4, seed=9)]], "bool", lambda xs: np.any(xs, 0)),
    "layout.concat{axis=1}": ([[X, Y, P]], "real", lambda xs: np.concatenate(xs, 1)),
    "layout.stack{axis=1}": ([[X, Y]], "real", lambda xs: np.stack(xs, 1)),
    "layout.gather{axis=1}": ([X, whole(4, low=0, high=3)], "real", lambda x, i: x[:, i]),
    "layout.gather_nd": ([X, whole(4, 2, low=0, high=2)], "real", lambda x, i: x[i[:, 0], i[:, 1]]),
    "layout.cast<int>": ([X * 5], "int", lambda x: x.astype(np.int32)),
    "layout.shape": ([X], "int", lambda x: np.int32(x.shape)),
    "layout.uniform{shape=[2, 3]}": ([np.float32(2.5)], "real", lambda x: np.full((2, 3), x)),
    "linalg.dot": ([Z, Z * 2], "real", np.dot),
    "linalg.matvec": ([signed(3, 5), Z], "real", np.matmul),
    "linalg.matvec{transA=true}": ([signed(5, 3), Z], "real", lambda a, x: a.T @ x),
    "linalg.matmul": ([signed(2, 3, 4), signed(4, 5), signed(5)[None]], "real", lambda a, b, c: a @ b + c),
    "linalg.matmul{transA=true, transB=true}": (
        [signed(4, 3), signed(2, 1, 5, 4)],
        "real",
        lambda a, b: a.T @ b.swapaxes(2, 3),
    ),
    "linalg.outer": ([signed(2, 3), Z], "real", np.multiply.outer),
    "nn.linear": ([signed(3, 4), signed(5, 4), Z], "real", lambda x, w, b: x @ w.T + b),
    "nn.prelu": ([X, signed(3)], "real", lambda x, a: np.where(x < 0, a[:, None] * x, x)),
    "nn.batch_norm": (
        [X, signed(3), reals(3), signed(3, seed=8), signed(3, seed=9)],
        "real",
        lambda x, m, v, b, s: (x - _c(m)) / np.sqrt(_c(v) + 1e-5) * _c(s) + _c(b),
    ),
}
# A row of C is broadcast over rows, which the operator does with leading axes alone.
BINARY["linalg.matmul"] = ([signed(2, 3, 4), signed(4, 5), signed(3, 5)], "real", lambda a, b, c: a @ b + c)


@pytest.mark.parametrize("call", BINARY)
def test_operators_of_several_tensors(call: str) -> None:
    arrays, kind, reference = BINARY[call]
    (found,) = values(operator_graph(call, arrays, [kind]), arrays)
    close(found, reference(*arrays))


def test_several_results() -> None:
    graph = operator_graph("math.moments{axes=[1], squeeze=true}", [X], ["real", "real"])
    mean, variance = graph(X)
    close(mean, X.mean(1))
    close(variance, X.var(1))
    graph = operator_graph("layout.split{axis=1, sizes=[1, 2]}", [X], ["real..(2)"])
    first, second = graph(X)
    close(first, X[:, :1])
    close(second, X[:, 1:])
    graph = operator_graph("layout.unstack{axis=2}", [X], ["real..(5)"])
    for k, each in enumerate(graph(X)):
        close(each, X[:, :, k])


def test_scatters_keep_the_last_of_equal_indices() -> None:
    data, index, new = signed(4, 3), np.int32([[1, 0, 2], [1, 2, 2]]), signed(2, 3, seed=6)
    wanted = data.copy()
    for row in range(2):
        for column in range(3):
            wanted[index[row, column], column] = new[row, column]
    close(operator_graph("layout.scatter{axis=0}", [data, index, new], ["real"])(data, index, new), wanted)
    places, rows = np.int32([[2], [0], [2]]), signed(3, 3, seed=7)
    wanted = data.copy()
    for place, row in zip(places[:, 0], rows, strict=True):
        wanted[place] = row
    close(operator_graph("layout.scatter_nd", [data, places, rows], ["real"])(data, places, rows), wanted)


def test_constants() -> None:
    close(
        operator_graph("layout.tensor{shape=[2, 3], value=[1, 2, 3, 4, 5, 6]}()", [], ["int"])(), [[1, 2, 3], [4, 5, 6]]
    )
    close(operator_graph("layout.tensor{shape=[2, 2], value=0.5}()", [], ["real"])(), np.full((2, 2), 0.5))
    many = ", ".join(map(str, range(24)))
    call = f"layout.tensor{{shape=[2, 3, 4], value=[{many}]}}()"
    close(operator_graph(call, [], ["int"])(), np.arange(24).reshape(2, 3, 4))
    close(operator_graph("layout.range{first=1, last=10, stride=4}()", [], ["int"])(), [1, 5, 9])
    close(operator_graph("layout.range{first=1.0, last=0.0, stride=-0.4}()", [], ["real"])(), [1.0, 0.6, 0.2])


def convolved(
    x: np.ndarray, w: np.ndarray, stride: int, dilation: int, before: int, after: int, groups: int
) -> np.ndarray:
    """A convolution in two dimensions, point by point."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (before, after), (before, after)))
    wide = (w.shape[2] - 1) * dilation + 1
    size = (x.shape[2] - wide) // stride + 1
    found = np.zeros((len(x), len(w), size, size))
    per = len(w) // groups
    for i in range(size):
        for j in range(size):
            part = x[:, :, i * stride : i * stride + wide : dilation, j * stride : j * stride + wide : dilation]
            for n in range(len(w)):
                inner = part[:, n // per * w.shape[1] : (n // per + 1) * w.shape[1]]
                found[:, n, i, j] = (inner * w[n]).sum((1, 2, 3))
    return found


@pytest.mark.parametrize(
    ("options", "stride", "dilation", "before", "after", "groups"),
    [
        ("padding=[0, 0, 0, 0]", 1, 1, 0, 0, 1),
        ("padding=1, stride=2", 2, 1, 1, 1, 1),
        ("padding=[1, 1, 2, 2], dilation=2, groups=2", 1, 2, 1, 2, 2),
        ("stride=1", 1, 1, 1, 1, 1),
        ("groups=0, padding=1", 1, 1, 1, 1, 4),
    ],
)
def test_convolutions(options: str, stride: int, dilation: int, before: int, after: int, groups: int) -> None:
    x, w, b = signed(2, 4, 7, 7), signed(4, 4 // groups, 3, 3, seed=5), signed(4, seed=6)
    wanted = convolved(x, w, stride, dilation, before, after, groups) + b[:, None, None]
    close(operator_graph(f"nn.conv{{{options}}}", [x, w, b], ["real"])(x, w, b), wanted)


def test_other_formats_of_convolutions() -> None:
    x, w = signed(2, 4, 7, 7), signed(6, 4, 3, 3, seed=5)
    wanted = convolved(x, w, 1, 1, 1, 1, 1)
    last, filters = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
    graph = operator_graph("nn.conv{padding=1, data_format='NXC', filter_format='XCN'}", [last, filters], ["real"])
    close(graph(last, filters), wanted.transpose(0, 2, 3, 1))


def test_transposed_convolutions_are_adjoint() -> None:
    x, w, y = signed(2, 4, 7, 7), signed(6, 4, 3, 3, seed=5), signed(2, 6, 4, 4, seed=7)
    forward = operator_graph("nn.conv{padding=1, stride=2}", [x, w], ["real"])(x, w)
    back = operator_graph("nn.deconv{padding=1, stride=2}", [y, w], ["real"])(y, w)
    assert back.shape == x.shape
    assert np.vdot(forward, y) == pytest.approx(np.vdot(x, back), rel=1e-4)


def test_pools() -> None:
    x = signed(2, 3, 6, 6)
    blocks = x.reshape(2, 3, 3, 2, 3, 2)
    options = "size=2, stride=2, padding=0, axes=[2, 3]"
    close(operator_graph(f"nn.max_pool{{{options}}}", [x], ["real"])(x), blocks.max((3, 5)))
    close(operator_graph(f"nn.sum_pool{{{options}}}", [x], ["real"])(x), blocks.sum((3, 5)))
    close(operator_graph(f"nn.avg_pool{{{options}}}", [x], ["real"])(x), blocks.mean((3, 5)))
    close(operator_graph(f"nn.rms_pool{{{options}}}", [x], ["real"])(x), np.sqrt((blocks**2).mean((3, 5))))
    close(operator_graph(f"nn.lp_pool{{{options}, p=1.0}}", [x], ["real"])(x), np.abs(blocks).sum((3, 5)))
    # Cells beyond the border do not count.
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    ones = np.pad(np.ones((6, 6)), 1)
    sums = sum(wide[:, :, i : i + 6, j : j + 6] for i in range(3) for j in range(3))
    counts = sum(ones[i : i + 6, j : j + 6] for i in range(3) for j in range(3))
    close(operator_graph("nn.avg_pool{size=3, axes=[2, 3]}", [x], ["real"])(x), sums / counts)
    close(operator_graph("nn.avg_pool{size=3, axes=[2, 3], ignore_border=false}", [x], ["real"])(x), sums / 9)


def test_maxima_pass_over_nan() -> None:
    x = np.float32([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    found = operator_graph("math.max_reduce{axes=[1], squeeze=true}", [x], ["real"])(x)
    assert found.tolist() == [3.0, -np.inf]


def test_recurrent_networks() -> None:
    rng = np.random.default_rng(0)
    sizes = {"X": (5, 2, 3), "W": (16, 3), "R": (16, 4), "B": (16,), "h": (2, 4), "c": (2, 4)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in sizes.items()}
    graph = operator_graph("nn.lstm", list(arrays.values()), ["real", "real", "real"])
    outputs, last, cells = graph(*arrays.values())
    h, c, steps = arrays["h"].astype(np.float64), arrays["c"].astype(np.float64), []
    for x in arrays["X"]:
        gates = x @ arrays["W"].T + arrays["B"] + h @ arrays["R"].T
        i, f, g, o = np.split(gates, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        steps.append(h)
    close(outputs, np.stack(steps))
    close(last, h)
    close(cells, c)


def sampled(x: np.ndarray, size: int, transform: str, weight: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The last axis of ``x`` at ``size`` places, as sums of the cells around them."""
    count = x.shape[-1]
    scale = (count - 1) / max(size - 1, 1) if transform == "ALIGNED" else count / size
    place = np.arange(size) * scale + (0.5 * scale - 0.5 if transform == "SYMMETRIC" else 0.0)
    found = np.zeros((*x.shape[:-1], size))
    for tap in range(-1, 3):
        cell = np.floor(place) + tap
        found += weight(np.abs(cell - place)) * x[..., np.clip(cell, 0, count - 1).astype(int)]
    return found


def cubic(a: float) -> Callable[[np.ndarray], np.ndarray]:
    def weight(d: np.ndarray) -> np.ndarray:
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        return np.where(d <= 1, near, np.where(d < 2, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a, 0))

    return weight


@pytest.mark.parametrize("transform", ["SYMMETRIC", "ASYMMETRIC", "ALIGNED"])
def test_resizes(transform: str) -> None:
    x = signed(2, 7)
    options = f"axes=[1], coordinate_transform='{transform}'"
    for size in (5, 16):
        call = f"image.linear_resize{{{options}, size=[{size}]}}"
        close(operator_graph(call, [x], ["real"])(x), sampled(x, size, transform, lambda d: np.maximum(1 - d, 0)))
        call = f"image.resize{{{options}, size=[{size}], mode='CUBIC', cubic_coeff_a=-0.5}}"
        close(operator_graph(call, [x], ["real"])(x), sampled(x, size, transform, cubic(-0.5)))
    call = f"image.rescale{{{options}, factor=[2.0], rounding_method='FLOOR'}}"
    scale = 6 / 13 if transform == "ALIGNED" else 0.5
    cells = np.floor(np.arange(14) * scale + (0.5 * scale - 0.5 if transform == "SYMMETRIC" else 0))
    close(operator_graph(call, [x], ["real"])(x), x[:, np.clip(cells, 0, 6).astype(int)])


def test_samplings() -> None:
    x = signed(2, 4, 6)
    close(operator_graph("image.nearest_downsample{axes=[1, 2], factor=[2, 3]}", [x], ["real"])(x), x[:, ::2, ::3])
    doubled = x.repeat(2, 1).repeat(3, 2)
    close(operator_graph("image.nearest_upsample{axes=[1, 2], factor=[2, 3]}", [x], ["real"])(x), doubled)
    blocks = x.reshape(2, 2, 2, 2, 3).mean((2, 4))
    close(operator_graph("image.area_downsample{axes=[1, 2], factor=[2, 3]}", [x], ["real"])(x), blocks)
    wanted = sampled(x, 12, "SYMMETRIC", lambda d: np.maximum(1 - d, 0))
    close(operator_graph("image.linear_upsample{axes=[2], factor=[2]}", [x], ["real"])(x), wanted)


@pytest.mark.parametrize("mode", ["NEAREST", "LINEAR", "CUBIC"])
def test_grids(mode: str) -> None:
    x = signed(1, 2, 4, 5)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    # The last axis of a grid names the innermost axis first.
    same = np.stack([columns, rows], -1)[None].astype(np.float32)
    close(operator_graph(f"image.grid_sample{{mode='{mode}', aligned=true}}", [x, same], ["real"])(x, same), x)
    outside = same + 5
    assert not operator_graph(f"image.grid_sample{{mode='{mode}'}}", [x, outside], ["real"])(x, outside).any()
    call = f"image.grid_sample{{mode='{mode}', padding='REPLICATE'}}"
    corner = np.broadcast_to(x[:, :, -1:, -1:], x.shape)
    close(operator_graph(call, [x, outside], ["real"])(x, outside), corner)


def test_quantization() -> None:
    x = signed(2, 3, 4) * 3
    call = "quant.zero_point_linear_quantize{zero_point=3, scale=0.1, bits=4}"
    wanted = (np.clip(_away(x / np.float32(0.1)) + 3, -8, 7) - 3) * 0.1
    close(operator_graph(call, [x], ["real"])(x), wanted)
    call = "quant.min_max_linear_quantize{min=[-1.0, -2.0, -0.5], max=[1.0, 1.0, 2.5], bits=3, signed=false}"
    low, high = _c(np.float32([-1, -2, -0.5])), _c(np.float32([1, 1, 2.5]))
    wanted = np.round((np.clip(x, low, high) - low) / (high - low) * 7) / 7 * (high - low) + low
    close(operator_graph(call, [x], ["real"])(x), wanted)


def test_layers() -> None:
    x = signed(2, 3, 5, 5)
    graph = operator_graph("layer.conv{channels=4, size=3, padding=1, use_bias=false}", [x], ["real"])
    assert {label: each.shape for label, each in graph.variables.items()} == {
        "y0.filter": (4, 3, 3, 3),
        "y0.bias": (4,),
    }
    w = graph.variables["y0.filter"] = signed(4, 3, 3, 3, seed=5)
    close(graph(x), convolved(x, w, 1, 1, 1, 1, 1))
    graph = operator_graph("layer.linear{channels=4}", [X[0]], ["real"])
    graph.variables["y0.bias"] = signed(4)
    close(graph(X[0]), np.broadcast_to(signed(4), (3, 4)))
    graph = operator_graph("layer.deconv{channels=2, size=3, padding=1, stride=2, groups=3}", [x], ["real"])
    assert graph(x).shape == (2, 6, 9, 9)
    graph = operator_graph("layer.batch_norm{momentum=0.25, use_scale=false}", [x], ["real"])
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    close(graph(x), (x - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5))
    close(graph.variables["y0.running_mean"], mean / 4)
    close(graph.variables["y0.running_variance"], variance / 4)
    graph = operator_graph("layer.batch_norm", [x], ["real"])
    graph.variables.update({f"y0.running_{name}": np.ones(3, np.float32) for name in ("mean", "variance")})
    graph.variables["y0.scale"] = np.ones(3, np.float32)
    close(graph(x), (x - 1) / np.sqrt(np.float32(1 + 1e-5)))


def test_the_largest_cells() -> None:
    x = whole(3, 6, 2, low=0, high=5).astype(np.float32)
    graph = operator_graph("algo.top_k{k=4, axis=1}", [x], ["real", "int"])
    found, places = graph(x)
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    close(places, order)
    close(found, np.take_along_axis(x, order, 1))
    found, places = operator_graph("algo.top_k{k=9, axis=-2, largest=false}", [x], ["real", "int"])(x)
    close(found, np.sort(x, 1))
    gradient = tc.grad(lambda x: graph(x)[0].sum())(x)
    assert gradient.sum(1).tolist() == np.full((3, 2), 4.0).tolist()


def test_grids_of_axes() -> None:
    x, y = signed(3), signed(4, seed=2)
    text = "import misc; graph g { @input { x: real[3]; y: real[4]; } @output { u: real; v: real; } "
    text += "@compose { [u, v] = misc.mesh_grid([x, y]); } }"
    for found, wanted in zip(graph_of(text)(x, y), np.meshgrid(x, y, indexing="ij"), strict=True):
        close(found, wanted)


def test_wrong_calls_name_the_operator() -> None:
    x = signed(2, 3)
    with pytest.raises(ShapeError, match=r"math\.sum_reduce: there is no axis \[2\]"):
        operator_graph("math.sum_reduce{axes=[2]}", [x], ["real"])
    with pytest.raises(ShapeError, match=r"nn\.conv: the input channels do not fit the filter"):
        operator_graph("nn.conv", [signed(1, 3, 5, 5), signed(2, 2, 3, 3)], ["real"])
    with pytest.raises(ShapeError, match=r"layout\.reshape: the volumes differ"):
        operator_graph("layout.reshape{shape=[4]}", [x], ["real"])


def test_modules_are_complete() -> None:
    counts = {
        "math": 71,
        "layout": 29,
        "linalg": 4,
        "nn": 27,
        "layer": 4,
        "image": 12,
        "quant": 2,
        "algo": 2,
        "rand": 3,
        "misc": 1,
    }
    assert {name: sum(each[0] != "_" for each in library_module(name)) for name in MODULES} == counts
