"""Lists and tuples as operands: array literals on arrays and on tensors, and where they stay Python's own lists."""

# ruff: noqa: RUF005, SIM300  # lists beside operators are what is tested

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import batch, cd, op, tensor
from tests.tensors.interpreting import run, value

X, Y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
XY = np.stack([X, Y])
M = np.array([[1.0, 2.0], [3.0, 4.0]])
EITHER = pytest.mark.parametrize("on_tensors", [False, True], ids=["arrays", "tensors"])


def results(function: Any, on_tensors: bool, **keywords: Any) -> list[np.ndarray]:
    """What an op of two arrays gives, by the interpreter."""
    if not on_tensors:
        return [np.asarray(each) for each in function.interpret(X, Y, **keywords)]
    return [value(each) for each in function(tc.tensor(X), tc.tensor(Y), **keywords)]


@op
def beside_tensors(x, y):
    return (
        x + [1.0, 2.0],
        [1.0, 2.0] - x,
        [1, 2] * x / [2, 2],
        x ** [1, 2] % [3, 3],
        x // [1, 2],
        [[1.0, 2.0], [3.0, 4.0]] @ x,
        x @ [3.0, 4.0],
        [(1.0, 2.0), (3.0, 4.0)] @ x,
        (x == [1.0, 3.0]) | [False, True],
        [1.0, 3.0] > x,
        x >= [[1.0], [2.0]],
        np.zeros(2) + [1.0, 2.0] * x,
    )


@op
def with_tensors_in_them(x, y):
    return (
        [x, y] * 2,
        2 * [x, y],
        [x, y] - 1,
        -[x, y],
        [x, y] + [y, x],
        [x, y] > 2,
        [x[0], 2.0, y[1]] * 2,
        [[x, y], [y, x]] @ x,
        np.ones(2) + [x, y],
        tensor([x, y]) * 2,
    )


@op
def of_numbers_alone(x, y):
    return [1.0, 2.0] + 1 + 0 * x, -[1.0, 2.0] + x, [1.0, 2.0] @ [3.0, 4.0] + x, batch([1.0, 2.0]) * 2 + x[0]


@op
def as_arguments(x, y):
    return (
        where([x, y] > 2, [x, y], [0.0, 1.0]),
        where([True, False], x, y),
        relu([x, -y]),
        relu([1.0, -2.0]) * x,
        np.exp([x, y]),
        np.exp([1.0, 2.0]) * x,
        max([1.0, 3.0], x),
        einsum("ij; j => i", [x, y], [1.0, 2.0]),
        np.sum([x, y], axis=0),
        mean([x, y]),
        sum([x, y]),
        float32([x, y]),
    )


@op
def in_statements(x, y, *, rate):
    total = output(2)
    total[...] = [3.0, 4.0]
    product["@"] = sum([(1.0, 2.0), (3.0, 4.0)] * x)
    x += [1.0, 2.0]
    weights = [rate, 2.0]
    return total + 0 * x, product, x, weights * y


@EITHER
def test_a_literal_is_an_array_beside_a_tensor(on_tensors: bool) -> None:
    expected = [
        X + [1, 2], [1, 2] - X, X * [0.5, 1], X**[1, 2] % [3, 3], X // [1, 2], M @ X, X @ [3, 4], M @ X,
        [True, True], [False, True], X >= np.array([[1.0], [2.0]]), X * [1, 2],
    ]  # fmt: skip
    for found, wanted in zip(results(beside_tensors, on_tensors), expected, strict=True):
        assert_allclose(found, wanted)


@EITHER
def test_a_literal_with_tensors_in_it_is_an_array(on_tensors: bool) -> None:
    expected = [
        2 * XY, 2 * XY, XY - 1, -XY, XY + XY[::-1], XY > 2, [2, 4, 10], np.stack([XY, XY[::-1]]) @ X, XY + 1, 2 * XY,
    ]  # fmt: skip
    for found, wanted in zip(results(with_tensors_in_them, on_tensors), expected, strict=True):
        assert_allclose(found, wanted)
    for found, wanted in zip(results(of_numbers_alone, on_tensors), ([2, 3], X - [1, 2], 11 + X, [3, 5]), strict=True):
        assert_allclose(found, wanted)


@EITHER
def test_literals_are_arguments_of_primitives_and_of_einsum(on_tensors: bool) -> None:
    expected = [
        np.where(XY > 2, XY, [0, 1]), [1.0, 5.0], np.maximum([X, -Y], 0), [1, 0], np.exp(XY), np.exp([1, 2]) * X,
        [1, 3], XY @ [1, 2], X + Y, XY.mean(), X + Y, XY,
    ]  # fmt: skip
    for found, wanted in zip(results(as_arguments, on_tensors), expected, strict=True):
        assert_allclose(found, wanted)


@EITHER
def test_literals_are_values_of_statements(on_tensors: bool) -> None:
    expected = [[3, 4], [5, 11], X + [1, 2], Y * [0.5, 2]]
    for found, wanted in zip(results(in_statements, on_tensors, rate=0.5), expected, strict=True):
        assert_allclose(found, wanted)


@op
def gradient_of_literals(x, y):
    return ([x, y] * [[1.0, 2.0], [3.0, 4.0]] + [1, 2] * x).sum()


def test_gradients_go_through_literals() -> None:
    tc.check_grads(gradient_of_literals, (X, Y), modes=("rev",))


@cd
def stored(c, d):
    c = [1, 2]
    d["@"] += [(1.0, 2.0), (3.0, 4.0)] * c
    c -= [0.5, d[0]]


def test_code_stores_literals() -> None:
    c, d = np.zeros(2), np.array([1.0, 1.0])
    stored(c, d)
    assert_allclose([c, d], [[0.5, -4.0], [6.0, 12.0]])
    p, q = tc.tensor(np.zeros(2)), tc.tensor(np.array([1.0, 1.0]))
    run(stored(p, q))
    assert_allclose([p.value, q.value], [[0.5, -4.0], [6.0, 12.0]])


@op
def lists_of_python(x, y, *, depth):
    total = 0 * x
    for k in [1, 2] * depth + [5]:
        total = total + k * x
    states = []
    for k in range(2):
        states = states + [k * y]
        states += [k * x]
    shape = x.shape + (3,)
    widths = (2,) * depth
    return total, tensor(states) * 2, states[2], shape[1] * x, len(widths) * x, len("ab" * depth) * x


@EITHER
def test_lists_are_joined_and_repeated_as_python_does(on_tensors: bool) -> None:
    expected = [11 * X, [0 * X, 0 * X, 2 * Y, 2 * X], Y, 3 * X, 2 * X, 4 * X]
    for found, wanted in zip(results(lists_of_python, on_tensors, depth=2), expected, strict=True):
        assert_allclose(found, wanted)


@op
def repeated(x, y):
    return [1.0] * 2 * x


@op
def joined(x, y):
    c = [1.0]
    c = c + [2.0]
    return relu(c) + x


@op
def repeated_tensor(x, y):
    return [x] * 2


@op
def repeated_by_name(x, y):
    c = [x, y]
    return c * 2


@op
def joined_tensors(x, y):
    return [x, y] + [x]


@op
def extended(x, y):
    c = [1.0, 2.0]
    c += x
    return c


@op
def ragged(x, y):
    return [[x], [x, y]] * 2


@op
def text(x, y):
    return [1.0, "x"] * x


FAULTS = {
    repeated: ("this list was joined or repeated by Python's `+` or `*`", "[1.0] * 2 * x"),
    joined: ("this list was joined or repeated by Python's `+` or `*`", "relu(c)"),
    repeated_tensor: ("a list with tensors in it times a number: Python would repeat the list", "[x] * 2"),
    repeated_by_name: ("a list with tensors in it times a number: Python would repeat the list", "c * 2"),
    joined_tensors: ("the sum of two lists with tensors in them: Python would join the lists", "[x, y] + [x]"),
    extended: ("a tensor is added to a list, which Python would extend by the tensor's rows", "c += x"),
    ragged: ("the parts of a literal have different shapes", "[[x], [x, y]] * 2"),
    text: ("a literal holds something that is no number", '[1.0, "x"] * x'),
}


@EITHER
@pytest.mark.parametrize("function", FAULTS, ids=lambda function: function.__name__)
def test_what_could_be_either_is_a_fault(function: Any, on_tensors: bool) -> None:
    fact, place = FAULTS[function]
    with pytest.raises(tc.TcdslError) as raised:
        function(*map(tc.tensor, (X, Y))) if on_tensors else function.interpret(X, Y)
    lines = str(raised.value).splitlines()
    assert fact in lines[0]
    assert lines[2].count("^") == len(place)
    assert lines[1][lines[2].index("^") :].startswith(place)


def test_literals_of_many_entries() -> None:
    @op
    def powers(x, *, n):
        entries = []
        for _ in range(n):
            x = 0.5 * x
            entries.append(x)
        return tensor(entries)

    with pytest.warns(RuntimeWarning, match="130 rounds is unrolled"):
        found = powers(np.array(1.0), n=130)
    np.testing.assert_array_equal(found, 0.5 ** np.arange(1, 131))
