"""What can be decorated: functions, nested functions, methods; what cannot; pickling; where source comes from."""

from __future__ import annotations

import copy
import functools
import linecache
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

X = np.arange(3.0)


@op
def plus_one(x):
    y[i] = x[i] + 1
    return y


class Layer:
    bias = 1.0

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.steps = 0

    @op
    def forward(self, x, *, power: int = 1):
        y[i] = self.factor * x[i] ** power + self.bias
        return y

    @op
    def through_helper(self, x):
        return self.scaled(self.forward(x))

    def scaled(self, x: Any) -> Any:
        return 10 * x

    @cd
    def store(self, p, g):
        p -= self.factor * g

    @staticmethod
    @op
    def static(x):
        return x * x

    @classmethod
    def described(cls) -> str:
        return cls.__name__


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @op
    def forward(self, x):
        return self.factor * x


def test_op_of_a_plain_function_equals_decorating_it() -> None:
    def plain(x):
        y[i] = x[i] + 1
        return y

    for function in (op(plain), op()(plain), op(oob="skip")(plain)):
        np.testing.assert_array_equal(function(X), plus_one(X))
    memory = X.copy()

    def store(p):
        p += 1

    cd(store)(memory)
    np.testing.assert_array_equal(memory, X + 1)


def test_nested_functions_see_their_closure() -> None:
    factor, table = 3.0, np.array([1.0, 2.0, 3.0])

    @op
    def f(x):
        y[i] = factor * x[i] + table[i]
        return y

    np.testing.assert_array_equal(f(X), 3 * X + table)


def test_recursion_on_configuration_unrolls() -> None:
    @op
    def power(x, *, n: int):
        return x if n == 1 else x * power(x, n=n - 1)

    np.testing.assert_array_equal(power.interpret(X, n=4), X**4)


def test_methods_see_their_instance() -> None:
    double, triple = Layer(2.0), Layer(3.0)
    np.testing.assert_array_equal(double.forward.interpret(X), 2 * X + 1)
    np.testing.assert_array_equal(triple.forward.interpret(X, power=2), 3 * X**2 + 1)
    np.testing.assert_array_equal(double.through_helper.interpret(X), 10 * (2 * X + 1))
    double.factor = 5.0
    np.testing.assert_array_equal(double.forward.interpret(X), 5 * X + 1)
    np.testing.assert_array_equal(double.through_helper.interpret(X), 10 * (5 * X + 1))


def test_methods_of_classes_with_slots_see_their_instance() -> None:
    first, second = Slotted(2.0), Slotted(3.0)
    np.testing.assert_array_equal(first.forward.interpret(X), 2 * X)
    np.testing.assert_array_equal(second.forward.interpret(X), 3 * X)
    first.factor = 7.0
    np.testing.assert_array_equal(first.forward.interpret(X), 7 * X)


def test_methods_in_place() -> None:
    p = np.ones(3)
    Layer(0.5).store(p, X)
    np.testing.assert_array_equal(p, 1 - 0.5 * X)


class Steeper(Layer):
    @op
    def forward(self, x, *, power: int = 1):
        return Layer.forward(self, x, power=power) + super().forward(x)


def test_methods_called_through_their_class() -> None:
    layer = Layer(2.0)
    np.testing.assert_array_equal(Layer.forward(layer, X, power=2), 2 * X**2 + 1)
    np.testing.assert_array_equal(Layer.forward.interpret(layer, X), 2 * X + 1)
    assert "power" in Layer.forward.explain("source", layer, X)
    np.testing.assert_array_equal(Steeper(3.0).forward.interpret(X, power=2), 3 * X**2 + 1 + 3 * X + 1)
    np.testing.assert_array_equal(map_of(Layer.forward, [layer, Layer(4.0)]), [2 * X + 1, 4 * X + 1])


def map_of(method: Any, instances: list[Any]) -> list[Any]:
    return [method.interpret(instance, X) for instance in instances]


def test_static_methods_take_tensors_only() -> None:
    np.testing.assert_array_equal(Layer.static.interpret(X), X * X)
    np.testing.assert_array_equal(Layer(1.0).static.interpret(X), X * X)


def test_gradients_of_methods() -> None:
    layer = Layer(4.0)
    found = tc.grad(lambda x: layer.forward(x, power=2).sum())(X)
    np.testing.assert_array_equal(found, 8 * X)


def passing(function: Any) -> Any:
    return function


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*arguments: Any) -> Any:
        return function(*arguments)

    return inner


def test_another_decorator_above_is_ordinary_python() -> None:
    @wrapping
    @op
    def f(x):
        return 2 * x

    np.testing.assert_array_equal(f(X), 2 * X)


def test_another_decorator_between_that_wraps_is_an_error() -> None:
    with pytest.raises(tc.DslSyntaxError, match="stands between") as caught:

        @op
        @wrapping
        def f(x):
            return x

    assert "directly above `def`" in str(caught.value)


def test_one_that_gives_the_function_itself_changes_nothing() -> None:
    @op
    @passing
    def f(x):
        y[i] = 2 * x[i]
        return y

    np.testing.assert_array_equal(f(X), 2 * X)


def test_lambdas_async_functions_and_generators_are_errors() -> None:
    async def asynchronous(x):
        return x

    async def asynchronous_generator(x):
        yield x

    def generator(x):
        yield x

    for decorator in (op, cd):
        for function, message in (
            (lambda x: x, "a lambda cannot be decorated"),
            (asynchronous, "is an async function"),
            (asynchronous_generator, "generator"),
            (generator, "is a generator"),
        ):
            with pytest.raises(tc.DslSyntaxError, match=message):
                decorator(function)


def test_what_is_no_function_is_an_error() -> None:
    for thing in (int, functools.partial(passing, 1), Layer, Layer(1.0).scaled, 3, len):
        with pytest.raises(tc.DslSyntaxError, match="takes a function, not a"):
            op(thing)
    with pytest.raises(tc.DslSyntaxError, match="@op stands above @staticmethod"):
        op(staticmethod(passing))


def test_decorated_functions_pickle_by_qualified_name() -> None:
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one
    assert pickle.loads(pickle.dumps(Layer.static)) is Layer.static
    assert pickle.loads(pickle.dumps(Layer.forward)) is Layer.forward
    layer = Layer(3.0)
    layer.forward.interpret(X)
    copied = pickle.loads(pickle.dumps(layer))
    copied.factor = 4.0
    np.testing.assert_array_equal(copied.forward.interpret(X), 4 * X + 1)
    np.testing.assert_array_equal(layer.forward.interpret(X), 3 * X + 1)


def test_what_its_name_does_not_lead_to_is_not_pickled(tmp_path: Path) -> None:
    @op
    def local(x):
        return x

    message = r"<op .*local> cannot be pickled: the name \S+\.<locals>\.local does not lead to it"
    with pytest.raises(pickle.PicklingError, match=message):
        pickle.dumps(local)
    with pytest.raises(pickle.PicklingError, match=r"test_callables\.map_of does not lead to it"):
        pickle.dumps(op(map_of))
    path = tmp_path / "text.py"
    path.write_text("def loose(x):\n    return x * 2\n")
    scopes: tuple[dict[str, Any], ...] = ({}, {"__name__": ""})
    for names in scopes:
        exec(compile(path.read_text(), str(path), "exec"), names)  # what is run so need not be of any module
        with pytest.raises(pickle.PicklingError, match=r"<op .*> cannot be pickled: the name \.?loose does not lead"):
            pickle.dumps(op(names["loose"]))
    assert copy.copy(local) is local
    assert copy.deepcopy({"f": local})["f"] is local


def test_bound_methods_pickle_with_their_instance() -> None:
    forward = pickle.loads(pickle.dumps(Layer(3.0).forward))
    np.testing.assert_array_equal(forward.interpret(X), 3 * X + 1)


def test_instances_copy_and_compare_as_before() -> None:
    layer = Layer(3.0)
    layer.forward.interpret(X)
    other = copy.deepcopy(layer)
    np.testing.assert_array_equal(copy.deepcopy(layer.forward).interpret(X), 3 * X + 1)
    layer.factor = 2.0
    np.testing.assert_array_equal(other.forward.interpret(X), 3 * X + 1)
    layer.factor = 3.0
    other.factor = 5.0
    np.testing.assert_array_equal(other.forward.interpret(X), 5 * X + 1)
    np.testing.assert_array_equal(layer.forward.interpret(X), 3 * X + 1)


@pytest.mark.parametrize("how", ["exec", "stdin", "command"])
def test_where_the_source_is_not_available_the_error_says_so(how: str) -> None:
    text = "from tcdsl import op\n@op\ndef f(x):\n    return x\n"
    if how == "exec":
        with pytest.raises(tc.DslSyntaxError, match="the source of `f` is not available") as caught:
            exec(text, {})
        assert "define it in a file or a notebook cell" in str(caught.value)
        return
    command = [sys.executable, "-"] if how == "stdin" else [sys.executable, "-c", text]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if how == "command" and done.returncode == 0:
        pytest.skip("this Python keeps the source of -c")
    assert done.returncode != 0
    assert "the source of `f` is not available" in done.stderr


def test_the_text_of_a_command_is_not_that_of_what_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # As from Python 3.13 on, which keeps the text of `python -c` under the name that exec gives its code.
    text = "from tcdsl import op\n@op\ndef f(x):\n    y[i] = x[i] * 2\n    return y\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(text), None, text.splitlines(keepends=True), "<string>"))
    names: dict[str, Any] = {}
    exec(text, names)
    np.testing.assert_array_equal(names["f"].interpret(X), 2 * X)
    with pytest.raises(tc.DslSyntaxError, match="the source of `f` is not available"):
        exec(text.replace("2", "3"), {})


def test_a_notebook_cell_has_source() -> None:
    # A notebook registers the text of a cell with linecache under a name of its own.
    text = "from tcdsl import op\n@op\ndef f(x):\n    y[i] = x[i] + 5\n    return y\n"
    name = "<cell of a notebook>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {"i": 3}
    exec(compile(text, name, "exec"), namespace)
    np.testing.assert_array_equal(namespace["f"].interpret(X), X + 5)


def test_a_cell_that_runs_again_takes_effect(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"i": 3, "y": np.full(3, 50.0)}
    found = []
    for number, factor in enumerate((2, 3)):
        text = f"from tcdsl import op\n@op\ndef f(x):\n    y[i] = {factor} * x[i]\n    return y\n"
        name = f"<cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), namespace)
        found.append(namespace["f"].interpret(X)[1])
    assert found == [2, 3]


def test_the_source_may_be_indented_and_spread_over_lines() -> None:
    if True:

        @op
        # a comment between

        def spread(
            x,
            *,
            mode: str = "a",
        ):
            """Say
            nothing."""
            y[i] = (
                x[i] + 1  # one
            )
            text = """a
b"""
            return y if mode == text[0] else x

    np.testing.assert_array_equal(spread.interpret(X), X + 1)


def test_rows_are_arguments_of_functions_in_statements_on_cells() -> None:
    @op
    def length(x: real[N]):
        total[()] = sum(x[i] * x[i])
        return total

    @op
    def lengths(X: real[M, N], n):
        F: real[M]
        for v in range(M):
            F[v] = length(X[v]) + length(X[n - v])
        return F

    X = np.arange(6.0).reshape(3, 2)
    squares = (X * X).sum(axis=1)
    np.testing.assert_array_equal(lengths(X, 2), squares + squares[::-1])
