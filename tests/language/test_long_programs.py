"""Long and deeply nested programs: what Python itself runs works, what is used several times stays one."""

from __future__ import annotations

import pickle
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import islpy as isl
import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.frontend.names.held_names import HeldNames
from tcdsl.frontend.python import template
from tcdsl.frontend.source.rewritten_functions import compiled_definition
from tcdsl.frontend.staging import subprograms
from tcdsl.ir.expressions import Expr, size_names
from tcdsl.polyhedra import size_facts
from tcdsl.polyhedra.affine import knowing
from tests.differential.loading import loaded

x = np.array([0.25, -0.5, 0.75])


def statement(value: str) -> Any:
    return loaded(f"def f(x):\n    y[i] = {value}\n    return y\n")


CHOICES = range(80)
IN_ARMS = "(" * 80 + "x[i]" + "".join(f" * 0.5 + 1.0 if x[i] > {k - 79} else x[i])" for k in CHOICES)
AS_CONDITIONS = "(x[i] > -1 if " * 80 + "x[i] > 0" + " else x[i] < -1)" * 80


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (" + ".join(["x[i] * 2.0"] * 300), 600 * x),
        (" - ".join(["x[i]"] * 1000), -998 * x),
        ("-" * 301 + "x[i]", -x),
        ("not " * 301 + "(x[i] > 0)", x < 0),
        ("".join(f"{k} if x[i] > {1 - k / 40} else " for k in range(40)) + "-1.0", [31, -1, 11]),
        (IN_ARMS, [2, -0.5, 2]),
        (f"1.0 if {AS_CONDITIONS} else 0.0", [1, 0, 1]),
    ],
    ids=["sum", "difference", "minus", "not", "choice", "in arms", "as conditions"],
)
def test_long_expressions(value: str, wanted: Any) -> None:
    np.testing.assert_allclose(statement(value).interpret(x), wanted)


def test_many_terms_of_whole_arrays() -> None:
    f = loaded(f"def f(x):\n    return {' + '.join(['x'] * 1000)}, {'-' * 301}x\n")
    for found, wanted in zip(f.interpret(x), (1000 * x, -x), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_parts_that_change_places_again_and_again() -> None:
    f = loaded("def f(y):\n" + "    y = np.concatenate([y[1:], y[:1]]) + y\n" * 12 + "    return y\n")
    wanted = x
    for _ in range(12):
        wanted = np.roll(wanted, -1) + wanted
    np.testing.assert_allclose(f.interpret(x), wanted)
    assert len(str(f.explain("ir", x))) < 12 * 600


@pytest.mark.parametrize("parts", ["x[:1], x, y[-1:]", "y[1:], x[:3], x", "x[:2], y[::-1][:2], x"])
def test_parts_of_two_arrays_that_are_put_together_again_and_again(parts: str) -> None:
    f = loaded("def f(x, y):\n" + f"    x, y = np.concatenate([{parts}]), x\n" * 14 + "    return x[:40]\n")
    for shapes in ((4, 3), (0, 2), (1, 0), (0, 0)):
        given = [np.arange(1.0, n + 1) for n in shapes]
        np.testing.assert_array_equal(f.interpret(*given), f.function(*given))
    assert len(str(f.explain("ir", *given))) < 14 * 6000


@pytest.mark.parametrize("parts", ["y[:1], y, y[-1:]", "y[:4], y, y[1:5]", "y[1:3][::-1], y"])
def test_parts_that_are_put_together_again_and_again(parts: str) -> None:
    f = loaded("def f(y):\n" + f"    y = np.concatenate([{parts}])\n" * 12 + "    return y[:40]\n")
    for y in (x, x[:1], x[:0]):
        np.testing.assert_array_equal(f.interpret(y), f.function(y))
    assert len(str(f.explain("ir", x))) < 12 * 1200


def python_calls(action: Any) -> int:
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "line",
    [
        "a = where(c, a + 1, b)",
        "a = x[i - 1] + a if i > 0 else a * 0.5",
        "a{0} = a{1} + 1 if x[i] > {1} else a{1} * 0.5",
        "a{0} = a{1} + 1 if x[p[i]] > {1} else a{1} * 0.5",
    ],
)
def test_many_local_definitions_that_are_choices(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[FrameType] = []
    codes: list[CodeType] = []

    def compiled(*given: Any) -> CodeType:
        codes.append(compiled_definition(*given))
        return codes[-1]

    monkeypatch.setattr(HeldNames, "_all", property(lambda self: copies.append(self._frame) or self._frame.f_locals))
    monkeypatch.setattr(template, "compiled_definition", compiled)
    positions = np.arange(len(x))[::-1].copy()

    def staged(count: int) -> int:
        lines = "".join(f"    {line}\n".format(k + 1, k) for k in range(count))
        first, last = ("a0", f"a{count}") if "{" in line else ("a", "a")
        head = f"def f(x, p):\n    {first} = x[i]\n    b = x[i] * 2\n    c = x[i] > 0\n"
        f = loaded(f"{head}{lines}    y[i] = {last}\n    return y\n")
        return python_calls(lambda: f.program(x, positions))

    staged(3)  # what is loaded with the first one does not count
    few, more = staged(20), staged(60)
    assert more < 4 * few
    # The variables of the function are not copied for each statement: that would be quadratic too.
    assert len(copies) < 20
    # Nor does Python's compiler look through a variable for each.
    assert all(len(code.co_freevars) < 10 for code in codes)
    assert len(codes) == 3


def test_of_many_branches_each_asks_for_the_sizes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Expr] = []
    monkeypatch.setattr(subprograms, "size_names", lambda expr: asked.append(expr) or size_names(expr))

    def staged(count: int) -> int:
        asked.clear()
        lines = "".join(f"    if x[{k}] > 0:\n        s = s * 0.5 + y\n" for k in range(count))
        loaded(f"def f(x, y):\n    s = y * 1\n{lines}    return s\n").program(np.arange(40.0), x)
        return len(asked)

    assert staged(24) <= 3 * staged(12)


def summed(vectors: int, body: str) -> tuple[Any, list[np.ndarray]]:
    """A function of many vectors, each of a size of its own, and vectors for it."""
    names = [f"a{k}" for k in range(vectors)]
    cells = " + ".join(f"{name}[i]" for name in names)
    f = loaded(f"def f({', '.join(names)}):\n" + body.format(arrays=" + ".join(names), cells=cells))
    return f, [x * k for k in range(vectors)]


@pytest.mark.parametrize(
    ("body", "times"),
    [("    return {arrays}\n", 1), ("    y[i] = {cells}\n    z[i] = y[i] + {cells}\n    return y + z\n", 3)],
    ids=["arrays", "cells"],
)
def test_hundreds_of_arguments(body: str, times: int) -> None:
    f, vectors = summed(200, body)
    np.testing.assert_allclose(f.interpret(*vectors), times * sum(vectors))


def test_of_many_equal_extents_isl_is_asked_about_few(monkeypatch: pytest.MonkeyPatch) -> None:
    # isl takes as long for one more size as there are, so one set for hundreds of them would take cubic time.
    asked: list[int] = []

    def counted(known: isl.Set, fact: Expr) -> isl.Set:
        asked.append(known.dim(isl.dim_type.param))
        return knowing(known, fact)

    monkeypatch.setattr(size_facts, "knowing", counted)
    f, vectors = summed(60, "    y[i] = {cells}\n    return y\n")
    np.testing.assert_allclose(f.interpret(*vectors), sum(vectors))
    assert len(asked) >= 59
    assert max(asked) <= 2


def test_one_of_many_arguments_of_another_size_is_named() -> None:
    f, vectors = summed(60, "    y[i] = {cells}\n    return y\n")
    vectors[47] = np.zeros(4)
    with pytest.raises(tc.ShapeError, match="over axis 0 of a47, which has the extent 4"):
        f.interpret(*vectors)


def test_what_is_known_of_many_sizes_holds_for_each_of_them() -> None:
    # a7 is longer by one than all others: what the first statement says of a0 is known of a39 in the last.
    names = [f"a{k}" for k in range(40)]
    cells = " + ".join(f"{name}[i]" for name in names if name != "a7")
    text = f"def f({', '.join(names)}):\n    y[i] = {cells}\n    y[i] += a7[i + 1] - a7[i]\n"
    f = loaded(text + "    z[i] = y[i] + a39[i], i < a39.shape[0] - 1\n    return y, z\n")
    vectors = [x * k for k in range(40)]
    vectors[7] = np.arange(4.0) ** 2
    y, z = f.interpret(*vectors)
    np.testing.assert_allclose(y, sum(vectors[:7]) + sum(vectors[8:]) + [1, 3, 5])
    np.testing.assert_allclose(z, (y + vectors[39])[:2])


def polynomial(value, argument, steps):
    for _ in range(steps):
        value = value * argument + 1
    return value


@op
def steps_once(x, *, steps: int):
    z = x[i]
    for _ in range(steps):
        z = z * x[i] + 1
    y[i] = z + polynomial(x[i], x[i], steps)
    return y


def test_a_thousand_steps_in_local_definitions_and_helpers() -> None:
    np.testing.assert_allclose(steps_once.interpret(x, steps=1000), 2 / (1 - x))


def test_steps_are_compiled_and_differentiated() -> None:
    # More than Python's stack has room for, and than its parser takes within each other.
    np.testing.assert_allclose(steps_once(x, steps=150), 2 / (1 - x))
    gradient = tc.grad(lambda x: steps_once(x, steps=150).sum()).interpret(x)
    np.testing.assert_allclose(gradient, 2 / (1 - x) ** 2)


@op
def steps_twice(x, *, steps: int):
    z = x[i]
    for _ in range(steps):
        z = z * z - 0.5 * z if z > 0.0 else z * x[i] + z
    y[i] = z
    return y


def twice(x: np.ndarray, steps: int) -> np.ndarray:
    z = x
    for _ in range(steps):
        z = np.where(z > 0, z * z - 0.5 * z, z * x + z)
    return z


def test_steps_whose_values_are_used_several_times_make_programs_of_linear_size() -> None:
    np.testing.assert_allclose(steps_twice.interpret(x, steps=40), twice(x, 40))
    sizes = [len(steps_twice.explain("ir", x, steps=steps)) for steps in (10, 20, 40)]
    assert sizes[2] - sizes[1] < 2.5 * (sizes[1] - sizes[0])


def test_helpers_that_use_their_arguments_several_times_make_programs_of_linear_size() -> None:
    def squared(value, steps):
        for _ in range(steps):
            value = value * value - value
        return value

    @op
    def f(x, *, steps: int):
        y[i] = squared(x[i], steps)
        return y

    @op
    def on_arrays(x, *, steps: int):
        return squared(x, steps)

    for program in (f, on_arrays):
        np.testing.assert_allclose(program.interpret(x, steps=30), squared(x, 30))
        sizes = [len(program.explain("ir", x, steps=steps)) for steps in (20, 40)]
        assert sizes[1] < 2.5 * sizes[0]


@op
def stencil(a, *, steps: int):
    total = 0.0
    for s in range(steps):
        d = a[i + s] - a[i + 1]
        total = total + d * d * d
    y[i] = total
    return y


def test_gradients_of_unrolled_stencils_are_of_linear_size() -> None:
    a = np.linspace(0, 1, 90) ** 2
    found = [tc.grad(lambda a, steps=steps: stencil(a, steps=steps).sum()).program(a) for steps in (20, 40)]
    assert len(str(found[1])) < 2.5 * len(str(found[0]))
    d = np.arange(20.0) ** 2 / 400
    gradient = tc.grad(lambda a: stencil(a, steps=12).sum()).interpret(d)
    cells = np.arange(9)
    differences = [d[cells + s] - d[cells + 1] for s in range(12)]
    wanted = np.zeros(20)
    for s, difference in enumerate(differences):
        np.add.at(wanted, cells + s, 3 * difference**2)
        np.add.at(wanted, cells + 1, -3 * difference**2)
    np.testing.assert_allclose(gradient, wanted)


DEEPEST: list[int] = []


def endless(value):
    DEEPEST.append(len(DEEPEST))
    return endless(value * 2)


@op
def without_end(x):
    y[i] = endless(x[i])
    return y


def test_what_is_nested_without_end_is_an_error_at_its_place() -> None:
    # On a thread whose own stack is small.
    limit = sys.getrecursionlimit()
    found: list[str] = []
    DEEPEST.clear()

    def act() -> None:
        with pytest.raises(tc.DslSyntaxError) as caught:
            without_end(x)
        found.append(str(pickle.loads(pickle.dumps(caught.value))))
        # Packages for workers pickle causes as well: none of a thousand frames.
        assert caught.value.__context__ is None

    thread = threading.Thread(target=act)
    before = threading.stack_size(256 * 1024)
    thread.start()
    threading.stack_size(before)
    thread.join()
    (message,) = found
    assert "`endless` calls itself without an end while it is staged" in message
    assert "return endless(value * 2)" in message
    assert sys.getrecursionlimit() == limit
    # Python's own stack ends first; on the large one functions call themselves as often as Python lets them.
    assert 1000 <= len(DEEPEST) <= 1300


@op
def calling_itself(x, *, times):
    DEEPEST.append(times)
    if times == 0:
        return x
    y[i] = x[i] + 1
    return calling_itself(y, times=times - 1)


@op
def branching(x):
    DEEPEST.append(len(DEEPEST))
    if x[0] > 0:
        return branching(x - 1)
    return x


@pytest.mark.long
def test_operations_call_themselves_a_thousand_times_and_no_more() -> None:
    x = np.zeros(1)
    assert calling_itself.interpret(x, times=300).tolist() == [300]
    DEEPEST.clear()
    with pytest.raises(tc.DslSyntaxError, match="`branching` calls itself without an end while it is staged"):
        branching.interpret(x)
    # Python's own stack ends first; what comes then has the large one.
    assert 1000 <= len(DEEPEST) <= 1300
