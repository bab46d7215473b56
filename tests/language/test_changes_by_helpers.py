"""Plain functions that change in place what decorated ones give them: as with NumPy in code, refused of values."""

from __future__ import annotations

import importlib.util
import random
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

TABLE = np.arange(3.0)


class Model:
    """An object with an array."""

    def __init__(self) -> None:
        self.weights = np.ones(3)

    def scale(self, a: Any) -> None:
        """A method that changes an argument."""
        a *= 2

    def change(self) -> None:
        """A method that changes an attribute."""
        self.weights *= 2


MODEL = Model()


def double(a: Any) -> Any:
    a *= 2
    return a


def double_alone(a: Any) -> None:
    a *= 2


def double_inside(a: Any) -> None:
    double_alone(a)


def double_part(a: Any) -> None:
    v = a[1:]
    v *= 2


def double_first_of(parts: list[Any]) -> None:
    parts[0] *= 2


def change_table() -> None:
    TABLE[0] += 5.0


HELPERS = [
    double,
    double_alone,
    double_inside,
    double_part,
    MODEL.scale,
    lambda a: a.__imul__(2),
    lambda a: double_first_of([a, 1]),
]


@pytest.mark.parametrize("helper", HELPERS)
def test_values_that_a_helper_would_change_are_not_read_afterwards(helper: Any) -> None:
    def directly(x: Any) -> Any:
        helper(x)
        return x

    def computed(x: Any) -> Any:
        y = x * 1.0
        helper(y)
        return y.sum()

    def of_a_part(x: Any) -> Any:
        y = x[1:]
        helper(y)
        return x

    def a_part_of_it(x: Any) -> Any:
        y = x[1:]
        helper(x)
        return y

    def in_rounds(x: Any, n: Any) -> Any:
        for _ in range(n):
            helper(x)
        return x

    def in_an_arm(x: Any, n: Any) -> Any:
        if n > 0:
            helper(x)
        return x

    def by_index(x: Any) -> Any:
        helper(x)
        y[i] = x[i] * 2
        return y

    for function in (directly, computed, of_a_part, a_part_of_it, by_index):
        with pytest.raises(tc.DslSyntaxError, match="in place, which is read afterwards, and values do not change"):
            op(function)(np.ones(3))
    for function in (in_rounds, in_an_arm):
        with pytest.raises(tc.DslSyntaxError, match="in place, which is read afterwards"):
            op(function)(np.ones(3), 2)
    with pytest.raises(tc.DslSyntaxError, match="in place, which is read afterwards"):
        tc.grad(lambda x: directly(x).sum())(np.ones(3))
    with pytest.raises(tc.DslSyntaxError, match="in place, which is read afterwards"):
        op(directly)(tc.tensor(np.ones(3)))


def test_the_fault_stands_at_the_change_and_says_what_to_write() -> None:
    @op
    def both(x: Any) -> Any:
        y = double(x)
        return x + y

    with pytest.raises(tc.DslSyntaxError) as caught:
        both(np.ones(3))
    assert "this would change `x` in place" in str(caught.value)
    assert "    a *= 2\n    ^^^^^^\nwrite `a = a * 2` for `a *= 2`, return it, and bind it" in str(caught.value)


def test_what_a_helper_returns_is_the_changed_value() -> None:
    def bound_anew(x: Any) -> Any:
        x = double(x)
        return x + double(x * 3)

    def total(x: Any) -> Any:
        found = x * 0
        for k in range(3):
            found += k * x
        copy = x.copy()
        copy *= 2
        return found + copy + x

    def in_rounds(x: Any, n: Any) -> Any:
        parts = [1.0, x * 0.0]
        for t in range(n):
            x = double(x)
            parts[1] = double(parts[1]) + t
        while n < 5:
            x = double(x)
            n += 1
        return double(x) + parts[1] if n > 0 else x

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(op(in_rounds)(x, 3), 64 * x + 4)
    np.testing.assert_array_equal(op(bound_anew)(x), 14 * x)
    np.testing.assert_array_equal(op(lambda_free(total))(x), 6 * x)
    np.testing.assert_array_equal(tc.grad(lambda x: bound_anew(x).sum())(x), [14.0, 14.0])
    np.testing.assert_array_equal(op(lambda_free(total))(tc.tensor(x)).value, 6 * x)


def lambda_free(function: Any) -> Any:
    """A function that leaves everything to a plain one."""

    def outer(x: Any) -> Any:
        return function(x)

    return outer


def test_operators_in_place_in_the_function_itself_make_new_values() -> None:
    @op
    def summed(x: Any) -> Any:
        y = x
        y += 1.0
        y *= [1.0, 2.0]
        y //= 0.5
        parts = [x, x]
        parts[0] += 1.0
        parts[1] %= 2.0
        return x + y + parts[0] + parts[1]

    x = np.array([1.0, 3.0])
    wanted = x + (x + 1) * [1, 2] // 0.5 + (x + 1) + x % 2
    data = tc.tensor(x)
    np.testing.assert_array_equal(summed(x), wanted)
    for _ in range(2):  # before its value is known and afterwards
        np.testing.assert_array_equal(summed(data).value, wanted)
        np.testing.assert_array_equal((2 * data).value, 2 * x)


def test_results_are_assigned_and_not_given_by_out() -> None:
    def add_into(a: Any) -> None:
        np.add(a, 1.0, out=a)

    @cd
    def helped(x: Any) -> None:
        add_into(x)

    @cd
    def added(x: Any) -> None:
        np.add(x, 1.0, out=x)

    for function in (helped, added):
        with pytest.raises(tc.TcdslError, match=r"(?s)out.*assign what it gives:.*a\[...\] = a \+ b"):
            function(np.ones(3))


def test_values_that_rounds_replace_are_not_read_behind_the_loop() -> None:
    def of_a_loop(x: Any, n: Any) -> Any:
        y = x * 1.0
        z = y
        for _ in range(n):
            z = double(z)
        return y, z

    def of_a_branch(x: Any, n: Any) -> Any:
        y = x * 1.0
        z = y
        if n > 0:
            z = double(z)
        return y, z

    for function in (of_a_loop, of_a_branch):
        with pytest.raises(tc.DslSyntaxError, match="this would change `y` in place, which is read afterwards"):
            op(function)(np.ones(3), 2)


def test_helpers_of_code_change_memory() -> None:
    def change(x: Any, y: Any) -> None:
        double(x)
        MODEL.scale(y[1:])
        kept = x * 1.0
        double_part(kept)
        y += kept

    x, y = np.array([1.0, 2.0, 3.0]), np.ones(3)
    wanted_x, wanted_y = x.copy(), y.copy()
    change(wanted_x, wanted_y)
    cd(change)(x, y)
    np.testing.assert_array_equal(x, wanted_x)
    np.testing.assert_array_equal(y, wanted_y)

    @cd
    def product(x: Any, m: Any) -> None:
        multiply(x, m)

    def multiply(a: Any, b: Any) -> None:
        a @= b

    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    product(square, 2 * np.eye(2))
    np.testing.assert_array_equal(square, [[2.0, 4.0], [6.0, 8.0]])
    with pytest.raises(tc.ShapeError, match="`@=` would give an array of rank 0"):
        product(np.ones(2), np.ones(2))


@pytest.mark.parametrize("decorator", [op, cd])
def test_arrays_around_a_function_are_not_changed_while_it_is_staged(decorator: Any) -> None:
    def of_the_module(x: Any) -> Any:
        change_table()
        x += TABLE
        return x if decorator is op else None

    def of_an_object(x: Any) -> Any:
        MODEL.change()
        x += MODEL.weights
        return x if decorator is op else None

    def of_an_object_here(x: Any) -> Any:
        MODEL.weights *= 2
        x += MODEL.weights
        return x if decorator is op else None

    for function, name in ((of_the_module, "TABLE"), (of_an_object, "weights"), (of_an_object_here, "MODEL.weights")):
        made = decorator(function)
        for _ in range(2):
            with pytest.raises(tc.DslSyntaxError, match=rf"Python changes the array `.*{name}` while the function is"):
                made(np.ones(3))
    np.testing.assert_array_equal(TABLE, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(MODEL.weights, np.ones(3))


def test_code_is_not_called_on_tensors_of_an_op() -> None:
    @cd
    def clear(a: Any) -> None:
        a[...] = 0.0

    @op
    def cleared(x: Any) -> Any:
        clear(x)
        return x

    for x in (np.ones(3), tc.tensor(np.ones(3))):
        with pytest.raises(tc.DslSyntaxError, match="`clear` is a @cd function, which stores into `a`, but here that"):
            cleared(x)


class _Programs:
    """Random helpers that change, return and hand on their parameters and views of them, and a function of them."""

    def __init__(self, seed: int, in_place: bool) -> None:
        self._random = random.Random(seed)
        self._in_place = in_place
        self.text = ""
        for number in range(2):
            self._helper(number)
        self._function()

    def _write(self, head: str, lines: list[str]) -> None:
        self.text += head + "\n" + "".join(f"    {line}\n" for line in lines)

    def _helper(self, number: int) -> None:
        names, lines = ["a", "b"], []
        for _ in range(self._random.randint(1, 4)):
            n, m = self._random.choice(names), self._random.choice(names)
            kinds = [
                [f"{n} *= 2"],
                [f"{n} += {m}"],
                [f"c = {n} * {m} + 1.0"],
                [f"c = {n}"],
                [f"v = {n}[1:]", "v -= 3"],
                [f"{n} = h0({n}, {m})" if number else f"{n} = {n} * 3"],
                ["for q in range(2):", f"    {n} *= 2", f"    {m} = {m} + {n}"],
                [f"parts = [{n}, {m}]", "parts[0] *= 2", f"{n} = parts[0] + parts[1]"],
            ]
            chosen = self._random.choice(kinds)
            names += ["c"] if chosen[0].startswith("c ") else []
            lines += chosen
        self._write(f"def h{number}(a, b):", [*lines, f"return {self._random.choice(names)}"])

    def _function(self) -> None:
        names, lines = ["x", "y"], []
        for _ in range(self._random.randint(1, 4)):
            n, m = self._random.choice(names), self._random.choice(names)
            h = f"h{self._random.randrange(2)}"
            kinds = [[f"{h}({n}, {m})"], [f"{h}({n}[1:], {m}[:-1])"], [f"z = {n} - {m} * 0.5"]]
            kinds += [["for q in range(n):", f"    {h}({n}, {m})"], [f"z = {h}({n}, {m}) * 1.0"]]
            if not self._in_place:
                kinds += 4 * [[f"{n} = {h}({n} * 1.0, {m} + 0.0)"], [f"{n} = {h}({n}, {m} + 0.0)"]]
                kinds += [[f"v = {n}[1:]", f"{h}(v, {m}[1:])"]]
            chosen = self._random.choice(kinds)
            names += ["z"] if chosen[0].startswith("z ") else []
            lines += chosen
        self._write("def f(x, y, n):", lines if self._in_place else [*lines, f"return {', '.join(names)}"])


def _outcome(module: ModuleType, in_place: bool) -> str:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    mine = x.copy(), y.copy()
    wanted = module.f(x, y, 2)
    wanted = (x, y) if in_place else wanted
    try:
        found = mine if in_place and cd(module.f)(*mine, 2) is None else op(module.f)(*mine, 2)
    except tc.TcdslError as error:
        known = re.search(r"in place, which is read afterwards|changes none of its arguments", str(error))
        return "refused" if known else str(error)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    return "right"


@pytest.mark.parametrize("in_place", [False, True])
def test_random_helpers_do_what_they_do_with_numpy_or_are_refused(in_place: bool, tmp_path: Path) -> None:
    found = []
    for seed in range(40):
        path = tmp_path / f"changes_{in_place}_{seed}.py"
        path.write_text(_Programs(seed, in_place).text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(_outcome(module, in_place))
    assert set(found) == {"right", "refused"}
    assert found.count("right") >= 8
