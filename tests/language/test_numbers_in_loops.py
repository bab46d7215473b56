"""Python's functions of numbers, on numbers that only the call knows: as in Python, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.language.running_programs import check, program

X = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0])

BODIES = [
    """q, r = 0.0, 0.0
for t in range(n):
    a, b = divmod(x[t], 2)
    c, d = divmod(t * 5 - 11, 4)
    e, f = divmod(7, t + 1)
    q, r = q + a + c * e, r + b + d * f
return q, r""",
    """s = 0.0
for t in range(n):
    if any([x[t] > 3, x[t] < 0]):
        s += 1
    if all((x[t] > 0, t > 1, True)):
        s += 10
return s""",
    """s = 0.0
for t in range(n):
    s = s * 2 + max([x[t], x[t + 1], 0]) - min((x[t], 1.5, t)) + max([t, n - t])
return s""",
    """s = 0
for t in range(n):
    s += (t * 7 - 20) // 3 + (t * 7 - 20) % -3 + min([1, 2]) + any([])
return s""",
]


@pytest.mark.parametrize("body", BODIES)
def test_they_are_those_of_python(body: str) -> None:
    names: dict[str, Any] = {}
    exec("def f(x, n):\n" + "\n".join(f"    {line}" for line in body.splitlines()), names)
    for n in (0, 1, 5):
        check(program(body, "x, n"), (X, n), names["f"](X, n))


def test_cells_that_python_has_filled_take_the_type_that_rounds_give_them() -> None:
    body = "s = output(2)\ns[:] = 0\nfor t in range(n):\n    s[t % 2] += x[t]\n    s[0], s[1] = s[1], s[0]\nreturn s"
    for dtype in (np.float32, np.float64):
        function = program(body, "x, n")
        assert function(X.astype(dtype), 3).dtype == dtype
        check(function, (X.astype(dtype), 3), np.array([0.0, 6.0]))
    check(program(body.replace("x[t]", "t"), "x, n"), (X, 4), np.array([6, 0]))
