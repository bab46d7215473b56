"""`@quantize`: values that a quantized device gives, and derivatives that pass straight through."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.skriptnd.files import write_array
from tcdsl.skriptnd.graphs import ModelGraph
from tests.skriptnd.graphs import graph_of, reals

NET = """
import nn, quant, layer;
public operator inner {
    @input { a: real[n,m]; } @output { b: real[n,m]; }
    @compose { c = nn.relu(a); b = nn.relu(c); }
}
graph net {
    @attrib { bits: int = 4; }
    @input { x: real[n|64,3]; }
    @output { y: real[n,2]; }
    @compose { h = layer.linear{channels=5}(x); r = inner(h); y = layer.linear{channels=2}(r); }
    @quantize { QUANTIZATIONS }
}
"""
LINES = """
    x: quant.zero_point_linear_quantize{zero_point=1, scale=0.1, bits=bits};
    main.net.h.filter: quant.min_max_linear_quantize{min=-1.0, max=1.0, bits=bits, symmetric=true};
    h: quant.min_max_linear_quantize{min=-1.0, max=1.0, bits=bits};
    r.c: quant.min_max_linear_quantize{min=0.0, max=1.0, bits=bits, signed=false};
    y.filter: quant.min_max_linear_quantize{channel_axis=0, min=[-1.0,-2.0], max=[1.0,0.5], bits=bits};
"""


def away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def zero_point(x: np.ndarray, zero: int, scale: float, bits: int) -> np.ndarray:
    high = 2 ** (bits - 1) - 1
    return (np.clip(zero + away(x / scale), -high - 1, high) - zero) * scale


def min_max(x: np.ndarray, low: float, high: float, bits: int, symmetric: bool = False) -> np.ndarray:
    levels = 2**bits - 1 - int(symmetric)
    return away((np.clip(x, low, high) - low) / (high - low) * levels) / levels * (high - low) + low


def quantized_net(x: np.ndarray, w: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The values, and the derivative of their sum by x."""
    first = min_max(w["h.filter"], -1, 1, 4, True)
    second = np.stack([min_max(w["y.filter"][0], -1, 1, 4), min_max(w["y.filter"][1], -2, 0.5, 4)])
    moved = zero_point(x, 1, 0.1, 4) @ first.T + w["h.bias"]
    h = min_max(moved, -1, 1, 4)
    r = min_max(np.maximum(h, 0), 0, 1, 4)
    slope = second.sum(0) * (r > 0) * (np.abs(moved) <= 1) @ first
    return r @ second.T + w["y.bias"], slope * (x / 0.1 + 1 >= -8) * (x / 0.1 + 1 <= 7)


@pytest.fixture(scope="module")
def net() -> ModelGraph:
    made = graph_of(NET.replace("QUANTIZATIONS", LINES))
    for k, (label, zeros) in enumerate(made.variables.items()):
        made.variables[label] = reals(*zeros.shape, seed=k) - 1
    return made


def test_a_quantized_graph_rounds_what_the_block_names(net: ModelGraph) -> None:
    x, quantized = reals(6, 3) - 1, net.quantized()
    wanted, slope = quantized_net(x, net.variables)
    np.testing.assert_allclose(quantized(x), wanted, atol=1e-6)
    assert np.abs(net(x) - wanted).max() > 0.02
    # Derivatives pass straight through the roundings, and are 0 where something is cut off.
    np.testing.assert_allclose(tc.grad(lambda x: quantized(x).sum())(x), slope, atol=1e-6)
    assert (slope == 0).any()
    assert (slope != 0).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(quantized))(x), quantized(x))
    wide = x.astype(np.float64)
    exact = quantized_net(wide, {label: value.astype(np.float64) for label, value in net.variables.items()})[0]
    np.testing.assert_allclose(quantized(wide), exact, atol=1e-12)
    finer = np.abs(net.configured(bits=12).quantized()(x) - quantized.configured(bits=11)(x)).max()
    assert finer < np.abs(quantized.configured(bits=3)(x) - wanted).max() / 10


def test_a_quantized_graph_trains(net: ModelGraph) -> None:
    quantized, x = net.quantized().configured(bits=8), tc.tensor(reals(16, 3) - 1)
    wanted = tc.tensor(np.stack([x.value[:, 0] / 4, x.value[:, 1] / 8], 1))
    parameters = {label: tc.param(label, init=value / 2) for label, value in net.variables.items()}
    loss = ((quantized(x, variables=parameters) - wanted) ** 2).mean()
    step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=0.02))
    losses = []
    for _ in range(100):
        step.run()
        losses.append(float(loss.value))
    assert losses[-1] < losses[0] / 4


def test_any_operator_quantizes() -> None:
    # Levels that are powers of 2, of a pack of tensors and in the rounds of a loop.
    graph = graph_of("""
        import math;
        operator power { @attrib { least: real; } @input { x: real[s..]; } @output { y: real[s..]; }
            @lower { y[i..] = 2.0 ** round(log2(x[i..] >? least)), i < s; } }
        operator twice { @input { x: real[s..]; } @output { y: real[s..]; }
            @lower { y[i..] = x[i..] + x[i..], i < s; } }
        graph g { @input { xs: real[3]..(2); n: int[]; } @output { y: real[3]; }
            @compose { a = math.add(xs[0], xs[1]); y = with s = a do..(n) twice(s); }
            @quantize { xs: power{least=0.25}; y: power{least=0.5}; } }
    """)
    x, z = np.array([0.1, 0.6, 3.0], np.float32), np.array([0.3, 1.0, 5.0], np.float32)

    def power(x: np.ndarray, least: float) -> np.ndarray:
        return 2.0 ** away(np.log2(np.maximum(x, least)))

    wanted = power(4 * (power(x, 0.25) + power(z, 0.25)), 0.5)
    np.testing.assert_allclose(graph.quantized()([x, z], np.int32(2)), wanted, rtol=1e-6)
    slope = tc.grad(lambda x: graph.quantized()([x, z], np.int32(2)).sum())(x)
    np.testing.assert_allclose(slope, 4 * (x > 0.25), rtol=1e-5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("z: quant.min_max_linear_quantize{min=0.0, max=1.0, bits=3};", "there is no tensor `z` to quantize"),
        ("h.filer: quant.min_max_linear_quantize{min=0.0, max=1.0, bits=3};", "did you mean `h.filter`?"),
        ("h.input: quant.min_max_linear_quantize{min=0.0, max=1.0, bits=3};", "have labels where it is `public`"),
        (
            "h: quant.min_max_linear_quantize{min=0, max=1.0, bits=3};",
            "the attribute `min` is real, and its value is int",
        ),
        ("h: quant.min_max_linear_quantize{bots=3};", "has no attribute `bots`"),
        ("h: quant.min_max;", "the module `quant` has no operator `min_max`"),
        ("h: nn.linear;", "`nn.linear` lacks the input `filter`"),
        ("h: nn.max_pool{axes=[1], size=[2], stride=[2]};", "`nn.max_pool` makes real["),
        ("h: nn.relu; h: nn.relu;", "`h` is quantized twice"),
    ],
)
def test_faults_of_the_block_are_told_when_the_text_is_read(line: str, message: str) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        tc.skriptnd.parse(NET.replace("QUANTIZATIONS", line))
    assert message in str(caught.value)


def test_files_of_levels_are_the_numbers_that_they_stand_for(net: ModelGraph, tmp_path: Path) -> None:
    # The files that quantized models have: levels, which the text gives a scale.
    net.save(tmp_path)
    levels = {"h.filter": np.arange(-7, 8, dtype=np.int8).reshape(5, 3), "y.filter": np.arange(-5, 5).reshape(2, 5)}
    for label, array in levels.items():
        data = bytearray(write_array(array.astype(np.int8), label))
        struct.pack_into("<I", data, 4 + 4 * 11, 3)
        (tmp_path / f"main.net.{label}.dat").write_bytes(data)
    loaded = tc.skriptnd.load(tmp_path).graphs["net"]
    ends = np.array([[-1.0, 1.0], [-2.0, 0.5]])
    np.testing.assert_allclose(loaded.variables["h.filter"], levels["h.filter"] / 7, rtol=1e-6)
    wanted = (levels["y.filter"] + 8) / 15 * (ends[:, 1:] - ends[:, :1]) + ends[:, :1]
    np.testing.assert_allclose(loaded.variables["y.filter"], wanted, rtol=1e-5)
    # Such numbers stay what they are where they are rounded.
    x = reals(3, 3)
    rounded = {**loaded.variables, "h.filter": min_max(loaded.variables["h.filter"], -1, 1, 4, True)}
    np.testing.assert_allclose(loaded.quantized()(x), loaded.quantized()(x, variables=rounded), atol=1e-6)
    lines = (tmp_path / "main.sknd").read_text().split("\n")
    (tmp_path / "main.sknd").write_text("\n".join(line for line in lines if "h.filter" not in line))
    with pytest.raises(tc.ConfigurationError, match=r"`h\.filter` holds levels, and the text does not say what"):
        tc.skriptnd.load(tmp_path)


def test_a_graph_without_the_block_is_not_quantized() -> None:
    text = "graph g { @input { x: real[3]; } @output { y: real[3]; } @compose { y = nn.relu(x); } }"
    graph = graph_of(f"import nn; {text}")
    assert "g: 1 operator<" in graph._repr_html_()
    with pytest.raises(tc.ConfigurationError, match="the graph `g` has no `@quantize`"):
        graph.quantized()


@pytest.mark.parametrize("name", ["zero_point", "min_max"])
def test_operators_that_quantize_pass_derivatives_straight_through(name: str) -> None:
    given = {"zero_point": [1, 0, 2], "scale": [0.1, 0.2, 0.3], "bits": 3}
    if name == "min_max":
        given = {"min": [-0.5, -0.8, -1.8], "max": [0.2, 0.6, 0.3], "bits": 3}
    quantize = getattr(tc.library.quant, f"{name}_linear_quantize")
    x = np.random.default_rng(0).normal(size=(4, 3, 5)).astype(np.float32)
    weight = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
    low, high = (np.reshape(each, (3, 1)) for each in ([-0.5, -0.8, -1.8], [0.2, 0.6, 0.3]))
    wanted = np.where((x >= low) & (x <= high), weight, 0)
    found = tc.grad(lambda x: (quantize(x, **given) * weight).sum())(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert 0.2 < np.mean(wanted != 0) < 0.8
    # In graphs, too, where they are called as any operator is.
    graph = graph_of(f"""import quant; graph g {{
        @input {{ x: real[4,3,5]; }} @output {{ y: real[4,3,5]; }}
        @compose {{ y = quant.{name}_linear_quantize{{{", ".join(f"{k}={v}" for k, v in given.items())}}}(x); }}
    }}""")
    np.testing.assert_array_equal(graph(x), quantize(x, **given))
    np.testing.assert_allclose(tc.grad(lambda x: (graph(x) * weight).sum())(x), wanted, rtol=1e-6)


def test_lines_of_operators_that_no_graph_calls_are_checked() -> None:
    with pytest.raises(tc.ConfigurationError, match=r"`nn\.relu` has no attribute `beta`"):
        tc.skriptnd.parse("""import nn;
        operator f { @input { x: real[n]; } @output { y: real[n]; } @compose { y = nn.relu(x); }
            @quantize { y: nn.relu{beta=1.0}; } }
        graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = nn.relu(x); } }""")
