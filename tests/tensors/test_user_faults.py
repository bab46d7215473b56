"""What users write by mistake, and what they write as they would for NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tcdsl as tc
from tcdsl import op
from tests.tensors.interpreting import run, value

X = np.arange(6.0).reshape(2, 3)


class TestTranspose:
    @pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 2), (2, 3, 4), (0, 2)])
    def test_of_output_axes_only_is_numpys(self, shape: tuple[int, ...]) -> None:
        array = np.arange(float(np.prod(shape))).reshape(shape)
        for made in (tc.tensor(array).T, tc.einsum("T", tc.tensor(array)), np.transpose(tc.tensor(array))):
            assert made.shape == array.T.shape
            assert made.row_ranks.plain
            assert_array_equal(value(made), array.T)

    def test_has_the_gradient_of_numpys(self) -> None:
        x = tc.tensor(X, grad=True)
        weights = np.arange(6.0).reshape(3, 2)
        run(tc.train.grad_update((x.T * tc.tensor(weights)).sum()))
        assert_array_equal(x.grad, weights.T)

    def test_of_a_parameter_swaps_rows_even_where_it_has_no_input_axes(self) -> None:
        w = tc.param("w", o=(2, 3), init=lambda _, sizes: X.reshape(sizes))
        made = w.T
        applied = w @ tc.tensor(2.0)  # which says that there are none
        assert str(applied.rows) == "2, 3"
        assert str(made.rows) == "2, 3 -> ()"
        assert_array_equal(value(made), X)


def test_parameters_compose_with_tensors_without_output_axes() -> None:
    w = tc.param("w", o=3, init=lambda _, sizes: np.arange(3.0))
    made = w @ tc.tensor(np.array([1.0, 2.0, 4.0]), batch=1)
    assert str(made.rows) == "3 | 3"
    assert_array_equal(value(made), np.outer([1.0, 2.0, 4.0], [0.0, 1.0, 2.0]))
    assert value(tc.param("w", o=(2, 1), init=2.0) @ tc.tensor(3.0)).tolist() == [[6.0], [6.0]]


class TestNumpyFunctions:
    @pytest.mark.parametrize(
        "function",
        [
            lambda t: np.where(t > 2, t, -t),
            np.sum,
            lambda t: np.sum(t, axis=1, keepdims=True),
            lambda t: np.mean(t, axis=0),
            lambda t: np.max(t, axis=(0, 1)),
            np.min,
            np.prod,
            np.round,
            np.transpose,
            lambda t: np.dot(t, np.ones((3, 2))),
        ],
    )
    def test_make_nodes_and_have_gradients(self, function: Callable[[Any], Any]) -> None:
        x = tc.tensor(X, grad=True)
        made = function(x)
        assert isinstance(made, tc.Tensor)
        assert_array_equal(value(made), function(X))
        assert made.differentiable

    def test_others_are_computed_from_values(self) -> None:
        assert np.allclose(tc.tensor(X), X)
        assert_array_equal(np.concatenate([tc.tensor(X), X]), np.concatenate([X, X]))


class TestTruthValues:
    @pytest.mark.parametrize("cells", [[True, False], [True, True], [False, False]])
    def test_largest_and_smallest(self, cells: list[bool]) -> None:
        array = np.array(cells)

        @op
        def both(x):
            return x.max(), np.min(x, axis=0)

        assert [value(tc.tensor(array).max()), value(tc.tensor(array).min())] == [array.max(), array.min()]
        assert [bool(each) for each in both(array)] == [array.max(), array.min()]


class TestLiterals:
    def test_arrays_in_lists_have_output_axes(self) -> None:
        made = tc.tensor([np.ones(3), np.zeros(3)])
        assert str(made.rows) == "2, 3"
        assert str(tc.tensor((X, X)).rows) == "2 -> 2, 3"
        assert_array_equal(value(tc.tensor((X, 2 * X))), np.stack([X, 2 * X], axis=-1))

    def test_of_different_shapes(self) -> None:
        with pytest.raises(tc.ShapeError, match="the parts of a literal have different shapes"):
            tc.tensor([np.ones(3), np.zeros(2)])

    @pytest.mark.parametrize("given", ["a", None, [1.0], 1j])
    def test_what_is_no_number(self, given: Any) -> None:
        with pytest.raises(tc.DtypeError, match="as a number"):
            tc.number(given)

    @pytest.mark.parametrize("dtype", ["foo", "complex128", object, 3])
    def test_what_is_no_element_type(self, dtype: Any) -> None:
        for attempt in (
            lambda: tc.tensor(X, dtype=dtype),
            lambda: tc.param("w", o=2, dtype=dtype),
            lambda: tc.tensor(X).astype(dtype),
        ):
            with pytest.raises(tc.DtypeError, match="as an element type"):
                attempt()

    @pytest.mark.parametrize("count", [1.0, "1", True, None])
    def test_what_is_no_number_of_axes(self, count: Any) -> None:
        for given in (X, X.tolist(), tc.tensor(X)):
            with pytest.raises(tc.ShapeError, match="as a number of axes"):
                tc.tensor(given, batch=count)

    def test_what_is_no_label(self) -> None:
        with pytest.raises(tc.DtypeError, match="3 as a label"):
            tc.tensor(X, label=3)  # type: ignore[arg-type]

    def test_rows_of_stacked_tensors(self) -> None:
        x = tc.tensor(X)
        assert str(tc.tensor([x, x], batch=1, input=1).rows) == "2 | 3 -> 2"


class TestAssignment:
    def test_a_float_is_not_cut_to_an_integer(self) -> None:
        count = tc.tensor([1, 2])
        with pytest.raises(tc.DtypeError, match="float64 cannot be stored as int64"):
            count.value = 5.5
        assert_array_equal(count.value, [1, 2])
        count.value = 7
        assert_array_equal(count.value, [7, 7])

    def test_an_integer_that_does_not_fit(self) -> None:
        small = tc.tensor([1], dtype="int8")
        with pytest.raises(tc.DtypeError, match="300 does not fit in int8"):
            small.value = 300
        small.value = -128
        assert_array_equal(small.value, [-128])

    def test_what_arrives_from_elsewhere_is_only_read(self) -> None:
        @tc.cd
        def overwrite(p):
            p.grad.merge = p

        message = r"`p.grad.merge` cannot be stored into here\n +p.grad.merge = p\n +\^+\na copy that arrives from"
        with pytest.raises(tc.DslSyntaxError, match=message):
            tc.compile(overwrite(tc.param("p", o=1)))


class TestPlaces:
    """Faults that show when a node is staged are shown where it was made."""

    @pytest.mark.parametrize(
        ("make", "message", "source"),
        [
            (lambda f, i: f & f, "`&` takes integers or truth values", "f & f"),
            (lambda f, i: ~f, "`~` takes integers or truth values", "~f"),
            (lambda f, i: i * 1000, "the integer 1000 does not fit in int8", "i * 1000"),
        ],
    )
    def test_of_faults_of_types(self, make: Callable[[Any, Any], Any], message: str, source: str) -> None:
        made = make(tc.tensor([1.0]), tc.tensor([1], dtype="int8"))
        for ask in (value, lambda t: t.element_type, lambda t: t.value):
            with pytest.raises(tc.DtypeError, match=message) as caught:
                ask(made)
            lines = str(caught.value).splitlines()
            assert lines[0].partition(":")[0] == __file__
            caret = lines[2].index("^")
            assert lines[1][caret : caret + lines[2].count("^")] == source

    def test_a_tensor_as_a_bound(self) -> None:
        n = tc.static_index("n", 3)
        with pytest.raises(tc.DslSyntaxError, match="a tensor as a bound of a slice"):
            tc.tensor(X)[n:]
        assert_array_equal(value(tc.tensor(X)[0][n + np.arange(2)]), X[0, :2])

    def test_a_tensor_as_a_size(self) -> None:
        @op
        def layer(x, *, size):
            return x + "b"[size]

        with pytest.raises(tc.DslSyntaxError, match="the value of `tensor` is not known while a function is staged"):
            layer(size=tc.tensor(3))(tc.tensor([1.0]))


class TestTextThatMeetsNumbers:
    """``2 * "w" @ x`` is ``(2 * "w") @ x`` to Python: the parameter "ww" would be silently wrong."""

    @pytest.mark.parametrize("factor", [2, 0.5])
    def test_is_no_parameter(self, factor: float) -> None:
        @op
        def left(x):
            return factor * "w" @ x

        @op
        def right(x):
            return "w" * factor + x

        for function in (left, right):
            with pytest.raises(tc.DslSyntaxError, match="is text here: it meets a number, not a tensor"):
                function(tc.tensor(X, batch=1))
            assert function.parameters == {}

    @pytest.mark.parametrize("factor", [2, 0.5])
    def test_with_axes_is_a_parameter(self, factor: float) -> None:
        @op
        def with_axes(x):
            return factor * "weight"[3] @ x + "b"[3] * factor

        made = with_axes(tc.tensor(X, batch=1))
        weight, b = with_axes.parameters.values()
        assert weight.shape == (3, 3)
        assert np.allclose(value(made), X @ (factor * weight.value).T + factor * b.value)

    def test_stays_text_elsewhere(self) -> None:
        @op
        def named(x):
            label = "ab" * 2 + "-" * 3
            return x * len(label) + 2 * ("w" @ x) + x * "v"

        made = named(tc.tensor(X, batch=1))
        assert made.shape == (2, 3)
        assert list(named.parameters) == ["w", "v"]
        run(tc.train.grad_update(made.sum()))


class TestCallsThatFail:
    def test_forget_what_they_have_declared(self) -> None:
        @op
        def inner(x, *, label):
            return "v"[2] @ x

        @op
        def outer(x, *, size):
            hidden = "w" @ inner(x, label="in")
            if x.shape[1] == 3:
                raise RuntimeError("three")
            return hidden + "b"[size]

        layer = outer(size=4)
        with pytest.raises(RuntimeError, match="three"):
            layer(tc.tensor(X, batch=1))
        assert layer.parameters == {}
        assert layer(tc.tensor(X[:, :2], batch=1)).shape == (2, 4)
        before = layer.parameters
        assert list(before) == ["w", "b", "v.in"]
        with pytest.raises(tc.ShapeError, match="the sizes of axes differ"):
            layer(tc.tensor(X, batch=1, label="x"))
        assert layer.parameters == before


@pytest.mark.parametrize(
    "name", ["for", "class", "None", "lambda", "x.y", "é", "_", "1w", "w 2", "\n", "%d{}", "mul", "i"]
)
def test_names_of_parameters(name: str) -> None:
    w = tc.param(name, o=2, init=1.0)
    loss = (w @ tc.tensor(X, batch=1)).sum()
    run(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.5))
    assert_array_equal(w.value, 1 - 0.5 * np.tile(X.sum(axis=0), (2, 1)))


def test_numbers_of_a_tensor_of_one_cell():
    w = tc.param("w", init=[1.0, 2.0])
    loss = (w * w).sum()
    assert (f"{loss:.3f}", round(loss, 1), round(loss), loss.tolist(), w.tolist()) == ("5.000", 5.0, 5, 5.0, [1.0, 2.0])
    assert f"{loss}" == repr(loss)
    with pytest.raises(tc.DslSyntaxError, match=r"`w` has 2 cells, and '.2f' is the format of a number"):
        f"{w:.2f}"

    @tc.op
    def staged(x):
        return x * x.tolist()

    with pytest.raises(tc.DslSyntaxError, match="is not known while a function is staged"):
        staged(w)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("forward", "`loss.value`"),
        ("flatten", r"`t.value.ravel\(\)`"),
        ("backprop", r"`step.run\(\)`"),
        ("backward", r"tc.compile\(tc.train.grad_update\(loss\)\)"),
        ("zero_grads", "nothing to clear"),
        ("numpy", "`t.value` is its array"),
        ("view", r"`x.reshape\(...\)`"),
        ("parameters", "`layer.parameters`, without parentheses"),
        ("requires_grad_", r"`tc.tensor\(array, grad=True\)`"),
        ("clone", r"`x.copy\(\)`"),
        ("cpu", "leave it out"),
    ],
)
def test_what_tensors_of_others_have(name, hint):
    loss = tc.param("w", init=[1.0]).sum()
    assert not hasattr(loss, name)
    with pytest.raises(tc.MissingAttributeError, match=rf"a tensor has no attribute `{name}`(.|\n)*{hint}"):
        getattr(loss, name)
    with pytest.raises(AttributeError, match=r"a tensor has no attribute `unknown`\n"):
        loss.unknown


def test_a_list_of_parameters():
    w = tc.param("w", init=[1.0])
    for given in ([w, w], (w,), {"w": w}):
        with pytest.raises(tc.DtypeError, match=r"\[sgd\(each\) for each in p\](.|\n)*tc.train.update"):
            tc.train.sgd(given, learning_rate=0.1)


def test_parameters_with_the_names_of_builtins(recwarn):
    @tc.op
    def scaled(input, max):
        return input * max

    assert scaled(np.ones(2), np.full(2, 3.0)).tolist() == [3.0, 3.0]
    assert not recwarn.list


def test_cells_of_type_bfloat16():
    torch = pytest.importorskip("torch")

    @tc.op
    def doubled(x):
        return x * 2

    with pytest.raises(tc.DtypeError, match=r"bfloat16, which tcdsl does not handle\nconvert it: `x.float\(\)`"):
        doubled(torch.ones(2, dtype=torch.bfloat16))


def test_a_batch_beside_an_array_of_its_shape(recwarn):
    @op
    def net(x):
        return "w" @ x + "b"[1]

    x, labels = tc.tensor(np.arange(10.0).reshape(5, 2), batch=1, label="x"), np.ones((5, 1))
    for right in (tc.tensor(labels, batch=1), 1.0, np.ones(1), np.ones((1, 1)), net(x)):
        assert ((net(x) - right) ** 2).value.shape in ((5, 1), (5, 1, 1))
    assert not recwarn.list
    message = r"`net.x` is 5 \| 1, and `tensor` 5, 1: together they are all pairs(.|\n)*`tc.tensor\(array, batch=1\)`"
    for pairs in (lambda: net(x) - labels, lambda: labels - net(x), lambda: net(x) * tc.tensor(labels)):
        with pytest.warns(RuntimeWarning, match=message):
            assert pairs().value.shape == (5, 5, 1)
    message = r"`tensor` 5: together they are all pairs(.|\n)*`tc.tensor\(array\[..., None\], batch=1\)`"
    with pytest.warns(RuntimeWarning, match=message):
        assert (net(x) - labels[:, 0]).value.shape == (5, 5)


def test_lists_of_tensors_of_unequal_shapes():
    w, b = tc.param("w", o=3, i=2, init=1.0), tc.param("b", o=3, init=2.0)
    w.value, b.value
    assert np.sum([b, b]) == 12
    for function in (np.sum, np.mean, np.linalg.norm, np.max, np.argmax):
        name = f"np.linalg.{function.__name__}" if function is np.linalg.norm else f"np.{function.__name__}"
        message = rf"test_user_faults.py:\d+: `{name}` takes a list for an array(.|\n)*w has the shape \(3, 2\)"
        with pytest.raises(tc.ShapeError, match=message):
            function([b, w])
        assert np.isfinite(function(np.concatenate([t.value.ravel() for t in (w, b)])))


def test_a_parameter_with_input_axes_beside_an_array_of_its_shape(recwarn):
    square, wide = tc.param("s", o=3, i=3, init=1.0), tc.param("w", o=2, i=3, init=1.0)
    for like in (square.value, tc.tensor(square.value.copy(), input=1), np.ones(3)):
        assert (square - like).value.shape == (3, 3)
    assert not recwarn.list
    with pytest.warns(RuntimeWarning, match=r"`s` is 3 -> 3(.|\n)*all pairs(.|\n)*`tc.tensor\(array, input=1\)`"):
        assert (square - square.value.copy()).value.shape == (3, 3, 3)
    with pytest.raises(tc.ShapeError, match=r"write `tc.tensor\(array, input=1\)` if its axes are those of the other"):
        wide - 2 * wide.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tc.param("w", input_dims=2), "'input_dims'(.|\n)*write `i` for `input_dims`"),
        (lambda: tc.tensor(X, batch_dims=1), "'batch_dims'(.|\n)*write `batch` for `batch_dims`"),
        (lambda: tc.tensor(X, output_dims=1), "`tensor` takes value, batch, input, label, dtype, grad"),
        (lambda: tc.einsum("i=>", X[0], primitive="max"), r"`einsum` takes spec, \*operands, accumulate, combine"),
        (lambda: tc.static_index("n"), "'size'(.|\n)*`static_index` takes name, size"),
    ],
)
def test_options_that_a_function_does_not_have(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tc.ConfigurationError, match=f"test_user_faults.py(.|\n)*{message}"):
        call()


def test_options_that_a_function_of_the_language_does_not_have() -> None:
    @op
    def summed(x):
        return einsum("ij=>i", x, primitive="max")

    with pytest.raises(tc.ConfigurationError, match=r"(?s)return einsum.*takes spec"):
        summed(X)


def test_numpy_takes_the_values_of_parameters_from_views_and_sequences() -> None:
    parameters = {name: tc.param(name, init=np.ones(2)) for name in "ab"}
    for given in (parameters.values(), list(parameters.values()), tuple(parameters.values())):
        np.testing.assert_array_equal(np.concatenate(given), np.ones(4))

    @op
    def doubled(x):
        return 2 * x

    with pytest.raises(tc.DtypeError, match=r"`x` is a dict_values.*\n`?call it for each of them"):
        doubled(parameters.values())


def test_what_a_parameter_holds_stands_beside_it() -> None:
    w = tc.param("w", o=2, i=3, init=0.5)
    x = tc.tensor(np.ones((4, 2)), batch=1)
    for beside in (w.value, tc.tensor(w.value), tc.tensor(w.value, input=1)):
        np.testing.assert_array_equal((w + beside).value, np.ones((2, 3)))
    assert str((x - tc.tensor(x.value)).rows) == "4 | 2"
    # What is made of its cells has none of its rows.
    assert str(tc.tensor(w.value.T).rows) == "3, 2"

    @op
    def distance(p):
        return ((p - w.value) ** 2).sum()

    assert distance(w).value == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            np.concatenate,
            r"(?s)`np\.concatenate`: .*w: 3 -> 2\n    b: 4\nwrite `np\.concatenate\(\[t\.value\.ravel\(\)",
        ),
        (np.stack, r"(?s)`np\.stack`: all input arrays must have the same shape.*w: 3 -> 2"),
        (lambda given: np.dot(given[0], given), r"(?s)`np\.dot`: .*\nwrite `np\.concatenate"),
        (np.linalg.multi_dot, r"(?s)`np\.linalg\.multi_dot`: .*not aligned"),
        (lambda given: np.split(given[0], 2, axis=7), r"(?s)`np\.split`: .*w: 3 -> 2\nNumPy computes this"),
        (sum, "axes of sizes 2 and 4 do not broadcast"),
        (max, "axes of sizes 4 and 2 do not broadcast"),
    ],
)
def test_numpy_over_tensors_of_other_shapes_says_what_to_write(call: Callable[..., Any], message: str) -> None:
    parameters = [tc.param("w", o=2, i=3), tc.param("b", o=4)]
    with pytest.raises(tc.TcdslError, match=message) as raised:
        call(parameters)
    assert f"{__file__}:" in str(raised.value)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(tc.tensor(np.zeros((2, 2))))
