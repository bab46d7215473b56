"""Tensors of graphs beside statements of an op: what is computed with them inside keeps their rows."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import op
from tests.tensors.interpreting import value

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 2, 3))


@op
def halved(x):
    y[n, i, j] = x[n, i, j] / 2
    return y


@op
def dense(x, *, size):
    return "w" @ halved(x) + "b"[size]


def test_a_parameter_composes_with_what_a_statement_made_at_every_call() -> None:
    layer = dense(size=5)
    for _ in range(2):
        # From the second call on the parameter's shape is known, and it takes part in the op's program.
        made = layer(tc.tensor(X, batch=1))
        w, b = layer["w"], layer["b"]
        assert_allclose(value(made), np.einsum("oij,nij->no", w.value, X / 2) + b.value, rtol=1e-12)
        assert str(made.rows) == "4 | 5"
        assert str(w.rows) == "2, 3 -> 5"


def test_a_tensor_of_the_surroundings_keeps_its_rows() -> None:
    scale = tc.tensor(RNG.normal(size=4), batch=1, label="scale")
    swap = tc.tensor(RNG.normal(size=(6, 2, 3)), input=2, label="swap")

    @op
    def scaled(x):
        y = halved(x)
        return scale * y, swap @ y, tc.einsum("...|i, j => ...|j, i", scale * y)

    made, product, turned = scaled(tc.tensor(X, batch=1))
    expected = scale.value[:, None, None] * X / 2
    assert_allclose(value(made), expected, rtol=1e-12)
    assert_allclose(value(product), np.einsum("oij,nij->no", swap.value, X / 2), rtol=1e-12)
    assert_allclose(value(turned), expected.swapaxes(1, 2), rtol=1e-12)
    assert [str(each.rows) for each in (made, product, turned)] == ["4 | 2, 3", "4 | 6", "4 | 3, 2"]


def test_a_spec_takes_a_parameter_whose_shape_is_known() -> None:
    @op
    def contracted(x):
        return tc.einsum("...|i, j; i, j -> o => ...|o", halved(x), tc.param("w", o=5))

    for _ in range(2):
        made = contracted(tc.tensor(X, batch=1))
        w = contracted.parameters["w"]
        assert str(made.rows) == "4 | 5"
        assert_allclose(value(made), np.einsum("oij,nij->no", w.value, X / 2), rtol=1e-12)
        assert str(w.rows) == "2, 3 -> 5"


def test_functions_of_sizes_are_weak_as_in_programs_on_arrays() -> None:
    @op
    def scaled(x):
        scale, shift = 1 / sqrt(x.shape[2]), max(x.shape[0], 2)
        y[n, i, j] = x[n, i, j] * scale + shift
        return y

    single = X.astype("float32")
    assert scaled(single).dtype == np.float32
    made = scaled(tc.tensor(single, batch=1))
    assert made.dtype == np.float32
    assert_allclose(value(made), scaled(single), rtol=1e-6)
