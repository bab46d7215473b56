"""Every construct of OCANNL's notation, in the literal spelling and run: each test is named after one."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tests.tensors.interpreting import run, value

RNG = np.random.default_rng(2)
X = RNG.normal(size=(5, 3))


@pytest.fixture(scope="module")
def c() -> Any:
    """The module of the constructs."""
    tc.literal.install("tests.syntax.constructs_literal")
    try:
        yield importlib.import_module("tests.syntax.constructs_literal")
    finally:
        tc.literal.uninstall("tests.syntax.constructs_literal")


def batch() -> tc.Tensor:
    return tc.tensor(X, batch=1, label="x")


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


# -- the syntax of operations


def test_parameters_made_outside(c: ModuleType) -> None:
    made = c.layer_of_parameters(8)(batch())
    assert made.shape == (5, 8)
    assert made.label == "layer.x"


def test_inline_declarations(c: ModuleType) -> None:
    layer = c.mlp_layer_of_hid_dim(hid_dim=8)
    made = layer(batch())
    assert_allclose(value(made), relu(X @ layer["w"].value.T + layer["b"].value))
    assert (layer["w"].label, layer["b"].label) == ("w", "b")


def test_inline_initial_values(c: ModuleType) -> None:
    made = c.initial_values()
    assert value(made).tolist() == [-2]
    assert [parameter.value.tolist() for parameter in made.operands] == [[-4], [2]]


def test_inline_initial_number(c: ModuleType) -> None:
    assert_allclose(value(c.initial_number(batch())), X / 2)


def test_uniform_initial_values(c: ModuleType) -> None:
    layer = c.mlp_layer_of_hid_dim(hid_dim=1000)
    layer(batch())
    cells = layer["w"].value
    assert abs(cells.mean()) < 0.03
    assert -1 / np.sqrt(3) <= cells.min() < -0.55
    assert 0.55 < cells.max() < 1 / np.sqrt(3)


def test_inline_output_dimensions(c: ModuleType) -> None:
    made = c.output_axes_by_a_tuple(h=2, w=3)(tc.tensor(np.ones((2, 1))))
    assert made.shape == (2, 3)


# -- the syntax of code


def test_logic_of_composition(c: ModuleType) -> None:
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    product = np.ones((2, 4))
    c.tensor_multiplication(product, a, b)
    assert_allclose(product, a @ b)


@pytest.mark.parametrize("name", ["pointwise_update", "update_by_an_expression"])
def test_two_ways_of_updating_a_parameter(c: ModuleType, name: str) -> None:
    p = tc.param("p", init=[1.0, 2.0])
    p.grad = [10.0, 20.0]
    run(getattr(c, name)(p, learning_rate=0.1))
    assert_allclose(p.value, [2, 4])


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_one(c: ModuleType, momentum: float, nesterov: bool) -> None:
    p = tc.param("p", init=[1.0, 2.0])
    code = c.sgd_one(p, learning_rate=0.1, momentum=momentum, weight_decay=0.5, nesterov=nesterov)
    expected, velocity = np.array([1.0, 2.0]), np.zeros(2)
    for _ in range(3):
        p.grad = expected**2
        run(code)
        delta = expected**2 + 0.5 * expected
        if momentum:
            velocity = momentum * velocity + delta
            delta = delta + momentum * velocity if nesterov else velocity
        expected = expected - 0.1 * delta
        assert_allclose(p.value, expected)


def test_declarations_of_code_carry_the_label_of_the_parameter(c: ModuleType) -> None:
    p = tc.param("p", init=[1.0])
    text = str(c.sgd_one(p, learning_rate=0.1, momentum=0.9))
    assert "sgd_delta_p[i]" in text
    assert "update sgd_momentum_p" in text


# -- literals


def test_matrix_literal(c: ModuleType) -> None:
    made = c.matrix_literal()
    assert str(made.rows) == "3 -> 2"
    assert value(made).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_batch_literal(c: ModuleType) -> None:
    assert str(c.batch_literal().rows) == "3 | 2"


def test_labels_of_dimensions(c: ModuleType) -> None:
    made = c.labels_of_dimensions()
    value(made)
    hey = made.operands[0].operands[0]
    assert str(hey.rows) == "q=1 -> p=1"


def test_conflicting_labels() -> None:
    with pytest.raises(tc.ShapeError, match=r"(?s)`q`.*`p`|q.*p"):
        tc.number(1.0, label="q") + tc.number(2.0, label="p")


def test_wildcard_bindings_constrain(c: ModuleType) -> None:
    made = c.wildcard(batch(), tc.tensor(np.zeros(6)))
    assert made.shape == (5, 6)


# -- the generalized einsum notation


def test_sum_out_all_axes(c: ModuleType) -> None:
    made = c.scalar_loss(batch_size=5)(batch())
    assert made.shape == (1,)
    assert_allclose(value(made), [X.sum() / 5])


def test_binary_einsum(c: ModuleType) -> None:
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    assert_allclose(c.contraction(a, b), a @ b)
    assert_allclose(value(c.contraction(tc.tensor(a), tc.tensor(b))), a @ b)


def test_slice_at_the_leftmost_batch_axis(c: ModuleType) -> None:
    data = tc.tensor(np.arange(24.0).reshape(4, 3, 2), batch=2)
    batch_n = tc.static_index("batch_n", 4)
    made = c.slice_at(data, batch_n)
    assert str(made.rows) == "3 | 2"
    batch_n.value = 2
    assert_allclose(value(made), np.arange(24.0).reshape(4, 3, 2)[2])


def test_other_cells_get_the_neutral_element(c: ModuleType) -> None:
    lhs = tc.param("lhs", init=np.zeros((4,)))
    rhs = tc.tensor(np.array(7.0))
    run(c.expand_with_ones(lhs, rhs))
    assert lhs.value.tolist() == [1, 1, 7, 1]


# -- arrays of a tensor


def test_merge_buffer_of_the_gradient(c: ModuleType) -> None:
    p = tc.param("p", init=[1.0])
    p.grad = [1.0]
    p.grad.merge = [5.0]
    run(c.merge_gradients(p))
    assert p.grad.tolist() == [6]


def test_value_grad_and_merge(c: ModuleType) -> None:
    p = tc.param("p", init=[1.0])
    p.grad, p.merge = [1.0], [5.0]
    run(c.accessors(p))
    assert (p.value.tolist(), p.grad.tolist()) == ([2], [6])


def test_block_comments(c: ModuleType) -> None:
    p = tc.param("p", init=[1.0])
    routine = tc.compile(c.block_comments(p))
    assert "space separated comment tensor p debug_name: p" in routine.explain("ir")
    assert "space separated comment tensor p debug_name: p" in routine.explain("python")


def test_statements_in_the_scope_of_a_comment(c: ModuleType) -> None:
    p = tc.param("p", init=[1.0])
    routine = tc.compile(c.scopes_of_comments(p))
    routine.run()
    assert p.value.tolist() == [-2.0]
    assert "step of p" in routine.explain("ir")
    array = np.array([1.0])
    c.scopes_of_comments(array)
    assert array.tolist() == [-2.0]


# -- layers


def test_label_from_binding_and_argument(c: ModuleType) -> None:
    layer = c.mlp_layer(config=c.MlpLayerConfig(("L1",), 4))
    made = layer(batch())
    assert made.label == "mlp_layer.x"
    assert list(layer.parameters) == ["w.L1", "b.L1"]


def test_three_layer_perceptron(c: ModuleType) -> None:
    network = c.three_layer_perceptron(config=c.TlpConfig((), 4, 5, 2))
    made = network(batch())
    expected = X
    for k in "123":
        expected = relu(expected @ network[f"w.L{k}"].value.T + network[f"b.L{k}"].value)
    assert_allclose(value(made), expected)


def test_mlp_of_layers_made_first(c: ModuleType) -> None:
    assert c.mlp(c.MlpConfig((), (4, 5)))(batch()).shape == (5, 5)


def test_mlp_folded_over_its_layers(c: ModuleType) -> None:
    network = c.folded_mlp(config=c.MlpConfig((), (4, 5)))
    assert network(batch()).shape == (5, 5)
    assert list(network.parameters) == ["w.L0", "b.L0", "w.L1", "b.L1"]


# -- a primitive with its gradient


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5])
def test_pointpow(c: ModuleType, p: float) -> None:
    power = c.pointpow(p)
    x = np.array([1.0, 2.0, 3.0])
    assert_allclose(power(x), x**p)
    assert_allclose(tc.grad(lambda x: power(x).sum())(x), p * x ** (p - 1))
