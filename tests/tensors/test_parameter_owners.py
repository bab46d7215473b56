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
