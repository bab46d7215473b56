"""The models as texts, with the weights that both libraries compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tcdsl as tc

__all__ = ["TEXTS", "graph", "weights"]

_ALEXNET = """
import nn, layer, layout;

graph alexnet {
    @attrib { batch: int = 1; }
    @input { x: real[batch, 3, 224, 224]; }
    @output { y: real[batch, 1000]; }
    @compose {
        c1 = layer.conv{channels=64, size=[11, 11], stride=4, padding=2}(x);
        r1 = nn.relu(c1);
        p1 = nn.max_pool{axes=[2, 3], size=3, stride=2, padding=0}(r1);
        c2 = layer.conv{channels=192, size=[5, 5], padding=2}(p1);
        r2 = nn.relu(c2);
        p2 = nn.max_pool{axes=[2, 3], size=3, stride=2, padding=0}(r2);
        c3 = layer.conv{channels=384, size=[3, 3], padding=1}(p2);
        r3 = nn.relu(c3);
        c4 = layer.conv{channels=256, size=[3, 3], padding=1}(r3);
        r4 = nn.relu(c4);
        c5 = layer.conv{channels=256, size=[3, 3], padding=1}(r4);
        r5 = nn.relu(c5);
        p5 = nn.max_pool{axes=[2, 3], size=3, stride=2, padding=0}(r5);
        flat = layout.flatten{axis=1}(p5);
        l1 = layer.linear{channels=4096}(flat);
        r6 = nn.relu(l1);
        l2 = layer.linear{channels=4096}(r6);
        r7 = nn.relu(l2);
        y = layer.linear{channels=1000}(r7);
    }
}
"""

_RESNET = """
import nn, layer, math;

operator normal {
    @attrib { channels: int; size: int; stride: int = 1; }
    @input { x: real[b, static c, s..(2)]; }
    @output { y: real[b, channels, (s + stride - 1) / stride ..]; }
    @compose {
        conv = layer.conv{channels=channels, size=[size, size], stride=stride, padding=size / 2, use_bias=false}(x);
        y = layer.batch_norm(conv);
    }
}

operator block {
    @attrib { channels: int; stride: int = 1; }
    @input { x: real[b, static c, s..(2)]; }
    @output { y: real[b, channels, (s + stride - 1) / stride ..]; }
    @compose {
        n1 = normal{channels=channels, size=3, stride=stride}(x);
        r1 = nn.relu(n1);
        n2 = normal{channels=channels, size=3}(r1);
        short = if stride != 1 then normal{channels=channels, size=1, stride=stride}(x) else x;
        sum = math.add(n2, short);
        y = nn.relu(sum);
    }
}

graph resnet18 {
    @attrib { batch: int = 1; }
    @input { x: real[batch, 3, 224, 224]; }
    @output { y: real[batch, 1000]; }
    @compose {
        n = normal{channels=64, size=7, stride=2}(x);
        r = nn.relu(n);
        p = nn.max_pool{axes=[2, 3], size=3, stride=2, padding=1}(r);
        b1 = block{channels=64}(p);
        b2 = block{channels=64}(b1);
        b3 = block{channels=128, stride=2}(b2);
        b4 = block{channels=128}(b3);
        b5 = block{channels=256, stride=2}(b4);
        b6 = block{channels=256}(b5);
        b7 = block{channels=512, stride=2}(b6);
        b8 = block{channels=512}(b7);
        mean = math.mean_reduce{axes=[2, 3], squeeze=true}(b8);
        y = layer.linear{channels=1000}(mean);
    }
}
"""

_LSTM = """
import nn;

graph lstm {
    @attrib { batch: int = 1; steps: int = 64; }
    @input { x: real[steps, batch, 128]; }
    @output { y: real[steps, batch, 256]; }
    @variable { w: real[1024, 128]; r: real[1024, 256]; b: real[1024]; }
    @constant { h: real[batch, 256] = 0.0; c: real[batch, 256] = 0.0; }
    @compose { y, last, state = nn.lstm(x, w, r, b, h, c); }
}
"""

#: Of each model, and the number of items, the text.
TEXTS: Mapping[tuple[str, int], str] = {
    ("alexnet", 1): _ALEXNET,
    ("alexnet", 16): _ALEXNET,
    ("resnet18", 1): _RESNET,
    ("lstm", 1): _LSTM,
}


def graph(model: str, batch: int) -> Any:
    """The graph, with `weights` for its variables."""
    found = tc.skriptnd.parse(TEXTS[model, batch], attributes={"batch": batch}).graphs[model]
    found.variables.update(weights({label: each.shape for label, each in found.variables.items()}))
    return found


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Random weights; variances and scales are ones."""
    generator = np.random.default_rng(0)
    found = {}
    for label, shape in shapes.items():
        if label.endswith(("variance", "scale")):
            found[label] = np.ones(shape, np.float32)
        else:
            fan_in = max(int(np.prod(shape[1:])), 1)
            found[label] = (generator.standard_normal(shape, np.float32) / np.float32(fan_in**0.5)).astype(np.float32)
    return found
