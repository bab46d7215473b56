"""What Python and NumPy say is wrong with a call or an operator in a decorated function is told at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

TABLE = np.ones((2, 3))


def of_a_helper(x: Any) -> Any:
    return x + np.reshape(TABLE, (4,))


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: x + np.reshape(TABLE, (4,)), ValueError, "cannot reshape array of size 6 into shape"),
        (of_a_helper, ValueError, "cannot reshape array of size 6 into shape"),
        (lambda x: x + TABLE * np.ones(4), ValueError, "could not be broadcast together"),
        (lambda x: x + np.einsum("ij,jk", TABLE, TABLE), ValueError, "could not be broadcast together"),
        (lambda x: x + int("abc"), ValueError, "invalid literal for int"),
        (lambda x: x + np.linalg.inv(TABLE), np.linalg.LinAlgError, "must be square"),
        (lambda x: x + len(b"\xff".decode()), ValueError, "can't decode byte"),
        (lambda x: x + np.zeros((-1,)), ValueError, "negative dimensions are not allowed"),
        (lambda x: x + (1, 2).index(3), ValueError, "not in tuple"),
        (lambda x: x + len(5), TypeError, "has no len"),  # type: ignore[arg-type]
        (lambda x: x + ("a" - {}), TypeError, "unsupported operand"),
        (lambda x: x * x.shape[5], IndexError, "tuple index out of range"),
        (lambda x: x + {"a": 1}["b"], KeyError, "there is no key 'b'"),
        (lambda x: x * (1 / 0), ZeroDivisionError, "division by zero"),
        (lambda x: np.i0(x * 2), SyntaxError, "np.i0 has no meaning for tensors"),
        (lambda x: x + np.no_such, AttributeError, "has no attribute 'no_such'"),
    ],
)
def test_faults_are_told_with_the_line(function: Callable[[Any], Any], kind: type[Exception], message: str) -> None:
    def through_a_decorated_function(x: Any) -> Any:
        return function(x)

    for call in (op(through_a_decorated_function), tc.grad(lambda x: function(x).sum())):
        with pytest.raises(tc.TcdslError, match=message) as caught:
            call(np.ones((2, 3)))
        assert isinstance(caught.value, kind)
        assert "test_faults_of_python.py" in str(caught.value)


def test_faults_of_the_function_itself_are_told_with_the_line() -> None:
    @op
    def product(x: Any) -> Any:
        return x + TABLE * np.ones(4)

    @op
    def number(x: Any) -> Any:
        return x + int("abc")

    @op
    def raising(x: Any) -> Any:
        raise ValueError("mine")

    for function, line in ((product, "TABLE * np.ones(4)"), (number, 'int("abc")')):
        with pytest.raises(ValueError, match=r"test_faults_of_python\.py") as caught:
            function(np.ones((2, 3)))
        assert isinstance(caught.value, tc.TcdslError)
        assert line in str(caught.value)
    with pytest.raises(ValueError, match=r"^mine$") as own:
        raising(np.ones(2))
    assert not isinstance(own.value, tc.TcdslError)


def test_keywords_of_functions_are_their_own() -> None:
    def applied(x: Any, function: Any) -> Any:
        return function(x)

    @op
    def exponential(x: Any) -> Any:
        return applied(x, function=np.exp)

    np.testing.assert_array_equal(exponential(np.zeros(2)), [1.0, 1.0])


@pytest.mark.parametrize("name", ["shape", "no_such"])
def test_attributes_of_arrays_are_not_set(name: str) -> None:
    @op
    def shaped(x: Any) -> Any:
        x.shape = (6,)
        return x

    @op
    def named(x: Any) -> Any:
        x.no_such = 3
        return x

    with pytest.raises(tc.DslSyntaxError, match=f"`{name}` of an array cannot be set while the function is staged"):
        (shaped if name == "shape" else named)(np.ones((2, 3)))


def test_arrays_without_a_name_are_told_by_their_extents() -> None:
    @op
    def product(x: Any) -> Any:
        weights = np.ones(5)
        return x @ weights

    @op
    def two(x: Any) -> Any:
        return x * np.array([1.0, 2.0, 3.0, 4.0]) + np.array([1.0, 2.0])

    with pytest.raises(tc.ShapeError, match="whose extents are x_0 = 3 and 5"):
        product(np.ones(3))
    with pytest.raises(tc.ShapeError, match=r"extents x_0 = 3 and 4 meet(.|\n)*extents x_0 = 3 and 2 meet") as caught:
        two(np.ones(3))
    assert "constant" not in str(caught.value)


def test_positions_that_letters_of_sizes_give_say_where_these_were_bound() -> None:
    @op
    def row(x: Any) -> Any:
        n, _ = x.shape
        return x[n]

    @op
    def cell(x: Any) -> Any:
        n, t = x.shape
        return 2 * x[0, t] + x[0:1, n]

    @cd
    def stored(x: Any) -> None:
        n, _ = x.shape
        x[n] = 0.0

    for function in (row, stored):
        with pytest.raises(tc.ShapeError, match=r"`n` was bound by `n, _ = x.shape` in line \d+\n(.|\n)*use another"):
            function(np.ones((2, 3)))
    with pytest.raises(tc.ShapeError, match=r"`t` was bound by `n, t = x.shape` in line \d+"):
        cell(np.ones((2, 3)))

    @op
    def nested(x: Any) -> Any:
        n, t = x.shape

        def corner(y: Any) -> Any:
            return y[n, t]

        return corner(x)

    @op
    def own(x: Any) -> Any:
        def below(y: Any) -> Any:
            s, _ = y.shape
            return y[s, 0]

        return below(x)

    @op
    def given(x: Any) -> Any:
        _, t = x.shape

        def last(y: Any, t: Any) -> Any:
            return y[0, t]

        return last(x, t)

    for function, letters, binder in (nested, "nt", "n, t = x.shape"), (own, "s", "s, _ = y.shape"):
        with pytest.raises(tc.ShapeError) as caught:
            function(np.ones((2, 3)))
        for letter in letters:
            assert f": `{letter}` was bound by `{binder}` in line" in str(caught.value)
    with pytest.raises(tc.ShapeError) as caught:
        given(np.ones((2, 3)))
    assert "was bound by" not in str(caught.value)

    @op
    def last(x: Any) -> Any:
        n, _ = x.shape
        return x[n - 1]

    np.testing.assert_array_equal(last(np.ones((2, 3))), np.ones(3))


@pytest.mark.parametrize("called", ["linalg.det", "fft.fft", "sort", "vander"])
def test_functions_of_numpy_that_refuse_a_cell_are_told_with_the_line(called: str) -> None:
    function: Any = np
    for name in called.split("."):
        function = getattr(function, name)

    @op
    def f(x: Any) -> Any:
        y[i] = function(x[i])
        return y

    with pytest.raises(tc.TcdslError, match=r"test_faults_of_python.py.*\n +y\[i\] = function\(x\[i\]\)"):
        f(np.ones(3))


def test_a_fault_is_not_hidden_by_what_comes_of_it() -> None:
    @cd
    def whole(x: Any, out: Any) -> Any:
        out[i] = 2 * x

    @cd
    def after(x: Any, out: Any, n: Any) -> Any:
        s[i] = x[i], i <= n
        m = max(s, axis=0)
        out[i] = x[i] - m

    with pytest.raises(tc.ShapeError, match="an array of rank 1 stands here without an index"):
        whole(np.ones(3), np.ones(3))
    with pytest.raises(tc.ShapeError, match="`n` is data, which cannot say how long s is"):
        after(np.ones(3), np.ones(3), np.array(1))


def test_functions_of_other_packages_have_their_names() -> None:
    special = pytest.importorskip("scipy.special")

    @op
    def whole(x: Any) -> Any:
        return special.gamma(x)

    @op
    def cells(x: Any) -> Any:
        y[i] = special.gamma(x[i])
        return y

    @op
    def nothing(x: Any) -> Any:
        return x + argmax()

    for function in (whole, cells):
        with pytest.raises(tc.DtypeError, match=": gamma is not a primitive of"):
            function(np.ones(3))
    with pytest.raises(tc.TcdslError, match="`argmax` takes 1 argument, not 0"):
        nothing(np.ones(3))
