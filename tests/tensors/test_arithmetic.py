"""Operators on tensors of graphs, against NumPy; values by the reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl.primitives import exp, relu, where
from tests.tensors.interpreting import value

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3))
Y = RNG.normal(size=(4, 3))
V = RNG.normal(size=3)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y, v: x + y, X + Y),
        (lambda x, y, v: x - v, X - V),
        (lambda x, y, v: 2 - x, 2 - X),
        (lambda x, y, v: x * y / (1 + v * v), X * Y / (1 + V * V)),
        (lambda x, y, v: (x * x) ** 1.5, (X * X) ** 1.5),
        (lambda x, y, v: -x, -X),
        (lambda x, y, v: abs(x), abs(X)),
        (lambda x, y, v: x < y, X < Y),
        (lambda x, y, v: relu(x) + exp(v), np.maximum(X, 0) + np.exp(V)),
        (lambda x, y, v: np.exp(x), np.exp(X)),
        (lambda x, y, v: where(x > 0, y, v), np.where(X > 0, Y, V)),
        (lambda x, y, v: x.sum(), X.sum()),
        (lambda x, y, v: x.mean(axis=0), X.mean(axis=0)),
        (lambda x, y, v: x.max(axis=1, keepdims=True), X.max(axis=1, keepdims=True)),
        (lambda x, y, v: x[1], X[1]),
        (lambda x, y, v: x[1:, ::2], X[1:, ::2]),
        (lambda x, y, v: x[..., None], X[..., None]),
        (lambda x, y, v: x @ v, X @ V),
        (lambda x, y, v: x.astype("float32"), X.astype("float32")),
        (lambda x, y, v: x + Y, X + Y),
        (lambda x, y, v: Y + x, X + Y),
    ],
)
def test_operators_are_those_of_numpy(make: Any, expected: np.ndarray) -> None:
    made = make(tc.tensor(X, label="x"), tc.tensor(Y, label="y"), tc.tensor(V, label="v"))
    assert isinstance(made, tc.Tensor)
    assert made.shape == expected.shape
    found = value(made)
    assert found.dtype == np.asarray(expected).dtype == made.dtype
    assert_allclose(found, expected, rtol=1e-6 if found.dtype == np.float32 else 1e-12)


def test_rows_align_each_for_itself() -> None:
    matrix = tc.tensor(np.arange(6.0).reshape(2, 3), input=1)  # 3 -> 2
    bias = tc.tensor(np.array([10.0, 20.0]))  # -> 2
    batch = tc.tensor(np.array([[100.0], [200.0]]), batch=1)  # 2 | -> 1
    made = matrix + bias + batch
    assert str(made.rows) == "2 | 3 -> 2"
    expected = np.arange(6.0).reshape(1, 2, 3) + np.array([10.0, 20.0])[None, :, None]
    assert_allclose(value(made), expected + np.array([100.0, 200.0])[:, None, None])


def test_composition_contracts_output_with_input_axes() -> None:
    w = tc.tensor(RNG.normal(size=(5, 2, 3)), input=2)  # 2, 3 -> 5
    x = tc.tensor(RNG.normal(size=(7, 2, 3)), batch=1)  # 7 | -> 2, 3
    made = w @ x
    assert str(made.rows) == "7 | 5"
    assert_allclose(value(made), np.einsum("oij,bij->bo", w.value, x.value))


def test_composition_of_two_maps_is_a_map() -> None:
    a = tc.tensor(RNG.normal(size=(5, 3)), input=1)
    b = tc.tensor(RNG.normal(size=(3, 4)), input=1)
    made = a @ b
    assert str(made.rows) == "4 -> 5"
    assert_allclose(value(made), a.value @ b.value)


def test_transpose_swaps_input_and_output() -> None:
    a = tc.tensor(np.arange(24.0).reshape(2, 3, 4), batch=1, input=1)
    assert str(a.T.rows) == "2 | 3 -> 4"
    assert_allclose(value(a.T), np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1))


def test_values_are_computed_once_until_something_changes() -> None:
    x = tc.tensor(np.array([1.0, 2.0]))
    y = x * 3
    first = y.value
    clock = y.buffer("value").clock
    assert_allclose(first, [3, 6])
    assert y.buffer("value").clock == clock
    x.value = [2.0, 3.0]
    assert_allclose(y.value, [6, 9])
    assert y.buffer("value").clock > clock


def test_values_cannot_be_written_through() -> None:
    x = tc.tensor(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="read-only"):
        x.value[0] = 5
    data = np.array([1.0])
    t = tc.tensor(data)
    data[0] = 9
    assert t.value[0] == 1


def test_one_tensor_used_often_is_computed_once() -> None:
    x = tc.tensor(np.array([1.0, 2.0]), label="x")
    y = x
    for _ in range(60):
        y = y * y - y + 1  # three uses each: inlining would take 3**60 operations
    with tc_linking(y) as program:
        assert len(program.statements) <= 180


def tc_linking(tensor: tc.Tensor) -> Any:
    from contextlib import contextmanager

    from tcdsl.tensors.graph_linking.graph_linker import linking

    @contextmanager
    def linked() -> Any:
        with linking("t") as linker:
            yield linker.finished([tensor.buffer("value")]).program

    return linked()


def test_tensors_are_arrays_where_arrays_are_wanted() -> None:
    x = tc.tensor(np.array([1.0, 2.0]))
    assert_allclose(np.asarray(x), [1, 2])
    assert_allclose(np.concatenate([x, x]), [1, 2, 1, 2])
    assert float(tc.tensor(np.array(2.5))) == 2.5
    assert len(x) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tc.tensor(X) + tc.tensor(np.ones(4)), "differ"),
        (lambda: tc.tensor(X) + None, "a NoneType does not take part in tensor arithmetic"),
        (lambda: tc.tensor(X) @ 2.0, "`@` takes tensors, not numbers"),
        (lambda: tc.tensor(X)[5], "the index 5 is out of range of axis 0"),
        (lambda: tc.tensor(["a"]), "holds something that is no number"),
        (lambda: tc.tensor([[1, 2], [3]]), "the parts of a literal have different shapes"),
        (lambda: tc.tensor(X, batch=2, input=1), "2 batch and 1 input axes of an array of rank 2"),
        (lambda: tc.tensor([1, 2], grad=True), "a gradient of int64 data"),
    ],
)
def test_faults(make: Any, message: str) -> None:
    with pytest.raises(tc.TcdslError, match=message):
        make()


def test_rows_of_what_is_computed() -> None:
    x = tc.tensor(X)
    assert str(tc.tensor(x, batch=1).rows) == "4 | 3"
    assert tc.tensor(x) is x
    assert str(tc.tensor(x * 2, input=1).rows) == "3 -> 4"
    assert_allclose(value(tc.tensor(x * 2, batch=1)), 2 * X)
    with pytest.raises(tc.ShapeError, match="2 batch and 1 input axes of an array of rank 2"):
        tc.tensor(x, batch=2, input=1)


def test_rows_of_what_an_op_has_computed() -> None:
    @tc.op
    def summed(x):
        y[n, i] = x[n, i] + 1
        return tensor(y, batch=1)

    assert str(summed(tc.tensor(X)).rows) == "4 | 3"
    assert_allclose(summed(X), X + 1)


def test_literals_are_operands() -> None:
    x = tc.tensor(np.array([1.0, 2.0]))
    assert_allclose(value([10, 20] * x), [10, 40])
    assert_allclose(value([(1, 2), (3, 4)] @ x), [5, 11])
    assert str((x + tc.batch([1.0, 2.0, 3.0])).rows) == "3 | 2"


def test_a_tensor_meets_no_cell() -> None:
    c = tc.tensor(2.0)

    def product(a, b):
        return a * b

    @tc.op
    def f(x):
        y[i] = product(c, x[i])
        return y

    with pytest.raises(tc.DtypeError, match=r"a Tensor is not a number\n +return a \* b\n"):
        f(X[0])


@pytest.mark.parametrize("given", [5.0, tc.batch([1.0, 2.0]), (1.0, 2.0), [1.0, 2.0, 4.0]], ids=str)
def test_compositions_by_einsum_are_those_by_the_operator(given: Any) -> None:
    # What the parameter composes with has output axes, or it has none to sum over and scales.
    composed = tc.param("w", o=3, init=2.0) @ tc.tensor(given)
    by_einsum = tc.einsum("@", tc.param("w", o=3, init=2.0), tc.tensor(given))
    np.testing.assert_array_equal(value(by_einsum), value(composed))
    assert str(by_einsum.rows) == str(composed.rows)
    largest = tc.einsum("@", tc.param("w", o=3, init=2.0), tc.tensor(given), accumulate="max", combine="add")
    wanted = np.full(3, 6.0) if given == [1.0, 2.0, 4.0] else value(composed) / 2 + 2
    np.testing.assert_array_equal(value(largest), wanted)


def test_brackets_guard_through_nodes() -> None:
    given = np.array([0.0, 2.0, -4.0])
    t = tc.tensor(given)
    kept = (t > 0) * 3.0
    assert value(kept / t).tolist() == [0, 1.5, 0]
    assert value(-((t > 0) * 3.0) / t * 2.0).tolist() == [0, -3, 0]
    assert value((t > 0) * 1.0 * tc.number(2.0) * np.log(t)).tolist() == [0, 2 * np.log(2.0), 0]
    matrix = tc.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(value((t != 0) * 4.0 * matrix / t), [[0, 2, -2], [0, 0, 0]])
    p = tc.param("p", init=given)
    tc.compile(tc.train.grad_update(((p != 0) * p * 3.0 / p / p).sum()))()
    np.testing.assert_allclose(p.grad, [0, -3 / 4, -3 / 16])


def test_comparisons_are_elementwise_but_with_none() -> None:
    x, y = tc.tensor(np.array([1.0, 2.0])), tc.tensor(np.array([1.0, 3.0]))
    assert value(x == y).tolist() == [True, False]
    assert value(x != 2.0).tolist() == [True, False]
    assert x.__eq__(None) is x.__ne__(None) is NotImplemented


def test_a_tensor_is_shown_with_its_type() -> None:
    assert repr(tc.tensor(np.zeros((2, 3), np.float32), label="x")) == "<tensor x: 2, 3 float32>"
    assert repr(tc.param("w", o=2)) == "<param w: ... -> 2>"


def test_truth_values_are_joined_by_methods_as_those_of_arrays_are() -> None:
    x = tc.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert value((x > 0).any(axis=1)).tolist() == [True, True]
    assert value((x > 0).all(axis=1)).tolist() == [False, True]
    assert value((x > 0).all()).item() is False
