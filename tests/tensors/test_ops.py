"""`@op` functions on tensors: inline parameters, layers, labels, statements as nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import op
from tests.tensors.interpreting import value

RNG = np.random.default_rng(5)
X = RNG.normal(size=(7, 3)).astype("float32")


def batch() -> tc.Tensor:
    return tc.tensor(X, batch=1, label="x")


@op
def mlp_layer(x, *, label, hid_dim):
    return relu("w" @ x + "b"[hid_dim])


def test_inline_parameters_find_their_axes() -> None:
    layer = mlp_layer(label="L1", hid_dim=5)
    made = layer(batch())
    assert made.shape == (7, 5)
    assert layer["w"].shape == (5, 3)
    assert layer["b"].shape == (5,)
    assert str(layer["w"].rows) == "3 -> 5"
    expected = np.maximum(X @ layer["w"].value.T + layer["b"].value, 0)
    assert_allclose(value(made), expected, rtol=1e-5, atol=1e-6)  # of terms that cancel in single precision


def test_parameters_take_the_type_of_the_data() -> None:
    layer = mlp_layer(label="L1", hid_dim=5)
    made = layer(batch())
    assert layer["w"].dtype == layer["b"].dtype == made.dtype == np.float32
    other = mlp_layer(label="L1", hid_dim=5)
    other(tc.tensor(X.astype("float64"), batch=1))
    assert other["b"].dtype == np.float64


def test_labels_of_parameters_and_results() -> None:
    layer = mlp_layer(label="L1", hid_dim=5)
    made = layer(batch())
    assert layer["w"].label == "w.L1"
    assert made.label == "mlp_layer.x"
    assert list(layer.parameters) == ["w.L1", "b.L1"]


def test_names_in_programs_do_not_grow_with_the_number_of_layers() -> None:
    x = batch()
    for number in range(12):
        x = mlp_layer(label=f"L{number}", hid_dim=5)(x)
    assert len(x.labels) == 13
    assert x.name == "mlp_layer_mlp_layer_mlp_layer_mlp_layer_x"


def test_a_layer_keeps_its_parameters() -> None:
    layer = mlp_layer(label="L1", hid_dim=5)
    layer(batch())
    w = layer["w"]
    layer(batch())
    assert layer["w"] is w
    assert mlp_layer(label="L1", hid_dim=5) is not layer


@dataclass(frozen=True)
class Config:
    label: tuple[str, ...]
    hid_dim: int


@op
def configured_layer(x, *, config):
    return relu("w" @ x + "b"[config.hid_dim])


def test_label_from_a_configuration_object() -> None:
    layer = configured_layer(config=Config(("L", "1"), 4))
    assert layer(batch()).shape == (7, 4)
    assert layer["b"].label == "b.L.1"


@op
def three_layer_perceptron(x, *, dim1, dim2, dim3):
    return mlp_layer(
        mlp_layer(mlp_layer(x, label="L1", hid_dim=dim1), label="L2", hid_dim=dim2), label="L3", hid_dim=dim3
    )


def test_three_layer_perceptron_lifts_its_layers() -> None:
    network = three_layer_perceptron(dim1=4, dim2=5, dim3=2)
    made = network(batch())
    labels = ["w.L1", "b.L1", "w.L2", "b.L2", "w.L3", "b.L3"]
    assert list(network.parameters) == labels
    again = network(batch())
    assert [id(p) for p in network.parameters.values()] == [id(network[label]) for label in labels]
    hidden = X
    for k in "123":
        hidden = np.maximum(hidden @ network[f"w.L{k}"].value.T + network[f"b.L{k}"].value, 0)
    assert_allclose(value(made), hidden, rtol=1e-4, atol=1e-6)
    assert_allclose(value(again), value(made))


@op
def mlp(x, *, hid_dims):
    for k, hid_dim in enumerate(hid_dims):
        x = mlp_layer(x, label=f"L{k}", hid_dim=hid_dim)
    return x


def test_mlp_with_layers_made_in_a_loop() -> None:
    network = mlp(hid_dims=(4, 5))
    assert network(batch()).shape == (7, 5)
    assert list(network.parameters) == ["w.L0", "b.L0", "w.L1", "b.L1"]


def test_layers_made_outside() -> None:
    layers = [mlp_layer(label=f"L{k}", hid_dim=n) for k, n in enumerate((4, 5))]

    def network(x: tc.Tensor) -> tc.Tensor:
        for layer in layers:
            x = layer(x)
        return x

    assert network(batch()).shape == (7, 5)


def test_a_network_that_changes_between_calls() -> None:
    sizes = [4]

    @op
    def unstable(x, *, name):
        return mlp_layer(x, label="L", hid_dim=sizes[0])

    layer = unstable(name="a")
    layer(batch())
    sizes[0] = 5
    with pytest.raises(tc.ConfigurationError, match=r"met mlp_layer\(label='L', hid_dim=4\) here at its first call"):
        layer(batch())


@op
def affine(x):
    return "w" @ x + "b"[2]


def test_an_op_without_configuration_has_one_set_of_parameters() -> None:
    first, second = affine(batch()), affine(batch())
    assert first.operands[1] is second.operands[1]
    assert_allclose(value(first), value(second))


def test_arrays_in_arrays_out() -> None:
    @op
    def double(x):
        return 2 * ("a"[3] + x)

    out = double(np.ones(3))
    assert type(out) is np.ndarray
    assert_allclose(double(np.ones(3)), out)


def test_names_of_declarations_are_identifiers() -> None:
    @op
    def tied(x):
        y = relu("w"[3] @ x)
        return w @ y

    made = tied(batch())
    assert made.operands[0] is made.operands[1].operands[0].operands[0]


def test_an_identifier_may_stand_before_its_declaration() -> None:
    @op
    def early(x):
        y = w @ x
        return "w"[3] @ y

    assert early(batch()).shape == (7, 3)


def test_strings_stay_strings() -> None:
    @op
    def named(x):
        text = "abc"[0] + "L" + str(3)
        assert text == "aL3"
        return 2 * x

    assert_allclose(value(named(batch())), 2 * X)
    assert_allclose(named(X), 2 * X)


def test_param_says_everything() -> None:
    @op
    def scaled(x):
        return param("s", o=3, init=2.0) * x

    made = scaled(batch())
    assert_allclose(value(made), 2 * X)


def test_an_op_without_arguments() -> None:
    @op
    def c():
        return param("a", init=[-4]) + param("b", init=[2])

    assert value(c()).tolist() == [-2]
    assert c().label == "c"


@op
def convolution(x, k):
    O[n, i] += x[n, i + j] * k[j]
    return O


def test_statements_become_nodes() -> None:
    x, k = batch(), tc.param("k", init=[1.0, -1.0])
    made = convolution(x, k)
    assert str(made.rows) == "7 | 2"
    assert made.label == "convolution.x"
    assert made.differentiable
    assert_allclose(value(made), X[:, :-1] - X[:, 1:], rtol=1e-6)


def test_parameters_in_statements() -> None:
    @op
    def layer(x, *, size):
        k = param("k", o=size)
        O[n, i] += x[n, i + j] * k[j]
        return relu(O + "b"[O.shape[1]])

    made = layer(size=2)
    result = made(batch())
    assert result.shape == (7, 2)
    assert str(result.rows) == "7 | 2"
    assert list(made.parameters) == ["k", "b"]


def test_tensors_of_unknown_shape_beside_statements() -> None:
    @op
    def mixed(x):
        O[n, i] += x[n, i] * 2.0
        return relu("w" @ O + "b"[4])

    made = mixed(batch())
    assert made.shape == (7, 4)
    w, b = parameters(mixed)
    assert_allclose(value(made), np.maximum(2 * X @ w.value.T + b.value, 0), rtol=1e-5, atol=1e-6)


def parameters(function: tc.TensorFunction) -> list[tc.Tensor]:
    from tcdsl.tensors.functions.layers import parameters_of

    return list(parameters_of(function))


def test_several_results_share_their_statements() -> None:
    @op
    def both(x):
        S[n] += x[n, i]
        M[n] >>= x[n, i]
        return S, {"max": M}

    s, rest = both(batch())
    assert s.label == "both.S.x"
    assert_allclose(value(s), X.sum(1), rtol=1e-6)
    assert_allclose(value(rest["max"]), X.max(1), rtol=1e-6)
    assert len(set(map(id, [s, rest["max"]]))) == 2


def test_ops_inside_ops() -> None:
    @op
    def outer(x, k):
        return convolution(x, k) * 2

    k = tc.param("k", init=[1.0, 1.0])
    assert_allclose(value(outer(batch(), k)), 2 * (X[:, :-1] + X[:, 1:]), rtol=1e-6)


def test_constraints_only() -> None:
    @op
    def tied(x):
        y = "w" @ x
        with constraints_only():
            y + tc.tensor(np.zeros(6))
        return y

    assert tied(batch()).shape == (7, 6)


# -- bad input
# ---------------------------------------------------------------------------------------------------------------


def test_undetermined_axes() -> None:
    @op
    def open_layer(x):
        return "w" @ x

    made = open_layer(batch())
    with pytest.raises(tc.ShapeError, match=r'`w` has output axes that nothing determines(.|\n)*write "w"\[n\]'):
        made.value


def test_a_parameter_inside_a_loop() -> None:
    @op
    def looped(x):
        for _ in range(2):
            x = relu("w" @ x)
        return x

    with pytest.raises(tc.DslSyntaxError, match=r'"w" is declared inside a loop(.|\n)*\^\^\^(.|\n)*before the loop'):
        looped(batch())


def test_configuration_and_arguments_at_once() -> None:
    with pytest.raises(tc.ConfigurationError, match=r'declares the parameter "w"(.|\n)*configure it once'):
        mlp_layer(batch(), label="L", hid_dim=3)


def test_contradicting_sizes_leave_parameters_as_they_were() -> None:
    layer = mlp_layer(label="L1", hid_dim=5)
    layer(batch())
    with pytest.raises(tc.ShapeError, match=r"(?s)the sizes of axes differ.*w\.L1: 3 -> .*x: 4"):
        layer(tc.tensor(np.ones(4), label="x"))
    assert layer["w"].shape == (5, 3)


def test_one_name_with_two_shapes() -> None:
    @op
    def twice(x):
        return "b"[3] + x + "b"[4]

    with pytest.raises(tc.ShapeError, match=r'"b" is declared with output axes \[4\] here, and with output axes \[3\]'):
        twice(batch())


def test_strings_outside_of_ops() -> None:
    with pytest.raises(tc.DslSyntaxError, match=r"the string 'w' is an operand(.|\n)*tc.param\('w'"):
        "w" @ batch()


def test_derivatives_by_arrays_of_ops_with_parameters() -> None:
    with pytest.raises(tc.DifferentiationError, match="declares parameters"):
        tc.grad(lambda x: affine(x).sum())(np.ones(3))


def test_ops_that_return_nothing() -> None:
    @op
    def nothing(x):
        x * 2

    with pytest.raises(tc.DslSyntaxError, match=r"`nothing` returns nothing(.|\n)*return y"):
        nothing(batch())


def test_out_is_for_arrays() -> None:
    with pytest.raises(tc.ConfigurationError, match="out is for arrays"):
        convolution(batch(), tc.param("k", o=2), out=np.ones(3))


def test_faults_of_operators_point_at_the_line() -> None:
    with pytest.raises(tc.TcdslError, match=r"(?s)test_ops.py:\d+: a float as an index.*batch\(\)\[1.5\]"):
        batch()[1.5]


def test_parameters_have_names() -> None:
    with pytest.raises(tc.DtypeError, match="a parameter has a name"):
        tc.param(3)


def test_layers_configured_inside_an_op_are_made_once() -> None:
    @op
    def applied(x, *, hid_dim):
        return mlp_layer(label="inner", hid_dim=hid_dim)(x)

    layer = applied(hid_dim=4)
    first, second = layer(batch()), layer(batch())
    assert list(layer.parameters) == ["w.inner", "b.inner"]
    assert_allclose(value(first), value(second))


def test_declarations_as_arguments_of_primitives() -> None:
    @op
    def gated(x):
        return relu("w"[3]) * max("v"[3], 0.5) * x

    made = gated(batch())
    w, v = parameters(gated)
    assert_allclose(value(made), np.maximum(w.value, 0) * np.maximum(v.value, 0.5) * X, rtol=1e-6)


def test_a_failed_call_says_nothing_of_parameters() -> None:
    w = tc.param("w")

    @op
    def failing(x, y):
        z = w @ x
        return z @ y @ x

    with pytest.raises(tc.TcdslError):
        failing(batch(), tc.tensor(np.ones((2, 2))))
    assert (w @ tc.tensor(np.ones(5)) + np.zeros(2)).shape == (2,)


def test_what_is_for_arrays_alone_says_so_of_an_op_that_declares_parameters() -> None:
    @op
    def dense(x):
        return "w" @ x + "b"[3]

    @op
    def network(x):
        return dense(x) * 2

    for function, source in ((dense, 'return "w" @ x'), (network, 'return "w" @ x')):
        for use, call in {
            "interpret()": function.interpret,
            "cost()": function.cost,
            "program()": function.program,
            "explain()": lambda x, f=function: f.explain("ir", x),
            "out=": lambda x, f=function: f(x, out=np.zeros(3)),
        }.items():
            with pytest.raises(tc.ConfigurationError) as caught:
                call(np.ones(4))
            message = str(caught.value)
            assert (
                f"`{function.__name__}` declares parameters, so it is a part of graphs of tensors, and {use}" in message
            )
            assert source in message
            assert "call it with tensors, `tc.tensor(x)`" in message
