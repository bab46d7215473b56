"""The operators of the library as functions of arrays."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.library import algo, image, layout, linalg, math, nn
from tests.skriptnd.graphs import reals


def test_functions_of_arrays() -> None:
    x, w = reals(2, 3, 6, 6), reals(4, 3, 3, 3, seed=1)
    y = nn.conv(x, w, padding=1)
    assert y.shape == (2, 4, 6, 6)
    assert nn.conv(x, w, reals(4), stride=2).shape == (2, 4, 3, 3)
    np.testing.assert_allclose(math.add(x, 1.0), x + 1, rtol=1e-6)
    assert math.not_(np.array([True, False])).tolist() == [False, True]
    assert layout.cast(np.float32([1.5, -1.5]), R="int").tolist() == [1, -1]
    first, second, third = layout.split(x, axis=1, count=3)
    np.testing.assert_array_equal(layout.concat([first, second, third], axis=1), x)
    mean, variance = math.moments(x, axes=[0, 2, 3], squeeze=True)
    np.testing.assert_allclose([mean, variance], [x.mean((0, 2, 3)), x.var((0, 2, 3))], rtol=1e-4)
    np.testing.assert_allclose(nn.selu(x, lambda_=1.0), x, rtol=1e-6)
    assert linalg.matmul(np.ones((2, 3)), np.ones((3, 4))).dtype == np.float64
    assert image.nearest_upsample(x, axes=[2, 3], factor=2).shape == (2, 3, 12, 12)
    assert nn.conv(filter=w, input=x, padding=1).shape == y.shape


def test_functions_in_functions_and_under_derivatives() -> None:
    x, w = reals(1, 2, 4, 4), reals(3, 2, 3, 3)

    @tc.op
    def loss(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return (nn.relu(nn.conv(x, w, padding=1)) ** 2).sum()

    tc.check_grads(loss, [x, w])
    gradient = tc.grad(lambda x: layout.pad(x, padding=[1, 2], axes=[3]).sum())(x)
    assert gradient.tolist() == np.ones_like(x).tolist()
    t = tc.tensor(x)
    assert nn.relu(t).value.shape == x.shape


def test_wrong_calls_and_documentation() -> None:
    x = reals(2, 3)
    with pytest.raises(tc.ConfigurationError, match="`conv` has no input or attribute `strides`"):
        nn.conv(x, x, strides=2)
    with pytest.raises(tc.ConfigurationError, match="takes 1 inputs, and is given 2"):
        nn.relu(x, x)
    with pytest.raises(tc.ShapeError, match="there is no axis"):
        math.sum_reduce(x, axes=[5])
    with pytest.raises(tc.ConfigurationError, match="the attribute `axis` is missing"):
        math.argmax(x)
    with pytest.raises(tc.ConfigurationError, match="the attribute `axes` is of type ndarray"):
        math.sum_reduce(x, axes=np.array([0]))
    with pytest.raises(tc.ConfigurationError, match="the type `R` is a type"):
        layout.cast(x, R=float)
    with pytest.raises(AttributeError, match="the module nn of the library has no attribute `convolve`"):
        nn.convolve(x)
    assert list(inspect.signature(nn.linear).parameters) == ["input", "filter", "bias"]
    assert nn.relu.__doc__ is not None
    assert "attribute alpha: optional real" in nn.relu.__doc__
    assert nn.relu.text.startswith("operator relu {")
    assert pickle.loads(pickle.dumps(math.not_)) is math.not_
    assert "conv" in dir(nn)


@pytest.mark.parametrize("shape", [(3, 4), (7,), (0, 3), (2, 2, 2)])
def test_results_have_the_extents_that_data_says(shape: tuple[int, ...]) -> None:
    values = reals(*shape)
    for x in (values, values > 0, np.where(values > 0, values, 0), np.zeros_like(values)):
        found = layout.nonzero(x)
        assert found.shape == np.array(np.nonzero(x)).shape
        np.testing.assert_array_equal(found, np.nonzero(x))


def suppressed(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, score: float) -> list[list[int]]:
    """The boxes that are kept, for corners with the smaller one first."""
    low, high = boxes[..., :2], boxes[..., 2:]
    area = (high - low).prod(-1)
    found: list[list[int]] = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            both = np.minimum(high[b, i], high[b, kept]) - np.maximum(low[b, i], low[b, kept])
            parts = np.maximum(both, 0).prod(-1)
            apart = (parts <= overlap * (area[b, i] + area[b, kept] - parts)).all()
            if len(kept) < most and scores[b, c, i] > score and apart:
                kept.append(int(i))
        found += [[b, c, i] for i in kept]
    return found


def test_the_boxes_that_are_kept() -> None:
    low = reals(2, 9, 2)
    boxes, scores = np.concatenate([low, low + reals(2, 9, 2, seed=1)], -1), reals(2, 3, 9, seed=2)
    for most, overlap, score in ((2, 0.3, 0.8), (9, 0.1, 0.0), (9, 0.0, 3.0)):
        named: dict[str, Any] = {"iou_threshold": overlap, "score_threshold": score, "max_outputs_per_class": most}
        wanted = np.reshape(suppressed(boxes, scores, most, overlap, score), (-1, 3))
        np.testing.assert_array_equal(algo.nonmax_suppress(boxes, scores, **named), wanted)
    centers = np.concatenate([(boxes[..., :2] + boxes[..., 2:])[..., ::-1] / 2, (boxes[..., 2:] - low)[..., ::-1]], -1)
    every = algo.nonmax_suppress(centers, scores, box_format="CENTER", iou_threshold=0.3)
    np.testing.assert_array_equal(every, suppressed(boxes, scores, 9, 0.3, 0.0))
    with pytest.raises(tc.ShapeError, match="the box format is CORNERS or CENTER"):
        algo.nonmax_suppress(boxes, scores, box_format="SIDES")


def test_steps_of_each_item() -> None:
    x, w, r, b = reals(3, 2, 4), reals(20, 4, seed=1) - 1, reals(20, 5, seed=2) - 1, reals(20, seed=3) - 1
    h, c = reals(2, 5, seed=4), reals(2, 5, seed=5)
    shown, last, state = nn.lstm(x, w, r, b, h, c, np.int32([1, 3]))
    for item, steps in ((0, 1), (1, 3)):
        one = nn.lstm(x[:steps, item : item + 1], w, r, b, h[item : item + 1], c[item : item + 1])
        for found, wanted in zip((shown[:steps, item], last[item], state[item]), one, strict=True):
            np.testing.assert_allclose(found, np.squeeze(wanted, 0 if wanted.ndim == 2 else 1), rtol=1e-5)
    assert not shown[1:, 0].any()
    trimmed, last, _ = nn.lstm(x, w, r, b, steps=np.int32([2, 1]))
    every, other, _ = nn.lstm(x[:2], w, r, b, np.zeros_like(h), np.zeros_like(c))
    assert trimmed.shape == (2, 2, 5)  # up to the last step of all items
    np.testing.assert_allclose(trimmed[:, 0], every[:, 0], rtol=1e-6)
    np.testing.assert_allclose(last[0], other[0], rtol=1e-6)
    assert nn.lstm(x, w, r, b, h, c, np.int32([0, 0]))[0].shape == (0, 2, 5)
    for steps in (4, -1):
        with pytest.raises(tc.DataIndexError, match=f"index {steps} is out of range for axis 0 of `steps_of_X`"):
            nn.lstm(x, w, r, b, steps=np.int32([1, steps]))
        with pytest.raises(tc.DataIndexError, match="the number of rounds is not between 0 and 3, the length of what"):
            nn.lstm_loop(x, w, r, b, h, c, np.int32(steps))
    assert (
        tc.grad(lambda x: nn.lstm(x, w, r, b, steps=np.int32([1, 2]))[0].sum())(x)[2].tolist()
        == np.zeros((2, 4)).tolist()
    )


X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda x: layout.shuffle(x, axis=0, groups=2), X[[0, 2, 1, 3]]),
        (lambda x: layout.slice(x, axes=[1], begin=[-1], end=[-6], stride=-2), X[:, -1:-6:-2]),
        (lambda x: layout.gather_nd(x, np.int32([[3, 1], [0, 2]])), X[[3, 0], [1, 2]]),
        (lambda x: layout.scatter_nd(x, np.int32([[3], [0]]), X[:2]), np.stack([X[1], X[1], X[2], X[0]])),
        (lambda x: image.rescale(x, axes=[1], factor=[1.5], mode="NEAREST"), X[:, [0, 0, 1, 2, 2, 3, 4, 4, 5]]),
        (lambda x: layout.reshape(x[:1, :1], shape=[]), X[0, 0]),
        (lambda x: layout.flatten(x[0, 0]), X[0, :1]),
    ],
)
def test_operators_whose_statements_the_sizes_of_a_call_decide(call: Any, wanted: Any) -> None:
    found = call(X)
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(found, wanted)


def test_later_processes_import_little(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np, tcdsl\nx = np.float32([-1, 1])\nassert (tcdsl.library.nn.relu(x) == [0, 1]).all()\n"
        "text = 'import nn; graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = nn.relu(x); } }'\n"
        "assert (tcdsl.skriptnd.parse(text).graphs['g'](x) == [0, 1]).all()\nprint('islpy' in sys.modules)"
    )
    environment = {**os.environ, "TCDSL_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(2)]
    assert [run.stdout.strip() for run in runs] == ["True", "False"]
