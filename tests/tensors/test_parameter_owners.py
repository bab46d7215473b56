"""Who keeps parameters: an op without configuration, or the layer that configuration makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op


def test_an_op_without_configuration_shows_its_parameters():
    @op
    def affine(x):
        return "w" @ x + "b"[3]

    assert affine.parameters == {}
    y = affine(tc.tensor(np.ones(2)))
    assert list(affine.parameters) == ["w", "b"]
    np.testing.assert_allclose(y.value, affine.parameters["w"].value.sum(1) + affine.parameters["b"].value)


def test_an_op_of_configuration_alone_is_a_factory():
    @op
    def total(*, count):
        a = param("a", init=[1.0])
        return a * count

    layer = total(count=3)
    assert isinstance(layer, tc.Layer)
    first, second = layer(), layer()
    assert first.operands[0] is second.operands[0] is layer["a"]
    assert first.value.tolist() == [3.0]
    other = total(count=4)
    other()
    assert other["a"] is not layer["a"]


def test_an_op_of_configuration_alone_without_parameters_runs():
    @op
    def ones(*, size):
        y: real[size]
        y[i] = 1.0
        return y

    assert ones(size=2).tolist() == [1.0, 1.0]


def test_configuration_and_arguments_at_once_have_nobody_to_keep_parameters():
    @op
    def affine(x, *, size):
        return "w" @ x + "b"[size]

    with pytest.raises(tc.ConfigurationError, match=r'parameter "w", which would be made anew(.|\n)*affine\(size=3\)'):
        affine(np.ones(2), size=3)


def test_a_layer_without_all_of_its_configuration():
    @op
    def affine(x, *, label, size):
        return "w" @ x + "b"[size]

    with pytest.raises(tc.ConfigurationError, match=r"affine\(\): missing a required argument: 'label'"):
        affine(size=3)


def test_what_a_later_place_says_of_a_parameter_holds_in_the_whole_function():
    def helper(x):
        return "w" * x

    @op
    def inner(x):
        return "w" * x + param("w", init=3.0)

    @op
    def layer(x, *, label):
        return "w" * x + param("w", init=3.0)

    @op
    def by_name(x):
        h = w * x
        return h + param("w", init=3.0)

    @op
    def by_text(x):
        return "w" * x + param("w", init=3.0)

    @op
    def by_helper(x):
        return helper(x) + param("w", init=lambda generator, sizes: np.full(sizes, 3.0))

    @op
    def in_loops(x):
        h = "w" * x
        for _k in range(2):
            h = h + param("w", init=3.0) / 4
        for _k in tc.loop(2):
            h = h + param("w", init=3.0) / 4
        return h

    @op
    def in_rounds_that_data_end(x):
        rest, h = x.sum(), "w" * x
        while rest > 2:
            rest = rest / 2
            h = h + param("w", init=3.0)
        return h

    @op
    def by_op(x):
        return inner(x)

    @op
    def by_layer(x):
        return layer(x, label="a") + 0 * layer(x, label="b")

    x = tc.tensor(np.ones(3))
    for function in (by_name, by_text, by_helper, in_loops, in_rounds_that_data_end, by_op, by_layer):
        assert function(x).value.tolist() == [6.0] * 3, function
        assert function(np.ones(3)).tolist() == [6.0] * 3
    assert layer(label="c")(x).value.tolist() == [6.0] * 3


def test_later_places_say_axes_and_types():
    @op
    def outputs(x):
        h = w @ x
        return h + "w"[4].T if x.ndim > 1 else h * ("w"[4] @ x)

    @op
    def inputs(x):
        return "w"[3] @ x + param("w", i=2) @ x

    @op
    def narrow(x):
        return "w" * x + param("w", dtype="float32")

    @op
    def bound(x):
        h = w @ x
        axes = "w"[4]
        return h, axes

    @op
    def unpacked(x):
        h = w @ x + b
        first, second = "w"[4], "b"[4]
        return h, first, second

    assert outputs(tc.tensor(np.ones(3))).shape == (4,)
    assert bound(tc.tensor(np.ones(3)))[0].shape == (4,)
    assert [each.shape for each in unpacked(tc.tensor(np.ones(3)))] == [(4,), (4, 3), (4,)]
    assert inputs(tc.tensor(np.ones(2))).shape == (3,)
    assert narrow(tc.tensor(np.ones(3, np.float32))).dtype == "float32"
    assert narrow(tc.tensor(np.ones(3))).dtype == "float64"
    assert narrow.parameters["w"].dtype == "float32"


def test_random_starts_are_those_of_their_place():
    @op
    def scaled(x):
        return "w" * x + param("w", init=start())

    def start():
        return np.random.default_rng(len(starts)).random(starts.append(0) or 3)

    starts = []
    first = scaled(tc.tensor(np.ones(3))).value.copy()
    assert scaled(tc.tensor(np.ones(3))).value.tolist() == first.tolist()


def test_places_that_contradict_each_other():
    @op
    def starts(x):
        return param("w", init=1.0) * x + param("w", init=2.0)

    @op
    def functions(x):
        return param("w", init=lambda g, s: np.ones(s)) * x + param("w", init=lambda g, s: np.zeros(s))

    @op
    def outputs(x):
        return param("w", o=3) * x + "w"[4]

    @op
    def inputs(x):
        return param("w", o=3, i=2) @ x + param("w", i=4) @ x

    @op
    def types(x):
        return param("w", dtype="float32") * x + param("w", dtype="float64")

    @op
    def cells(x):
        return "w"[2] * x + param("w", init=np.ones(3))

    @op
    def twice(x):
        return param("w", init=np.ones(3)) * x + param("w", init=[1.0, 1.0, 1.0])

    x = tc.tensor(np.ones(3))
    message = r'the parameter "w" is declared with {} here, and with {} in another place(.|\n)*line \d+'
    for function, kind, here, there in (
        (starts, tc.ConfigurationError, "init=2.0", "init=1.0"),
        (functions, tc.ConfigurationError, "an init", "an init"),
        (outputs, tc.ShapeError, r"output axes \[4\]", r"output axes \[3\]"),
        (types, tc.DtypeError, "the type float64", "the type float32"),
    ):
        with pytest.raises(kind, match=message.format(here, there)):
            function(x)
    with pytest.raises(tc.ShapeError, match=message.format(r"input axes \[4\]", r"input axes \[2\]")):
        inputs(tc.tensor(np.ones(2)))
    with pytest.raises(tc.ShapeError, match="initial value of `w` has 3 cells"):
        cells(tc.tensor(np.ones(2)))
    assert twice(x).value.tolist() == [2.0] * 3
    assert not starts.parameters


def test_some_sizes_of_a_row_are_found():
    x = tc.tensor(np.arange(24.0).reshape(2, 3, 4), batch=1)

    @op
    def dense(x):
        return param("k", o=(2, None), i=(3, None)) @ x + param("k", o=(2, 5)).sum()

    assert dense(x).shape == (2, 2, 5)
    assert str(dense.parameters["k"].rows) == "3, 4 -> 2, 5"
    assert tc.param("k", o=(2, None), init=np.arange(8.0)).shape == (2, 4)
    with pytest.raises(tc.ShapeError, match=r"nothing determines the size of output axis 1 from the right of `k`"):
        (tc.param("k", o=(2, None)) @ x).value
    with pytest.raises(tc.ShapeError, match=r"has 8 cells, but its axes have the sizes \[3, None\]"):
        tc.param("k", o=(3, None), init=np.arange(8.0))


def test_functions_that_initialize_are_python():
    @op
    def f(x, *, scale):
        a = param("a", o=3, init=lambda generator, sizes: scale * np.ones(sizes) + [1, 2, 3])
        b = param("b", o=3, init=lambda generator, sizes: [k if k > 0 and not k > 1 else -k for k in range(sizes[0])])
        c = param("c", o=3, init=lambda generator, sizes: -np.arange(3.0)[::-1] if len(sizes) == 1 or scale else None)
        return x * a, x * b, x * c

    assert [each.value.tolist() for each in f(scale=2.0)(tc.tensor(np.ones(3)))] == [[3, 4, 5], [0, 1, -2], [-2, -1, 0]]
