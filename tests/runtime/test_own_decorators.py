"""Decorators of one's own around `op` and `cd`, and operations under `property` and the like."""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.frontend.surroundings.named_values import named_paths

x = np.ones(3)


def passing(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*arguments: Any) -> Any:
        return function(*arguments)

    return inner


def test_another_decorator_between() -> None:
    with pytest.raises(tc.DslSyntaxError, match="another decorator stands between @op and `def first`"):

        @op
        @passing
        def first(x):
            return x

    def tagged(function: Any) -> Any:
        function.tag = True
        return function

    @op
    @tagged
    def second(x):
        y[i] = 2 * x[i]
        return y

    assert second.tag
    np.testing.assert_array_equal(second(x), [2, 2, 2])


def test_what_decorators_name_is_no_reading() -> None:
    text = (
        "@kept(lambda: table.cells)\ndef f(x):\n    @inside\n    def g(y):\n        return y\n    return scale * g(x)"
    )
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    assert named_paths(definition) == (("y",), ("inside",), ("scale",), ("g",), ("x",))


def timed(function: Any) -> Any:
    made = op(function)

    @functools.wraps(function)
    def inner(*arguments: Any, **keywords: Any) -> Any:
        return made(*arguments, **keywords)

    return inner


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, function: Any) -> Any:
        return op(function)


def own(function: Any) -> Any:
    return op(function)


OWN = {"plain": own, "partial": op(oob="skip"), "object": Named("a"), "wrapping": timed}


@pytest.mark.parametrize("name", OWN)
def test_decorators_of_ones_own_that_call_op(name: str) -> None:
    decorate = OWN[name]

    @decorate
    def f(x, *, n=3):
        y[i] = n * x[i]
        return y

    np.testing.assert_array_equal(f(x, n=2), [2, 2, 2])
    np.testing.assert_array_equal(tc.grad(lambda x: f(x).sum())(x), [3, 3, 3])


def test_a_decorator_of_ones_own_that_calls_cd() -> None:
    def in_place(function: Any) -> Any:
        return cd(function)

    @in_place
    def double(x):
        x[i] *= 2

    given = np.ones(2)
    double(given)
    assert given.tolist() == [2, 2]


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def inner(self: Any, *arguments: Any) -> Any:
        return function(self, *arguments)

    return inner


class Vector:
    def __init__(self, cells: np.ndarray) -> None:
        self.cells = cells

    @property
    @op
    def squared(self):
        total[()] += self.cells[i] ** 2
        return total

    @functools.cached_property
    @op
    def doubled(self):
        return 2 * self.cells

    @logged
    @op
    def scaled(self, x):
        return x * self.cells

    @op
    def plain(self, x):
        return x * self.cells

    @staticmethod
    @op
    def halved(x):
        return x / 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.cells


class Longer(Vector):
    @property
    def squared(self):
        return super().squared + 1


def test_operations_under_property_and_other_decorators_are_methods() -> None:
    vector, longer = Vector(np.arange(3.0)), Longer(np.ones(2))
    assert (vector.squared, longer.squared) == (5, 3)
    vector.cells = np.arange(4.0)
    assert vector.squared == 14
    assert vector.doubled.tolist() == [0, 2, 4, 6]
    assert longer.scaled(np.full(2, 2.0)).tolist() == [2, 2]
    assert Vector.halved(vector).tolist() == [0, 0.5, 1, 1.5]

    @op
    def of_property(x, *, vector):
        y[i] = x[i] * vector.squared
        return y

    assert of_property(x, vector=longer).tolist() == [3, 3, 3]
    assert tc.grad(lambda x: of_property(x, vector=longer).sum())(x).tolist() == [3, 3, 3]


def test_decorators_imported_in_a_function() -> None:
    from tcdsl import cd as in_place
    from tcdsl import op as tensor_function  # known by what it is: the name is a free variable below

    def made():
        import tcdsl
        from tcdsl import op

        @op
        def first(x):
            return 2 * x

        @tcdsl.op(oob="check")
        def second(x):
            return 3 * x

        @tensor_function
        def third(x):
            assert tensor_function
            return 4 * x

        @in_place
        def change(x):
            assert in_place
            x[i] = 5 * x[i]

        return first, second, third, change

    first, second, third, change = made()
    x = np.arange(3.0)
    for times, function in ((2, first), (3, second), (4, third)):
        np.testing.assert_array_equal(function(x), times * x)
    change(x)
    np.testing.assert_array_equal(x, 5 * np.arange(3.0))
