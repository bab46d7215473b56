"""Models of several kinds against PyTorch: values, and gradients by inputs and variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.skriptnd.graphs import ModelGraph
from tests.skriptnd.graphs import graph_of

torch = pytest.importorskip("torch")
f = torch.nn.functional


def require_equal(ours: Any, theirs: Any, off: float = 1e-5) -> None:
    """At most ``off`` of the largest value apart."""
    ours, theirs = np.asarray(ours), theirs.detach().numpy()
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= off * np.abs(theirs).max()


def require_the_same_model(net: ModelGraph, x: np.ndarray, forward: Callable[[Any, dict[str, Any]], Any]) -> None:
    """The values of the graph and of ``forward``, and the gradients of a weighted sum of them."""
    rng = np.random.default_rng(0)
    values = {k: (rng.normal(size=v.shape) * 0.2).astype(np.float32) for k, v in net.variables.items()}
    values = {k: np.abs(v) + 0.5 if "variance" in k else v for k, v in values.items()}
    t = {k: torch.tensor(v, requires_grad=True) for k, v in values.items()}
    source = torch.tensor(x, requires_grad=True)
    wanted = forward(source, t)
    weight = rng.normal(size=wanted.shape).astype(np.float32)
    (wanted * torch.tensor(weight)).sum().backward()

    def loss(x: Any, *given: Any) -> Any:
        return (net(x, variables=dict(zip(values, given, strict=True))) * weight).sum()

    require_equal(net(x, variables=values), wanted)
    gradients = tc.grad(loss, argnums=tuple(range(1 + len(values))))(x, *values.values())
    for found, given in zip(gradients, (source, *t.values()), strict=True):
        if given.grad is None:  # nothing reads it
            assert not np.any(found)
        else:
            require_equal(found, given.grad, 2e-5)


def noise(*shape: int) -> np.ndarray:
    """Normally distributed numbers."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_alexnet_like_networks() -> None:
    net = graph_of("""
    import nn, layout;
    graph alexnet {
        @attrib { batch: int = 2; classes: int = 5; w: int = 4; }
        @input { input: real[batch, 3, 47, 47]; }
        @output { output: real[batch, classes]; }
        @variable {
            k1: real[w, 3, 11, 11]; b1: real[w]; k2: real[2 * w, w, 5, 5]; b2: real[2 * w];
            k3: real[w, 2 * w, 3, 3]; b3: real[w]; k4: real[classes, w * 4]; b4: real[classes];
        }
        @compose {
            c1 = nn.conv{padding=0, stride=4}(input, k1, b1);
            r1 = nn.relu(c1);
            p1 = nn.max_pool{padding=0, size=[1, 1, 3, 3], stride=[1, 1, 2, 2], axes=[0:4]}(r1);
            c2 = nn.conv{padding=2}(p1, k2, b2);
            r2 = nn.relu(c2);
            c3 = nn.conv{padding=1, stride=2}(r2, k3, b3);
            r3 = nn.relu(c3);
            flat = layout.flatten{axis=1}(r3);
            c4 = nn.linear(flat, k4, b4);
            output = nn.softmax(c4);
        }
    }
    """)

    def forward(x: Any, t: dict[str, Any]) -> Any:
        h = f.max_pool2d(f.relu(f.conv2d(x, t["k1"], t["b1"], stride=4)), 3, 2)
        h = f.relu(f.conv2d(f.relu(f.conv2d(h, t["k2"], t["b2"], padding=2)), t["k3"], t["b3"], padding=1, stride=2))
        return f.softmax(f.linear(h.flatten(1), t["k4"], t["b4"]), 1)

    require_the_same_model(net, noise(2, 3, 47, 47), forward)


def test_residual_and_depthwise_blocks() -> None:
    net = graph_of("""
    import layer, nn, math;
    operator residual {
        @input { x: real[b, static c, s..(d)]; }
        @output { y: real[b, c, s..]; }
        @compose {
            first = layer.conv{channels=c, size=[3, 3], padding=1, use_bias=false}(x);
            normal = layer.batch_norm(first);
            active = nn.relu(normal);
            second = layer.conv{channels=c, size=[3, 3], padding=1, use_bias=false}(active);
            sum = math.add(second, x);
            y = nn.relu(sum);
        }
    }
    operator separable {
        @attrib { channels: int; }
        @input { x: real[b, static c, s..(d)]; }
        @output { y: real[b, channels, (s + 1) / 2 ..]; }
        @compose {
            deep = layer.conv{channels=c, size=[3, 3], padding=1, stride=2, groups=0}(x);
            active = nn.silu(deep);
            y = layer.conv{channels=channels, size=[1, 1]}(active);
        }
    }
    graph net {
        @input { x: real[2, 3, 9, 9]; }
        @output { y: real[2, 5]; }
        @compose {
            a = residual(x);
            b = separable{channels=5}(a);
            y = math.mean_reduce{axes=[2, 3], squeeze=true}(b);
        }
    }
    """)

    def forward(x: Any, t: dict[str, Any]) -> Any:
        h = f.conv2d(x, t["a.first.filter"], padding=1)
        mean, variance = t["a.normal.running_mean"], t["a.normal.running_variance"]
        h = (h - mean[:, None, None]) / torch.sqrt(variance[:, None, None] + 1e-5)
        h = f.relu(h * t["a.normal.scale"][:, None, None] + t["a.normal.bias"][:, None, None])
        h = f.relu(f.conv2d(h, t["a.second.filter"], padding=1) + x)
        h = f.silu(f.conv2d(h, t["b.deep.filter"], t["b.deep.bias"], padding=1, stride=2, groups=3))
        return f.conv2d(h, t["b.y.filter"], t["b.y.bias"]).mean((2, 3))

    require_the_same_model(net, noise(2, 3, 9, 9), forward)


TRANSFORMER = """
    import nn, linalg, layout, math;
    operator heads {
        @attrib { count: int; }
        @input { x: real[b, s, w]; filter: real[w, w]; }
        @output { y: real[b, count, s, w / count]; }
        @compose {
            moved = linalg.matmul(x, filter);
            split = layout.reshape{shape=[b, s, count, w / count]}(moved);
            y = layout.transpose{perm=[0, 2, 1, 3]}(split);
        }
    }
    operator normalized {
        @input { x: real[b, s, w]; scale: real[w]; bias: real[w]; }
        @output { y: real[b, s, w]; }
        @compose {
            mean, variance = math.moments{axes=[2]}(x);
            centered = math.sub(x, mean);
            stable = math.add(variance, 1e-5);
            power = math.rsqrt(stable);
            normal = math.mul(centered, power);
            scaled = math.mul{rhs_align=2}(normal, scale);
            y = math.add{rhs_align=2}(scaled, bias);
        }
    }
    graph layer {
        @attrib { count: int = 2; w: int = 6; }
        @input { x: real[b|4, s|8, w]; }
        @output { y: real[b, s, w]; }
        @variable {
            q: real[w, w]; k: real[w, w]; v: real[w, w]; o: real[w, w];
            s1: real[w]; b1: real[w]; s2: real[w]; b2: real[w]; w1: real[w, 4 * w]; w2: real[4 * w, w];
        }
        @compose {
            normal = normalized(x, s1, b1);
            queries = heads{count=count}(normal, q);
            keys = heads{count=count}(normal, k);
            values = heads{count=count}(normal, v);
            products = linalg.matmul{transB=true}(queries, keys);
            scores = math.div(products, real(w / count) ** 0.5);
            attention = nn.softmax{axes=[3]}(scores);
            mixed = linalg.matmul(attention, values);
            moved = layout.transpose{perm=[0, 2, 1, 3]}(mixed);
            joined = layout.reshape{shape=[b, s, w]}(moved);
            out = linalg.matmul(joined, o);
            middle = math.add(x, out);
            again = normalized(middle, s2, b2);
            wide = linalg.matmul(again, w1);
            active = nn.gelu(wide);
            narrow = linalg.matmul(active, w2);
            y = math.add(middle, narrow);
        }
    }
"""


def test_layers_of_transformers() -> None:
    net = graph_of(TRANSFORMER)

    def forward(x: Any, t: dict[str, Any]) -> Any:
        b, s, w = x.shape
        h = f.layer_norm(x, (w,), t["s1"], t["b1"])
        q, k, v = ((h @ t[name]).reshape(b, s, 2, w // 2).transpose(1, 2) for name in "qkv")
        mixed = f.softmax(q @ k.transpose(2, 3) / (w / 2) ** 0.5, 3) @ v
        middle = x + mixed.transpose(1, 2).reshape(b, s, w) @ t["o"]
        return middle + f.gelu(f.layer_norm(middle, (w,), t["s2"], t["b2"]) @ t["w1"]) @ t["w2"]

    require_the_same_model(net, noise(2, 5, 6), forward)


def test_lstms() -> None:
    net = graph_of("""
    import nn;
    graph lstm {
        @attrib { n: int = 4; }
        @input { x: real[5, 2, 3]; }
        @output { y: real[5, 2, n]; }
        @variable { w: real[4 * n, 3]; r: real[4 * n, n]; b: real[4 * n]; h: real[2, n]; c: real[2, n]; }
        @compose { y, last, state = nn.lstm(x, w, r, b, h, c); }
    }
    """)

    def forward(x: Any, t: dict[str, Any]) -> Any:
        weights = [t["w"], t["r"], t["b"], torch.zeros(16)]
        return torch.lstm(x, (t["h"][None], t["c"][None]), weights, True, 1, 0.0, False, False, False)[0]

    require_the_same_model(net, noise(5, 2, 3), forward)


def test_heads_of_detectors() -> None:
    net = graph_of("""
    import layer, nn, layout, math, algo;
    graph head {
        @attrib { classes: int = 3; }
        @input { x: real[b|4, 4, h|8, w|8]; }
        @output { indices: int[k|800, 3]; corners: real[b, h * w, 4]; scores: real[b, classes, h * w]; }
        @compose {
            moved = layer.conv{channels=4, size=[3, 3], padding=1}(x);
            flat = layout.reshape{shape=[b, 4, h * w]}(moved);
            corners = layout.transpose{perm=[0, 2, 1]}(flat);
            logits = layer.conv{channels=classes, size=[1, 1]}(x);
            each = layout.reshape{shape=[b, classes, h * w]}(logits);
            scores = nn.sigmoid(each);
            indices = algo.nonmax_suppress{iou_threshold=0.4, score_threshold=0.55, max_outputs_per_class=5}
                (corners, scores);
        }
    }
    """)
    rng = np.random.default_rng(3)
    net.variables.update({k: rng.normal(size=v.shape).astype(np.float32) for k, v in net.variables.items()})
    x = noise(2, 4, 5, 6)
    indices, corners, scores = net(x)
    t = {k: torch.tensor(v) for k, v in net.variables.items()}
    moved = f.conv2d(torch.tensor(x), t["moved.filter"], t["moved.bias"], padding=1)
    require_equal(corners, moved.reshape(2, 4, 30).transpose(1, 2))
    require_equal(scores, f.conv2d(torch.tensor(x), t["logits.filter"], t["logits.bias"]).reshape(2, 3, 30).sigmoid())
    wanted = tc.library.algo.nonmax_suppress(
        corners, scores, iou_threshold=0.4, score_threshold=0.55, max_outputs_per_class=5
    )
    np.testing.assert_array_equal(indices, wanted)
    assert len(indices) == 2 * 3 * 5  # five of each class
    picked = scores[indices[:, 0], indices[:, 1], indices[:, 2]]
    assert picked.min() > 0.55
