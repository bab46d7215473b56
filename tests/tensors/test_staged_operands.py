"""Tensors of graphs beside statements of an op: what is computed with them inside keeps their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd, op
from tests.tensors.interpreting import run, value

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


V = np.array([0.1, 0.2, 0.3])
TABLE = np.array([10.0, 20.0, 30.0])


@op
def cell(x, h):
    y[i] = tanh(x[i] + h[i])
    return y


@op
def recurrent(x):
    h = np.zeros(3)
    for k in range(2):
        h = cell(x * k, h)
    return h


@op
def scaled(x, a):
    y[i] = x[i] * a
    return y


@op
def surrounded(x):
    y[i] = x[i] + TABLE[i]
    h = np.ones(3)
    h += x
    return y, x * TABLE, h, np.ones((2, 3)) @ x, where(x > 0.15, np.float32(1), np.zeros(3))


@op
def with_numbers(x):
    return (
        scaled(x, 2.0) + scaled(x, np.float32(2)) + scaled(x, np.array(2.0)) + scaled(x, 2) + scaled(x, True),
        einsum("i; => i", x, 2.0) + einsum("i; => i", x, np.float32(2)) + einsum("; i => i", np.array(2.0), x),
        einsum("i; i =>", x, TABLE),
        einsum("i; i =>", scaled(x, 2.0), TABLE),
    )


ARRAYS = {
    recurrent: np.tanh(V),
    surrounded: (V + TABLE, V * TABLE, V + 1, [V.sum()] * 2, [0, 1, 1]),
    with_numbers: (9 * V, 6 * V, V @ TABLE, 2 * V @ TABLE),
}


@pytest.mark.parametrize("function", ARRAYS, ids=lambda function: function.__name__)
def test_arrays_and_numbers_of_the_surroundings_take_part(function: Any) -> None:
    expected = ARRAYS[function] if isinstance(ARRAYS[function], tuple) else (ARRAYS[function],)
    given, made = function.interpret(V), function(tc.tensor(V))
    single = not isinstance(made, tuple)
    for array, tensor, wanted in zip([given] if single else given, [made] if single else made, expected, strict=True):
        assert_allclose(array, wanted)
        assert_allclose(value(tensor), wanted)


def test_an_array_of_the_surroundings_is_read_at_each_call_and_never_written() -> None:
    table = np.array([1.0, 2.0, 3.0])

    @op
    def shifted(x):
        return x + table

    @cd
    def moved(p):
        h = np.ones(3)
        h[i] += p[i]
        p[i] -= table[i] * h[i]

    x, p = tc.tensor(V), tc.tensor(V)
    first, code = shifted(x), moved(p)
    table *= 10
    assert_allclose(value(first), V + table / 10)
    assert_allclose(value(shifted(x)), V + table)
    run(code)
    assert_allclose(p.value, V - table / 10 * (1 + V))
    assert_allclose(table, [10.0, 20.0, 30.0])


def test_code_changes_no_array_of_the_surroundings() -> None:
    table = np.array([1.0, 2.0, 3.0])

    @cd
    def bump(a, p):
        a[i] += p[i]

    @cd
    def refused(p):
        bump(table, p)

    @cd
    def moved(p):
        h = table
        h[1:] = 0.0
        p[i] -= table[i]

    p, array = tc.tensor(V), V.copy()
    run(moved(p))
    moved(array)
    assert_allclose(p.value, V - [1.0, 2.0, 3.0])
    assert_allclose(array, p.value)
    for given in (p, array):
        with pytest.raises(tc.DslSyntaxError, match="stores into `a`, but here that is a value"):
            refused(given)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_a_number_takes_the_floating_type_of_what_it_meets(dtype: str) -> None:
    @op
    def scaled(x, k):
        return tc.number(k) * x, tc.number(x.shape[0]) * x

    x = np.array([1, 2], dtype)
    for k in (3, 3.0):
        for found, wanted in zip(scaled(x, k), ([3, 6], [2, 4]), strict=True):
            assert found.dtype == ("float64" if dtype == "int64" else dtype)
            assert found.tolist() == wanted


@op
def beside_strings(x):
    return "m"[2] @ np.ones(3), np.ones(3) * "u", [1.0, 2.0, 3.0] * "u", -"u" + x, 1 - "u" ** 2, -"w"[3] / 2


def test_strings_declare_beside_arrays_and_where_text_has_no_operator() -> None:
    found = [value(each) for each in beside_strings(tc.tensor(V))]
    m, u, w = (beside_strings.parameters[name].value for name in "muw")
    assert (m.shape, u.shape, w.shape) == ((2, 3), (3,), (3,))
    for made, wanted in zip(found, (m.sum(axis=1), u, u * [1, 2, 3], V - u, 1 - u**2, -w / 2), strict=True):
        assert_allclose(made, wanted)


def test_a_tensor_made_of_a_tensor_takes_what_is_stated() -> None:
    x = tc.tensor(V, label="x")
    made = tc.tensor(x, label="y", dtype="float32", batch=1)
    assert (made.label, str(made.dtype), str(made.rows), x.label) == ("y", "float32", "3 | ()", "x")
    assert_allclose(value(made), V, rtol=1e-6)
    assert tc.tensor(x) is x
    w = tc.param("w", o=3)
    assert tc.tensor(w, grad=True) is w
    assert str(tc.tensor([x, w], dtype="float32").dtype) == "float32"
    with pytest.raises(tc.DtypeError, match="a gradient of what is computed from other data"):
        tc.tensor(x, grad=True)


@op
def with_a_number_of_a_graph(x, y, p):
    m = y.mean()
    z[i] = x[p[i]] * m
    return y.sum() * 2 + sum(x[p[i]]), z


def test_tensors_of_rank_0_are_numbers_in_statements() -> None:
    x, y, p = RNG.normal(size=4), RNG.normal(size=3), np.array([3, 1])
    wanted = 2 * y.sum() + x[p].sum(), x[p] * y.mean()
    for given in ((x, y, p), tuple(map(tc.tensor, (x, y, p)))):
        for one, expected in zip(with_a_number_of_a_graph(*given), wanted, strict=True):
            assert_allclose(np.asarray(one), expected, rtol=1e-12)
