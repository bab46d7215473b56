"""Names that the condition of `while` or `if` binds: they have a value after it, as in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.running_programs import check, program

X = np.array([3.0, 4.0, 0.5])


def in_python(body: str, parameters: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def f({parameters}):\n" + "\n".join(f"    {line}" for line in body.splitlines()), namespace)
    return namespace["f"]


BODIES = [
    "while (r := x[0] * 0.5) > e:\n    x = x * 0.9\nreturn r",
    "n = 0\nwhile n < 100 and (r := x * 0.5).sum() > e:\n    x = r\n    n = n + 1\nreturn r, n",
    "n = 0\nwhile (v := x[n]) > e and n < 2:\n    n = n + 1\nreturn v, n",
    "y = x[0]\nwhile (d := (new := 0.5 * (y + 2 / y)) - y) ** 2 > e:\n    y = new\nreturn new, d",
    "while True:\n    new, old = x * 0.5, x\n    if new.sum() < e:\n        break\n    x = new\nreturn new, old",
    "if (a := x * 2).sum() > e and (b := a + x[0]).sum() > 0:\n    y = a + b\nelse:\n    y = a\nreturn y, a",
    "if e > 5 and (b := 3 * x)[1] > 9:\n    x = b\nelif (a := x[1]) > 3:\n    x = x * a\nelse:\n    x -= a\nreturn x",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("e", [0.4, 1.0, 7.0])
def test_what_a_condition_names_lasts(body: str, e: float) -> None:
    check(program(body, "x, e"), (X, e), in_python(body, "x, e")(X, e))


def test_its_gradient() -> None:
    f = program(BODIES[0], "x, e")
    np.testing.assert_allclose(tc.grad(lambda x: f(x, 1.0))(X), [0.5 * 0.9**4, 0, 0])


def test_in_rounds_of_another_loop() -> None:
    body = "s = 0.0\nfor t in range(len(x)):\n    while (r := x[t] / 3) > e:\n        x[t] = r\n    s = s + r\nreturn s"
    check(program(body, "x, e", "op"), (X, 0.1), in_python(body, "x, e")(X.copy(), 0.1))


def test_what_no_first_round_has_bound_is_an_error() -> None:
    f = program("while x.sum() > 1:\n    r = x * 0.5\n    x = r\nreturn r", "x")
    with pytest.raises(tc.DslSyntaxError, match="`r` is first bound in a round of a loop that runs"):
        f(X)
