"""The transformer block: PyTorch's numbers for the same weights, NumPy's without PyTorch, and a task that it learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc

BATCH, POSITIONS, SIZE, HEADS, WIDTH = 2, 5, 6, 2, 7
# The parameters of the block in the order of `block_of_arrays`, with their names in PyTorch.
PARAMETERS = {
    "w_qkv": "self_attn.in_proj_weight",
    "b_qkv": "self_attn.in_proj_bias",
    "w_o": "self_attn.out_proj.weight",
    "b_o": "self_attn.out_proj.bias",
    "w_1": "linear1.weight",
    "b_1": "linear1.bias",
    "w_2": "linear2.weight",
    "b_2": "linear2.bias",
    "scale.norm_1": "norm1.weight",
    "shift.norm_1": "norm1.bias",
    "scale.norm_2": "norm2.weight",
    "shift.norm_2": "norm2.bias",
}
SHAPES = {
    "w_qkv": (3, HEADS, SIZE // HEADS, SIZE),
    "b_qkv": (3, HEADS, SIZE // HEADS),
    "w_o": (SIZE, HEADS, SIZE // HEADS),
    "w_1": (WIDTH, SIZE),
    "b_1": (WIDTH,),
    "w_2": (SIZE, WIDTH),
}


@pytest.fixture(autouse=True)
def one_thread():
    # Test processes share the cores.
    with tc.config(threads=1):
        yield


@pytest.fixture
def transformer(example):
    return example("transformer")


def values(dtype: str) -> dict[str, np.ndarray]:
    """Weights, the input `x`, and a `weight` for each cell of the output, which makes a loss of it."""
    generator = np.random.default_rng(7)
    shapes = {name: SHAPES.get(name, (SIZE,)) for name in PARAMETERS} | dict.fromkeys(
        ("x", "weight"), (BATCH, POSITIONS, SIZE)
    )
    return {name: generator.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def of_layers(transformer, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The output of the layer, and the gradients of the sum of weighted cells."""
    x = tc.tensor(given["x"], batch=2, label="x", grad=True)
    layer = transformer.block(heads=HEADS, width=WIDTH)
    output = layer(x)
    loss = (output * tc.tensor(given["weight"], batch=2)).sum()
    step = tc.compile(tc.train.grad_update(loss), output)
    assert sorted(layer.parameters) == sorted(PARAMETERS)
    for name in PARAMETERS:
        layer[name].value = given[name]
    step.run()
    found = {name: layer[name].grad for name in PARAMETERS}
    return {name: np.array(array) for name, array in (found | {"x": x.grad, "output": output.value}).items()}


def of_arrays(transformer, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    arguments = [given[name] for name in ("x", *PARAMETERS)]
    output, pullback = tc.vjp(transformer.block_of_arrays, *arguments)
    return dict(zip(("output", "x", *PARAMETERS), (output, *pullback(given["weight"])), strict=True))


def of_torch(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(
        SIZE, HEADS, WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    ).to(getattr(torch, str(given["x"].dtype)))
    parameters = dict(layer.named_parameters())
    assert sorted(parameters) == sorted(PARAMETERS.values())
    with torch.no_grad():
        for ours, theirs in PARAMETERS.items():
            parameters[theirs].copy_(torch.from_numpy(given[ours].reshape(parameters[theirs].shape)))
    x = torch.from_numpy(given["x"]).requires_grad_()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(POSITIONS, dtype=x.dtype)
    output = layer(x, src_mask=mask, is_causal=True)
    (output * torch.from_numpy(given["weight"])).sum().backward()
    found = {ours: parameters[theirs].grad.numpy().reshape(given[ours].shape) for ours, theirs in PARAMETERS.items()}
    return found | {"x": x.grad.numpy(), "output": output.detach().numpy()}


def of_numpy(given: dict[str, np.ndarray]) -> np.ndarray:
    """The output alone, with whole matrices of scores."""

    def normalized(x: np.ndarray, label: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        root = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return given[f"scale.{label}"] * centred / root + given[f"shift.{label}"]

    x = given["x"]
    q, k, v = np.einsum("phed,ntd->pnhte", given["w_qkv"], normalized(x, "norm_1")) + given["b_qkv"][:, None, :, None]
    scores = q @ k.swapaxes(2, 3) / np.sqrt(SIZE / HEADS) + np.triu(np.full((POSITIONS, POSITIONS), -np.inf), 1)
    shares = np.exp(scores)
    shares /= shares.sum(axis=-1, keepdims=True)
    x = x + np.einsum("dhe,nhte->ntd", given["w_o"], shares @ v) + given["b_o"]
    hidden = normalized(x, "norm_2") @ given["w_1"].T + given["b_1"]
    erf = np.vectorize(math.erf)
    active = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
    return x + active @ given["w_2"].T + given["b_2"]


# Each compiles a program of a hundred statements; both forms and both types are met by two of them.
@pytest.mark.parametrize(
    ("ours", "dtype", "tolerance"),
    [
        (of_layers, "float64", 1e-10),
        (of_arrays, "float32", 1e-4),
        pytest.param(of_layers, "float32", 1e-4, marks=pytest.mark.long),
        pytest.param(of_arrays, "float64", 1e-10, marks=pytest.mark.long),
    ],
)
def test_output_and_gradients_are_those_of_torch(transformer, ours, dtype, tolerance):
    expected = of_torch(values(dtype))
    found = ours(transformer, values(dtype))
    assert set(found) == set(expected) == {*PARAMETERS, "x", "output"}
    for name, array in expected.items():
        assert found[name].dtype == dtype
        assert_allclose(found[name], array, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("ours", [of_layers, pytest.param(of_arrays, marks=pytest.mark.long)])
def test_output_is_that_of_numpy_and_gradients_are_differences(transformer, ours):
    given = values("float64")
    found = ours(transformer, given)
    assert_allclose(found["output"], of_numpy(given), rtol=1e-10, atol=1e-10)
    for name in ("x", *PARAMETERS):
        direction = np.random.default_rng(1).normal(size=given[name].shape)
        high, low = (
            np.sum(given["weight"] * of_numpy(given | {name: given[name] + step * direction})) for step in (1e-6, -1e-6)
        )
        assert np.sum(found[name] * direction) == pytest.approx((high - low) / 2e-6, rel=1e-6, abs=1e-6), name


def test_no_position_sees_a_later_one(transformer):
    given = values("float64")
    changed = given["x"].copy()
    changed[:, 3:] += 1
    arguments = [given[name] for name in PARAMETERS]
    before = transformer.block_of_arrays(given["x"], *arguments)
    after = transformer.block_of_arrays(changed, *arguments)
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert np.all(np.any(before[:, 3:] != after[:, 3:], axis=-1))


def test_reversals(transformer):
    tokens, answers = transformer.reversals(np.random.default_rng(0), 4, 3, 10)
    assert tokens.shape == (4, 5)
    np.testing.assert_array_equal(tokens[:, 3:], tokens[:, 2:0:-1])
    np.testing.assert_array_equal(answers, tokens[:, 2::-1])


@pytest.mark.long
def test_it_learns_to_write_backwards(transformer):
    found = transformer.main(steps=300)
    assert found["losses"][0] > 2 > 0.2 > found["losses"][-1]
    assert found["right"] > 0.95
